/* SPDX-License-Identifier: MIT */
/*
 * Who is where: the ranks of a node in order of rank.  Nodes that stand in
 * order are found by arithmetic, listed ones by the draft's order of ranks,
 * behind which is where each node's ranks end.
 */
#include "draft.h"

static bool is_listed(const struct nodes *nodes)
{
	return nodes->shape->nodes && nodes_count(nodes) > 1;
}

/* Where the ranks of @node begin, in order. */
static uint32_t first_of(const struct nodes *nodes, uint32_t node)
{
	uint32_t n = (uint32_t)nodes->shape->n_ranks;
	uint32_t each = n / nodes_count(nodes);
	uint32_t more = n % nodes_count(nodes);

	if (is_listed(nodes))
		return node ? nodes->order[n + node - 1] : 0;
	return node * each + (node < more ? node : more);
}

uint32_t nodes_count(const struct nodes *nodes)
{
	return nodes->shape->n_nodes ? (uint32_t)nodes->shape->n_nodes : 1;
}

uint32_t nodes_of(const struct nodes *nodes, uint32_t rank)
{
	return (uint32_t)sched_node_of(nodes->shape, (int)rank);
}

uint32_t nodes_size(const struct nodes *nodes, uint32_t node)
{
	uint32_t size = 0;
	int i;

	if (is_listed(nodes) && !nodes->order) {
		for (i = 0; i < nodes->shape->n_ranks; i++)
			size += nodes->shape->nodes[i] == node;
		return size;
	}
	return first_of(nodes, node + 1) - first_of(nodes, node);
}

uint32_t nodes_place(const struct nodes *nodes, uint32_t rank)
{
	uint32_t low, high;

	if (!is_listed(nodes))
		return rank;
	/* A node's ranks stand in order of rank. */
	low = first_of(nodes, nodes_of(nodes, rank));
	high = first_of(nodes, nodes_of(nodes, rank) + 1);
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (nodes->order[middle] <= rank)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint32_t nodes_index(const struct nodes *nodes, uint32_t rank)
{
	return nodes_place(nodes, rank) -
	       first_of(nodes, nodes_of(nodes, rank));
}

uint32_t nodes_member(const struct nodes *nodes, uint32_t node, uint32_t index)
{
	uint32_t at = first_of(nodes, node) + index;

	return is_listed(nodes) ? nodes->order[at] : at;
}

struct nodes_sizes nodes_sizes(const struct nodes *nodes)
{
	struct nodes_sizes sizes = {UINT32_MAX, 0};
	uint32_t i;

	for (i = 0; i < nodes_count(nodes); i++) {
		uint32_t size = nodes_size(nodes, i);

		if (size < sizes.least)
			sizes.least = size;
		if (size > sizes.most)
			sizes.most = size;
	}
	return sizes;
}
