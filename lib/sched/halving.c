/* SPDX-License-Identifier: MIT */
/*
 * Halving and doubling, for any number of ranks.
 *
 * Recursive halving, as in "Optimization of collective reduction operations" by
 * Rolf Rabenseifner (2004), has partners half as far away and sends half as
 * much with each round; it wants a power of two.  Here the partners stand on a
 * circle, as in "Optimal, non-pipelined reduce-scatter and allreduce
 * algorithms" by Jesper Larsson Traff (2024): a rank sends to those that are a
 * power of two below it, and takes from those above.  That has the least
 * rounds, log2(n) rounded up, and the least bytes, (n - 1) / n of the vector,
 * to reduce and again to gather, for every n.
 *
 * Seen from a chunk this is a binomial tree.  With x for how far a rank is
 * above the chunk's owner, and h for the highest bit of x: x sends to x - h
 * what it has folded of all x + h', for h' a higher bit.  The result goes back
 * the same way.  So a rank has one step for each x to reduce, one to gather.
 *
 * The order of the steps is the same on all ranks: x + h' must come before x
 * and, since a peer has few slots, shortly before it.  In the order that falls
 * if the bits of x are read backwards there is one message under way between
 * two ranks at a time.  But that takes the rounds apart, so the steps of the
 * last rounds, where most are, have lanes of their own: up to 16 ranks nothing
 * waits but for its own round.
 *
 * A channel's lanes, for three groups of x: fold[] for the reduction, take[]
 * for results; those of group 0 are sent on to group 0 by take[0], those that
 * go to groups 1 and 2 by pass[1] and pass[2], whatever they came by.
 */
#include "draft.h"

#define N_GROUPS 3

struct circle {
	const struct sched_shape *shape;
	uint32_t n, rank, channel;
	uint32_t high; /* the highest bit of any x */
	bool reduces, gathers;
	uint32_t fold[N_GROUPS], take[N_GROUPS], pass[N_GROUPS];
};

static uint32_t high_bit(uint32_t x)
{
	return x ? UINT32_C(1) << (31 - __builtin_clz(x)) : 0;
}

/* 2: with the highest bit; 1: with the one below as the highest; 0: others. */
static uint32_t group_of(const struct circle *circle, uint32_t x)
{
	if (x >= circle->high)
		return 2;
	return x && x >= circle->high / 2 ? 1 : 0;
}

/* The @at-th x from the end of the reduction; from n on there is no rank. */
static uint32_t nth(const struct circle *circle, uint32_t at)
{
	uint32_t x = 0;
	uint32_t bit;

	for (bit = circle->high; bit; bit /= 2, at /= 2)
		x |= at & 1 ? bit : 0;
	return x;
}

static uint32_t above(const struct circle *circle, uint32_t by)
{
	return (circle->rank + by) % circle->n;
}

static uint32_t below(const struct circle *circle, uint32_t by)
{
	return (circle->rank + circle->n - by) % circle->n;
}

/* The chunk to whose owner this rank is @x. */
static uint32_t chunk_of(const struct circle *circle, uint32_t x)
{
	uint32_t owner = below(circle, x);
	uint32_t n_channels = (uint32_t)circle->shape->n_channels;

	return sched_n_blocks(circle->shape->collective, 2) > 1
		       ? owner * n_channels + circle->channel
		       : circle->channel * circle->n + owner;
}

/* ---- the tree of a chunk ---- */

/* The lowest bit that makes a child of @x, which has those and all higher. */
static uint32_t first_bit(uint32_t x)
{
	return x ? 2 * high_bit(x) : 1;
}

static bool has_children(const struct circle *circle, uint32_t x)
{
	return x + first_bit(x) < circle->n;
}

/* Is all that @x receives in the reduction raw input? */
static bool takes_input(const struct circle *circle, uint32_t x)
{
	uint32_t bit = first_bit(x);

	if (!has_children(circle, x))
		return false;
	/* The first has the most below it. */
	return !has_children(circle, x + bit);
}

/* ---- the reduction ---- */

static void fold_step(struct draft *draft, const struct circle *circle,
		      uint32_t x)
{
	struct sched_step *step = draft_step(draft, chunk_of(circle, x));
	uint32_t bit;

	if (circle->reduces) {
		for (bit = first_bit(x); x + bit < circle->n; bit *= 2)
			draft_recv(draft, step, above(circle, bit));
		if (takes_input(circle, x))
			step->flags |= SCHED_RECV_INPUT;
	}
	step->local = SCHED_INPUT;
	step->local_at = step->n_recv;
	if (!x) {
		step->flags |= SCHED_STORE;
		return;
	}
	bit = high_bit(x);
	step->send_lane = circle->fold[group_of(circle, x - bit)];
	draft_send(draft, step, below(circle, bit));
	if (has_children(circle, x) || !takes_input(circle, x - bit))
		return;
	step->flags |= SCHED_SEND_INPUT;
	/* A result that comes back tells that it has been read. */
	if (!circle->gathers)
		step->flags |= SCHED_SEND_AWAIT;
}

/* A lane for each group; to gather, the own chunk is stored in group 0's. */
static void generate_fold(struct draft *draft, const struct circle *circle)
{
	uint32_t group, at;

	for (group = N_GROUPS; group-- > 0;) {
		if (circle->fold[group] == DRAFT_NO_LANE)
			continue;
		draft_lane(draft, circle->channel, group ? 0 : 1);
		for (at = 2 * circle->high; at-- > 0;) {
			uint32_t x = nth(circle, at);

			if (x < circle->n && group_of(circle, x) == group &&
			    (circle->reduces || !x))
				fold_step(draft, circle, x);
		}
	}
}

/* The step of lane fold[0] that stores the own chunk: its last. */
static uint32_t own_step(const struct circle *circle)
{
	return circle->reduces && circle->high > 1 ? circle->high / 2 - 1 : 0;
}

/* ---- the results ---- */

/* Children in group 0 are sent to at once. */
static void take_step(struct draft *draft, const struct circle *circle,
		      uint32_t x)
{
	struct sched_step *step = draft_step(draft, chunk_of(circle, x));
	uint32_t bit;

	if (x) {
		step->flags = SCHED_STORE | SCHED_RECV_FINAL;
		draft_recv(draft, step, below(circle, high_bit(x)));
	} else {
		draft_read_after(step, circle->fold[0], own_step(circle));
	}
	for (bit = first_bit(x); bit < circle->high / 2; bit *= 2) {
		step->flags |= SCHED_SEND_FINAL;
		step->send_lane = circle->take[0];
		draft_send(draft, step, above(circle, bit));
	}
}

static void generate_take(struct draft *draft, const struct circle *circle)
{
	uint32_t group, at;

	for (group = 0; group < N_GROUPS; group++) {
		if (circle->take[group] == DRAFT_NO_LANE)
			continue;
		/* Each receives from other peers, so they share a box. */
		draft_lane(draft, circle->channel, 2);
		for (at = 0; at < 2 * circle->high; at++) {
			uint32_t x = nth(circle, at);

			if (x < circle->n && group_of(circle, x) == group)
				take_step(draft, circle, x);
		}
	}
}

/* To the children in group @to, which are one for each x, @bit above it. */
static void generate_pass(struct draft *draft, const struct circle *circle,
			  uint32_t to, uint32_t bit)
{
	uint32_t taken[N_GROUPS] = {0};
	uint32_t at;

	draft_lane(draft, circle->channel, 0);
	for (at = 0; at < 2 * circle->high; at++) {
		uint32_t x = nth(circle, at);
		uint32_t group = group_of(circle, x);
		struct sched_step *step;

		if (x >= bit)
			continue;
		taken[group]++;
		if (x + bit >= circle->n)
			continue;
		step = draft_step(draft, chunk_of(circle, x));
		if (x)
			draft_read_after(step, circle->take[group],
				   taken[group] - 1);
		else
			draft_read_after(step, circle->fold[0],
					 own_step(circle));
		step->flags = SCHED_SEND_FINAL;
		step->send_lane = circle->take[to];
		draft_send(draft, step, above(circle, bit));
	}
}

static void number_lanes(struct circle *circle, uint32_t next)
{
	bool reduces = circle->reduces;
	bool gathers = circle->gathers;

	/* Two ranks have no group 1, and up to four one x in group 0. */
	circle->fold[2] = draft_number(&next, reduces);
	circle->fold[1] = draft_number(&next, reduces && circle->high > 1);
	circle->fold[0] = draft_number(&next, true);
	circle->take[0] = draft_number(&next, gathers && circle->high > 2);
	circle->take[1] = draft_number(&next, gathers && circle->high > 1);
	circle->take[2] = draft_number(&next, gathers);
	circle->pass[1] = draft_number(&next, gathers && circle->high > 1);
	circle->pass[2] = draft_number(&next, gathers);
}

static void generate(struct draft *draft, const struct sched_shape *shape,
		     uint32_t rank)
{
	uint32_t n = (uint32_t)shape->n_ranks;
	uint32_t n_channels = (uint32_t)shape->n_channels;
	struct circle circle = {
		.shape = shape,
		.n = n,
		.rank = rank,
		.high = high_bit(n - 1),
		.reduces = shape->collective != SCHED_ALL_GATHER,
		.gathers = shape->collective != SCHED_REDUCE_SCATTER,
	};

	draft->n_pieces = sched_n_blocks(shape->collective, 2) > 1
				  ? n_channels : n_channels * n;
	for (; circle.channel < n_channels; circle.channel++) {
		number_lanes(&circle, draft->n_lanes);
		generate_fold(draft, &circle);
		if (!circle.gathers)
			continue;
		generate_take(draft, &circle);
		if (circle.pass[1] != DRAFT_NO_LANE)
			generate_pass(draft, &circle, 1, circle.high / 2);
		generate_pass(draft, &circle, 2, circle.high);
	}
}

/* Each chunk but the own one to where it is folded on, and each result on. */
const struct generator sched_halving_all_reduce = {generate,
						   sched_bound_around};
/* One way, with a block a rank. */
const struct generator sched_halving_reduce_scatter = {generate,
						       sched_bound_blocks};
const struct generator sched_halving_all_gather = {generate,
						   sched_bound_blocks};
