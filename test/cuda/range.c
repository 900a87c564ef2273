/* SPDX-License-Identifier: MIT */
/*
 * Ranges of memory that the driver knows.
 *
 * Memory of a device is a memfd that is mapped twice: where programs see it,
 * and where nobody may touch it; and elsewhere, where the driver does its work.
 * The allocation does not begin with the page, and the rest of its pages is
 * canaries, which are looked at in the end.  What was freed stays reserved for
 * a while, so that its use is seen.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/cuda/fake.h"

#define PAGE ((size_t)4096)
#define N_FREED 64
/* The rest of a larger allocation is zero: nobody looks there for poison. */
#define POISON_BYTES ((size_t)64 << 20)

/* All guarded by the lock. */
static struct fake_range *ranges;
static struct {
	uintptr_t base;
	size_t bytes;
} freed[N_FREED];
static unsigned int n_freed;
static uint64_t n_ids;

struct fake_range *fake_find(cu_ptr ptr, size_t bytes)
{
	struct fake_range *at;

	for (at = ranges; at; at = at->next)
		if (ptr >= at->base && ptr - at->base < at->bytes &&
		    bytes <= at->bytes - (ptr - at->base))
			return at;
	return NULL;
}

struct fake_range *fake_find_base(cu_ptr ptr)
{
	struct fake_range *at = fake_find(ptr, 1);

	return at && at->base == ptr ? at : NULL;
}

struct fake_range *fake_find_mapping(cu_ptr ptr, size_t bytes)
{
	struct fake_range *at;

	for (at = ranges; at; at = at->next)
		if (at->map && ptr >= (uintptr_t)at->map &&
		    ptr - (uintptr_t)at->map < at->map_bytes &&
		    bytes <= at->map_bytes - (ptr - (uintptr_t)at->map))
			return at;
	return NULL;
}

struct fake_range *fake_find_import(const struct CUctx_st *ctx,
				    const struct cu_ipc *handle)
{
	struct fake_range *at;

	for (at = ranges; at; at = at->next)
		if (at->kind == FAKE_IMPORTED && at->ctx == ctx &&
		    !memcmp(&at->handle, handle, sizeof(*handle)))
			return at;
	return NULL;
}

bool fake_overlaps(uintptr_t base, size_t bytes)
{
	const struct fake_range *at;

	for (at = ranges; at; at = at->next)
		if (base < at->base + at->bytes && at->base < base + bytes)
			return true;
	return false;
}

bool fake_was_freed(cu_ptr ptr)
{
	int i;

	for (i = 0; i < N_FREED; i++)
		if (ptr >= freed[i].base &&
		    ptr - freed[i].base < freed[i].bytes)
			return true;
	return false;
}

static void fill(struct fake_range *range, size_t before)
{
	size_t bytes = range->bytes;

	if (bytes > POISON_BYTES)
		bytes = POISON_BYTES;
	memset(range->alias_map, FAKE_CANARY, before);
	memset(range->alias, FAKE_POISON, bytes);
	memset(range->alias + range->bytes, FAKE_CANARY,
	       range->map_bytes - before - range->bytes);
}

int fake_map(struct fake_range *range, int fd, size_t before)
{
	int prot = fake_config.peermem ? PROT_READ | PROT_WRITE : PROT_NONE;
	void *seen, *alias;

	range->map_bytes = (before + range->bytes + PAGE - 1) & ~(PAGE - 1);
	range->fd = fd;
	if (fd < 0) {
		range->fd = memfd_create("fake-cuda", MFD_CLOEXEC);
		if (range->fd < 0)
			return CUDA_ERROR_OUT_OF_MEMORY;
		if (ftruncate(range->fd, (off_t)range->map_bytes))
			goto err_close;
	}
	seen = mmap(NULL, range->map_bytes, prot, MAP_SHARED, range->fd, 0);
	if (seen == MAP_FAILED)
		goto err_close;
	alias = mmap(NULL, range->map_bytes, PROT_READ | PROT_WRITE,
		     MAP_SHARED, range->fd, 0);
	if (alias == MAP_FAILED)
		goto err_unmap;
	/* Nor has a child of the process the memory of the real ones. */
	madvise(seen, range->map_bytes, MADV_DONTFORK);
	madvise(alias, range->map_bytes, MADV_DONTFORK);
	range->map = seen;
	range->alias_map = alias;
	range->base = (uintptr_t)range->map + before;
	range->alias = range->alias_map + before;
	if (fd < 0)
		fill(range, before);
	return 0;
err_unmap:
	munmap(seen, range->map_bytes);
err_close:
	if (fd < 0)
		close(range->fd);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void fake_range_add(struct fake_range *range)
{
	range->id = ++n_ids;
	range->next = ranges;
	ranges = range;
}

static bool is_canary(const char *at, const char *end)
{
	for (; at < end; at++)
		if (*(const unsigned char *)at != FAKE_CANARY)
			return false;
	return true;
}

static void check_canaries(const struct fake_range *range)
{
	if (is_canary(range->alias_map, range->alias) &&
	    is_canary(range->alias + range->bytes,
		      range->alias_map + range->map_bytes))
		return;
	fake_tell("bytes were written around %zu bytes of device memory at %p",
		  range->bytes, (void *)range->base);
	abort();
}

/* What was there may be mapped by a device or a peer, which has no business
 * with it any more. */
static void reserve(struct fake_range *range)
{
	unsigned int i = n_freed++ % N_FREED;

	if (freed[i].bytes)
		munmap((void *)freed[i].base, freed[i].bytes);
	mmap(range->map, range->map_bytes, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	freed[i].base = (uintptr_t)range->map;
	freed[i].bytes = range->map_bytes;
}

void fake_range_remove(struct fake_range *range)
{
	struct fake_range **link = &ranges;

	while (range->n_users)
		pthread_cond_wait(&fake_changed, &fake_lock);
	while (*link != range)
		link = &(*link)->next;
	*link = range->next;
	if (range->map) {
		if (range->kind == FAKE_DEVICE) {
			check_canaries(range);
			fill(range, (size_t)(range->alias - range->alias_map));
		}
		munmap(range->alias_map, range->map_bytes);
		reserve(range);
		close(range->fd);
	} else if (range->kind != FAKE_REGISTERED) {
		munmap((void *)range->base, range->bytes);
	}
	free(range);
}

void fake_count_ranges(struct fake_leaks *leaks)
{
	const struct fake_range *at;

	for (at = ranges; at; at = at->next) {
		if (at->kind == FAKE_REGISTERED)
			leaks->registrations++;
		else if (at->kind == FAKE_IMPORTED)
			leaks->imports++;
		else
			leaks->allocations++;
	}
}

int fake_reach(struct CUctx_st *ctx, cu_ptr ptr, size_t bytes, char **out,
	       struct fake_range **range, const char **why)
{
	struct fake_range *at = fake_find(ptr, bytes);

	if (!at) {
		*why = fake_was_freed(ptr)    ? "was freed"
		       : fake_find(ptr, 1) ? "ends before that"
					      : "is no memory of CUDA's";
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	if ((at->kind == FAKE_DEVICE || at->kind == FAKE_IMPORTED) &&
	    at->device != ctx->device && !ctx->reaches[at->device]) {
		*why = "is a peer's, and access was not enabled";
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	at->n_users++;
	*out = at->alias + (ptr - at->base);
	*range = at;
	return 0;
}

void *fakeCudaAlias(cu_ptr ptr, size_t bytes)
{
	struct fake_range *at;
	void *out = NULL;

	pthread_mutex_lock(&fake_lock);
	at = fake_find(ptr, bytes);
	if (at)
		out = at->alias + (ptr - at->base);
	pthread_mutex_unlock(&fake_lock);
	return out;
}
