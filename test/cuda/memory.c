/* SPDX-License-Identifier: MIT */
/*
 * Allocations.  What frees waits for all that is queued in the context, as the
 * driver does: a library that frees while a stream waits for it hangs, here as
 * there.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/cuda/fake.h"

#define PAGE ((uintptr_t)4096)
/* The driver cuts what is smaller out of blocks, at multiples of 512. */
#define BLOCK_BYTES ((size_t)1 << 20)

/* Guarded by the lock. */
static size_t n_used[FAKE_DEVICES_MAX];
static uint64_t chance;

static int enter_unsafe(const char *name, struct CUctx_st **ctx)
{
	int err = fake_enter(name);

	if (!err)
		err = fake_ctx(ctx);
	if (!err)
		err = fake_capture_check();
	if (!err && fake_config.strict && strstr(name, "Alloc")) {
		pthread_mutex_lock(&fake_lock);
		fake_ctx_wait(*ctx);
		pthread_mutex_unlock(&fake_lock);
	}
	return err;
}

static struct fake_range *range_new(enum fake_kind kind, struct CUctx_st *ctx,
				    size_t bytes)
{
	struct fake_range *range = calloc(1, sizeof(*range));

	if (!range)
		return NULL;
	range->kind = kind;
	range->ctx = ctx;
	range->device = ctx->device;
	range->bytes = bytes;
	range->fd = -1;
	return range;
}

int cuMemAlloc_v2(cu_ptr *out, size_t bytes)
{
	struct fake_range *range;
	struct CUctx_st *ctx;
	size_t before = 0;
	int err = enter_unsafe(__func__, &ctx);

	if (err)
		return err;
	if (!out || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	range = range_new(FAKE_DEVICE, ctx, bytes);
	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&fake_lock);
	if (!chance)
		chance = fake_config.seed + 1;
	if (bytes < BLOCK_BYTES)
		before = 512 * (fake_random(&chance) % 8);
	if (bytes > fake_config.memory - n_used[ctx->device])
		err = CUDA_ERROR_OUT_OF_MEMORY;
	else
		err = fake_map(range, -1, before);
	if (!err) {
		n_used[ctx->device] += bytes;
		fake_range_add(range);
		*out = range->base;
	}
	pthread_mutex_unlock(&fake_lock);
	if (err)
		free(range);
	return err;
}

int cuMemFree_v2(cu_ptr ptr)
{
	struct fake_range *range;
	struct CUctx_st *ctx;
	int err = fake_enter(__func__);

	if (!err)
		err = fake_capture_check();
	if (err || !ptr)
		return err;
	/* Of a failed context the memory is given back all the same. */
	err = fake_ctx(&ctx);
	if (!ctx)
		return err;
	pthread_mutex_lock(&fake_lock);
	range = fake_find_base(ptr);
	if (!range || (range->kind != FAKE_DEVICE &&
		       range->kind != FAKE_MANAGED)) {
		pthread_mutex_unlock(&fake_lock);
		return CUDA_ERROR_INVALID_VALUE;
	}
	fake_ctx_wait(range->ctx);
	if (range->kind == FAKE_DEVICE)
		n_used[range->device] -= range->bytes;
	fake_range_remove(range);
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuMemGetAddressRange_v2(cu_ptr *base, size_t *bytes, cu_ptr ptr)
{
	const struct fake_range *range;
	struct CUctx_st *ctx;
	int err = fake_enter(__func__);

	if (!err)
		err = fake_ctx(&ctx);
	if (err)
		return err;
	pthread_mutex_lock(&fake_lock);
	range = fake_find(ptr, 1);
	if (!range || range->kind == FAKE_REGISTERED) {
		err = CUDA_ERROR_NOT_FOUND;
	} else {
		if (base)
			*base = range->base;
		if (bytes)
			*bytes = range->bytes;
	}
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuMemGetInfo_v2(size_t *out_free, size_t *out_total)
{
	struct CUctx_st *ctx;
	int err = fake_enter(__func__);

	if (!err)
		err = fake_ctx(&ctx);
	if (err)
		return err;
	if (!out_free || !out_total)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&fake_lock);
	*out_total = fake_config.memory;
	*out_free = fake_config.memory - n_used[ctx->device];
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* Memory that the host reaches as well. */
static int alloc_host(enum fake_kind kind, struct CUctx_st *ctx, size_t bytes,
		      unsigned int flags, void **out)
{
	struct fake_range *range;
	void *at;

	if (!out || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range = range_new(kind, ctx, bytes);
	if (!range) {
		munmap(at, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memset(at, FAKE_POISON, bytes);
	range->base = (uintptr_t)at;
	range->alias = at;
	range->flags = flags;
	pthread_mutex_lock(&fake_lock);
	fake_range_add(range);
	pthread_mutex_unlock(&fake_lock);
	*out = at;
	return 0;
}

int cuMemAllocManaged(cu_ptr *out, size_t bytes, unsigned int flags)
{
	struct CUctx_st *ctx;
	void *at;
	int err = enter_unsafe(__func__, &ctx);

	if (err)
		return err;
	if (!out || (flags != CU_MEM_ATTACH_GLOBAL &&
		     flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	err = alloc_host(FAKE_MANAGED, ctx, bytes, 0, &at);
	if (!err)
		*out = (uintptr_t)at;
	return err;
}

int cuMemHostAlloc(void **out, size_t bytes, unsigned int flags)
{
	struct CUctx_st *ctx;
	int err = enter_unsafe(__func__, &ctx);

	if (err)
		return err;
	if (flags & ~7u)
		return CUDA_ERROR_INVALID_VALUE;
	return alloc_host(FAKE_PINNED, ctx, bytes, flags, out);
}

/* Memory of the host that is given back, in one way or the other. */
static int give_back(const char *name, void *ptr, enum fake_kind kind,
		     int or_else)
{
	struct fake_range *range;
	int err = fake_enter(name);

	if (!err)
		err = fake_capture_check();
	if (err)
		return err;
	pthread_mutex_lock(&fake_lock);
	range = fake_find_base((uintptr_t)ptr);
	if (!range || range->kind != kind) {
		err = or_else;
	} else {
		fake_ctx_wait(range->ctx);
		fake_range_remove(range);
	}
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuMemFreeHost(void *ptr)
{
	return give_back(__func__, ptr, FAKE_PINNED, CUDA_ERROR_INVALID_VALUE);
}

int cuMemHostUnregister(void *ptr)
{
	return give_back(__func__, ptr, FAKE_REGISTERED,
			 CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

/* Each page is there and may be read. */
static bool is_mapped(const void *ptr, size_t bytes)
{
	uintptr_t at = (uintptr_t)ptr & ~(PAGE - 1);
	uintptr_t end = (uintptr_t)ptr + bytes;
	char byte;

	for (; at < end; at += PAGE) {
		struct iovec to = {&byte, 1};
		struct iovec from = {(void *)at, 1};

		if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1)
			return false;
	}
	return true;
}

int cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags)
{
	struct fake_range *range;
	struct CUctx_st *ctx;
	int err = enter_unsafe(__func__, &ctx);

	if (err)
		return err;
	if (!ptr || !bytes || flags & ~15u || !is_mapped(ptr, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	range = range_new(FAKE_REGISTERED, ctx, bytes);
	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range->base = (uintptr_t)ptr;
	range->alias = ptr;
	range->flags = flags;
	pthread_mutex_lock(&fake_lock);
	if (fake_overlaps(range->base, bytes))
		err = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else
		fake_range_add(range);
	pthread_mutex_unlock(&fake_lock);
	if (err)
		free(range);
	return err;
}

int cuMemHostGetDevicePointer_v2(cu_ptr *out, void *ptr, unsigned int flags)
{
	const struct fake_range *range;
	struct CUctx_st *ctx;
	int err = fake_enter(__func__);

	if (!err)
		err = fake_ctx(&ctx);
	if (err)
		return err;
	if (!out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&fake_lock);
	range = fake_find((uintptr_t)ptr, 1);
	if (!range ||
	    (range->kind != FAKE_PINNED && range->kind != FAKE_REGISTERED))
		err = CUDA_ERROR_INVALID_VALUE;
	else
		*out = (uintptr_t)ptr;
	pthread_mutex_unlock(&fake_lock);
	return err;
}
