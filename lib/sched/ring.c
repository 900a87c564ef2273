/* SPDX-License-Identifier: MIT */
/*
 * Ring: every rank talks to the two beside it.
 *
 * The ranks stand in the ring by node and then by rank, so that no more links
 * cross nodes than there are nodes, however ranks are dealt out to them.  Odd
 * channels run the other way, to load both directions.  A fold's order is that
 * of the ring.
 */
#include "draft.h"

/*
 * Pieces of a pass that a chain moves one behind the other, so that the last
 * rank needs not wait for all of a vector to cross every link in turn: n - 2
 * pieces more than there are pass by, of S bytes best sqrt((n - 2) S / aB)
 * with latency a and rate B.  That is 9 for 64 KB at 1 us and 5 GB/s with 8
 * ranks; longer vectors have several passes, which follow each other likewise.
 */
#define CHAIN_PIECES 8

/* One channel of the ring, as one rank sees it. */
struct way {
	const uint32_t *order;
	uint32_t n; /* ranks */
	uint32_t place;
	uint32_t channel, n_channels;
	bool is_down; /* towards lower places */
	bool has_blocks;
};

static struct way way_of(const struct draft *draft,
			 const struct sched_shape *shape, uint32_t rank,
			 uint32_t channel)
{
	struct nodes nodes = {shape, draft->order};

	return (struct way){
		.order = draft->order,
		.n = (uint32_t)shape->n_ranks,
		.place = nodes_place(&nodes, rank),
		.channel = channel,
		.n_channels = (uint32_t)shape->n_channels,
		.is_down = channel % 2,
		.has_blocks = sched_n_blocks(shape->collective,
					     shape->n_ranks) > 1,
	};
}

/* The place that is @by links ahead; @by <= 2n. */
static uint32_t place_ahead(const struct way *way, uint32_t by)
{
	uint32_t up = way->is_down ? 2 * way->n - by : by;

	return (way->place + up) % way->n;
}

static uint32_t rank_ahead(const struct way *way, uint32_t by)
{
	uint32_t place = place_ahead(way, by);

	return way->order ? way->order[place] : place;
}

static uint32_t ahead(const struct way *way)
{
	return rank_ahead(way, 1);
}

static uint32_t behind(const struct way *way)
{
	return rank_ahead(way, way->n - 1);
}

/*
 * The chunk that started @hops links behind.  It is complete where the next
 * link would lead to its start again: at the rank whose block it is, or, of
 * one block, it has the number of the place where it started.
 */
static uint32_t chunk_from(const struct way *way, uint32_t hops)
{
	if (!way->has_blocks)
		return way->channel * way->n +
		       place_ahead(way, 2 * way->n - hops);
	return rank_ahead(way, 2 * way->n - 1 - hops) * way->n_channels +
	       way->channel;
}

/*
 * A chunk is folded once at each rank on its way, and complete after n - 1
 * hops; n - 1 more carry it to the ranks that it left behind.  Reduce-scatter
 * is the hops up to @last = n - 1, all-gather those from @first = n - 1 on.
 * All are in one lane, since a rank's place in the second half is decided by
 * what it did in the first.
 */
static void generate_hops(struct draft *draft, const struct way *way,
			  uint32_t first, uint32_t last)
{
	uint32_t lane = draft_lane(draft, way->channel, 0);
	uint32_t hops;

	for (hops = first; hops <= last; hops++) {
		struct sched_step *step =
			draft_step(draft, chunk_from(way, hops));

		if (hops > first)
			draft_recv(draft, step, behind(way));
		if (hops < way->n) {
			step->local = SCHED_INPUT;
			step->local_at = step->n_recv;
		}
		if (hops >= way->n - 1)
			step->flags |= SCHED_STORE;
		if (step->n_recv && !step->local)
			step->flags |= SCHED_RECV_FINAL;
		if (hops == last)
			continue;
		if (hops >= way->n - 1)
			step->flags |= SCHED_SEND_FINAL;
		step->send_lane = lane;
		draft_send(draft, step, ahead(way));
	}
}

static void generate_around(struct draft *draft,
			    const struct sched_shape *shape, uint32_t rank,
			    uint32_t first, uint32_t last)
{
	uint32_t k;

	for (k = 0; k < (uint32_t)shape->n_channels; k++) {
		struct way way = way_of(draft, shape, rank, k);

		generate_hops(draft, &way, first, last);
	}
}

static void generate_all_reduce(struct draft *draft,
				const struct sched_shape *shape, uint32_t rank)
{
	uint32_t n = (uint32_t)shape->n_ranks;

	draft->n_pieces = (uint32_t)shape->n_channels * n;
	generate_around(draft, shape, rank, 0, 2 * n - 2);
}

static void generate_reduce_scatter(struct draft *draft,
				    const struct sched_shape *shape,
				    uint32_t rank)
{
	draft->n_pieces = (uint32_t)shape->n_channels;
	generate_around(draft, shape, rank, 0, (uint32_t)shape->n_ranks - 1);
}

static void generate_all_gather(struct draft *draft,
				const struct sched_shape *shape, uint32_t rank)
{
	uint32_t n = (uint32_t)shape->n_ranks;

	draft->n_pieces = (uint32_t)shape->n_channels;
	generate_around(draft, shape, rank, n - 1, 2 * n - 2);
}

/* How many links @way's rank is behind the place @start of a chain. */
static uint32_t links_from(const struct way *way, uint32_t start)
{
	uint32_t up = way->place + way->n - start;

	return (way->is_down ? 2 * way->n - up : up) % way->n;
}

/* The chain from the root around to the rank behind it. */
static void broadcast_way(struct draft *draft, const struct way *way,
			  uint32_t root)
{
	uint32_t links = links_from(way, root);
	uint32_t lane = draft_lane(draft, way->channel, 0);
	uint32_t i;

	for (i = 0; i < CHAIN_PIECES; i++) {
		struct sched_step *step =
			draft_step(draft, way->channel * CHAIN_PIECES + i);

		step->flags = SCHED_STORE;
		if (links) {
			draft_recv(draft, step, behind(way));
			step->flags |= SCHED_RECV_FINAL;
		} else {
			step->local = SCHED_INPUT;
		}
		if (links == way->n - 1)
			continue;
		step->flags |= SCHED_SEND_FINAL;
		step->send_lane = lane;
		draft_send(draft, step, ahead(way));
	}
}

/* The chain from the rank ahead of the root around to it. */
static void reduce_way(struct draft *draft, const struct way *way,
		       uint32_t root)
{
	uint32_t links = (links_from(way, root) + way->n - 1) % way->n;
	uint32_t lane = draft_lane(draft, way->channel, 0);
	uint32_t i;

	for (i = 0; i < CHAIN_PIECES; i++) {
		struct sched_step *step =
			draft_step(draft, way->channel * CHAIN_PIECES + i);

		if (links)
			draft_recv(draft, step, behind(way));
		step->local = SCHED_INPUT;
		step->local_at = step->n_recv;
		if (links == way->n - 1) {
			step->flags = SCHED_STORE;
			continue;
		}
		step->send_lane = lane;
		draft_send(draft, step, ahead(way));
	}
}

static void generate_chain(struct draft *draft,
			   const struct sched_shape *shape, uint32_t rank,
			   void (*generate)(struct draft *, const struct way *,
					    uint32_t))
{
	struct nodes nodes = {shape, draft->order};
	uint32_t root = nodes_place(&nodes, (uint32_t)shape->root);
	uint32_t k;

	draft->n_pieces = (uint32_t)shape->n_channels * CHAIN_PIECES;
	for (k = 0; k < (uint32_t)shape->n_channels; k++) {
		struct way way = way_of(draft, shape, rank, k);

		generate(draft, &way, root);
	}
}

static void generate_broadcast(struct draft *draft,
			       const struct sched_shape *shape, uint32_t rank)
{
	generate_chain(draft, shape, rank, broadcast_way);
}

static void generate_reduce(struct draft *draft,
			    const struct sched_shape *shape, uint32_t rank)
{
	generate_chain(draft, shape, rank, reduce_way);
}

/*
 * Every chunk crosses all links but one, twice, and a rank sends over 1/n of
 * the links: 2 (n - 1)/n of the vector, which is the least that any all_reduce
 * can do with.
 */
const struct generator sched_ring_all_reduce = {generate_all_reduce,
						sched_bound_around};
/*
 * One of the two halves: each of the n blocks crosses n - 1 of the n links.
 * No form can do with less: a rank must hear of n - 1 blocks that others have,
 * or tell of n - 1 that others want, and there are as many links as ranks.
 */
const struct generator sched_ring_reduce_scatter = {generate_reduce_scatter,
						    sched_bound_blocks};
const struct generator sched_ring_all_gather = {generate_all_gather,
						sched_bound_blocks};
/* The block crosses every link of the chain once: each rank sends it once. */
const struct generator sched_ring_broadcast = {generate_broadcast,
					       sched_bound_once};
const struct generator sched_ring_reduce = {generate_reduce, sched_bound_once};
