/* SPDX-License-Identifier: MIT */
#include "draft.h"

/* A new algorithm is a row here, its name in sched.h, and its file. */
static const struct {
	const char *name;
	const struct generator *forms[SCHED_N_COLLECTIVES];
} algos[SCHED_N_ALGOS] = {
	[SCHED_RING] = {"ring", {
		[SCHED_ALL_REDUCE] = &sched_ring_all_reduce,
		[SCHED_BARRIER] = &sched_ring_all_reduce,
		[SCHED_REDUCE_SCATTER] = &sched_ring_reduce_scatter,
		[SCHED_ALL_GATHER] = &sched_ring_all_gather,
		[SCHED_BROADCAST] = &sched_ring_broadcast,
		[SCHED_REDUCE] = &sched_ring_reduce,
	}},
	[SCHED_ONESHOT] = {"oneshot", {
		[SCHED_ALL_REDUCE] = &sched_oneshot_all_reduce,
		[SCHED_BARRIER] = &sched_oneshot_all_reduce,
	}},
	[SCHED_TWOSHOT] = {"twoshot", {
		[SCHED_ALL_REDUCE] = &sched_twoshot_all_reduce,
		[SCHED_BARRIER] = &sched_twoshot_all_reduce,
	}},
	[SCHED_TREE] = {"tree", {
		[SCHED_ALL_REDUCE] = &sched_tree_all_reduce,
		[SCHED_BARRIER] = &sched_tree_all_reduce,
		[SCHED_BROADCAST] = &sched_tree_broadcast,
		[SCHED_REDUCE] = &sched_tree_reduce,
	}},
	[SCHED_SPLIT_RING] = {"split-ring", {
		[SCHED_ALL_REDUCE] = &sched_split_ring_all_reduce,
		[SCHED_BARRIER] = &sched_split_ring_all_reduce,
		[SCHED_REDUCE_SCATTER] = &sched_split_ring_reduce_scatter,
		[SCHED_ALL_GATHER] = &sched_split_ring_all_gather,
	}},
	[SCHED_HALVING] = {"halving", {
		[SCHED_ALL_REDUCE] = &sched_halving_all_reduce,
		[SCHED_BARRIER] = &sched_halving_all_reduce,
		[SCHED_REDUCE_SCATTER] = &sched_halving_reduce_scatter,
		[SCHED_ALL_GATHER] = &sched_halving_all_gather,
	}},
	[SCHED_DIRECT] = {"direct", {
		[SCHED_REDUCE_SCATTER] = &sched_direct_reduce_scatter,
		[SCHED_REDUCE] = &sched_direct_reduce,
		[SCHED_ALL_GATHER] = &sched_direct_all_gather,
		[SCHED_BROADCAST] = &sched_direct_broadcast,
		[SCHED_GATHER] = &sched_direct_gather,
		[SCHED_SCATTER] = &sched_direct_scatter,
		[SCHED_ALL_TO_ALL] = &sched_direct_all_to_all,
		[SCHED_EXCHANGE] = &sched_direct_all_to_all,
	}},
};

const char *sched_algo_name(enum sched_algo algo)
{
	return (unsigned int)algo < SCHED_N_ALGOS ? algos[algo].name : NULL;
}

const struct generator *sched_generator(enum sched_collective collective,
					enum sched_algo algo)
{
	if ((unsigned int)collective >= SCHED_N_COLLECTIVES ||
	    (unsigned int)algo >= SCHED_N_ALGOS)
		return NULL;
	return algos[algo].forms[collective];
}

bool sched_has_form(enum sched_collective collective, enum sched_algo algo)
{
	return sched_generator(collective, algo) != NULL;
}

uint64_t sched_bound_blocks(const struct sched_shape *shape, uint64_t n_pieces)
{
	return ((uint64_t)shape->n_ranks - 1) * n_pieces;
}

uint64_t sched_bound_around(const struct sched_shape *shape, uint64_t n_pieces)
{
	uint64_t n_ranks = (uint64_t)shape->n_ranks;

	return 2 * (n_ranks - 1) * n_pieces / n_ranks;
}

uint64_t sched_bound_once(const struct sched_shape *shape, uint64_t n_pieces)
{
	return shape->n_ranks > 1 ? n_pieces : 0;
}

uint32_t draft_lane(struct draft *draft, uint32_t channel, uint32_t box)
{
	uint32_t at = draft->n_lanes++;

	if (draft->sched) {
		draft->sched->lanes[at].step = draft->n_steps;
		draft->sched->lanes[at].channel = channel;
		draft->sched->lanes[at].box = box;
	}
	return at;
}

struct sched_step *draft_step(struct draft *draft, uint32_t chunk)
{
	struct sched *sched = draft->sched;
	struct sched_step *step = &draft->counted;
	uint32_t at = draft->n_steps++;

	if (sched) {
		step = &sched->steps[at];
		sched->lanes[draft->n_lanes - 1].n_steps++;
	}
	*step = (struct sched_step){
		.recv = draft->n_peers,
		.send = draft->n_peers,
		.chunk = chunk,
		.after_lane = -1,
		.after_step = -1,
	};
	return step;
}

void draft_read_after(struct sched_step *step, uint32_t lane, uint32_t at)
{
	step->local = SCHED_OUTPUT;
	step->after_lane = (int32_t)lane;
	step->after_step = (int32_t)at;
}

uint32_t draft_number(uint32_t *next, bool is_there)
{
	return is_there ? (*next)++ : DRAFT_NO_LANE;
}

static void draft_peer(struct draft *draft, uint32_t peer)
{
	if (draft->sched)
		draft->sched->peers[draft->n_peers] = peer;
	draft->n_peers++;
}

void draft_recv(struct draft *draft, struct sched_step *step, uint32_t peer)
{
	wreath_assert(!step->n_send);
	draft_peer(draft, peer);
	step->n_recv++;
	step->send = draft->n_peers;
}

void draft_send(struct draft *draft, struct sched_step *step, uint32_t peer)
{
	draft_peer(draft, peer);
	step->n_send++;
}

/* Every algorithm with one rank: the input is the result. */
static void generate_alone(struct draft *draft,
			   const struct sched_shape *shape, uint32_t rank)
{
	uint32_t k;

	(void)rank;
	draft->n_pieces = (uint32_t)shape->n_channels;
	for (k = 0; k < draft->n_pieces; k++) {
		struct sched_step *step;

		draft_lane(draft, k, 0);
		step = draft_step(draft, k);
		step->local = SCHED_INPUT;
		step->flags = SCHED_STORE;
	}
}

/* @largest: the ranks of the largest node. */
static int check_nodes(const struct sched_shape *shape, int *largest)
{
	uint16_t sizes[SCHED_RANKS_MAX] = {0};
	int n_nodes = shape->n_nodes ? shape->n_nodes : 1;
	int i;

	if (n_nodes < 1 || n_nodes > shape->n_ranks)
		return base_error(WREATH_EINVAL,
				  "shape: n_nodes %d is not in [0, %d], the "
				  "ranks", shape->n_nodes, shape->n_ranks);
	*largest = (shape->n_ranks + n_nodes - 1) / n_nodes;
	if (!shape->nodes)
		return 0;
	for (i = 0; i < shape->n_ranks; i++) {
		uint32_t node = shape->nodes[i];

		if (node >= (uint32_t)n_nodes)
			return base_error(WREATH_EINVAL,
					  "shape: rank %d is in node %u, which "
					  "is not in [0, %d)", i, node,
					  n_nodes);
		sizes[node]++;
	}
	for (i = 0; i < n_nodes; i++) {
		if (!sizes[i])
			return base_error(WREATH_EINVAL,
					  "shape: node %d of %d has no rank", i,
					  n_nodes);
		if (sizes[i] > *largest)
			*largest = sizes[i];
	}
	return 0;
}

/*
 * The ranks whose vectors one step folds: all, or those of a node; 0: as many
 * as the form pleases.
 */
static int fan_of(const struct sched_shape *shape, int largest, int *max)
{
	*max = SCHED_DIRECT_RANKS_MAX;
	if (!sched_is_reducing(shape->collective))
		return 0;
	switch (shape->algo) {
	case SCHED_ONESHOT:
	case SCHED_TWOSHOT:
	case SCHED_DIRECT:
		return shape->n_ranks;
	case SCHED_SPLIT_RING:
		/* With the ends of two arcs, or, of two nodes, of one. */
		if (shape->n_nodes > 1)
			*max -= shape->n_nodes > 2 ? 2 : 1;
		return largest;
	default:
		return 0;
	}
}

bool sched_fan_fits(const struct sched_shape *shape, int largest)
{
	int max;

	return fan_of(shape, largest, &max) <= max;
}

static int check_fan(const struct sched_shape *shape, int largest)
{
	int max;
	int n = fan_of(shape, largest, &max);

	if (n <= max)
		return 0;
	return base_error(WREATH_EUNSUP,
			  "%s %s takes at most %d ranks%s; there are %d: use "
			  "WREATH_ALGO=ring",
			  algos[shape->algo].name,
			  sched_collective_name(shape->collective), max,
			  shape->algo == SCHED_SPLIT_RING ? " of a node" : "",
			  n);
}

int sched_check_range(const struct sched_shape *shape, int rank, int *largest)
{
	if ((unsigned int)shape->collective >= SCHED_N_COLLECTIVES)
		return base_error(WREATH_EINVAL,
				  "shape: collective %d is not in [0, %d)",
				  (int)shape->collective, SCHED_N_COLLECTIVES);
	if ((unsigned int)shape->algo >= SCHED_N_ALGOS)
		return base_error(WREATH_EINVAL,
				  "shape: algo %d is not in [0, %d)",
				  (int)shape->algo, SCHED_N_ALGOS);
	if (shape->n_ranks < 1 || shape->n_ranks > SCHED_RANKS_MAX)
		return base_error(WREATH_EINVAL,
				  "shape: n_ranks %d is not in [1, %d]",
				  shape->n_ranks, SCHED_RANKS_MAX);
	if (shape->n_channels < 1 || shape->n_channels > SCHED_CHANNELS_MAX)
		return base_error(WREATH_EINVAL,
				  "shape: n_channels %d is not in [1, %d]",
				  shape->n_channels, SCHED_CHANNELS_MAX);
	if (shape->root && !sched_is_rooted(shape->collective))
		return base_error(WREATH_EINVAL,
				  "shape: root %d is not 0, and %s has no root",
				  shape->root,
				  sched_collective_name(shape->collective));
	if (shape->root < 0 || shape->root >= shape->n_ranks)
		return base_error(WREATH_EINVAL,
				  "shape: root %d is not in [0, %d)",
				  shape->root, shape->n_ranks);
	if (rank < 0 || rank >= shape->n_ranks)
		return base_error(WREATH_EINVAL,
				  "schedule: rank %d is not in [0, %d)", rank,
				  shape->n_ranks);
	return check_nodes(shape, largest);
}

int sched_check_shape(const struct sched_shape *shape, int rank)
{
	int largest;
	int err = sched_check_range(shape, rank, &largest);

	if (err)
		return err;
	if (!sched_generator(shape->collective, shape->algo))
		return base_error(WREATH_EUNSUP, "%s has no form for %s",
				  algos[shape->algo].name,
				  sched_collective_name(shape->collective));
	return check_fan(shape, largest);
}

/* The arrays follow each other in one block, the widest alignment first. */
_Static_assert(_Alignof(struct sched_step) <= _Alignof(struct sched) &&
		       _Alignof(struct sched_lane) ==
			       _Alignof(struct sched_step) &&
		       _Alignof(uint32_t) <= _Alignof(struct sched_step),
	       "no padding is needed between the arrays");

static struct sched *sched_new(const struct sched_shape *shape,
			       const struct draft *counts)
{
	size_t lanes = counts->n_lanes * sizeof(struct sched_lane);
	size_t steps = counts->n_steps * sizeof(struct sched_step);
	size_t peers = counts->n_peers * sizeof(uint32_t);
	struct sched *sched;

	sched = base_alloc(1, sizeof(*sched) + lanes + steps + peers);
	if (!sched)
		return NULL;
	sched->lanes = (struct sched_lane *)(sched + 1);
	sched->steps = (struct sched_step *)(sched->lanes + counts->n_lanes);
	sched->peers = (uint32_t *)(sched->steps + counts->n_steps);
	sched->n_blocks =
		(uint32_t)sched_n_blocks(shape->collective, shape->n_ranks);
	sched->n_pieces = counts->n_pieces;
	sched->n_chunks = sched->n_blocks * sched->n_pieces;
	sched->n_lanes = counts->n_lanes;
	sched->n_steps = counts->n_steps;
	sched->n_peers = counts->n_peers;
	return sched;
}

int sched_make(const struct sched_shape *shape, int rank, struct sched **out)
{
	void (*generate)(struct draft *, const struct sched_shape *, uint32_t);
	struct draft counts = {0};
	struct draft draft = {0};
	uint32_t *order;
	int err = sched_check_shape(shape, rank);

	if (!err)
		err = sched_order_new(shape, &order);
	if (err)
		return err;
	generate = shape->n_ranks == 1
			   ? generate_alone
			   : sched_generator(shape->collective, shape->algo)
				     ->generate;
	counts.order = order;
	generate(&counts, shape, (uint32_t)rank);
	wreath_assert(counts.n_lanes <= SCHED_LANES_MAX);
	draft.sched = sched_new(shape, &counts);
	if (draft.sched) {
		draft.order = order;
		draft.sched->shape = *shape;
		draft.sched->rank = rank;
		generate(&draft, shape, (uint32_t)rank);
		wreath_assert(!(draft.n_pieces % (uint32_t)shape->n_channels));
		wreath_assert(draft.n_steps == counts.n_steps);
		wreath_assert(draft.n_peers == counts.n_peers);
		*out = draft.sched;
	}
	base_free(order);
	return draft.sched ? 0 : WREATH_ENOMEM;
}

void sched_free(struct sched *sched)
{
	base_free(sched);
}
