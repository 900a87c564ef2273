/* SPDX-License-Identifier: MIT */
/*
 * A run of the schedules of all ranks, with as many slots as asked for, and
 * what can be counted on the way: messages, the longest chain of them, which
 * chunk crossed which link.  Passes beyond the first may leave out the messages
 * of blocks that are empty.
 *
 * It knows nothing of races; the verifier does.
 */
#ifndef SCHED_WALK_H
#define SCHED_WALK_H

#include "sched_forms.h"

static inline bool forms_is_empty(const struct forms *forms, uint32_t pass,
				  uint32_t rank, const struct sched_step *step)
{
	uint32_t from = step->chunk / forms->n_pieces;
	uint32_t to = 0;

	if (!forms->absent || !pass)
		return false;
	if (forms->shape.collective == SCHED_ALL_TO_ALL ||
	    forms->shape.collective == SCHED_EXCHANGE) {
		to = rank;
		if (!step->n_recv) {
			to = from;
			from = rank;
		}
	}
	return kit_mix(forms->absent + (pass << 16 | from << 8 | to)) & 1;
}

static inline bool forms_can_run(const struct forms *forms, uint32_t rank,
				 uint32_t lane, const struct sched_step *step)
{
	const struct sched *sched = forms->scheds[rank];
	uint32_t pass = forms->done[rank][lane] / sched->lanes[lane].n_steps;
	const struct forms_queue *queue;
	uint32_t i;

	for (i = 0; i < step->n_recv; i++) {
		queue = &forms->queues[sched->peers[step->recv + i]][rank]
				      [lane];
		if (queue->n_sent == queue->n_taken)
			return false;
	}
	for (i = 0; i < step->n_send; i++) {
		queue = &forms->queues[rank][sched->peers[step->send + i]]
				      [step->send_lane];
		if (queue->n_sent - queue->n_taken == forms->n_slots)
			return false;
	}
	if (step->after_lane < 0)
		return true;
	i = sched->lanes[step->after_lane].n_steps;
	return forms->done[rank][step->after_lane] >
	       pass * i + (uint32_t)step->after_step;
}

static inline uint64_t forms_take(struct forms *forms, uint32_t rank,
				  uint32_t lane, const struct sched_step *step,
				  uint32_t peer, uint32_t pass)
{
	struct forms_queue *queue = &forms->queues[peer][rank][lane];
	const struct forms_message *message =
		&queue->slots[queue->n_taken++ % forms->n_slots];
	uint32_t *reached = &forms->reached[rank][lane];

	if (message->depth + 1 > *reached)
		*reached = message->depth + 1;
	if (!pass && *reached > forms->depth)
		forms->depth = *reached;
	assert_int_equal(!(message->flags & SCHED_SEND_INPUT),
			 !(step->flags & SCHED_RECV_INPUT));
	assert_int_equal(!(message->flags & SCHED_SEND_FINAL),
			 !(step->flags & SCHED_RECV_FINAL));
	if (!sched_is_paired(forms->shape.collective))
		assert_int_equal(message->chunk, step->chunk);
	return message->value;
}

static inline void forms_send(struct forms *forms, uint32_t rank,
			      uint32_t lane, const struct sched_step *step,
			      uint64_t value, uint32_t pass)
{
	const uint32_t *peers = forms->scheds[rank]->peers + step->send;
	uint32_t i;

	for (i = 0; i < step->n_send; i++) {
		struct forms_queue *queue =
			&forms->queues[rank][peers[i]][step->send_lane];

		queue->slots[queue->n_sent++ % forms->n_slots] =
			(struct forms_message){
				value, step->chunk,
				forms->reached[rank][lane], step->flags};
		if (pass)
			continue;
		forms->n_messages++;
		forms->n_sent[rank]++;
		forms->crossed[rank][peers[i]][step->chunk]++;
	}
}

static inline void forms_step(struct forms *forms, uint32_t rank,
			      uint32_t lane, const struct sched_step *step,
			      uint32_t pass)
{
	const struct sched *sched = forms->scheds[rank];
	int block = (int)(step->chunk / forms->n_pieces);
	uint64_t value = 0;
	uint32_t n = 0;
	uint32_t i;

	if (step->local)
		assert_true(sched_has_input(&forms->shape, (int)rank, block));
	assert_int_not_equal(step->local, SCHED_OUTPUT);
	for (i = 0; i <= step->n_recv; i++) {
		uint64_t leaf = forms_leaf(rank, step->chunk);

		if (step->local && i == step->local_at)
			value = n++ ? forms_fold(value, leaf) : leaf;
		if (i == step->n_recv)
			break;
		leaf = forms_take(forms, rank, lane, step,
				  sched->peers[step->recv + i], pass);
		value = n++ ? forms_fold(value, leaf) : leaf;
	}
	if (step->flags & SCHED_STORE) {
		assert_true(sched_has_output(&forms->shape, (int)rank, block));
		assert_int_equal(forms->output[pass][rank][step->chunk], 0);
		forms->output[pass][rank][step->chunk] = value;
	}
	forms_send(forms, rank, lane, step, value, pass);
}

/* As far as the lane can go: the number of steps. */
static inline uint32_t forms_advance(struct forms *forms, uint32_t rank,
				     uint32_t lane)
{
	const struct sched *sched = forms->scheds[rank];
	uint32_t n_steps = sched->lanes[lane].n_steps;
	uint32_t *done = &forms->done[rank][lane];
	uint32_t n = 0;

	while (*done < n_steps * forms->n_passes) {
		const struct sched_step *step =
			&sched->steps[sched->lanes[lane].step +
				      *done % n_steps];
		uint32_t pass = *done / n_steps;

		if (*done % n_steps == 0)
			forms->reached[rank][lane] = 0;
		if (!forms_is_empty(forms, pass, rank, step)) {
			if (!forms_can_run(forms, rank, lane, step))
				break;
			forms_step(forms, rank, lane, step, pass);
		}
		++*done;
		n++;
	}
	return n;
}

/* What the collective's definition wants in the output. */
static inline uint64_t forms_wanted(const struct forms *forms, uint32_t rank,
				    uint32_t chunk)
{
	uint32_t root = (uint32_t)forms->shape.root;
	uint32_t block = chunk / forms->n_pieces;
	uint64_t value;
	uint32_t i;

	switch (forms->shape.collective) {
	case SCHED_BROADCAST:
	case SCHED_SCATTER:
		return forms_leaf(root, chunk);
	case SCHED_ALL_GATHER:
	case SCHED_GATHER:
		return forms_leaf(block, chunk);
	case SCHED_ALL_TO_ALL:
	case SCHED_EXCHANGE:
		return forms_leaf(block, rank * forms->n_pieces +
						 chunk % forms->n_pieces);
	default:
		value = forms_leaf(forms->nth(forms, chunk, 0), chunk);
		for (i = 1; i < (uint32_t)forms->shape.n_ranks; i++)
			value = forms_fold(
				value,
				forms_leaf(forms->nth(forms, chunk, i), chunk));
		return value;
	}
}

static inline void forms_check_output(const struct forms *forms, uint32_t pass,
				      uint32_t rank, uint32_t chunk)
{
	bool wanted = sched_has_output(&forms->shape, (int)rank,
				       (int)(chunk / forms->n_pieces));
	uint64_t value = forms->output[pass][rank][chunk];

	if (wanted && !value && forms->absent && pass)
		return;
	if (value != (wanted ? forms_wanted(forms, rank, chunk) : 0))
		fail_msg("%s %s of %d ranks, root %d, %d channels: rank %u "
			 "chunk %u is wrong",
			 sched_algo_name(forms->shape.algo),
			 sched_collective_name(forms->shape.collective),
			 forms->shape.n_ranks, forms->shape.root,
			 forms->shape.n_channels, rank, chunk);
}

/* Run to the end, which must come, and check all outputs. */
static inline void forms_run(struct forms *forms)
{
	uint32_t n = (uint32_t)forms->shape.n_ranks;
	uint32_t rank, i, moved;

	forms->n_messages = 0;
	forms->depth = 0;
	memset(forms->n_sent, 0, sizeof(forms->n_sent));
	memset(forms->crossed, 0, sizeof(forms->crossed));
	memset(forms->done, 0, sizeof(forms->done));
	memset(forms->output, 0, sizeof(forms->output));
	memset(forms->queues, 0, n * sizeof(forms->queues[0]));
	do {
		moved = 0;
		for (rank = 0; rank < n; rank++) {
			for (i = 0; i < forms->n_lanes; i++)
				moved += forms_advance(forms, rank, i);
		}
	} while (moved);
	for (rank = 0; rank < n; rank++) {
		for (i = 0; i < forms->n_lanes; i++)
			assert_int_equal(forms->done[rank][i],
					 forms->scheds[rank]->lanes[i].n_steps *
						 forms->n_passes);
		for (i = 0; i < forms->n_passes * forms->n_chunks; i++)
			forms_check_output(forms, i / forms->n_chunks, rank,
					   i % forms->n_chunks);
	}
	for (i = 0; i < n * n * forms->n_lanes; i++) {
		const struct forms_queue *queue =
			&forms->queues[i / forms->n_lanes / n]
				      [i / forms->n_lanes % n]
				      [i % forms->n_lanes];

		assert_int_equal(queue->n_sent, queue->n_taken);
	}
}

/* The busiest rank's messages in a pass. */
static inline uint32_t forms_busiest(const struct forms *forms)
{
	uint32_t most = 0;
	int i;

	for (i = 0; i < forms->shape.n_ranks; i++)
		if (forms->n_sent[i] > most)
			most = forms->n_sent[i];
	return most;
}

#endif
