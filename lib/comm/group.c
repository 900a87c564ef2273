/* SPDX-License-Identifier: MIT */
/*
 * Groups: calls of one thread that are noted, and done together at the end.
 */
#include <stdio.h>
#include <string.h>

#include "comm/inner.h"

#define GROUP_OPS 4096

/* The group that the thread has open. */
static __thread struct {
	unsigned int depth;
	int error; /* of a call that was refused */
	char text[1024];
	struct comm_op *ops; /* [GROUP_OPS] */
	size_t n;
} group;

/* The user's lists may go when the call returns: a copy. */
static int own_lists(struct comm_op *op)
{
	const size_t *from[4] = {op->lists.in_counts, op->lists.in_displs,
				 op->lists.out_counts, op->lists.out_displs};
	const size_t **to[4] = {&op->lists.in_counts, &op->lists.in_displs,
				&op->lists.out_counts, &op->lists.out_displs};
	size_t n = (size_t)op->comm->n_ranks;
	size_t *copy;
	int i;

	if (!op->lists.out_counts)
		return 0;
	copy = base_alloc(4 * n, sizeof(*copy));
	if (!copy)
		return WREATH_ENOMEM;
	op->owned = copy;
	for (i = 0; i < 4; i++, copy += n) {
		if (!from[i])
			continue;
		memcpy(copy, from[i], n * sizeof(*copy));
		*to[i] = copy;
	}
	return 0;
}

void comm_op_end(struct comm_op *op)
{
	base_free(op->owned);
	op->owned = NULL;
	comm_factor_drop(op->factor);
	op->factor = NULL;
}

static int put_or_run(struct comm_op *op)
{
	if (op->stream)
		return comm_stream_put(op->stream, op);
	op->ticket = comm_ticket(op->comm);
	return comm_run(op);
}

static bool is_message(const struct comm_op *op)
{
	return op->collective == SCHED_EXCHANGE;
}

static bool is_with(const struct comm_op *a, const struct comm_op *b)
{
	return a->comm == b->comm && a->stream == b->stream;
}

/* Messages that go together are on one GPU, or the host. */
static int check_gpus(const struct comm_op *op)
{
	size_t i;

	for (i = 0; i < group.n && op->gpu >= 0; i++) {
		const struct comm_op *other = &group.ops[i];

		if (is_message(other) && is_message(op) &&
		    is_with(other, op) && other->gpu >= 0 &&
		    other->gpu != op->gpu)
			return base_error(WREATH_EINVAL,
					  "%s: the buffer is on GPU %d, and "
					  "others of the group are on GPU %d; "
					  "those of one communicator must be on "
					  "one", op->name, op->gpu, other->gpu);
	}
	return 0;
}

static int group_add(const struct comm_op *op)
{
	struct comm_op *to;

	if (!group.ops)
		group.ops = base_alloc(GROUP_OPS, sizeof(*group.ops));
	if (!group.ops)
		return WREATH_ENOMEM;
	if (group.n == GROUP_OPS)
		return base_error(WREATH_EINVAL,
				  "%s: the group has %d calls already; end it",
				  op->name, GROUP_OPS);
	if (check_gpus(op))
		return WREATH_EINVAL;
	to = &group.ops[group.n];
	*to = *op;
	to->owned = NULL;
	if (own_lists(to))
		return WREATH_ENOMEM;
	comm_factor_hold(to->factor);
	group.n++;
	return 0;
}

int comm_put(struct comm_op *op)
{
	int err;

	if (base_likely(!group.depth)) {
		err = op->stream ? own_lists(op) : 0;
		comm_factor_hold(op->factor);
		if (!err)
			err = put_or_run(op);
		/* Only a stream that has taken it frees what it owns. */
		if (err && op->stream)
			comm_op_end(op);
		return err;
	}
	return group_add(op);
}

void comm_group_refuse(int error)
{
	if (!group.depth || group.error)
		return;
	group.error = error;
	snprintf(group.text, sizeof(group.text), "%s", base_error_text());
}

int comm_group_check(const struct wreath_comm *comm, const char *function)
{
	size_t i;

	for (i = 0; i < group.n; i++)
		if (group.ops[i].comm == comm)
			return base_error(WREATH_EINVAL,
					  "%s: the group that is open has "
					  "calls of this communicator, such as "
					  "%s; wreath_group_end() comes first",
					  function, group.ops[i].name);
	return 0;
}

void comm_group_forget(const struct wreath_comm *comm)
{
	size_t n = 0;
	size_t i;

	for (i = 0; i < group.n; i++) {
		if (group.ops[i].comm == comm)
			comm_op_end(&group.ops[i]);
		else
			group.ops[n++] = group.ops[i];
	}
	group.n = n;
	comm_group_refuse(WREATH_EINVAL);
}

int wreath_group_start(void)
{
	group.depth++;
	return 0;
}

/* ---- the end ---- */

/* The sends and receives from @first on that belong together, as one call. */
static int gather_messages(struct comm_op *first, struct comm_op *out)
{
	struct comm_op *end = group.ops + group.n;
	struct comm_exchange *all;
	struct comm_op *op;
	size_t n = 0;

	for (op = first; op < end; op++)
		n += op->name && is_message(op) && is_with(op, first);
	all = base_alloc(1, sizeof(*all) + n * sizeof(*all->ops));
	if (!all)
		return WREATH_ENOMEM;
	*out = *first;
	for (op = first; op < end; op++) {
		if (!op->name || !is_message(op) || !is_with(op, out))
			continue;
		all->ops[all->n++] = *op;
		op->name = NULL; /* has been put */
	}
	out->exchange = all;
	out->owned = all;
	return 0;
}

/* Blocking calls of several communicators need a thread for each. */
static bool has_several(void)
{
	size_t i;

	for (i = 1; i < group.n; i++)
		if (group.ops[i].comm != group.ops[0].comm ||
		    group.ops[i].stream)
			return true;
	return false;
}

static int give_worker(struct comm_op *op, bool is_several)
{
	struct wreath_comm *comm = op->comm;
	int err = 0;

	if (!is_several || op->stream)
		return 0;
	if (!comm->worker)
		err = wreath_stream_create(&comm->worker);
	op->stream = comm->worker;
	return err;
}

/* What is in the group must all be done: a full stream is waited for. */
static int put_waiting(struct comm_op *op)
{
	int err;

	for (;;) {
		err = put_or_run(op);
		if (err != WREATH_EAGAIN || !op->stream)
			return err;
		base_sleep_ms(1);
	}
}

static int put_all(bool is_several)
{
	struct comm_op *end = group.ops + group.n;
	struct comm_op *op;
	int err, first = 0;
	bool messages;
	int pass;

	/* Collectives first, then what is left. */
	for (pass = 0; pass < 2; pass++) {
		messages = pass == 1;
		for (op = group.ops; op < end; op++) {
			struct comm_op call;

			if (!op->name || is_message(op) != messages)
				continue;
			call = *op;
			err = messages ? gather_messages(op, &call) : 0;
			op->name = NULL;
			if (!err)
				err = give_worker(&call, is_several);
			if (!err)
				err = put_waiting(&call);
			/* What has run owns nothing any more. */
			if (err)
				comm_op_end(&call);
			if (err && !first)
				first = err;
		}
	}
	return first;
}

/* Each communicator that was given a worker. */
static int await_workers(void)
{
	char text[2048] = "";
	int first = 0;
	size_t i, j;

	for (i = 0; i < group.n; i++) {
		const struct comm_op *op = &group.ops[i];
		int err;

		for (j = 0; j < i && group.ops[j].comm != op->comm; j++)
			;
		if (j < i || !op->comm->worker)
			continue;
		err = wreath_stream_wait(op->comm->worker);
		if (err && !first) {
			first = err;
			snprintf(text, sizeof(text), "%s", base_error_text());
		}
	}
	if (first)
		base_error_again(first, text);
	return first;
}

static int run_all(bool is_several)
{
	char text[2048];
	int err = put_all(is_several);
	int later;

	if (!is_several)
		return err;
	snprintf(text, sizeof(text), "%s", base_error_text());
	/* Also after an error: what has begun writes to the user's memory. */
	later = await_workers();
	if (err)
		base_error_again(err, text);
	return err ? err : later;
}

static void group_clear(void)
{
	size_t i;

	/* What was put has an owner. */
	for (i = 0; i < group.n; i++)
		if (group.ops[i].name)
			comm_op_end(&group.ops[i]);
	base_free(group.ops);
	group.ops = NULL;
	group.n = 0;
	group.error = 0;
}

int wreath_group_end(void)
{
	int err;

	if (!group.depth)
		return base_error(WREATH_EINVAL,
				  "wreath_group_end: no group is open; call "
				  "wreath_group_start() first");
	if (--group.depth)
		return 0;
	err = group.error;
	if (err)
		base_error_again(err, group.text);
	else
		err = run_all(has_several());
	group_clear();
	return err;
}
