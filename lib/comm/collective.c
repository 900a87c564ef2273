/* SPDX-License-Identifier: MIT */
#include <sched.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/inner.h"

uint64_t comm_ticket(struct wreath_comm *comm)
{
	/* Only the number matters: the turn below orders memory. */
	return atomic_fetch_add_explicit(&comm->next_ticket, 1,
					 memory_order_relaxed);
}

/* Wait until the turn is @ticket; the calls before it end by their deadline. */
void comm_await_turn(struct wreath_comm *comm, uint64_t ticket)
{
	unsigned int n = 0;

	/* Pairs with the release in comm_pass_turn(): what the call before
	 * wrote into plans and connections is seen here. */
	while (atomic_load_explicit(&comm->turn, memory_order_acquire) !=
	       ticket) {
		if (++n < 64)
			base_pause();
		else if (n < 4096)
			sched_yield();
		else
			base_sleep_ms(1);
	}
}

void comm_pass_turn(struct wreath_comm *comm, uint64_t ticket)
{
	/* Pairs with the acquire in comm_await_turn(). */
	atomic_store_explicit(&comm->turn, ticket + 1, memory_order_release);
}

int comm_drain(struct wreath_comm *comm)
{
	/*
	 * Every call before ends by itself within the deadline, or within
	 * moments of a failure, so this ends too.
	 */
	comm_await_turn(comm, atomic_load_explicit(&comm->next_ticket,
					      memory_order_relaxed));
	return comm_error(comm);
}

/* One rank alone: the result is its own input. */
static void copy_alone(const struct comm_op *op, size_t elem_bytes)
{
	if (op->count && op->send != op->recv)
		memcpy(op->recv, op->send, op->count * elem_bytes);
}

enum sched_algo comm_choose(const struct wreath_comm *comm, size_t bytes)
{
	int64_t wanted = comm->env.value[BASE_ENV_ALGO];

	/* The first word of WREATH_ALGO is auto; the rest is in order. */
	if (base_unlikely(wanted))
		return (enum sched_algo)(wanted - 1);
	return sched_choose(SCHED_ALL_REDUCE, comm->n_ranks, bytes,
			    comm->settings);
}

static int run(const struct comm_op *op)
{
	struct wreath_comm *comm = op->comm;
	size_t elem_bytes = wreath_type_size(op->type);
	struct exec_args args;
	enum sched_algo algo;
	int err;

	if (comm->n_ranks == 1) {
		copy_alone(op, elem_bytes);
		return 0;
	}
	algo = comm_choose(comm, op->count * elem_bytes);
	args.send = op->send;
	args.recv = op->recv;
	args.count = op->count;
	args.elem_bytes = elem_bytes;
	args.fold = mem_fold(op->type, op->op);
	args.divisor = op->op == WREATH_AVG ? (unsigned int)comm->n_ranks : 0;
	args.sign.seq = op->ticket + 1;
	args.sign.count = op->count;
	args.sign.collective = SCHED_ALL_REDUCE;
	args.sign.type = op->type;
	args.sign.op = op->op;
	args.sign.algo = algo;
	err = comm_plan(comm, algo, &args.sign);
	return err ? err : exec_run(comm->plans[algo].plan, &args);
}

int comm_run(const struct comm_op *op)
{
	struct wreath_comm *comm = op->comm;
	int err;

	comm_await_turn(comm, op->ticket);
	err = comm_error(comm);
	if (!err) {
		err = run(op);
		/* What the library cannot do it refuses alike on every rank,
		 * before anything moved: the communicator lives on. */
		if (base_unlikely(err && err != WREATH_EUNSUP))
			err = comm_fail(comm, err);
	}
	comm_pass_turn(comm, op->ticket);
	return err;
}

static int check_buffers(const struct comm_op *op, const char *function)
{
	size_t bytes;
	uintptr_t send = (uintptr_t)op->send;
	uintptr_t recv = (uintptr_t)op->recv;

	if (base_mul_overflows(op->count, wreath_type_size(op->type), &bytes) ||
	    bytes > SIZE_MAX / 4)
		return base_error(WREATH_EINVAL,
				  "%s: count %zu of %s does not fit the "
				  "address space", function, op->count,
				  base_type_name(op->type));
	if (!bytes)
		return 0;
	if (!op->send || !op->recv)
		return base_error(WREATH_EINVAL,
				  "%s: %s is NULL and count is %zu", function,
				  op->send ? "recv" : "send", op->count);
	if (send != recv && send < recv + bytes && recv < send + bytes)
		return base_error(WREATH_EINVAL,
				  "%s: send %p and recv %p overlap by part of "
				  "their %zu bytes; they must be equal or "
				  "apart", function, op->send, op->recv, bytes);
	return 0;
}

int wreath_all_reduce(const void *send, void *recv, size_t count,
		      enum wreath_type type, enum wreath_op op,
		      struct wreath_comm *comm, struct wreath_stream *stream)
{
	static const char name[] = "wreath_all_reduce";
	struct comm_op call = {
		.comm = comm,
		.send = send,
		.recv = recv,
		.count = count,
		.type = type,
		.op = op,
	};
	int err = comm_check(comm, name);

	if (err)
		return err;
	if ((unsigned int)type >= WREATH_N_TYPES)
		return base_error(WREATH_EINVAL, "%s: type %d is not in 0..%d",
				  name, (int)type, WREATH_N_TYPES - 1);
	if ((unsigned int)op >= WREATH_N_OPS)
		return base_error(WREATH_EINVAL, "%s: op %d is not in 0..%d",
				  name, (int)op, WREATH_N_OPS - 1);
	err = check_buffers(&call, name);
	if (!err)
		err = comm_error(comm);
	if (err)
		return err;
	if (comm->is_final)
		return base_error(WREATH_EINVAL,
				  "%s: the communicator is finalized", name);
	if (stream)
		return comm_stream_put(stream, &call);
	call.ticket = comm_ticket(comm);
	return comm_run(&call);
}

/* ---- memory, which needs no communicator ---- */

int wreath_mem_alloc(size_t bytes, void **ptr)
{
	if (!ptr)
		return base_error(WREATH_EINVAL,
				  "wreath_mem_alloc: ptr is NULL");
	return mem_alloc(bytes, ptr);
}

int wreath_mem_free(void *ptr)
{
	return mem_free(ptr);
}

int wreath_mem_register(void *ptr, size_t bytes)
{
	return mem_register(ptr, bytes);
}

int wreath_mem_deregister(void *ptr)
{
	return mem_deregister(ptr);
}
