/* SPDX-License-Identifier: MIT */
/* Events: marks in streams. */
#include <stdlib.h>
#include <time.h>

#include "test/cuda/fake.h"

/* What is destroyed stays until its records are done. */
struct CUevent_st {
	struct CUctx_st *ctx;
	unsigned int flags;
	/* The last record: where it is, and its number. */
	const struct CUstream_st *stream;
	uint64_t number;
	uint64_t done_ns; /* of it; 0: not yet */
	bool is_captured, is_destroyed;
	int n_pending;
	struct CUevent_st *next;
};

static struct CUevent_st *events; /* guarded by the lock */

int fake_n_events(void)
{
	const struct CUevent_st *at;
	int n = 0;

	for (at = events; at; at = at->next)
		n += !at->is_destroyed;
	return n;
}

static void free_if_unused(struct CUevent_st *event)
{
	struct CUevent_st **link = &events;

	if (!event->is_destroyed || event->n_pending)
		return;
	while (*link != event)
		link = &(*link)->next;
	*link = event->next;
	free(event);
}

void fake_event_done(struct CUevent_st *event, uint64_t number)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	if (event->number == number)
		event->done_ns = (uint64_t)ts.tv_sec * 1000000000u +
				 (uint64_t)ts.tv_nsec;
	event->n_pending--;
	free_if_unused(event);
}

/* Takes the lock, which stays taken on success. */
static int event_lock(const char *name, const struct CUevent_st *event)
{
	const struct CUevent_st *at;
	int err = fake_enter(name);

	if (err)
		return err;
	pthread_mutex_lock(&fake_lock);
	for (at = events; at && at != event; at = at->next)
		;
	if (!at || at->is_destroyed)
		err = CUDA_ERROR_INVALID_HANDLE;
	else
		err = at->ctx->error;
	if (err)
		pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuEventCreate(struct CUevent_st **out, unsigned int flags)
{
	struct CUevent_st *event;
	struct CUctx_st *ctx;
	int err = fake_enter(__func__);

	if (!err)
		err = fake_ctx(&ctx);
	if (err)
		return err;
	if (!out || flags & ~7u ||
	    (flags & CU_EVENT_INTERPROCESS &&
	     !(flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	event = calloc(1, sizeof(*event));
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->ctx = ctx;
	event->flags = flags;
	pthread_mutex_lock(&fake_lock);
	event->next = events;
	events = event;
	pthread_mutex_unlock(&fake_lock);
	*out = event;
	return 0;
}

int cuEventDestroy_v2(struct CUevent_st *event)
{
	struct CUevent_st *at;
	int err = fake_enter(__func__);

	if (err)
		return err;
	pthread_mutex_lock(&fake_lock);
	for (at = events; at && at != event; at = at->next)
		;
	if (!at || at->is_destroyed) {
		err = CUDA_ERROR_INVALID_HANDLE;
	} else {
		err = at->ctx->error;
		at->is_destroyed = true;
		free_if_unused(at);
	}
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuEventRecord(struct CUevent_st *event, struct CUstream_st *handle)
{
	struct fake_item item = {.work = FAKE_RECORD, .event = event};
	struct CUstream_st *stream;
	bool is_captured;
	int err = event_lock(__func__, event);

	if (err)
		return err;
	pthread_mutex_unlock(&fake_lock);
	err = fake_stream_lock(handle, &stream);
	if (err)
		return err;
	if (stream->ctx != event->ctx) {
		pthread_mutex_unlock(&fake_lock);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	is_captured = stream->capture != 0;
	event->is_captured = is_captured;
	event->stream = stream;
	event->done_ns = 0;
	/* The number that the queue is about to give. */
	if (!is_captured) {
		event->number = fake_sequence + 1;
		event->n_pending++;
	}
	err = fake_queue(stream, &item, NULL);
	if (!err || is_captured)
		return err;
	pthread_mutex_lock(&fake_lock);
	event->n_pending--;
	pthread_mutex_unlock(&fake_lock);
	return err;
}

static bool is_done(const struct CUevent_st *event)
{
	return !event->stream || event->stream->oldest > event->number;
}

int cuEventQuery(struct CUevent_st *event)
{
	int err = fake_capture_check();

	if (!err)
		err = event_lock(__func__, event);
	if (err)
		return err;
	if (event->is_captured)
		err = CUDA_ERROR_CAPTURED_EVENT;
	else if (!is_done(event))
		err = CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuEventSynchronize(struct CUevent_st *event)
{
	int err = fake_capture_check();

	if (!err)
		err = event_lock(__func__, event);
	if (err)
		return err;
	if (event->is_captured)
		err = CUDA_ERROR_CAPTURED_EVENT;
	else if (event->stream)
		err = fake_stream_wait(event->stream, event->number);
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuEventElapsedTime_v2(float *out_ms, struct CUevent_st *start,
			  struct CUevent_st *end)
{
	int err = event_lock(__func__, start);

	if (err)
		return err;
	pthread_mutex_unlock(&fake_lock);
	err = event_lock(__func__, end);
	if (err)
		return err;
	if (!out_ms)
		err = CUDA_ERROR_INVALID_VALUE;
	else if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING ||
		 !start->stream || !end->stream)
		err = CUDA_ERROR_INVALID_HANDLE;
	else if (!is_done(start) || !is_done(end))
		err = CUDA_ERROR_NOT_READY;
	else
		*out_ms = (float)((double)end->done_ns -
				  (double)start->done_ns) / 1e6f;
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuEventElapsedTime(float *out_ms, struct CUevent_st *start,
		       struct CUevent_st *end)
{
	return cuEventElapsedTime_v2(out_ms, start, end);
}

/* The record that there is at this moment; without one there is no wait. */
int cuStreamWaitEvent(struct CUstream_st *handle, struct CUevent_st *event,
		      unsigned int flags)
{
	struct fake_item item = {.work = FAKE_WAIT_EVENT};
	struct CUstream_st *stream;
	int err = event_lock(__func__, event);

	if (err)
		return err;
	if (event->is_captured)
		err = CUDA_ERROR_CAPTURED_EVENT;
	/* Streams are never freed. */
	item.other = (struct CUstream_st *)(uintptr_t)event->stream;
	item.other_number = event->number;
	pthread_mutex_unlock(&fake_lock);
	if (flags & ~1u)
		err = CUDA_ERROR_INVALID_VALUE;
	if (!err)
		err = fake_stream_lock(handle, &stream);
	return err ? err : fake_queue(stream, &item, NULL);
}
