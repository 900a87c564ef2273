/* SPDX-License-Identifier: MIT */
/* The arguments of calls: checked here, and nowhere below. */
#include "comm/inner.h"

/* The bytes of a buffer that this rank needs, and where its own block is. */
struct extent {
	size_t bytes;
	size_t own; /* where buffers meet that are in place */
};

static int too_long(const struct comm_op *op, size_t count)
{
	return base_error(WREATH_EINVAL,
			  "%s: count %zu of %s, for %d ranks, does not fit "
			  "the address space", op->name, count,
			  base_type_name(op->type), op->comm->n_ranks);
}

static bool reads(const struct comm_op *op)
{
	return !(op->comm->rank != op->root &&
		 (op->collective == SCHED_BROADCAST ||
		  op->collective == SCHED_SCATTER));
}

static bool writes(const struct comm_op *op)
{
	return !(op->comm->rank != op->root &&
		 (op->collective == SCHED_REDUCE ||
		  op->collective == SCHED_GATHER));
}

/* Is the buffer one of all blocks? */
static bool has_all(enum sched_collective collective, bool is_send)
{
	switch (collective) {
	case SCHED_REDUCE_SCATTER:
	case SCHED_SCATTER:
		return is_send;
	case SCHED_ALL_GATHER:
	case SCHED_GATHER:
		return !is_send;
	case SCHED_ALL_TO_ALL:
		return true;
	default:
		return false;
	}
}

/* Of both buffers. */
static int even_extents(const struct comm_op *op, struct extent *from,
			struct extent *to)
{
	size_t n = (size_t)op->comm->n_ranks;
	size_t bytes, all;

	if (base_mul_overflows(op->count, wreath_type_size(op->type),
			       &bytes) ||
	    base_mul_overflows(bytes, n, &all) || all > SIZE_MAX / 4)
		return too_long(op, op->count);
	*from = (struct extent){.bytes = bytes};
	*to = *from;
	/* The most common of all has no blocks. */
	if (base_likely(op->collective == SCHED_ALL_REDUCE) || n == 1)
		return 0;
	if (has_all(op->collective, true))
		*from = (struct extent){all, (size_t)op->comm->rank * bytes};
	if (has_all(op->collective, false))
		*to = (struct extent){all, (size_t)op->comm->rank * bytes};
	return 0;
}

/* Do blocks @i and @j overlap? */
static bool do_overlap(const size_t *counts, const size_t *displs, int i, int j)
{
	return counts[i] && counts[j] && displs[i] < displs[j] + counts[j] &&
	       displs[j] < displs[i] + counts[i];
}

static int check_apart(const struct comm_op *op, const size_t *counts,
		       const size_t *displs)
{
	int n = op->comm->n_ranks;
	int i, j;

	for (i = 0; i < n && displs; i++)
		for (j = 0; j < i; j++)
			if (do_overlap(counts, displs, i, j))
				return base_error(
					WREATH_EINVAL,
					"%s: blocks %d and %d overlap in the "
					"buffer that is written", op->name, j,
					i);
	return 0;
}

static int list_extent(const struct comm_op *op, bool is_send,
		       struct extent *out)
{
	const size_t *counts =
		is_send ? op->lists.in_counts : op->lists.out_counts;
	const size_t *displs =
		is_send ? op->lists.in_displs : op->lists.out_displs;
	size_t elem_bytes = wreath_type_size(op->type);
	size_t most = SIZE_MAX / 8 / elem_bytes;
	int rank = op->comm->rank;
	size_t end = 0;
	size_t reach = 0;
	int i;

	out->own = 0;
	for (i = 0; i < op->comm->n_ranks; i++) {
		size_t at = displs ? displs[i] : end;

		if (counts[i] > most || at > most || end > most)
			return too_long(op, counts[i] > most ? counts[i] : at);
		if (counts[i] && at + counts[i] > reach)
			reach = at + counts[i];
		if (i == rank)
			out->own = at * elem_bytes;
		end += counts[i];
	}
	out->bytes = reach * elem_bytes;
	/* In place, what is sent is written as well. */
	if (has_all(op->collective, is_send))
		return is_send && (uintptr_t)op->send + out->own !=
					  (uintptr_t)op->recv
			       ? 0 : check_apart(op, counts, displs);
	out->bytes = counts[rank] * elem_bytes;
	out->own = 0;
	return 0;
}

static int check_overlap(const struct comm_op *op, const struct extent *from,
			 const struct extent *to)
{
	uintptr_t send = (uintptr_t)op->send;
	uintptr_t recv = (uintptr_t)op->recv;

	if (send >= recv + to->bytes || recv >= send + from->bytes)
		return 0;
	if (op->collective == SCHED_ALL_TO_ALL)
		return base_error(WREATH_EINVAL,
				  "%s: send %p and recv %p overlap; there is "
				  "no form in place", op->name, op->send,
				  op->recv);
	if (send + from->own == recv + to->own)
		return 0;
	return base_error(WREATH_EINVAL,
			  "%s: send %p (%zu bytes) and recv %p (%zu bytes) "
			  "overlap; in place %s, else they must be apart",
			  op->name, op->send, from->bytes, op->recv, to->bytes,
			  from->own || to->own
				  ? "this rank's block must be the same in both"
				  : "they are equal");
}

/* What a rank has for itself is as long as what it takes from itself. */
static int check_own_block(const struct comm_op *op)
{
	int rank = op->comm->rank;

	if (op->collective != SCHED_ALL_TO_ALL ||
	    op->lists.in_counts[rank] == op->lists.out_counts[rank])
		return 0;
	return base_error(WREATH_EINVAL,
			  "%s: rank %d sends itself %zu elements and receives "
			  "%zu; send_counts[%d] and recv_counts[%d] must be "
			  "equal there", op->name, rank,
			  op->lists.in_counts[rank],
			  op->lists.out_counts[rank], rank, rank);
}

int comm_check_buffers(struct comm_op *op)
{
	struct extent from, to;
	int err;

	if (base_likely(!op->lists.out_counts)) {
		err = even_extents(op, &from, &to);
	} else {
		err = list_extent(op, true, &from);
		if (!err)
			err = list_extent(op, false, &to);
		if (!err)
			err = check_own_block(op);
	}
	if (err)
		return err;
	if (!reads(op))
		from.bytes = 0;
	if (!writes(op))
		to.bytes = 0;
	if (from.bytes && !op->send)
		return base_error(WREATH_EINVAL,
				  "%s: send is NULL, and count %zu needs %zu "
				  "bytes", op->name, op->count, from.bytes);
	if (to.bytes && !op->recv)
		return base_error(WREATH_EINVAL,
				  "%s: recv is NULL, and count %zu needs %zu "
				  "bytes", op->name, op->count, to.bytes);
	op->reads = from.bytes != 0;
	op->writes = to.bytes != 0;
	if (op->reads && op->writes)
		err = check_overlap(op, &from, &to);
	return err ? err : comm_gpu_find(op);
}

static int check_op(struct comm_op *op)
{
	struct comm_factor *factor;
	int at = (int)op->op - WREATH_OP_USER;

	if ((unsigned int)op->op < WREATH_N_OPS)
		return 0;
	if (at < 0 || at >= COMM_OPS_MAX || !op->comm->factors[at])
		return base_error(WREATH_EINVAL,
				  "%s: op %d is not in 0..%d, nor one that was "
				  "created on this communicator", op->name,
				  (int)op->op, WREATH_N_OPS - 1);
	factor = op->comm->factors[at];
	op->factor = factor;
	if (factor->type == op->type)
		return 0;
	return base_error(WREATH_EINVAL,
			  "%s: the vector is %s, and the operation was made "
			  "for %s", op->name, base_type_name(op->type),
			  base_type_name(factor->type));
}

int comm_check_call(struct comm_op *op)
{
	int err = comm_check(op->comm, op->name);

	/* What has no buffers is on none. */
	op->gpu = -1;
	if (err)
		return err;
	if ((unsigned int)op->type >= WREATH_N_TYPES)
		return base_error(WREATH_EINVAL, "%s: type %d is not in 0..%d",
				  op->name, (int)op->type, WREATH_N_TYPES - 1);
	err = check_op(op);
	if (err)
		return err;
	if (op->root < 0 || op->root >= op->comm->n_ranks)
		return base_error(WREATH_EINVAL, "%s: %s %d is not in 0..%d",
				  op->name, op->collective == SCHED_EXCHANGE
						    ? "peer" : "root",
				  op->root, op->comm->n_ranks - 1);
	return 0;
}

int comm_check_message(struct comm_op *op, const void *buffer)
{
	size_t bytes;

	if (base_mul_overflows(op->count, wreath_type_size(op->type),
			       &bytes) || bytes > SIZE_MAX / 4)
		return too_long(op, op->count);
	if (bytes && !buffer)
		return base_error(WREATH_EINVAL,
				  "%s: the buffer is NULL and count is %zu",
				  op->name, op->count);
	op->reads = bytes && op->send;
	op->writes = bytes && !op->send;
	return comm_gpu_find(op);
}
