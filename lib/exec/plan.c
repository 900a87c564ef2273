/* SPDX-License-Identifier: MIT */
#include "exec/inner.h"

_Static_assert(SCHED_BOXES <= NET_LANES, "each box is a lane of net");

static struct net_lane *end_of(struct exec_plan *plan, uint32_t peer,
			       uint32_t lane)
{
	uint32_t channel = plan->sched->lanes[lane].channel;
	uint32_t at = plan->sched->lanes[lane].box;
	struct net_conn *conn = net_conn(plan->net, (int)peer, (int)channel);

	wreath_assert(at < NET_LANES);
	/* Messages take up their connections as they come. */
	if (plan->is_parted)
		return NULL;
	wreath_assert(conn && conn->ready);
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

static void add_grant(struct exec_plan *plan, const struct exec_step *step)
{
	uint32_t i;

	for (i = 0; i < step->n_recv; i++) {
		struct net_conn *conn = step->recv[i]->conn;

		if (step->flags & SCHED_RECV_FINAL)
			add_once((void **)plan->grants_to, &plan->n_grants_to,
				 conn);
		if (step->flags & SCHED_RECV_INPUT)
			add_once((void **)plan->grants_from,
				 &plan->n_grants_from, conn);
	}
	for (i = 0; i < step->n_send; i++) {
		struct net_conn *conn = step->send[i]->conn;

		if (step->flags & SCHED_SEND_FINAL)
			add_once((void **)plan->grants_from,
				 &plan->n_grants_from, conn);
		if (step->flags & SCHED_SEND_INPUT)
			add_once((void **)plan->grants_to, &plan->n_grants_to,
				 conn);
		if (step->flags & SCHED_SEND_AWAIT)
			add_once((void **)plan->awaits, &plan->n_awaits,
				 step->send[i]);
	}
	if (step->flags & SCHED_RECV_FINAL)
		plan->grant_kinds |= NET_PLACE_OUTPUT;
	if (step->flags & SCHED_SEND_INPUT)
		plan->grant_kinds |= NET_PLACE_INPUT;
	if ((step->flags & SCHED_SEND_FINAL) &&
	    !(step->flags & SCHED_SEND_INPUT))
		plan->read_kinds |= NET_PLACE_OUTPUT;
}

static void compile_step(struct exec_plan *plan, uint32_t i_lane,
			 const struct sched_step *from, struct exec_step *to,
			 struct net_lane **ends)
{
	const uint32_t *peers = plan->sched->peers;
	uint32_t piece = from->chunk % plan->sched->n_pieces;
	uint32_t i;

	/* Whoever has more of them is refused where the schedule is made. */
	wreath_assert(from->n_recv < REDUCE_MAX && from->n_send < REDUCE_MAX);
	to->recv = ends;
	to->send = ends + from->n_recv;
	to->n_recv = from->n_recv;
	to->n_send = from->n_send;
	to->block = from->chunk / plan->sched->n_pieces;
	to->channel = piece / plan->n_pieces;
	to->piece = piece % plan->n_pieces;
	to->local_at = from->local_at;
	to->after_lane = from->after_lane;
	to->after_step = from->after_step;
	to->local = from->local;
	to->flags = from->flags;
	for (i = 0; i < from->n_recv; i++)
		to->recv[i] = end_of(plan, peers[from->recv + i], i_lane);
	for (i = 0; i < from->n_send; i++)
		to->send[i] = end_of(plan, peers[from->send + i],
				     from->send_lane);
}

/* What the steps' peers have to do with this rank. */
static void list_peers(struct exec_plan *plan)
{
	uint32_t i, j;

	for (i = 0; i < plan->sched->n_steps; i++) {
		const struct exec_step *step = &plan->steps[i];

		for (j = 0; j < step->n_recv; j++)
			add_once((void **)plan->receives, &plan->n_receives,
				 step->recv[j]);
		add_grant(plan, step);
	}
}

/*
 * Could the whole operation do without slots?  This must be decided alike by
 * all ranks, so it hangs on what they have in common: the shape, and whether
 * everyone reaches the memory of everyone.
 */
static enum exec_reading reading_of(const struct exec_plan *plan)
{
	const struct sched_shape *shape = &plan->sched->shape;

	if (!net_maps_all(plan->net))
		return EXEC_READ_NONE;
	if (shape->algo == SCHED_TWOSHOT)
		return EXEC_READ_ALL;
	if (shape->algo != SCHED_DIRECT)
		return EXEC_READ_NONE;
	switch (shape->collective) {
	case SCHED_REDUCE_SCATTER:
	case SCHED_ALL_GATHER:
	case SCHED_ALL_TO_ALL:
		return EXEC_READ_ALL;
	case SCHED_BROADCAST:
	case SCHED_SCATTER:
		return EXEC_READ_ROOT;
	default:
		return EXEC_READ_NONE;
	}
}

/* One step sends the whole input to all, one folds what all sent. */
static bool is_exchange(const struct exec_plan *plan)
{
	const struct exec_step *send = &plan->steps[0];
	const struct exec_step *fold = &plan->steps[1];

	return plan->sched->n_chunks == 1 && plan->n_lanes == 2 &&
	       plan->sched->n_steps == 2 && plan->lanes[0].n_steps == 1 &&
	       send->local == SCHED_INPUT && !send->n_recv && !send->flags &&
	       send->n_send && fold->n_recv &&
	       fold->local == SCHED_INPUT && !fold->n_send &&
	       fold->flags == SCHED_STORE;
}

static bool all_mutual(const struct exec_plan *plan)
{
	uint32_t i;

	for (i = 0; i < plan->n_grants_to; i++)
		if (!exec_is_mutual(plan, plan->grants_to[i]))
			return false;
	return plan->n_grants_to == plan->n_grants_from;
}

static int allocate(struct exec_plan *plan)
{
	const struct sched *sched = plan->sched;
	size_t n_conns = (size_t)plan->net->n_ranks * NET_CHANNELS_MAX;
	size_t n_ends = 0;
	uint32_t i;

	for (i = 0; i < sched->n_steps; i++)
		n_ends += sched->steps[i].n_recv + sched->steps[i].n_send;
	plan->lanes = base_alloc(plan->n_lanes, sizeof(*plan->lanes));
	plan->steps = base_alloc(sched->n_steps, sizeof(*plan->steps));
	plan->n_ends = n_ends;
	plan->ends = base_alloc(n_ends, sizeof(struct net_lane *));
	plan->receives = base_alloc(n_ends, sizeof(struct net_lane *));
	plan->busy = base_alloc(plan->n_lanes, sizeof(struct exec_lane *));
	plan->awaits = base_alloc(n_ends, sizeof(struct net_lane *));
	plan->missing = base_alloc(n_conns, sizeof(struct net_conn *));
	plan->grants_to = base_alloc(n_conns, sizeof(struct net_conn *));
	plan->grants_from = base_alloc(n_conns, sizeof(struct net_conn *));
	if (!plan->lanes || !plan->steps || !plan->ends || !plan->receives ||
	    !plan->awaits || !plan->missing || !plan->grants_to ||
	    !plan->grants_from || !plan->busy)
		return WREATH_ENOMEM;
	return 0;
}

/* Steps that nothing keeps in order, neither a dependency nor a mailbox. */
static void part_lane(struct exec_plan *plan, uint32_t i_lane, uint32_t i_step)
{
	const struct sched *sched = plan->sched;
	const struct sched_step *step = &sched->steps[i_step];
	struct exec_lane *lane = &plan->lanes[i_step];

	lane->steps = plan->steps + i_step;
	lane->n_steps = 1;
	lane->peer = -1;
	if (step->n_send) {
		lane->peer = (int)sched->peers[step->send];
		i_lane = step->send_lane;
	} else if (step->n_recv) {
		lane->peer = (int)sched->peers[step->recv];
	}
	lane->channel = sched->lanes[i_lane].channel;
	lane->box = sched->lanes[i_lane].box;
}

static void compile(struct exec_plan *plan)
{
	const struct sched *sched = plan->sched;
	struct net_lane **ends = plan->ends;
	uint32_t i, j;

	for (i = 0; i < sched->n_lanes; i++) {
		const struct sched_lane *lane = &sched->lanes[i];

		if (!plan->is_parted) {
			plan->lanes[i].steps = plan->steps + lane->step;
			plan->lanes[i].n_steps = lane->n_steps;
			plan->lanes[i].peer = -1;
		}
		for (j = lane->step; j < lane->step + lane->n_steps; j++) {
			compile_step(plan, i, &sched->steps[j],
				     &plan->steps[j], ends);
			ends += plan->steps[j].n_recv + plan->steps[j].n_send;
			if (plan->is_parted)
				part_lane(plan, i, j);
		}
	}
	if (!plan->is_parted)
		list_peers(plan);
}

int exec_plan_new(struct net *net, const struct sched *sched,
		  const struct exec_guard *guard, struct exec_plan **out)
{
	struct exec_plan *plan;
	int err;

	plan = base_alloc(1, sizeof(*plan));
	if (!plan)
		return WREATH_ENOMEM;
	plan->net = net;
	plan->sched = sched;
	plan->guard = *guard;
	plan->n_spins = (uint32_t)guard->n_spins_max;
	plan->switched_ns = exec_switched_ns();
	plan->is_paired = sched_is_paired(sched->shape.collective);
	plan->is_parted = sched->shape.collective == SCHED_EXCHANGE;
	plan->n_lanes = plan->is_parted ? sched->n_steps : sched->n_lanes;
	plan->read_kinds = NET_PLACE_INPUT;
	plan->has_grown = true;
	err = allocate(plan);
	if (err) {
		exec_plan_free(plan);
		return err;
	}
	exec_cut_shares(plan);
	compile(plan);
	plan->reading = reading_of(plan);
	plan->is_mutual = all_mutual(plan);
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
	base_free(plan->busy);
	base_free(plan->awaits);
	base_free(plan->missing);
	base_free(plan->grants_to);
	base_free(plan->grants_from);
	base_free(plan);
}
