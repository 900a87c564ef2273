/* SPDX-License-Identifier: MIT */
/*
 * Sends and receives.  Those of a group run in rounds: a round has of each peer
 * at most one message to it and one from it, in the order of the calls.  The
 * n-th message between two ranks, in one direction, is in the n-th round at
 * both, and within a round any pattern works; so do the rounds.
 */
#include <string.h>

#include "comm/inner.h"

/* What this rank and a peer have said to each other, for the end. */
struct comm_talk {
	uint64_t n_sent, n_received;
};

/* One round, in comm->lists: addresses and lengths by peer. */
struct round {
	size_t *in_at, *in_bytes, *out_at, *out_bytes;
	size_t longest;
	bool is_empty;
};

static int round_init(struct wreath_comm *comm, struct round *round)
{
	size_t n = (size_t)comm->n_ranks;
	size_t i;

	if (!comm->lists)
		comm->lists = base_alloc(4 * n, sizeof(*comm->lists));
	if (!comm->talks)
		comm->talks = base_alloc(n, sizeof(*comm->talks));
	if (!comm->lists || !comm->talks)
		return WREATH_ENOMEM;
	round->in_at = comm->lists;
	round->in_bytes = round->in_at + n;
	round->out_at = round->in_bytes + n;
	round->out_bytes = round->out_at + n;
	round->longest = 0;
	round->is_empty = true;
	for (i = 0; i < n; i++) {
		round->in_bytes[i] = EXEC_ABSENT;
		round->out_bytes[i] = EXEC_ABSENT;
	}
	return 0;
}

/* False when the round has such a message already. */
static bool round_add(struct round *round, const struct comm_op *op)
{
	size_t bytes = op->count * wreath_type_size(op->type);
	size_t *lengths = op->send ? round->in_bytes : round->out_bytes;
	size_t *places = op->send ? round->in_at : round->out_at;

	if (lengths[op->root] != EXEC_ABSENT)
		return false;
	lengths[op->root] = bytes;
	places[op->root] = (uintptr_t)(op->send ? op->send : op->recv);
	if (bytes > round->longest)
		round->longest = bytes;
	round->is_empty = false;
	return true;
}

static int self_differs(const struct wreath_comm *comm, size_t in, size_t out)
{
	if (in == EXEC_ABSENT || out == EXEC_ABSENT)
		return base_error(WREATH_EINVAL,
				  "%s %s itself without a %s in the same group",
				  comm->names[comm->rank],
				  in == EXEC_ABSENT ? "receives from"
						    : "sends to",
				  in == EXEC_ABSENT ? "send" : "receive");
	return base_error(WREATH_EINVAL,
			  "%s sends itself %zu bytes and receives %zu",
			  comm->names[comm->rank], in, out);
}

/* On every channel: a collective may have needed some of them only. */
static bool is_connected(const struct wreath_comm *comm, int peer)
{
	int c;

	for (c = 0; c < comm->net->n_channels; c++)
		if (!net_conn(comm->net, peer, c))
			return false;
	return true;
}

static int connect_for(struct wreath_comm *comm, const struct round *round,
		       struct exec_plan *plan)
{
	bool *peers = NULL;
	int err = 0;
	int i;

	for (i = 0; i < comm->n_ranks && !err; i++) {
		if (i == comm->rank || is_connected(comm, i) ||
		    (round->in_bytes[i] == EXEC_ABSENT &&
		     round->out_bytes[i] == EXEC_ABSENT))
			continue;
		if (!peers)
			peers = base_alloc((size_t)comm->n_ranks,
					   sizeof(*peers));
		if (!peers)
			return WREATH_ENOMEM;
		peers[i] = true;
	}
	if (peers)
		err = comm_connect_pairs(comm, peers);
	base_free(peers);
	/* Others may have been connected by a collective since. */
	if (!err)
		exec_plan_renew(plan);
	return err;
}

static void count_round(struct wreath_comm *comm, const struct round *round)
{
	int i;

	for (i = 0; i < comm->n_ranks; i++) {
		comm->talks[i].n_sent += round->in_bytes[i] != EXEC_ABSENT;
		comm->talks[i].n_received +=
			round->out_bytes[i] != EXEC_ABSENT;
	}
}

static int run_round(struct wreath_comm *comm, const struct round *round)
{
	size_t in = round->in_bytes[comm->rank];
	size_t out = round->out_bytes[comm->rank];
	struct exec_args args = {
		.in = {.at = round->in_at, .bytes = round->in_bytes},
		.out = {.at = round->out_at, .bytes = round->out_bytes},
		.longest = round->longest,
		.elem_bytes = 1,
		.fold = mem_fold(WREATH_UINT8, WREATH_SUM),
		.sign = {.collective = SCHED_EXCHANGE, .algo = SCHED_DIRECT},
	};
	struct exec_plan *plan;
	int err;

	if (in != out)
		return self_differs(comm, in, out);
	err = comm_plan(comm, comm->net->n_channels, &args.sign, &plan);
	if (!err)
		err = connect_for(comm, round, plan);
	if (!err)
		err = exec_run(plan, &args);
	if (!err)
		count_round(comm, round);
	return err;
}

int comm_exchange_run(const struct comm_op *op)
{
	const struct comm_exchange *all = op->exchange;
	struct wreath_comm *comm = op->comm;
	struct round round;
	size_t n_done = 0;
	bool *done;
	size_t i;
	int err;

	if (!all) {
		err = round_init(comm, &round);
		if (err)
			return err;
		round_add(&round, op);
		return run_round(comm, &round);
	}
	done = base_alloc(all->n, sizeof(*done));
	err = done ? 0 : WREATH_ENOMEM;
	while (!err && n_done < all->n) {
		err = round_init(comm, &round);
		for (i = 0; i < all->n && !err; i++) {
			if (done[i])
				continue;
			done[i] = round_add(&round, &all->ops[i]);
			n_done += done[i];
		}
		if (!err)
			err = run_round(comm, &round);
	}
	base_free(done);
	return err;
}

/* The n-th send goes to the n-th receive. */
int comm_exchange_alone(const struct comm_op *op)
{
	const struct comm_exchange *all = op->exchange;
	size_t from = 0;
	size_t to = 0;

	if (!all)
		return self_differs(op->comm, op->send ? 0 : EXEC_ABSENT,
				    op->send ? EXEC_ABSENT : 0);
	for (;; from++, to++) {
		const struct comm_op *send, *recv;
		size_t in, out;

		while (from < all->n && !all->ops[from].send)
			from++;
		while (to < all->n && all->ops[to].send)
			to++;
		if (from == all->n && to == all->n)
			return 0;
		if (from == all->n || to == all->n)
			return self_differs(op->comm,
					    from == all->n ? EXEC_ABSENT : 0,
					    to == all->n ? EXEC_ABSENT : 0);
		send = &all->ops[from];
		recv = &all->ops[to];
		in = send->count * wreath_type_size(send->type);
		out = recv->count * wreath_type_size(recv->type);
		if (in != out)
			return self_differs(op->comm, in, out);
		if (in)
			memmove(recv->recv, send->send, in);
	}
}

/* ---- the end ---- */

static int not_received(const struct wreath_comm *comm, int peer,
			uint64_t n_sent)
{
	return base_error(WREATH_EMISMATCH,
			  "%s has sent %llu messages to %s, which has received "
			  "%llu of them; each wreath_send() needs its "
			  "wreath_recv()", comm->names[peer],
			  (unsigned long long)n_sent, comm->names[comm->rank],
			  (unsigned long long)comm->talks[peer].n_received);
}

/* Each two ranks tell each other; one of them finds what is missing. */
static int find_missing(struct wreath_comm *comm)
{
	int err = 0;
	int i;

	for (i = 0; i < comm->n_ranks && !err; i++)
		err = boot_send(comm->boot, i, &comm->talks[i].n_sent,
				sizeof(comm->talks[i].n_sent));
	for (i = 0; i < comm->n_ranks && !err; i++) {
		uint64_t n_sent;

		err = boot_recv(comm->boot, i, &n_sent, sizeof(n_sent));
		if (!err && n_sent != comm->talks[i].n_received)
			err = not_received(comm, i, n_sent);
	}
	/* Who has found nothing hears of it here. */
	return err ? err : boot_all_gather(comm->boot, NULL, 0, NULL);
}

uint64_t comm_exchange_sum(const struct wreath_comm *comm)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < comm->n_ranks && comm->talks; i++)
		sum += comm->talks[i].n_sent - comm->talks[i].n_received;
	return sum;
}

int comm_exchange_end(struct wreath_comm *comm)
{
	if (!comm->talks)
		comm->talks = base_alloc((size_t)comm->n_ranks,
					 sizeof(*comm->talks));
	return comm->talks ? find_missing(comm) : WREATH_ENOMEM;
}
