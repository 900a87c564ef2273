/* SPDX-License-Identifier: MIT */
/*
 * A second opinion on schedules, sharing nothing with the verifier: it runs
 * them, with numbers for chunks, in an order drawn by chance, and looks at what
 * is in the outputs then.  It can find a schedule wrong, never prove it right.
 *
 * It is as unkind as an execution may be: any lane that can run may run next;
 * slots are memory that is written again; a final chunk goes through a slot or
 * straight into the output, and then at any time between the two steps; raw
 * input goes through a slot or is read where it is by the step that takes it;
 * in place the input is the output; and a rank that is through with its steps
 * uses its buffers for something else.
 */
#ifndef SCHED_JUDGE_H
#define SCHED_JUDGE_H

#include "sched_kit.h"

#define JUDGE_PASSES 3
#define JUDGE_RANKS 12
#define JUDGE_CHUNKS 64
#define JUDGE_SLOTS 4

/*
 * @fold tells the order and grouping of a fold, @sum, by adding a weight per
 * rank, how often each rank is in it.
 */
struct judge_value {
	uint64_t fold, sum;
};

struct judge_queue {
	struct judge_value slots[JUDGE_SLOTS];
	struct judge_value *lands[JUDGE_SLOTS]; /* where, when not in a slot */
	bool landed[JUDGE_SLOTS];
	const struct judge_value *reads[JUDGE_SLOTS]; /* raw input, likewise */
	uint64_t n_sent, n_taken;
};

struct judge {
	const struct kit *kit;
	uint32_t n_slots;
	bool in_place;
	uint64_t random;
	struct judge_value input[JUDGE_PASSES][JUDGE_RANKS][JUDGE_CHUNKS];
	struct judge_value output[JUDGE_PASSES][JUDGE_RANKS][JUDGE_CHUNKS];
	struct judge_queue queues[JUDGE_RANKS][JUDGE_RANKS][SCHED_LANES_MAX];
	uint32_t done[JUDGE_RANKS][SCHED_LANES_MAX];
	uint64_t folds[JUDGE_PASSES][JUDGE_CHUNKS]; /* of the first rank */
	uint32_t n_through;
	const char *wrong;
};

static inline uint64_t judge_mix(uint64_t x)
{
	x = (x ^ (x >> 31)) * 0x7fb5d329728ea185u;
	x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44du;
	return x ^ (x >> 33);
}

static inline struct judge_value judge_leaf(uint32_t pass, uint32_t rank,
					    uint32_t chunk)
{
	uint64_t x = judge_mix(((uint64_t)pass << 40 | (uint64_t)chunk << 20 |
				rank) + 1);

	return (struct judge_value){x, judge_mix(x + 12345)};
}

static inline struct judge_value judge_fold(struct judge_value a,
					    struct judge_value b)
{
	/* Neither commutative nor associative, as rounded sums are not. */
	return (struct judge_value){judge_mix(3 * a.fold + judge_mix(b.fold)),
				    a.sum + b.sum};
}

static inline struct judge_value *judge_output(struct judge *judge,
					       uint32_t pass, uint32_t rank,
					       uint32_t chunk)
{
	return judge->in_place ? &judge->input[pass][rank][chunk]
			       : &judge->output[pass][rank][chunk];
}

/* A final chunk on its way may land now. */
static inline void judge_land(struct judge_queue *queue, uint32_t slot)
{
	if (queue->lands[slot] && !queue->landed[slot]) {
		*queue->lands[slot] = queue->slots[slot];
		queue->landed[slot] = true;
	}
}

static inline bool judge_can_run(const struct judge *judge, uint32_t rank,
				 uint32_t lane)
{
	const struct sched *sched = judge->kit->scheds[rank];
	uint32_t n_steps = sched->lanes[lane].n_steps;
	uint32_t done = judge->done[rank][lane];
	const struct sched_step *step;
	const struct judge_queue *queue;
	uint32_t i;

	if (done >= n_steps * JUDGE_PASSES)
		return false;
	step = &sched->steps[sched->lanes[lane].step + done % n_steps];
	for (i = 0; i < step->n_recv; i++) {
		queue = &judge->queues[sched->peers[step->recv + i]][rank]
				      [lane];
		if (queue->n_sent == queue->n_taken)
			return false;
	}
	for (i = 0; i < step->n_send; i++) {
		queue = &judge->queues[rank][sched->peers[step->send + i]]
				      [step->send_lane];
		if (queue->n_sent - queue->n_taken == judge->n_slots)
			return false;
	}
	if (step->after_lane < 0)
		return true;
	i = sched->lanes[step->after_lane].n_steps;
	return judge->done[rank][step->after_lane] >
	       done / n_steps * i + (uint32_t)step->after_step;
}

static inline struct judge_value judge_operand(struct judge *judge,
					       uint32_t rank, uint32_t lane,
					       const struct sched_step *step,
					       uint32_t pass, uint32_t i)
{
	struct judge_queue *queue;
	uint32_t at = step->local_at;
	uint32_t slot;

	if (step->local && i == at)
		return step->local == SCHED_INPUT
			       ? judge->input[pass][rank][step->chunk]
			       : *judge_output(judge, pass, rank, step->chunk);
	i -= step->local && i > at;
	i = judge->kit->scheds[rank]->peers[step->recv + i];
	queue = &judge->queues[i][rank][lane];
	slot = (uint32_t)(queue->n_taken++ % judge->n_slots);
	if (queue->reads[slot])
		return *queue->reads[slot];
	if (!queue->lands[slot])
		return queue->slots[slot];
	judge_land(queue, slot);
	return *queue->lands[slot];
}

static inline void judge_send(struct judge *judge, uint32_t rank,
			      const struct sched_step *step, uint32_t pass,
			      struct judge_value value)
{
	const uint32_t *peers = judge->kit->scheds[rank]->peers + step->send;
	uint32_t i;

	for (i = 0; i < step->n_send; i++) {
		struct judge_queue *queue =
			&judge->queues[rank][peers[i]][step->send_lane];
		uint32_t slot = (uint32_t)(queue->n_sent++ % judge->n_slots);

		queue->slots[slot] = value;
		queue->landed[slot] = false;
		queue->lands[slot] = NULL;
		queue->reads[slot] = NULL;
		if (step->flags & SCHED_SEND_INPUT &&
		    kit_below(&judge->random, 4))
			queue->reads[slot] =
				&judge->input[pass][rank][step->chunk];
		if (step->flags & SCHED_SEND_FINAL &&
		    kit_below(&judge->random, 4))
			queue->lands[slot] = judge_output(judge, pass, peers[i],
							  step->chunk);
		if (kit_below(&judge->random, 2))
			judge_land(queue, slot);
	}
}

static inline void judge_step(struct judge *judge, uint32_t rank, uint32_t lane)
{
	const struct sched *sched = judge->kit->scheds[rank];
	uint32_t done = judge->done[rank][lane]++;
	uint32_t pass = done / sched->lanes[lane].n_steps;
	const struct sched_step *step =
		&sched->steps[sched->lanes[lane].step +
			      done % sched->lanes[lane].n_steps];
	struct judge_value value = {0, 0};
	uint32_t n = step->n_recv + (step->local != SCHED_NONE);
	uint32_t i;

	for (i = 0; i < n; i++) {
		struct judge_value operand =
			judge_operand(judge, rank, lane, step, pass, i);

		value = i ? judge_fold(value, operand) : operand;
	}
	if (step->flags & SCHED_STORE)
		*judge_output(judge, pass, rank, step->chunk) = value;
	judge_send(judge, rank, step, pass, value);
}

/* Chunks under way land when they like. */
static inline void judge_land_some(struct judge *judge)
{
	uint32_t n_ranks = (uint32_t)judge->kit->n_ranks;
	uint32_t n = kit_below(&judge->random, 4);

	while (n--) {
		struct judge_queue *queue =
			&judge->queues[kit_below(&judge->random, n_ranks)]
				      [kit_below(&judge->random, n_ranks)]
				      [kit_below(&judge->random,
						 judge->kit->scheds[0]
							 ->n_lanes)];

		if (queue->n_sent > queue->n_taken)
			judge_land(queue,
				   (uint32_t)((queue->n_sent - 1) %
					      judge->n_slots));
	}
}

/* The rank has run all its steps: look at its outputs, and scribble. */
static inline void judge_through(struct judge *judge, uint32_t rank)
{
	uint32_t n_chunks = judge->kit->scheds[0]->n_chunks;
	bool is_first = !judge->n_through++;
	uint32_t i, pass, chunk;

	for (pass = 0; pass < JUDGE_PASSES; pass++) {
		for (chunk = 0; chunk < n_chunks; chunk++) {
			struct judge_value *at =
				judge_output(judge, pass, rank, chunk);
			uint64_t sum = 0;

			for (i = 0; i < (uint32_t)judge->kit->n_ranks; i++)
				sum += judge_leaf(pass, i, chunk).sum;
			if (sum != at->sum)
				judge->wrong = "a sum is wrong";
			if (is_first)
				judge->folds[pass][chunk] = at->fold;
			else if (judge->folds[pass][chunk] != at->fold)
				judge->wrong = "ranks differ";
			at->sum = kit_random(&judge->random);
			judge->input[pass][rank][chunk] = *at;
		}
	}
}

static inline bool judge_is_through(const struct judge *judge, uint32_t rank)
{
	const struct sched *sched = judge->kit->scheds[rank];
	uint32_t i;

	for (i = 0; i < sched->n_lanes; i++) {
		if (judge->done[rank][i] !=
		    sched->lanes[i].n_steps * JUDGE_PASSES)
			return false;
	}
	return true;
}

/* A lane that can run, or n_ranks * n_lanes. */
static inline uint32_t judge_choose(struct judge *judge)
{
	uint32_t n_lanes = judge->kit->scheds[0]->n_lanes;
	uint32_t n = (uint32_t)judge->kit->n_ranks * n_lanes;
	uint32_t start = kit_below(&judge->random, n);
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint32_t at = (start + i) % n;

		if (judge_can_run(judge, at / n_lanes, at % n_lanes))
			return at;
	}
	return n;
}

static inline void judge_init(struct judge *judge)
{
	uint32_t i, pass, chunk;

	for (pass = 0; pass < JUDGE_PASSES; pass++) {
		for (i = 0; i < (uint32_t)judge->kit->n_ranks; i++) {
			for (chunk = 0; chunk < JUDGE_CHUNKS; chunk++)
				judge->input[pass][i][chunk] =
					judge_leaf(pass, i, chunk);
		}
	}
}

/*
 * Run three passes in the order that @seed stands for; NULL when all is well.
 * The schedules' indices must be within their bounds.
 */
static inline const char *judge_run(const struct kit *kit, uint32_t n_slots,
				    bool in_place, uint64_t seed)
{
	static struct judge judge;
	uint32_t n_ranks = (uint32_t)kit->n_ranks;
	uint32_t n_lanes = kit->scheds[0]->n_lanes;
	uint32_t i, at;

	assert_true(n_ranks <= JUDGE_RANKS && n_slots <= JUDGE_SLOTS);
	assert_true(kit->scheds[0]->n_chunks <= JUDGE_CHUNKS);
	memset(&judge, 0, sizeof(judge));
	judge.kit = kit;
	judge.n_slots = n_slots;
	judge.in_place = in_place;
	judge.random = seed;
	judge_init(&judge);
	while ((at = judge_choose(&judge)) < n_ranks * n_lanes) {
		uint32_t rank = at / n_lanes;
		uint32_t lane = at % n_lanes;
		/* Now and then a lane runs as far as it can. */
		uint32_t burst = 1 + kit_below(&judge.random, 4) *
					     kit_below(&judge.random, 3);

		while (burst-- && judge_can_run(&judge, rank, lane))
			judge_step(&judge, rank, lane);
		if (judge_is_through(&judge, rank))
			judge_through(&judge, rank);
		judge_land_some(&judge);
	}
	if (judge.n_through < n_ranks)
		return "a lane is stuck";
	for (i = 0; i < n_ranks * n_ranks * n_lanes; i++) {
		const struct judge_queue *queue =
			&judge.queues[i / n_lanes / n_ranks]
				     [i / n_lanes % n_ranks][i % n_lanes];

		if (queue->n_sent != queue->n_taken)
			return "a message is left over";
	}
	return judge.wrong;
}

#endif
