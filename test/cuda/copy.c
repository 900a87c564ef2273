/* SPDX-License-Identifier: MIT */
/*
 * Copies.  Pageable memory of the host is staged: what is read is taken at the
 * call, and what is written is there when the call returns.
 */
#include <stdlib.h>
#include <string.h>

#include "test/cuda/fake.h"

enum end {
	ANY,
	HOST,
	DEVICE,
};

struct way {
	enum end dst, src;
	bool is_async;
};

/* Caller holds the lock.  What the driver does not know is the host's. */
static int look(cu_ptr ptr, size_t bytes, enum end must, bool *is_host,
		bool *is_device, bool *syncs)
{
	const struct fake_range *range = fake_find(ptr, 1);

	if (range && !fake_find(ptr, bytes)) {
		fake_tell("a copy of %zu bytes leaves what %p is part of",
			  bytes, (void *)(uintptr_t)ptr);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!range && (must == DEVICE || fake_was_freed(ptr)))
		return CUDA_ERROR_INVALID_VALUE;
	*is_host = !range;
	*is_device = range && (range->kind == FAKE_DEVICE ||
			       range->kind == FAKE_IMPORTED);
	if (must == HOST && *is_device)
		return CUDA_ERROR_INVALID_VALUE;
	if (range && range->sync_memops)
		*syncs = true;
	return 0;
}

static int take_copy(struct fake_item *item, const struct way *way,
		     bool *waits)
{
	bool src_is_device, dst_is_device;
	bool syncs = false;
	int err;

	pthread_mutex_lock(&fake_lock);
	err = look(item->src, item->bytes, way->src, &item->src_is_host,
		   &src_is_device, &syncs);
	if (!err)
		err = look(item->dst, item->bytes, way->dst,
			   &item->dst_is_host, &dst_is_device, &syncs);
	pthread_mutex_unlock(&fake_lock);
	if (err)
		return err;
	/* From device to device nobody waits, whatever the call says. */
	*waits = way->is_async ? item->dst_is_host
			       : syncs || !(src_is_device && dst_is_device);
	if (!item->src_is_host || *waits)
		return 0;
	item->staged = malloc(item->bytes);
	if (!item->staged)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(item->staged, (void *)(uintptr_t)item->src, item->bytes);
	return 0;
}

static int copy(const char *name, cu_ptr dst, cu_ptr src, size_t bytes,
		struct CUstream_st *handle, struct way way)
{
	struct fake_item item = {.work = FAKE_COPY, .dst = dst, .src = src,
				 .bytes = bytes};
	struct CUstream_st *stream;
	bool waits = false;
	uint64_t number;
	int err = fake_enter(name);

	if (!err && !way.is_async)
		err = fake_capture_check();
	if (!err)
		err = fake_stream_lock(handle, &stream);
	if (err)
		return err;
	pthread_mutex_unlock(&fake_lock);
	if (!bytes)
		return 0;
	err = take_copy(&item, &way, &waits);
	if (err)
		return err;
	err = fake_stream_lock(handle, &stream);
	if (err) {
		fake_item_free(&item);
		return err;
	}
	err = fake_queue(stream, &item, &number);
	if (err || !waits || !number)
		return err;
	pthread_mutex_lock(&fake_lock);
	err = fake_stream_wait(stream, number);
	pthread_mutex_unlock(&fake_lock);
	return err;
}

#define SYNC(to, from) ((struct way){.dst = (to), .src = (from)})
#define ASYNC(to, from)                                                        \
	((struct way){.dst = (to), .src = (from), .is_async = true})

int cuMemcpy(cu_ptr dst, cu_ptr src, size_t bytes)
{
	return copy(__func__, dst, src, bytes, NULL, SYNC(ANY, ANY));
}

int cuMemcpyHtoD_v2(cu_ptr dst, const void *src, size_t bytes)
{
	return copy(__func__, dst, (uintptr_t)src, bytes, NULL,
		    SYNC(DEVICE, HOST));
}

int cuMemcpyDtoH_v2(void *dst, cu_ptr src, size_t bytes)
{
	return copy(__func__, (uintptr_t)dst, src, bytes, NULL,
		    SYNC(HOST, DEVICE));
}

int cuMemcpyDtoD_v2(cu_ptr dst, cu_ptr src, size_t bytes)
{
	return copy(__func__, dst, src, bytes, NULL, SYNC(DEVICE, DEVICE));
}

int cuMemcpyAsync(cu_ptr dst, cu_ptr src, size_t bytes,
		  struct CUstream_st *stream)
{
	return copy(__func__, dst, src, bytes, stream, ASYNC(ANY, ANY));
}

int cuMemcpyHtoDAsync_v2(cu_ptr dst, const void *src, size_t bytes,
			 struct CUstream_st *stream)
{
	return copy(__func__, dst, (uintptr_t)src, bytes, stream,
		    ASYNC(DEVICE, HOST));
}

int cuMemcpyDtoHAsync_v2(void *dst, cu_ptr src, size_t bytes,
			 struct CUstream_st *stream)
{
	return copy(__func__, (uintptr_t)dst, src, bytes, stream,
		    ASYNC(HOST, DEVICE));
}

int cuMemcpyDtoDAsync_v2(cu_ptr dst, cu_ptr src, size_t bytes,
			 struct CUstream_st *stream)
{
	return copy(__func__, dst, src, bytes, stream, ASYNC(DEVICE, DEVICE));
}

/* ---- what else is put on streams ---- */

/* Words that work writes or waits for are of memory that a device reaches. */
static int put(const char *name, struct CUstream_st *handle,
	       const struct fake_item *item)
{
	struct CUstream_st *stream;
	int err = fake_enter(name);

	if (!err)
		err = fake_stream_lock(handle, &stream);
	if (err)
		return err;
	if (item->bytes && !fake_find(item->dst, item->bytes)) {
		pthread_mutex_unlock(&fake_lock);
		return CUDA_ERROR_INVALID_VALUE;
	}
	return fake_queue(stream, item, NULL);
}

int cuMemsetD8Async(cu_ptr dst, unsigned char value, size_t n,
		    struct CUstream_st *stream)
{
	struct fake_item item = {.work = FAKE_SET, .dst = dst, .bytes = n,
				 .value = value};

	return put(__func__, stream, &item);
}

int cuMemsetD8_v2(cu_ptr dst, unsigned char value, size_t n)
{
	struct fake_item item = {.work = FAKE_SET, .dst = dst, .bytes = n,
				 .value = value};

	return put(__func__, NULL, &item);
}

static int put_word(const char *name, struct CUstream_st *stream,
		    enum fake_work work, cu_ptr at, uint32_t value,
		    unsigned int flags)
{
	struct fake_item item = {.work = work, .dst = at, .bytes = 4,
				 .value = value, .flags = flags};

	if (at & 3)
		return CUDA_ERROR_INVALID_VALUE;
	return put(name, stream, &item);
}

int cuStreamWriteValue32_v2(struct CUstream_st *stream, cu_ptr at,
			    uint32_t value, unsigned int flags)
{
	if (fake_config.nomemops)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	return put_word(__func__, stream, FAKE_WRITE, at, value, flags);
}

int cuStreamWriteValue32(struct CUstream_st *stream, cu_ptr at, uint32_t value,
			 unsigned int flags)
{
	return cuStreamWriteValue32_v2(stream, at, value, flags);
}

int cuStreamWaitValue32_v2(struct CUstream_st *stream, cu_ptr at,
			   uint32_t value, unsigned int flags)
{
	if (fake_config.nomemops || flags & CU_STREAM_WAIT_VALUE_FLUSH)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (flags & ~3u)
		return CUDA_ERROR_INVALID_VALUE;
	return put_word(__func__, stream, FAKE_WAIT, at, value, flags);
}

int cuStreamWaitValue32(struct CUstream_st *stream, cu_ptr at, uint32_t value,
			unsigned int flags)
{
	return cuStreamWaitValue32_v2(stream, at, value, flags);
}

int cuLaunchHostFunc(struct CUstream_st *stream, void (*fn)(void *), void *arg)
{
	struct fake_item item = {.work = FAKE_HOST, .fn = fn, .arg = arg};

	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	return put(__func__, stream, &item);
}
