/* SPDX-License-Identifier: MIT */
/* exec's own: what its files share and nobody else may know. */
#ifndef EXEC_INNER_H
#define EXEC_INNER_H

#include "exec/exec.h"

/* The longest message that goes as lines. */
#define EXEC_LINES_BYTES (NET_LINES_MAX * NET_LINE_DATA)
/* Places are granted from this size of block on: with less, copying out of a
 * slot costs less than the grant (measured: a broadcast of 1 KB with 2 ranks
 * took 0.45 us with grants and 0.20 us without). */
#define EXEC_PLACE_MIN (2 << 10)
_Static_assert(SCHED_SIM_LINES_BYTES == EXEC_LINES_BYTES &&
		       SCHED_SIM_LINES_WINDOW == NET_LINE_SLOTS &&
		       SCHED_SIM_PLACE_MIN == EXEC_PLACE_MIN,
	       "the simulator does as the executor");
/* Outputs are written around the cache from here on (measured: worse below 2
 * MB, 1.25x to 1.6x better from 16 MB). */
#define EXEC_STREAM_MIN (4 << 20)

struct exec_step {
	struct net_lane **recv, **send;
	uint32_t n_recv, n_send;
	uint32_t block, channel, piece; /* its chunk; the channel's piece */
	uint32_t local_at;
	int32_t after_lane, after_step;
	uint8_t local, flags;
};

struct exec_lane {
	struct exec_step *steps;
	uint32_t n_steps;
	/* Where it is in the operation under way. */
	uint32_t step;
	uint32_t n_arrived; /* receives of the step that are there */
	uint64_t pass;
	/* The bytes of the step's chunk, once they are worked out. */
	bool has_chunk;
	size_t offset, bytes;
	const struct net_lane *waits_for; /* what held it up last */
	bool is_done;
	/* Of sends and receives: what messages it works off. */
	int peer; /* -1: it is no such lane */
	uint32_t channel, box; /* the peer's */
	uint32_t end; /* of its queue; steps->block is the message */
	uint64_t n_passes; /* of the message */
	bool is_attached; /* to its peer, which is connected */
	/* The fold of its step, which a GPU has taken up; 0: none. */
	uint64_t job;
	bool has_grant; /* the peer's for the message, if there is one */
};

/*
 * Which operations may do without slots, each rank reading what others send
 * where it is in their input.  All ranks must conclude alike.
 */
enum exec_reading {
	EXEC_READ_NONE,
	EXEC_READ_ALL,	/* everyone hears from everyone what it may read */
	EXEC_READ_ROOT, /* only the root's input is read */
};

struct exec_plan {
	struct net *net;
	const struct sched *sched;
	struct exec_guard guard;
	uint32_t n_spins; /* of guard's range, as learnt */
	uint64_t switched_ns; /* a yield that took longer ran somebody else */
	uint64_t stuck_since_ns; /* of the operation: without progress; or 0 */
	bool is_told; /* others have said why it fails */
	bool is_paired;
	/* Sends and receives: each step is a lane, and repeats itself for each
	 * message of its queue. */
	bool is_parted;
	struct exec_lane **busy; /* the lanes that have messages */
	uint32_t n_busy, n_apart; /* n_apart: not attached yet */
	struct exec_lane *lanes;
	uint32_t n_lanes;
	struct exec_step *steps;
	struct net_lane **ends; /* the steps' lists point into it */
	size_t n_ends;
	/* Connections by which places are granted to us, and by us. */
	struct net_conn **grants_to, **grants_from;
	uint32_t n_grants_to, n_grants_from;
	struct net_conn **missing; /* of grants_from, not yet heard */
	uint32_t grant_kinds; /* enum net_place_kind, to be granted */
	uint32_t read_kinds;  /* that all must have granted to do so */
	enum exec_reading reading;
	/* Where everyone is to conclude alike: whom this rank grants places
	 * grants it some, and the other way round. */
	bool is_mutual;
	bool is_exchange;
	struct net_lane **receives; /* every lane that receives, once */
	uint32_t n_receives;
	struct net_lane **awaits; /* raw input is sent there, and awaited */
	uint32_t n_awaits;
	/* Ends of the channels' shares of a block, in 1/65536 of it. */
	uint32_t shares[SCHED_CHANNELS_MAX + 1];
	uint32_t n_pieces; /* of a channel's share */

	/* Where small messages are put together. */
	_Alignas(BASE_LINE) char lines[NET_LINES_MAX * BASE_LINE];

	/* The operation under way. */
	const struct exec_args *args;
	uint32_t signature;
	size_t pass_bytes; /* of each block */
	uint64_t n_passes;
	/* Lengths of blocks are known to pairs of ranks only. */
	bool is_private;
	bool uses_places;
	/* What others send is read in their input, what is final is written to
	 * its place: no slot is used, and one pass does it all. */
	bool is_in_place;
	bool streams;
	uint32_t n_missing;
	/* Of an operation on a GPU: where its buffers are. */
	struct mem_where in_where, out_where;
	uint32_t n_jobs;   /* lanes that wait for the GPU */
	bool is_pinned;	   /* kernels reach the slots of all connections */
	bool has_grown;	   /* ... but those of new ones */
	bool needs_flush;  /* what devices wrote into the GPU's memory */
};

/* A step's operands. */
struct exec_fold {
	const void *src[REDUCE_MAX];
	void *dst[REDUCE_MAX];
	uint32_t n_src, n_dst;
	bool all_final; /* nothing of it goes to a slot */
	/* For a GPU: which are in memory of GPUs, a bit each, and whether one
	 * is where no kernel reaches it. */
	uint64_t gpu_src, gpu_dst;
	bool is_far;
};

/* The lane's step, as far as it can go: 1 done, 0 held up, or an error. */
int exec_step_slots(struct exec_plan *plan, struct exec_lane *lane);
int exec_step_lines(struct exec_plan *plan, struct exec_lane *lane);
/*
 * The step's own chunk, which it has; of the input times its factor, where
 * there is one, and then in the scratch memory.
 */
const char *exec_own_chunk(const struct exec_plan *plan,
			   const struct exec_step *step, size_t offset,
			   size_t bytes);

/* ---- cut.c: which bytes a chunk is ---- */

/* The channels' shares, by the rates of their rails. */
void exec_cut_shares(struct exec_plan *plan);
/* Cut the operation into passes. */
void exec_cut(struct exec_plan *plan);
/*
 * Bytes [@offset, + result) of the step's block, in pass @pass.  0 for what is
 * empty, EXEC_ABSENT where there is no such block.
 */
size_t exec_chunk(const struct exec_plan *plan, const struct exec_step *step,
		  uint64_t pass, size_t *offset);
/* The longest chunk of the operation. */
size_t exec_longest_chunk(const struct exec_plan *plan);

/* A place in a block; as numbers, since blocks may lie anywhere. */
static inline char *exec_at(const struct exec_blocks *blocks, uint32_t block,
			    size_t offset)
{
	size_t at = blocks->at ? blocks->at[block] : block * blocks->stride;

	return (char *)((uintptr_t)blocks->base + at + offset);
}

static inline size_t exec_block_bytes(const struct exec_blocks *blocks,
				      uint32_t block)
{
	return blocks->bytes ? blocks->bytes[block] : blocks->each;
}

/* The blocks that the step's chunk is one of: of the output, unless it is
 * read from the input. */
static inline const struct exec_blocks *
exec_blocks_of(const struct exec_plan *plan, const struct exec_step *step)
{
	return step->local == SCHED_INPUT ? &plan->args->in : &plan->args->out;
}

/*
 * What messages of the step carry as their signature: where only two ranks
 * know how long their block is, that as well.
 */
static inline uint32_t exec_signature(const struct exec_plan *plan,
				      const struct exec_step *step)
{
	uint64_t bytes;

	if (base_likely(!plan->is_private))
		return plan->signature;
	bytes = exec_block_bytes(exec_blocks_of(plan, step), step->block);
	bytes = (bytes + 1) * 0x9e3779b97f4a7c15u;
	return plan->signature ^ (uint32_t)(bytes >> 32);
}

static inline enum exec_where exec_where(const struct exec_blocks *blocks,
					 uint32_t block)
{
	return blocks->each_where ? (enum exec_where)blocks->each_where[block]
				  : blocks->where;
}

/* Has what the step depends on been done? */
static inline bool exec_is_after(const struct exec_plan *plan,
				 const struct exec_lane *lane,
				 const struct exec_step *step)
{
	const struct exec_lane *other;

	if (base_likely(step->after_lane < 0))
		return true;
	other = &plan->lanes[step->after_lane];
	return other->is_done || other->pass > lane->pass ||
	       (other->pass == lane->pass &&
		other->step > (uint32_t)step->after_step);
}

/*
 * What the step's result is divided by: only one that is stored is the whole
 * sum, and one that comes as final has been divided.
 */
static inline unsigned int exec_divisor(const struct exec_plan *plan,
					const struct exec_step *step)
{
	return (step->flags & SCHED_STORE) &&
			       !(step->flags & SCHED_RECV_FINAL)
		       ? plan->args->divisor : 0;
}

/* ---- places.c: what needs no slot ---- */

/* Does the peer behind @conn, whom we grant places, grant us some as well? */
bool exec_is_mutual(const struct exec_plan *plan, const struct net_conn *conn);
/*
 * The peer's grant is there.  Of ours, @kinds, those in memory of a GPU count
 * only if the peer is in an operation of a GPU, too.
 */
void exec_drop_unreachable(const struct exec_plan *plan, struct net_conn *conn,
			   uint32_t kinds);
/* Grant ours, and find out whether the operation is one of reading. */
int exec_places(struct exec_plan *plan);
/* Has every peer's grant for the operation come? */
bool exec_has_places(struct exec_plan *plan);
/* @conn's peer granted what cannot be mapped here: the error for it. */
int exec_not_mapped(const struct exec_plan *plan, const struct net_conn *conn);
/* At the end: take the grants that are left, and wait until all that was sent
 * for reading in place has been read. */
int exec_leave_places(struct exec_plan *plan);

/* exchange.c: a plan of two steps (is_exchange), on what fits a slot. */
int exec_run_exchange(struct exec_plan *plan);
/*
 * Small messages leave more credit untold than the slots' window allows; tell
 * it before slots are used, or the sender would wait for ever.
 */
int exec_tell_credit(struct exec_plan *plan);
int exec_tell_credit_of(struct exec_plan *plan, struct net_lane *end);
/* The first pass of all lanes, again. */
void exec_enter(struct exec_plan *plan);

/* ---- shadow.c: short operations on memory of a GPU ---- */

/* Is it short enough to be combined on the host, in a shadow? */
bool exec_is_shadowed(const struct exec_plan *plan);
/* Copy to the shadow, have @run done with that, and copy back. */
int exec_run_shadowed(struct exec_plan *plan,
		      int (*run)(struct exec_plan *,
				 const struct exec_args *));

/* ---- gpu.c: the others ---- */

int exec_gpu_begin(struct exec_plan *plan);
/* Nothing of the operation is left on the GPU; @err, or what comes of it. */
int exec_gpu_end(struct exec_plan *plan, int err);
/*
 * Give the fold of the lane's step, of @bytes, to the GPU: 0, also where it has
 * no room yet, or an error.
 */
int exec_gpu_fold(struct exec_plan *plan, struct exec_lane *lane,
		  const struct exec_step *step, const struct exec_fold *fold,
		  size_t bytes);
/* Is it done?  1, 0, or an error. */
int exec_gpu_is_done(struct exec_plan *plan, struct exec_lane *lane);
/* Is another lane's fold under way to the slot that comes next of @end? */
bool exec_gpu_fills(const struct exec_plan *plan, const struct net_lane *end);

/* messages.c: sends and receives (is_parted). */
int exec_run_messages(struct exec_plan *plan);
/* Is the peer's grant for the lane's message there? */
bool exec_has_grant(struct exec_plan *plan, struct exec_lane *lane);

/* wait.c */
struct exec_wait {
	uint32_t n_spins;
	uint64_t start_ns;  /* of waiting without progress; 0: not yet read */
	uint64_t look_ns;   /* of the last look at failures */
	uint64_t ask_ns;    /* of the last look at the peers' signatures */
	bool has_yielded;
	uint32_t n_suspects; /* looks in a row that found a peer ahead of us */
};

static inline void exec_wait_reset(struct exec_wait *wait)
{
	wait->n_spins = 0;
	wait->has_yielded = false;
	wait->start_ns = 0;
	wait->n_suspects = 0;
}

int exec_wait(struct exec_plan *plan, struct exec_wait *wait);
uint64_t exec_switched_ns(void);
/* The peer behind @lane sent a message of another operation. */
int exec_mismatch(struct exec_plan *plan, const struct net_lane *lane);

#endif
