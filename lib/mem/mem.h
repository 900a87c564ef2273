/* SPDX-License-Identifier: MIT */
/*
 * mem: the kinds of memory, and which ranges of it devices may use in place.
 *
 * It keeps one table a process of the regions that the user allocated or
 * registered.  It must never know a device: whoever registers a region with
 * one asks to be told when the region goes (mem_watch).  Any thread may call.
 */
#ifndef MEM_H
#define MEM_H

#include "base/base.h"
#include "mem/gpu.h"
#include "reduce/reduce.h"

/* Regions of one process at most; one more is WREATH_ENOMEM. */
#define MEM_REGIONS_MAX 4096

/* A copy of what the table knows; no pointer into it. */
struct mem_region {
	char *base;
	size_t bytes;
	int fd;	     /* the memfd behind it, or -1 */
	int gpu;     /* CUDA's number of the GPU whose memory it is, or -1 */
	uint64_t id; /* never used twice, never 0 */
};

/* Memory in a sealed memfd, mapped here; freed by mem_free(). */
int mem_alloc(size_t bytes, void **out);
int mem_free(void *ptr);

int mem_register(void *ptr, size_t bytes);
int mem_deregister(void *ptr);

/*
 * The region that holds all of [@ptr, @ptr + @bytes), if there is one.
 * Neither locks nor blocks.
 */
bool mem_find(const void *ptr, size_t bytes, struct mem_region *out);

/*
 * 1 and a region where all of [@ptr, @ptr + @bytes) is within one allocation
 * of a GPU's memory, in the table or not; else 0.  The region is the whole
 * allocation where the table has none that holds the range: its id has
 * MEM_GPU_ID set, and mem_watch() is not told when it goes.  Asks CUDA; never
 * blocks.
 */
#define MEM_GPU_ID (1ull << 63)
int mem_gpu_region(const void *ptr, size_t bytes, struct mem_region *out);

/* Called before a region goes, by the thread that frees it. */
struct mem_watch {
	void (*gone)(void *arg, const struct mem_region *region);
	void *arg;
	struct mem_watch *next; /* mem's own */
};
void mem_watch_add(struct mem_watch *watch);
void mem_watch_remove(struct mem_watch *watch);

/*
 * Anonymous shared memory for our own use, outside of the table: sealed
 * against shrinking, so that no peer can make it fault.
 */
int mem_shared_new(size_t bytes, void **out, int *fd);
void mem_shared_free(void *ptr, size_t bytes, int fd);

/* The kernel that folds vectors of this kind of memory. */
static inline reduce_fn *mem_fold(enum wreath_type type, enum wreath_op op)
{
	return reduce_get(type, op, false);
}

#endif
