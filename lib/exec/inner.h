/* SPDX-License-Identifier: MIT */
/* exec's own: what its files share and nobody else may know. */
#ifndef EXEC_INNER_H
#define EXEC_INNER_H

#include "exec/exec.h"

/* The longest message that goes as lines. */
#define EXEC_LINES_BYTES (NET_LINES_MAX * NET_LINE_DATA)
/* Final chunks go straight to their place from this size of vector on: a
 * grant costs about as much as copying so much out of a slot. */
#define EXEC_PLACE_MIN (1 << 10)
/* Outputs are written around the cache from here on (measured: worse below 2
 * MB, 1.25x to 1.6x better from 16 MB). */
#define EXEC_STREAM_MIN (4 << 20)

struct exec_step {
	struct net_lane **recv, **send;
	uint32_t n_recv, n_send;
	uint32_t chunk;
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
	/* Geometry of its pass, in bytes of the vector. */
	size_t start, bytes, chunk_bytes;
	const struct net_lane *waits_for; /* what held it up last */
	bool is_done;
};

struct exec_plan {
	struct net *net;
	const struct sched *sched;
	struct exec_guard guard;
	uint32_t n_spins; /* of guard's range, as learnt */
	uint64_t switched_ns; /* a yield that took longer ran somebody else */
	uint64_t stuck_since_ns; /* of the operation: without progress; or 0 */
	bool is_told; /* others have said why it fails */
	struct exec_lane *lanes;
	uint32_t n_lanes;
	struct exec_step *steps;
	struct net_lane **ends; /* the steps' lists point into it */
	/* Connections whose finals go to a place: we grant, or the peer. */
	struct net_conn **grants_to, **grants_from;
	uint32_t n_grants_to, n_grants_from;
	bool may_read_inputs; /* all that is not final is raw input */
	bool is_exchange;
	struct net_lane **receives; /* every lane that receives, once */
	uint32_t n_receives;

	/* Where small messages are put together. */
	_Alignas(BASE_LINE) char lines[NET_LINES_MAX * BASE_LINE];

	/* The operation under way. */
	const struct exec_args *args;
	uint32_t signature;
	size_t bytes, pass_bytes;
	uint64_t n_passes;
	bool uses_places;
	/* Every rank reads every other's input in place and writes its output
	 * there: no slot is used, and one pass does it all. */
	bool is_in_place;
	bool streams;
	uint32_t n_places_missing;
};

/* The lane's step, as far as it can go: 1 done, 0 held up, or an error. */
int exec_step_slots(struct exec_plan *plan, struct exec_lane *lane);
/* Has every peer's grant for the operation come? */
bool exec_has_places(struct exec_plan *plan);
int exec_step_lines(struct exec_plan *plan, struct exec_lane *lane);

/* exchange.c: a plan of two steps (is_exchange), on what fits a slot. */
int exec_run_exchange(struct exec_plan *plan);
/*
 * Small messages leave more credit untold than the slots' window allows; tell
 * it before slots are used, or the sender would wait for ever.
 */
int exec_tell_credit(struct exec_plan *plan);

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

static inline uint32_t exec_chunk(const struct exec_lane *lane, uint32_t chunk,
				  size_t *offset)
{
	size_t at = base_min_size(chunk * lane->chunk_bytes, lane->bytes);

	*offset = lane->start + at;
	return (uint32_t)base_min_size(lane->chunk_bytes, lane->bytes - at);
}

#endif
