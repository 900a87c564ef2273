/* SPDX-License-Identifier: MIT */
/*
 * Ring: chunk c starts at rank c, is folded once at each rank on its way, and
 * is complete after n - 1 hops; n - 1 more carry the result to the ranks that
 * it left behind.  All 2(n - 1) hops are in one lane, since a rank's place in
 * the second half is decided by what it did in the first.
 */
#include "draft.h"

struct way {
	uint32_t n; /* ranks */
	uint32_t rank;
	uint32_t base; /* the channel's first chunk */
	bool down;     /* towards lower ranks */
};

/* The chunk that started @hops ranks before this one. */
static uint32_t chunk_from(const struct way *way, uint32_t hops)
{
	uint32_t by = hops % way->n;
	uint32_t origin = way->rank + (way->down ? by : way->n - by);

	return way->base + origin % way->n;
}

static uint32_t ahead(const struct way *way)
{
	return (way->rank + (way->down ? way->n - 1 : 1)) % way->n;
}

static uint32_t behind(const struct way *way)
{
	return (way->rank + (way->down ? 1 : way->n - 1)) % way->n;
}

static void generate_way(struct draft *draft, const struct way *way,
			 uint32_t lane)
{
	uint32_t last = 2 * way->n - 2;
	uint32_t hops;

	/* Hop 0 starts the own chunk, hop n - 1 completes the one ahead. */
	for (hops = 0; hops <= last; hops++) {
		struct sched_step *step =
			draft_step(draft, chunk_from(way, hops));

		if (hops)
			draft_recv(draft, step, behind(way));
		if (hops < way->n) {
			step->local = SCHED_INPUT;
			step->local_at = step->n_recv;
		} else {
			step->flags |= SCHED_RECV_FINAL;
		}
		if (hops >= way->n - 1)
			step->flags |= SCHED_STORE;
		if (hops == last)
			continue;
		if (hops >= way->n - 1)
			step->flags |= SCHED_SEND_FINAL;
		step->send_lane = lane;
		draft_send(draft, step, ahead(way));
	}
}

static void generate(struct draft *draft, const struct sched_shape *shape,
		     uint32_t rank)
{
	uint32_t n = (uint32_t)shape->n_ranks;
	uint32_t n_channels = (uint32_t)shape->n_channels;
	uint32_t k;

	draft->n_pieces = n_channels * n;
	for (k = 0; k < n_channels; k++) {
		/* Odd channels run the other way, to load both directions. */
		struct way way = {n, rank, k * n, k % 2 == 1};

		generate_way(draft, &way, draft_lane(draft, k, 0));
	}
}

/* Every chunk crosses all links but one, twice; a rank has 1/n of the links. */
static uint64_t sent_bound(const struct sched_shape *shape, uint64_t n_pieces)
{
	uint64_t n_ranks = (uint64_t)shape->n_ranks;

	return 2 * (n_ranks - 1) * n_pieces / n_ranks;
}

const struct generator sched_ring_all_reduce = {generate, sent_bound};
