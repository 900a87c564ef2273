/* SPDX-License-Identifier: MIT */
/*
 * comm: the functions of wreath.h.  Its customers include wreath.h; this door
 * has what the workbench needs beyond it.
 */
#ifndef COMM_H
#define COMM_H

#include "sched/sched.h"

/*
 * The algorithm of @collective for a vector of @bytes, all blocks together.
 * @comm is valid, and has made such a call.
 */
enum sched_algo comm_choose(const struct wreath_comm *comm,
			    enum sched_collective collective, size_t bytes);

/*
 * The predictions and the choice for @collective, valid as long as @comm; NULL
 * until the first call that chooses: see sched_chooser_find() and
 * sched_chooser_seconds().
 */
const struct sched_chooser *comm_chooser(const struct wreath_comm *comm,
					 enum sched_collective collective);

#endif
