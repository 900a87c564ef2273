/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "mem/jobs.h"

/* Polls without an answer before the stream is asked whether it is broken: a
 * question costs about a microsecond. */
#define POLLS 4096

static int broken(const struct mem_gpu *gpu)
{
	return base_error_again(gpu->error, gpu->text);
}

int gpu_fail(struct mem_gpu *gpu, int result, const char *operation)
{
	cuda_error(result, operation, "jobs %" PRIu64 "..%" PRIu64
		   " of GPU %d (%s)", gpu->done + 1, gpu->last,
		   gpu->device->number, gpu->info.name);
	snprintf(gpu->text, sizeof(gpu->text), "%s", base_error_text());
	gpu->error = WREATH_EDEVICE;
	return WREATH_EDEVICE;
}

int gpu_mark(struct mem_gpu *gpu)
{
	int result = cuda.stream_write(gpu->stream,
				       (uintptr_t)gpu->words.from_gpu,
				       (uint32_t)(gpu->mark + 1), 0);

	if (result)
		return gpu_fail(gpu, result, "cuStreamWriteValue32");
	gpu->mark++;
	return 0;
}

int gpu_copy(struct mem_gpu *gpu, void *dst, const void *src, size_t bytes)
{
	int result = cuda.mem_copy((uintptr_t)dst, (uintptr_t)src, bytes,
				   gpu->stream);

	return result ? gpu_fail(gpu, result, "cuMemcpyAsync") : 0;
}

/* ---- what is taken up ---- */

static uint64_t mask(int n)
{
	return n == 64 ? ~0ull : (1ull << n) - 1;
}

static bool is_plain_copy(const struct mem_job *job)
{
	return job->fold.n_src == 1 && !job->factor && job->fold.divisor <= 1;
}

static enum job_kind kind_of(const struct mem_gpu *gpu,
			     const struct mem_job *job)
{
	bool is_reached = job->is_pinned ||
			  (job->gpu_src == mask(job->fold.n_src) &&
			   job->gpu_dst == mask(job->fold.n_dst));

	if (is_reached && gpu->info.has_kernels)
		return JOB_LAUNCH;
	return is_reached && is_plain_copy(job) ? JOB_COPY : JOB_STAGED;
}

/* See how far the stream has come. */
static void look(struct mem_gpu *gpu)
{
	/* What the stream wrote before the word is seen behind it. */
	uint32_t word = atomic_load_explicit(gpu->words.from_gpu,
					     memory_order_acquire);

	gpu->mark_seen = gpu->mark - (uint32_t)((uint32_t)gpu->mark - word);
	while (gpu->done < gpu->issued) {
		const struct job *job = gpu_job(gpu, gpu->done + 1);

		if (!job->mark || job->mark > gpu->mark_seen)
			break;
		gpu->done++;
	}
}

/* Room for one more: 0, WREATH_EAGAIN, or the error that stays. */
static int check_room(struct mem_gpu *gpu)
{
	if (base_unlikely(gpu->error))
		return broken(gpu);
	if (gpu->last - gpu->done >= MEM_JOBS_MAX)
		look(gpu);
	return gpu->last - gpu->done < MEM_JOBS_MAX ? 0 : WREATH_EAGAIN;
}

static struct job *take_up(struct mem_gpu *gpu, uint64_t *number)
{
	struct job *job = gpu_job(gpu, ++gpu->last);

	*number = gpu->last;
	job->mark = 0;
	job->n_begun = 0;
	return job;
}

int mem_gpu_fold(struct mem_gpu *gpu, const struct mem_job *what,
		 uint64_t *number)
{
	const struct reduce_args *fold = &what->fold;
	struct job *job;
	int err;

	wreath_assert(fold->n_src > 0 && fold->n_src <= REDUCE_MAX);
	wreath_assert(fold->n_dst > 0 && fold->n_dst <= REDUCE_MAX);
	wreath_assert((unsigned int)what->op < WREATH_AVG);
	err = check_room(gpu);
	if (err)
		return err;
	job = take_up(gpu, number);
	job->kind = kind_of(gpu, what);
	job->type = what->type;
	job->op = what->op;
	job->elem_bytes = wreath_type_size(what->type);
	job->count = fold->count;
	job->divisor = fold->divisor;
	job->n_src = fold->n_src;
	job->n_dst = fold->n_dst;
	job->gpu_src = what->gpu_src;
	job->gpu_dst = what->gpu_dst;
	job->i_factor = what->factor ? what->i_factor : -1;
	job->factor = 0;
	if (what->factor)
		memcpy(&job->factor, what->factor, job->elem_bytes);
	memcpy(job->src, fold->src, sizeof(job->src[0]) * (size_t)job->n_src);
	memcpy(job->dst, fold->dst, sizeof(job->dst[0]) * (size_t)job->n_dst);
	return 0;
}

int mem_gpu_copy(struct mem_gpu *gpu, void *dst, const void *src, size_t bytes,
		 uint64_t *number)
{
	struct job *job;
	int err = check_room(gpu);

	if (err)
		return err;
	job = take_up(gpu, number);
	job->kind = JOB_COPY;
	job->count = bytes;
	job->elem_bytes = 1;
	job->n_src = 1;
	job->n_dst = 1;
	job->src[0] = src;
	job->dst[0] = dst;
	return 0;
}

/* ---- what is carried on; the GPU's context is the thread's ---- */

static int issue_copy(struct mem_gpu *gpu, struct job *job)
{
	int err = 0;
	int i;

	for (i = 0; i < job->n_dst && !err; i++)
		err = gpu_copy(gpu, job->dst[i], job->src[0],
			       job->count * job->elem_bytes);
	if (!err)
		err = gpu_mark(gpu);
	if (err)
		return err;
	job->mark = gpu->mark;
	gpu->issued++;
	return 0;
}

/* The next jobs, as many as go by one launch. */
static int issue_launch(struct mem_gpu *gpu)
{
	struct reduce_gpu_fold folds[REDUCE_GPU_JOBS];
	struct reduce_args args[REDUCE_GPU_JOBS];
	void *parameters[] = {&gpu->batch};
	const struct job *first = gpu_job(gpu, gpu->issued + 1);
	unsigned int n_blocks;
	int result, i;
	int n = 0;

	while (n < REDUCE_GPU_JOBS && gpu->issued + (uint64_t)n < gpu->pushed) {
		struct job *job = gpu_job(gpu, gpu->issued + 1 + (uint64_t)n);

		if (job->kind != JOB_LAUNCH || job->type != first->type ||
		    job->op != first->op || !job->count)
			break;
		args[n] = (struct reduce_args){
			.dst = job->dst,
			.n_dst = job->n_dst,
			.src = job->src,
			.n_src = job->n_src,
			.count = job->count,
			.divisor = job->divisor,
		};
		folds[n] = (struct reduce_gpu_fold){
			.args = &args[n],
			.factor = job->factor,
			.factored = job->i_factor,
		};
		n++;
	}
	n = reduce_gpu_pack(folds, n, first->elem_bytes,
			    (unsigned int)gpu->device->n_multiprocessors *
				    REDUCE_GPU_BLOCKS,
			    &gpu->batch, &n_blocks);
	result = cuda.launch(gpu->device->fold[first->type][first->op],
			     n_blocks, 1, 1, REDUCE_GPU_THREADS, 1, 1, 0,
			     gpu->stream, parameters, NULL);
	if (result)
		return gpu_fail(gpu, result, "cuLaunchKernel");
	result = gpu_mark(gpu);
	if (result)
		return result;
	for (i = 0; i < n; i++)
		gpu_job(gpu, ++gpu->issued)->mark = gpu->mark;
	return 0;
}

/* Give the stream what may go to it.  *@more: some of it went. */
static int issue(struct mem_gpu *gpu, bool *more)
{
	struct job *job = gpu_job(gpu, gpu->issued + 1);
	bool all = false;
	int err;

	*more = false;
	if (gpu->issued == gpu->pushed)
		return 0;
	if (job->kind == JOB_STAGED && job->count) {
		err = stage_begin(gpu, job, &all);
		if (!err && all) {
			gpu->issued++;
			*more = true;
		}
		return err;
	}
	/* It may read what a staged job is still to write. */
	if (gpu->n_pieces)
		return 0;
	*more = true;
	if (!job->count) {
		job->mark = gpu->mark;
		gpu->issued++;
		return 0;
	}
	return job->kind == JOB_COPY ? issue_copy(gpu, job)
				     : issue_launch(gpu);
}

static bool can_go(struct mem_gpu *gpu)
{
	return gpu->issued < gpu->pushed || stage_can_go(gpu);
}

static int carry_on(struct mem_gpu *gpu)
{
	bool more = true;
	int err = cuda_enter(gpu->device);

	if (err) {
		snprintf(gpu->text, sizeof(gpu->text), "%s", base_error_text());
		gpu->error = WREATH_EDEVICE;
		return gpu->error;
	}
	while (more && !err) {
		err = stage_carry_on(gpu);
		if (!err)
			err = issue(gpu, &more);
	}
	cuda_leave();
	return err;
}

int mem_gpu_push(struct mem_gpu *gpu)
{
	if (base_unlikely(gpu->error))
		return broken(gpu);
	gpu->pushed = gpu->last;
	look(gpu);
	return can_go(gpu) ? carry_on(gpu) : 0;
}

/* A stream that is broken writes no marks. */
static int ask(struct mem_gpu *gpu)
{
	struct cuda_visit visit;
	int result;

	if (cuda_visit(gpu->device, &visit))
		result = CUDA_CONTEXT_IS_DESTROYED;
	else {
		result = cuda.stream_query(gpu->stream);
		cuda_visit_end(&visit);
	}
	if (result && result != CUDA_NOT_READY)
		return gpu_fail(gpu, result, "cuStreamQuery");
	return 0;
}

int mem_gpu_done(struct mem_gpu *gpu, uint64_t number)
{
	int err = 0;

	wreath_assert(number <= gpu->last);
	if (number <= gpu->done)
		return 1;
	if (base_unlikely(gpu->error))
		return broken(gpu);
	look(gpu);
	if (number <= gpu->done)
		return 1;
	if (can_go(gpu))
		err = carry_on(gpu);
	if (!err && ++gpu->n_polls % POLLS == 0)
		err = ask(gpu);
	return err;
}

/* What was given to a stream before one thing failed still reads and writes,
 * and writes no mark that anyone looks at. */
static void await_rest(struct mem_gpu *gpu, uint64_t end_ns)
{
	struct cuda_visit visit;

	if (cuda_visit(gpu->device, &visit))
		return;
	while (cuda.stream_query(gpu->stream) == CUDA_NOT_READY &&
	       base_now_ns() < end_ns)
		sched_yield();
	cuda_visit_end(&visit);
}

int mem_gpu_drain(struct mem_gpu *gpu, int64_t timeout_ms)
{
	uint64_t end_ns = base_now_ns() + (uint64_t)timeout_ms * 1000000;
	int done = mem_gpu_push(gpu);

	while (!done) {
		done = mem_gpu_done(gpu, gpu->last);
		if (done)
			break;
		if (base_now_ns() > end_ns)
			return base_error(WREATH_EDEVICE,
					  "GPU %d (%s) did not do %" PRIu64
					  " jobs within %" PRId64 " ms",
					  gpu->device->number, gpu->info.name,
					  gpu->last - gpu->done, timeout_ms);
		sched_yield();
	}
	if (done < 0) {
		await_rest(gpu, end_ns);
		return done;
	}
	gpu->n_drains++;
	return 0;
}
