/* SPDX-License-Identifier: MIT */
/* The split ring's way out: results, from their owners to all ranks. */
#include "split_ring.h"

static void pass_block(struct draft *draft, const struct split *split,
		       const struct split_way *way, uint32_t hops, uint32_t own)
{
	uint32_t owner = split_node_at(split, !way->up, hops);
	uint32_t behind = split_node_at(split, !way->up, 1);
	uint32_t ahead = split_node_at(split, way->up, 1);
	uint32_t shard;

	split_for_each(shard, split, owner, split->index) {
		struct sched_step *step =
			draft_step(draft, split_chunk_of(split, owner, shard));

		if (hops) {
			step->flags = SCHED_STORE | SCHED_RECV_FINAL;
			draft_recv(draft, step,
				   split_member(split, behind, shard));
		} else {
			draft_read_after(step, split->up, own);
		}
		if (hops == way->n_hops)
			continue;
		step->flags |= SCHED_SEND_FINAL;
		step->send_lane = way->lane;
		draft_send(draft, step, split_member(split, ahead, shard));
	}
}

/* The own result out, and others' on; @own: its step, in the lane up. */
static void generate_results(struct draft *draft, struct split *split,
			     const struct split_way *way, uint32_t own)
{
	uint32_t hops;

	split_for_each_round(split) {
		for (hops = 0; hops <= way->n_hops; hops++)
			pass_block(draft, split, way, hops, own);
	}
}

/*
 * Results of a block to the mates, read after steps @at and on of @lane;
 * returns the step after those.
 */
static uint32_t share_block(struct draft *draft, const struct split *split,
			    uint32_t owner, uint32_t lane, uint32_t at)
{
	uint32_t shard, by;

	split_for_each(shard, split, owner, split->index) {
		struct sched_step *step =
			draft_step(draft, split_chunk_of(split, owner, shard));

		draft_read_after(step, lane, at++);
		step->flags = SCHED_SEND_FINAL;
		step->send_lane = split->learn;
		for (by = 1; by < split->size; by++)
			draft_send(draft, step,
				   split_mate(split, (split->index + by) %
							     split->size));
	}
	return at;
}

static void generate_share(struct draft *draft, struct split *split,
			   uint32_t own)
{
	struct split_way rise = split_rise(split);
	struct split_way sink = split_sink(split);
	uint32_t risen = 0; /* steps of these lanes that are shared */
	uint32_t sunk = 0;
	uint32_t hops;

	split_for_each_round(split) {
		hops = share_block(draft, split, split->node, split->up, own);
		/* The own block has a step in both. */
		risen += hops - own;
		sunk += hops - own;
		for (hops = 1; hops <= sink.n_hops; hops++) {
			sunk = share_block(draft, split,
					   split_node_at(split, true, hops),
					   split->sink, sunk);
			if (hops > rise.n_hops)
				continue;
			risen = share_block(draft, split,
					    split_node_at(split, false, hops),
					    split->rise, risen);
		}
	}
}

static void learn_block(struct draft *draft, const struct split *split,
			uint32_t owner)
{
	uint32_t by, shard;

	for (by = 1; by < split->size; by++) {
		/* In the order in which mates come to this one. */
		uint32_t index =
			(split->index + split->size - by) % split->size;

		split_for_each(shard, split, owner, index) {
			struct sched_step *step = draft_step(
				draft, split_chunk_of(split, owner, shard));

			step->flags = SCHED_STORE | SCHED_RECV_FINAL;
			draft_recv(draft, step, split_mate(split, index));
		}
	}
}

static void generate_learn(struct draft *draft, struct split *split)
{
	struct split_way rise = split_rise(split);
	struct split_way sink = split_sink(split);
	uint32_t hops;

	split_for_each_round(split) {
		learn_block(draft, split, split->node);
		for (hops = 1; hops <= sink.n_hops; hops++) {
			learn_block(draft, split,
				    split_node_at(split, true, hops));
			if (hops <= rise.n_hops)
				learn_block(draft, split,
					    split_node_at(split, false, hops));
		}
	}
}

/* Those who receive do so from different peers, and can share a box. */
void split_gather(struct draft *draft, struct split *split, uint32_t own)
{
	struct split_way rise = split_rise(split);
	struct split_way sink = split_sink(split);

	if (split->rise != DRAFT_NO_LANE) {
		draft_lane(draft, split->channel, 2);
		generate_results(draft, split, &rise, own);
	}
	if (split->sink != DRAFT_NO_LANE) {
		draft_lane(draft, split->channel, 2);
		generate_results(draft, split, &sink, own);
	}
	if (split->share == DRAFT_NO_LANE)
		return;
	draft_lane(draft, split->channel, 0);
	if (split->size > 1)
		generate_share(draft, split, own);
	draft_lane(draft, split->channel, 2);
	generate_learn(draft, split);
}
