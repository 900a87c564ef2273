/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mem/cuda.h"
#include "mem/mem.h"

/*
 * Pages that were seen to be the host's, by a hash of their address.  CUDA
 * does not know host memory, and knows freed memory of its own no better; so
 * what it does not know is probed once.  A page that becomes a GPU's is taken
 * out when CUDA says so.
 */
#define PAGES 256
static _Atomic uintptr_t pages[PAGES];

/* By the golden ratio, which spreads equal distances. */
static _Atomic uintptr_t *page_of(const void *ptr)
{
	uint64_t hash = ((uintptr_t)ptr >> 12) * 0x9e3779b97f4a7c15ull;

	return &pages[hash >> 56];
}

/*
 * The kernel copies the set in before it looks at what is to be done with it,
 * which is nothing that exists: no effect, but EFAULT where there is no memory.
 */
static bool is_readable(const void *ptr)
{
	uintptr_t word = (uintptr_t)ptr & ~(uintptr_t)7;
	int saved = errno;
	bool readable = syscall(SYS_rt_sigprocmask, -1L, word, 0L, 8L) != -1 ||
			errno != EFAULT;

	errno = saved;
	return readable;
}

/* Never 0, which is what is in an empty place. */
static uintptr_t name_of(const void *ptr)
{
	return (uintptr_t)ptr >> 12 | (uintptr_t)1 << 63;
}

static bool is_host(const void *ptr)
{
	_Atomic uintptr_t *page = page_of(ptr);
	uintptr_t at = name_of(ptr);

	/* A lost update costs a probe. */
	if (base_likely(atomic_load_explicit(page, memory_order_relaxed) == at))
		return true;
	if (!is_readable(ptr))
		return false;
	atomic_store_explicit(page, at, memory_order_relaxed);
	return true;
}

static void forget(const void *ptr)
{
	_Atomic uintptr_t *page = page_of(ptr);

	if (atomic_load_explicit(page, memory_order_relaxed) == name_of(ptr))
		atomic_store_explicit(page, 0, memory_order_relaxed);
}

static int query(const void *ptr, struct mem_where *out)
{
	int attributes[] = {CUDA_POINTER_MEMORY_TYPE, CUDA_POINTER_IS_MANAGED,
			    CUDA_POINTER_DEVICE, CUDA_POINTER_BUFFER_ID,
			    CUDA_POINTER_RANGE_START, CUDA_POINTER_RANGE_SIZE};
	/* Words of 64 bits, since the driver's headers do not agree on how
	 * long its booleans are. */
	uint64_t type = 0, is_managed = 0, device = 0, id = 0, start = 0;
	uint64_t bytes = 0;
	void *data[] = {&type, &is_managed, &device, &id, &start, &bytes};
	int result = cuda.pointer_get(base_countof(attributes), attributes,
				      data, (uintptr_t)ptr);

	if (result)
		return result;
	if ((uint32_t)type == CUDA_MEMORY_HOST && !is_managed)
		out->kind = MEM_PINNED;
	else if ((uint32_t)type)
		out->kind = is_managed ? MEM_MANAGED : MEM_DEVICE;
	if (out->kind != MEM_DEVICE && out->kind != MEM_MANAGED)
		return CUDA_OK;
	out->gpu = (int)(uint32_t)device;
	out->base = (char *)(uintptr_t)start;
	out->bytes = bytes;
	out->id = id;
	return CUDA_OK;
}

int cuda_where(const void *ptr, struct mem_where *out)
{
	struct cuda_gpu *gpu = cuda_gpu_any();
	int result;

	*out = (struct mem_where){.kind = MEM_HOST, .gpu = -1};
	result = query(ptr, out);
	/* Not every driver answers a thread that has no context. */
	if (result == CUDA_INVALID_CONTEXT && gpu && !cuda_enter(gpu)) {
		result = query(ptr, out);
		cuda_leave();
	}
	/* The program has the driver, and does not use it yet, or any more. */
	if (result == CUDA_NOT_INITIALIZED || result == CUDA_DEINITIALIZED ||
	    result == CUDA_INVALID_CONTEXT)
		return CUDA_OK;
	return result;
}

static __attribute__((noinline)) int ask(const void *ptr,
					 struct mem_where *out)
{
	struct mem_where where;
	int result = cuda_where(ptr, &where);

	if (where.kind == MEM_HOST) {
		if (is_host(ptr))
			return 0;
		if (result)
			return cuda_error(result, "cuPointerGetAttributes",
					  "%p", ptr);
	} else if (where.kind != MEM_PINNED) {
		forget(ptr);
		if (cuda_is_off())
			return base_error(WREATH_EUNSUP,
					  "%p is memory of GPU %d, which is "
					  "not used: WREATH_GPU=off; unset it",
					  ptr, where.gpu);
		result = cuda_usable();
		if (result)
			return result;
	}
	/* An allocation of no length, or of a device that was hidden. */
	if (where.kind == MEM_HOST ||
	    (where.kind != MEM_PINNED &&
	     (where.gpu < 0 || !where.bytes ||
	      (uintptr_t)ptr - (uintptr_t)where.base >= where.bytes)))
		return base_error(WREATH_EINVAL,
				  "%p is no memory of this process: it was "
				  "freed, or is of a GPU that this process "
				  "does not see (CUDA_VISIBLE_DEVICES)", ptr);
	if (where.kind == MEM_PINNED && cuda_is_off())
		return 0;
	*out = where;
	return 0;
}

int mem_where(const void *ptr, struct mem_where *out)
{
	*out = (struct mem_where){.kind = MEM_HOST, .gpu = -1};
	if (base_likely(!mem_cuda_is_here()) || !ptr || !cuda.pointer_get)
		return 0;
	return ask(ptr, out);
}

int mem_gpu_region(const void *ptr, size_t bytes, struct mem_region *out)
{
	struct mem_where where;

	if (mem_find(ptr, bytes, out))
		return out->gpu >= 0;
	/* Without an id of its own it would be taken for another. */
	if (mem_where(ptr, &where) || where.kind != MEM_DEVICE || !where.id)
		return 0;
	if (bytes > where.bytes - (size_t)((const char *)ptr - where.base))
		return 0;
	*out = (struct mem_region){
		.base = where.base,
		.bytes = where.bytes,
		.fd = -1,
		.gpu = where.gpu,
		.id = where.id | MEM_GPU_ID,
	};
	return 1;
}
