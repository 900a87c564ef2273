/* SPDX-License-Identifier: MIT */
/* The ranks by node and then by rank: what a ring or a chain follows. */
#include "draft.h"

int sched_order_new(const struct sched_shape *shape, uint32_t **out)
{
	uint32_t n_nodes = shape->n_nodes ? (uint32_t)shape->n_nodes : 1;
	uint32_t n = (uint32_t)shape->n_ranks;
	uint32_t *order, *next;
	uint32_t sum = 0;
	uint32_t i;

	*out = NULL;
	if (!shape->nodes || n_nodes == 1)
		return 0;
	/* Behind the places: where each node's next rank goes, its end then. */
	order = base_alloc((size_t)n + n_nodes, sizeof(*order));
	if (!order)
		return WREATH_ENOMEM;
	next = order + n;
	for (i = 0; i < n; i++)
		next[shape->nodes[i]]++;
	for (i = 0; i < n_nodes; i++) {
		uint32_t n_here = next[i];

		next[i] = sum;
		sum += n_here;
	}
	for (i = 0; i < n; i++)
		order[next[shape->nodes[i]]++] = i;
	*out = order;
	return 0;
}
