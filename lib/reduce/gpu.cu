/* SPDX-License-Identifier: MIT */
/*
 * The kernels of GPUs.  This is C and CUDA at once: nvcc compiles it for GPUs,
 * and a test, which emulates the threads, for the processor.
 *
 * An operand's elements are taken in one of three forms: as vectors of 16 bytes
 * where all operands of a job have the same place in them, so that one vector
 * of each lies behind the same few elements; else one by one where all are
 * aligned to their size; else byte by byte.  Neighbouring threads take
 * neighbouring elements in each form.
 *
 * A thread reads all sources of what it folds before it writes any of it, since
 * a destination may be a source; this is also why loads may not go by the cache
 * for constants, and no pointer here is restrict.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gpu.h"
#include "number.h"

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)

/* A test defines these in its own way. */
#ifdef __CUDACC__
#define JOB_FN NUMBER_FN
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")
#define KERNEL(name, fold_part, op)                                          \
	extern "C" __global__ void __launch_bounds__(REDUCE_GPU_THREADS,     \
						     REDUCE_GPU_BLOCKS)      \
		name(const __grid_constant__ struct reduce_gpu_batch batch) \
	{                                                                    \
		struct part part;                                            \
									     \
		if (part_find(&part, &batch))                                \
			fold_part(&part, op);                                \
	}
#endif

/*
 * Units of an operand that a thread has under way at a time.  Memory of 4.8
 * TB/s that answers after 0.7 us wants 3.4 MB under way, 25 KB for each of 132
 * multiprocessors (an H200); 1024 threads that copy 4 vectors have 64 KB.
 */
#define UNITS 4

/* What a thread takes at a time. */
enum form {
	BYTES,
	ELEMENTS,
	VECTORS,
};

/* A thread's part of a job. */
struct part {
	const uint64_t *src, *dst;
	int n_src, n_dst;
	uint32_t divisor;
	int factored;
	uint64_t factor;
	size_t count;
	/* The thread is number @id of @step that have the job. */
	size_t id, step;
};

/*
 * All operands are global memory in CUDA's sense, which a compiler cannot know
 * of an address from a list; it has faster instructions for them.
 */
NUMBER_FN char *address(uint64_t pointer)
{
	char *p = (char *)(uintptr_t)pointer;

#ifdef __CUDA_ARCH__
	__builtin_assume(__isGlobal(p));
#endif
	return p;
}

/*
 * Find this thread's part: the job that its block is of.  Blocks behind the
 * last job's have none.
 */
NUMBER_FN bool part_find(struct part *part,
			 const struct reduce_gpu_batch *batch)
{
	uint32_t block = blockIdx.x, i;

	for (i = 0; i < batch->n_jobs; i++) {
		const struct reduce_gpu_job *job = &batch->jobs[i];

		if (block - job->first_block >= job->n_blocks)
			continue;
		block -= job->first_block;
		part->src = batch->pointers + job->first;
		part->dst = part->src + job->n_src;
		part->n_src = job->n_src;
		part->n_dst = job->n_dst;
		part->divisor = job->divisor;
		part->factored = job->factored;
		part->factor = job->factor;
		part->count = job->count;
		part->id = block * REDUCE_GPU_THREADS + threadIdx.x;
		part->step = job->n_blocks * REDUCE_GPU_THREADS;
		return true;
	}
	return false;
}

/*
 * The form for elements of @size bytes, and how many of them are before the
 * first vector.
 */
NUMBER_FN enum form part_form(const struct part *part, uint32_t size,
			      size_t *n_head)
{
	uint32_t low = (uint32_t)part->src[0], differ = 0;
	int k;

	NO_UNROLL
	for (k = 1; k < part->n_src + part->n_dst; k++)
		differ |= (uint32_t)part->src[k] ^ low;
	*n_head = (-low & 15) / size;
	if (*n_head > part->count)
		*n_head = part->count;
	if ((low | differ) & (size - 1))
		return BYTES;
	return differ & 15 ? ELEMENTS : VECTORS;
}

/* Without a factor and a divisor. */
NUMBER_FN bool part_is_plain(const struct part *part)
{
	return part->divisor <= 1 && part->factored < 0;
}

/* UNITS vectors of the first source, @gap bytes apart, as they are. */
NUMBER_FN void part_copy(const struct part *part, size_t at, size_t gap)
{
	const char *src = address(part->src[0]) + at;
	uint4 v[UNITS];
	int k, u;

	UNROLL
	for (u = 0; u < UNITS; u++)
		v[u] = *(const uint4 *)(src + u * gap);
	NO_UNROLL
	for (k = 0; k < part->n_dst; k++) {
		char *dst = address(part->dst[k]) + at;

		if (dst == src)
			continue;
		UNROLL
		for (u = 0; u < UNITS; u++)
			*(uint4 *)(dst + u * gap) = v[u];
	}
}

#define GPU
#include "scalar.inc"
