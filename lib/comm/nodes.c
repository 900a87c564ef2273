/* SPDX-License-Identifier: MIT */
/* Which ranks are on one host, and which on one node. */
#include "comm/inner.h"

/* Those that pretend do so within their host. */
static bool is_one_node(const struct comm_info *a, const struct comm_info *b)
{
	return a->host_id == b->host_id && a->node == b->node;
}

/* All or none, for ranks that pretend are apart from those that do not. */
static int check_pretended(const struct wreath_comm *comm)
{
	const struct comm_info *infos = comm->infos;
	int i;

	for (i = 0; i < comm->n_ranks; i++)
		if ((infos[i].node < 0) != (infos[0].node < 0))
			return base_error(
				WREATH_EMISMATCH,
				"WREATH_NODE is %d on %s and %d on %s; give it "
				"to all ranks, or to none (-1)", infos[0].node,
				comm->names[0], infos[i].node, comm->names[i]);
	return 0;
}

int comm_nodes_find(struct wreath_comm *comm)
{
	const struct comm_info *infos = comm->infos;
	uint32_t n_hosts = 0;
	uint32_t n_nodes = 0;
	int i, j;

	for (i = 0; i < comm->n_ranks; i++) {
		for (j = 0; infos[j].host_id != infos[i].host_id; j++)
			;
		comm->hosts[i] = j < i ? comm->hosts[j] : n_hosts++;
		for (j = 0; !is_one_node(&infos[j], &infos[i]); j++)
			;
		comm->nodes[i] = j < i ? comm->nodes[j] : n_nodes++;
	}
	comm->n_nodes = (int)n_nodes;
	return check_pretended(comm);
}
