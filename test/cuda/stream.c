/* SPDX-License-Identifier: MIT */
/*
 * Streams: queues of work, each with a thread of its own that is late on
 * purpose.  What is destroyed stays in the list, so that a handle is never
 * mistaken for another's.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/cuda/fake.h"

static struct CUstream_st *streams; /* guarded by the lock */
static uint64_t n_streams;

struct CUstream_st *fake_streams(void)
{
	return streams;
}

int fake_n_streams(void)
{
	const struct CUstream_st *at;
	int n = 0;

	for (at = streams; at; at = at->next)
		n += !at->is_destroyed && !at->is_legacy && !at->thread_id;
	return n;
}

/* Caller holds the lock. */
static struct CUstream_st *stream_new(struct CUctx_st *ctx, unsigned int flags)
{
	struct CUstream_st *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->ctx = ctx;
	stream->flags = flags;
	stream->oldest = UINT64_MAX;
	stream->random = fake_config.seed + 0x1000 * ++n_streams;
	pthread_cond_init(&stream->has_work, NULL);
	stream->next = streams;
	streams = stream;
	return stream;
}

/* Caller holds the lock. */
static struct CUstream_st *find(struct CUctx_st *ctx,
				struct CUstream_st *handle)
{
	struct CUstream_st *at;

	if (!handle || handle == CU_STREAM_LEGACY) {
		if (!ctx->legacy) {
			ctx->legacy = stream_new(ctx, 0);
			if (ctx->legacy)
				ctx->legacy->is_legacy = true;
		}
		return ctx->legacy;
	}
	for (at = streams; at; at = at->next) {
		if (handle == CU_STREAM_PER_THREAD) {
			if (at->ctx == ctx && at->thread_id == fake_me()->id)
				return at;
		} else if (at == handle) {
			return at->is_destroyed ? NULL : at;
		}
	}
	if (handle != CU_STREAM_PER_THREAD)
		return NULL;
	at = stream_new(ctx, 0);
	if (at)
		at->thread_id = fake_me()->id;
	return at;
}

int fake_stream_lock(struct CUstream_st *handle, struct CUstream_st **out)
{
	struct CUctx_st *ctx;
	int err = fake_ctx(&ctx);

	if (err)
		return err;
	pthread_mutex_lock(&fake_lock);
	*out = find(ctx, handle);
	if (!*out)
		err = CUDA_ERROR_INVALID_HANDLE;
	else if (!(*out)->ctx->retained)
		err = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	else
		err = (*out)->ctx->error;
	if (err)
		pthread_mutex_unlock(&fake_lock);
	return err;
}

/* Caller holds the lock. */
static bool is_blocked_by_capture(const struct CUstream_st *stream)
{
	const struct CUstream_st *at;

	for (at = streams; at && stream->is_legacy; at = at->next)
		if (at->ctx == stream->ctx && at->capture &&
		    !(at->flags & CU_STREAM_NON_BLOCKING))
			return true;
	return false;
}

static int append(struct CUstream_st *stream, const struct fake_item *item)
{
	struct fake_item *copy = malloc(sizeof(*copy));
	pthread_t thread;

	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!stream->has_thread) {
		if (pthread_create(&thread, NULL, fake_stream_thread, stream)) {
			free(copy);
			return CUDA_ERROR_OPERATING_SYSTEM;
		}
		pthread_detach(thread);
		stream->has_thread = true;
	}
	*copy = *item;
	copy->number = ++fake_sequence;
	copy->next = NULL;
	if (stream->tail)
		stream->tail->next = copy;
	else
		stream->head = copy;
	stream->tail = copy;
	if (stream->oldest == UINT64_MAX)
		stream->oldest = copy->number;
	pthread_cond_signal(&stream->has_work);
	return 0;
}

int fake_queue(struct CUstream_st *stream, const struct fake_item *item,
	       uint64_t *number)
{
	struct fake_item dropped = *item;
	bool is_kept = false;
	int err = 0;

	if (number)
		*number = 0;
	if (stream->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
		err = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else if (is_blocked_by_capture(stream)) {
		err = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	} else if (!stream->capture) {
		err = append(stream, item);
		is_kept = !err;
		if (is_kept && number)
			*number = fake_sequence;
	}
	pthread_mutex_unlock(&fake_lock);
	if (!is_kept)
		fake_item_free(&dropped);
	return err;
}

int fake_stream_wait(const struct CUstream_st *stream, uint64_t number)
{
	while (stream->oldest <= number && !stream->ctx->error &&
	       !fake_has_ended)
		pthread_cond_wait(&fake_changed, &fake_lock);
	return fake_has_ended ? CUDA_ERROR_DEINITIALIZED : stream->ctx->error;
}

/* Caller holds the lock. */
static bool is_busy(const struct CUctx_st *ctx, uint64_t number, bool blocking)
{
	const struct CUstream_st *at;

	for (at = streams; at; at = at->next)
		if (at->ctx == ctx && at->oldest < number &&
		    !(blocking && (at->is_legacy ||
				   at->flags & CU_STREAM_NON_BLOCKING)))
			return true;
	return false;
}

void fake_ctx_wait(struct CUctx_st *ctx)
{
	uint64_t number = fake_sequence + 1;

	while (is_busy(ctx, number, false) && !fake_has_ended)
		pthread_cond_wait(&fake_changed, &fake_lock);
}

/* The legacy stream waits for all that block, and they for it. */
static bool may_start(const struct CUstream_st *stream,
		      const struct fake_item *item)
{
	const struct CUstream_st *legacy = stream->ctx->legacy;

	if (item->work == FAKE_WAIT_EVENT && item->other &&
	    item->other->oldest <= item->other_number)
		return false;
	if (stream->is_legacy)
		return !is_busy(stream->ctx, item->number, true);
	return stream->flags & CU_STREAM_NON_BLOCKING || !legacy ||
	       legacy->oldest > item->number;
}

/* Half of the work is in time, and little is as late as can be. */
static uint64_t draw_delay(struct CUstream_st *stream)
{
	uint64_t x = fake_random(&stream->random);
	uint64_t most = fake_config.late_ns;

	if (!most || x & 1)
		return 0;
	if (x & 6)
		most /= 8;
	return most ? (x >> 8) % most : 0;
}

/* Caller holds the lock, which is let go of meanwhile. */
static void be_late(struct CUstream_st *stream)
{
	uint64_t ns = draw_delay(stream);
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000)};

	if (!ns)
		return;
	pthread_mutex_unlock(&fake_lock);
	nanosleep(&ts, NULL);
	pthread_mutex_lock(&fake_lock);
}

void *fake_stream_thread(void *arg)
{
	struct CUstream_st *stream = arg;
	struct fake_item *item;
	int err;

	pthread_mutex_lock(&fake_lock);
	for (;;) {
		while (!stream->head && !stream->is_destroyed &&
		       !fake_has_ended)
			pthread_cond_wait(&stream->has_work, &fake_lock);
		item = stream->head;
		if (!item || fake_has_ended)
			break;
		be_late(stream);
		while (!may_start(stream, item) && !fake_has_ended &&
		       !stream->ctx->error)
			pthread_cond_wait(&fake_changed, &fake_lock);
		if (!fake_has_ended && !stream->ctx->error) {
			pthread_mutex_unlock(&fake_lock);
			err = fake_run(stream, item);
			pthread_mutex_lock(&fake_lock);
			if (err)
				fake_ctx_fail(stream->ctx, err);
		}
		if (item->event)
			fake_event_done(item->event, item->number);
		stream->head = item->next;
		if (!stream->head)
			stream->tail = NULL;
		stream->oldest = stream->head ? stream->head->number
					      : UINT64_MAX;
		pthread_cond_broadcast(&fake_changed);
		fake_item_free(item);
		free(item);
	}
	stream->has_thread = false;
	pthread_cond_broadcast(&fake_changed);
	pthread_mutex_unlock(&fake_lock);
	return NULL;
}

int cuStreamCreateWithPriority(struct CUstream_st **out, unsigned int flags,
			       int priority)
{
	struct CUstream_st *stream;
	struct CUctx_st *ctx;
	int err = fake_enter(__func__);

	if (!err)
		err = fake_ctx(&ctx);
	if (err)
		return err;
	if (!out || flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&fake_lock);
	stream = stream_new(ctx, flags);
	if (stream) {
		stream->priority = priority < -5 ? -5
				   : priority > 0 ? 0
						  : priority;
		*out = stream;
	}
	pthread_mutex_unlock(&fake_lock);
	return stream ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

int cuStreamCreate(struct CUstream_st **out, unsigned int flags)
{
	int err = fake_enter(__func__);

	return err ? err : cuStreamCreateWithPriority(out, flags, 0);
}

/* What is queued is done all the same; nobody waits for it. */
int cuStreamDestroy_v2(struct CUstream_st *handle)
{
	struct CUstream_st *at;
	int err = fake_enter(__func__);

	if (err)
		return err;
	pthread_mutex_lock(&fake_lock);
	for (at = streams; at && at != handle; at = at->next)
		;
	if (!at || at->is_destroyed || at->is_legacy || at->thread_id) {
		err = CUDA_ERROR_INVALID_HANDLE;
	} else {
		err = at->ctx->error;
		at->is_destroyed = true;
		at->capture = CU_STREAM_CAPTURE_STATUS_NONE;
		pthread_cond_signal(&at->has_work);
	}
	pthread_mutex_unlock(&fake_lock);
	return err;
}
