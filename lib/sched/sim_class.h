/* SPDX-License-Identifier: MIT */
/*
 * A rank's schedule as the simulator runs it: peers are distances, so that
 * ranks which do the same have the same, and what a step takes and sends are
 * queues, numbered from 0 in each rank.
 */
#ifndef SCHED_SIM_CLASS_H
#define SCHED_SIM_CLASS_H

#include "sched.h"

#define SIM_NONE UINT32_MAX

struct sim_step {
	uint32_t recv, send; /* in @lists */
	uint32_t at;	     /* piece within its channel */
	int32_t after_step;
	uint16_t n_recv, n_send;
	int8_t after_lane;
	uint8_t channel;
	uint8_t local, flags;
};

/* A queue's other end: how many ranks ahead, and the lane where it arrives. */
struct sim_key {
	uint32_t ahead, lane;
};

/* Keys in the order in which they were found, and where to find them. */
struct sim_keys {
	struct sim_key *keys;
	uint32_t *table; /* their numbers, hashed; SIM_NONE: free */
	uint32_t n, room; /* of the table; half of it may be used */
};

struct sim_class {
	uint32_t n_lanes, n_steps, n_lists, n_pieces, n_channels;
	uint64_t n_sent; /* messages of a pass */
	struct sched_lane *lanes;
	struct sim_step *steps;
	uint32_t *lists;
	struct sim_keys tx, rx;
	uint32_t *tx_from;   /* the lane that sends into it */
	bool *tx_is_granted; /* its first message needs the peer's grant */
};

/* Of @rank; on failure there is nothing to release. */
int sim_class_make(struct sim_class *class, const struct sched_shape *shape,
		   int rank);
void sim_class_release(struct sim_class *class);

/* Do both do the same, whatever the chunks are called? */
bool sim_class_is_same(const struct sim_class *a, const struct sim_class *b);

/* The number of a key, or SIM_NONE. */
uint32_t sim_keys_find(const struct sim_keys *keys, struct sim_key key);

#endif
