/* SPDX-License-Identifier: MIT */
/*
 * The verifier's inside: one pass of all ranks as a graph.
 *
 * Its nodes are the steps of all ranks.  Edges are what holds in every
 * execution: the order of a lane, a message and the step that takes it, a
 * step and the one that it runs after.  Credits are no edges, they only bound
 * the run (run.c), so whatever is proved over edges holds for any number of
 * slots.
 *
 * A cell is what one input chunk, or one chunk of the sum, goes through: all
 * steps of all ranks that work on it.  Nothing but the order of lanes leads
 * from one cell into another, and any cell may be empty in a pass while others
 * are not, so that its steps do nothing then.  Hence values and memory are
 * proved for each cell by itself, and over edges within it.
 */
#ifndef SCHED_VERIFY_H
#define SCHED_VERIFY_H

#include "sched.h"

struct verify_node {
	const struct sched_step *step;
	uint32_t rank, lane, at; /* the @at-th step of the lane */
	uint32_t cell;
	uint32_t taken, sent;	 /* its first places in the lists below */
	uint32_t value;		 /* what it stores and sends: value.c */
	uint32_t depth;		 /* messages on the longest chain to it */
};

/* A message of the pass: the @at-th in its queue. */
struct verify_message {
	uint32_t from, to; /* nodes */
	uint32_t queue, at;
};

/* What one rank sends into one lane of another, alone in its box. */
struct verify_queue {
	uint32_t source, target, lane;
	uint32_t message; /* the first; they stand in order */
	uint32_t n_sent, n_taken;
	uint32_t from, to; /* the last node that sends, that takes */
};

/* A lane of a rank: its place in the run of several passes. */
struct verify_lane {
	uint32_t node, n_steps;
	uint64_t done;	    /* steps, of all passes */
	uint32_t condition; /* the next step's conditions met so far */
	uint32_t awaits;    /* while it waits: the lane, */
	uint64_t until;	    /* and how many of its steps must be done */
	uint32_t next;	    /* in the list of those who wait for one lane */
	uint32_t waiters;   /* the head of that list */
};

/* No node, lane or value. */
#define VERIFY_NONE UINT32_MAX

/* Steps, and messages, of a pass at most: sums of both fit 32 bits. */
#define VERIFY_MAX (UINT32_C(1) << 30)

struct verify {
	struct sched *const *scheds;
	const struct sched_shape *shape;
	uint32_t n_ranks, n_slots, n_lanes, n_pieces, n_chunks;
	bool in_place;
	bool is_crossing; /* rank i's block j goes into j's block i */

	uint32_t n_nodes, n_messages, n_taken, n_queues;
	struct verify_node *nodes; /* rank by rank, lane by lane */
	struct verify_lane *lanes; /* rank * n_lanes + lane */
	struct verify_queue *queues;
	struct verify_message *messages;
	uint32_t *taken; /* messages, in the order of the recv lists */
	uint32_t *sent;	 /* messages, in the order of the send lists */
	uint32_t *order; /* nodes, in an order that no edge contradicts */

	uint32_t n_cells;
	uint32_t *cells;   /* [n_cells + 1] their first places in @members */
	uint32_t *members; /* nodes, by cell, in the order of @order */
};

/*
 * Each part below returns 0, or an error that is reported.  They run in this
 * order, each on the ground that the former ones have laid.
 */

/* lists.c: every index and list is within its bounds. */
int verify_lists(const struct verify *verify);

/* match.c: build the graph; every message is taken, as what it was sent. */
int verify_match(struct verify *verify);

/* run.c: the run comes to its end; fills @order. */
int verify_run(struct verify *verify);

/* value.c: what the outputs hold. */
int verify_values(struct verify *verify);

/* memory.c: no two accesses race. */
int verify_memory(const struct verify *verify);

/* Report WREATH_EINVAL at a step. */
int verify_refuse(uint32_t rank, uint32_t lane, uint32_t at, const char *fmt,
		  ...) __attribute__((format(printf, 4, 5), cold));
int verify_refuse_node(const struct verify *verify, uint32_t node,
		       const char *fmt, ...)
	__attribute__((format(printf, 3, 4), cold));

static inline uint32_t verify_block(const struct verify *verify,
				    const struct sched_step *step)
{
	return step->chunk / verify->n_pieces;
}

/* The node that @node has to run after by its dependency, or VERIFY_NONE. */
uint32_t verify_after(const struct verify *verify,
		      const struct verify_node *node);

#endif
