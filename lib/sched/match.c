/* SPDX-License-Identifier: MIT */
/*
 * Who sends what to whom, found without running anything: a queue has one lane
 * that sends and one that takes, each in a fixed order, so that its k-th
 * message is known at both ends.
 */
#include <inttypes.h>

#include "verify.h"

struct match {
	struct verify *verify;
	uint32_t *table; /* of queues, by hash; VERIFY_NONE is empty */
	uint32_t table_mask;
};

static const uint32_t *recv_peers(const struct verify *verify,
				  const struct verify_node *node)
{
	return verify->scheds[node->rank]->peers + node->step->recv;
}

static const uint32_t *send_peers(const struct verify *verify,
				  const struct verify_node *node)
{
	return verify->scheds[node->rank]->peers + node->step->send;
}

/* Where what the step works on comes from and goes to decides its cell. */
static uint32_t cell_of(const struct verify *verify,
			const struct sched_step *step, uint32_t rank)
{
	uint32_t block = verify_block(verify, step);

	if (!verify->is_crossing)
		return step->chunk;
	if (step->local == SCHED_INPUT)
		return rank * verify->n_chunks + step->chunk;
	return block * verify->n_chunks + rank * verify->n_pieces +
	       step->chunk % verify->n_pieces;
}

/* Nodes and lanes; how many entries the lists of peers have together. */
static int lay_out(struct verify *verify)
{
	uint64_t n_taken = 0;
	uint64_t n_sent = 0;
	uint32_t at = 0;
	uint32_t i, j;

	for (i = 0; i < verify->n_ranks * verify->n_lanes; i++) {
		uint32_t rank = i / verify->n_lanes;
		const struct sched *sched = verify->scheds[rank];
		const struct sched_lane *lane =
			&sched->lanes[i % verify->n_lanes];

		verify->lanes[i].node = at;
		verify->lanes[i].n_steps = lane->n_steps;
		for (j = 0; j < lane->n_steps; j++) {
			struct verify_node *node = &verify->nodes[at++];

			node->step = &sched->steps[lane->step + j];
			node->rank = rank;
			node->lane = i % verify->n_lanes;
			node->at = j;
			node->cell = cell_of(verify, node->step, rank);
			node->taken = (uint32_t)n_taken;
			node->sent = (uint32_t)n_sent;
			n_taken += node->step->n_recv;
			n_sent += node->step->n_send;
			if (n_taken > VERIFY_MAX || n_sent > VERIFY_MAX)
				return base_error(WREATH_EINVAL,
						  "more than %u messages a "
						  "pass", VERIFY_MAX);
		}
	}
	verify->n_messages = (uint32_t)n_sent;
	verify->n_taken = (uint32_t)n_taken;
	verify->taken = base_alloc(n_taken, sizeof(*verify->taken));
	verify->sent = base_alloc(n_sent, sizeof(*verify->sent));
	verify->messages = base_alloc(n_sent, sizeof(*verify->messages));
	if (!verify->taken || !verify->sent || !verify->messages)
		return WREATH_ENOMEM;
	return 0;
}

/* A table that is never more than half full, and as many queues. */
static int match_init(struct match *match, struct verify *verify)
{
	uint64_t n_ends = (uint64_t)verify->n_messages + verify->n_taken;
	uint64_t n_table = 2;
	uint64_t i;

	while (n_table < 2 * n_ends)
		n_table *= 2;
	match->verify = verify;
	match->table_mask = (uint32_t)(n_table - 1);
	match->table = base_alloc(n_table, sizeof(*match->table));
	verify->queues = base_alloc(n_ends, sizeof(*verify->queues));
	if (!match->table || !verify->queues)
		return WREATH_ENOMEM;
	for (i = 0; i < n_table; i++)
		match->table[i] = VERIFY_NONE;
	return 0;
}

static uint32_t box_of(const struct verify *verify, uint32_t lane)
{
	const struct sched_lane *lanes = verify->scheds[0]->lanes;

	return lanes[lane].channel * SCHED_BOXES + lanes[lane].box;
}

/*
 * The queue from @source into the box of @target's @lane, which a lane sharing
 * the box may have made.
 */
static uint32_t queue_of(struct match *match, uint32_t source, uint32_t target,
			 uint32_t lane)
{
	struct verify *verify = match->verify;
	uint32_t box = box_of(verify, lane);
	uint64_t key = ((uint64_t)source * verify->n_ranks + target) *
			       (SCHED_CHANNELS_MAX * SCHED_BOXES) + box;
	uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32);
	struct verify_queue *queue;

	for (at &= match->table_mask; match->table[at] != VERIFY_NONE;
	     at = (at + 1) & match->table_mask) {
		queue = &verify->queues[match->table[at]];
		if (queue->source == source && queue->target == target &&
		    box_of(verify, queue->lane) == box)
			return match->table[at];
	}
	match->table[at] = verify->n_queues;
	queue = &verify->queues[verify->n_queues];
	queue->source = source;
	queue->target = target;
	queue->lane = lane;
	return verify->n_queues++;
}

static int refuse_box(const struct verify *verify, uint32_t at,
		      const struct verify_queue *queue, uint32_t lane)
{
	return verify_refuse_node(
		verify, at,
		"lanes %" PRIu32 " and %" PRIu32 " of rank %" PRIu32
		" both take from rank %" PRIu32 " in box %" PRIu32
		" of channel %" PRIu32,
		queue->lane, lane, queue->target, queue->source,
		verify->scheds[0]->lanes[lane].box,
		verify->scheds[0]->lanes[lane].channel);
}

static int count_sends(struct match *match, uint32_t at)
{
	struct verify *verify = match->verify;
	const struct verify_node *node = &verify->nodes[at];
	uint32_t lane = node->step->send_lane;
	uint32_t i;

	for (i = 0; i < node->step->n_send; i++) {
		uint32_t peer = send_peers(verify, node)[i];
		uint32_t found = queue_of(match, node->rank, peer, lane);
		struct verify_queue *queue = &verify->queues[found];

		if (queue->lane != lane)
			return refuse_box(verify, at, queue, lane);
		if (queue->n_sent++ &&
		    verify->nodes[queue->from].lane != node->lane)
			return verify_refuse_node(
				verify, at,
				"sends to rank %" PRIu32 " lane %" PRIu32
				", as lane %" PRIu32 " does: nothing orders "
				"their messages",
				peer, lane, verify->nodes[queue->from].lane);
		queue->from = at;
		verify->sent[node->sent + i] = found;
	}
	return 0;
}

static int count_takes(struct match *match, uint32_t at)
{
	struct verify *verify = match->verify;
	const struct verify_node *node = &verify->nodes[at];
	uint32_t i;

	for (i = 0; i < node->step->n_recv; i++) {
		uint32_t found = queue_of(match, recv_peers(verify, node)[i],
					  node->rank, node->lane);
		struct verify_queue *queue = &verify->queues[found];

		if (queue->lane != node->lane)
			return refuse_box(verify, at, queue, node->lane);
		queue->n_taken++;
		queue->to = at;
		verify->taken[node->taken + i] = found;
	}
	return 0;
}

/*
 * As many taken as sent in each pass, so that the k-th taken is the k-th sent
 * of the same pass, and a pass leaves nothing for the next.
 */
static int check_counts(const struct verify *verify)
{
	uint32_t message = 0;
	uint32_t i;

	for (i = 0; i < verify->n_queues; i++) {
		struct verify_queue *queue = &verify->queues[i];

		if (queue->n_sent > queue->n_taken)
			return verify_refuse_node(
				verify, queue->from,
				"rank %" PRIu32 " lane %" PRIu32
				" takes %" PRIu32 " of the %" PRIu32
				" messages sent a pass: one is left over",
				queue->target, queue->lane, queue->n_taken,
				queue->n_sent);
		if (queue->n_taken > queue->n_sent)
			return verify_refuse_node(
				verify, queue->to,
				"rank %" PRIu32 " sends %" PRIu32
				" of the %" PRIu32
				" messages awaited a pass: a deadlock",
				queue->source, queue->n_sent, queue->n_taken);
		queue->message = message;
		message += queue->n_sent;
	}
	return 0;
}

/* From queues to the messages in them, counted anew. */
static void match_node(struct verify *verify, uint32_t at)
{
	const struct verify_node *node = &verify->nodes[at];
	uint32_t i;

	for (i = 0; i < node->step->n_send; i++) {
		uint32_t *sent = &verify->sent[node->sent + i];
		struct verify_queue *queue = &verify->queues[*sent];
		struct verify_message *message =
			&verify->messages[queue->message + queue->n_sent];

		message->from = at;
		message->queue = *sent;
		message->at = queue->n_sent;
		*sent = queue->message + queue->n_sent++;
	}
	for (i = 0; i < node->step->n_recv; i++) {
		uint32_t *taken = &verify->taken[node->taken + i];
		struct verify_queue *queue = &verify->queues[*taken];

		*taken = queue->message + queue->n_taken++;
		verify->messages[*taken].to = at;
	}
}

static int check_input(const struct verify *verify,
		       const struct verify_message *message)
{
	const struct verify_node *from = &verify->nodes[message->from];
	const struct verify_node *to = &verify->nodes[message->to];
	bool sent = from->step->flags & SCHED_SEND_INPUT;
	bool taken = to->step->flags & SCHED_RECV_INPUT;

	if (sent != taken)
		return verify_refuse_node(
			verify, message->to,
			"takes chunk %" PRIu32 " as %s, rank %" PRIu32
			" lane %" PRIu32 " step %" PRIu32 " sends it as %s",
			to->step->chunk, taken ? "raw input" : "a message",
			from->rank, from->lane, from->at,
			sent ? "raw input" : "a message");
	return 0;
}

static int check_message(const struct verify *verify,
			 const struct verify_message *message)
{
	const struct verify_node *from = &verify->nodes[message->from];
	const struct verify_node *to = &verify->nodes[message->to];
	bool sent_final = from->step->flags & SCHED_SEND_FINAL;
	bool taken_final = to->step->flags & SCHED_RECV_FINAL;

	if (from->cell != to->cell)
		return verify_refuse_node(
			verify, message->to,
			"works on chunk %" PRIu32 ", but what it takes is "
			"chunk %" PRIu32 " of rank %" PRIu32 " lane %" PRIu32
			" step %" PRIu32,
			to->step->chunk, from->step->chunk, from->rank,
			from->lane, from->at);
	if (sent_final != taken_final)
		return verify_refuse_node(
			verify, message->to,
			"takes chunk %" PRIu32 " as %s, rank %" PRIu32
			" lane %" PRIu32 " step %" PRIu32 " sends it as %s",
			to->step->chunk, taken_final ? "final" : "a message",
			from->rank, from->lane, from->at,
			sent_final ? "final" : "a message");
	return check_input(verify, message);
}

static int match_all(struct match *match)
{
	struct verify *verify = match->verify;
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < verify->n_nodes; i++) {
		err = count_sends(match, i);
		if (!err)
			err = count_takes(match, i);
	}
	if (!err)
		err = check_counts(verify);
	if (err)
		return err;
	for (i = 0; i < verify->n_queues; i++) {
		verify->queues[i].n_sent = 0;
		verify->queues[i].n_taken = 0;
	}
	for (i = 0; i < verify->n_nodes; i++)
		match_node(verify, i);
	for (i = 0; !err && i < verify->n_messages; i++)
		err = check_message(verify, &verify->messages[i]);
	return err;
}

int verify_match(struct verify *verify)
{
	struct match match = {0};
	int err = lay_out(verify);

	if (!err)
		err = match_init(&match, verify);
	if (!err)
		err = match_all(&match);
	base_free(match.table);
	return err;
}
