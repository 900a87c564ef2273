/* SPDX-License-Identifier: MIT */
/*
 * exec: runs a schedule.
 *
 * A plan is a schedule with its connections put in.  Running it moves the
 * bytes of one operation, in the calling thread: every lane of the schedule
 * works off its steps, pass after pass, as far as messages and credit allow,
 * and when no lane can go on the thread waits: it spins, yields, and when long
 * idle sleeps.  Every wait ends by the deadline.
 *
 * This room must never know sockets or the public API.  A plan is used by one
 * thread at a time.
 */
#ifndef EXEC_H
#define EXEC_H

#include "mem/mem.h"
#include "net/net.h"
#include "sched/sched.h"

struct exec_plan;

/* What ends a wait. */
struct exec_guard {
	int64_t timeout_ms; /* without any progress */
	/* Pauses before the first yield: as many at most, and fewer, down to
	 * the least, while yields show that another process wants the core. */
	int n_spins_max, n_spins_min;
	/* Has the communicator failed or been aborted?  0 or the error, with
	 * the text set.  Called about once a millisecond of waiting. */
	int (*stopped)(void *arg);
	/* Has @peer, for which we wait, left in peace?  0 or the error. */
	int (*left)(void *arg, int peer);
	void *arg;
};

/* The length of a block that is not there, at either end. */
#define EXEC_ABSENT SIZE_MAX

/* Where a block is: in which memory. */
enum exec_where {
	EXEC_HOST,
	EXEC_PINNED, /* the host's, which kernels of the GPU reach */
	EXEC_GPU,
};

/*
 * Where small vectors of a GPU are put while they are combined on the host:
 * pinned memory, which grows as it is needed.  The caller's, zeros at first.
 */
struct exec_shadow {
	char *base;
	size_t bytes;
};
/* As long as most operations of @n_ranks ranks need it, before a stream waits
 * for one.  WREATH_ENOMEM, WREATH_EDEVICE. */
int exec_shadow_init(struct exec_shadow *shadow, int n_ranks);
void exec_shadow_free(struct exec_shadow *shadow);

/*
 * Where the blocks of a vector lie in a buffer, and how long they are, in
 * bytes.  Lengths are told of all blocks, also of those that the rank does not
 * have; in a paired collective (sched_is_paired()) each rank knows its own.
 */
struct exec_blocks {
	char *base;
	const size_t *at;    /* [n_blocks]; NULL: block b is at b * @stride */
	const size_t *bytes; /* [n_blocks]; NULL: each is @each long */
	size_t stride, each;
	/* SCHED_EXCHANGE: [n_ranks + 1]; the messages to rank r, or from it,
	 * are the blocks from first[r] to first[r + 1], in their order. */
	const size_t *first;
	enum exec_where where;
	const uint8_t *each_where; /* enum exec_where [n_blocks]; NULL: alike */
};

struct exec_args {
	struct exec_blocks in, out;
	size_t longest; /* block, of those whose length this rank knows */
	/* All that belongs to the operation, for the places to be granted:
	 * [in_base, + in_bytes); NULL: nothing that devices may use. */
	const void *in_base;
	void *out_base;
	size_t in_bytes, out_bytes;
	size_t elem_bytes;
	reduce_fn *fold;
	unsigned int divisor; /* of the result; 0: none */
	/*
	 * The product kernel, and a vector of the factor, as long as a slot:
	 * this rank's input is multiplied by it before it is folded.  NULL:
	 * no factor.  @scratch, as long, is written.
	 */
	reduce_fn *multiply;
	const void *factor;
	void *scratch;
	/* The GPU that blocks of @in or @out are on; NULL: all is the host's,
	 * and the rest of these is not looked at. */
	struct mem_gpu *gpu;
	struct exec_shadow *shadow;
	enum wreath_type type; /* of the fold, and its op */
	enum wreath_op op;
	bool reads, writes; /* this rank needs @in, and @out */
	struct net_sign sign;
	/*
	 * SCHED_EXCHANGE, where peers are not connected: go on with that.
	 * Called again and again until they are; it may not wait for a peer.
	 * By how many steps it has come on, or an error.
	 */
	int (*connect)(void *arg);
	void *connect_arg;
};

/*
 * Compile.  @sched stays the caller's and must outlive the plan; every
 * connection it needs is there, but for SCHED_EXCHANGE, which takes them up as
 * they come.  WREATH_ENOMEM.
 */
int exec_plan_new(struct net *net, const struct sched *sched,
		  const struct exec_guard *guard, struct exec_plan **out);
void exec_plan_free(struct exec_plan *plan);

/*
 * Run one operation.  0, or the error that broke the communicator: after one,
 * no plan of it may run again.
 */
int exec_run(struct exec_plan *plan, const struct exec_args *args);

/*
 * "all_reduce(count 4, float32, sum) by ring", for messages; the collective
 * SCHED_N_COLLECTIVES is the end of the communicator, those beyond it are its
 * split and its duplicate.
 */
void exec_sign_text(const struct net_sign *sign, char *out, size_t size);

#endif
