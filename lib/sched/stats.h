/* SPDX-License-Identifier: MIT */
/* What the files that count and weigh schedules share. */
#ifndef SCHED_STATS_H
#define SCHED_STATS_H

#include "sched.h"

/* The first, one that may still differ, and one as all that follow. */
#define TRACE_PASSES 3

/* cost.c: the seconds of a chain in which each message is waited for. */
double sched_chain(const struct sched_work *work,
		   const struct sched_cost *cost, double bytes);

/* stats.c: the tier of a message between @rank and @peer. */
int sched_tier(const struct sched_shape *shape, const struct sched_cost *cost,
	       int rank, int peer, uint32_t channel);

/* scale.c: sched_stats_make(), from a shape of at most @n_ranks_max ranks. */
int sched_stats_scaled(const struct sched_shape *shape,
		       const struct sched_cost *cost, int n_ranks_max,
		       struct sched_stats *stats);

/* stats.c: the part of a pass that a chunk of the channel has. */
double sched_chunk_share(const struct sched *sched,
			 const struct sched_cost *cost, uint32_t channel);

/* The same as sched_stats_make(), whatever the number of ranks. */
int sched_stats_trace(const struct sched_shape *shape,
		      const struct sched_cost *cost, struct sched_stats *stats);

/* What a step reads and writes of its chunk: of each, how many times over. */
void sched_step_work(const struct sched_step *step, bool is_in_place,
		     double *n_folded, double *n_copied);

/*
 * trace.c: the longest chain to the end of each pass, with as many ranks as
 * @scheds[0] names, where a pass has @bytes.  WREATH_ENOMEM; WREATH_EINVAL: the
 * schedules wait for each other in vain.
 */
int sched_trace(struct sched *const *scheds, const struct sched_cost *cost,
		double bytes, bool is_in_place,
		struct sched_work ends[TRACE_PASSES]);

#endif
