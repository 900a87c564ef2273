/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "exec/inner.h"

/*
 * A short mixing of the signature; equal signatures, equal numbers.  Sends and
 * receives have no number in common: their order is that of the pair.
 */
static uint32_t sign_hash(const struct net_sign *sign)
{
	uint64_t mixed = sign->seq * 0x9e3779b97f4a7c15u ^
			 sign->count * 0xc2b2ae3d27d4eb4fu;

	if (sign->collective == SCHED_EXCHANGE)
		mixed = 0x632be59bd9b4e019u;
	else
		mixed ^= (uint64_t)sign->type << 8 | (uint64_t)sign->op << 16 |
			 (uint64_t)sign->algo << 24 |
			 (uint64_t)sign->collective << 32 |
			 (uint64_t)sign->root << 40 |
			 (uint64_t)sign->is_ragged << 63;
	mixed = (mixed ^ mixed >> 31) * 0xbf58476d1ce4e5b9u;
	return (uint32_t)(mixed >> 32);
}

const char *exec_own_chunk(const struct exec_plan *plan,
			   const struct exec_step *step, size_t offset,
			   size_t bytes)
{
	const struct exec_args *args = plan->args;
	const void *src[2];
	void *dst[1] = {args->scratch};
	struct reduce_args multiply = {
		.dst = dst, .n_dst = 1, .src = src, .n_src = 2,
		.count = bytes / args->elem_bytes,
	};

	if (step->local == SCHED_OUTPUT)
		return exec_at(&args->out, step->block, offset);
	src[0] = exec_at(&args->in, step->block, offset);
	/* A GPU multiplies as it folds. */
	if (!args->factor || args->gpu)
		return src[0];
	src[1] = args->factor;
	if (bytes)
		args->multiply(&multiply);
	return args->scratch;
}

int exec_tell_credit_of(struct exec_plan *plan, struct net_lane *end)
{
	uint32_t batch = (uint32_t)plan->net->n_slots / 2;

	return end->n_received - end->n_credited < batch ? 0 : net_credit(end);
}

int exec_tell_credit(struct exec_plan *plan)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < plan->n_receives && !err; i++)
		err = exec_tell_credit_of(plan, plan->receives[i]);
	return err;
}

/* Run the lane as far as it can: the number of steps, or an error. */
static int advance(struct exec_plan *plan, struct exec_lane *lane,
		   int (*run_step)(struct exec_plan *, struct exec_lane *))
{
	int n = 0;

	while (!lane->is_done) {
		int err;

		if (!lane->n_steps) {
			lane->is_done = true;
			break;
		}
		err = run_step(plan, lane);
		if (err <= 0)
			return err ? err : n;
		n++;
		lane->n_arrived = 0;
		lane->has_chunk = false;
		if (++lane->step < lane->n_steps)
			continue;
		lane->step = 0;
		if (++lane->pass == plan->n_passes)
			lane->is_done = true;
	}
	return n;
}

static int run_lanes(struct exec_plan *plan,
		     int (*run_step)(struct exec_plan *, struct exec_lane *))
{
	struct exec_wait wait;
	uint32_t i;

	exec_wait_reset(&wait);
	for (;;) {
		bool is_done = true;
		int moved = 0;
		int err;

		for (i = 0; i < plan->n_lanes; i++) {
			struct exec_lane *lane = &plan->lanes[i];
			int n;

			if (lane->is_done)
				continue;
			n = advance(plan, lane, run_step);
			if (base_unlikely(n < 0))
				return n;
			moved += n;
			is_done &= lane->is_done;
		}
		if (is_done)
			return 0;
		err = plan->n_jobs ? mem_gpu_push(plan->args->gpu) : 0;
		if (moved)
			exec_wait_reset(&wait);
		else if (!err)
			err = exec_wait(plan, &wait);
		if (base_unlikely(err))
			return err;
	}
}

void exec_enter(struct exec_plan *plan)
{
	uint32_t i;

	exec_cut(plan);
	for (i = 0; i < plan->n_lanes; i++) {
		struct exec_lane *lane = &plan->lanes[i];

		lane->step = 0;
		lane->pass = 0;
		lane->n_arrived = 0;
		lane->has_chunk = false;
		lane->is_done = false;
		lane->waits_for = NULL;
		lane->job = 0;
	}
}

static int run_slots(struct exec_plan *plan)
{
	const struct exec_args *args = plan->args;
	int err = exec_tell_credit(plan);

	plan->uses_places = args->longest >= EXEC_PLACE_MIN &&
			    args->longest != EXEC_ABSENT;
	plan->streams = args->out_bytes >= EXEC_STREAM_MIN;
	plan->n_missing = 0;
	if (!err && plan->uses_places)
		err = exec_places(plan);
	if (!err)
		err = run_lanes(plan, exec_step_slots);
	if (!err && plan->uses_places)
		err = exec_leave_places(plan);
	return err;
}

/* By the shortest way there is; all ranks find the same. */
static int run_way(struct exec_plan *plan, const struct exec_args *args)
{
	plan->args = args;
	plan->n_passes = 1;
	plan->is_in_place = false;
	if (plan->is_exchange && args->longest <= plan->net->slot_bytes &&
	    !args->factor && !args->gpu)
		return exec_run_exchange(plan);
	if (plan->is_parted)
		return exec_run_messages(plan);
	exec_enter(plan);
	if (base_unlikely(args->gpu) && exec_is_shadowed(plan))
		return exec_run_shadowed(plan, run_way);
	if (plan->n_passes == 1 && !plan->is_private &&
	    exec_longest_chunk(plan) <= EXEC_LINES_BYTES)
		return run_lanes(plan, exec_step_lines);
	return run_slots(plan);
}

static int run(struct exec_plan *plan, const struct exec_args *args)
{
	int err;

	plan->args = args;
	plan->signature = sign_hash(&args->sign);
	plan->is_private = plan->is_paired && (args->in.bytes ||
					       args->out.bytes);
	if (args->sign.collective != SCHED_EXCHANGE)
		net_sign_post(plan->net, &args->sign);
	if (!args->longest && !plan->is_private)
		return 0;
	if (base_likely(!args->gpu))
		return run_way(plan, args);
	err = exec_gpu_begin(plan);
	if (!err)
		err = run_way(plan, args);
	plan->args = args;
	return exec_gpu_end(plan, err);
}

/* What broke the net says nothing of the operation: this rank's own words. */
static int in_operation(const struct exec_plan *plan, int err)
{
	uint64_t since_ns = plan->stuck_since_ns;
	char text[2048], what[128];

	snprintf(text, sizeof(text), "%s", base_error_text());
	exec_sign_text(&plan->args->sign, what, sizeof(what));
	return base_error(err, "%s (operation %llu, %s, had waited %.1f s)",
			  text, (unsigned long long)plan->args->sign.seq, what,
			  since_ns ? (double)(base_now_ns() - since_ns) / 1e9
				   : 0.0);
}

int exec_run(struct exec_plan *plan, const struct exec_args *args)
{
	int err;

	plan->stuck_since_ns = 0;
	plan->is_told = false;
	err = run(plan, args);
	if (base_unlikely(err) && !plan->is_told &&
	    (err == WREATH_ENET || err == WREATH_EDEVICE))
		return in_operation(plan, err);
	return err;
}
