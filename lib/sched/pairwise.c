/* SPDX-License-Identifier: MIT */
/*
 * Pairwise: one message from each rank that has a block to each rank that
 * wants it, for the collectives that move bytes and fold none.
 *
 * Each channel has three lanes: what goes out, what comes in, and the own
 * block.  The message of rank r to rank r + by is the by-th of both the lane
 * that sends and the lane that takes, so that in each round a rank sends to
 * one peer and takes from one, and so does a node, for each of its ranks.
 *
 * No deadlock is possible, also where messages are left out because their
 * blocks are empty: of all steps not yet done take one of the lowest pass and
 * round.  If it takes, its message is of that round too, and if it sends, its
 * slot was filled in an earlier pass, and so is free.
 *
 * All that goes out is raw input for its final place: the receivers may read
 * it there, all at a time, and no message of theirs tells when they have.
 */
#include "draft.h"

/* Peers of one step at most: as many targets as a fold can have. */
#define PEERS_MAX (SCHED_DIRECT_RANKS_MAX - 1)

/* Does @from send anything to @to, which may be the same rank? */
static bool sends_to(const struct sched_shape *shape, uint32_t from,
		     uint32_t to)
{
	switch (shape->collective) {
	case SCHED_BROADCAST:
	case SCHED_SCATTER:
		return from == (uint32_t)shape->root;
	case SCHED_GATHER:
		return to == (uint32_t)shape->root;
	default:
		return true;
	}
}

/* The message's block as its sender counts them. */
static uint32_t block_at_sender(const struct sched_shape *shape, uint32_t from,
				uint32_t to)
{
	switch (shape->collective) {
	case SCHED_BROADCAST:
		return 0;
	case SCHED_ALL_GATHER:
	case SCHED_GATHER:
		return from;
	default:
		return to;
	}
}

/* And as its receiver does. */
static uint32_t block_at_receiver(const struct sched_shape *shape,
				  uint32_t from, uint32_t to)
{
	switch (shape->collective) {
	case SCHED_BROADCAST:
		return 0;
	case SCHED_SCATTER:
		return to;
	default:
		return from;
	}
}

/* Peers that get the same chunk share a step: it is read once for them all. */
static void generate_out(struct draft *draft, const struct sched_shape *shape,
			 uint32_t rank, uint32_t channel)
{
	uint32_t n = (uint32_t)shape->n_ranks;
	uint32_t in_lane = draft_lane(draft, channel, 0) + 1;
	struct sched_step *step = NULL;
	uint32_t last = 0;
	uint32_t by;

	for (by = 1; by < n; by++) {
		uint32_t peer = (rank + by) % n;
		uint32_t block;

		if (!sends_to(shape, rank, peer))
			continue;
		block = block_at_sender(shape, rank, peer);
		if (!step || block != last || step->n_send == PEERS_MAX) {
			step = draft_step(draft, block * draft->n_pieces +
							 channel);
			step->local = SCHED_INPUT;
			step->flags = SCHED_SEND_INPUT | SCHED_SEND_FINAL |
				      SCHED_SEND_AWAIT;
			step->send_lane = in_lane;
			last = block;
		}
		draft_send(draft, step, peer);
	}
}

static void generate_in(struct draft *draft, const struct sched_shape *shape,
			uint32_t rank, uint32_t channel)
{
	uint32_t n = (uint32_t)shape->n_ranks;
	uint32_t by;

	draft_lane(draft, channel, 0);
	for (by = 1; by < n; by++) {
		uint32_t peer = (rank + n - by) % n;
		struct sched_step *step;

		if (!sends_to(shape, peer, rank))
			continue;
		step = draft_step(draft, block_at_receiver(shape, peer, rank) *
							 draft->n_pieces +
						 channel);
		step->flags = SCHED_RECV_INPUT | SCHED_RECV_FINAL |
			      SCHED_STORE;
		draft_recv(draft, step, peer);
	}
}

static void generate_own(struct draft *draft, const struct sched_shape *shape,
			 uint32_t rank, uint32_t channel)
{
	struct sched_step *step;

	draft_lane(draft, channel, 0);
	if (!sends_to(shape, rank, rank))
		return;
	step = draft_step(draft, block_at_sender(shape, rank, rank) *
						 draft->n_pieces +
					 channel);
	step->local = SCHED_INPUT;
	step->flags = SCHED_STORE;
}

static void generate(struct draft *draft, const struct sched_shape *shape,
		     uint32_t rank)
{
	uint32_t k;

	draft->n_pieces = (uint32_t)shape->n_channels;
	for (k = 0; k < draft->n_pieces; k++) {
		generate_out(draft, shape, rank, k);
		generate_in(draft, shape, rank, k);
		generate_own(draft, shape, rank, k);
	}
}

/*
 * A rank's own block, its block for each other, or the root's: n - 1 messages
 * of a block.  Where each rank wants something else, or one rank is all that
 * has it and may ask no other for help, that is the least that it can send.
 */
const struct generator sched_direct_all_gather = {generate, sched_bound_blocks};
const struct generator sched_direct_broadcast = {generate, sched_bound_blocks};
/* A rank's own block to the root, which sends nothing. */
const struct generator sched_direct_gather = {generate, sched_bound_once};
const struct generator sched_direct_scatter = {generate, sched_bound_blocks};
const struct generator sched_direct_all_to_all = {generate, sched_bound_blocks};
