/* SPDX-License-Identifier: MIT */
/*
 * A network as the simulator sees it: nodes with ranks, rails between them,
 * switches, and what a step costs on the host.  It is written as text, a
 * statement a line, which wreath-sim(1) explains.
 *
 * Part of the door of sched: included by sched.h.
 */
#ifndef SCHED_FABRIC_H
#define SCHED_FABRIC_H

#include "base/base.h"

#define SCHED_FABRIC_RAILS_MAX 4
#define SCHED_FAULTS_MAX 64
/* Nodes, switch ports and the like at most; no more than ranks. */
#define SCHED_NODES_MAX 16384

enum sched_topology {
	SCHED_FLAT,	  /* one switch that never is the bottleneck */
	SCHED_SPINE_LEAF, /* leaves of @leaf nodes, joined by spines */
	SCHED_FAT_TREE,	  /* switches of @radix ports, two or three layers */
	SCHED_N_TOPOLOGIES,
};

enum sched_routing {
	SCHED_MODULO, /* a destination has its way up: (node) mod (ways) */
	SCHED_HASH,   /* source, destination and channel have theirs */
};

/* Rates are in bytes a second and hold for each direction. */
struct sched_rail {
	uint64_t rate;
	uint64_t latency_ps; /* from port to port, without @switch_ps */
};

/* A link that is slow or lost, in both directions. */
struct sched_fault {
	bool is_lost;
	bool is_up;    /* between leaf @node and its way up @up */
	int node;      /* else the port of this node */
	int rail, up;
	uint64_t rate; /* unless it is lost */
	int line, column; /* where it was said */
};

struct sched_fabric {
	int n_ranks;	    /* 0: n_nodes * ranks_per_node */
	int n_nodes;	    /* 0: 1 */
	int ranks_per_node; /* 0: n_ranks / n_nodes, the first with one more */
	int n_rails;
	struct sched_rail rails[SCHED_FABRIC_RAILS_MAX];
	bool is_per_rank; /* every rank has its own ports, not its node */
	/* Between the ranks of a node, each of which has the rate for itself;
	 * rate 0: they use the rails. */
	struct sched_rail in_node;

	enum sched_topology topology;
	int leaf, radix;
	int oversubscription;
	enum sched_routing routing;
	uint64_t switch_ps; /* of each link between switches */
	int n_faults;
	struct sched_fault faults[SCHED_FAULTS_MAX];

	/* What the executor has, and what a step costs its thread. */
	uint64_t overhead_ps; /* a message, at each end */
	uint64_t reduce_rate; /* bytes of each source but one; 0: no time */
	uint64_t copy_rate;   /* bytes that are copied alone; 0: no time */
	uint64_t slot_bytes;
	int n_slots;
};

/* No rail, one node, and the defaults that wreath-sim(1) gives. */
void sched_fabric_init(struct sched_fabric *fabric);

/*
 * Take in the statements of a text that ends with NUL.  @name is the file's or
 * the option's, for messages.  WREATH_EINVAL: the text says where (name, line
 * and column), what stands there, what was expected, and what may be meant.
 */
int sched_fabric_read(struct sched_fabric *fabric, const char *name,
		      const char *text);

/*
 * Does it make sense?  Fills in n_ranks and n_nodes.  A rail that a node has
 * lost is taken away from all of them, as the ranks would agree: @lost, a mask
 * of such rails, may be NULL.  WREATH_EINVAL says why not.
 */
int sched_fabric_check(struct sched_fabric *fabric, unsigned int *lost);

/* "flat", ...; NULL past the end. */
const char *sched_topology_name(enum sched_topology topology);

#endif
