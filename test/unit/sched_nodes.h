/* SPDX-License-Identifier: MIT */
/* What the tests of schedules over nodes share: shapes, and their proofs. */
#ifndef SCHED_NODES_H
#define SCHED_NODES_H

#include "sched_kit.h"

#define NODES_RANKS 64

/* Two ranks to @n_ranks_max, in nodes by chance. */
static inline void nodes_draw_shape(struct sched_shape *shape,
				    uint32_t n_ranks_max, uint32_t *nodes,
				    uint64_t *seed)
{
	uint32_t n = 2 + kit_below(seed, n_ranks_max - 1);
	uint32_t n_nodes = 1 + kit_below(seed, n);

	shape->n_ranks = (int)n;
	shape->n_nodes = (int)n_nodes;
	shape->nodes = nodes;
	kit_draw_nodes(seed, n, n_nodes, nodes);
}

/* How many ranks the largest of a shape's nodes has. */
static inline int nodes_largest(const struct sched_shape *shape)
{
	int sizes[NODES_RANKS] = {0};
	int max = 0;
	int i;

	for (i = 0; i < shape->n_ranks; i++) {
		int *size = &sizes[sched_node_of(shape, i)];

		++*size;
		max = *size > max ? *size : max;
	}
	return max;
}

static inline int nodes_log2(int n)
{
	int log = 0;

	while (n >> (log + 1))
		log++;
	return log;
}

static inline struct sched_proof nodes_prove(const struct kit *kit, int n_slots,
					     bool in_place)
{
	const struct sched_shape *shape = &kit->scheds[0]->shape;
	struct sched_proof proof;

	if (sched_verify(kit->scheds, kit->n_ranks, n_slots, in_place, &proof))
		fail_msg("%s of %d ranks, %d nodes%s, %d channels, root %d: %s",
			 sched_collective_name(shape->collective),
			 shape->n_ranks, shape->n_nodes,
			 shape->nodes ? " listed" : "", shape->n_channels,
			 shape->root, base_error_text());
	return proof;
}

#endif
