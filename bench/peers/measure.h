/* SPDX-License-Identifier: MIT */
/*
 * The measure that every peer is taken by, which is `wreath perf`'s: a few
 * operations to warm up, an estimate, then a loop of as many as fill the time;
 * the time of one is that of the loop over their number, of the slowest rank.
 * In C and C++.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdint.h>
#include <time.h>

struct measure {
	void (*operate)(void *arg);
	void (*barrier)(void *arg);
	double (*max)(void *arg, double value); /* over the ranks */
	/* Writes the input; NULL: it stays as it is. */
	void (*touch)(void *arg);
	void *arg;
};

static double measure_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* The first operation is not timed: it brings the ranks together. */
static double measure_loop_ns(const struct measure *measure, int64_t n)
{
	double start;
	int64_t i;

	measure->barrier(measure->arg);
	measure->operate(measure->arg);
	start = measure_now_ns();
	for (i = 0; i < n; i++)
		measure->operate(measure->arg);
	return measure_now_ns() - start;
}

/* The writing is not timed, and all ranks have written before any begins. */
static double measure_touched_ns(const struct measure *measure, int64_t n)
{
	double ns = 0;
	int64_t i;

	for (i = 0; i < n; i++) {
		double start;

		measure->touch(measure->arg);
		measure->barrier(measure->arg);
		start = measure_now_ns();
		measure->operate(measure->arg);
		ns += measure_now_ns() - start;
	}
	return ns;
}

/* Microseconds of an operation; collective. */
static double measure_us(const struct measure *measure, double seconds)
{
	double est_ns = 0;
	double ns;
	int64_t n = 1;
	int i;

	for (i = 0; i < 5; i++)
		measure->operate(measure->arg);
	for (i = 0; i < 2; i++) {
		est_ns = measure->max(measure->arg,
				      measure_loop_ns(measure, n));
		est_ns = est_ns / (double)n + 1;
		n = (int64_t)(2e6 / est_ns) + 1;
		if (n > 1000)
			n = 1000;
	}
	n = (int64_t)(seconds * 1e9 / est_ns);
	if (n < 5)
		n = 5;
	if (measure->touch && n > 4096)
		n = 4096;
	ns = measure->touch ? measure_touched_ns(measure, n)
			    : measure_loop_ns(measure, n);
	return measure->max(measure->arg, ns) / (double)n / 1e3;
}

#endif
