/* SPDX-License-Identifier: MIT */
/*
 * Memory of GPUs.  It is not freed before the end: that would wait for all that
 * other ranks have on the same GPU, which may wait for this one.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/loop/gpu_inner.h"

enum how {
	PLAIN,
	REGISTERED, /* wreath_mem_register() */
	ALLOCATED,  /* wreath_mem_alloc_gpu() */
	N_HOWS,
	/* Where kinds of memory are mixed, these as well: */
	MANAGED = N_HOWS,
	PINNED,
	N_MIXED,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpu_block *blocks;
/*
 * Pinned memory for copies, as far as the host does not see the GPU's: all of
 * it at first, since the driver may wait for streams before it gives more.
 */
#define PINNED ((size_t)48 << 20)
static char *pinned;
static size_t n_pinned;

void gpu_blocks_init(void)
{
	void *at;

	if (gpu_is_seen())
		return;
	OK(CU(cuMemHostAlloc)(&at, PINNED, CU_MEMHOSTALLOC_PORTABLE));
	pinned = at;
}

/* Where the host fills and reads @block. */
static char *see(const struct gpu_block *block)
{
	char *at;

	if (gpu_is_seen())
		return CU(fakeCudaAlias)(block->ptr, block->bytes);
	pthread_mutex_lock(&lock);
	at = pinned + n_pinned;
	n_pinned += (block->bytes + 255) & ~(size_t)255;
	pthread_mutex_unlock(&lock);
	if (n_pinned > PINNED)
		gpu_broken("no pinned memory is left");
	return at;
}

static int make(struct gpu_block *block)
{
	void *at = NULL;
	int err;

	if (block->how == ALLOCATED) {
		err = wreath_mem_alloc_gpu(block->bytes, block->device, &at);
		block->ptr = (uintptr_t)at;
		return err;
	}
	if (block->how == PINNED) {
		err = CU(cuMemHostAlloc)(&at, block->bytes, 1);
		block->ptr = (uintptr_t)at;
		return err;
	}
	if (block->how == MANAGED)
		return CU(cuMemAllocManaged)(&block->ptr, block->bytes, 1);
	err = CU(cuMemAlloc_v2)(&block->ptr, block->bytes);
	if (!err && block->how == REGISTERED)
		err = wreath_mem_register((void *)(uintptr_t)block->ptr,
					  block->bytes);
	return err;
}

struct gpu_block *gpu_block_get(int device, size_t bytes)
{
	struct gpu_block *block;
	int err;

	pthread_mutex_lock(&lock);
	for (block = blocks; block; block = block->next)
		if (!block->is_used && block->device == device &&
		    block->bytes >= bytes && block->bytes / 4 <= bytes)
			break;
	if (block)
		block->is_used = true;
	pthread_mutex_unlock(&lock);
	if (block)
		return block;
	block = calloc(1, sizeof(*block));
	if (!block)
		return NULL;
	block->device = device;
	/* Some room for the next. */
	block->bytes = bytes + bytes / 4 + 100;
	block->how = (int)(gpu_chance() % (gpu_is_mixed() ? N_MIXED : N_HOWS));
	block->is_used = true;
	err = make(block);
	if (err) {
		fprintf(stderr, "RANKS_GPU: no memory in way %d: %d: %s\n",
			block->how, err, wreath_error_text());
		gpu_broken("a buffer");
	}
	block->alias = see(block);
	pthread_mutex_lock(&lock);
	block->next = blocks;
	blocks = block;
	pthread_mutex_unlock(&lock);
	return block;
}

void gpu_block_put(struct gpu_block *block)
{
	block->is_used = false;
}

void gpu_blocks_free(void)
{
	while (blocks) {
		struct gpu_block *block = blocks;
		void *at = (void *)(uintptr_t)block->ptr;
		int err = 0;

		blocks = block->next;
		if (block->is_used)
			gpu_broken("a buffer is in use at the end");
		gpu_use(block->device);
		if (block->how == REGISTERED)
			err = wreath_mem_deregister(at);
		if (!err && block->how == ALLOCATED)
			err = wreath_mem_free(at);
		if (err)
			gpu_broken(wreath_error_text());
		if (block->how == PINNED)
			OK(CU(cuMemFreeHost)(at));
		else if (block->how != ALLOCATED)
			OK(CU(cuMemFree_v2)(block->ptr));
		free(block);
	}
	if (pinned)
		OK(CU(cuMemFreeHost)(pinned));
	pinned = NULL;
	n_pinned = 0;
}
