/* SPDX-License-Identifier: MIT */
/*
 * comm: the functions of wreath.h, and what joins the rooms below to them.
 *
 * A communicator runs one operation at a time.  Operations take a ticket when
 * they are called, blocking or on a stream, and run in the order of their
 * tickets, so that the order of calls is the order on every rank.
 */
#ifndef COMM_INNER_H
#define COMM_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "boot/boot.h"
#include "exec/exec.h"
#include "net/net.h"
#include "sched/sched.h"
#include "topo/topo.h"
#include "wreath.h"

#define COMM_MAGIC 0x77726561746821ull
#define COMM_OPS_MAX 64 /* scaled sums of a communicator */
#define COMM_RANKS_MAX 1024
#define COMM_GPUS_MAX 32 /* of a host, as CUDA numbers them */

/* What ranks tell each other when they meet. */
struct comm_info {
	uint64_t host_id;
	struct topo_cores cores;
	uint32_t version;
	int32_t algo, arrival, channels, connect, slots;
	int32_t all_ports; /* this rank needs more than the soft device */
	int32_t has_channels; /* WREATH_CHANNELS is set */
	int32_t node;	      /* that it pretends to be on, or -1 */
	int64_t slot_bytes;
	int64_t tuning; /* hash of the file of WREATH_TUNING, or 0 */
};

/* What ends the joining of a communicator before its time. */
struct comm_stop {
	/* 0, or the error to end it by, with the text set; may not wait. */
	int (*stopped)(void *arg);
	void *arg;
};

/* Calls that are no collective, as struct net_sign tells them. */
enum comm_call {
	COMM_END = SCHED_N_COLLECTIVES,
	COMM_SPLIT,
	COMM_DUPLICATE,
};

struct wreath_comm {
	uint64_t magic;
	int rank, n_ranks;
	bool is_plain; /* soft ports, and all memory in reach */
	bool crowded, all_local, all_ports, is_final;
	int n_nodes;
	int max_rails; /* 0: as many as there are */
	uint32_t *hosts, *nodes; /* [n_ranks]: see nodes.c */
	unsigned int settings; /* enum sched_setting, for sched_choose() */
	struct base_env env;
	struct boot *boot;
	struct net *net;
	struct comm_model *model; /* model.h */
	struct comm_info *infos;	/* [n_ranks] */
	char (*names)[128];		/* [n_ranks] */
	const struct comm_stop *stop;	/* while it joins; may be NULL */
	struct exec_guard guard;
	struct comm_plan *plans[SCHED_N_COLLECTIVES][SCHED_N_ALGOS];
	struct comm_factor *factors[COMM_OPS_MAX]; /* NULL: free */
	void *scratch;	     /* as long as a factor's vector, or NULL */
	_Atomic(struct mem_gpu *) gpus[COMM_GPUS_MAX]; /* NULL: not used yet */
	pthread_mutex_t gpu_lock; /* of who sets one of @gpus, and @shadow */
	struct exec_shadow shadow;
	size_t *lists;	     /* of the operation under way; or NULL */
	struct comm_talk *talks; /* [n_ranks], exchange.c's; or NULL */
	size_t *queues; /* exchange.c's: messages under way; or NULL */
	size_t n_queues; /* words of it */
	struct wreath_stream *worker; /* for groups of several; or NULL */
	char barrier[2];     /* what a barrier folds */
	uint64_t n_untaken;  /* the sum of all ranks' comm_exchange_sum() */
	uint64_t n_collectives; /* run: the number of the next */
	_Atomic uint64_t next_ticket;	/* of the next call */
	_Atomic uint64_t turn;		/* the ticket that may run */
	_Atomic bool aborted;
	_Atomic int error;		/* what broke it, or 0 */
	pthread_mutex_t error_lock;	/* of @error_text */
	char error_text[2048];
	struct comm_joining *joining; /* wreath_comm_init_start(), else NULL */
};

/* A plan and what it is of; for each root, in a list. */
struct comm_plan {
	struct comm_plan *next;
	int root, n_channels;
	struct sched *sched;
	struct exec_plan *plan;
};

/* An operation of wreath_op_create_scaled_sum(). */
struct comm_factor {
	_Atomic unsigned int n_users; /* calls that wait, and the op itself */
	enum wreath_type type;
	size_t bytes; /* of the vector: as long as a slot */
	char vector[];
};

/*
 * Lists of a v-form: elements, as the user gave them.  NULL: none, or one
 * block behind the other.
 */
struct comm_lists {
	const size_t *in_counts, *in_displs, *out_counts, *out_displs;
};

/* The sends and receives of a group. */
struct comm_exchange;

/* One call, as it waits in a stream. */
struct comm_op {
	struct wreath_comm *comm;
	uint64_t ticket;
	const char *name; /* of the function */
	enum sched_collective collective;
	const void *send;
	void *recv;
	size_t count;
	enum wreath_type type;
	enum wreath_op op;
	int root; /* of a send or receive: the peer */
	struct wreath_stream *stream; /* NULL: blocking */
	struct comm_lists lists;
	/* gpu.c: the GPU that a buffer is on, or -1, and where each is. */
	int gpu;
	enum exec_where in_where, out_where;
	bool reads, writes; /* this rank needs @send, and @recv */
	uint32_t cuda_put;  /* of a CUDA stream: its place in it */
	struct comm_factor *factor; /* a scaled sum's, or NULL */
	const struct comm_exchange *exchange; /* a group's, or NULL */
	void *owned; /* freed when it is done; NULL is allowed */
};

/* In the order of the calls. */
struct comm_exchange {
	size_t n;
	struct comm_op ops[];
};

static inline bool comm_is_valid(const struct wreath_comm *comm)
{
	return comm && comm->magic == COMM_MAGIC;
}
int comm_check(const struct wreath_comm *comm, const char *function);

/* A call's place in the order; every ticket must get and pass its turn. */
uint64_t comm_ticket(struct wreath_comm *comm);
void comm_await_turn(struct wreath_comm *comm, uint64_t ticket);
void comm_pass_turn(struct wreath_comm *comm, uint64_t ticket);

/* Wait for the turn of @op's ticket, and run it; the error is kept. */
int comm_run(struct comm_op *op);

/* args.c: what exec is told of @op; lists are put into comm->lists. */
int comm_args(const struct comm_op *op, struct exec_args *args);
/* The same without other ranks. */
int comm_run_alone(const struct comm_op *op);

/* check.c: what may be wrong with a call, with its text set. */
int comm_check_call(struct comm_op *op);
int comm_check_buffers(struct comm_op *op);
/* Of a send or receive, whose only buffer is @buffer. */
int comm_check_message(struct comm_op *op, const void *buffer);

/* group.c: the end of every call: into the group that is open, into its
 * stream, or done.  @op has been checked. */
int comm_put(struct comm_op *op);
/* A call was refused: so is the group that is open, if there is one. */
void comm_group_refuse(int error);
/* Does the group that is open have calls of @comm?  0, or WREATH_EINVAL. */
int comm_group_check(const struct wreath_comm *comm, const char *function);
/* @comm goes: so do its calls, and the group is refused. */
void comm_group_forget(const struct wreath_comm *comm);

/* exchange.c: SCHED_EXCHANGE, one send or receive, or those of a group. */
int comm_exchange_run(const struct comm_op *op);
/* Messages that this rank has sent, less those that it has received. */
uint64_t comm_exchange_sum(const struct wreath_comm *comm);
/* The sums of all ranks are not 0: who has not received?  Collective. */
int comm_exchange_end(struct wreath_comm *comm);

/* factor.c */
void comm_factors_free(struct wreath_comm *comm);
/* A call that uses it waits, or does not any more; NULL is allowed. */
void comm_factor_hold(struct comm_factor *factor);
void comm_factor_drop(struct comm_factor *factor);

/* gpu.c.  Where are the buffers of @op that this rank needs?  WREATH_EINVAL
 * for those that CUDA does not know, or of several GPUs. */
int comm_gpu_find(struct comm_op *op);
int comm_gpu_open(struct wreath_comm *comm, int number, struct mem_gpu **out);
void comm_gpus_close(struct wreath_comm *comm);
/* The GPU of @op, or of one of its messages; -1: none. */
int comm_gpu_of(const struct comm_op *op);
/* What exec is told of the GPU. */
int comm_gpu_args(const struct comm_op *op, struct exec_args *args);
/*
 * Copy from the input of one call, at @src, to the output of one, at @dst, of
 * the same communicator; one of them is on a GPU.  @factor: an element of
 * @from's type to multiply by, or NULL.  Blocks.
 */
int comm_gpu_move(const struct comm_op *from, const void *src,
		  const struct comm_op *to, void *dst, size_t bytes,
		  const void *factor);

/* The number of a collective, in the order of calls. */
static inline uint64_t comm_next_seq(struct wreath_comm *comm)
{
	return ++comm->n_collectives;
}

/*
 * Wait for the turn of @ticket, which the caller passes, and meet all ranks
 * there in a call that is no collective: whoever waits in another call at that
 * place learns that this rank is in @what.
 */
int comm_meet(struct wreath_comm *comm, uint64_t ticket, uint32_t what);

/* Wait until every ticket given out has run, up to the deadline. */
int comm_drain(struct wreath_comm *comm);

/*
 * The sentence of the last failure as all ranks shall read it: with the name
 * of the rank that it happened on.
 */
void comm_own_words(const struct wreath_comm *comm, char text[2048]);
/* The communicator is broken: keep the error, tell every rank. */
int comm_fail(struct wreath_comm *comm, int error);
/*
 * The same from any thread, in no turn; the error that it is broken by from now
 * on, which may be an earlier one.
 */
int comm_break(struct wreath_comm *comm, int error, int culprit,
	       const char *text);
/* 0, or what broke it, with the text of the calling thread set. */
int comm_error_told(struct wreath_comm *comm);
static inline int comm_error(struct wreath_comm *comm)
{
	/* Pairs with the release in init.c: the text is there. */
	return base_likely(!atomic_load_explicit(&comm->error,
						 memory_order_acquire))
		       ? 0 : comm_error_told(comm);
}

/* For struct exec_guard; @arg is the communicator. */
int comm_guard_stopped(void *arg);
int comm_guard_left(void *arg, int peer);

/*
 * Make a communicator with settings @env: alone, then joined with the others.
 * comm_new() is both.  @stop may be NULL.
 */
int comm_alloc(int rank, int n_ranks, const struct base_env *env,
	       struct wreath_comm **out);
int comm_join(struct wreath_comm *comm, const struct wreath_unique_id *id,
	      const struct comm_stop *stop);
int comm_new(const struct wreath_unique_id *id, int rank, int n_ranks,
	     const struct base_env *env, const struct comm_stop *stop,
	     struct wreath_comm **out);
void comm_free(struct wreath_comm *comm);
int comm_check_init(const struct wreath_unique_id *id, int rank, int n_ranks,
		    struct wreath_comm **comm, const char *function);

/*
 * While a thread joins it, comm->error is WREATH_EAGAIN, so that the one look
 * that every call takes at it is enough; boot and net are the thread's then.
 */
static inline bool comm_is_joining(const struct wreath_comm *comm)
{
	/* Pairs with the release in comm_joined(). */
	return atomic_load_explicit(&comm->error, memory_order_acquire) ==
	       WREATH_EAGAIN;
}
/* The thread's joining has ended with @err and the text of the thread. */
void comm_joined(struct wreath_comm *comm, int err);
/* Mark as aborted; true where that is left to the thread that joins. */
bool comm_abort_joining(struct wreath_comm *comm);
/* start.c: wait for that thread, where there is one, having stopped it. */
void comm_join_end(struct wreath_comm *comm);

/* notes.c */
struct net_notes comm_notes(struct wreath_comm *comm);
/* For boot: peers may need this rank, @arg, to mend a connection. */
int comm_while_waiting(void *arg);
/* For boot: whether the joining of communicator @arg is to end. */
int comm_join_stopped(void *arg);
/* For boot: what this rank, its net in @arg, is doing. */
size_t comm_answer(void *arg, const void *ask, size_t bytes, void *reply);

/*
 * nodes.c: number the hosts and nodes of all ranks, by what they have told.
 * WREATH_EMISMATCH where only some of them pretend to be on one.
 */
int comm_nodes_find(struct wreath_comm *comm);

/* ports.c: find the ports of this rank, and those that each peer is reached
 * by.  Collective. */
int comm_ports_open(struct wreath_comm *comm);

/*
 * model.c.  The tuning file is read when the communicator is made.  A chooser
 * is made, and once in a communicator's life the machine measured, by the first
 * call that needs it; collective.
 */
int comm_model_open(struct wreath_comm *comm);
void comm_model_close(struct wreath_comm *comm);
uint64_t comm_tuning_hash(const struct wreath_comm *comm);
int comm_chooser_new(struct wreath_comm *comm,
		     enum sched_collective collective,
		     const struct sched_chooser **out);

/* plans.c: the plan of @shape's operation, connected; made at first use. */
int comm_plan_new(struct wreath_comm *comm, int n_channels,
		  const struct net_sign *sign, struct exec_plan **out);
static inline int comm_plan(struct wreath_comm *comm, int n_channels,
			    const struct net_sign *sign, struct exec_plan **out)
{
	const struct comm_plan *plan =
		comm->plans[sign->collective][sign->algo];

	while (plan && (plan->root != (int)sign->root ||
			plan->n_channels != n_channels))
		plan = plan->next;
	if (base_unlikely(!plan))
		return comm_plan_new(comm, n_channels, sign, out);
	*out = plan->plan;
	return 0;
}
void comm_plans_free(struct wreath_comm *comm);

/* connect.c: make the connections in @needed, by peer and channel; @sign is
 * of the call that all ranks are in.  Collective. */
int comm_connect(struct wreath_comm *comm, const bool *needed,
		 const struct net_sign *sign);
/* Connect those of @peers [n] that are not connected, which do the same. */
int comm_connect_pairs(struct wreath_comm *comm, const bool *peers);
/* The steps of that, with a peer: new connections on the channels that are
 * needed, and the peer's records taken; WREATH_EAGAIN: not by these ports. */
int comm_offer(struct wreath_comm *comm, const bool *needed, int peer);
int comm_take_offer(struct wreath_comm *comm, const bool *needed, int peer,
		    const struct net_record *records);

/*
 * pairs.c: the same without waiting, while messages with others go on.
 * comm_pairs_step() takes a struct comm_pairs: by how many steps it has come
 * on, or an error.
 */
struct comm_pairs;
int comm_pairs_new(struct wreath_comm *comm, const bool *peers,
		   struct comm_pairs **out);
int comm_pairs_step(void *pairs);
void comm_pairs_free(struct comm_pairs *pairs);

/*
 * Compare the call that every rank is in; collective, over boot.  0, or
 * WREATH_EMISMATCH with a text that names two that differ.
 */
int comm_compare(struct wreath_comm *comm, const struct net_sign *sign);

/* @op is done, or is not to be done: what it holds goes. */
void comm_op_end(struct comm_op *op);

/* @op has run: the CUDA stream that it is in order with goes on. */
void comm_stream_go_on(const struct comm_op *op);

/* Queue @op; WREATH_EAGAIN when the queue is full. */
int comm_stream_put(struct wreath_stream *stream, struct comm_op *op);

#endif
