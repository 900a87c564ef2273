/* SPDX-License-Identifier: MIT */
/*
 * The shortest of all schedules, run straight: one step sends the input to
 * all, one folds what all sent.  A vector that fits one line goes as a line,
 * another as a slot message; what a step costs beyond that is what counts
 * here, in nanoseconds.
 */
#include <string.h>

#include "exec/inner.h"

static bool is_line(const struct exec_plan *plan)
{
	return plan->args->longest <= NET_LINE_DATA;
}

static inline enum net_arrival look(const struct exec_plan *plan,
				    const struct net_lane *end)
{
	return is_line(plan) ? net_line_arrived(end, 0, plan->signature)
			     : net_arrived(end, plan->signature);
}

static int await_message(struct exec_plan *plan, const struct net_lane *end)
{
	struct exec_wait wait;

	exec_wait_reset(&wait);
	for (;;) {
		enum net_arrival is_there = look(plan, end);
		int err;

		if (base_likely(is_there == NET_ARRIVED))
			return 0;
		if (is_there == NET_MISMATCH)
			return exec_mismatch(plan, end);
		plan->lanes[1].waits_for = end;
		err = exec_wait(plan, &wait);
		if (base_unlikely(err))
			return err;
	}
}

static int await_credit(struct exec_plan *plan, const struct net_lane *end,
			uint32_t window)
{
	struct exec_wait wait;

	exec_wait_reset(&wait);
	while (!net_can_send(end, window)) {
		int err;

		plan->lanes[0].waits_for = end;
		err = exec_wait(plan, &wait);
		if (err)
			return err;
	}
	return 0;
}

static int send_line(struct exec_plan *plan, const struct exec_step *step)
{
	char *line = plan->lines;
	uint32_t s;

	memcpy(line, plan->args->in.base, plan->args->longest);
	for (s = 0; s < step->n_send; s++) {
		struct net_lane *end = step->send[s];
		uint64_t word = net_word(end->n_sent + 1, plan->signature);
		int err = await_credit(plan, end, NET_LINE_SLOTS);

		if (base_unlikely(err))
			return err;
		memcpy(line + NET_LINE_DATA, &word, sizeof(word));
		err = net_send_lines(end, line, 1, plan->signature);
		if (base_unlikely(err))
			return err;
	}
	return 0;
}

static int send_slot(struct exec_plan *plan, const struct exec_step *step)
{
	uint32_t s;

	for (s = 0; s < step->n_send; s++) {
		struct net_lane *end = step->send[s];
		int err = await_credit(plan, end,
				       (uint32_t)plan->net->n_slots);

		if (base_unlikely(err))
			return err;
		memcpy(net_slot(end), plan->args->in.base, plan->args->longest);
		err = net_send_slot(end, plan->args->longest, plan->signature);
		if (base_unlikely(err))
			return err;
	}
	return 0;
}

static const void *payload(const struct exec_plan *plan,
			   const struct net_lane *end)
{
	return is_line(plan) ? net_lines(end) : net_payload(end);
}

static int fold(struct exec_plan *plan, const struct exec_step *step)
{
	const struct exec_args *args = plan->args;
	const void *src[REDUCE_MAX];
	void *dst[1] = {args->out.base};
	struct reduce_args reduce;
	uint32_t n = 0;
	uint32_t r;

	for (r = 0; r < step->n_recv; r++) {
		int err = await_message(plan, step->recv[r]);

		if (base_unlikely(err))
			return err;
		if (r == step->local_at)
			src[n++] = args->in.base;
		src[n++] = payload(plan, step->recv[r]);
	}
	if (r == step->local_at)
		src[n++] = args->in.base;
	reduce.dst = dst;
	reduce.n_dst = 1;
	reduce.src = src;
	reduce.n_src = (int)n;
	reduce.count = args->longest / args->elem_bytes;
	reduce.divisor = args->divisor;
	reduce.flags = 0;
	args->fold(&reduce);
	return 0;
}

int exec_run_exchange(struct exec_plan *plan)
{
	const struct exec_step *step = &plan->steps[1];
	uint32_t batch = is_line(plan) ? NET_LINE_SLOTS / 2
				       : (uint32_t)plan->net->n_slots / 2;
	uint32_t r;
	int err;

	if (is_line(plan)) {
		err = send_line(plan, &plan->steps[0]);
	} else {
		err = exec_tell_credit(plan);
		if (!err)
			err = send_slot(plan, &plan->steps[0]);
	}
	if (!err)
		err = fold(plan, step);
	if (base_unlikely(err))
		return err;
	for (r = 0; r < step->n_recv; r++) {
		err = net_consume(step->recv[r], batch);
		if (base_unlikely(err))
			return err;
	}
	return 0;
}
