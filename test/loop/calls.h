/* SPDX-License-Identifier: MIT */
/*
 * Calls of every collective, and groups of messages, drawn by chance and
 * checked against what must come, which is worked out without any code of the
 * library.
 */
#ifndef CALLS_H
#define CALLS_H

#include "test/loop/trial.h"

enum call {
	ALL_REDUCE,
	REDUCE,
	BROADCAST,
	REDUCE_SCATTER,
	ALL_GATHER,
	GATHER,
	SCATTER,
	ALL_TO_ALL,
	ALL_GATHER_V,
	REDUCE_SCATTER_V,
	ALL_TO_ALL_V,
	MESSAGES,
	BARRIER,
	N_CALLS,
};

#define CALLS_RANKS 16

/* What ranks draw their calls from: rank->arg of calls_body(). */
struct calls_plan {
	uint64_t seed;
	size_t bytes;
	int n_calls;
	int only; /* one call, or -1 */
};

struct trial_call {
	enum call call;
	struct model model;
	bool in_place, all_local;
	int root;
	size_t count;		  /* of the even forms */
	/* From, to; of the others, row 0. */
	size_t counts[CALLS_RANKS][CALLS_RANKS];
	size_t displs[CALLS_RANKS];
	size_t total;
};

/* The next call, the same on all ranks. */
void calls_draw(struct rank *rank, uint64_t *state,
		const struct calls_plan *plan, struct trial_call *c);
/* Make it, and check what comes; @own is the rank's own chance. */
int calls_run(struct rank *rank, uint64_t *own, struct trial_call *c);

/* A body: all calls of a plan. */
int calls_body(struct rank *rank);

#endif
