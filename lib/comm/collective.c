/* SPDX-License-Identifier: MIT */
/* The calls of wreath.h that move vectors. */
#include "comm/inner.h"

static int put(struct comm_op *op)
{
	int err = comm_error(op->comm);

	if (!err && op->comm->is_final)
		err = base_error(WREATH_EINVAL,
				 "%s: the communicator is finalized", op->name);
	return err ? err : comm_put(op);
}

/* The whole of a call. */
static int call(struct comm_op *op)
{
	int err = comm_check_call(op);

	if (!err)
		err = comm_check_buffers(op);
	if (!err)
		err = put(op);
	if (base_unlikely(err))
		comm_group_refuse(err);
	return err;
}

int wreath_all_reduce(const void *send, void *recv, size_t count,
		      enum wreath_type type, enum wreath_op op,
		      struct wreath_comm *comm, struct wreath_stream *stream)
{
	struct comm_op all = {
		.name = "wreath_all_reduce", .collective = SCHED_ALL_REDUCE,
		.comm = comm, .stream = stream, .send = send, .recv = recv,
		.count = count, .type = type, .op = op};

	return call(&all);
}

int wreath_reduce(const void *send, void *recv, size_t count,
		  enum wreath_type type, enum wreath_op op, int root,
		  struct wreath_comm *comm, struct wreath_stream *stream)
{
	struct comm_op all = {
		.name = "wreath_reduce", .collective = SCHED_REDUCE,
		.comm = comm, .stream = stream, .send = send, .recv = recv,
		.count = count, .type = type, .op = op, .root = root};

	return call(&all);
}

int wreath_broadcast(const void *send, void *recv, size_t count,
		     enum wreath_type type, int root, struct wreath_comm *comm,
		     struct wreath_stream *stream)
{
	struct comm_op all = {
		.name = "wreath_broadcast", .collective = SCHED_BROADCAST,
		.comm = comm, .stream = stream, .send = send, .recv = recv,
		.count = count, .type = type, .root = root};

	return call(&all);
}

int wreath_reduce_scatter(const void *send, void *recv, size_t count,
			  enum wreath_type type, enum wreath_op op,
			  struct wreath_comm *comm,
			  struct wreath_stream *stream)
{
	struct comm_op all = {
		.name = "wreath_reduce_scatter",
		.collective = SCHED_REDUCE_SCATTER,
		.comm = comm, .stream = stream, .send = send, .recv = recv,
		.count = count, .type = type, .op = op};

	return call(&all);
}

int wreath_all_gather(const void *send, void *recv, size_t count,
		      enum wreath_type type, struct wreath_comm *comm,
		      struct wreath_stream *stream)
{
	struct comm_op all = {
		.name = "wreath_all_gather", .collective = SCHED_ALL_GATHER,
		.comm = comm, .stream = stream, .send = send, .recv = recv,
		.count = count, .type = type};

	return call(&all);
}

int wreath_gather(const void *send, void *recv, size_t count,
		  enum wreath_type type, int root, struct wreath_comm *comm,
		  struct wreath_stream *stream)
{
	struct comm_op all = {
		.name = "wreath_gather", .collective = SCHED_GATHER,
		.comm = comm, .stream = stream, .send = send, .recv = recv,
		.count = count, .type = type, .root = root};

	return call(&all);
}

int wreath_scatter(const void *send, void *recv, size_t count,
		   enum wreath_type type, int root, struct wreath_comm *comm,
		   struct wreath_stream *stream)
{
	struct comm_op all = {
		.name = "wreath_scatter", .collective = SCHED_SCATTER,
		.comm = comm, .stream = stream, .send = send, .recv = recv,
		.count = count, .type = type, .root = root};

	return call(&all);
}

int wreath_all_to_all(const void *send, void *recv, size_t count,
		      enum wreath_type type, struct wreath_comm *comm,
		      struct wreath_stream *stream)
{
	struct comm_op all = {
		.name = "wreath_all_to_all", .collective = SCHED_ALL_TO_ALL,
		.comm = comm, .stream = stream, .send = send, .recv = recv,
		.count = count, .type = type};

	return call(&all);
}

int wreath_barrier(struct wreath_comm *comm, struct wreath_stream *stream)
{
	struct comm_op all = {
		.name = "wreath_barrier", .collective = SCHED_BARRIER,
		.comm = comm, .stream = stream, .count = 1,
		.type = WREATH_UINT8};
	int err = comm_check_call(&all);

	if (!err) {
		all.send = &comm->barrier[0];
		all.recv = &comm->barrier[1];
		err = put(&all);
	}
	if (err)
		comm_group_refuse(err);
	return err;
}

/* ---- blocks of different lengths ---- */

/* The comparison of lists and pointers to const, told in one place. */
static int call_lists(struct comm_op *op)
{
	int err = comm_check_call(op);

	if (!err && (!op->lists.in_counts || !op->lists.out_counts))
		err = base_error(WREATH_EINVAL, "%s: a list of counts is NULL",
				 op->name);
	if (err) {
		comm_group_refuse(err);
		return err;
	}
	return call(op);
}

int wreath_all_gather_v(const void *send, void *recv, const size_t *counts,
			const size_t *displs, enum wreath_type type,
			struct wreath_comm *comm, struct wreath_stream *stream)
{
	struct comm_op all = {
		.name = "wreath_all_gather_v", .collective = SCHED_ALL_GATHER,
		.comm = comm, .stream = stream, .send = send, .recv = recv,
		.type = type, .lists = {counts, displs, counts, displs}};

	return call_lists(&all);
}

int wreath_reduce_scatter_v(const void *send, void *recv, const size_t *counts,
			    const size_t *displs, enum wreath_type type,
			    enum wreath_op op, struct wreath_comm *comm,
			    struct wreath_stream *stream)
{
	struct comm_op all = {
		.name = "wreath_reduce_scatter_v",
		.collective = SCHED_REDUCE_SCATTER,
		.comm = comm, .stream = stream, .send = send, .recv = recv,
		.type = type, .op = op,
		.lists = {counts, displs, counts, displs}};

	return call_lists(&all);
}

int wreath_all_to_all_v(const void *send, const size_t *send_counts,
			const size_t *send_displs, void *recv,
			const size_t *recv_counts, const size_t *recv_displs,
			enum wreath_type type, struct wreath_comm *comm,
			struct wreath_stream *stream)
{
	struct comm_op all = {
		.name = "wreath_all_to_all_v", .collective = SCHED_ALL_TO_ALL,
		.comm = comm, .stream = stream, .send = send, .recv = recv,
		.type = type,
		.lists = {send_counts, send_displs, recv_counts, recv_displs}};

	return call_lists(&all);
}

/* ---- messages ---- */

static int call_message(struct comm_op *op, const void *buffer)
{
	int err = comm_check_call(op);

	if (!err)
		err = comm_check_message(op, buffer);
	if (!err)
		err = put(op);
	if (err)
		comm_group_refuse(err);
	return err;
}

int wreath_send(const void *send, size_t count, enum wreath_type type, int peer,
		struct wreath_comm *comm, struct wreath_stream *stream)
{
	/* An empty message needs no buffer; that there is one tells its way. */
	static const char none;
	struct comm_op all = {
		.name = "wreath_send", .collective = SCHED_EXCHANGE,
		.comm = comm, .stream = stream, .send = send ? send : &none,
		.count = count, .type = type, .root = peer};

	return call_message(&all, send);
}

int wreath_recv(void *recv, size_t count, enum wreath_type type, int peer,
		struct wreath_comm *comm, struct wreath_stream *stream)
{
	struct comm_op all = {
		.name = "wreath_recv", .collective = SCHED_EXCHANGE,
		.comm = comm, .stream = stream, .recv = recv,
		.count = count, .type = type, .root = peer};

	return call_message(&all, recv);
}
