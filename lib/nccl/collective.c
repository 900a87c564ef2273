/* SPDX-License-Identifier: MIT */
/* The calls that move vectors. */
#include "nccl/inner.h"

enum kind {
	ALL_REDUCE,
	REDUCE,
	REDUCE_SCATTER,
	BROADCAST,
	ALL_GATHER,
	GATHER,
	SCATTER,
	ALL_TO_ALL,
	SEND,
	RECV,
};

struct call {
	const char *function;
	enum kind kind;
	const void *send;
	void *recv;
	size_t count;
	ncclDataType_t type;
	ncclRedOp_t op;
	int root; /* or peer */
	struct ncclComm *comm;
	cudaStream_t stream;
};

static int dispatch(const struct call *call, enum wreath_type type,
		    enum wreath_op op, struct wreath_stream *stream)
{
	struct wreath_comm *comm = atomic_load(&call->comm->comm);

	switch (call->kind) {
	case ALL_REDUCE:
		return wreath_all_reduce(call->send, call->recv, call->count,
					 type, op, comm, stream);
	case REDUCE:
		return wreath_reduce(call->send, call->recv, call->count, type,
				     op, call->root, comm, stream);
	case REDUCE_SCATTER:
		return wreath_reduce_scatter(call->send, call->recv,
					     call->count, type, op, comm,
					     stream);
	case BROADCAST:
		return wreath_broadcast(call->send, call->recv, call->count,
					type, call->root, comm, stream);
	case ALL_GATHER:
		return wreath_all_gather(call->send, call->recv, call->count,
					 type, comm, stream);
	case GATHER:
		return wreath_gather(call->send, call->recv, call->count, type,
				     call->root, comm, stream);
	case SCATTER:
		return wreath_scatter(call->send, call->recv, call->count, type,
				      call->root, comm, stream);
	case ALL_TO_ALL:
		return wreath_all_to_all(call->send, call->recv, call->count,
					 type, comm, stream);
	case SEND:
		return wreath_send(call->send, call->count, type, call->root,
				   comm, stream);
	case RECV:
		break;
	}
	return wreath_recv(call->recv, call->count, type, call->root, comm,
			   stream);
}

/*
 * A full queue of the stream is waited for, as NCCL does: its operations end
 * by their deadline, or when the communicator is aborted.
 */
static int dispatch_waiting(const struct call *call, enum wreath_type type,
			    enum wreath_op op, struct wreath_stream *stream)
{
	int err;

	for (;;) {
		err = dispatch(call, type, op, stream);
		if (err != WREATH_EAGAIN || !stream ||
		    !nccl_handle_is_live(call->comm))
			return err;
		nccl_nap();
	}
}

static ncclResult_t run_inside(const struct call *call)
{
	struct ncclComm *comm = call->comm;
	struct wreath_stream *stream;
	enum wreath_type type;
	enum wreath_op op = WREATH_SUM;
	ncclResult_t result = nccl_check_ready(comm, call->function);
	int err;

	if (result)
		return result;
	if (comm->is_revoked)
		return nccl_fail(ncclInvalidUsage,
				 "%s: the communicator was revoked",
				 call->function);
	if (!nccl_type_get(call->type, &type))
		return nccl_fail(ncclInvalidArgument,
				 "%s: datatype %d is not in 0..%d",
				 call->function, (int)call->type,
				 ncclNumTypes - 1);
	result = nccl_stream_get(comm, call->stream, call->send, call->recv,
				 call->function, &stream);
	if (!result && call->kind <= REDUCE_SCATTER)
		result = nccl_op_get(comm, call->op, call->type, stream,
				     call->function, &op);
	if (!result)
		result = nccl_group_hold(comm);
	if (result)
		return result;
	err = dispatch_waiting(call, type, op, stream);
	return nccl_result(err, call->function);
}

static ncclResult_t run(const struct call *call)
{
	ncclResult_t result = nccl_enter(call->comm, call->function);

	if (!result) {
		result = run_inside(call);
		nccl_leave(call->comm);
	}
	return nccl_group_note(result);
}

ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
			   ncclDataType_t datatype, ncclRedOp_t op,
			   ncclComm_t comm, cudaStream_t stream)
{
	const struct call call = {
		.function = "ncclAllReduce", .kind = ALL_REDUCE,
		.send = sendbuff, .recv = recvbuff, .count = count,
		.type = datatype, .op = op, .comm = comm, .stream = stream};

	return run(&call);
}
NCCL_ALIAS(ncclAllReduce);

ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
			ncclDataType_t datatype, ncclRedOp_t op, int root,
			ncclComm_t comm, cudaStream_t stream)
{
	const struct call call = {
		.function = "ncclReduce", .kind = REDUCE, .send = sendbuff,
		.recv = recvbuff, .count = count, .type = datatype, .op = op,
		.root = root, .comm = comm, .stream = stream};

	return run(&call);
}
NCCL_ALIAS(ncclReduce);

ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff,
			       size_t recvcount, ncclDataType_t datatype,
			       ncclRedOp_t op, ncclComm_t comm,
			       cudaStream_t stream)
{
	const struct call call = {
		.function = "ncclReduceScatter", .kind = REDUCE_SCATTER,
		.send = sendbuff, .recv = recvbuff, .count = recvcount,
		.type = datatype, .op = op, .comm = comm, .stream = stream};

	return run(&call);
}
NCCL_ALIAS(ncclReduceScatter);

ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
			   ncclDataType_t datatype, int root, ncclComm_t comm,
			   cudaStream_t stream)
{
	const struct call call = {
		.function = "ncclBroadcast", .kind = BROADCAST,
		.send = sendbuff, .recv = recvbuff, .count = count,
		.type = datatype, .root = root, .comm = comm,
		.stream = stream};

	return run(&call);
}
NCCL_ALIAS(ncclBroadcast);

ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype,
		       int root, ncclComm_t comm, cudaStream_t stream)
{
	const struct call call = {
		.function = "ncclBcast", .kind = BROADCAST, .send = buff,
		.recv = buff, .count = count, .type = datatype, .root = root,
		.comm = comm, .stream = stream};

	return run(&call);
}
NCCL_ALIAS(ncclBcast);

ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff,
			   size_t sendcount, ncclDataType_t datatype,
			   ncclComm_t comm, cudaStream_t stream)
{
	const struct call call = {
		.function = "ncclAllGather", .kind = ALL_GATHER,
		.send = sendbuff, .recv = recvbuff, .count = sendcount,
		.type = datatype, .comm = comm, .stream = stream};

	return run(&call);
}
NCCL_ALIAS(ncclAllGather);

ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count,
			ncclDataType_t datatype, int root, ncclComm_t comm,
			cudaStream_t stream)
{
	const struct call call = {
		.function = "ncclGather", .kind = GATHER, .send = sendbuff,
		.recv = recvbuff, .count = count, .type = datatype,
		.root = root, .comm = comm, .stream = stream};

	return run(&call);
}
NCCL_ALIAS(ncclGather);

ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count,
			 ncclDataType_t datatype, int root, ncclComm_t comm,
			 cudaStream_t stream)
{
	const struct call call = {
		.function = "ncclScatter", .kind = SCATTER, .send = sendbuff,
		.recv = recvbuff, .count = count, .type = datatype,
		.root = root, .comm = comm, .stream = stream};

	return run(&call);
}
NCCL_ALIAS(ncclScatter);

ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
			  ncclDataType_t datatype, ncclComm_t comm,
			  cudaStream_t stream)
{
	const struct call call = {
		.function = "ncclAlltoAll", .kind = ALL_TO_ALL,
		.send = sendbuff, .recv = recvbuff, .count = count,
		.type = datatype, .comm = comm, .stream = stream};

	return run(&call);
}
NCCL_ALIAS(ncclAlltoAll);

ncclResult_t ncclSend(const void *sendbuff, size_t count,
		      ncclDataType_t datatype, int peer, ncclComm_t comm,
		      cudaStream_t stream)
{
	const struct call call = {
		.function = "ncclSend", .kind = SEND, .send = sendbuff,
		.count = count, .type = datatype, .root = peer, .comm = comm,
		.stream = stream};

	return run(&call);
}
NCCL_ALIAS(ncclSend);

ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype,
		      int peer, ncclComm_t comm, cudaStream_t stream)
{
	const struct call call = {
		.function = "ncclRecv", .kind = RECV, .recv = recvbuff,
		.count = count, .type = datatype, .root = peer, .comm = comm,
		.stream = stream};

	return run(&call);
}
NCCL_ALIAS(ncclRecv);
