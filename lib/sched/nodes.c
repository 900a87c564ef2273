/* SPDX-License-Identifier: MIT */
/*
 * Who is where: the ranks of a node in order of rank, without a table, since a
 * generator may not allocate.  Nodes that stand in order are found by
 * arithmetic, listed ones by a look over the list.
 */
#include "draft.h"

static uint32_t n_nodes_of(const struct sched_shape *shape)
{
	return shape->n_nodes ? (uint32_t)shape->n_nodes : 1;
}

/* The first rank of a node of those that stand in order. */
static uint32_t first_of(const struct sched_shape *shape, uint32_t node)
{
	uint32_t each = (uint32_t)shape->n_ranks / n_nodes_of(shape);
	uint32_t more = (uint32_t)shape->n_ranks % n_nodes_of(shape);

	return node * each + (node < more ? node : more);
}

uint32_t sched_nodes(const struct sched_shape *shape)
{
	return n_nodes_of(shape);
}

uint32_t sched_node_size(const struct sched_shape *shape, uint32_t node)
{
	uint32_t n = (uint32_t)shape->n_ranks;
	uint32_t size = 0;
	uint32_t i;

	if (!shape->nodes)
		return first_of(shape, node + 1) - first_of(shape, node);
	for (i = 0; i < n; i++)
		size += shape->nodes[i] == node;
	return size;
}

uint32_t sched_node_index(const struct sched_shape *shape, uint32_t rank)
{
	uint32_t node = (uint32_t)sched_node_of(shape, (int)rank);
	uint32_t index = 0;
	uint32_t i;

	if (!shape->nodes)
		return rank - first_of(shape, node);
	for (i = 0; i < rank; i++)
		index += shape->nodes[i] == node;
	return index;
}

uint32_t sched_node_member(const struct sched_shape *shape, uint32_t node,
			   uint32_t index)
{
	uint32_t rank = 0;

	if (!shape->nodes)
		return first_of(shape, node) + index;
	for (;; rank++) {
		wreath_assert(rank < (uint32_t)shape->n_ranks);
		if (shape->nodes[rank] == node && !index--)
			return rank;
	}
}
