/* SPDX-License-Identifier: MIT */
/*
 * What the kernels for GPUs are called with, in C and in CUDA, and the image
 * that holds them.  Part of reduce's door.
 *
 * A kernel folds a batch of jobs of one type and operation, each as reduce.h
 * says, with the same bits.  It is called wreath_fold_TYPE_OP, such as
 * wreath_fold_float32_sum, with one struct reduce_gpu_batch by value, a grid of
 * as many blocks as the jobs have, and REDUCE_GPU_THREADS threads a block.
 */
#ifndef REDUCE_GPU_H
#define REDUCE_GPU_H

#include <stddef.h>
#include <stdint.h>

#define REDUCE_GPU_THREADS 512
/* Blocks of that many threads that a multiprocessor runs at a time. */
#define REDUCE_GPU_BLOCKS 2
#define REDUCE_GPU_JOBS 8
/* Pointers of all jobs of a batch; a batch stays below 4 KB, which is what
 * every GPU takes as parameters of a kernel. */
#define REDUCE_GPU_POINTERS 256

struct reduce_gpu_job {
	uint64_t count; /* elements */
	/* Of the source that is multiplied first: one element, its low bytes
	 * first; @factored is that source's place, or -1. */
	uint64_t factor;
	int32_t factored;
	uint32_t divisor; /* 0 or 1: none */
	/* Sources, then destinations, begin there in the batch's pointers. */
	uint16_t first, n_src, n_dst;
	/* The job's blocks of the grid begin there. */
	uint16_t first_block, n_blocks;
	uint16_t pad[3];
};

struct reduce_gpu_batch {
	uint32_t n_jobs, pad;
	struct reduce_gpu_job jobs[REDUCE_GPU_JOBS];
	uint64_t pointers[REDUCE_GPU_POINTERS];
};

#ifndef __CUDACC__

#include "reduce.h"

/*
 * The image of the kernels, for cuModuleLoadData(): code for the architectures
 * that the compiler knew, and PTX for later ones.  NULL and 0 in a build
 * without nvcc.
 */
const void *reduce_gpu_image(size_t *bytes);

/* A fold that is to go to a kernel. */
struct reduce_gpu_fold {
	const struct reduce_args *args; /* the flags are ignored */
	uint64_t factor;                /* as in struct reduce_gpu_job */
	int factored;                   /* the source's place, or -1 */
};

/*
 * Pack folds of elements of @elem bytes, of one type and operation, into a
 * batch: the first of @n_folds (1 or more), in their order, up to the first
 * that does not fit or that overlaps what one before it writes, or writes what
 * one before it reads.  (The folds of a batch run side by side.  What is one
 * memory by two addresses is not seen: the caller does not pack such folds.)
 * Returns how many were packed, 1 or more, and in *@n_blocks the grid to launch
 * them with: @max_blocks, and one more for each fold, at most.  For the whole
 * GPU @max_blocks is REDUCE_GPU_BLOCKS times its multiprocessors.
 */
int reduce_gpu_pack(const struct reduce_gpu_fold *folds, int n_folds,
		    size_t elem, unsigned int max_blocks,
		    struct reduce_gpu_batch *out, unsigned int *n_blocks);

#endif

#endif
