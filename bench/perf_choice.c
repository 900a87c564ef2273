/* SPDX-License-Identifier: MIT */
/* What the library has chosen, and what it expected of each algorithm. */
#include <string.h>

#include "bench/perf_measure.h"
#include "comm/comm.h"

static int place_of(enum sched_algo algo)
{
	const char *name = sched_algo_name(algo);
	int i;

	for (i = 0; perf_algo_names[i]; i++) {
		if (name && !strcmp(perf_algo_names[i], name))
			return i;
	}
	return 0;
}

static void predict(const struct sched_chooser *chooser,
		    struct perf_result *result)
{
	int a;

	for (a = 0; a < SCHED_N_ALGOS; a++) {
		double seconds = sched_chooser_seconds(
			chooser, (enum sched_algo)a, result->bytes);

		if (seconds > 0)
			result->predicted_us[a] = seconds * 1e6;
	}
}

void perf_choice(const struct perf_cell *cell, struct perf_result *result)
{
	enum sched_collective what = perf_collectives[cell->kind].sched;
	const struct sched_chooser *chooser;

	if (what == SCHED_EXCHANGE) {
		/* There is no choice. */
		result->used = place_of(SCHED_DIRECT);
		return;
	}
	result->used = place_of(comm_choose(cell->comm, what, result->bytes));
	/* None was made where an algorithm was asked for. */
	chooser = comm_chooser(cell->comm, what);
	if (chooser && result->bytes)
		predict(chooser, result);
}
