/* SPDX-License-Identifier: MIT */
/*
 * Short operations on memory of a GPU: copied to the host, combined there,
 * copied back.  That is two copies of some microseconds, where each step would
 * be a launch.
 */
#include "exec/inner.h"

/* Input and output of an operation that goes by a shadow. */
#define EXEC_SHADOW_MAX (32 << 10)

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
		err = mem_gpu_push(plan->args->gpu);
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
		int err = mem_gpu_push(plan->args->gpu);

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
