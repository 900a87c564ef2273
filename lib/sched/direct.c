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

/*
 * To each peer the chunk that it folds: rank r's is @base + r * @stride.  They
 * take it in the lane after this one.
 */
static void send_shares(struct draft *draft, uint32_t n, uint32_t rank,
			uint32_t base, uint32_t stride, uint8_t flags)
{
	uint32_t in_lane = draft->n_lanes;
	uint32_t by;

	for (by = 1; by < n; by++) {
		uint32_t peer = (rank + by) % n;
		struct sched_step *step;

		step = draft_step(draft, base + peer * stride);
		step->local = SCHED_INPUT;
		step->flags = SCHED_SEND_INPUT | flags;
		step->send_lane = in_lane;
		draft_send(draft, step, peer);
	}
}

static void twoshot_channel(struct draft *draft, uint32_t n, uint32_t rank,
			    uint32_t k)
{
	struct sched_step *step;
	uint32_t base = k * n;
	uint32_t by;
	uint32_t out = draft_lane(draft, k, 0);

	/* The results that come back prove that the shares were read. */
	send_shares(draft, n, rank, base, 1, 0);

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

/* The first of twoshot's two halves, with a block for a share. */
static void generate_reduce_scatter(struct draft *draft,
				    const struct sched_shape *shape,
				    uint32_t rank)
{
	uint32_t n = (uint32_t)shape->n_ranks;
	uint32_t n_channels = (uint32_t)shape->n_channels;
	uint32_t k;

	draft->n_pieces = n_channels;
	for (k = 0; k < n_channels; k++) {
		struct sched_step *step;

		draft_lane(draft, k, 0);
		send_shares(draft, n, rank, k, n_channels, SCHED_SEND_AWAIT);

		draft_lane(draft, k, 0);
		step = draft_step(draft, rank * n_channels + k);
		recv_all(draft, step, n, rank);
		step->flags = SCHED_RECV_INPUT | SCHED_STORE;
	}
}

static void generate_reduce(struct draft *draft,
			    const struct sched_shape *shape, uint32_t rank)
{
	uint32_t n = (uint32_t)shape->n_ranks;
	uint32_t root = (uint32_t)shape->root;
	uint32_t k;

	draft->n_pieces = (uint32_t)shape->n_channels;
	for (k = 0; k < draft->n_pieces; k++) {
		uint32_t out = draft_lane(draft, k, 0);
		struct sched_step *step;

		if (rank != root) {
			step = draft_step(draft, k);
			step->local = SCHED_INPUT;
			step->flags = SCHED_SEND_INPUT | SCHED_SEND_AWAIT;
			step->send_lane = out + 1;
			draft_send(draft, step, root);
		}

		draft_lane(draft, k, 0);
		if (rank == root) {
			step = draft_step(draft, k);
			recv_all(draft, step, n, rank);
			step->flags = SCHED_RECV_INPUT | SCHED_STORE;
		}
	}
}

/* Everything to everyone. */
const struct generator sched_oneshot_all_reduce = {generate_oneshot,
						   sched_bound_blocks};
/* Each chunk but the own share to its owner, the own share to everyone. */
const struct generator sched_twoshot_all_reduce = {generate_twoshot,
						   sched_bound_around};
/* Each block but the own to its owner: (n - 1)/n of the vector, the least. */
const struct generator sched_direct_reduce_scatter = {generate_reduce_scatter,
						      sched_bound_blocks};
/* Each rank its input to the root; none can send less of its own. */
const struct generator sched_direct_reduce = {generate_reduce,
					      sched_bound_once};
