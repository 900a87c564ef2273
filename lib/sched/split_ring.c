/* SPDX-License-Identifier: MIT */
/*
 * Split ring: nodes in rings, and each block's reduction split in two arcs that
 * meet at its owner.
 *
 * The ring is that of ring.c, turned by two thoughts.  First, hierarchy: the
 * ranks of a node share the vector out among them (shards), and the ring of a
 * shard is over the nodes, through the one rank of each node that has the
 * shard, its member.  Second, a block needs no way around the whole ring: those
 * on either side of its owner send towards it by the shorter way, and the
 * result goes back both ways.  So a block takes n_nodes / 2 hops to be reduced
 * and as many to be known, where a ring takes n_nodes - 1, and a member still
 * sends no more than 2(n_nodes - 1) blocks of its shard out of the node.
 *
 * The reduction inside the node is one with the hops: at each, a member takes
 * the arc's message, the chunk of each rank of its node, and its own, and sends
 * their fold on.  Results go on along the arc first, then to the node.
 *
 * With one node this is twoshot's exchange, with one rank a node a ring that
 * runs both ways.
 *
 * A channel's lanes, with the ranks that they receive from: "before" and
 * "after" are the members of the neighbour nodes, "mates" the node's ranks.
 *
 *	give	own chunks, to the mates whose shards they are
 *	up	arcs to higher nodes, then the own blocks, where arcs meet:
 *		before, mates; after, for what meets		(box 0)
 *	down	arcs to lower nodes: after, mates		(box 1)
 *	rise	results to higher nodes: before			(box 2)
 *	sink	results to lower nodes: after			(box 2)
 *	share	results of the own shards to all mates
 *	learn	results of the mates' shards: mates		(box 2)
 *
 * Of two nodes, before and after are the same rank; then all arcs are one hop
 * long and go up, all results sink, and no lane meets another.
 *
 * All lanes are in the order in which their chunks are due, if every hop takes
 * as long as the others: an arc's first hop before the second of another.
 *
 * The vector of an all_reduce has as many shards as the smallest node has
 * ranks; which ranks of a larger one are members differs by channel.  Where
 * each rank has a block, there are as many shards as the largest node has
 * ranks, and those of a smaller node are members of several.  Then the shards
 * are worked off one after the other: a peer with few slots would else be sent
 * the chunks of several shards before it comes to the first.
 */
#include "split_ring.h"

static void number_lanes(struct split *split, uint32_t next, bool has_mates)
{
	split->give = draft_number(&next, split->reduces && has_mates);
	split->up = draft_number(&next, true);
	split->down = draft_number(&next, split->reduces && split->n_nodes > 2);
	split->rise = draft_number(&next, split->gathers && split->n_nodes > 2);
	split->sink = draft_number(&next, split->gathers && split->n_nodes > 1);
	split->share = draft_number(&next, split->gathers && has_mates);
	split->learn = draft_number(&next, split->gathers && has_mates);
}

static void generate(struct draft *draft, const struct sched_shape *shape,
		     uint32_t rank)
{
	uint32_t n_channels = (uint32_t)shape->n_channels;
	struct nodes nodes = {shape, draft->order};
	struct nodes_sizes sizes = nodes_sizes(&nodes);
	uint32_t node = nodes_of(&nodes, rank);
	struct split split = {
		.nodes = nodes,
		.n_nodes = nodes_count(&nodes),
		.node = node,
		.index = nodes_index(&nodes, rank),
		.size = nodes_size(&nodes, node),
		.reduces = shape->collective != SCHED_ALL_GATHER,
		.gathers = shape->collective != SCHED_REDUCE_SCATTER,
	};

	/* A block of each rank is a shard of its own; else all have equal. */
	split.n_shards = split_has_blocks(&split) ? sizes.most : sizes.least;
	split.width = sizes.most == sizes.least || !split_has_blocks(&split)
			      ? split.n_shards
			      : 1;
	draft->n_pieces = split_has_blocks(&split)
				  ? n_channels
				  : n_channels * split.n_shards * split.n_nodes;
	for (; split.channel < n_channels; split.channel++) {
		uint32_t own;

		/* Where not all ranks are members, others are next time. */
		if (!split_has_blocks(&split))
			split.turn = split.channel * split.n_shards;
		number_lanes(&split, draft->n_lanes, sizes.most > 1);
		own = split_reduce(draft, &split);
		if (split.gathers)
			split_gather(draft, &split, own);
	}
}

/*
 * A member gives the other shards' blocks to its mates, sends all blocks of its
 * own but one towards their owners, and as many results on, and shares them all
 * with its mates; who is no member gives all.  Of a node's ranks some are
 * members in one channel more than the others.
 */
static uint64_t all_reduce_bound(const struct sched_shape *shape,
				 uint64_t n_pieces)
{
	struct nodes nodes = {shape, NULL};
	uint64_t n_nodes = nodes_count(&nodes);
	uint64_t n_channels = (uint64_t)shape->n_channels;
	uint64_t n_shards = n_pieces / n_channels / n_nodes;
	uint64_t largest = 0;
	uint32_t i;

	for (i = 0; i < n_nodes; i++) {
		uint64_t size = nodes_size(&nodes, i);
		uint64_t mine = (n_channels * n_shards + size - 1) / size;
		uint64_t sent =
			mine * (n_nodes * (n_shards - 1) + 2 * (n_nodes - 1) +
				n_nodes * (size - 1)) +
			(n_channels - mine) * n_nodes * n_shards;

		if (sent > largest)
			largest = sent;
	}
	return largest;
}

/*
 * Each block of the own shards once on, and to all mates.  The ranks of small
 * nodes have several shards; that not each of these has a block in every node
 * makes it less.
 */
static uint64_t all_gather_bound(const struct sched_shape *shape,
				 uint64_t n_pieces)
{
	struct nodes nodes = {shape, NULL};
	uint64_t most = nodes_sizes(&nodes).most;
	uint64_t n_nodes = nodes_count(&nodes);
	uint64_t largest = 0;
	uint32_t i;

	for (i = 0; i < n_nodes; i++) {
		uint64_t size = nodes_size(&nodes, i);
		uint64_t n_shards = (most + size - 1) / size;
		uint64_t sent = n_shards * (n_nodes * size - 1);

		if (sent > largest)
			largest = sent;
	}
	return largest * n_pieces;
}

const struct generator sched_split_ring_all_reduce = {generate,
						      all_reduce_bound};
/* Each block but the own one to a mate, or on towards its owner. */
const struct generator sched_split_ring_reduce_scatter = {generate,
							  sched_bound_blocks};
const struct generator sched_split_ring_all_gather = {generate,
						      all_gather_bound};
