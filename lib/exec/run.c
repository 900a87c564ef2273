/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "exec/inner.h"

/* A short mixing of the signature; equal signatures, equal numbers. */
static uint32_t sign_hash(const struct net_sign *sign)
{
	uint64_t mixed = sign->seq * 0x9e3779b97f4a7c15u ^
			 sign->count * 0xc2b2ae3d27d4eb4fu;

	mixed ^= (uint64_t)sign->type << 8 | (uint64_t)sign->op << 16 |
		 (uint64_t)sign->algo << 24 | (uint64_t)sign->collective << 32;
	mixed = (mixed ^ mixed >> 31) * 0xbf58476d1ce4e5b9u;
	return (uint32_t)(mixed >> 32);
}

static void enter_pass(const struct exec_plan *plan, struct exec_lane *lane)
{
	size_t n_chunks = plan->sched->n_chunks;
	size_t per;

	lane->start = lane->pass * plan->pass_bytes;
	lane->bytes =
		base_min_size(plan->pass_bytes, plan->bytes - lane->start);
	per = (lane->bytes + n_chunks - 1) / n_chunks;
	lane->chunk_bytes = base_round_up(per, BASE_LINE);
}

/*
 * Cut the vector into passes of about equal size, each of which fits the
 * slots: n_chunks chunks of whole lines.
 */
static void cut(struct exec_plan *plan)
{
	size_t n_chunks = plan->sched->n_chunks;
	size_t most = plan->is_in_place ? plan->bytes
					: n_chunks * plan->net->slot_bytes;
	size_t even;

	plan->n_passes = (plan->bytes + most - 1) / most;
	even = (plan->bytes + plan->n_passes - 1) / plan->n_passes;
	plan->pass_bytes = base_round_up(even, n_chunks * BASE_LINE);
	/* Rounding up may have emptied the last pass. */
	plan->n_passes =
		(plan->bytes + plan->pass_bytes - 1) / plan->pass_bytes;
}

int exec_tell_credit(struct exec_plan *plan)
{
	uint32_t batch = (uint32_t)plan->net->n_slots / 2;
	uint32_t i;
	int err;

	for (i = 0; i < plan->n_receives; i++) {
		struct net_lane *end = plan->receives[i];

		if (end->n_received - end->n_credited < batch)
			continue;
		err = net_credit(end);
		if (err)
			return err;
	}
	return 0;
}

static int grant_places(struct exec_plan *plan)
{
	const void *input = plan->may_read_inputs ? plan->args->send : NULL;
	uint32_t i;
	int err;

	for (i = 0; i < plan->n_grants_to; i++) {
		err = net_place_grant(plan->grants_to[i], plan->args->recv,
				      input, plan->bytes, plan->signature);
		if (err)
			return err;
	}
	return 0;
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
		if (++lane->step < lane->n_steps)
			continue;
		lane->step = 0;
		if (++lane->pass == plan->n_passes)
			lane->is_done = true;
		else
			enter_pass(plan, lane);
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
		if (moved) {
			exec_wait_reset(&wait);
		} else {
			int err = exec_wait(plan, &wait);

			if (base_unlikely(err))
				return err;
		}
	}
}

static void enter(struct exec_plan *plan)
{
	uint32_t i;

	cut(plan);
	for (i = 0; i < plan->n_lanes; i++) {
		struct exec_lane *lane = &plan->lanes[i];

		lane->step = 0;
		lane->pass = 0;
		lane->n_arrived = 0;
		lane->is_done = false;
		lane->waits_for = NULL;
		enter_pass(plan, lane);
	}
}

/*
 * Hear every peer's grant.  If all of them, and this rank, granted both input
 * and output, no slot is needed; since everyone told everyone the same, all
 * conclude alike.
 */
static int agree_in_place(struct exec_plan *plan)
{
	const uint32_t both = NET_PLACE_OUTPUT | NET_PLACE_INPUT;
	struct exec_wait wait;
	uint32_t i;

	exec_wait_reset(&wait);
	while (!exec_has_places(plan)) {
		int err;

		plan->lanes[0].waits_for =
			&plan->grants_from[plan->n_places_missing - 1]
				 ->lanes[0];
		err = exec_wait(plan, &wait);
		if (err)
			return err;
	}
	plan->is_in_place = true;
	for (i = 0; i < plan->n_grants_from; i++) {
		const struct net_conn *from = plan->grants_from[i];
		bool all = from->place.kinds == both &&
			   plan->grants_to[i]->granted == both;

		plan->is_in_place &= all;
		if (all && (!from->output_map || !from->input_map))
			return base_error(WREATH_ENET,
					  "the memory that %s registered "
					  "cannot be mapped by %s",
					  plan->net->names[from->peer],
					  plan->net->names[plan->net->rank]);
	}
	if (plan->is_in_place)
		enter(plan);
	return 0;
}

static int run_slots(struct exec_plan *plan)
{
	int err = exec_tell_credit(plan);

	plan->uses_places = plan->bytes >= EXEC_PLACE_MIN;
	plan->streams = plan->bytes >= EXEC_STREAM_MIN;
	plan->n_places_missing = 0;
	if (!err && plan->uses_places) {
		plan->n_places_missing = plan->n_grants_from;
		err = grant_places(plan);
	}
	if (!err && plan->uses_places && plan->may_read_inputs)
		err = agree_in_place(plan);
	return err ? err : run_lanes(plan, exec_step_slots);
}

static int run(struct exec_plan *plan, const struct exec_args *args)
{
	size_t longest;

	plan->args = args;
	plan->bytes = args->count * args->elem_bytes;
	plan->signature = sign_hash(&args->sign);
	net_sign_post(plan->net, &args->sign);
	if (!plan->bytes)
		return 0;
	plan->n_passes = 1;
	if (plan->is_exchange && plan->bytes <= plan->net->slot_bytes)
		return exec_run_exchange(plan);
	plan->is_in_place = false;
	enter(plan);
	longest = base_min_size(plan->lanes[0].chunk_bytes, plan->bytes);
	if (plan->n_passes == 1 && longest <= EXEC_LINES_BYTES)
		return run_lanes(plan, exec_step_lines);
	return run_slots(plan);
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
