/* SPDX-License-Identifier: MIT */
#include "exec/inner.h"

_Static_assert(SCHED_BOXES <= NET_LANES, "each box is a lane of net");

static struct net_lane *end_of(struct exec_plan *plan, uint32_t peer,
			       uint32_t lane)
{
	uint32_t channel = plan->sched->lanes[lane].channel;
	uint32_t at = plan->sched->lanes[lane].box;
	struct net_conn *conn = net_conn(plan->net, (int)peer, (int)channel);

	wreath_assert(conn && conn->ready);
	wreath_assert(at < NET_LANES);
	return &conn->lanes[at];
}

static void add_once(void **list, uint32_t *n, void *item)
{
	uint32_t i;

	for (i = 0; i < *n; i++)
		if (list[i] == item)
			return;
	list[(*n)++] = item;
}

static void compile_step(struct exec_plan *plan, uint32_t i_lane,
			 const struct sched_step *from, struct exec_step *to,
			 struct net_lane **ends)
{
	const uint32_t *peers = plan->sched->peers;
	uint32_t i;

	to->recv = ends;
	to->send = ends + from->n_recv;
	to->n_recv = from->n_recv;
	to->n_send = from->n_send;
	to->chunk = from->chunk;
	to->local_at = from->local_at;
	to->after_lane = from->after_lane;
	to->after_step = from->after_step;
	to->local = from->local;
	to->flags = from->flags;
	for (i = 0; i < from->n_recv; i++) {
		struct net_lane *end =
			end_of(plan, peers[from->recv + i], i_lane);

		to->recv[i] = end;
		add_once((void **)plan->receives, &plan->n_receives, end);
		if (from->flags & SCHED_RECV_FINAL)
			add_once((void **)plan->grants_to, &plan->n_grants_to,
				 end->conn);
	}
	for (i = 0; i < from->n_send; i++) {
		struct net_lane *end = end_of(plan, peers[from->send + i],
					      from->send_lane);

		to->send[i] = end;
		if (from->flags & SCHED_SEND_FINAL)
			add_once((void **)plan->grants_from,
				 &plan->n_grants_from, end->conn);
	}
}

/*
 * Could the whole operation do without slots?  If every message is either raw
 * input or final, this rank reaches the memory of all others, and each hears
 * from all others what they granted, so that all conclude alike: a rank tells
 * everyone the same.
 */
static bool may_read_inputs(const struct exec_plan *plan)
{
	uint32_t n_ends = (uint32_t)(plan->net->n_ranks - 1) *
			  (uint32_t)plan->sched->shape.n_channels;
	uint32_t i;

	for (i = 0; i < plan->sched->n_steps; i++) {
		const struct exec_step *step = &plan->steps[i];

		if (step->n_recv &&
		    !(step->flags & (SCHED_RECV_INPUT | SCHED_RECV_FINAL)))
			return false;
	}
	for (i = 0; i < plan->n_receives; i++)
		if (!plan->receives[i]->map_slots)
			return false;
	return plan->n_grants_to == n_ends && plan->n_grants_from == n_ends;
}

/* One step sends the whole input to all, one folds what all sent. */
static bool is_exchange(const struct exec_plan *plan)
{
	const struct exec_step *send = &plan->steps[0];
	const struct exec_step *fold = &plan->steps[1];

	return plan->sched->n_chunks == 1 && plan->n_lanes == 2 &&
	       plan->sched->n_steps == 2 && plan->lanes[0].n_steps == 1 &&
	       send->local == SCHED_INPUT && !send->n_recv && !send->flags &&
	       fold->local == SCHED_INPUT && !fold->n_send &&
	       fold->flags == SCHED_STORE;
}

static int check_fan(const struct sched *sched)
{
	uint32_t i;

	for (i = 0; i < sched->n_steps; i++) {
		const struct sched_step *step = &sched->steps[i];

		if (step->n_recv + 1 > REDUCE_MAX ||
		    step->n_send + 1 > REDUCE_MAX)
			return base_error(
				WREATH_EUNSUP,
				"%s takes at most %d ranks; there are %d: use "
				"WREATH_ALGO=ring",
				sched_algo_name(sched->shape.algo), REDUCE_MAX,
				sched->shape.n_ranks);
	}
	return 0;
}

static int allocate(struct exec_plan *plan)
{
	const struct sched *sched = plan->sched;
	size_t n_conns = (size_t)plan->net->n_ranks * NET_CHANNELS_MAX;
	size_t n_ends = 0;
	uint32_t i;

	for (i = 0; i < sched->n_steps; i++)
		n_ends += sched->steps[i].n_recv + sched->steps[i].n_send;
	plan->lanes = base_alloc(sched->n_lanes, sizeof(*plan->lanes));
	plan->steps = base_alloc(sched->n_steps, sizeof(*plan->steps));
	plan->ends = base_alloc(n_ends, sizeof(struct net_lane *));
	plan->receives = base_alloc(n_ends, sizeof(struct net_lane *));
	plan->grants_to = base_alloc(n_conns, sizeof(struct net_conn *));
	plan->grants_from = base_alloc(n_conns, sizeof(struct net_conn *));
	if (!plan->lanes || !plan->steps || !plan->ends || !plan->receives ||
	    !plan->grants_to || !plan->grants_from)
		return WREATH_ENOMEM;
	return 0;
}

int exec_plan_new(struct net *net, const struct sched *sched,
		  const struct exec_guard *guard, struct exec_plan **out)
{
	struct exec_plan *plan;
	struct net_lane **ends;
	uint32_t i, j;
	int err = check_fan(sched);

	if (err)
		return err;
	plan = base_alloc(1, sizeof(*plan));
	if (!plan)
		return WREATH_ENOMEM;
	plan->net = net;
	plan->sched = sched;
	plan->guard = *guard;
	plan->n_spins = (uint32_t)guard->n_spins_max;
	plan->switched_ns = exec_switched_ns();
	plan->n_lanes = sched->n_lanes;
	err = allocate(plan);
	if (err) {
		exec_plan_free(plan);
		return err;
	}
	ends = plan->ends;
	for (i = 0; i < sched->n_lanes; i++) {
		const struct sched_lane *lane = &sched->lanes[i];

		plan->lanes[i].steps = plan->steps + lane->step;
		plan->lanes[i].n_steps = lane->n_steps;
		for (j = lane->step; j < lane->step + lane->n_steps; j++) {
			compile_step(plan, i, &sched->steps[j],
				     &plan->steps[j], ends);
			ends += plan->steps[j].n_recv + plan->steps[j].n_send;
		}
	}
	plan->may_read_inputs = may_read_inputs(plan);
	plan->is_exchange = is_exchange(plan);
	*out = plan;
	return 0;
}

void exec_plan_free(struct exec_plan *plan)
{
	if (!plan)
		return;
	base_free(plan->lanes);
	base_free(plan->steps);
	base_free(plan->ends);
	base_free(plan->receives);
	base_free(plan->grants_to);
	base_free(plan->grants_from);
	base_free(plan);
}
