/* SPDX-License-Identifier: MIT */
/*
 * Operations on memory of a GPU: the same steps, but that a fold is a job which
 * the GPU takes up, and a step's messages go when its job is done.  Slots stay
 * in memory of the host, which is pinned, so that the GPU reads and writes them
 * over its bus, chunk by chunk, while others travel.
 */
#include <stdio.h>

#include "exec/inner.h"

/* What is under way when an operation fails is waited for so long. */
#define EXEC_DRAIN_MS 10000

int exec_gpu_begin(struct exec_plan *plan)
{
	const struct exec_args *args = plan->args;
	int err = 0;

	plan->net->gpu = args->gpu;
	plan->n_jobs = 0;
	plan->needs_flush = mem_gpu_about(args->gpu)->needs_flush;
	/* For grants of the whole; messages have buffers of their own. */
	if (args->in_base && args->in.where == EXEC_GPU)
		err = mem_where(args->in_base, &plan->in_where);
	if (!err && args->out_base && args->out.where == EXEC_GPU)
		err = mem_where(args->out_base, &plan->out_where);
	return err;
}

/* All slots in reach of kernels; once, and again for new connections. */
static void pin(struct exec_plan *plan)
{
	size_t i;

	plan->has_grown = false;
	plan->is_pinned = true;
	for (i = 0; i < plan->n_ends; i++) {
		struct net_conn *conn;

		if (!plan->ends[i])
			continue;
		conn = plan->ends[i]->conn;
		plan->is_pinned &= net_conn_pin(conn);
		plan->has_grown |= !conn->has_pinned;
	}
}

bool exec_gpu_fills(const struct exec_plan *plan, const struct net_lane *end)
{
	uint32_t i, s;

	/* Lanes of messages have nothing in common. */
	if (!plan->n_jobs || plan->is_parted)
		return false;
	for (i = 0; i < plan->n_lanes; i++) {
		const struct exec_lane *lane = &plan->lanes[i];
		const struct exec_step *step = &lane->steps[lane->step];

		for (s = 0; lane->job && s < step->n_send; s++)
			if (step->send[s] == end)
				return true;
	}
	return false;
}

int exec_gpu_fold(struct exec_plan *plan, struct exec_lane *lane,
		  const struct exec_step *step, const struct exec_fold *fold,
		  size_t bytes)
{
	const struct exec_args *args = plan->args;
	struct mem_job job = {
		.fold = {.dst = fold->dst, .n_dst = (int)fold->n_dst,
			 .src = fold->src, .n_src = (int)fold->n_src,
			 .count = bytes / args->elem_bytes,
			 .divisor = exec_divisor(plan, step)},
		.type = args->type,
		.op = args->op,
		.gpu_src = fold->gpu_src,
		.gpu_dst = fold->gpu_dst,
	};
	int err;

	if (base_unlikely(plan->has_grown))
		pin(plan);
	job.is_pinned = plan->is_pinned && !fold->is_far;
	if (args->factor && step->local == SCHED_INPUT) {
		job.factor = args->factor;
		job.i_factor = (int)base_min_size(step->local_at, step->n_recv);
	}
	err = mem_gpu_fold(args->gpu, &job, &lane->job);
	lane->waits_for = NULL;
	if (err) {
		lane->job = 0;
		return err == WREATH_EAGAIN ? 0 : err;
	}
	plan->n_jobs++;
	return 0;
}

int exec_gpu_is_done(struct exec_plan *plan, struct exec_lane *lane)
{
	int is_done = mem_gpu_done(plan->args->gpu, lane->job);

	if (is_done <= 0)
		return is_done;
	lane->job = 0;
	plan->n_jobs--;
	return 1;
}

int exec_gpu_end(struct exec_plan *plan, int err)
{
	struct mem_gpu *gpu = plan->args->gpu;
	char text[2048];

	plan->n_jobs = 0;
	if (!err)
		err = net_flush(plan->net, plan->guard.timeout_ms);
	plan->net->gpu = NULL;
	/*
	 * The user's memory, and the slots, are left alone from here on, and
	 * what was imported for the operation may go.
	 */
	if (!err)
		return mem_gpu_drain(gpu, EXEC_DRAIN_MS);
	snprintf(text, sizeof(text), "%s", base_error_text());
	if (mem_gpu_drain(gpu, EXEC_DRAIN_MS))
		base_error_again(err, text);
	return err;
}
