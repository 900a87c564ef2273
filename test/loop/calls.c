/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "test/loop/calls.h"

static const char *const names[N_CALLS] = {
	"all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather",
	"gather", "scatter", "all_to_all", "all_gather_v", "reduce_scatter_v",
	"all_to_all_v", "messages", "barrier"};

static bool folds(enum call call)
{
	return call == ALL_REDUCE || call == REDUCE || call == REDUCE_SCATTER ||
	       call == REDUCE_SCATTER_V;
}

void calls_draw(struct rank *rank, uint64_t *state,
		const struct calls_plan *plan, struct trial_call *c)
{
	int n = rank->n_ranks;
	size_t gap = ranks_random(state) % 3;
	int i, j;

	memset(c, 0, sizeof(*c));
	c->call = plan->only >= 0 ? (enum call)plan->only
				  : (enum call)(ranks_random(state) % N_CALLS);
	c->model.type = (enum wreath_type)(ranks_random(state) %
					   WREATH_N_TYPES);
	c->model.op = (enum wreath_op)(ranks_random(state) % WREATH_N_OPS);
	c->model.kind = MODEL_EXACT;
	c->model.n_ranks = n;
	c->model.seed = ranks_random(state);
	c->in_place = ranks_random(state) % 2;
	c->root = (int)(ranks_random(state) % (uint64_t)n);
	c->count = trial_count(state, plan->bytes / (size_t)n);
	for (i = 0; i < n; i++)
		for (j = 0; j < n; j++)
			c->counts[i][j] =
				ranks_random(state) % 3
					? trial_count(state, plan->bytes /
							     (size_t)(n * 2))
					: 0;
	for (i = 0; i < n; i++) {
		c->displs[i] = c->total;
		c->total += c->counts[0][i] + gap;
	}
}

/* Block @block of @rank's input: a vector of its own. */
static void fill(const struct trial_call *c, int rank, int block, char *out,
		 size_t count)
{
	struct model model = c->model;

	model.seed += (uint64_t)block * 7919;
	model_fill(&model, rank, out, count);
}

static int check_fold(struct rank *rank, const struct trial_call *c, int block,
		      const char *got, size_t count)
{
	struct model model = c->model;
	char text[256];

	model.seed += (uint64_t)block * 7919;
	if (model_check(&model, got, count, text))
		return 0;
	return rank_broken(rank, "%s root %d count %zu block %d%s: %s",
			   names[c->call], c->root, count, block,
			   c->in_place ? " in place" : "", text);
}

static int check_copy(struct rank *rank, const struct trial_call *c, int from,
		      int block, const char *got, size_t count)
{
	size_t bytes = count * wreath_type_size(c->model.type);
	char *want = malloc(bytes + 1);
	int err = 0;

	fill(c, from, block, want, count);
	if (memcmp(want, got, bytes))
		err = rank_broken(rank,
				  "%s root %d count %zu%s: block %d of rank %d "
				  "came wrong", names[c->call], c->root, count,
				  c->in_place ? " in place" : "", block, from);
	free(want);
	return err;
}

struct buffers {
	struct buffer from, to;
	char *send, *recv;
};

static int buffers_new(struct rank *rank, uint64_t *own, size_t send,
		       size_t recv, struct buffers *b)
{
	int err = buffer_new(rank,
			     (enum buffer_kind)(ranks_random(own) %
						BUFFER_N_KINDS),
			     send, 0, &b->from);

	if (!err)
		err = buffer_new(rank,
				 (enum buffer_kind)(ranks_random(own) %
						    BUFFER_N_KINDS),
				 recv, 0, &b->to);
	if (err)
		return err;
	b->send = b->from.data;
	b->recv = b->to.data;
	return 0;
}

static int buffers_free(struct rank *rank, struct buffers *b)
{
	int err = buffer_free(rank, &b->from);

	return err ? err : buffer_free(rank, &b->to);
}

/* Collectives of one vector. */
static int run_vector(struct rank *rank, uint64_t *own, struct trial_call *c)
{
	size_t bytes = c->count * wreath_type_size(c->model.type);
	struct buffers b;
	int err = buffers_new(rank, own, bytes, bytes, &b);

	if (err)
		return err;
	if (c->in_place)
		b.send = b.recv;
	if (folds(c->call) || rank->rank == c->root)
		fill(c, rank->rank, 0, b.send, c->count);
	if (c->call == ALL_REDUCE)
		err = wreath_all_reduce(b.send, b.recv, c->count, c->model.type,
					c->model.op, rank->comm, NULL);
	else if (c->call == REDUCE)
		err = wreath_reduce(b.send, b.recv, c->count, c->model.type,
				    c->model.op, c->root, rank->comm, NULL);
	else
		err = wreath_broadcast(b.send, b.recv, c->count, c->model.type,
				       c->root, rank->comm, NULL);
	if (err)
		return err;
	if (c->call == BROADCAST)
		err = check_copy(rank, c, c->root, 0, b.recv, c->count);
	else if (c->call == ALL_REDUCE || rank->rank == c->root)
		err = check_fold(rank, c, 0, b.recv, c->count);
	return err ? err : buffers_free(rank, &b);
}

/* Collectives with a block a rank, all of one length. */
static int call_even(struct rank *rank, const struct trial_call *c, char *send,
		     char *recv)
{
	enum wreath_type type = c->model.type;

	switch (c->call) {
	case REDUCE_SCATTER:
		return wreath_reduce_scatter(send, recv, c->count, type,
					     c->model.op, rank->comm, NULL);
	case ALL_GATHER:
		return wreath_all_gather(send, recv, c->count, type, rank->comm,
					 NULL);
	case GATHER:
		return wreath_gather(send, recv, c->count, type, c->root,
				     rank->comm, NULL);
	case SCATTER:
		return wreath_scatter(send, recv, c->count, type, c->root,
				      rank->comm, NULL);
	default:
		return wreath_all_to_all(send, recv, c->count, type, rank->comm,
					 NULL);
	}
}

static bool sends_all(enum call call)
{
	return call == REDUCE_SCATTER || call == SCATTER || call == ALL_TO_ALL;
}

static bool gets_all(enum call call)
{
	return call == ALL_GATHER || call == GATHER || call == ALL_TO_ALL;
}

static int check_even(struct rank *rank, const struct trial_call *c,
		      const char *recv)
{
	size_t bytes = c->count * wreath_type_size(c->model.type);
	int err = 0;
	int i;

	if (c->call == REDUCE_SCATTER)
		return check_fold(rank, c, rank->rank, recv, c->count);
	if (c->call == SCATTER)
		return check_copy(rank, c, c->root, rank->rank, recv, c->count);
	if (c->call == GATHER && rank->rank != c->root)
		return 0;
	for (i = 0; i < rank->n_ranks && !err; i++)
		err = check_copy(rank, c, i,
				 c->call == ALL_TO_ALL ? rank->rank : 0,
				 recv + (size_t)i * bytes, c->count);
	return err;
}

static int run_even(struct rank *rank, uint64_t *own, struct trial_call *c)
{
	size_t n = (size_t)rank->n_ranks;
	size_t bytes = c->count * wreath_type_size(c->model.type);
	size_t mine = (size_t)rank->rank * bytes;
	struct buffers b;
	int err;
	int i;

	if (c->call == ALL_TO_ALL)
		c->in_place = false;
	err = buffers_new(rank, own, sends_all(c->call) ? n * bytes : bytes,
			  gets_all(c->call) ? n * bytes : bytes, &b);
	if (err)
		return err;
	if (c->in_place && gets_all(c->call))
		b.send = b.recv + mine;
	else if (c->in_place)
		b.recv = b.send + mine;
	for (i = 0; i < rank->n_ranks && sends_all(c->call); i++)
		fill(c, rank->rank, i, b.send + (size_t)i * bytes, c->count);
	if (!sends_all(c->call))
		fill(c, rank->rank, 0, b.send, c->count);
	err = call_even(rank, c, b.send, b.recv);
	if (!err)
		err = check_even(rank, c, b.recv);
	return err ? err : buffers_free(rank, &b);
}

static int run_lists(struct rank *rank, uint64_t *own, struct trial_call *c)
{
	size_t size = wreath_type_size(c->model.type);
	const size_t *counts = c->counts[0];
	size_t mine = c->displs[rank->rank] * size;
	bool gathers = c->call == ALL_GATHER_V;
	size_t own_bytes = counts[rank->rank] * size;
	struct buffers b;
	int err, i;

	err = buffers_new(rank, own, gathers ? own_bytes : c->total * size,
			  gathers ? c->total * size : own_bytes, &b);
	if (err)
		return err;
	if (c->in_place && gathers)
		b.send = b.recv + mine;
	else if (c->in_place)
		b.recv = b.send + mine;
	if (gathers) {
		fill(c, rank->rank, 0, b.send, counts[rank->rank]);
		err = wreath_all_gather_v(b.send, b.recv, counts, c->displs,
					  c->model.type, rank->comm, NULL);
		for (i = 0; i < rank->n_ranks && !err; i++)
			err = check_copy(rank, c, i, 0,
					 b.recv + c->displs[i] * size,
					 counts[i]);
	} else {
		for (i = 0; i < rank->n_ranks; i++)
			fill(c, rank->rank, i, b.send + c->displs[i] * size,
			     counts[i]);
		err = wreath_reduce_scatter_v(b.send, b.recv, counts, c->displs,
					      c->model.type, c->model.op,
					      rank->comm, NULL);
		if (!err)
			err = check_fold(rank, c, rank->rank, b.recv,
					 counts[rank->rank]);
	}
	return err ? err : buffers_free(rank, &b);
}

/* all_to_all_v, and the same by messages of a group, in a random order. */
static int exchange(struct rank *rank, uint64_t *own,
		    const struct trial_call *c, char *send, size_t *out,
		    size_t *out_at, char *recv, size_t *in, size_t *in_at)
{
	size_t size = wreath_type_size(c->model.type);
	int n = rank->n_ranks;
	int start = (int)(ranks_random(own) % (uint64_t)n);
	int err = 0;
	int i;

	if (c->call == ALL_TO_ALL_V)
		return wreath_all_to_all_v(send, out, out_at, recv, in, in_at,
					   c->model.type, rank->comm, NULL);
	err = wreath_group_start();
	for (i = 0; i < n && !err; i++) {
		int peer = (start + i) % n;

		/* No message at all where the count is odd and small. */
		if (out[peer] != 1)
			err = wreath_send(send + out_at[peer] * size, out[peer],
					  c->model.type, peer, rank->comm,
					  NULL);
		peer = (start + 2 * n - i) % n;
		if (!err && in[peer] != 1)
			err = wreath_recv(recv + in_at[peer] * size, in[peer],
					  c->model.type, peer, rank->comm,
					  NULL);
	}
	return err ? err : wreath_group_end();
}

static int run_pairs(struct rank *rank, uint64_t *own, struct trial_call *c)
{
	size_t size = wreath_type_size(c->model.type);
	size_t out[CALLS_RANKS], in[CALLS_RANKS];
	size_t out_at[CALLS_RANKS], in_at[CALLS_RANKS];
	size_t n_out = 0;
	size_t n_in = 0;
	int n = rank->n_ranks;
	struct buffers b;
	int err, i;

	for (i = 0; i < n; i++) {
		out[i] = c->counts[rank->rank][i];
		in[i] = c->counts[i][rank->rank];
		out_at[i] = n_out;
		in_at[i] = n_in;
		n_out += out[i];
		n_in += in[i];
	}
	err = buffers_new(rank, own, n_out * size, n_in * size, &b);
	if (err)
		return err;
	for (i = 0; i < n; i++)
		fill(c, rank->rank, i, b.send + out_at[i] * size, out[i]);
	err = exchange(rank, own, c, b.send, out, out_at, b.recv, in, in_at);
	for (i = 0; i < n && !err; i++)
		if (c->call == ALL_TO_ALL_V || in[i] != 1)
			err = check_copy(rank, c, i, rank->rank,
					 b.recv + in_at[i] * size, in[i]);
	return err ? err : buffers_free(rank, &b);
}

int calls_run(struct rank *rank, uint64_t *own, struct trial_call *c)
{
	switch (c->call) {
	case ALL_REDUCE:
	case REDUCE:
	case BROADCAST:
		return run_vector(rank, own, c);
	case ALL_GATHER_V:
	case REDUCE_SCATTER_V:
		return run_lists(rank, own, c);
	case ALL_TO_ALL_V:
	case MESSAGES:
		return run_pairs(rank, own, c);
	case BARRIER:
		return wreath_barrier(rank->comm, NULL);
	default:
		return run_even(rank, own, c);
	}
}

int calls_body(struct rank *rank)
{
	const struct calls_plan *plan = rank->arg;
	uint64_t state = plan->seed;
	uint64_t own = plan->seed + 1 + (uint64_t)rank->rank;
	struct trial_call c;
	int err = 0;
	int i;

	for (i = 0; i < plan->n_calls && !err; i++) {
		calls_draw(rank, &state, plan, &c);
		err = calls_run(rank, &own, &c);
	}
	return err;
}
