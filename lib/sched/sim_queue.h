/* SPDX-License-Identifier: MIT */
/*
 * Events in order of time: a radix heap.  What is pushed is never earlier than
 * what was popped last.  Events of one time come out in the order in which
 * they were pushed: as long as they are inside they are in one bucket, which
 * is moved in order.
 */
#ifndef SCHED_SIM_QUEUE_H
#define SCHED_SIM_QUEUE_H

#include "base/base.h"

struct sim_event {
	uint64_t ps;
	uint32_t what; /* the owner's */
	uint32_t with;
};

struct sim_bucket {
	struct sim_event *events;
	uint32_t n, room;
};

/* Bucket 0 has the time @now_ps; bucket b differs from it first in bit b - 1.
 */
struct sim_queue {
	uint64_t now_ps;
	uint64_t full; /* bit b - 1: bucket b has events */
	uint32_t head; /* of bucket 0: popped so far */
	bool is_short; /* there was no memory: events are missing */
	struct sim_bucket buckets[65];
};

void sim_queue_release(struct sim_queue *queue);
bool sim_bucket_grow(struct sim_bucket *bucket);
/* Bucket 0 is empty: move the next in time there.  False: all are empty. */
bool sim_queue_refill(struct sim_queue *queue);

static inline void sim_queue_put(struct sim_queue *queue,
				 const struct sim_event *event)
{
	uint64_t differ = event->ps ^ queue->now_ps;
	unsigned int at = 0;
	struct sim_bucket *bucket;

	if (differ) {
		at = 64 - (unsigned int)__builtin_clzll(differ);
		queue->full |= 1ull << (at - 1);
	}
	bucket = &queue->buckets[at];
	if (base_unlikely(bucket->n == bucket->room) &&
	    !sim_bucket_grow(bucket)) {
		queue->is_short = true;
		return;
	}
	bucket->events[bucket->n++] = *event;
}

static inline void sim_queue_push(struct sim_queue *queue, uint64_t ps,
				  uint32_t what, uint32_t with)
{
	const struct sim_event event = {ps, what, with};

	sim_queue_put(queue, &event);
}

/* The next event, valid until the next push; NULL: there is none. */
static inline const struct sim_event *sim_queue_pop(struct sim_queue *queue)
{
	if (queue->head == queue->buckets[0].n && !sim_queue_refill(queue))
		return NULL;
	return &queue->buckets[0].events[queue->head++];
}

#endif
