/* SPDX-License-Identifier: MIT */
/*
 * One all-reduce with everything checked: the result against the model, the
 * input left alone, no byte touched around the buffers (their pages end at
 * memory that nobody may reach), the same bits on all ranks.
 */
#ifndef TRIAL_H
#define TRIAL_H

#include "test/loop/model.h"
#include "test/loop/ranks.h"

enum buffer_kind {
	BUFFER_AT_END,	 /* a guard page right behind it */
	BUFFER_AT_START, /* a guard page right before it */
	BUFFER_HEAP,
	BUFFER_ALLOC,	 /* wreath_mem_alloc() */
	BUFFER_REGISTER, /* wreath_mem_register(), as BUFFER_AT_END */
	BUFFER_N_KINDS,
};

struct buffer {
	enum buffer_kind kind;
	char *data;
	size_t bytes;
	char *map, *usable; /* what was allocated; within the guards */
	size_t map_bytes, usable_bytes;
};

int buffer_new(struct rank *rank, enum buffer_kind kind, size_t bytes,
	       size_t shift, struct buffer *out);
int buffer_free(struct rank *rank, struct buffer *buffer);

/* Shared by all ranks: the same on each. */
struct trial {
	struct model model;
	size_t count;
	bool in_place;
	/* The rank's own. */
	enum buffer_kind send_kind, recv_kind;
	size_t send_shift, recv_shift; /* bytes away from the natural place */
	bool checks; /* against the model; the hash is taken always */
	struct buffer send, recv;
};

/* A source of trials, and what their results add up to. */
struct trials {
	uint64_t state; /* the same on every rank */
	uint64_t own;	/* the rank's own chance */
	uint64_t hash;
};

void trials_init(struct trials *trials, struct rank *rank, uint64_t seed);

/* A trial of @count elements; the rest is left to chance. */
void trial_draw(struct trials *trials, struct rank *rank, size_t count,
		struct trial *trial);

/* Make the buffers and call; @stream NULL blocks. */
int trial_begin(struct rank *rank, struct trial *trial,
		struct wreath_comm *comm, struct wreath_stream *stream);
/* Check and free. */
int trial_end(struct rank *rank, struct trials *trials, struct trial *trial);

/* Free the buffers of a trial whose call failed. */
void trial_drop(struct trial *trial);

static inline int trial_run(struct rank *rank, struct trials *trials,
			    struct trial *trial)
{
	int err = trial_begin(rank, trial, rank->comm, NULL);

	return err ? err : trial_end(rank, trials, trial);
}

/* A count: small ones often, up to @bytes of the widest type. */
size_t trial_count(uint64_t *state, size_t bytes);

/* All of a rank's trials; rank->arg points to one. */
struct trials_plan {
	uint64_t seed;
	size_t bytes;
	int n_trials;
};

/* A body: trials by chance. */
int trials_body(struct rank *rank);

/* The body is done: tell the test the hash. */
void trials_tell(const struct trials *trials, struct rank *rank);

/* In the test: every rank has come to the same bits; returns the hash. */
uint64_t trials_expect_same(const struct ranks *run);

#endif
