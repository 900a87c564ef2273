/* SPDX-License-Identifier: MIT */
/* What the files of the split ring share: split_ring.c tells what it is. */
#ifndef SCHED_SPLIT_RING_H
#define SCHED_SPLIT_RING_H

#include "draft.h"

#define SPLIT_NO_SHARD UINT32_MAX

struct split {
	struct nodes nodes;
	uint32_t channel;
	uint32_t n_nodes, n_shards;
	/* Shards at a time, and the first of those at hand: a round. */
	uint32_t width, from;
	uint32_t node, index, size; /* the rank's node, and its place there */
	uint32_t turn;              /* the index of shard 0's member */
	bool reduces, gathers;
	/* Lanes, DRAFT_NO_LANE where there is none. */
	uint32_t give, up, down, rise, sink, share, learn;
};

/* One of the two directions of arcs, or of results. */
struct split_way {
	bool up;
	uint32_t n_hops; /* of the longest */
	uint32_t lane;
};

static inline bool split_has_blocks(const struct split *split)
{
	return sched_n_blocks(split->nodes.shape->collective, 2) > 1;
}

/* The node @by hops from this one. */
static inline uint32_t split_node_at(const struct split *split, bool up,
				     uint32_t by)
{
	return (split->node + (up ? by : split->n_nodes - by)) % split->n_nodes;
}

static inline uint32_t split_mate(const struct split *split, uint32_t index)
{
	return nodes_member(&split->nodes, split->node, index);
}

static inline uint32_t split_member(const struct split *split, uint32_t node,
				    uint32_t shard)
{
	uint32_t size = nodes_size(&split->nodes, node);

	return nodes_member(&split->nodes, node, (shard + split->turn) % size);
}

static inline uint32_t split_chunk_of(const struct split *split, uint32_t node,
				      uint32_t shard)
{
	if (split_has_blocks(split))
		return split_member(split, node, shard) *
			       (uint32_t)split->nodes.shape->n_channels +
		       split->channel;
	return (split->channel * split->n_shards + shard) * split->n_nodes +
	       node;
}

/*
 * The first shard of the round from @shard on that is the node's rank
 * @index's, and has a block of a rank in node @owner, or SPLIT_NO_SHARD.
 */
static inline uint32_t split_next_shard(const struct split *split,
					uint32_t owner, uint32_t index,
					uint32_t shard)
{
	uint32_t end = split->from + split->width;

	/* Where each rank has a block, a small node has no more. */
	if (split_has_blocks(split) && nodes_size(&split->nodes, owner) < end)
		end = nodes_size(&split->nodes, owner);
	shard += (index + split->size - (shard + split->turn) % split->size) %
		 split->size;
	return shard < end ? shard : SPLIT_NO_SHARD;
}

#define split_for_each(shard, split, owner, index)                         \
	for (shard = split_next_shard(split, owner, index, (split)->from); \
	     shard != SPLIT_NO_SHARD;                                      \
	     shard = split_next_shard(split, owner, index, shard + 1))

#define split_for_each_round(split)                                \
	for ((split)->from = 0; (split)->from < (split)->n_shards; \
	     (split)->from += (split)->width)

/*
 * The longest arcs are half a ring.  Of an even number of nodes one has no
 * opposite: its chunks go up, and results come down to it.
 */
static inline struct split_way split_up(const struct split *split)
{
	return (struct split_way){true, split->n_nodes / 2, split->up};
}

static inline struct split_way split_down(const struct split *split)
{
	return (struct split_way){false, (split->n_nodes - 1) / 2, split->down};
}

static inline struct split_way split_rise(const struct split *split)
{
	return (struct split_way){true, (split->n_nodes - 1) / 2, split->rise};
}

static inline struct split_way split_sink(const struct split *split)
{
	return (struct split_way){false, split->n_nodes / 2, split->sink};
}

/*
 * split_ring_reduce.c: a channel's lanes give, up, down.  Returns the step of
 * the lane up that stores the own block, if there is one.
 */
uint32_t split_reduce(struct draft *draft, struct split *split);

/* split_ring_gather.c: rise, sink, share, learn. */
void split_gather(struct draft *draft, struct split *split, uint32_t own);

#endif
