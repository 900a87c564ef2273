/* SPDX-License-Identifier: MIT */
/*
 * The simulator: a schedule in virtual time over a fabric.
 *
 * Part of the door of sched: included by sched.h.  It knows no clock; equal
 * arguments give equal bits.
 *
 * What is modelled.  A rank is one thread that runs a step at a time; it stays
 * with a lane as long as that can go on, then looks at the next.  A step takes
 * the overhead of each message at either end, and the time to fold its sources
 * or to copy its only one.  A lane and pair has so many messages under way as
 * there are slots; credit comes back when half of them are taken, behind one
 * packet of what leaves the same port.  A link serves messages one by one in
 * the order in which they come; a message leaves for the next link as soon as
 * it is being served, and is there when its last byte is.
 *
 * Symmetric fabrics and schedules are folded: if shifting all ranks by some
 * number of them changes neither, all ranks that are so many apart do the same
 * at the same time, and one of them stands for all.  The chunks are taken for
 * equally long then, as long as the longest; where they are, the result is
 * that of the whole, but for messages that reach a link at the same instant
 * from different ranks, whose order is arbitrary either way.
 */
#ifndef SCHED_SIM_H
#define SCHED_SIM_H

#include "sched/sched.h"

/*
 * The executor's, which asserts that they are: the longest message that goes
 * as lines, how many of these may be under way, and from which block on final
 * chunks go to their place.
 */
#define SCHED_SIM_LINES_BYTES (8 * 56)
#define SCHED_SIM_LINES_WINDOW 16
#define SCHED_SIM_PLACE_MIN 2048

/* Why a step began no earlier. */
enum sched_sim_cause {
	SCHED_SIM_START,   /* nothing held it up */
	SCHED_SIM_BUSY,	   /* its rank ran another step */
	SCHED_SIM_MESSAGE, /* the message came no earlier */
	SCHED_SIM_CREDIT,  /* nor did the credit */
	SCHED_SIM_N_CAUSES,
};

/* Where the time of the critical path goes. */
enum sched_sim_part {
	SCHED_SIM_HOST,	   /* overhead, folding and copying */
	SCHED_SIM_WIRE,	   /* bytes by the rate of the slowest link */
	SCHED_SIM_LATENCY, /* of the links */
	SCHED_SIM_QUEUE,   /* behind other messages */
	SCHED_SIM_RETURN,  /* of credit */
	SCHED_SIM_N_PARTS,
};

struct sched_sim_hop {
	int rank;
	uint32_t lane, step; /* of the lane */
	uint64_t pass;
	enum sched_sim_cause cause;
	int from; /* the rank that the message or the credit came from */
	uint64_t start_ps, end_ps;
};

struct sched_sim_args {
	const struct sched_shape *shape; /* @n_ranks as the fabric has */
	const struct sched_fabric *fabric; /* checked */
	/* As perf counts them: the whole vector of all blocks. */
	uint64_t bytes;
	bool is_plain; /* never folded */
	/* Steps of which the path is kept; more, and there is none. */
	uint64_t trace_max;
	/*
	 * Of more messages than that only so many passes are run as have about
	 * as many, and half of these; what the second half took is what all
	 * further passes take.  0: all are run.
	 */
	uint64_t messages_enough;
	/* More messages than that to run, and it is refused; 0: no limit. */
	uint64_t messages_max;
};

struct sched_sim {
	uint64_t time_ps; /* until the last rank is done */
	uint64_t bound_ps; /* no algorithm can be faster: see the manual */
	uint64_t n_messages, n_steps; /* that were simulated */
	uint64_t n_passes, n_passes_run; /* the latter were simulated */
	int n_simulated; /* ranks; the others are folded into them */
	bool is_even;	 /* chunks are equally long, or were taken for that */
	char busiest[64]; /* the link */
	double utilisation; /* of it, 0 to 1 */
	/* The critical path from first to last, if it was kept. */
	uint64_t part_ps[SCHED_SIM_N_PARTS];
	struct sched_sim_hop *hops;
	uint32_t n_hops;
};

/*
 * Run it.  The result must be released.  WREATH_EINVAL: the shape or the
 * fabric, and there is no result; WREATH_EUNSUP: the algorithm has no such
 * form, or the limit is passed; WREATH_ENOMEM.
 */
int sched_simulate(const struct sched_sim_args *args, struct sched_sim *out);
void sched_sim_release(struct sched_sim *sim);

/* Bus bandwidth by algorithm bandwidth, as nccl-tests count it. */
double sched_bus_factor(enum sched_collective collective, int n_ranks);

#endif
