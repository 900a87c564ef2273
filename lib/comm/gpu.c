/* SPDX-License-Identifier: MIT */
/* Buffers on GPUs: which one, and what is done there without other ranks. */
#include <sched.h>
#include <stdio.h>

#include "comm/inner.h"

/* Where there is no other rank, hence no slot: what is staged at a time. */
#define ALONE_BYTES (256 << 10)

static enum exec_where where_of(const struct mem_where *where)
{
	switch (where->kind) {
	case MEM_DEVICE:
	case MEM_MANAGED:
		return EXEC_GPU;
	case MEM_PINNED:
		return EXEC_PINNED;
	default:
		return EXEC_HOST;
	}
}

static int find(const struct comm_op *op, const char *which, const void *ptr,
		enum exec_where *out, int *gpu)
{
	struct mem_where where;
	char text[1024];
	int err = mem_where(ptr, &where);

	if (base_unlikely(err)) {
		snprintf(text, sizeof(text), "%s", base_error_text());
		return base_error(err, "%s: %s: %s", op->name, which, text);
	}
	*out = where_of(&where);
	if (base_likely(*out != EXEC_GPU))
		return 0;
	if (*gpu >= 0 && *gpu != where.gpu)
		return base_error(WREATH_EINVAL,
				  "%s: send is on GPU %d, and recv on GPU %d; "
				  "the buffers of a call must be on one",
				  op->name, *gpu, where.gpu);
	*gpu = where.gpu;
	return 0;
}

/*
 * Opening a GPU may wait for its streams: so it is done by the call, before a
 * stream waits for the operation.
 */
static int prepare(const struct comm_op *op)
{
	struct mem_gpu *gpu;
	int err;

	if (base_likely(op->gpu < 0))
		return 0;
	err = comm_gpu_open(op->comm, op->gpu, &gpu);
	/* What cannot be is refused.  Else it is tried again in its turn, in
	 * which a failure is told to all ranks. */
	return err == WREATH_EUNSUP || err == WREATH_EINVAL ? err : 0;
}

int comm_gpu_find(struct comm_op *op)
{
	int err = 0;

	/* Once for both buffers: it is all that calls on the host need. */
	if (base_likely(!mem_cuda_is_here()))
		return 0;
	if (op->reads)
		err = find(op, "send", op->send, &op->in_where, &op->gpu);
	if (!err && op->writes && op->recv == op->send && op->reads)
		op->out_where = op->in_where;
	else if (!err && op->writes)
		err = find(op, "recv", op->recv, &op->out_where, &op->gpu);
	return err ? err : prepare(op);
}

static bool has_gpu(const struct wreath_comm *comm)
{
	int i;

	for (i = 0; i < COMM_GPUS_MAX; i++)
		if (atomic_load_explicit(&comm->gpus[i], memory_order_relaxed))
			return true;
	return false;
}

/* Caller holds @comm->gpu_lock. */
static int open_gpu(struct wreath_comm *comm, int number, struct mem_gpu **out)
{
	/* The net is a thread's that still makes it. */
	bool has_net = !comm_is_joining(comm) && comm->net;
	int err = 0;

	/* Nobody has used the shadow before there was a GPU. */
	if (!has_gpu(comm))
		err = exec_shadow_init(&comm->shadow, comm->n_ranks);
	return err ? err
		   : mem_gpu_open(number, has_net ? comm->net->slot_bytes
						  : ALONE_BYTES, out);
}

int comm_gpu_open(struct wreath_comm *comm, int number, struct mem_gpu **out)
{
	int err = 0;

	if (number >= COMM_GPUS_MAX)
		return base_error(WREATH_EUNSUP,
				  "GPU %d is beyond the %d that a communicator "
				  "can use", number, COMM_GPUS_MAX);
	/* Pairs with the release below: it, and the shadow, are there. */
	*out = atomic_load_explicit(&comm->gpus[number], memory_order_acquire);
	if (base_likely(*out))
		return 0;
	pthread_mutex_lock(&comm->gpu_lock);
	*out = atomic_load_explicit(&comm->gpus[number], memory_order_relaxed);
	if (!*out)
		err = open_gpu(comm, number, out);
	/* Pairs with the acquire above. */
	if (!err)
		atomic_store_explicit(&comm->gpus[number], *out,
				      memory_order_release);
	pthread_mutex_unlock(&comm->gpu_lock);
	return err;
}

int comm_gpu_of(const struct comm_op *op)
{
	size_t i;

	for (i = 0; op->exchange && i < op->exchange->n; i++)
		if (op->exchange->ops[i].gpu >= 0)
			return op->exchange->ops[i].gpu;
	return op->gpu;
}

void comm_gpus_close(struct wreath_comm *comm)
{
	int i;

	for (i = 0; i < COMM_GPUS_MAX; i++)
		if (comm->gpus[i])
			mem_gpu_close(comm->gpus[i]);
	exec_shadow_free(&comm->shadow);
	pthread_mutex_destroy(&comm->gpu_lock);
}

int comm_gpu_args(const struct comm_op *op, struct exec_args *args)
{
	args->gpu = NULL;
	if (base_likely(op->gpu < 0))
		return 0;
	args->shadow = &op->comm->shadow;
	args->reads = op->reads;
	args->writes = op->writes;
	args->in.where = op->in_where;
	args->out.where = op->out_where;
	return comm_gpu_open(op->comm, op->gpu, &args->gpu);
}

/* Wait for a job that depends on no other rank. */
static int await(struct wreath_comm *comm, struct mem_gpu *gpu, uint64_t number)
{
	uint64_t start = base_now_ns();
	int64_t timeout_ms = comm->env.value[BASE_ENV_TIMEOUT];

	for (;;) {
		int err = mem_gpu_push(gpu);
		int is_done = err ? err : mem_gpu_done(gpu, number);

		if (is_done)
			return is_done < 0 ? is_done : 0;
		err = comm_guard_stopped(comm);
		if (err)
			return err;
		if ((int64_t)((base_now_ns() - start) / 1000000) > timeout_ms)
			return base_error(WREATH_ETIMEOUT,
					  "GPU %d has not finished a copy in "
					  "%.1f s; is it busy with a kernel that "
					  "does not end?  WREATH_TIMEOUT sets "
					  "the deadline", mem_gpu_number(gpu),
					  (double)timeout_ms / 1e3);
		sched_yield();
	}
}

int comm_gpu_move(const struct comm_op *from, const void *src,
		  const struct comm_op *to, void *dst, size_t bytes,
		  const void *factor)
{
	int number = from->gpu >= 0 ? from->gpu : to->gpu;
	enum wreath_type type = factor ? from->type : WREATH_UINT8;
	struct mem_job job = {
		.fold = {.dst = &dst, .n_dst = 1, .src = &src, .n_src = 1,
			 .count = bytes / wreath_type_size(type)},
		.type = type,
		.op = WREATH_SUM,
		.gpu_src = from->in_where == EXEC_GPU,
		.gpu_dst = to->out_where == EXEC_GPU,
		.is_pinned = from->in_where != EXEC_HOST &&
			     to->out_where != EXEC_HOST,
		.factor = factor,
	};
	struct mem_gpu *gpu;
	uint64_t n;
	int err = comm_gpu_open(from->comm, number, &gpu);

	if (err)
		return err;
	err = mem_gpu_fold(gpu, &job, &n);
	if (!err)
		err = await(from->comm, gpu, n);
	/* What is under way writes to the user's memory. */
	if (err)
		mem_gpu_drain(gpu, 10000);
	return err;
}
