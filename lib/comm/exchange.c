/* SPDX-License-Identifier: MIT */
/*
 * Sends and receives.  Those of a group are put into queues, one for each peer
 * and direction, in the order of the calls.  The n-th message between two
 * ranks in one direction is the n-th of a queue at both, and no queue waits
 * for another: so any pattern works whose ranks agree on its order.
 */
#include <string.h>

#include "comm/inner.h"

/* What this rank and a peer have said to each other, for the end. */
struct comm_talk {
	uint64_t n_sent, n_received;
};

/* The queues of one direction, in comm->queues; see struct exec_blocks. */
struct queues {
	size_t *first; /* [n_ranks + 1] */
	size_t *at, *bytes;
	uint8_t *where; /* enum exec_where */
};

struct messages {
	const struct comm_op *ops;
	size_t n;
	struct queues out, in; /* to peers, and from them */
	size_t longest;
	int gpu; /* that some of them are on; or -1 */
};

static int messages_init(struct wreath_comm *comm, const struct comm_op *op,
			 struct messages *all)
{
	size_t n_first = (size_t)comm->n_ranks + 1;
	size_t n_words;
	size_t *at;

	all->ops = op->exchange ? op->exchange->ops : op;
	all->n = op->exchange ? op->exchange->n : 1;
	all->longest = 0;
	all->gpu = -1;
	/* The last of them are bytes. */
	n_words = 2 * (n_first + 2 * all->n) + 2 * all->n;
	if (!comm->talks)
		comm->talks = base_alloc((size_t)comm->n_ranks,
					 sizeof(*comm->talks));
	if (comm->n_queues < n_words) {
		base_free(comm->queues);
		comm->queues = base_alloc(n_words, sizeof(*comm->queues));
		comm->n_queues = comm->queues ? n_words : 0;
	}
	if (!comm->talks || !comm->queues)
		return WREATH_ENOMEM;
	at = comm->queues;
	all->out.first = at;
	all->in.first = at += n_first;
	all->out.at = at += n_first;
	all->out.bytes = at += all->n;
	all->in.at = at += all->n;
	all->in.bytes = at += all->n;
	all->out.where = (uint8_t *)(at + all->n);
	all->in.where = all->out.where + all->n;
	return 0;
}

static size_t bytes_of(const struct comm_op *op)
{
	return op->count * wreath_type_size(op->type);
}

static enum exec_where where_of(const struct comm_op *op)
{
	return op->send ? op->in_where : op->out_where;
}

/* Sort by peer; what a rank says to itself goes no further. */
static void messages_sort(const struct wreath_comm *comm, struct messages *all)
{
	struct queues *sides[2] = {&all->in, &all->out}; /* by: is it sent? */
	size_t n_ranks = (size_t)comm->n_ranks;
	size_t i;
	int s;

	memset(all->out.first, 0, (n_ranks + 1) * sizeof(*all->out.first));
	memset(all->in.first, 0, (n_ranks + 1) * sizeof(*all->in.first));
	for (i = 0; i < all->n; i++) {
		const struct comm_op *op = &all->ops[i];

		if (op->root != comm->rank)
			sides[op->send != NULL]->first[op->root + 1]++;
	}
	for (s = 0; s < 2; s++)
		for (i = 0; i < n_ranks; i++)
			sides[s]->first[i + 1] += sides[s]->first[i];
	/* Each end of a queue moves up to where the next one begins. */
	for (i = 0; i < all->n; i++) {
		const struct comm_op *op = &all->ops[i];
		struct queues *side = sides[op->send != NULL];
		size_t bytes = bytes_of(op);
		size_t to;

		if (op->root == comm->rank)
			continue;
		to = side->first[op->root]++;
		side->at[to] = (uintptr_t)(op->send ? op->send : op->recv);
		side->bytes[to] = bytes;
		side->where[to] = (uint8_t)where_of(op);
		if (op->gpu >= 0)
			all->gpu = op->gpu;
		if (bytes > all->longest)
			all->longest = bytes;
	}
	for (s = 0; s < 2; s++) {
		memmove(sides[s]->first + 1, sides[s]->first,
			n_ranks * sizeof(*sides[s]->first));
		sides[s]->first[0] = 0;
	}
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

/* Where is @rank's next send, or receive, to itself, from @at on?  Or n. */
static size_t next_own(const struct messages *all, int rank, size_t at,
		       bool is_send)
{
	while (at < all->n && (all->ops[at].root != rank ||
			       (all->ops[at].send != NULL) != is_send))
		at++;
	return at;
}

static int move(const struct comm_op *from, const struct comm_op *to,
		size_t bytes)
{
	if (from->gpu >= 0 || to->gpu >= 0)
		return comm_gpu_move(from, from->send, to, to->recv, bytes,
				     NULL);
	memmove(to->recv, from->send, bytes);
	return 0;
}

/* The n-th send of this rank to itself goes to the n-th receive. */
static int move_own(const struct wreath_comm *comm, const struct messages *all)
{
	size_t from = 0;
	size_t to = 0;

	for (;; from++, to++) {
		size_t in = EXEC_ABSENT;
		size_t out = EXEC_ABSENT;

		from = next_own(all, comm->rank, from, true);
		to = next_own(all, comm->rank, to, false);
		if (from < all->n)
			in = bytes_of(&all->ops[from]);
		if (to < all->n)
			out = bytes_of(&all->ops[to]);
		if (in != out)
			return self_differs(comm, in, out);
		if (in == EXEC_ABSENT)
			return 0;
		if (in && all->ops[to].recv != all->ops[from].send) {
			int err = move(&all->ops[from], &all->ops[to], in);

			if (err)
				return err;
		}
	}
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

/* Mark those that are to be connected, in an array of the caller's; or NULL. */
static int find_apart(struct wreath_comm *comm, const struct messages *all,
		      bool **peers)
{
	size_t i;

	*peers = NULL;
	for (i = 0; i < all->n; i++) {
		int peer = all->ops[i].root;

		if (peer == comm->rank || is_connected(comm, peer))
			continue;
		if (!*peers)
			*peers = base_alloc((size_t)comm->n_ranks,
					    sizeof(**peers));
		if (!*peers)
			return WREATH_ENOMEM;
		(*peers)[peer] = true;
	}
	return 0;
}

/* Begin to connect; only librdmacm has to be waited for. */
static int connect_for(struct wreath_comm *comm, const struct messages *all,
		       struct comm_pairs **pairs)
{
	bool *peers;
	int err = find_apart(comm, all, &peers);

	*pairs = NULL;
	if (!err && peers)
		err = comm->env.value[BASE_ENV_CONNECT]
			      ? comm_connect_pairs(comm, peers)
			      : comm_pairs_new(comm, peers, pairs);
	base_free(peers);
	return err;
}

static void count_messages(struct wreath_comm *comm, const struct messages *all)
{
	size_t i;

	for (i = 0; i < all->n; i++) {
		struct comm_talk *talk = &comm->talks[all->ops[i].root];

		if (all->ops[i].send)
			talk->n_sent++;
		else
			talk->n_received++;
	}
}

static int run_messages(struct wreath_comm *comm, const struct messages *all)
{
	struct exec_args args = {
		.in = {.at = all->out.at, .bytes = all->out.bytes,
		       .first = all->out.first},
		.out = {.at = all->in.at, .bytes = all->in.bytes,
			.first = all->in.first},
		.longest = all->longest,
		.elem_bytes = 1,
		.fold = mem_fold(WREATH_UINT8, WREATH_SUM),
		.type = WREATH_UINT8,
		.op = WREATH_SUM,
		.sign = {.collective = SCHED_EXCHANGE, .algo = SCHED_DIRECT},
		.connect = comm_pairs_step,
	};
	struct comm_pairs *pairs = NULL;
	struct exec_plan *plan;
	int err = comm_plan(comm, comm->net->n_channels, &args.sign, &plan);

	if (!err && all->gpu >= 0) {
		args.in.each_where = all->out.where;
		args.out.each_where = all->in.where;
		err = comm_gpu_open(comm, all->gpu, &args.gpu);
	}
	if (!err)
		err = connect_for(comm, all, &pairs);
	args.connect_arg = pairs;
	if (!pairs)
		args.connect = NULL;
	if (!err)
		err = exec_run(plan, &args);
	comm_pairs_free(pairs);
	return err;
}

int comm_exchange_run(const struct comm_op *op)
{
	struct wreath_comm *comm = op->comm;
	size_t n = (size_t)comm->n_ranks;
	struct messages all;
	int err = messages_init(comm, op, &all);

	if (!err)
		err = move_own(comm, &all);
	if (err)
		return err;
	messages_sort(comm, &all);
	if (all.out.first[n] + all.in.first[n])
		err = run_messages(comm, &all);
	if (!err)
		count_messages(comm, &all);
	return err;
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
