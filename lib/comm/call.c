/* SPDX-License-Identifier: MIT */
/* How a call runs: in its turn, by the plan that is chosen for it. */
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

/* What WREATH_ALGO asks for, or SCHED_N_ALGOS. */
static enum sched_algo wanted(const struct wreath_comm *comm,
			      enum sched_collective collective, size_t bytes)
{
	/* The first word of WREATH_ALGO is auto; the rest is in order. */
	int64_t algo = comm->env.value[BASE_ENV_ALGO] - 1;

	/* Directly, an all-reduce is one of two. */
	if (base_unlikely(algo == SCHED_DIRECT) &&
	    sched_has_form(collective, SCHED_ONESHOT))
		return sched_choose(comm->n_ranks, bytes, comm->settings) ==
				       SCHED_ONESHOT
			       ? SCHED_ONESHOT : SCHED_TWOSHOT;

	if (base_unlikely(algo >= 0) &&
	    sched_has_form(collective, (enum sched_algo)algo))
		return (enum sched_algo)algo;
	return SCHED_N_ALGOS;
}

enum sched_algo comm_choose(const struct wreath_comm *comm,
			    enum sched_collective collective, size_t bytes)
{
	const struct sched_chooser *chooser = comm_chooser(comm, collective);
	enum sched_algo algo = wanted(comm, collective, bytes);

	if (algo != SCHED_N_ALGOS)
		return algo;
	if (chooser)
		return sched_chooser_find(chooser, bytes)->algo;
	/* One rank alone has nothing to choose. */
	return sched_has_form(collective, SCHED_ONESHOT) ? SCHED_ONESHOT
							 : SCHED_DIRECT;
}

/* By how many channels: fewer for what is short, or as a rule says. */
static int n_channels(const struct wreath_comm *comm, size_t bytes, int ruled)
{
	int n = comm->net->n_channels;

	if (ruled)
		return ruled < n ? ruled : n;
	return bytes <= SCHED_ONE_CHANNEL_MAX ? 1 : n;
}

/* Sets @sign's algorithm, and the channels. */
static int choose(struct wreath_comm *comm, size_t bytes, struct net_sign *sign,
		  int *channels)
{
	enum sched_collective collective =
		(enum sched_collective)sign->collective;
	enum sched_algo algo = wanted(comm, collective, bytes);
	const struct sched_chooser *chooser;
	const struct sched_span *span;
	int err;

	if (base_unlikely(algo != SCHED_N_ALGOS)) {
		sign->algo = (uint32_t)algo;
		*channels = n_channels(comm, bytes, 0);
		return 0;
	}
	chooser = comm_chooser(comm, collective);
	if (base_unlikely(!chooser)) {
		/* All ranks come here together, or disagree, which is told
		 * before they exchange what no other call would. */
		err = 0;
		sign->algo = SCHED_N_ALGOS;
		if (!comm->is_plain) {
			net_sign_post(comm->net, sign);
			err = comm_compare(comm, sign);
		}
		if (!err)
			err = comm_chooser_new(comm, collective, &chooser);
		if (err)
			return err;
	}
	span = sched_chooser_find(chooser, bytes);
	sign->algo = (uint32_t)span->algo;
	*channels = n_channels(comm, bytes, span->n_channels);
	return 0;
}

/* For messages and comparison: what all ranks must have alike. */
static void sign(const struct comm_op *op, struct net_sign *out)
{
	*out = (struct net_sign){
		.count = op->count,
		.collective = (uint32_t)op->collective,
		.type = (uint32_t)op->type,
		.op = (uint32_t)op->op,
		.root = (uint32_t)op->root,
		.is_ragged = op->lists.out_counts != NULL,
	};
	if (op->op >= WREATH_OP_USER)
		out->op = WREATH_OP_USER;
}

/*
 * The bytes of all blocks, to choose by.  Where each rank knows those of its
 * own only, all must take the same number: as if there were no end of them.
 */
static size_t bytes_of(const struct comm_op *op, const struct exec_args *args)
{
	if (op->lists.out_counts && op->collective == SCHED_ALL_TO_ALL)
		return SIZE_MAX;
	return args->longest * (size_t)sched_n_blocks(op->collective,
						      op->comm->n_ranks);
}

static int run(struct comm_op *op)
{
	struct wreath_comm *comm = op->comm;
	struct exec_args args;
	struct exec_plan *plan;
	int channels, err;

	if (comm->n_ranks == 1)
		return comm_run_alone(op);
	if (op->collective == SCHED_EXCHANGE)
		return comm_exchange_run(op);
	sign(op, &args.sign);
	err = comm_args(op, &args);
	if (err)
		return err;
	args.sign.seq = comm_next_seq(comm);
	err = choose(comm, bytes_of(op, &args), &args.sign, &channels);
	if (base_unlikely(err))
		return err;
	err = comm_plan(comm, channels, &args.sign, &plan);
	return err ? err : exec_run(plan, &args);
}

int comm_run(struct comm_op *op)
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
	/* After a failure as well: the user's kernels must not wait. */
	comm_stream_go_on(op);
	comm_pass_turn(comm, op->ticket);
	comm_op_end(op);
	return err;
}
