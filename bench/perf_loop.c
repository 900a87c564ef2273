/* SPDX-License-Identifier: MIT */
/*
 * One measurement: a size, a type, an operation, in place or not.
 *
 * The time of an operation is that of a loop of them, from one clock reading
 * to another, over the number; of all ranks' times the greatest counts.  The
 * spread comes from readings between the operations.  Where a reading would
 * distort what it measures there are two loops, one for each.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/perf_measure.h"

/* A clock reading (some 30 ns) is less than a hundredth of this. */
#define SLOW_NS 5000.0
/* How often the ranks ask each other whether to stop. */
#define BLOCK_NS 5e8
#define ITERS_MAX 10000000

enum perf_outcome perf_broken(struct perf_cell *cell, int error)
{
	perf_team_fail(cell->team, error, wreath_error_text());
	return PERF_BROKEN;
}

static int operate(struct perf_cell *cell)
{
	int64_t i;
	int error = 0;

	for (i = 0; i < cell->options->n_agg && !error; i++)
		error = perf_call(cell);
	return error;
}

/* Also the moment at which all ranks agree to stop. */
enum perf_outcome perf_agree(struct perf_cell *cell, double *value)
{
	double values[2] = {*value, 0};

	values[1] = atomic_load(&cell->team->page->is_interrupted);
	if (!perf_team_max(cell->team, values, 2))
		return PERF_BROKEN;
	*value = values[0];
	return values[1] > 0 ? PERF_STOPPED : PERF_DONE;
}

/*
 * @n operations in a loop; adds the nanoseconds.  The first one is not timed:
 * it brings the ranks together.
 */
static enum perf_outcome plain_loop(struct perf_cell *cell, int64_t n,
				    double *ns)
{
	uint64_t start;
	int64_t i;
	int error;

	if (!perf_team_barrier(cell->team))
		return PERF_BROKEN;
	error = operate(cell);
	if (!error)
		error = perf_call_wait(cell);
	start = base_now_ns();
	for (i = 0; i < n && !error; i++)
		error = operate(cell);
	if (!error)
		error = perf_call_wait(cell);
	*ns += (double)(base_now_ns() - start);
	return error ? perf_broken(cell, error) : PERF_DONE;
}

/* The same, with a reading after each into @samples. */
static enum perf_outcome sample_loop(struct perf_cell *cell, int64_t n,
				     double *samples, double *ns)
{
	uint64_t start, last;
	int64_t i;
	int error;

	if (!perf_team_barrier(cell->team))
		return PERF_BROKEN;
	error = operate(cell);
	if (!error)
		error = perf_call_wait(cell);
	start = last = base_now_ns();
	for (i = 0; i < n && !error; i++) {
		uint64_t now;

		error = operate(cell);
		if (!error)
			error = perf_call_wait(cell);
		now = base_now_ns();
		samples[i] = (double)(now - last);
		last = now;
	}
	*ns += (double)(last - start);
	return error ? perf_broken(cell, error) : PERF_DONE;
}

/* The same, with the input written before each, and only then the clock. */
static enum perf_outcome touch_loop(struct perf_cell *cell, int64_t n,
				    double *samples, double *ns)
{
	int64_t i;

	for (i = 0; i < n; i++) {
		uint64_t start;
		int error;

		error = perf_touch(cell);
		if (error)
			return perf_broken(cell, error);
		if (!perf_team_barrier(cell->team))
			return PERF_BROKEN;
		start = base_now_ns();
		error = operate(cell);
		if (!error)
			error = perf_call_wait(cell);
		if (error)
			return perf_broken(cell, error);
		samples[i] = (double)(base_now_ns() - start);
		*ns += samples[i];
	}
	return PERF_DONE;
}

/* A loop in blocks, so that an interrupt is heard within each. */
static enum perf_outcome loop(struct perf_cell *cell, int64_t n, double est_ns,
			      double *samples, double *ns)
{
	int64_t block = (int64_t)(BLOCK_NS / est_ns) + 1;
	enum perf_outcome outcome = PERF_DONE;
	int64_t done = 0;

	while (done < n && outcome == PERF_DONE) {
		int64_t some = n - done < block ? n - done : block;
		double none = 0;

		if (!samples)
			outcome = plain_loop(cell, some, ns);
		else if (cell->options->touch)
			outcome = touch_loop(cell, some, samples + done, ns);
		else
			outcome = sample_loop(cell, some, samples + done, ns);
		done += some;
		if (outcome == PERF_DONE && done < n)
			outcome = perf_agree(cell, &none);
	}
	return outcome;
}

static enum perf_outcome warm_up(struct perf_cell *cell, double *est_ns)
{
	enum perf_outcome outcome;
	double ns = 0;
	int64_t n = 1;
	int64_t i;
	int error = 0;

	for (i = 0; i < cell->options->n_warmup && !error; i++)
		error = operate(cell);
	if (!error)
		error = perf_call_wait(cell);
	if (error)
		return perf_broken(cell, error);
	/* One operation for an idea, then as many as take about 2 ms. */
	for (i = 0; i < 2; i++) {
		ns = 0;
		outcome = plain_loop(cell, n, &ns);
		if (outcome == PERF_DONE)
			outcome = perf_agree(cell, &ns);
		if (outcome != PERF_DONE)
			return outcome;
		ns = ns / (double)n + 1;
		n = (int64_t)(2e6 / ns) + 1;
		if (n > 1000)
			n = 1000;
		if (n == 1)
			break;
	}
	*est_ns = ns;
	return PERF_DONE;
}

static int64_t n_iters(const struct perf_options *options, double est_ns)
{
	double n = options->seconds * 1e9 / est_ns;

	if (options->n_iters)
		return options->n_iters;
	/* Fewer than five say little about the spread. */
	if (n < 5)
		return 5;
	return n > ITERS_MAX ? ITERS_MAX : (int64_t)n;
}

/* The least that two readings in a row are apart. */
static double clock_cost(void)
{
	double least = 1e9;
	int i;

	for (i = 0; i < 100; i++) {
		uint64_t a = base_now_ns();
		uint64_t b = base_now_ns();

		if ((double)(b - a) < least)
			least = (double)(b - a);
	}
	return least;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

void perf_sort(double *values, int64_t n)
{
	qsort(values, (size_t)n, sizeof(*values), compare);
}

static void spread(double *samples, int64_t n, double scale, double cost,
		   double avg, struct perf_times *us)
{
	double sum = 0;
	double squares = 0;
	double mean;
	int64_t i;

	for (i = 0; i < n; i++) {
		samples[i] = fmax(samples[i] - cost, 0) * scale;
		sum += samples[i];
		squares += samples[i] * samples[i];
	}
	perf_sort(samples, n);
	mean = sum / (double)n;
	us->avg = avg;
	us->p50 = samples[n / 2];
	us->p99 = samples[(int64_t)((double)n * 0.99)];
	/* The mean may come of another loop, but lies between these. */
	us->min = fmin(samples[0], avg);
	us->max = fmax(samples[n - 1], avg);
	us->cv = mean > 0 ? 100 * sqrt(fmax(squares / (double)n - mean * mean,
					    0)) / mean : 0;
}

static enum perf_outcome time_it(struct perf_cell *cell,
				 struct perf_result *result)
{
	double scale = 1e-3 / (double)cell->options->n_agg;
	enum perf_outcome outcome;
	double est_ns, cost = 0;
	double avg_ns = 0;
	double sample_ns = 0;
	int64_t n, n_samples;
	bool has_two_loops;

	outcome = warm_up(cell, &est_ns);
	if (outcome != PERF_DONE)
		return outcome;
	n = n_iters(cell->options, est_ns);
	n_samples = n < PERF_SAMPLES ? n : PERF_SAMPLES;
	has_two_loops = !cell->options->touch &&
			(est_ns < SLOW_NS || n > PERF_SAMPLES);
	if (cell->options->touch)
		n = n_samples;
	if (has_two_loops) {
		outcome = loop(cell, n, est_ns, NULL, &avg_ns);
		cost = clock_cost();
	}
	if (outcome == PERF_DONE)
		outcome = loop(cell, n_samples, est_ns, cell->samples,
			       &sample_ns);
	if (outcome != PERF_DONE)
		return outcome;
	if (!has_two_loops)
		avg_ns = sample_ns;
	avg_ns /= (double)n;
	if (!perf_team_max(cell->team, &avg_ns, 1) ||
	    !perf_team_max(cell->team, cell->samples, (size_t)n_samples))
		return PERF_BROKEN;
	result->n_iters = n;
	spread(cell->samples, n_samples, scale, cost, avg_ns * scale,
	       &result->us);
	return PERF_DONE;
}

enum perf_outcome perf_measure(struct perf_cell *cell,
			       struct perf_result *result)
{
	enum perf_outcome outcome;
	int error;

	perf_call_plan(cell);
	error = perf_prepare(cell);
	if (error)
		return perf_broken(cell, error);
	outcome = time_it(cell, result);
	if (outcome != PERF_DONE)
		return outcome;
	return perf_check_it(cell, result);
}
