/* SPDX-License-Identifier: MIT */
/*
 * What the tests of sched share: the schedules of all ranks as one thing, with
 * room to change them, and the expectation that one is refused.
 */
#ifndef SCHED_KIT_H
#define SCHED_KIT_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "sched/sched.h"

/* Steps and peers that a test may add to a schedule. */
#define KIT_ROOM 16

/* Under a sanitizer or valgrind, where the long tests would take minutes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KIT_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KIT_IS_SANITIZED 1
#endif
#endif
#ifndef KIT_IS_SANITIZED
#define KIT_IS_SANITIZED 0
#endif
#define KIT_IS_SLOW (KIT_IS_SANITIZED || kit_is_under())

static inline bool kit_is_under(void)
{
	const char *under = getenv("TEST_UNDER");

	return under && *under;
}

struct kit {
	int n_ranks;
	struct sched *scheds[SCHED_RANKS_MAX];
};

/* A copy in a block of its own, with KIT_ROOM more steps and peers. */
static inline struct sched *kit_copy(const struct sched *from)
{
	size_t lanes = from->n_lanes * sizeof(*from->lanes);
	size_t steps = from->n_steps * sizeof(*from->steps);
	size_t peers = from->n_peers * sizeof(*from->peers);
	struct sched *to;

	to = base_alloc(1, sizeof(*to) + lanes + steps + peers +
				   KIT_ROOM * (sizeof(*to->steps) +
					       sizeof(*to->peers)));
	assert_non_null(to);
	*to = *from;
	to->lanes = (struct sched_lane *)(to + 1);
	to->steps = (struct sched_step *)(to->lanes + from->n_lanes);
	to->peers = (uint32_t *)(to->steps + from->n_steps + KIT_ROOM);
	memcpy(to->lanes, from->lanes, lanes);
	memcpy(to->steps, from->steps, steps);
	memcpy(to->peers, from->peers, peers);
	return to;
}

/* False where the algorithm has no such form. */
static inline bool kit_make_shape(struct kit *kit,
				  const struct sched_shape *shape)
{
	int err = sched_make(shape, 0, &kit->scheds[0]);
	int i;

	kit->n_ranks = 0;
	if (err == WREATH_EUNSUP)
		return false;
	if (err)
		fail_msg("%s", base_error_text());
	kit->n_ranks = shape->n_ranks;
	for (i = 1; i < shape->n_ranks; i++)
		assert_int_equal(sched_make(shape, i, &kit->scheds[i]), 0);
	return true;
}

static inline void kit_make(struct kit *kit, enum sched_algo algo, int n_ranks,
			    int n_channels)
{
	struct sched_shape shape = {.collective = SCHED_ALL_REDUCE,
				    .algo = algo, .n_ranks = n_ranks,
				    .n_channels = n_channels};

	assert_true(kit_make_shape(kit, &shape));
}

/* Some of all_reduce, none of which looks at nodes. */
static const enum sched_algo kit_algos[] = {SCHED_RING, SCHED_ONESHOT,
					    SCHED_TWOSHOT};

static inline void kit_copy_all(struct kit *to, const struct kit *from)
{
	int i;

	to->n_ranks = from->n_ranks;
	for (i = 0; i < from->n_ranks; i++)
		to->scheds[i] = kit_copy(from->scheds[i]);
}

static inline void kit_release(struct kit *kit)
{
	int i;

	for (i = 0; i < kit->n_ranks; i++)
		sched_free(kit->scheds[i]);
	kit->n_ranks = 0;
}

/* Schedules without steps, to be written by hand: kit_add(). */
static inline void kit_blank_shape(struct kit *kit,
				   const struct sched_shape *shape,
				   uint32_t n_lanes, uint32_t n_pieces)
{
	struct sched_lane lanes[SCHED_LANES_MAX] = {{0}};
	struct sched_step no_step;
	uint32_t no_peer;
	struct sched blank = {
		.shape = *shape,
		.n_pieces = n_pieces,
		.n_lanes = n_lanes,
		.lanes = lanes,
		.steps = &no_step,
		.peers = &no_peer,
	};
	uint32_t i;

	for (i = 0; i < n_lanes; i++)
		lanes[i].box = i % SCHED_BOXES;
	blank.n_blocks =
		(uint32_t)sched_n_blocks(shape->collective, shape->n_ranks);
	blank.n_chunks = blank.n_blocks * n_pieces;
	kit->n_ranks = shape->n_ranks;
	for (blank.rank = 0; blank.rank < shape->n_ranks; blank.rank++)
		kit->scheds[blank.rank] = kit_copy(&blank);
}

static inline void kit_blank(struct kit *kit, int n_ranks, uint32_t n_lanes,
			     uint32_t n_chunks)
{
	struct sched_shape shape = {.collective = SCHED_ALL_REDUCE,
				    .algo = SCHED_ONESHOT, .n_ranks = n_ranks,
				    .n_channels = 1};

	kit_blank_shape(kit, &shape, n_lanes, n_chunks);
}

/*
 * A step more at the end of @lane of @rank; its peers, -1 for none, are one at
 * most to receive from and one to send to, into the lane @send_lane.
 */
static inline struct sched_step *kit_add(struct kit *kit, int rank,
					 uint32_t lane, uint32_t chunk,
					 int recv, enum sched_local local,
					 int send, uint32_t send_lane)
{
	struct sched *sched = kit->scheds[rank];
	uint32_t at = sched->lanes[lane].step + sched->lanes[lane].n_steps;
	struct sched_step *step = &sched->steps[at];
	uint32_t i;

	assert_true(sched->n_steps < KIT_ROOM);
	assert_true(sched->n_peers + 2 <= KIT_ROOM);
	memmove(step + 1, step, (sched->n_steps - at) * sizeof(*step));
	sched->n_steps++;
	sched->lanes[lane].n_steps++;
	for (i = lane + 1; i < sched->n_lanes; i++)
		sched->lanes[i].step++;
	*step = (struct sched_step){
		.recv = sched->n_peers,
		.n_recv = recv >= 0,
		.chunk = chunk,
		.local_at = recv >= 0 && local,
		.send_lane = send_lane,
		.after_lane = -1,
		.after_step = -1,
		.local = (uint8_t)local,
	};
	if (recv >= 0)
		sched->peers[sched->n_peers++] = (uint32_t)recv;
	step->send = sched->n_peers;
	step->n_send = send >= 0;
	if (send >= 0)
		sched->peers[sched->n_peers++] = (uint32_t)send;
	return step;
}

static inline void kit_drop_step(struct sched *sched, uint32_t lane,
				 uint32_t at)
{
	uint32_t i = sched->lanes[lane].step + at;

	sched->n_steps--;
	sched->lanes[lane].n_steps--;
	memmove(&sched->steps[i], &sched->steps[i + 1],
		(sched->n_steps - i) * sizeof(*sched->steps));
	for (i = lane + 1; i < sched->n_lanes; i++)
		sched->lanes[i].step--;
}

static inline struct sched_step *kit_step(struct kit *kit, int rank,
					  uint32_t lane, uint32_t at)
{
	struct sched *sched = kit->scheds[rank];

	assert_true(at < sched->lanes[lane].n_steps);
	return &sched->steps[sched->lanes[lane].step + at];
}

static inline bool kit_has_in_place(enum sched_collective collective)
{
	return collective != SCHED_ALL_TO_ALL && collective != SCHED_EXCHANGE;
}

static inline int kit_verify(const struct kit *kit, int n_slots, bool in_place)
{
	struct sched_proof proof;

	return sched_verify(kit->scheds, kit->n_ranks, n_slots, in_place,
			    &proof);
}

/* Refused, for the reason that @text is part of. */
static inline void kit_refused(const struct kit *kit, int n_slots,
			       bool in_place, const char *text)
{
	assert_int_equal(kit_verify(kit, n_slots, in_place), WREATH_EINVAL);
	if (!strstr(base_error_text(), text))
		fail_msg("refused by '%s', not by '%s'", base_error_text(),
			 text);
}

static inline void kit_proved(const struct kit *kit, int n_slots, bool in_place)
{
	if (kit_verify(kit, n_slots, in_place))
		fail_msg("%s", base_error_text());
}

/* A small generator of numbers, the same everywhere (xorshift64*). */
static inline uint64_t kit_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1du;
}

static inline uint32_t kit_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((kit_random(state) >> 32) * n >> 32);
}

static inline uint64_t kit_mix(uint64_t x)
{
	x = (x ^ (x >> 31)) * 0x7fb5d329728ea185u;
	x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44du;
	return x ^ (x >> 33);
}

/* Nodes of any sizes, their ranks in any order. */
static inline void kit_draw_nodes(uint64_t *seed, uint32_t n_ranks,
				  uint32_t n_nodes, uint32_t *nodes)
{
	uint32_t i;

	for (i = 0; i < n_ranks; i++)
		nodes[i] = i < n_nodes ? i : kit_below(seed, n_nodes);
	for (i = n_ranks - 1; i > 0; i--) {
		uint32_t j = kit_below(seed, i + 1);
		uint32_t node = nodes[i];

		nodes[i] = nodes[j];
		nodes[j] = node;
	}
}

/* Any number of nodes, a third of them in order and the others listed. */
static inline void kit_draw_layout(struct sched_shape *shape, uint32_t *nodes,
				   uint64_t *seed)
{
	uint32_t n = (uint32_t)shape->n_ranks;
	uint32_t n_nodes = 1 + kit_below(seed, n);

	shape->n_nodes = (int)n_nodes;
	shape->nodes = kit_below(seed, 3) ? nodes : NULL;
	kit_draw_nodes(seed, n, n_nodes, nodes);
}

/* SEED of the environment, or a fresh one; printed either way. */
static inline uint64_t kit_seed(void)
{
	const char *text = getenv("SEED");
	uint64_t seed = 0;

	if (text)
		seed = strtoull(text, NULL, 0);
	else
		base_random(&seed, sizeof(seed));
	if (!seed)
		seed = 1;
	print_message("SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

#endif
