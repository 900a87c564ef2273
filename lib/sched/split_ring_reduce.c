/* SPDX-License-Identifier: MIT */
/* The split ring's way in: chunks of all ranks, folded on to their owners. */
#include "split_ring.h"

/*
 * The node's chunks of a block @hops away.  Raw input can be taken with nothing
 * but raw input, so it is taken where an arc begins.
 */
static void give_block(struct draft *draft, const struct split *split,
		       const struct split_way *way, uint32_t hops,
		       uint32_t index)
{
	uint32_t owner = split_node_at(split, way->up, hops);
	uint32_t shard;

	split_for_each(shard, split, owner, index) {
		struct sched_step *step =
			draft_step(draft, split_chunk_of(split, owner, shard));

		step->local = SCHED_INPUT;
		step->send_lane = way->lane;
		draft_send(draft, step, split_mate(split, index));
		if (hops < way->n_hops)
			continue;
		step->flags = SCHED_SEND_INPUT;
		/* A result that comes back tells that it has been read. */
		if (!split->gathers)
			step->flags |= SCHED_SEND_AWAIT;
	}
}

static void generate_give(struct draft *draft, struct split *split)
{
	struct split_way up = split_up(split);
	struct split_way down = split_down(split);
	uint32_t due, by;

	split_for_each_round(split) {
		for (due = 0; due <= up.n_hops; due++) {
			for (by = 1; by < split->size; by++) {
				uint32_t index =
					(split->index + by) % split->size;

				give_block(draft, split, &up, up.n_hops - due,
					   index);
				if (due < down.n_hops)
					give_block(draft, split, &down,
						   down.n_hops - due, index);
			}
		}
	}
}

/* What the node has to add, in order of its ranks. */
static void add_node(struct draft *draft, const struct split *split,
		     struct sched_step *step)
{
	uint32_t index;

	if (!step->n_recv && split->size > 1)
		step->flags |= SCHED_RECV_INPUT;
	step->local = SCHED_INPUT;
	step->local_at = step->n_recv + split->index;
	for (index = 0; index < split->size; index++) {
		if (index != split->index)
			draft_recv(draft, step, split_mate(split, index));
	}
}

static uint32_t arc_block(struct draft *draft, const struct split *split,
			  const struct split_way *way, uint32_t hops)
{
	uint32_t owner = split_node_at(split, way->up, hops);
	uint32_t behind = split_node_at(split, !way->up, 1);
	uint32_t ahead = split_node_at(split, way->up, 1);
	uint32_t n_steps = 0;
	uint32_t shard;

	split_for_each(shard, split, owner, split->index) {
		struct sched_step *step =
			draft_step(draft, split_chunk_of(split, owner, shard));

		if (hops < way->n_hops)
			draft_recv(draft, step,
				   split_member(split, behind, shard));
		/* The owner folds both arcs' ends in its lane up. */
		if (!hops && split->n_nodes > 2)
			draft_recv(draft, step,
				   split_member(split, ahead, shard));
		add_node(draft, split, step);
		n_steps++;
		if (!hops) {
			step->flags |= SCHED_STORE;
			continue;
		}
		step->send_lane = hops > 1 ? way->lane : split->up;
		draft_send(draft, step, split_member(split, ahead, shard));
	}
	return n_steps;
}

/* Returns the step of the own block. */
static uint32_t generate_up(struct draft *draft, struct split *split)
{
	struct split_way up = split_up(split);
	uint32_t n_steps = 0;
	uint32_t own = 0;
	uint32_t hops;

	split_for_each_round(split) {
		for (hops = up.n_hops; hops > 0; hops--)
			n_steps += arc_block(draft, split, &up, hops);
		if (arc_block(draft, split, &up, 0))
			own = n_steps++;
	}
	return own;
}

static void generate_down(struct draft *draft, struct split *split)
{
	struct split_way down = split_down(split);
	uint32_t hops;

	split_for_each_round(split) {
		for (hops = down.n_hops; hops > 0; hops--)
			arc_block(draft, split, &down, hops);
	}
}

/* Without a reduction the lane up does no more than this. */
static void store_own(struct draft *draft, struct split *split)
{
	uint32_t shard;

	split_for_each_round(split) {
		split_for_each(shard, split, split->node, split->index) {
			struct sched_step *step = draft_step(
				draft,
				split_chunk_of(split, split->node, shard));

			step->local = SCHED_INPUT;
			step->flags = SCHED_STORE;
		}
	}
}

uint32_t split_reduce(struct draft *draft, struct split *split)
{
	uint32_t own = 0;

	if (split->give != DRAFT_NO_LANE) {
		draft_lane(draft, split->channel, 0);
		generate_give(draft, split);
	}
	draft_lane(draft, split->channel, 0);
	if (split->reduces)
		own = generate_up(draft, split);
	else
		store_own(draft, split);
	if (split->down != DRAFT_NO_LANE) {
		draft_lane(draft, split->channel, 1);
		generate_down(draft, split);
	}
	return own;
}
