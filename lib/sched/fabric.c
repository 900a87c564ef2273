/* SPDX-License-Identifier: MIT */
/* What a fabric is unless said otherwise, and whether it makes sense. */
#include "fabric.h"
#include "sched.h"

void sched_fabric_init(struct sched_fabric *fabric)
{
	*fabric = (struct sched_fabric){
		.oversubscription = 1,
		/*
		 * Of the order of what this library was seen to need for a
		 * message on a machine of 2025; memory that is folded or copied
		 * by one thread, out of its caches; and the slots it has unless
		 * told otherwise.
		 */
		.overhead_ps = 300 * 1000,
		.reduce_rate = 30ull * 1000 * 1000 * 1000,
		.copy_rate = 40ull * 1000 * 1000 * 1000,
		.slot_bytes = 256 << 10,
		.n_slots = 4,
	};
}

const char *sched_topology_name(enum sched_topology topology)
{
	static const char *const names[SCHED_N_TOPOLOGIES] = {
		"flat", "spine-leaf", "fat-tree"};

	return (unsigned int)topology < SCHED_N_TOPOLOGIES ? names[topology]
							   : NULL;
}

static int check_ranks(struct sched_fabric *fabric)
{
	if (!fabric->n_nodes)
		fabric->n_nodes = 1;
	if (!fabric->ranks_per_node && !fabric->n_ranks)
		fabric->ranks_per_node = 1;
	if (fabric->ranks_per_node) {
		int64_t all = (int64_t)fabric->n_nodes *
			      fabric->ranks_per_node;

		if (fabric->n_ranks && fabric->n_ranks != all)
			return base_error(WREATH_EINVAL,
					  "fabric: %d ranks are not %d nodes "
					  "of %d: leave out one of the three",
					  fabric->n_ranks, fabric->n_nodes,
					  fabric->ranks_per_node);
		if (all > SCHED_RANKS_MAX)
			return base_error(WREATH_EINVAL,
					  "fabric: %d nodes of %d ranks are "
					  "%lld ranks, more than %d",
					  fabric->n_nodes,
					  fabric->ranks_per_node,
					  (long long)all, SCHED_RANKS_MAX);
		fabric->n_ranks = (int)all;
	}
	if (fabric->n_nodes > fabric->n_ranks)
		return base_error(WREATH_EINVAL,
				  "fabric: %d nodes for %d ranks: a node has "
				  "at least one", fabric->n_nodes,
				  fabric->n_ranks);
	return 0;
}

static int check_topology(const struct sched_fabric *fabric)
{
	if (fabric->topology == SCHED_SPINE_LEAF &&
	    fabric->leaf > fabric->n_nodes)
		return base_error(WREATH_EINVAL,
				  "fabric: a leaf of %d nodes is larger than "
				  "all %d nodes: say topology flat",
				  fabric->leaf, fabric->n_nodes);
	if (fabric->topology != SCHED_FLAT && fabric->n_rails < 1)
		return base_error(WREATH_EINVAL,
				  "fabric: a topology of switches, but no rail "
				  "that goes to them: say rail 400G 2us");
	if (fabric->topology == SCHED_FAT_TREE &&
	    fabric->oversubscription >= fabric->radix)
		return base_error(WREATH_EINVAL,
				  "fabric: a switch of %d ports cannot have %d "
				  "times as many ways down as up",
				  fabric->radix, fabric->oversubscription);
	return 0;
}

static int check_fault(const struct sched_fabric *fabric,
		       const struct sched_fault *fault)
{
	if (fault->rail >= fabric->n_rails)
		return base_error(WREATH_EINVAL,
				  "fabric: line %d, column %d: there is no "
				  "rail %d, only %d of them, from 0",
				  fault->line, fault->column, fault->rail,
				  fabric->n_rails);
	if (fault->is_up && fabric->topology == SCHED_FLAT)
		return base_error(WREATH_EINVAL,
				  "fabric: line %d, column %d: a flat fabric "
				  "has no leaves", fault->line, fault->column);
	if (!fault->is_up && fault->node >= fabric->n_nodes)
		return base_error(WREATH_EINVAL,
				  "fabric: line %d, column %d: there is no "
				  "node %d, only %d of them, from 0",
				  fault->line, fault->column, fault->node,
				  fabric->n_nodes);
	return 0;
}

/* The ports that nodes have lost take their rails with them. */
static int take_lost_rails(struct sched_fabric *fabric, unsigned int *lost)
{
	unsigned int gone = 0;
	int i, n = 0, to[SCHED_FABRIC_RAILS_MAX];
	const struct sched_fault *last = NULL;

	for (i = 0; i < fabric->n_faults; i++) {
		const struct sched_fault *fault = &fabric->faults[i];

		if (!fault->is_lost || fault->is_up)
			continue;
		gone |= 1u << fault->rail;
		last = fault;
	}
	*lost = gone;
	for (i = 0; i < fabric->n_rails; i++) {
		to[i] = n;
		if (!(gone >> i & 1))
			fabric->rails[n++] = fabric->rails[i];
	}
	if (last && !n && fabric->n_nodes > 1)
		return base_error(WREATH_EINVAL,
				  "fabric: line %d, column %d: the lost link "
				  "cuts node %d off: no rail is left that all "
				  "nodes have", last->line, last->column,
				  last->node);
	fabric->n_rails = n;
	for (n = 0, i = 0; i < fabric->n_faults; i++) {
		struct sched_fault *fault = &fabric->faults[i];

		if (gone >> fault->rail & 1)
			continue;
		fabric->faults[n] = *fault;
		fabric->faults[n++].rail = to[fault->rail];
	}
	fabric->n_faults = n;
	return 0;
}

int sched_fabric_check(struct sched_fabric *fabric, unsigned int *lost)
{
	unsigned int ignored;
	int err = check_ranks(fabric);
	int i;

	if (!err)
		err = check_topology(fabric);
	for (i = 0; !err && i < fabric->n_faults; i++)
		err = check_fault(fabric, &fabric->faults[i]);
	if (!err)
		err = take_lost_rails(fabric, lost ? lost : &ignored);
	if (err)
		return err;
	if (fabric->n_nodes > 1 && fabric->n_rails < 1)
		return base_error(WREATH_EINVAL,
				  "fabric: %d nodes, and no rail between them: "
				  "say rail 400G 2us", fabric->n_nodes);
	if (fabric->n_ranks > 1 && fabric->n_rails < 1 &&
	    !fabric->in_node.rate)
		return base_error(WREATH_EINVAL,
				  "fabric: %d ranks in a node, and nothing "
				  "between them: say nvlink 450GB/s 0.7us, or "
				  "rail 400G 2us", fabric->n_ranks);
	return 0;
}
