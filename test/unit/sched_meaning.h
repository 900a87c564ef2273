/* SPDX-License-Identifier: MIT */
/*
 * What the judge of schedules holds them against: which rank has which chunks,
 * and what is to be in them.  It says again what lib/sched/rules.c does.
 */
#ifndef SCHED_MEANING_H
#define SCHED_MEANING_H

#include "sched_kit.h"

#define JUDGE_PASSES 3
#define JUDGE_RANKS 12
#define JUDGE_CHUNKS 256
#define JUDGE_SLOTS 4
#define JUDGE_BOXES (SCHED_CHANNELS_MAX * SCHED_BOXES)

/*
 * @fold tells the order and grouping of a fold, @sum, by adding a weight per
 * rank, how often each rank is in it.
 */
struct judge_value {
	uint64_t fold, sum;
};

struct judge_message {
	struct judge_value slot;
	const struct judge_value *reads; /* raw input, when not in the slot */
	struct judge_value *lands;	 /* where, when not in the slot */
	bool landed, is_awaited;
};

struct judge_queue {
	struct judge_message messages[JUDGE_SLOTS];
	uint64_t n_sent, n_taken;
};

struct judge {
	const struct kit *kit;
	const struct sched_shape *shape;
	uint32_t n_ranks, n_lanes, n_pieces, n_chunks, n_slots;
	bool in_place;
	uint64_t random;
	uint64_t holes;	 /* draws which chunks are empty; 0: none is */
	uint32_t n_full; /* of 8 chunks, when there are holes */
	struct judge_value input[JUDGE_PASSES][JUDGE_RANKS][JUDGE_CHUNKS];
	struct judge_value output[JUDGE_PASSES][JUDGE_RANKS][JUDGE_CHUNKS];
	struct judge_queue queues[JUDGE_RANKS][JUDGE_RANKS][JUDGE_BOXES];
	uint32_t done[JUDGE_RANKS][SCHED_LANES_MAX];
	uint32_t n_awaited[JUDGE_RANKS]; /* messages that others are to take */
	bool is_through[JUDGE_RANKS];
	/* By chunk: the fold of the first rank that was through, or 0. */
	uint64_t folds[JUDGE_PASSES][JUDGE_CHUNKS];
	uint32_t n_through;
	const char *wrong;
};

static inline struct judge_value judge_leaf(uint32_t pass, uint32_t rank,
					    uint32_t chunk)
{
	uint64_t x = kit_mix(((uint64_t)pass << 40 | (uint64_t)chunk << 20 |
				rank) + 1);

	return (struct judge_value){x, kit_mix(x + 12345)};
}

static inline struct judge_value judge_fold(struct judge_value a,
					    struct judge_value b)
{
	/* Neither commutative nor associative, as rounded sums are not. */
	return (struct judge_value){kit_mix(3 * a.fold + kit_mix(b.fold)),
				    a.sum + b.sum};
}

static inline bool judge_is_crossing(const struct judge *judge)
{
	return judge->shape->collective == SCHED_ALL_TO_ALL ||
	       judge->shape->collective == SCHED_EXCHANGE;
}

/* What the table in sched.h says, again. */
static inline bool judge_has(const struct judge *judge, bool output,
			     uint32_t rank, uint32_t block)
{
	bool is_root = rank == (uint32_t)judge->shape->root;

	switch (judge->shape->collective) {
	case SCHED_REDUCE:
		return !output || is_root;
	case SCHED_BROADCAST:
		return output || is_root;
	case SCHED_REDUCE_SCATTER:
		return !output || rank == block;
	case SCHED_ALL_GATHER:
		return output || rank == block;
	case SCHED_GATHER:
		return output ? is_root : rank == block;
	case SCHED_SCATTER:
		return output ? rank == block : is_root;
	default:
		return true;
	}
}

static inline bool judge_folds(const struct judge *judge)
{
	switch (judge->shape->collective) {
	case SCHED_ALL_REDUCE:
	case SCHED_REDUCE:
	case SCHED_REDUCE_SCATTER:
	case SCHED_BARRIER:
		return true;
	default:
		return false;
	}
}

/* The leaf that is to be moved to a chunk of @rank's output. */
static inline struct judge_value judge_moved(const struct judge *judge,
					     uint32_t pass, uint32_t rank,
					     uint32_t chunk)
{
	uint32_t block = chunk / judge->n_pieces;

	switch (judge->shape->collective) {
	case SCHED_BROADCAST:
	case SCHED_SCATTER:
		return judge_leaf(pass, (uint32_t)judge->shape->root, chunk);
	case SCHED_ALL_TO_ALL:
	case SCHED_EXCHANGE:
		return judge_leaf(pass, block, rank * judge->n_pieces +
						       chunk % judge->n_pieces);
	default:
		return judge_leaf(pass, block, chunk);
	}
}

static inline struct judge_value *judge_output(struct judge *judge,
					       uint32_t pass, uint32_t rank,
					       uint32_t chunk)
{
	uint32_t block = chunk / judge->n_pieces;

	return judge->in_place && judge_has(judge, false, rank, block) &&
			       judge_has(judge, true, rank, block)
		       ? &judge->input[pass][rank][chunk]
		       : &judge->output[pass][rank][chunk];
}

/* Of block @from for rank @to, where that has a meaning; else @to is 0. */
static inline bool judge_is_empty(const struct judge *judge, uint32_t pass,
				  uint32_t from, uint32_t to, uint32_t piece)
{
	uint64_t x = ((uint64_t)pass << 48 | (uint64_t)from << 32 |
		      (uint64_t)to << 16 | piece);

	if (!judge->holes ||
	    (!pass && judge->shape->collective != SCHED_EXCHANGE))
		return false;
	return kit_mix(judge->holes + kit_mix(x)) % 8 >= judge->n_full;
}

static inline bool judge_is_idle(const struct judge *judge, uint32_t pass,
				 uint32_t rank, const struct sched_step *step)
{
	uint32_t block = step->chunk / judge->n_pieces;
	uint32_t piece = step->chunk % judge->n_pieces;

	if (!judge_is_crossing(judge))
		return judge_is_empty(judge, pass, block, 0, piece);
	return step->local == SCHED_INPUT
		       ? judge_is_empty(judge, pass, rank, block, piece)
		       : judge_is_empty(judge, pass, block, rank, piece);
}

#endif
