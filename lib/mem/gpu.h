/* SPDX-License-Identifier: MIT */
/*
 * Memory of GPUs, the work that is done there, and the streams that order it.
 * Part of mem's door.
 *
 * CUDA's driver is found by dlopen, and only in a process that has it already
 * or asks for it (mem_cuda_load()): a program on host memory never starts it.
 * The driver is enough: streams, pointers and contexts of the CUDA runtime are
 * those of the driver, and each GPU is used by its primary context.
 *
 * A struct mem_gpu is one GPU as one communicator uses it: a stream of its own,
 * on which folds run in the order in which they are given.  Nothing here waits,
 * but for what says so.
 *
 * A fold is done by a kernel where the library has kernels and all operands
 * are within a kernel's reach; several of one kind go by one launch.  Else it
 * is staged: what lies on the GPU is copied to pinned memory by the copy
 * engine, folded by the processor, and the result copied back.  The bits are
 * the same.
 *
 * Why launches, and no kernel that stays and polls for work: a GPU that
 * processes share without MPS runs them by turns, of milliseconds, in which a
 * polling kernel would do nothing but wait for the other's; it would hold
 * processors that the user's kernels want; and it would have to read what
 * devices write behind its caches.  A launch costs some 3 us of the host and
 * is off the critical path as soon as two chunks are under way.
 */
#ifndef MEM_GPU_H
#define MEM_GPU_H

#include "base/base.h"
#include "reduce/reduce.h"

enum mem_kind {
	MEM_HOST,
	MEM_PINNED, /* host memory that CUDA knows: kernels reach it */
	MEM_MANAGED,
	MEM_DEVICE,
};

/* Where a pointer points. */
struct mem_where {
	enum mem_kind kind;
	int gpu;      /* CUDA's number of it; -1: none */
	char *base;   /* of the allocation, of MEM_DEVICE and MEM_MANAGED */
	size_t bytes; /* of the allocation */
	uint64_t id;  /* of the allocation: never used twice in a process */
};

/*
 * Find out.  Memory of the host where there is no CUDA in this process, which
 * costs next to nothing.  WREATH_EINVAL for memory that was freed or is of no
 * device that this process sees; WREATH_EUNSUP where WREATH_GPU is off and the
 * pointer is a GPU's.
 */
int mem_where(const void *ptr, struct mem_where *out);

/*
 * Whether CUDA's driver is in this process: where it is not, all memory is the
 * host's.  10 ns as long as it is not, so that one question does for all
 * pointers of a call.
 */
bool mem_cuda_is_here(void);

/*
 * Load CUDA's driver where that was not done.  WREATH_EUNSUP with one sentence
 * why there is none: not installed, too old, no device, WREATH_GPU=off.
 */
int mem_cuda_load(void);
/* The device of the calling thread's current context; -1: none, no CUDA. */
int mem_cuda_device(void);
/* A GPU that this process uses by calls of ours; -1: none so far. */
int mem_gpu_held(void);

/* What is known of a GPU, for `wreath info` and the log. */
struct mem_gpu_info {
	char name[64];
	char pci[16];	/* 0000:1b:00.0 */
	unsigned char uuid[16];
	size_t bytes;
	int major, minor;    /* of the compute capability */
	bool has_kernels;    /* else folds are staged; @why says why */
	bool has_dmabuf;     /* exports descriptors for devices */
	bool needs_flush;    /* what a device wrote must be flushed (before
			      * Hopper): the driver says it is not in order */
	char why[128];
};
/* The number there are in *n_gpus, 0 without CUDA.  WREATH_EINVAL. */
int mem_gpu_count(void);
int mem_gpu_info(int gpu, struct mem_gpu_info *out);
/* Do kernels on @gpu reach memory of @other?  Makes no context. */
bool mem_gpu_reaches(int gpu, int other);

/* Device memory that is best for registration; mem_free() frees it. */
int mem_gpu_alloc(size_t bytes, int gpu, void **out);

struct mem_gpu;

/*
 * @fold_bytes: the longest operand of a fold that may be staged.  Blocks for
 * milliseconds, and may wait until all streams of the GPU are idle: call it
 * before a put that waits for its outcome, and so mem_pin() and
 * mem_pinned_new().  WREATH_EINVAL, WREATH_ENOMEM, WREATH_EDEVICE,
 * WREATH_EUNSUP.
 */
int mem_gpu_open(int gpu, size_t fold_bytes, struct mem_gpu **out);
/* Waits for what was pushed, up to some seconds. */
void mem_gpu_close(struct mem_gpu *gpu);
int mem_gpu_number(const struct mem_gpu *gpu);
const struct mem_gpu_info *mem_gpu_about(const struct mem_gpu *gpu);

/* Jobs that may be under way; one more is WREATH_EAGAIN. */
#define MEM_JOBS_MAX 64

struct mem_job {
	struct reduce_args fold; /* its lists are copied, its flags ignored */
	enum wreath_type type;
	enum wreath_op op; /* WREATH_SUM .. WREATH_MAX */
	/* Which operands are in memory of the GPU; the others are the host's.
	 * Bit i is source i, or destination i. */
	uint64_t gpu_src, gpu_dst;
	/* Host operands are pinned: a kernel can reach them. */
	bool is_pinned;
	/* One element of @type that source @i_factor is multiplied by, and
	 * rounded, before it is folded; NULL: none. */
	const void *factor;
	int i_factor;
};

/*
 * Take a fold up: its number in *@number, from 1 on.  Starts with the next
 * mem_gpu_push() at the latest.  WREATH_EAGAIN: too many are under way; or an
 * error of the device, which stays.
 */
int mem_gpu_fold(struct mem_gpu *gpu, const struct mem_job *job,
		 uint64_t *number);
/* The same for a copy of bytes between any two kinds of memory; host memory
 * must be pinned, and @bytes are not limited. */
int mem_gpu_copy(struct mem_gpu *gpu, void *dst, const void *src, size_t bytes,
		 uint64_t *number);
/* Start what was taken up, and carry on what is staged. */
int mem_gpu_push(struct mem_gpu *gpu);
/*
 * 1 when the fold or copy, and all before it, are done, and what they wrote is
 * seen by everyone; 0 while not; or an error of the device.
 */
int mem_gpu_done(struct mem_gpu *gpu, uint64_t number);
/* Wait until all are done, or those that had begun before one failed, for
 * @timeout_ms at most.  0, or WREATH_EDEVICE. */
int mem_gpu_drain(struct mem_gpu *gpu, int64_t timeout_ms);

/*
 * Make host memory known to CUDA, so that kernels reach it; whole pages.
 * Memory that is known already counts.  Without a text WREATH_EUNSUP where that
 * cannot be, and folds of it are staged, and WREATH_EAGAIN while a CUDA stream
 * waits for this process, since it may wait for an idle GPU.
 */
int mem_pin(void *ptr, size_t bytes);
void mem_unpin(void *ptr);
/* Pinned host memory of our own. */
int mem_pinned_new(size_t bytes, void **out);
void mem_pinned_free(void *ptr);

/*
 * What another process of this host needs to reach an allocation: CUDA's
 * handle, and whose it is.  Within a process the pointer itself serves.
 */
struct mem_export {
	uint64_t process[2]; /* chance, of each process */
	uint64_t id, base, bytes; /* of the allocation, there */
	unsigned char uuid[16];
	unsigned char handle[64];
};
/* WREATH_EUNSUP, without a text, for memory that cannot be exported. */
int mem_export(const struct mem_where *where, struct mem_export *out);
/*
 * Where [@at, @at + @bytes), addresses there, is here; kernels on @gpu reach
 * it.  It stays until the next mem_gpu_drain() of @gpu that succeeds; then
 * until mem_gpu_close(), or until others need the room.  WREATH_EINVAL for what
 * lies outside of the export, or is not what it says; WREATH_EUNSUP where the
 * GPUs do not reach each other, CUDA refuses, or there is no room that can be
 * made without waiting.
 */
#define MEM_IMPORTS_MAX 64 /* of a struct mem_gpu, if they can be closed */
#define MEM_IMPORTS_MOST 1024 /* while no GPU may be waited for */
int mem_import(struct mem_gpu *gpu, const struct mem_export *from, uint64_t at,
	       size_t bytes, void **out);

/*
 * A DMA-BUF descriptor of [@ptr, @ptr + @bytes) of device memory, which is
 * within one allocation; the caller closes it.  *@offset is where the range
 * begins in it.  WREATH_EUNSUP, with the text why.
 */
int mem_dmabuf(const void *ptr, size_t bytes, int *fd, uint64_t *offset);

/*
 * A CUDA stream, as operations are ordered on it.  Each put queues two things
 * on it: a word that tells the host that the stream has come so far, and a wait
 * until the host lets it go on.  Neither blocks the host, and neither holds a
 * processor of the GPU.
 */
struct mem_stream;

/* Puts that may be under way on a stream; one more is WREATH_EAGAIN. */
#define MEM_STREAM_MAX 1024

/*
 * @cuda is a cudaStream_t or CUstream, of the calling thread's current context
 * where it is NULL (the default stream).  WREATH_EINVAL for one that does not
 * exist or is of a context that is not its device's primary one, WREATH_EUNSUP.
 */
int mem_stream_open(void *cuda, struct mem_stream **out);
void mem_stream_close(struct mem_stream *stream);
int mem_stream_gpu(const struct mem_stream *stream);
/*
 * Queue a put, from any thread, one at a time: its number in *@number.
 * WREATH_EUNSUP while the stream is captured into a graph.
 */
int mem_stream_put(struct mem_stream *stream, uint32_t *number);
/* Has the stream come to the put?  1, 0, or the device's error. */
int mem_stream_reached(struct mem_stream *stream, uint32_t number);
/* Let the stream go on behind the put, and those before it. */
void mem_stream_release(struct mem_stream *stream, uint32_t number);

#endif
