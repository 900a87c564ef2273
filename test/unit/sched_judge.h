/* SPDX-License-Identifier: MIT */
/*
 * A second opinion on schedules, sharing nothing with the verifier: it runs
 * them, with numbers for chunks, in an order drawn by chance, and looks at what
 * is in the outputs then.  It can find a schedule wrong, never prove it right.
 *
 * It is as unkind as an execution may be: any lane that can run may run next;
 * slots are memory that is written again, and lanes in one box share them; a
 * final chunk goes through a slot or straight into the output, and then at any
 * time between the two steps; raw input goes through a slot or is read where it
 * is, by the step that takes it or when it lands; in place the input is the
 * output; a rank that is through with its steps uses its buffers for something
 * else; and, for half of the seeds, any chunk of a later pass may be empty, so
 * that its steps do nothing (of an exchange, of the first pass too).
 */
#ifndef SCHED_JUDGE_H
#define SCHED_JUDGE_H

#include "sched_meaning.h"

/* The queue into the box of @lane of @target. */
static inline struct judge_queue *judge_queue(struct judge *judge,
					      uint32_t source, uint32_t target,
					      uint32_t lane)
{
	const struct sched_lane *at =
		&judge->kit->scheds[target]->lanes[lane];

	return &judge->queues[source][target]
			     [at->channel * SCHED_BOXES + at->box];
}

/* A final chunk on its way may land now. */
static inline void judge_land(struct judge_message *message)
{
	if (message->lands && !message->landed) {
		*message->lands = message->reads ? *message->reads
						 : message->slot;
		message->landed = true;
	}
}

static inline const struct sched_step *judge_next(const struct judge *judge,
						  uint32_t rank, uint32_t lane)
{
	const struct sched *sched = judge->kit->scheds[rank];
	uint32_t n_steps = sched->lanes[lane].n_steps;

	if (judge->done[rank][lane] >= n_steps * JUDGE_PASSES)
		return NULL;
	return &sched->steps[sched->lanes[lane].step +
			     judge->done[rank][lane] % n_steps];
}

static inline bool judge_can_run(struct judge *judge, uint32_t rank,
				 uint32_t lane)
{
	const struct sched *sched = judge->kit->scheds[rank];
	const struct sched_step *step = judge_next(judge, rank, lane);
	const struct judge_queue *queue;
	uint32_t i, pass;

	if (!step)
		return false;
	pass = judge->done[rank][lane] / sched->lanes[lane].n_steps;
	if (judge_is_idle(judge, pass, rank, step))
		return true;
	for (i = 0; i < step->n_recv; i++) {
		queue = judge_queue(judge, sched->peers[step->recv + i], rank,
				    lane);
		if (queue->n_sent == queue->n_taken)
			return false;
	}
	for (i = 0; i < step->n_send; i++) {
		queue = judge_queue(judge, rank, sched->peers[step->send + i],
				    step->send_lane);
		if (queue->n_sent - queue->n_taken == judge->n_slots)
			return false;
	}
	if (step->after_lane < 0)
		return true;
	i = sched->lanes[step->after_lane].n_steps;
	return judge->done[rank][step->after_lane] >
	       pass * i + (uint32_t)step->after_step;
}

static inline struct judge_value judge_take(struct judge *judge,
					    uint32_t source, uint32_t rank,
					    uint32_t lane)
{
	struct judge_queue *queue = judge_queue(judge, source, rank, lane);
	struct judge_message *message =
		&queue->messages[queue->n_taken++ % judge->n_slots];

	judge->n_awaited[source] -= message->is_awaited;
	judge_land(message);
	if (message->lands)
		return *message->lands;
	return message->reads ? *message->reads : message->slot;
}

static inline struct judge_value judge_operand(struct judge *judge,
					       uint32_t rank, uint32_t lane,
					       const struct sched_step *step,
					       uint32_t pass, uint32_t i)
{
	uint32_t at = step->local_at;

	if (step->local && i == at)
		return step->local == SCHED_INPUT
			       ? judge->input[pass][rank][step->chunk]
			       : *judge_output(judge, pass, rank, step->chunk);
	i -= step->local && i > at;
	return judge_take(judge,
			  judge->kit->scheds[rank]->peers[step->recv + i],
			  rank, lane);
}

static inline void judge_send(struct judge *judge, uint32_t rank,
			      const struct sched_step *step, uint32_t pass,
			      struct judge_value value)
{
	const uint32_t *peers = judge->kit->scheds[rank]->peers + step->send;
	uint32_t chunk = step->chunk;
	uint32_t i;

	if (judge_is_crossing(judge))
		chunk = rank * judge->n_pieces + chunk % judge->n_pieces;
	for (i = 0; i < step->n_send; i++) {
		struct judge_queue *queue = judge_queue(judge, rank, peers[i],
							step->send_lane);
		struct judge_message *message =
			&queue->messages[queue->n_sent++ % judge->n_slots];

		*message = (struct judge_message){.slot = value};
		if (step->flags & SCHED_SEND_INPUT &&
		    kit_below(&judge->random, 4))
			message->reads =
				&judge->input[pass][rank][step->chunk];
		if (step->flags & SCHED_SEND_FINAL &&
		    kit_below(&judge->random, 4))
			message->lands =
				judge_output(judge, pass, peers[i], chunk);
		if (step->flags & SCHED_SEND_AWAIT) {
			message->is_awaited = true;
			judge->n_awaited[rank]++;
		}
		if (kit_below(&judge->random, 2))
			judge_land(message);
	}
}

static inline void judge_step(struct judge *judge, uint32_t rank, uint32_t lane)
{
	const struct sched_step *step = judge_next(judge, rank, lane);
	uint32_t done = judge->done[rank][lane]++;
	uint32_t pass =
		done / judge->kit->scheds[rank]->lanes[lane].n_steps;
	struct judge_value value = {0, 0};
	uint32_t n = step->n_recv + (step->local != SCHED_NONE);
	uint32_t i;

	if (judge_is_idle(judge, pass, rank, step))
		return;
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
	uint32_t n = kit_below(&judge->random, 4);

	while (n--) {
		struct judge_queue *queue = judge_queue(
			judge, kit_below(&judge->random, judge->n_ranks),
			kit_below(&judge->random, judge->n_ranks),
			kit_below(&judge->random, judge->n_lanes));

		if (queue->n_sent > queue->n_taken)
			judge_land(&queue->messages[(queue->n_sent - 1) %
						    judge->n_slots]);
	}
}

static inline void judge_look(struct judge *judge, uint32_t pass, uint32_t rank,
			      uint32_t chunk)
{
	struct judge_value *at = judge_output(judge, pass, rank, chunk);
	uint64_t *fold = &judge->folds[pass][chunk];
	uint64_t sum = 0;
	uint32_t i;

	if (!judge_folds(judge)) {
		if (at->fold != judge_moved(judge, pass, rank, chunk).fold)
			judge->wrong = "a chunk is wrong";
		return;
	}
	for (i = 0; i < judge->n_ranks; i++)
		sum += judge_leaf(pass, i, chunk).sum;
	if (sum != at->sum)
		judge->wrong = "a sum is wrong";
	if (*fold && *fold != at->fold)
		judge->wrong = "ranks differ";
	*fold = at->fold;
}

/* The rank has run all its steps: look at its outputs, and scribble. */
static inline void judge_through(struct judge *judge, uint32_t rank)
{
	bool crosses = judge_is_crossing(judge);
	uint32_t pass, chunk;

	judge->n_through++;
	judge->is_through[rank] = true;
	for (pass = 0; pass < JUDGE_PASSES; pass++) {
		for (chunk = 0; chunk < judge->n_chunks; chunk++) {
			uint32_t block = chunk / judge->n_pieces;
			uint32_t piece = chunk % judge->n_pieces;

			if (judge_has(judge, true, rank, block) &&
			    !judge_is_empty(judge, pass, block,
					    crosses ? rank : 0, piece))
				judge_look(judge, pass, rank, chunk);
		}
		for (chunk = 0; chunk < judge->n_chunks; chunk++) {
			uint64_t random = kit_random(&judge->random);

			judge->input[pass][rank][chunk].fold = random;
			judge->input[pass][rank][chunk].sum = random;
			judge->output[pass][rank][chunk].fold = random;
			judge->output[pass][rank][chunk].sum = random;
		}
	}
}

static inline bool judge_is_done(const struct judge *judge, uint32_t rank)
{
	uint32_t i;

	for (i = 0; i < judge->n_lanes; i++) {
		if (judge_next(judge, rank, i))
			return false;
	}
	return !judge->n_awaited[rank];
}

/* A lane that can run, or n_ranks * n_lanes. */
static inline uint32_t judge_choose(struct judge *judge)
{
	uint32_t n = judge->n_ranks * judge->n_lanes;
	uint32_t start = kit_below(&judge->random, n);
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint32_t at = (start + i) % n;

		if (judge_can_run(judge, at / judge->n_lanes,
				  at % judge->n_lanes))
			return at;
	}
	return n;
}

/* Blocks that a rank has not are there all the same, with other numbers. */
static inline void judge_fill(struct judge *judge, uint32_t rank)
{
	uint32_t pass, chunk;

	for (pass = 0; pass < JUDGE_PASSES; pass++) {
		for (chunk = 0; chunk < judge->n_chunks; chunk++) {
			struct judge_value nothing = {
				kit_random(&judge->random),
				kit_random(&judge->random)};

			judge->input[pass][rank][chunk] =
				judge_has(judge, false, rank,
					  chunk / judge->n_pieces)
					? judge_leaf(pass, rank, chunk)
					: nothing;
			judge->output[pass][rank][chunk] = nothing;
		}
	}
}

/* Only what is in use: most of a judge lies idle. */
static inline void judge_init(struct judge *judge, const struct kit *kit)
{
	const struct sched *first = kit->scheds[0];
	uint32_t i, j;

	judge->kit = kit;
	judge->shape = &first->shape;
	judge->n_ranks = (uint32_t)kit->n_ranks;
	judge->n_lanes = first->n_lanes;
	judge->n_pieces = first->n_pieces;
	judge->n_chunks = first->n_chunks;
	assert_true(judge->n_ranks <= JUDGE_RANKS);
	assert_true(judge->n_chunks <= JUDGE_CHUNKS);
	judge->holes = 0;
	if (kit_below(&judge->random, 2)) {
		judge->holes = kit_random(&judge->random) | 1;
		judge->n_full = kit_below(&judge->random, 8);
	}
	judge->n_through = 0;
	judge->wrong = NULL;
	memset(judge->folds, 0, sizeof(judge->folds));
	for (i = 0; i < judge->n_ranks; i++) {
		judge->n_awaited[i] = 0;
		judge->is_through[i] = false;
		memset(judge->done[i], 0, sizeof(judge->done[i]));
		for (j = 0; j < judge->n_ranks; j++)
			memset(judge->queues[i][j], 0,
			       sizeof(judge->queues[i][j]));
		judge_fill(judge, i);
	}
}

static inline const char *judge_end(const struct judge *judge)
{
	uint32_t i, j, box;

	if (judge->n_through < judge->n_ranks)
		return "a lane is stuck";
	for (i = 0; i < judge->n_ranks; i++) {
		for (j = 0; j < judge->n_ranks; j++) {
			for (box = 0; box < JUDGE_BOXES; box++) {
				const struct judge_queue *queue =
					&judge->queues[i][j][box];

				if (queue->n_sent != queue->n_taken)
					return "a message is left over";
			}
		}
	}
	return judge->wrong;
}

/*
 * Run three passes in the order that @seed stands for; NULL when all is well.
 * The schedules' indices must be within their bounds.
 */
static inline const char *judge_run(const struct kit *kit, uint32_t n_slots,
				    bool in_place, uint64_t seed)
{
	static struct judge judge;
	uint32_t n, i, at;

	assert_true(n_slots <= JUDGE_SLOTS);
	judge.n_slots = n_slots;
	judge.in_place = in_place;
	judge.random = seed;
	judge_init(&judge, kit);
	n = judge.n_ranks * judge.n_lanes;
	while ((at = judge_choose(&judge)) < n) {
		uint32_t rank = at / judge.n_lanes;
		uint32_t lane = at % judge.n_lanes;
		/* Now and then a lane runs as far as it can. */
		uint32_t burst = 1 + kit_below(&judge.random, 4) *
					     kit_below(&judge.random, 3);

		while (burst-- && judge_can_run(&judge, rank, lane))
			judge_step(&judge, rank, lane);
		for (i = 0; i < judge.n_ranks; i++) {
			if (!judge.is_through[i] && judge_is_done(&judge, i))
				judge_through(&judge, i);
		}
		judge_land_some(&judge);
	}
	return judge_end(&judge);
}

#endif
