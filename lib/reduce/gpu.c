/* SPDX-License-Identifier: MIT */
/*
 * Batches for the kernels of GPUs.
 */
#include <string.h>

#include "base/base.h"
#include "gpu.h"
#include "reduce.h"

_Static_assert(sizeof(struct reduce_gpu_job) == 40,
	       "a job is laid out as the kernels' compiler does it");
_Static_assert(sizeof(struct reduce_gpu_batch) <= 4096,
	       "a batch fits the parameters of a kernel");
_Static_assert(REDUCE_GPU_POINTERS >= 2 * REDUCE_MAX,
	       "every fold fits an empty batch");

/*
 * The least that a block is worth of one operand: a vector of 16 bytes for
 * each thread.
 */
#define BLOCK_BYTES ((size_t)16 * REDUCE_GPU_THREADS)

/* Ranges of @bytes and @other_bytes at two addresses. */
static bool is_apart(const void *a, size_t bytes, const void *b,
		     size_t other_bytes)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return x < y ? y - x >= bytes : x - y >= other_bytes;
}

/* Whether @args writes anything that @other reads or writes. */
static bool disturbs(const struct reduce_args *args,
		     const struct reduce_args *other, size_t elem)
{
	size_t bytes = args->count * elem, other_bytes = other->count * elem;
	int i, k;

	for (i = 0; i < args->n_dst; i++) {
		for (k = 0; k < other->n_src; k++)
			if (!is_apart(args->dst[i], bytes, other->src[k],
				      other_bytes))
				return true;
		for (k = 0; k < other->n_dst; k++)
			if (!is_apart(args->dst[i], bytes, other->dst[k],
				      other_bytes))
				return true;
	}
	return false;
}

/* How many of the folds may run side by side in one batch. */
static int count_folds(const struct reduce_gpu_fold *folds, int n_folds,
		       size_t elem)
{
	int n_pointers = 0, i, k;

	for (i = 0; i < n_folds && i < REDUCE_GPU_JOBS; i++) {
		const struct reduce_args *args = folds[i].args;

		n_pointers += args->n_src + args->n_dst;
		if (n_pointers > REDUCE_GPU_POINTERS)
			break;
		for (k = 0; k < i; k++)
			if (disturbs(args, folds[k].args, elem) ||
			    disturbs(folds[k].args, args, elem))
				return i;
	}
	return i;
}

/* What a fold moves, in bytes; no less than one, so that it has a share. */
static double fold_weight(const struct reduce_args *args, size_t elem)
{
	return 1 + (double)args->count * (double)elem *
			   (args->n_src + args->n_dst);
}

int reduce_gpu_pack(const struct reduce_gpu_fold *folds, int n_folds,
		    size_t elem, unsigned int max_blocks,
		    struct reduce_gpu_batch *out, unsigned int *n_blocks)
{
	unsigned int n_pointers = 0, next_block = 0;
	int n_jobs = count_folds(folds, n_folds, elem), i, k;
	double total = 0;

	memset(out, 0, sizeof(*out));
	/* The first of a job's blocks is kept in 16 bits. */
	if (max_blocks > UINT16_MAX - REDUCE_GPU_JOBS)
		max_blocks = UINT16_MAX - REDUCE_GPU_JOBS;
	for (i = 0; i < n_jobs; i++)
		total += fold_weight(folds[i].args, elem);
	for (i = 0; i < n_jobs; i++) {
		const struct reduce_args *args = folds[i].args;
		struct reduce_gpu_job *job = &out->jobs[i];
		size_t useful = args->count * elem / BLOCK_BYTES + 1;
		double share = fold_weight(args, elem) / total * max_blocks;

		job->count = args->count;
		job->factor = folds[i].factor;
		job->factored = folds[i].factored;
		job->divisor = args->divisor;
		job->first = (uint16_t)n_pointers;
		job->n_src = (uint16_t)args->n_src;
		job->n_dst = (uint16_t)args->n_dst;
		for (k = 0; k < args->n_src; k++)
			out->pointers[n_pointers++] = (uintptr_t)args->src[k];
		for (k = 0; k < args->n_dst; k++)
			out->pointers[n_pointers++] = (uintptr_t)args->dst[k];
		job->first_block = (uint16_t)next_block;
		job->n_blocks = (uint16_t)base_min_size(useful, (size_t)share);
		if (!job->n_blocks)
			job->n_blocks = 1;
		next_block += job->n_blocks;
	}
	out->n_jobs = (uint32_t)n_jobs;
	*n_blocks = next_block;
	return n_jobs;
}
