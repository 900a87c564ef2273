/* SPDX-License-Identifier: MIT */
/*
 * Operations on memory of a GPU: the same steps, but that a fold is a job which
 * the GPU takes up, and a step's messages go when its job is done.  Slots stay
 * in memory of the host, which is pinned, so that the GPU reads and writes them
 * over its bus, chunk by chunk, while others travel.
 *
 * What is short goes by a shadow: copied to the host, combined there, copied
 * back.  That is two copies of some microseconds, where each step would be a
 * launch.
 */
#include <stdio.h>
#include <string.h>

#include "exec/inner.h"

/* Input and output of an operation that goes by a shadow. */
#define EXEC_SHADOW_MAX (32 << 10)
/* What is under way when an operation fails is waited for so long. */
#define EXEC_DRAIN_MS 10000

/*
 * Pinned memory.  What has become too short is kept, in a list whose links are
 * in its first lines: freeing it would wait for streams, which may wait for the
 * operation that needs more.
 */
static int reserve(struct exec_shadow *shadow, size_t bytes)
{
	void *base;
	int err;

	if (bytes <= shadow->bytes)
		return 0;
	if (bytes < 2 * shadow->bytes)
		bytes = 2 * shadow->bytes;
	err = mem_pinned_new(BASE_LINE + bytes, &base);
	if (err)
		return err;
	*(void **)base = shadow->base ? shadow->base - BASE_LINE : NULL;
	shadow->base = (char *)base + BASE_LINE;
	shadow->bytes = bytes;
	return 0;
}

int exec_shadow_init(struct exec_shadow *shadow, int n_ranks)
{
	/* Each rank may have a block of lines to send, and one to receive. */
	size_t of_lines = 2 * (size_t)n_ranks *
			  (base_round_up(EXEC_LINES_BYTES, BASE_LINE) +
			   sizeof(size_t));

	return reserve(shadow, base_round_up(2 * EXEC_SHADOW_MAX + of_lines,
					     EXEC_SHADOW_MAX));
}

void exec_shadow_free(struct exec_shadow *shadow)
{
	void *at = shadow->base ? shadow->base - BASE_LINE : NULL;

	while (at) {
		void *before = *(void **)at;

		mem_pinned_free(at);
		at = before;
	}
	shadow->base = NULL;
	shadow->bytes = 0;
}

/* ---- the shadow ---- */

bool exec_is_shadowed(const struct exec_plan *plan)
{
	const struct exec_args *args = plan->args;

	if (args->in_bytes + args->out_bytes <= EXEC_SHADOW_MAX)
		return true;
	/* Whatever their sum is, lines are put together by the processor. */
	return plan->n_passes == 1 && !plan->is_private &&
	       exec_longest_chunk(plan) <= EXEC_LINES_BYTES;
}

static size_t n_blocks(const struct exec_plan *plan)
{
	return (size_t)sched_n_blocks(plan->sched->shape.collective,
				      plan->net->n_ranks);
}

/*
 * Do the blocks lie in the shadow as they lie in the user's buffer?  They must
 * where places are used: what peers granted is cut by the same list.  Those
 * that are far apart go as lines, and are put end to end.
 */
static bool lies_alike(const struct exec_blocks *blocks, size_t bytes)
{
	return !blocks->at || bytes <= EXEC_SHADOW_MAX;
}

/* The bytes that the blocks take in the shadow. */
static size_t shadow_of(const struct exec_blocks *blocks, size_t n,
			size_t bytes)
{
	size_t sum = 0;
	size_t b;

	if (lies_alike(blocks, bytes))
		return base_round_up(bytes, BASE_LINE);
	for (b = 0; b < n; b++)
		if (blocks->bytes[b] != EXEC_ABSENT)
			sum += base_round_up(blocks->bytes[b], BASE_LINE);
	return sum;
}

struct shadowed {
	struct exec_plan *plan;
	size_t n; /* blocks */
	char *next; /* free memory of the shadow */
	size_t *next_at;
	uint64_t job;
};

static int copy(struct shadowed *s, void *to, const void *from, size_t bytes)
{
	struct exec_plan *plan = s->plan;
	struct exec_wait wait;

	exec_wait_reset(&wait);
	for (;;) {
		int err = mem_gpu_copy(plan->args->gpu, to, from, bytes,
				       &s->job);

		if (err != WREATH_EAGAIN)
			return err;
		err = exec_gpu_push(plan);
		if (!err)
			err = exec_wait(plan, &wait);
		if (err)
			return err;
	}
}

/*
 * Copy the blocks between the user's @real and the @shadow, whose places are
 * set before the first time.
 */
static int copy_blocks(struct shadowed *s, const struct exec_blocks *real,
		       const struct exec_blocks *shadow, size_t bytes,
		       bool is_back)
{
	size_t b;
	int err = 0;

	if (!real->at) {
		if (!bytes)
			return 0;
		return is_back ? copy(s, real->base, shadow->base, bytes)
			       : copy(s, shadow->base, real->base, bytes);
	}
	for (b = 0; b < s->n && !err; b++) {
		char *user = exec_at(real, (uint32_t)b, 0);
		char *ours = exec_at(shadow, (uint32_t)b, 0);

		if (!real->bytes[b] || real->bytes[b] == EXEC_ABSENT)
			continue;
		err = is_back ? copy(s, user, ours, real->bytes[b])
			      : copy(s, ours, user, real->bytes[b]);
	}
	return err;
}

/* Where @blocks go in the shadow. */
static void place_blocks(struct shadowed *s, struct exec_blocks *blocks,
			 size_t bytes)
{
	size_t b, at = 0;

	blocks->where = EXEC_HOST;
	blocks->base = s->next;
	if (!lies_alike(blocks, bytes)) {
		for (b = 0; b < s->n; b++) {
			s->next_at[b] = at;
			if (blocks->bytes[b] != EXEC_ABSENT)
				at += base_round_up(blocks->bytes[b],
						    BASE_LINE);
		}
		blocks->at = s->next_at;
		s->next_at += s->n;
		bytes = at;
	}
	s->next += base_round_up(bytes, BASE_LINE);
}

static int await_copies(struct shadowed *s)
{
	struct exec_plan *plan = s->plan;
	struct exec_wait wait;
	int is_done = !s->job;

	exec_wait_reset(&wait);
	plan->n_jobs = 1;
	while (!is_done) {
		int err = exec_gpu_push(plan);

		if (!err)
			is_done = mem_gpu_done(plan->args->gpu, s->job);
		if (is_done < 0)
			err = is_done;
		if (!err && !is_done)
			err = exec_wait(plan, &wait);
		if (err)
			return err;
	}
	plan->n_jobs = 0;
	return 0;
}

static size_t shadow_bytes(const struct exec_args *args, size_t n)
{
	return shadow_of(&args->in, n, args->in_bytes) +
	       shadow_of(&args->out, n, args->out_bytes) +
	       base_round_up(2 * n * sizeof(size_t), BASE_LINE);
}

int exec_run_shadowed(struct exec_plan *plan,
		      int (*run)(struct exec_plan *,
				 const struct exec_args *))
{
	const struct exec_args *real = plan->args;
	struct exec_args args = *real;
	struct shadowed s = {.plan = plan, .n = n_blocks(plan)};
	struct net *net = plan->net;
	int err = reserve(real->shadow, shadow_bytes(real, s.n));

	if (err)
		return err;
	s.next_at = (size_t *)(void *)real->shadow->base;
	s.next = real->shadow->base + base_round_up(2 * s.n * sizeof(size_t),
						    BASE_LINE);
	place_blocks(&s, &args.in, real->in_bytes);
	place_blocks(&s, &args.out, real->out_bytes);
	args.gpu = NULL;
	args.in_base = NULL;
	args.out_base = NULL;
	if (real->reads)
		err = copy_blocks(&s, &real->in, &args.in, real->in_bytes,
				  false);
	if (!err)
		err = await_copies(&s);
	net->gpu = NULL;
	if (!err)
		err = run(plan, &args);
	net->gpu = real->gpu;
	plan->args = real;
	if (!err && real->writes)
		err = copy_blocks(&s, &real->out, &args.out, real->out_bytes,
				  true);
	return err ? err : await_copies(&s);
}

/* ---- jobs ---- */

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

int exec_gpu_push(struct exec_plan *plan)
{
	return mem_gpu_push(plan->args->gpu);
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
