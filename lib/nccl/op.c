/* SPDX-License-Identifier: MIT */
/*
 * Operations for reductions.  Frameworks make one for each call, mostly with
 * the same scalar, which in wreath is a vector as long as a message: those are
 * kept by their value.
 */
#include <string.h>

#include "nccl/inner.h"

static struct nccl_op *find(struct ncclComm *comm, ncclRedOp_t op)
{
	int at = (int)op - ncclNumOps;

	if (at < 0 || at >= NCCL_OPS || !comm->ops[at].is_used)
		return NULL;
	return &comm->ops[at];
}

static bool is_same(const struct nccl_factor *factor, enum wreath_type type,
		    uint64_t bits)
{
	return factor->is_used && factor->type == type && factor->bits == bits;
}

/* A place for a factor: the value that was used least recently goes, which
 * calls that wait with it do not mind. */
static struct nccl_factor *make_room(struct ncclComm *comm)
{
	struct nccl_factor *oldest = &comm->factors[0];
	int i;

	for (i = 0; i < NCCL_FACTORS; i++) {
		struct nccl_factor *at = &comm->factors[i];

		if (!at->is_used)
			return at;
		if (at->last_use < oldest->last_use)
			oldest = at;
	}
	wreath_op_destroy(oldest->op, atomic_load(&comm->comm));
	oldest->is_used = false;
	return oldest;
}

static void use(struct ncclComm *comm, struct nccl_factor *factor,
		enum wreath_op *out)
{
	factor->last_use = ++comm->clock;
	*out = factor->op;
}

/* Caller holds the communicator's lock. */
static ncclResult_t factor_get(struct ncclComm *comm, enum wreath_type type,
			       uint64_t bits, const char *function,
			       enum wreath_op *out)
{
	struct nccl_factor *to;
	int i, err;

	for (i = 0; i < NCCL_FACTORS; i++) {
		to = &comm->factors[i];
		if (!is_same(to, type, bits))
			continue;
		use(comm, to, out);
		return ncclSuccess;
	}
	to = make_room(comm);
	err = wreath_op_create_scaled_sum(&bits, type,
					  atomic_load(&comm->comm), &to->op);
	if (err)
		return nccl_result(err, function);
	to->type = type;
	to->bits = bits;
	to->is_used = true;
	use(comm, to, out);
	return ncclSuccess;
}

/* ---- scalars that are read when a collective runs ---- */

/* A rank of its own, whose only use is to copy. */
static struct {
	pthread_mutex_t lock;
	struct wreath_comm *comm;
} self = {PTHREAD_MUTEX_INITIALIZER, NULL};

struct fetch {
	const void *from;
	uint64_t *to;
	enum wreath_type type;
	struct wreath_stream *stream;
	int err;
	char text[512];
};

static int self_open(void)
{
	struct wreath_unique_id id;
	int err = 0;

	if (!self.comm)
		err = wreath_unique_id_create(&id);
	if (!self.comm && !err)
		err = wreath_comm_init(&id, 0, 1, &self.comm);
	return err;
}

/*
 * In the order of the stream, by a message to ourselves.  On a thread, since
 * the caller may have a group open.
 */
static void *fetch(void *arg)
{
	struct fetch *fetch = arg;
	int err;

	pthread_mutex_lock(&self.lock);
	err = self_open();
	if (!err) {
		wreath_group_start();
		wreath_send(fetch->from, 1, fetch->type, 0, self.comm,
			    fetch->stream);
		wreath_recv(fetch->to, 1, fetch->type, 0, self.comm,
			    fetch->stream);
		err = wreath_group_end();
	}
	pthread_mutex_unlock(&self.lock);
	if (!err && fetch->stream)
		err = wreath_stream_wait(fetch->stream);
	fetch->err = err;
	if (err)
		nccl_result(err, "reading a scalar");
	memcpy(fetch->text, nccl_own_text(), sizeof(fetch->text) - 1);
	return NULL;
}

static ncclResult_t read_late(const struct nccl_op *op, enum wreath_type type,
			      struct wreath_stream *stream,
			      const char *function, uint64_t *bits)
{
	struct fetch args = {.from = op->scalar, .to = bits, .type = type,
			     .stream = stream};
	pthread_t thread;
	int device = -1;
	int err = wreath_mem_device(op->scalar, &device);

	*bits = 0;
	if (err)
		return nccl_result(err, function);
	if (device < 0) {
		memcpy(bits, op->scalar, wreath_type_size(type));
		return ncclSuccess;
	}
	if (pthread_create(&thread, NULL, fetch, &args))
		return nccl_fail(ncclSystemError, "%s: cannot start a thread",
				 function);
	pthread_join(thread, NULL);
	if (args.err)
		return nccl_fail(nccl_result_of(args.err), "%s: %s", function,
				 args.text);
	return ncclSuccess;
}

/* ---- the calls ---- */

ncclResult_t nccl_op_get(struct ncclComm *comm, ncclRedOp_t op,
			 ncclDataType_t type, struct wreath_stream *stream,
			 const char *function, enum wreath_op *out)
{
	static const enum wreath_op ops[ncclNumOps] = {
		[ncclSum] = WREATH_SUM, [ncclProd] = WREATH_PROD,
		[ncclMax] = WREATH_MAX, [ncclMin] = WREATH_MIN,
		[ncclAvg] = WREATH_AVG,
	};
	const struct nccl_op *at;
	enum wreath_type inner = WREATH_INT8;
	ncclResult_t result = ncclSuccess;
	uint64_t bits;

	if ((unsigned int)op < ncclNumOps) {
		*out = ops[op];
		return ncclSuccess;
	}
	at = find(comm, op);
	if (!at)
		return nccl_fail(ncclInvalidArgument,
				 "%s: op %d is not in 0..%d, nor one that was "
				 "made on this communicator", function, (int)op,
				 ncclNumOps - 1);
	if (at->type != type)
		return nccl_fail(ncclInvalidArgument,
				 "%s: op %d was made for datatype %d, and the "
				 "vector's is %d", function, (int)op,
				 (int)at->type, (int)type);
	nccl_type_get(type, &inner);
	bits = at->bits;
	if (at->is_late)
		result = read_late(at, inner, stream, function, &bits);
	if (result)
		return result;
	pthread_mutex_lock(&comm->lock);
	result = factor_get(comm, inner, bits, function, out);
	pthread_mutex_unlock(&comm->lock);
	return result;
}

static ncclResult_t create(ncclRedOp_t *op, const void *scalar,
			   ncclDataType_t datatype,
			   ncclScalarResidence_t residence,
			   struct ncclComm *comm)
{
	static const char function[] = "ncclRedOpCreatePreMulSum";
	enum wreath_type type;
	struct nccl_op *to;
	int i;

	if (!op || !scalar)
		return nccl_fail(ncclInvalidArgument, "%s: %s is NULL",
				 function, op ? "scalar" : "op");
	if (!nccl_type_get(datatype, &type))
		return nccl_fail(ncclInvalidArgument,
				 "%s: datatype %d is not in 0..%d", function,
				 (int)datatype, ncclNumTypes - 1);
	if (residence != ncclScalarDevice &&
	    residence != ncclScalarHostImmediate)
		return nccl_fail(ncclInvalidArgument,
				 "%s: residence %d is not in 0..1", function,
				 (int)residence);
	for (i = 0; i < NCCL_OPS && comm->ops[i].is_used; i++)
		;
	if (i == NCCL_OPS)
		return nccl_fail(ncclInvalidUsage,
				 "%s: the communicator has %d operations "
				 "already; destroy some", function, NCCL_OPS);
	to = &comm->ops[i];
	*to = (struct nccl_op){.is_used = true, .type = datatype,
			       .is_late = residence == ncclScalarDevice,
			       .scalar = scalar};
	if (!to->is_late)
		memcpy(&to->bits, scalar, wreath_type_size(type));
	*op = (ncclRedOp_t)(ncclNumOps + i);
	return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar,
				      ncclDataType_t datatype,
				      ncclScalarResidence_t residence,
				      ncclComm_t comm)
{
	ncclResult_t result = nccl_enter(comm, "ncclRedOpCreatePreMulSum");

	if (result)
		return nccl_group_note(result);
	pthread_mutex_lock(&comm->lock);
	result = create(op, scalar, datatype, residence, comm);
	pthread_mutex_unlock(&comm->lock);
	nccl_leave(comm);
	return nccl_group_note(result);
}
NCCL_ALIAS(ncclRedOpCreatePreMulSum);

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	static const char function[] = "ncclRedOpDestroy";
	ncclResult_t result = nccl_enter(comm, function);
	struct nccl_op *at;

	if (result)
		return nccl_group_note(result);
	pthread_mutex_lock(&comm->lock);
	at = find(comm, op);
	if (at)
		at->is_used = false;
	else
		result = nccl_fail(ncclInvalidArgument,
				   "%s: op %d was not made on this "
				   "communicator", function, (int)op);
	pthread_mutex_unlock(&comm->lock);
	nccl_leave(comm);
	return nccl_group_note(result);
}
NCCL_ALIAS(ncclRedOpDestroy);
