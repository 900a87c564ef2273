/* SPDX-License-Identifier: MIT */
/*
 * What a call means in bytes: where its blocks lie, how long they are, and how
 * they are folded.
 */
#include <string.h>

#include "comm/inner.h"

/* Multiplied at a time where there is no other rank, hence no slot. */
#define ALONE_BYTES 4096

static const struct comm_factor *factor_of(const struct comm_op *op)
{
	return sched_is_reducing(op->collective) ? op->factor : NULL;
}

static size_t list_bytes(size_t n, size_t *most, const size_t *bytes)
{
	size_t end = 0;
	size_t i;

	*most = 0;
	for (i = 0; i < n; i++) {
		end += bytes[i];
		if (bytes[i] > *most)
			*most = bytes[i];
	}
	return end;
}

/*
 * Elements to bytes, into @at and @bytes [n]; returns how far the buffer
 * reaches.
 */
static size_t to_bytes(size_t n, const size_t *counts, const size_t *displs,
		       size_t elem_bytes, size_t *at, size_t *bytes)
{
	size_t end = 0;
	size_t reach = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		at[i] = displs ? displs[i] * elem_bytes : end;
		bytes[i] = counts[i] * elem_bytes;
		end += bytes[i];
		if (bytes[i] && at[i] + bytes[i] > reach)
			reach = at[i] + bytes[i];
	}
	return reach;
}

/* All ranks have the same lists: a number that tells whether they do. */
static uint64_t hash_lists(size_t n, const size_t *at, const size_t *bytes)
{
	uint64_t hash = n;
	size_t i;

	for (i = 0; i < n; i++) {
		hash = (hash ^ at[i]) * 0x9e3779b97f4a7c15u;
		hash = (hash ^ hash >> 29 ^ bytes[i]) * 0xbf58476d1ce4e5b9u;
	}
	return hash ^ hash >> 31;
}

static int list_args(const struct comm_op *op, struct exec_args *args)
{
	struct wreath_comm *comm = op->comm;
	const struct comm_lists *lists = &op->lists;
	size_t n = (size_t)comm->n_ranks;
	size_t *in_at, *in_bytes, *out_at, *out_bytes;
	size_t longest_in, longest_out;

	if (!comm->lists)
		comm->lists = base_alloc(4 * n, sizeof(*comm->lists));
	if (!comm->lists)
		return WREATH_ENOMEM;
	in_at = comm->lists;
	in_bytes = in_at + n;
	out_at = in_bytes + n;
	out_bytes = out_at + n;
	args->in_bytes = to_bytes(n, lists->in_counts, lists->in_displs,
				  args->elem_bytes, in_at, in_bytes);
	args->out_bytes = to_bytes(n, lists->out_counts, lists->out_displs,
				   args->elem_bytes, out_at, out_bytes);
	list_bytes(n, &longest_in, in_bytes);
	list_bytes(n, &longest_out, out_bytes);
	args->longest = longest_in > longest_out ? longest_in : longest_out;
	args->in.bytes = in_bytes;
	args->out.bytes = out_bytes;
	/* Where a rank has one block, it is all of its buffer. */
	if (op->collective == SCHED_ALL_GATHER)
		args->in_bytes = in_bytes[comm->rank];
	else
		args->in.at = in_at;
	if (op->collective == SCHED_REDUCE_SCATTER)
		args->out_bytes = out_bytes[comm->rank];
	else
		args->out.at = out_at;
	if (op->collective != SCHED_ALL_TO_ALL)
		args->sign.count = hash_lists(n, out_at, out_bytes);
	return 0;
}

static void even_args(const struct comm_op *op, struct exec_args *args)
{
	size_t n = (size_t)op->comm->n_ranks;
	size_t bytes = op->count * args->elem_bytes;
	size_t in = 1;
	size_t out = 1;

	args->in.each = bytes;
	args->out.each = bytes;
	args->longest = bytes;
	if (sched_n_blocks(op->collective, op->comm->n_ranks) > 1) {
		if (op->collective != SCHED_ALL_GATHER &&
		    op->collective != SCHED_GATHER)
			in = n;
		if (op->collective != SCHED_REDUCE_SCATTER &&
		    op->collective != SCHED_SCATTER)
			out = n;
	}
	/* A stride of 0: the one block that there is. */
	args->in.stride = in > 1 ? bytes : 0;
	args->out.stride = out > 1 ? bytes : 0;
	args->in_bytes = in * bytes;
	args->out_bytes = out * bytes;
}

static void fold_args(const struct comm_op *op, struct exec_args *args)
{
	const struct comm_factor *factor = factor_of(op);
	enum wreath_op fold = op->op < WREATH_AVG ? op->op : WREATH_SUM;

	/* An average is a sum and a divisor; copies are folds of one vector:
	 * any operation will do. */
	if (!sched_is_reducing(op->collective))
		fold = WREATH_SUM;
	args->fold = mem_fold(op->type, fold);
	args->type = op->type;
	args->op = fold;
	args->divisor = 0;
	if (sched_is_reducing(op->collective) && op->op == WREATH_AVG)
		args->divisor = (unsigned int)op->comm->n_ranks;
	args->factor = factor ? factor->vector : NULL;
	args->multiply = factor ? mem_fold(op->type, WREATH_PROD) : NULL;
	/* Without a factor somebody may be making it. */
	args->scratch = factor ? op->comm->scratch : NULL;
}

int comm_args(const struct comm_op *op, struct exec_args *args)
{
	/* Bytes are not written to through a pointer to const. */
	const struct exec_blocks in = {.base = (char *)(uintptr_t)op->send};
	const struct exec_blocks out = {.base = op->recv};
	int err;

	args->elem_bytes = wreath_type_size(op->type);
	args->in = in;
	args->out = out;
	fold_args(op, args);
	err = comm_gpu_args(op, args);
	if (err)
		return err;
	args->in_base = op->send;
	args->out_base = op->recv;
	if (op->lists.out_counts)
		return list_args(op, args);
	even_args(op, args);
	return 0;
}

/* One vector, times its factor. */
static void multiply_alone(const struct exec_args *args, char *to,
			   const char *from, size_t bytes)
{
	size_t at;

	for (at = 0; at < bytes; at += ALONE_BYTES) {
		const void *src[2] = {from + at, args->factor};
		void *dst[1] = {to + at};
		struct reduce_args multiply = {
			.dst = dst, .n_dst = 1, .src = src, .n_src = 2,
			.count = base_min_size(ALONE_BYTES, bytes - at) /
				 args->elem_bytes,
		};

		args->multiply(&multiply);
	}
}

int comm_run_alone(const struct comm_op *op)
{
	struct exec_args args;
	size_t bytes;
	char *to;
	const char *from;

	if (op->collective == SCHED_EXCHANGE)
		return comm_exchange_run(op);
	/* Whoever has a list has it in op->lists: of one block. */
	memset(&args, 0, sizeof(args));
	args.elem_bytes = wreath_type_size(op->type);
	bytes = (op->lists.out_counts ? op->lists.out_counts[0] : op->count) *
		args.elem_bytes;
	if (!bytes || op->collective == SCHED_BARRIER)
		return 0;
	fold_args(op, &args);
	to = op->recv;
	from = op->send;
	if (op->lists.out_displs && op->collective != SCHED_REDUCE_SCATTER)
		to += op->lists.out_displs[0] * args.elem_bytes;
	if (op->lists.in_displs && op->collective != SCHED_ALL_GATHER)
		from += op->lists.in_displs[0] * args.elem_bytes;
	if (op->gpu >= 0 && (args.factor || to != from))
		return comm_gpu_move(op, from, op, to, bytes, args.factor);
	if (args.factor)
		multiply_alone(&args, to, from, bytes);
	else if (to != from)
		memcpy(to, from, bytes);
	return 0;
}
