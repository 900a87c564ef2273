/* SPDX-License-Identifier: MIT */
/*
 * The links of a fabric, and the paths over them.
 *
 * Folded, only the links of the first nodes are there, as many as one turn of
 * the fabric's symmetry has; all others are taken for the one that is in the
 * same place of its turn.
 */
#ifndef SCHED_SIM_NET_H
#define SCHED_SIM_NET_H

#include "sched.h"

/* Port, up, up, down, down, port. */
#define SIM_PATH_MAX 6

struct sim_link {
	uint64_t free_ps;    /* when the last message has left it */
	uint64_t busy_ps;    /* altogether */
	uint64_t per_byte;   /* sim_per_byte(); 0: the link is lost */
	uint64_t latency_ps; /* from its beginning to that of the next */
};

struct sim_net {
	const struct sched_fabric *fabric;
	const struct sched_shape *shape;
	int unit_nodes; /* that are there */
	int n_ports;	/* of a rail, that are there */
	int ports_per_node;
	int leaf_nodes, n_leaves, n_ups; /* 0 leaves: flat */
	int pod_leaves, n_halves;	 /* 0: no third layer */
	uint32_t up, pod_up, in_node;	 /* first links of a kind */
	uint32_t n_links;
	struct sim_link *links;
};

/*
 * Nodes of one turn of the fabric's symmetry: to shift all ranks by as many
 * nodes leaves the fabric as it is.  0: there is no such symmetry.
 */
int sim_net_unit(const struct sched_fabric *fabric);

/* @unit: as sim_net_unit() says, or 0: not folded. */
int sim_net_init(struct sim_net *net, const struct sched_fabric *fabric,
		 const struct sched_shape *shape, int unit);
void sim_net_release(struct sim_net *net);

/* The links from rank to rank on a channel: how many, or WREATH_EINVAL. */
int sim_net_path(const struct sim_net *net, int source, int target,
		 int channel, uint32_t path[SIM_PATH_MAX]);

/* "node 3 rail 0 out" */
void sim_net_name(const struct sim_net *net, uint32_t link, char *out,
		  size_t size);

/* In ps * 2^32, of a rate in bytes a second; 0: it takes no time. */
static inline uint64_t sim_per_byte(uint64_t rate)
{
	unsigned __int128 second = (unsigned __int128)1000000000000u << 32;

	return rate ? (uint64_t)(second / rate) : 0;
}

static inline uint64_t sim_work_ps(uint64_t bytes, uint64_t per_byte)
{
	return (uint64_t)((unsigned __int128)bytes * per_byte >> 32);
}

/* How long a link needs for so many bytes. */
static inline uint64_t sim_link_ps(const struct sim_link *link, uint64_t bytes)
{
	return sim_work_ps(bytes, link->per_byte);
}

#endif
