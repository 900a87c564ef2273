/* SPDX-License-Identifier: MIT */
/*
 * How a communicator chooses: the cost of its machine, measured once, and for
 * each collective which algorithm is for which size.  All ranks hold the same.
 */
#ifndef COMM_MODEL_H
#define COMM_MODEL_H

#include "comm/inner.h"

struct comm_model {
	bool is_made; /* the cost is known */
	struct sched_tuning *tuning; /* of WREATH_TUNING; or NULL */
	struct sched_cost cost;
	struct sched_chooser *choosers[SCHED_N_COLLECTIVES];
};

/*
 * measure.c: how long a message takes to a neighbour in the node, and by each
 * rail to one in another node; COMM_MEASURE_MS altogether at most.  All ranks
 * must do so at once.  0, or what broke the communicator.
 */
int comm_measure(struct wreath_comm *comm, struct sched_measured *out);

#endif
