/* SPDX-License-Identifier: MIT */
/*
 * sched: collectives as data.
 *
 * A generator is a pure function of a shape and a rank.  What it makes, a
 * struct sched, has three readers: the executor moves bytes by it, the
 * verifier proves it, the simulator predicts it.  A new algorithm is one new
 * file here and one row of the table in sched.c; to be chosen, it also has its
 * place in choose.c and its growth with the ranks in scale.c.
 *
 * This room must never know verbs, sockets, threads, clocks or what is in a
 * chunk: chunks are numbers.  Any thread may call.
 *
 * How a schedule is to be read:
 *
 * - The vector consists of blocks: of one where all ranks give and get the
 *   whole of it, else of one a rank (sched_n_blocks()).  Not every rank has
 *   every block, in its input or in its output: enum sched_collective.
 * - A block is worked off in passes.  A pass covers n_pieces consecutive
 *   pieces of each block, and the schedule is repeated for each pass, so that
 *   its size depends on n_ranks alone.  Chunk c is piece c % n_pieces of block
 *   c / n_pieces.  The pieces of a block are shared out evenly to the channels
 *   in order: the first n_pieces / n_channels are channel 0's.  How many bytes
 *   of a block a channel has is its weight; its pieces are of equal size.
 * - Steps stand in lanes.  The steps of a lane run in order, pass after pass;
 *   different lanes run independently, and may be in different passes, except
 *   for the one dependency that a step can name.
 * - A message goes from a step's send list into the lane @send_lane of each
 *   peer; there the steps that receive from that peer take the messages in
 *   the order in which they were sent, all those of a pass in that pass.  Only
 *   one lane of a rank sends into a given lane of a peer.  A message has no
 *   name: the step that takes it says which chunk it is.
 * - Messages of a lane come on the lane's channel and, of that, in its box.
 *   Lanes of a channel may share a box as long as no two of them receive from
 *   the same peer.
 * - One step: wait for one message from each of the recv peers; fold them,
 *   in the order of the list, with this rank's own chunk put in at position
 *   @local_at if @local is not SCHED_NONE; store the result into the output if
 *   SCHED_STORE; send the result to each of the send peers.
 * - Of all_to_all and exchange, a chunk is one of the input where @local is
 *   SCHED_INPUT, and of the output elsewhere; a step that stores its input has
 *   the own block, which is the same in both.
 * - A step whose chunk is empty does nothing, at both ends of its messages
 *   alike, but for the first pass, where even an empty message is sent: it
 *   tells who disagrees about the call.
 * - SCHED_SEND_FINAL: the receivers store what is sent unchanged and only
 *   that, so that it may be written straight into their output
 *   (the receiving steps carry SCHED_RECV_FINAL, take one message each and
 *   have nothing local).  It may land there as soon as it is sent.
 * - SCHED_SEND_INPUT: the receivers may read it where it is, in the sender's
 *   input, up to the end of the step that takes it (SCHED_RECV_INPUT).  Where
 *   no later message proves to the sender that this has happened, it carries
 *   SCHED_SEND_AWAIT: its operation does not end before they have taken it.
 */
#ifndef SCHED_H
#define SCHED_H

#include "base/base.h"

/*
 * What each means, with B for a block of the vector: "in" is what the rank has
 * in its input, "out" what must be in its output in the end.
 *
 *                 in                  out
 * all_reduce      B                   the fold of all ranks' B
 * reduce          B                   root: the fold of all ranks' B
 * broadcast       root: B             root's B
 * reduce_scatter  all blocks          block @rank: the fold of all ranks'
 * all_gather      block @rank         all blocks
 * gather          block @rank         root: all blocks
 * scatter         root: all blocks    root's block @rank
 * all_to_all      all blocks          block i: rank i's block @rank
 * exchange        as all_to_all; a block may be absent at both ends
 * barrier         as all_reduce
 *
 * In place a rank's output is its input, as far as it has the same chunk in
 * both; all_to_all and exchange have no such form.
 */
enum sched_collective {
	SCHED_ALL_REDUCE,
	SCHED_REDUCE,
	SCHED_BROADCAST,
	SCHED_REDUCE_SCATTER,
	SCHED_ALL_GATHER,
	SCHED_GATHER,
	SCHED_SCATTER,
	SCHED_ALL_TO_ALL,
	SCHED_EXCHANGE, /* sends and receives of a group */
	SCHED_BARRIER,
	SCHED_N_COLLECTIVES,
};

enum sched_algo {
	SCHED_RING,
	SCHED_ONESHOT, /* direct: everyone sends everything to everyone */
	SCHED_TWOSHOT, /* direct: reduce a share each, send it to everyone */
	SCHED_TREE,	  /* two complementary binary trees */
	SCHED_SPLIT_RING, /* nodes in rings, each block by two arcs */
	SCHED_HALVING,	  /* recursive halving and doubling */
	SCHED_DIRECT,	  /* one message from each rank that has to each that
			   * wants; not for all_reduce */
	SCHED_N_ALGOS,
};

/* Ranks of one schedule at most; the verifier is tried to 64. */
#define SCHED_RANKS_MAX 16384
#define SCHED_CHANNELS_MAX 4
/* Ranks whose vectors one step folds at most: oneshot, twoshot, and direct
 * where it reduces. */
#define SCHED_DIRECT_RANKS_MAX 64
#define SCHED_LANES_MAX 64
#define SCHED_BOXES 3 /* mailboxes of a channel, for each peer */

/* All that a generator may know. */
struct sched_shape {
	enum sched_collective collective;
	enum sched_algo algo;
	int n_ranks;	/* 1..SCHED_RANKS_MAX */
	int n_channels; /* 1..SCHED_CHANNELS_MAX */
	int root;	/* rooted collectives only, else 0 */
	/*
	 * [n_ranks] the node of each rank, 0..n_nodes - 1, each of which has a
	 * rank; NULL: ranks in order, n_ranks / n_nodes each, the first
	 * n_ranks % n_nodes nodes with one more.  The caller's, and must
	 * outlive the schedule.
	 */
	int n_nodes; /* 0 is 1 */
	const uint32_t *nodes;
};

enum sched_local {
	SCHED_NONE,   /* nothing of this rank's own */
	SCHED_INPUT,  /* its input, chunk @chunk */
	SCHED_OUTPUT, /* its output, chunk @chunk, stored by an earlier step */
};

enum sched_step_flags {
	SCHED_STORE = 1,
	SCHED_SEND_FINAL = 2,
	SCHED_RECV_FINAL = 4,
	/*
	 * What is sent is the sender's input chunk and nothing else, so that
	 * the receivers (SCHED_RECV_INPUT, for all they receive in the step)
	 * may read it in place.  Each receiver's step happens before the end
	 * of the sender's operation, and before its output chunk is stored.
	 */
	SCHED_SEND_INPUT = 8,
	SCHED_RECV_INPUT = 16,
	SCHED_SEND_AWAIT = 32, /* with SCHED_SEND_INPUT */
};

struct sched_step {
	uint32_t recv, n_recv; /* sched->peers[recv .. recv + n_recv) */
	uint32_t send, n_send; /* sched->peers[send .. send + n_send) */
	uint32_t chunk;
	uint32_t local_at;  /* 0..n_recv: position of the own chunk */
	uint32_t send_lane; /* where the messages arrive */
	int32_t after_lane; /* runs after step @after_step of that lane in */
	int32_t after_step; /* the same pass; -1: no dependency */
	uint8_t local;	    /* enum sched_local */
	uint8_t flags;	    /* enum sched_step_flags */
};

/*
 * The lanes share out the steps in order, without a gap.  Number and channels
 * of lanes are the same on all ranks.
 */
struct sched_lane {
	uint32_t step, n_steps; /* sched->steps[step .. step + n_steps) */
	uint32_t channel;	/* which queue pair its messages come on */
	uint32_t box;		/* and where: 0..SCHED_BOXES - 1 */
};

/* One rank's part.  Owned by whoever made it; freed by sched_free(). */
struct sched {
	struct sched_shape shape;
	int rank;
	uint32_t n_blocks, n_pieces; /* of a block in a pass */
	uint32_t n_chunks;	     /* n_blocks * n_pieces */
	uint32_t n_lanes, n_steps, n_peers;
	struct sched_lane *lanes;
	struct sched_step *steps;
	uint32_t *peers;
};

/*
 * Make @rank's schedule.  WREATH_EINVAL: the shape is out of range (the text
 * names the field); WREATH_EUNSUP: the algorithm has no such form, or not for
 * so many ranks; WREATH_ENOMEM.
 */
int sched_make(const struct sched_shape *shape, int rank, struct sched **out);
void sched_free(struct sched *sched);

/* 1, or n_ranks where each rank has a block of its own. */
int sched_n_blocks(enum sched_collective collective, int n_ranks);
/* Does @rank have the block in its input, must it be in its output? */
bool sched_has_input(const struct sched_shape *shape, int rank, int block);
bool sched_has_output(const struct sched_shape *shape, int rank, int block);
/* broadcast, reduce, gather, scatter. */
bool sched_is_rooted(enum sched_collective collective);
/* Those that fold; the others move bytes. */
bool sched_is_reducing(enum sched_collective collective);
/*
 * Every message is the block that one rank has for another, whose length only
 * these two need to know: gather, scatter, all_to_all, exchange.
 */
bool sched_is_paired(enum sched_collective collective);
/* The node of @rank. */
int sched_node_of(const struct sched_shape *shape, int rank);

/* Is there such a generator? */
bool sched_has_form(enum sched_collective collective, enum sched_algo algo);

/* "ring", ...; NULL past the end. */
const char *sched_algo_name(enum sched_algo algo);
const char *sched_collective_name(enum sched_collective collective);

enum sched_setting {
	SCHED_CROWDED = 1, /* ranks outnumber the cores that they run on */
	SCHED_APART = 2,   /* they reach each other by a network alone */
};

/*
 * The algorithm of an all-reduce of @bytes by plain ports, or by two ranks
 * apart, as measured.  @settings: enum sched_setting, or'd.
 */
enum sched_algo sched_choose(int n_ranks, size_t bytes, unsigned int settings);

/* ---- verify.c, and the files of its parts: verify.h ---- */

struct sched_proof {
	uint64_t n_steps;    /* of all ranks */
	uint64_t n_messages; /* of all ranks in a pass */
	uint64_t chunks_sent_max; /* by the busiest rank in a pass */
	/* Chunks a rank must send at least by the algorithm's own bound. */
	uint64_t chunks_sent_bound;
	uint64_t chunks_received_max; /* by the busiest rank in a pass */
	uint32_t depth; /* messages on the longest chain of a pass */
};

/*
 * Prove a set of schedules, one a rank in order of rank, with at most @n_slots
 * messages of a lane and pair under way, in place or not, for any order in
 * which lanes and ranks can run, any number of passes, and whichever chunks are
 * empty in a pass.  A step may hold what it receives until it is done, and
 * starts when there is room for all that it sends; whatever gives room earlier,
 * or has more slots, is covered.
 * - every output chunk holds each rank's contribution exactly once, in the
 *   same fold order on every rank (so the same bits), or is the one that is to
 *   be moved there;
 * - nothing is overwritten before it was read: slots, input (in place) and
 *   output, also where a final chunk is written by its sender, or raw input
 *   read by its receiver, and then not after its owner's last step either;
 * - no deadlock, no message left over, lists and indices within bounds;
 * - no rank sends more than the algorithm's stated bound.
 * 0, or WREATH_EINVAL with a text that names rank, lane, step and reason.
 */
int sched_verify(struct sched *const *scheds, int n_ranks, int n_slots,
		 bool in_place, struct sched_proof *proof);

/* ---- text.c ---- */

/*
 * The text form, into @out of @size bytes, always terminated; returns the
 * length that the whole text has, like snprintf().
 */
size_t sched_print(const struct sched *sched, char *out, size_t size);

/* ---- the simulator: fabric*.c, sim*.c ---- */

#include "sched/fabric.h"
#include "sched/sim.h"

/* ---- cost.c, stats.c, tuning.c, choose.c ---- */

#include "sched/cost.h"

#endif
