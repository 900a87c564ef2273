/* SPDX-License-Identifier: MIT */
/*
 * What a generator writes its schedule with.
 *
 * A generator runs twice: the first time only to count, since a schedule is
 * one block of memory, the second time to write.  So it must be a pure
 * function of its arguments, and must not look at what it has written.
 */
#ifndef SCHED_DRAFT_H
#define SCHED_DRAFT_H

#include "sched.h"

struct draft {
	struct sched *sched; /* NULL while counting */
	uint32_t n_pieces; /* of a block: the generator sets it */
	uint32_t n_lanes, n_steps, n_peers;
	struct sched_step counted; /* stands for any step while counting */
	/*
	 * [n_ranks] the ranks by node, then by rank; behind them, [n_nodes],
	 * where each node's end.  NULL: 0, 1, ...
	 */
	const uint32_t *order;
};

/* One form of one algorithm: a row's entry in the table of sched.c. */
struct generator {
	void (*generate)(struct draft *draft, const struct sched_shape *shape,
			 uint32_t rank);
	/* Chunks that a rank sends in a pass, at most; @n_pieces a block. */
	uint64_t (*sent_bound)(const struct sched_shape *shape,
			       uint64_t n_pieces);
};

extern const struct generator sched_ring_all_reduce;
extern const struct generator sched_ring_reduce_scatter;
extern const struct generator sched_ring_all_gather;
extern const struct generator sched_ring_broadcast;
extern const struct generator sched_ring_reduce;
extern const struct generator sched_oneshot_all_reduce;
extern const struct generator sched_twoshot_all_reduce;
extern const struct generator sched_direct_reduce_scatter;
extern const struct generator sched_direct_reduce;
extern const struct generator sched_direct_all_gather;
extern const struct generator sched_direct_broadcast;
extern const struct generator sched_direct_gather;
extern const struct generator sched_direct_scatter;
extern const struct generator sched_direct_all_to_all; /* and exchange */
extern const struct generator sched_tree_all_reduce;
extern const struct generator sched_tree_broadcast;
extern const struct generator sched_tree_reduce;
extern const struct generator sched_split_ring_all_reduce;
extern const struct generator sched_split_ring_reduce_scatter;
extern const struct generator sched_split_ring_all_gather;
extern const struct generator sched_halving_all_reduce;
extern const struct generator sched_halving_reduce_scatter;
extern const struct generator sched_halving_all_gather;

/* Bounds that several forms have: a block to, or from, each other rank; */
uint64_t sched_bound_blocks(const struct sched_shape *shape, uint64_t n_pieces);
/* all but a share of the block, reduced and known again; */
uint64_t sched_bound_around(const struct sched_shape *shape, uint64_t n_pieces);
/* and everything once. */
uint64_t sched_bound_once(const struct sched_shape *shape, uint64_t n_pieces);

/* NULL: there is no such form, or a value is out of range. */
const struct generator *sched_generator(enum sched_collective collective,
					enum sched_algo algo);

/* As sched_make() reports it. */
int sched_check_shape(const struct sched_shape *shape, int rank);

/*
 * The two halves of it: what is in range, with the ranks of the largest node;
 * whether the form, which there is, can fold so many ranks.
 */
int sched_check_range(const struct sched_shape *shape, int rank, int *largest);
bool sched_fan_fits(const struct sched_shape *shape, int largest);

/*
 * The ranks of a shape that is in range, as in struct draft; NULL where their
 * nodes stand in order.  The caller frees it.  0 or WREATH_ENOMEM.
 */
int sched_order_new(const struct sched_shape *shape, uint32_t **out);

/*
 * nodes.c: the nodes of a shape.  A node's ranks have the indices 0, 1, ...
 * there, in order of rank.
 */
struct nodes {
	const struct sched_shape *shape;
	/* The draft's; without it sizes alone can be asked for, slowly. */
	const uint32_t *order;
};

struct nodes_sizes {
	uint32_t least, most; /* ranks of a node */
};

uint32_t nodes_count(const struct nodes *nodes);
uint32_t nodes_of(const struct nodes *nodes, uint32_t rank);
uint32_t nodes_size(const struct nodes *nodes, uint32_t node);
/* Where in the order of the ranks by node @rank stands, and in its node. */
uint32_t nodes_place(const struct nodes *nodes, uint32_t rank);
uint32_t nodes_index(const struct nodes *nodes, uint32_t rank);
uint32_t nodes_member(const struct nodes *nodes, uint32_t node, uint32_t index);
struct nodes_sizes nodes_sizes(const struct nodes *nodes);

/* The next lane; the steps that follow are its steps. */
uint32_t draft_lane(struct draft *draft, uint32_t channel, uint32_t box);

/*
 * The next step of the last lane, without peers, own chunk or dependency.
 * Valid until the next step.
 */
struct sched_step *draft_step(struct draft *draft, uint32_t chunk);

/* The own chunk is the output that step @at of @lane stores before. */
void draft_read_after(struct sched_step *step, uint32_t lane, uint32_t at);

/* For lanes to be numbered before they are made: the next number, or none. */
#define DRAFT_NO_LANE UINT32_MAX
uint32_t draft_number(uint32_t *next, bool is_there);

/* A peer more for @step, which is the last one; all recv before any send. */
void draft_recv(struct draft *draft, struct sched_step *step, uint32_t peer);
void draft_send(struct draft *draft, struct sched_step *step, uint32_t peer);

#endif
