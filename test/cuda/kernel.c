/* SPDX-License-Identifier: MIT */
/*
 * The kernels, which are the scalar reference, and what they must not be given:
 * memory that is out of a device's reach, lists that do not fit, outputs of one
 * job that another job of the batch touches, since all run at a time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/cuda/kernel.h"

struct run {
	struct CUctx_st *ctx;
	const struct fake_kernel *kernel;
	size_t elem;
	struct fake_range *ranges[REDUCE_GPU_POINTERS];
	char *at[REDUCE_GPU_POINTERS];
};

void fake_join(char *out, size_t bytes, const char *start, const char *type,
	       const char *op)
{
	snprintf(out, bytes, "%s%s_%s", start, type, op);
}

void fake_kernel_free(struct fake_kernel *kernel)
{
	free(kernel);
}

static int broken(const char *what, uint64_t value)
{
	fake_tell("a kernel was given %s: %llu", what,
		  (unsigned long long)value);
	return CUDA_ERROR_LAUNCH_FAILED;
}

static int check_job(const struct reduce_gpu_job *job, unsigned int block)
{
	if (!job->n_src || job->n_src > REDUCE_MAX)
		return broken("a number of sources", job->n_src);
	if (!job->n_dst || job->n_dst > REDUCE_MAX)
		return broken("a number of destinations", job->n_dst);
	if (job->first + job->n_src + job->n_dst > REDUCE_GPU_POINTERS)
		return broken("pointers beyond the last", job->first);
	if (job->first_block != block || !job->n_blocks)
		return broken("a first block", job->first_block);
	if (job->factored < -1 || job->factored >= job->n_src)
		return broken("a factored source", (uint64_t)job->factored);
	return 0;
}

static int check_lists(const struct fake_kernel *kernel)
{
	const struct reduce_gpu_batch *batch = &kernel->batch;
	unsigned int block = 0;
	unsigned int i;
	int err;

	if (kernel->block != REDUCE_GPU_THREADS)
		return broken("threads", kernel->block);
	if (!batch->n_jobs || batch->n_jobs > REDUCE_GPU_JOBS)
		return broken("a number of jobs", batch->n_jobs);
	for (i = 0; i < batch->n_jobs; i++) {
		err = check_job(&batch->jobs[i], block);
		if (err)
			return err;
		block += batch->jobs[i].n_blocks;
	}
	return block == kernel->grid ? 0 : broken("a grid", kernel->grid);
}

/* @same: equal is allowed. */
static bool collides(uint64_t a, size_t a_bytes, uint64_t b, size_t b_bytes,
		     bool same)
{
	if (!a_bytes || !b_bytes || (same && a == b))
		return false;
	return a < b + b_bytes && b < a + a_bytes;
}

/* What @job writes, and all that @other reads and writes. */
static int check_pair(const struct run *run, const struct reduce_gpu_job *job,
		      const struct reduce_gpu_job *other)
{
	const uint64_t *pointers = run->kernel->batch.pointers;
	int i, k;

	for (i = job->n_src; i < job->n_src + job->n_dst; i++)
		for (k = 0; k < other->n_src + other->n_dst; k++)
			if ((job != other || i != k) &&
			    collides(pointers[job->first + i],
				     job->count * run->elem,
				     pointers[other->first + k],
				     other->count * run->elem,
				     job == other && k < job->n_src))
				return broken("operands that overlap",
					      pointers[job->first + i]);
	return 0;
}

static int check_overlaps(const struct run *run)
{
	const struct reduce_gpu_batch *batch = &run->kernel->batch;
	unsigned int i, k;
	int err;

	for (i = 0; i < batch->n_jobs; i++) {
		for (k = 0; k < batch->n_jobs; k++) {
			err = check_pair(run, &batch->jobs[i],
					 &batch->jobs[k]);
			if (err)
				return err;
		}
	}
	return 0;
}

/* Caller holds the lock. */
static int reach_job(struct run *run, const struct reduce_gpu_job *job)
{
	size_t bytes = job->count * run->elem;
	const char *why = "";
	int i, err;

	for (i = job->first; i < job->first + job->n_src + job->n_dst; i++) {
		uint64_t ptr = run->kernel->batch.pointers[i];

		if (run->ranges[i])
			return broken("a pointer twice", (uint64_t)i);
		if (!bytes)
			continue;
		err = fake_reach(run->ctx, ptr, bytes, &run->at[i],
				 &run->ranges[i], &why);
		if (!err)
			continue;
		fake_tell("a kernel of device %d was given %s %d of %zu bytes "
			  "at %p: it %s", run->ctx->device,
			  i < job->first + job->n_src ? "source"
						      : "destination",
			  i - job->first, bytes, (void *)(uintptr_t)ptr, why);
		return err;
	}
	return 0;
}

static int reach_all(struct run *run)
{
	const struct reduce_gpu_batch *batch = &run->kernel->batch;
	unsigned int i;
	int err = 0;

	pthread_mutex_lock(&fake_lock);
	for (i = 0; i < batch->n_jobs && !err; i++)
		err = reach_job(run, &batch->jobs[i]);
	pthread_mutex_unlock(&fake_lock);
	return err;
}

static void leave_all(struct run *run)
{
	int i;

	pthread_mutex_lock(&fake_lock);
	for (i = 0; i < REDUCE_GPU_POINTERS; i++)
		if (run->ranges[i])
			run->ranges[i]->n_users--;
	pthread_cond_broadcast(&fake_changed);
	pthread_mutex_unlock(&fake_lock);
}

/* The source times the factor, rounded, in memory of its own. */
static char *multiply(const struct run *run, const struct reduce_gpu_job *job,
		      const char *src)
{
	size_t bytes = job->count * run->elem;
	char *out = malloc(bytes);
	char *factors = malloc(bytes);
	void *dst[] = {out};
	const void *srcs[] = {src, factors};
	struct reduce_args args = {.dst = dst, .n_dst = 1, .src = srcs,
				   .n_src = 2, .count = job->count};
	size_t i;

	if (!out || !factors)
		abort();
	for (i = 0; i < job->count; i++)
		memcpy(factors + i * run->elem, &job->factor, run->elem);
	reduce_get(run->kernel->type, WREATH_PROD, true)(&args);
	free(factors);
	return out;
}

static void run_job(const struct run *run, const struct reduce_gpu_job *job)
{
	const void *src[REDUCE_MAX];
	void *dst[REDUCE_MAX];
	struct reduce_args args = {.dst = dst, .n_dst = job->n_dst, .src = src,
				   .n_src = job->n_src, .count = job->count,
				   .divisor = job->divisor};
	char *product = NULL;
	int i;

	if (!job->count)
		return;
	for (i = 0; i < job->n_src; i++)
		src[i] = run->at[job->first + i];
	for (i = 0; i < job->n_dst; i++)
		dst[i] = run->at[job->first + job->n_src + i];
	if (job->factored >= 0) {
		product = multiply(run, job, src[job->factored]);
		src[job->factored] = product;
	}
	reduce_get(run->kernel->type, run->kernel->op, true)(&args);
	free(product);
}

int fake_kernel_run(struct CUctx_st *ctx, const struct fake_kernel *kernel,
		    uint64_t *random)
{
	struct run run = {.ctx = ctx, .kernel = kernel,
			  .elem = wreath_type_size(kernel->type)};
	unsigned int n = kernel->batch.n_jobs;
	unsigned int start, i;
	int err = check_lists(kernel);

	if (!err && fake_must_fail("kernel"))
		err = CUDA_ERROR_LAUNCH_FAILED;
	if (err)
		return err;
	err = reach_all(&run);
	if (!err)
		err = check_overlaps(&run);
	/* The jobs of a batch are in no order. */
	start = (unsigned int)(fake_random(random) % n);
	for (i = 0; i < n && !err; i++)
		run_job(&run, &kernel->batch.jobs[(start + i) % n]);
	leave_all(&run);
	return err;
}
