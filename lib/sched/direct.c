/* SPDX-License-Identifier: MIT */
/*
 * Direct exchange: every rank is one message away from every other.
 *
 * Ranks send to rank + 1 first and so on around, so that they do not all write
 * to one peer at a time.  They fold in order of rank, wherever they stand, so
 * that the bits are the same everywhere.
 */
#include "draft.h"

/* All peers, the own rank left out: the fold's order is 0, 1, ... n - 1. */
static void recv_all(struct draft *draft, struct sched_step *step, uint32_t n,
		     uint32_t rank)
{
	uint32_t peer;

	for (peer = 0; peer < n; peer++) {
		if (peer != rank)
			draft_recv(draft, step, peer);
	}
	step->local = SCHED_INPUT;
	step->local_at = rank;
}

static void send_all(struct draft *draft, struct sched_step *step, uint32_t n,
		     uint32_t rank)
{
	uint32_t by;

	for (by = 1; by < n; by++)
		draft_send(draft, step, (rank + by) % n);
}

static void generate_oneshot(struct draft *draft,
			     const struct sched_shape *shape, uint32_t rank)
{
	uint32_t n = (uint32_t)shape->n_ranks;
	uint32_t k;

	draft->n_pieces = (uint32_t)shape->n_channels;
	for (k = 0; k < draft->n_pieces; k++) {
		struct sched_step *step;
		uint32_t out = draft_lane(draft, k, 0);

		step = draft_step(draft, k);
		step->local = SCHED_INPUT;
		step->send_lane = out + 1;
		send_all(draft, step, n, rank);

		draft_lane(draft, k, 1);
		step = draft_step(draft, k);
		recv_all(draft, step, n, rank);
		step->flags = SCHED_STORE;
		/*
		 * In place the store overwrites what the other lane sends, and
		 * no message of a peer tells that it was sent.
		 */
		step->after_lane = (int32_t)out;
		step->after_step = 0;
	}
}

static void twoshot_channel(struct draft *draft, uint32_t n, uint32_t rank,
			    uint32_t k)
{
	struct sched_step *step;
	uint32_t base = k * n;
	uint32_t by;
	uint32_t out = draft_lane(draft, k, 0);

	for (by = 1; by < n; by++) {
		uint32_t peer = (rank + by) % n;

		step = draft_step(draft, base + peer);
		step->local = SCHED_INPUT;
		step->flags = SCHED_SEND_INPUT;
		step->send_lane = out + 1;
		draft_send(draft, step, peer);
	}

	draft_lane(draft, k, 1);
	step = draft_step(draft, base + rank);
	recv_all(draft, step, n, rank);
	step->flags = SCHED_RECV_INPUT | SCHED_STORE | SCHED_SEND_FINAL;
	step->send_lane = out + 2;
	send_all(draft, step, n, rank);

	/* Backwards from here is the order in which the peers come to us. */
	draft_lane(draft, k, 2);
	for (by = 1; by < n; by++) {
		uint32_t peer = (rank + n - by) % n;

		step = draft_step(draft, base + peer);
		step->flags = SCHED_STORE | SCHED_RECV_FINAL;
		draft_recv(draft, step, peer);
	}
}

static void generate_twoshot(struct draft *draft,
			     const struct sched_shape *shape, uint32_t rank)
{
	uint32_t n = (uint32_t)shape->n_ranks;
	uint32_t n_channels = (uint32_t)shape->n_channels;
	uint32_t k;

	draft->n_pieces = n_channels * n;
	for (k = 0; k < n_channels; k++)
		twoshot_channel(draft, n, rank, k);
}

/* Everything to everyone. */
static uint64_t oneshot_bound(const struct sched_shape *shape,
			      uint64_t n_pieces)
{
	return ((uint64_t)shape->n_ranks - 1) * n_pieces;
}

/* Each chunk but the own share to its owner, the own share to everyone. */
static uint64_t twoshot_bound(const struct sched_shape *shape,
			      uint64_t n_pieces)
{
	uint64_t n_ranks = (uint64_t)shape->n_ranks;

	return 2 * (n_ranks - 1) * n_pieces / n_ranks;
}

const struct generator sched_oneshot_all_reduce = {generate_oneshot,
						   oneshot_bound};
const struct generator sched_twoshot_all_reduce = {generate_twoshot,
						   twoshot_bound};
