/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "sim_queue.h"

void sim_queue_release(struct sim_queue *queue)
{
	size_t i;

	for (i = 0; i < base_countof(queue->buckets); i++)
		base_free(queue->buckets[i].events);
	memset(queue, 0, sizeof(*queue));
}

bool sim_bucket_grow(struct sim_bucket *bucket)
{
	uint32_t room = bucket->room ? bucket->room * 2 : 64;
	struct sim_event *events;

	if (room < bucket->room)
		return false;
	events = base_alloc(room, sizeof(*events));
	if (!events)
		return false;
	if (bucket->n)
		memcpy(events, bucket->events, bucket->n * sizeof(*events));
	base_free(bucket->events);
	bucket->events = events;
	bucket->room = room;
	return true;
}

bool sim_queue_refill(struct sim_queue *queue)
{
	struct sim_bucket *bucket;
	uint64_t next = UINT64_MAX;
	unsigned int at;
	uint32_t i, n;

	queue->buckets[0].n = 0;
	queue->head = 0;
	if (!queue->full)
		return false;
	at = (unsigned int)__builtin_ctzll(queue->full) + 1;
	queue->full &= queue->full - 1;
	bucket = &queue->buckets[at];
	n = bucket->n;
	for (i = 0; i < n; i++)
		if (bucket->events[i].ps < next)
			next = bucket->events[i].ps;
	queue->now_ps = next;
	/* All of them go to lower buckets, so that this one can be emptied. */
	bucket->n = 0;
	for (i = 0; i < n; i++)
		sim_queue_put(queue, &bucket->events[i]);
	return queue->buckets[0].n > 0;
}
