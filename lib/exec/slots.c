/* SPDX-License-Identifier: MIT */
/*
 * Steps of large messages: the payload is folded straight into where it goes,
 * a slot, the peer's output, or our own.
 */
#include "exec/inner.h"

bool exec_has_places(struct exec_plan *plan)
{
	while (plan->n_places_missing) {
		struct net_conn *conn =
			plan->grants_from[plan->n_places_missing - 1];

		if (!net_place_take(conn, plan->signature))
			return false;
		plan->n_places_missing--;
	}
	return true;
}

/* Are the step's messages there, its credit, and what it depends on? */
static int can_run(struct exec_plan *plan, struct exec_lane *lane,
		   const struct exec_step *step)
{
	uint32_t window = (uint32_t)plan->net->n_slots;
	uint32_t i;

	if (step->after_lane >= 0) {
		const struct exec_lane *other = &plan->lanes[step->after_lane];

		if (!other->is_done &&
		    (other->pass < lane->pass ||
		     (other->pass == lane->pass &&
		      other->step <= (uint32_t)step->after_step)))
			return 0;
	}
	for (; lane->n_arrived < step->n_recv; lane->n_arrived++) {
		const struct net_lane *end = step->recv[lane->n_arrived];

		switch (net_arrived(end, plan->signature)) {
		case NET_ARRIVED:
			continue;
		case NET_MISMATCH:
			return exec_mismatch(plan, end);
		case NET_NONE:
			lane->waits_for = end;
			return 0;
		}
	}
	for (i = 0; i < step->n_send; i++) {
		if (net_can_send(step->send[i], window))
			continue;
		lane->waits_for = step->send[i];
		return 0;
	}
	if ((step->flags & SCHED_SEND_FINAL) && plan->n_places_missing &&
	    !exec_has_places(plan)) {
		lane->waits_for =
			&plan->grants_from[plan->n_places_missing - 1]
				 ->lanes[0];
		return 0;
	}
	return 1;
}

static bool goes_to_place(const struct exec_plan *plan,
			  const struct exec_step *step,
			  const struct net_lane *end)
{
	return plan->uses_places && (step->flags & SCHED_SEND_FINAL) &&
	       (end->conn->place.kinds & NET_PLACE_OUTPUT);
}

/* The bytes of a final message are in the output already. */
static bool came_to_place(const struct exec_plan *plan,
			  const struct exec_step *step)
{
	return plan->uses_places && (step->flags & SCHED_RECV_FINAL) &&
	       (step->recv[0]->conn->granted & NET_PLACE_OUTPUT);
}

/* The receivers read the payload where it is. */
static bool sends_nothing(const struct exec_plan *plan,
			  const struct exec_step *step)
{
	return plan->is_in_place && (step->flags & SCHED_SEND_INPUT);
}

static const void *payload(const struct exec_plan *plan,
			   const struct exec_step *step,
			   const struct net_lane *end, size_t offset)
{
	if (plan->is_in_place && (step->flags & SCHED_RECV_INPUT))
		return end->conn->input_map + offset;
	return net_payload(end);
}

static uint32_t sources(const struct exec_plan *plan,
			const struct exec_step *step, size_t offset,
			const void **src)
{
	const char *own = step->local == SCHED_OUTPUT ? plan->args->recv
						      : plan->args->send;
	uint32_t n = 0;
	uint32_t i;

	if (came_to_place(plan, step)) {
		src[0] = (const char *)plan->args->recv + offset;
		return 1;
	}
	for (i = 0; i < step->n_recv; i++) {
		if (step->local && i == step->local_at)
			src[n++] = own + offset;
		src[n++] = payload(plan, step, step->recv[i], offset);
	}
	if (step->local && step->local_at >= step->n_recv)
		src[n++] = own + offset;
	return n;
}

/* Where the result goes; @all_final: nothing of it goes to a slot. */
static uint32_t targets(const struct exec_plan *plan,
			const struct exec_step *step, size_t offset, void **dst,
			bool *all_final)
{
	uint32_t n = 0;
	uint32_t i;

	*all_final = true;
	if ((step->flags & SCHED_STORE) && !came_to_place(plan, step))
		dst[n++] = (char *)plan->args->recv + offset;
	if (sends_nothing(plan, step))
		return n;
	for (i = 0; i < step->n_send; i++) {
		struct net_lane *end = step->send[i];

		if (goes_to_place(plan, step, end) && end->conn->output_map) {
			dst[n++] = end->conn->output_map + offset;
		} else {
			dst[n++] = net_slot(end);
			*all_final = false;
		}
	}
	return n;
}

static int send_and_consume(const struct exec_plan *plan,
			    const struct exec_step *step, size_t offset,
			    size_t bytes)
{
	uint32_t batch = (uint32_t)plan->net->n_slots / 2;
	uint32_t i;
	int err;

	for (i = 0; i < step->n_send; i++) {
		struct net_lane *end = step->send[i];

		if (sends_nothing(plan, step))
			err = net_send_nothing(end, plan->signature);
		else if (goes_to_place(plan, step, end))
			err = net_send_place(end, offset, bytes,
					     plan->signature);
		else
			err = net_send_slot(end, bytes, plan->signature);
		if (err)
			return err;
	}
	for (i = 0; i < step->n_recv; i++) {
		err = net_consume(step->recv[i], batch);
		if (err)
			return err;
	}
	return 0;
}

int exec_step_slots(struct exec_plan *plan, struct exec_lane *lane)
{
	const struct exec_step *step = &lane->steps[lane->step];
	const struct exec_args *args = plan->args;
	const void *src[REDUCE_MAX];
	void *dst[REDUCE_MAX];
	struct reduce_args fold;
	size_t offset, bytes;
	bool all_final;
	int err = can_run(plan, lane, step);

	if (err <= 0)
		return err;
	bytes = exec_chunk(lane, step->chunk, &offset);
	fold.n_src = (int)sources(plan, step, offset, src);
	fold.n_dst = (int)targets(plan, step, offset, dst, &all_final);
	if (bytes && fold.n_dst) {
		fold.src = src;
		fold.dst = dst;
		fold.count = bytes / args->elem_bytes;
		/* Only a result that is stored is the whole sum. */
		fold.divisor = (step->flags & SCHED_STORE) &&
					       !(step->flags & SCHED_RECV_FINAL)
				       ? args->divisor : 0;
		fold.flags = plan->streams && all_final ? REDUCE_STREAM : 0;
		args->fold(&fold);
	}
	err = send_and_consume(plan, step, offset, bytes);
	return err ? err : 1;
}
