/* SPDX-License-Identifier: MIT */
/*
 * What stands for a model's computation: multiplications and additions in an
 * array that stays in the core's own cache, so that it takes neither the memory
 * nor the network from what runs beside it.
 */
#include <stdlib.h>

#include "bench/perf_measure.h"

/* Floats: 4 KiB of the 32 or more of a core's first cache. */
#define N_FLOATS 1024
/*
 * A calibration is tried so often, and the median counts; a try takes some
 * milliseconds, since a core may be faster for less.
 */
#define N_TRIES 9
#define TRY_UNITS 20000

struct perf_compute {
	float values[N_FLOATS];
	double unit_ns;
};

void perf_compute_run(struct perf_compute *compute, uint64_t units)
{
	float *values = compute->values;
	uint64_t u;
	int i;

	/* Towards 1, and never to a subnormal number, which would be slow. */
	for (u = 0; u < units; u++) {
		for (i = 0; i < N_FLOATS; i++)
			values[i] = values[i] * 0.999f + 0.001f;
		/* The compiler must not do several of them in one. */
		__asm__ volatile("" : : "r"(values) : "memory");
	}
}

struct perf_compute *perf_compute_new(void)
{
	struct perf_compute *compute = calloc(1, sizeof(*compute));
	double tries[N_TRIES];
	int i;

	if (!compute)
		return NULL;
	for (i = 0; i < N_TRIES; i++) {
		uint64_t start = base_now_ns();

		perf_compute_run(compute, TRY_UNITS);
		tries[i] = (double)(base_now_ns() - start) / TRY_UNITS;
	}
	perf_sort(tries, N_TRIES);
	compute->unit_ns = tries[N_TRIES / 2];
	return compute;
}

void perf_compute_free(struct perf_compute *compute)
{
	free(compute);
}

uint64_t perf_compute_units(const struct perf_compute *compute, double ns)
{
	return (uint64_t)(ns / compute->unit_ns);
}
