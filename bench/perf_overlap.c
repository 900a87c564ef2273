/* SPDX-License-Identifier: MIT */
/*
 * All-reduce in buckets beside a computation.
 *
 * A gradient comes bucket by bucket, as from a backward pass: the thread
 * computes for a while, puts the all-reduce of the bucket on a stream, and
 * computes on.  Three things are timed: the computation alone, the all-reduces
 * alone, and both; of each the least of a few rounds, since these are to be
 * compared, and whatever else the machine does only adds; of the ranks the
 * slowest.
 */
#include <math.h>
#include <sched.h>
#include <string.h>

#include "bench/perf_measure.h"

#define ROUNDS_MIN 5
#define ROUNDS_MAX 100

enum part { COMPUTE, COMM, BOTH, N_PARTS };

struct overlap {
	struct perf_cell *cell;
	uint64_t total;	 /* elements of the gradient */
	uint64_t bucket; /* of each but the last */
	int64_t n_buckets;
	uint64_t units; /* of computation for a bucket */
};

/* The stream's queue may be full; then its oldest call ends before long. */
static int put(struct overlap *overlap, int64_t i)
{
	struct perf_cell *cell = overlap->cell;
	uint64_t from = (uint64_t)i * overlap->bucket;
	uint64_t left = overlap->total - from;
	char *at = (char *)cell->recv + from * wreath_type_size(cell->type);
	int error;

	do {
		error = wreath_all_reduce(
			at, at, left < overlap->bucket ? left : overlap->bucket,
			cell->type, (enum wreath_op)cell->op, cell->comm,
			cell->stream);
		if (error == WREATH_EAGAIN)
			sched_yield();
	} while (error == WREATH_EAGAIN);
	return error;
}

static enum perf_outcome run(struct overlap *overlap, enum part part,
			     double *ns)
{
	struct perf_cell *cell = overlap->cell;
	uint64_t start;
	int error = 0;
	int64_t i;

	if (!perf_team_barrier(cell->team))
		return PERF_BROKEN;
	start = base_now_ns();
	for (i = 0; i < overlap->n_buckets && !error; i++) {
		if (part != COMM)
			perf_compute_run(cell->compute, overlap->units);
		if (part != COMPUTE)
			error = put(overlap, i);
	}
	if (!error)
		error = perf_call_wait(cell);
	*ns = (double)(base_now_ns() - start);
	return error ? perf_broken(cell, error) : PERF_DONE;
}

static void cut(struct overlap *overlap, uint64_t count)
{
	const struct perf_cell *cell = overlap->cell;

	overlap->bucket = count;
	overlap->n_buckets = (int64_t)((overlap->total + count - 1) / count);
	overlap->units = perf_compute_units(cell->compute, cell->compute_ns /
						    (double)overlap->n_buckets);
}

/*
 * Once for all bucket sizes: where nothing else is asked for, as long as the
 * communication of the whole gradient in one piece, the least of a few.
 */
static enum perf_outcome choose_length(struct overlap *overlap)
{
	struct perf_cell *cell = overlap->cell;
	double least = INFINITY;
	enum perf_outcome outcome;
	double ns;
	int i;

	cut(overlap, overlap->total);
	for (i = 0; i < 3; i++) {
		outcome = run(overlap, COMM, &ns);
		if (outcome == PERF_DONE)
			outcome = perf_agree(cell, &ns);
		if (outcome != PERF_DONE)
			return outcome;
		least = fmin(least, ns);
	}
	cell->compute_ns = least;
	return PERF_DONE;
}

static enum perf_outcome open_compute(struct overlap *overlap)
{
	struct perf_cell *cell = overlap->cell;

	/* All ranks at the same time: cores may share what they compute by. */
	if (!cell->compute && !perf_team_barrier(cell->team))
		return PERF_BROKEN;
	if (!cell->compute) {
		cell->compute = perf_compute_new();
		if (!cell->compute)
			return perf_broken(cell,
					   base_error(WREATH_ENOMEM,
						      "no memory to compute "
						      "in"));
		cell->compute_ns = cell->options->compute_ms * 1e6;
	}
	return cell->compute_ns > 0 ? PERF_DONE : choose_length(overlap);
}

void perf_overlap_close(struct perf_cell *cell)
{
	perf_compute_free(cell->compute);
	cell->compute = NULL;
}

static double mean(const double *samples, int64_t n)
{
	double sum = 0;
	int64_t i;

	for (i = 0; i < n; i++)
		sum += samples[i];
	return sum / (double)n;
}

/* All three, again and again in turn, so that all see the same machine. */
static enum perf_outcome time_it(struct overlap *overlap,
				 struct perf_result *result)
{
	struct perf_cell *cell = overlap->cell;
	int64_t wanted = cell->options->n_iters;
	double *samples[N_PARTS];
	enum perf_outcome outcome = PERF_DONE;
	double spent = 0;
	int64_t n = 0;
	int p;

	if (wanted > ROUNDS_MAX)
		wanted = ROUNDS_MAX;
	for (p = 0; p < N_PARTS; p++)
		samples[p] = cell->samples + (size_t)p * ROUNDS_MAX;
	while (outcome == PERF_DONE &&
	       (wanted ? n < wanted
		       : n < ROUNDS_MIN ||
				 (n < ROUNDS_MAX &&
				  spent < cell->options->seconds * 1e9))) {
		for (p = 0; p < N_PARTS && outcome == PERF_DONE; p++) {
			double *ns = &samples[p][n];

			outcome = run(overlap, (enum part)p, ns);
			if (outcome == PERF_DONE)
				outcome = perf_agree(cell, ns);
			spent += *ns;
		}
		n++;
	}
	if (outcome != PERF_DONE)
		return outcome;
	for (p = 0; p < N_PARTS; p++)
		perf_sort(samples[p], n);
	result->n_iters = n;
	result->overlap.compute_us = samples[COMPUTE][0] / 1e3;
	result->overlap.comm_us = samples[COMM][0] / 1e3;
	result->overlap.both_us = samples[BOTH][0] / 1e3;
	result->us = (struct perf_times){
		.min = samples[BOTH][0] / 1e3,
		.avg = mean(samples[BOTH], n) / 1e3,
		.p50 = samples[BOTH][n / 2] / 1e3,
		.p99 = samples[BOTH][n - 1] / 1e3,
		.max = samples[BOTH][n - 1] / 1e3,
	};
	return PERF_DONE;
}

static enum perf_outcome check_it(struct overlap *overlap,
				  struct perf_result *result)
{
	const struct perf_piece all = {.source = PERF_REDUCED,
				       .count = overlap->total};
	struct perf_cell *cell = overlap->cell;
	struct perf_check mine = {0};
	enum perf_outcome outcome;
	double ns;

	result->is_checked = cell->options->n_checks > 0;
	if (!result->is_checked)
		return PERF_DONE;
	perf_pattern_fill(cell->pattern, cell->recv, overlap->total);
	outcome = run(overlap, BOTH, &ns);
	if (outcome != PERF_DONE)
		return outcome;
	perf_pattern_check(cell->pattern, &all, cell->recv, PERF_WRONG, &mine);
	return perf_check_gather(cell, &mine, result);
}

enum perf_outcome perf_overlap(struct perf_cell *cell,
			       struct perf_result *result)
{
	uint64_t bytes = cell->options->gradient;
	struct overlap overlap = {
		.cell = cell,
		.total = bytes / wreath_type_size(cell->type),
	};
	enum perf_outcome outcome;
	double ns;

	memset(cell->recv, 0, bytes);
	outcome = open_compute(&overlap);
	if (outcome != PERF_DONE)
		return outcome;
	cut(&overlap, cell->count);
	result->overlap.gradient = overlap.total *
				   wreath_type_size(cell->type);
	result->overlap.n_buckets = overlap.n_buckets;
	/* The first time is not timed: it brings up connections and pages. */
	outcome = run(&overlap, BOTH, &ns);
	if (outcome == PERF_DONE)
		outcome = time_it(&overlap, result);
	return outcome == PERF_DONE ? check_it(&overlap, result) : outcome;
}
