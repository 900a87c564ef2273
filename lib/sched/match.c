/* SPDX-License-Identifier: MIT */
/*
 * Who sends what to whom, found without running anything: a queue has one lane
 * that sends and one that takes, each in a fixed order, so that its k-th
 * message is known at both ends.
 */
#include <inttypes.h>

#include "verify.h"

static struct verify_queue *queue_of(const struct verify *verify,
				     uint32_t source, uint32_t target,
				     uint32_t lane)
{
	return &verify->queues[(target * verify->n_ranks + source) *
				       verify->n_lanes +
			       lane];
}

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
	verify->taken = base_alloc(n_taken, sizeof(*verify->taken));
	verify->sent = base_alloc(n_sent, sizeof(*verify->sent));
	verify->messages = base_alloc(n_sent, sizeof(*verify->messages));
	if (!verify->taken || !verify->sent || !verify->messages)
		return WREATH_ENOMEM;
	return 0;
}

static int count_node(const struct verify *verify, uint32_t at)
{
	const struct verify_node *node = &verify->nodes[at];
	const struct sched_step *step = node->step;
	struct verify_queue *queue;
	uint32_t i;

	for (i = 0; i < step->n_send; i++) {
		uint32_t peer = send_peers(verify, node)[i];

		queue = queue_of(verify, node->rank, peer, step->send_lane);
		if (queue->n_sent++ &&
		    verify->nodes[queue->from].lane != node->lane)
			return verify_refuse_node(
				verify, at,
				"sends to rank %" PRIu32 " lane %" PRIu32
				", as lane %" PRIu32 " does: nothing orders "
				"their messages",
				peer, step->send_lane,
				verify->nodes[queue->from].lane);
		queue->from = at;
	}
	for (i = 0; i < step->n_recv; i++) {
		queue = queue_of(verify, recv_peers(verify, node)[i],
				 node->rank, node->lane);
		queue->n_taken++;
		queue->to = at;
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
		uint32_t lane = i % verify->n_lanes;
		uint32_t source = i / verify->n_lanes % verify->n_ranks;
		uint32_t target = i / verify->n_lanes / verify->n_ranks;

		if (queue->n_sent > queue->n_taken)
			return verify_refuse_node(
				verify, queue->from,
				"rank %" PRIu32 " lane %" PRIu32
				" takes %" PRIu32 " of the %" PRIu32
				" messages sent a pass: one is left over",
				target, lane, queue->n_taken, queue->n_sent);
		if (queue->n_taken > queue->n_sent)
			return verify_refuse_node(
				verify, queue->to,
				"rank %" PRIu32 " sends %" PRIu32
				" of the %" PRIu32
				" messages awaited a pass: a deadlock",
				source, queue->n_sent, queue->n_taken);
		queue->message = message;
		message += queue->n_sent;
	}
	return 0;
}

static void match_node(struct verify *verify, uint32_t at)
{
	const struct verify_node *node = &verify->nodes[at];
	const struct sched_step *step = node->step;
	struct verify_queue *queue;
	uint32_t i, message;

	for (i = 0; i < step->n_send; i++) {
		queue = queue_of(verify, node->rank,
				 send_peers(verify, node)[i], step->send_lane);
		message = queue->message + queue->n_sent;
		verify->sent[node->sent + i] = message;
		verify->messages[message].from = at;
		verify->messages[message].queue =
			(uint32_t)(queue - verify->queues);
		verify->messages[message].at = queue->n_sent++;
	}
	for (i = 0; i < step->n_recv; i++) {
		queue = queue_of(verify, recv_peers(verify, node)[i],
				 node->rank, node->lane);
		message = queue->message + queue->n_taken++;
		verify->taken[node->taken + i] = message;
		verify->messages[message].to = at;
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

	if (from->step->chunk != to->step->chunk)
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

int verify_match(struct verify *verify)
{
	uint32_t i;
	int err = lay_out(verify);

	for (i = 0; !err && i < verify->n_nodes; i++)
		err = count_node(verify, i);
	if (!err)
		err = check_counts(verify);
	if (err)
		return err;
	/* Counted anew, each node finds its messages' places in the queues. */
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
