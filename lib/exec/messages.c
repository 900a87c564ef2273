/* SPDX-License-Identifier: MIT */
/*
 * Sends and receives: each peer has a queue of messages for each direction,
 * which a lane for each channel works off.  A lane waits for nobody but its
 * peer, which may be in another call yet, or not connected.
 */
#include "exec/inner.h"

static bool is_sending(const struct exec_lane *lane)
{
	return lane->steps->n_send != 0;
}

/* Where its messages go, or come from; NULL while they are not connected. */
static struct net_lane **end_of(const struct exec_lane *lane)
{
	return is_sending(lane) ? lane->steps->send : lane->steps->recv;
}

static const struct exec_blocks *queue_of(const struct exec_plan *plan,
					  const struct exec_lane *lane)
{
	return is_sending(lane) ? &plan->args->in : &plan->args->out;
}

/*
 * Grant the peer what the message is sent from, or where it goes.  A message
 * of one pass needs neither: it goes by slots, to show whether both agree.
 */
static int grant(struct exec_plan *plan, struct exec_lane *lane)
{
	const struct exec_blocks *queue = queue_of(plan, lane);
	uint32_t block = lane->steps->block;
	size_t bytes = exec_block_bytes(queue, block);
	char *at = exec_at(queue, block, 0);
	struct mem_where where;
	struct net_granting what = {
		.output = at, .output_bytes = bytes,
		.input = at, .input_bytes = bytes,
		.kinds = NET_PLACE_OUTPUT | NET_PLACE_INPUT,
		.is_mutual = true,
	};

	if (plan->args->gpu && exec_where(queue, block) == EXEC_GPU) {
		int err = mem_where(at, &where);

		if (err)
			return err;
		what.output_where = &where;
		what.input_where = &where;
	}
	return net_place_grant_one((*end_of(lane))->conn,
				   is_sending(lane) ? NET_PLACE_INPUT
						    : NET_PLACE_OUTPUT,
				   &what, plan->signature);
}

/* Its next message begins, which is @block of its queue. */
static int begin(struct exec_plan *plan, struct exec_lane *lane, uint32_t block)
{
	size_t bytes;

	lane->steps->block = block;
	lane->pass = 0;
	lane->n_passes = 1;
	lane->n_arrived = 0;
	lane->has_chunk = false;
	lane->has_grant = true;
	lane->job = 0;
	lane->is_done = block == lane->end;
	if (lane->is_done)
		return 0;
	bytes = exec_block_bytes(queue_of(plan, lane), block);
	if (bytes <= plan->pass_bytes)
		return 0;
	lane->n_passes = (bytes - 1) / plan->pass_bytes + 1;
	lane->has_grant = false;
	return grant(plan, lane);
}

/* Is the lane's peer connected?  Then it begins, where it has not yet. */
static int attach(struct exec_plan *plan, struct exec_lane *lane)
{
	struct net_lane **end = end_of(lane);
	struct net_conn *conn;
	int err = 0;

	if (!*end) {
		conn = net_conn(plan->net, lane->peer, (int)lane->channel);
		if (!conn || !conn->ready)
			return 0;
		*end = &conn->lanes[lane->box];
		plan->has_grown = true;
	}
	/* What is left of small messages is more than slots allow. */
	if (!is_sending(lane))
		err = exec_tell_credit_of(plan, *end);
	else
		net_lend_nothing(*end);
	lane->is_attached = true;
	plan->n_apart--;
	return err ? err : begin(plan, lane, lane->steps->block);
}

bool exec_has_grant(struct exec_plan *plan, struct exec_lane *lane)
{
	struct net_conn *conn = (*end_of(lane))->conn;
	bool sends = is_sending(lane);

	if (lane->has_grant)
		return true;
	lane->has_grant = net_place_take_one(
		conn, sends ? NET_PLACE_OUTPUT : NET_PLACE_INPUT,
		plan->signature);
	if (lane->has_grant)
		exec_drop_unreachable(plan, conn,
				      sends ? NET_PLACE_INPUT
					    : NET_PLACE_OUTPUT);
	return lane->has_grant;
}

/* Run the lane as far as it can: the number of steps, or an error. */
static int advance(struct exec_plan *plan, struct exec_lane *lane)
{
	int n = 0;
	int err;

	if (base_unlikely(!lane->is_attached)) {
		err = attach(plan, lane);
		if (err || !lane->is_attached)
			return err;
	}
	while (!lane->is_done) {
		if (lane->pass < lane->n_passes) {
			err = exec_step_slots(plan, lane);
			if (err <= 0)
				return err ? err : n;
			n++;
			lane->n_arrived = 0;
			lane->has_chunk = false;
			lane->pass++;
			continue;
		}
		/* Also where this channel had nothing to do with it: the
		 * peer's next grants count on it. */
		if (!exec_has_grant(plan, lane)) {
			lane->waits_for = *end_of(lane);
			return n;
		}
		err = begin(plan, lane, lane->steps->block + 1);
		if (err)
			return err;
	}
	return n;
}

/* The lanes that have messages. */
static void enter(struct exec_plan *plan)
{
	uint32_t i;

	exec_cut(plan);
	plan->n_busy = 0;
	for (i = 0; i < plan->n_lanes; i++) {
		struct exec_lane *lane = &plan->lanes[i];
		const size_t *first;

		lane->is_done = true;
		lane->waits_for = NULL;
		if (lane->peer < 0)
			continue;
		first = queue_of(plan, lane)->first + lane->peer;
		if (first[0] == first[1])
			continue;
		lane->steps->block = (uint32_t)first[0];
		lane->end = (uint32_t)first[1];
		lane->is_done = false;
		lane->is_attached = false;
		plan->busy[plan->n_busy++] = lane;
	}
	plan->n_apart = plan->n_busy;
}

/* One turn of all lanes: the number of steps, or an error. */
static int turn(struct exec_plan *plan, uint32_t *n_left)
{
	uint32_t i;
	int moved = 0;

	*n_left = 0;
	for (i = 0; i < plan->n_busy; i++) {
		struct exec_lane *lane = plan->busy[i];
		int n;

		if (lane->is_done)
			continue;
		n = advance(plan, lane);
		if (base_unlikely(n < 0))
			return n;
		moved += n;
		*n_left += !lane->is_done;
	}
	if (base_unlikely(plan->n_apart && plan->args->connect)) {
		int n = plan->args->connect(plan->args->connect_arg);

		if (n < 0)
			return n;
		moved += n;
	}
	return moved;
}

/* The user's memory is free again when the peers have read it. */
static int await_readers(struct exec_plan *plan)
{
	struct exec_wait wait;
	uint32_t i;

	for (i = 0; i < plan->n_busy; i++) {
		struct exec_lane *lane = plan->busy[i];

		if (!is_sending(lane))
			continue;
		exec_wait_reset(&wait);
		lane->waits_for = *end_of(lane);
		lane->is_done = false;
		while (!net_is_read(lane->waits_for)) {
			int err = exec_wait(plan, &wait);

			if (err)
				return err;
		}
		lane->is_done = true;
	}
	return 0;
}

int exec_run_messages(struct exec_plan *plan)
{
	struct exec_wait wait;

	plan->uses_places = true;
	plan->streams = false;
	/* Each lane looks for its own. */
	plan->n_missing = 1;
	enter(plan);
	exec_wait_reset(&wait);
	for (;;) {
		uint32_t n_left;
		int moved = turn(plan, &n_left);
		int err;

		if (base_unlikely(moved < 0))
			return moved;
		if (!n_left)
			return await_readers(plan);
		err = plan->n_jobs ? mem_gpu_push(plan->args->gpu) : 0;
		if (moved)
			exec_wait_reset(&wait);
		else if (!err)
			err = exec_wait(plan, &wait);
		if (base_unlikely(err))
			return err;
	}
}
