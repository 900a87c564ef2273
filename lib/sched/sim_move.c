/* SPDX-License-Identifier: MIT */
/* Messages on their way over the links, and the credit for them. */
#include <string.h>

#include "sim_run.h"

/* Bytes of a message that only gives credit. */
#define CREDIT_BYTES 64
/* A packet of the largest size that RDMA networks have. */
#define PACKET_BYTES 4096

/* Put the message on a link: when it begins to be served there. */
static uint64_t serve(struct sim_link *link, uint64_t ps, uint64_t bytes,
		      uint64_t *end_ps)
{
	uint64_t start = ps > link->free_ps ? ps : link->free_ps;
	uint64_t needs = sim_link_ps(link, bytes);

	link->free_ps = start + needs;
	link->busy_ps += needs;
	/* What comes by a slower link takes as long here. */
	if (start + needs > *end_ps)
		*end_ps = start + needs;
	return start;
}

/*
 * Credit is on its way when the packet is through that is being sent: ports
 * take turns with their queue pairs.
 */
static uint64_t serve_credit(struct sim_link *link, uint64_t ps)
{
	uint64_t turn = ps + sim_link_ps(link, PACKET_BYTES);
	uint64_t end_ps = 0;
	uint64_t start = serve(link, ps, CREDIT_BYTES, &end_ps);

	return start < turn ? end_ps : turn + sim_link_ps(link, CREDIT_BYTES);
}

static uint32_t new_message(struct sim *sim)
{
	uint32_t at = sim->free_message;
	uint32_t room = sim->n_messages ? sim->n_messages * 2 : 256;
	struct sim_message *messages;

	if (at != SIM_NONE) {
		sim->free_message = sim->messages[at].hop;
		return at;
	}
	messages = room < SIM_WHOM ? base_alloc(room, sizeof(*messages)) : NULL;
	if (!messages)
		return SIM_NONE;
	if (sim->n_messages)
		memcpy(messages, sim->messages,
		       sim->n_messages * sizeof(*messages));
	base_free(sim->messages);
	sim->messages = messages;
	for (at = sim->n_messages + 1; at < room; at++) {
		messages[at].hop = sim->free_message;
		sim->free_message = at;
	}
	at = sim->n_messages;
	sim->n_messages = room;
	return at;
}

void sim_send(struct sim *sim, const struct sim_rank *rank, uint32_t i_tx,
	      uint64_t bytes)
{
	struct sim_tx *tx = &sim->txs[i_tx];
	const uint32_t *path = &sim->paths[tx->path];
	struct sim_link *link = &sim->net.links[path[0]];
	struct sim_message message = {.bytes = bytes, .tx = i_tx, .hop = 1};
	uint64_t start;
	uint32_t at;

	if (sim->sent_traced)
		sim->sent_traced[tx->rx * sim->cut.window +
				 tx->n_sent % sim->cut.window] = rank->traced;
	tx->n_sent++;
	tx->n_out++;
	sim->n_sent++;
	start = serve(link, sim->queue.now_ps, bytes, &message.end_ps);
	start += link->latency_ps;
	message.end_ps += link->latency_ps;
	if (tx->is_straight) {
		serve(&sim->net.links[path[1]], start, bytes, &message.end_ps);
		sim_push(sim, message.end_ps, SIM_ARRIVED, tx->rx, 0);
		return;
	}
	at = new_message(sim);
	if (at == SIM_NONE) {
		sim->queue.is_short = true;
		return;
	}
	sim->messages[at] = message;
	sim_push(sim, start, SIM_HOP, at, 0);
}

void sim_hop(struct sim *sim, uint32_t at)
{
	struct sim_message *message = &sim->messages[at];
	const struct sim_tx *tx = &sim->txs[message->tx];
	struct sim_link *link =
		&sim->net.links[sim->paths[tx->path + message->hop]];
	uint64_t start = serve(link, sim->queue.now_ps, message->bytes,
			       &message->end_ps);

	if (++message->hop < tx->n_links) {
		message->end_ps += link->latency_ps;
		sim_push(sim, start + link->latency_ps, SIM_HOP, at, 0);
		return;
	}
	sim_push(sim, message->end_ps, SIM_ARRIVED, tx->rx, 0);
	message->hop = sim->free_message;
	sim->free_message = at;
}

void sim_consume(struct sim *sim, const struct sim_rank *rank,
		 const struct sim_step *step)
{
	uint32_t i;

	for (i = 0; i < step->n_recv; i++) {
		struct sim_rx *rx =
			&sim->rxs[rank->rx +
				  rank->class->lists[step->recv + i]];
		uint64_t left_ps;

		rx->n_waiting--;
		if (++rx->n_uncredited < sim->batch)
			continue;
		rx->n_uncredited -= sim->batch;
		left_ps = serve_credit(&sim->net.links[rx->back_link],
				       sim->queue.now_ps);
		sim_push(sim, left_ps + rx->back_ps, SIM_CREDIT, rx->tx,
			 rank->traced);
	}
}
