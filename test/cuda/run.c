/* SPDX-License-Identifier: MIT */
/* Work of streams, as their threads do it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/cuda/fake.h"

/* How often memory is looked at that a stream waits for: 20 us. */
#define POLL_NS 20000

struct place {
	struct fake_range *range;
	char *at;
};

/* Copies reach everything, and pageable memory of the host as it is. */
static int reach(cu_ptr ptr, size_t bytes, bool is_host, struct place *out)
{
	struct CUctx_st all = {.device = 0};
	const char *why = "";
	int err;

	out->range = NULL;
	out->at = (char *)(uintptr_t)ptr;
	if (is_host)
		return 0;
	memset(all.reaches, 1, sizeof(all.reaches));
	pthread_mutex_lock(&fake_lock);
	err = fake_reach(&all, ptr, bytes, &out->at, &out->range, &why);
	pthread_mutex_unlock(&fake_lock);
	if (err)
		fake_tell("%zu bytes at %p: it %s", bytes,
			  (void *)(uintptr_t)ptr, why);
	return err;
}

static void leave(struct place *place)
{
	if (!place->range)
		return;
	pthread_mutex_lock(&fake_lock);
	place->range->n_users--;
	pthread_cond_broadcast(&fake_changed);
	pthread_mutex_unlock(&fake_lock);
}

static int run_copy(struct fake_item *item)
{
	struct place dst, src;
	int err;

	if (fake_must_fail("copy"))
		return CUDA_ERROR_UNKNOWN;
	err = reach(item->dst, item->bytes, item->dst_is_host, &dst);
	if (err)
		return err;
	if (item->staged) {
		memcpy(dst.at, item->staged, item->bytes);
	} else {
		err = reach(item->src, item->bytes, item->src_is_host, &src);
		if (!err) {
			memmove(dst.at, src.at, item->bytes);
			leave(&src);
		}
	}
	leave(&dst);
	return err;
}

static int run_set(struct fake_item *item)
{
	struct place dst;
	int err = reach(item->dst, item->bytes, false, &dst);

	if (err)
		return err;
	memset(dst.at, (int)item->value, item->bytes);
	leave(&dst);
	return 0;
}

static int run_write(struct fake_item *item)
{
	struct place dst;
	int err = reach(item->dst, 4, false, &dst);

	if (err)
		return err;
	/* All before it is seen by whoever sees it. */
	__atomic_store_n((uint32_t *)(void *)dst.at, item->value,
			 __ATOMIC_RELEASE);
	leave(&dst);
	return 0;
}

static bool is_come(uint32_t is, uint32_t value, unsigned int flags)
{
	switch (flags & 3) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return (int32_t)(is - value) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return is == value;
	case CU_STREAM_WAIT_VALUE_AND:
		return (is & value) != 0;
	default:
		return ~(is | value) != 0;
	}
}

static int run_wait(struct CUstream_st *stream, struct fake_item *item)
{
	const struct timespec ts = {.tv_nsec = POLL_NS};
	struct place src;
	bool stops = false;
	int err = reach(item->dst, 4, false, &src);

	if (err)
		return err;
	while (!stops && !is_come(__atomic_load_n((uint32_t *)(void *)src.at,
						  __ATOMIC_ACQUIRE),
				  item->value, item->flags)) {
		nanosleep(&ts, NULL);
		pthread_mutex_lock(&fake_lock);
		stops = fake_has_ended || stream->ctx->error;
		pthread_mutex_unlock(&fake_lock);
	}
	leave(&src);
	return 0;
}

int fake_run(struct CUstream_st *stream, struct fake_item *item)
{
	switch (item->work) {
	case FAKE_COPY:
		return run_copy(item);
	case FAKE_SET:
		return run_set(item);
	case FAKE_KERNEL:
		return fake_kernel_run(stream->ctx, item->kernel,
				       &stream->random);
	case FAKE_WRITE:
		return run_write(item);
	case FAKE_WAIT:
		return run_wait(stream, item);
	case FAKE_HOST:
		fake_me()->is_in_host_func = true;
		item->fn(item->arg);
		fake_me()->is_in_host_func = false;
		return 0;
	case FAKE_RECORD:
	case FAKE_WAIT_EVENT:
		break;
	}
	return 0;
}

void fake_item_free(struct fake_item *item)
{
	free(item->staged);
	item->staged = NULL;
	fake_kernel_free(item->kernel);
	item->kernel = NULL;
}
