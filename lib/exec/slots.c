/* SPDX-License-Identifier: MIT */
/*
 * Steps of large messages: the payload is folded straight into where it goes,
 * a slot, the peer's output, or our own.
 */
#include <string.h>

#include "exec/inner.h"

/*
 * Where only pairs of ranks know the lengths, the first pass goes by slots:
 * its messages show whether they agree.
 */
static bool needs_place(const struct exec_plan *plan,
			const struct exec_lane *lane)
{
	return plan->uses_places && !(plan->is_private && !lane->pass);
}

static bool has_places(struct exec_plan *plan, struct exec_lane *lane,
		       const struct exec_step *step)
{
	if (plan->is_parted) {
		if (exec_has_grant(plan, lane))
			return true;
		lane->waits_for = step->n_send ? step->send[0] : step->recv[0];
		return false;
	}
	if (exec_has_places(plan))
		return true;
	lane->waits_for = &plan->missing[plan->n_missing - 1]->lanes[0];
	return false;
}

/* Are the step's messages there, its credit, and what it depends on? */
static int can_run(struct exec_plan *plan, struct exec_lane *lane,
		   const struct exec_step *step)
{
	uint32_t window = (uint32_t)plan->net->n_slots;
	uint32_t signature = exec_signature(plan, step);
	uint32_t i;

	if (!exec_is_after(plan, lane, step))
		return 0;
	for (; lane->n_arrived < step->n_recv; lane->n_arrived++) {
		const struct net_lane *end = step->recv[lane->n_arrived];

		switch (net_arrived(end, signature)) {
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
	if ((step->flags & (SCHED_SEND_FINAL | SCHED_RECV_INPUT)) &&
	    plan->n_missing && needs_place(plan, lane))
		return has_places(plan, lane, step);
	return 1;
}

/* Does the final chunk go to the place that was granted, or to a slot? */
static bool goes_to_place(const struct exec_plan *plan,
			  const struct exec_lane *lane,
			  const struct exec_step *step,
			  const struct net_lane *end)
{
	return needs_place(plan, lane) && (step->flags & SCHED_SEND_FINAL) &&
	       (end->conn->place.kinds & NET_PLACE_OUTPUT);
}

/* The bytes of a final message are in the output already. */
static bool came_to_place(const struct exec_plan *plan,
			  const struct exec_lane *lane,
			  const struct exec_step *step)
{
	return needs_place(plan, lane) && (step->flags & SCHED_RECV_FINAL) &&
	       (step->recv[0]->conn->granted & NET_PLACE_OUTPUT);
}

/* The receivers read the payload where it is, in our input, in theirs. */
static bool is_read_there(const struct exec_plan *plan,
			  const struct exec_lane *lane,
			  const struct exec_step *step,
			  const struct net_lane *end)
{
	return needs_place(plan, lane) && (step->flags & SCHED_SEND_INPUT) &&
	       (end->conn->granted & NET_PLACE_INPUT);
}

static bool is_read_here(const struct exec_plan *plan,
			 const struct exec_lane *lane,
			 const struct exec_step *step,
			 const struct net_lane *end)
{
	return needs_place(plan, lane) && (step->flags & SCHED_RECV_INPUT) &&
	       (end->conn->place.kinds & NET_PLACE_INPUT);
}

/*
 * Where in a place the chunk is: of a paired operation the place is the block
 * itself.
 */
static size_t place_offset(const struct exec_plan *plan,
			   const struct exec_blocks *blocks, uint32_t block,
			   size_t offset)
{
	if (plan->is_paired)
		return offset;
	return offset + (blocks->at ? blocks->at[block]
				    : block * blocks->stride);
}

/*
 * Where the chunk is in the memory that @end's peer granted for reading: that
 * peer's own input, in which its block is the only one where each has one.
 */
static const char *read_from(const struct exec_plan *plan,
			     const struct exec_step *step,
			     const struct net_lane *end, size_t offset)
{
	return end->conn->input_map +
	       place_offset(plan, &plan->args->in, step->block, offset);
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
	if (!args->factor)
		return src[0];
	src[1] = args->factor;
	if (bytes)
		args->multiply(&multiply);
	return args->scratch;
}

static uint32_t sources(const struct exec_plan *plan,
			const struct exec_lane *lane,
			const struct exec_step *step, size_t offset,
			size_t bytes, const void **src)
{
	const char *own = NULL;
	uint32_t n = 0;
	uint32_t i;

	if (step->local)
		own = exec_own_chunk(plan, step, offset, bytes);
	for (i = 0; i < step->n_recv; i++) {
		const struct net_lane *end = step->recv[i];

		if (step->local && i == step->local_at)
			src[n++] = own;
		if (is_read_here(plan, lane, step, end))
			src[n++] = read_from(plan, step, end, offset);
		else if (came_to_place(plan, lane, step))
			src[n++] = exec_at(&plan->args->out, step->block,
					   offset);
		else
			src[n++] = net_payload(end);
	}
	if (step->local && step->local_at >= step->n_recv)
		src[n++] = own;
	return n;
}

/* Where the result goes; @all_final: nothing of it goes to a slot. */
static uint32_t targets(const struct exec_plan *plan,
			const struct exec_lane *lane,
			const struct exec_step *step, size_t offset, void **dst,
			bool *all_final)
{
	const struct exec_blocks *out = &plan->args->out;
	uint32_t n = 0;
	uint32_t i;

	*all_final = true;
	if (step->flags & SCHED_STORE)
		dst[n++] = exec_at(out, step->block, offset);
	for (i = 0; i < step->n_send; i++) {
		struct net_lane *end = step->send[i];

		if (is_read_there(plan, lane, step, end))
			continue;
		if (goes_to_place(plan, lane, step, end) &&
		    end->conn->output_map) {
			dst[n++] = end->conn->output_map +
				   place_offset(plan, out, step->block, offset);
		} else {
			dst[n++] = net_slot(end);
			*all_final = false;
		}
	}
	return n;
}

static int send_and_consume(const struct exec_plan *plan,
			    const struct exec_lane *lane,
			    const struct exec_step *step, size_t offset,
			    size_t bytes)
{
	uint32_t batch = (uint32_t)plan->net->n_slots / 2;
	uint32_t signature = exec_signature(plan, step);
	/* An empty block may be beyond the end of what was granted. */
	size_t at = bytes ? place_offset(plan, &plan->args->out, step->block,
					 offset) : 0;
	uint32_t i;
	int err;

	for (i = 0; i < step->n_send; i++) {
		struct net_lane *end = step->send[i];

		if (is_read_there(plan, lane, step, end))
			err = net_send_nothing(end, signature);
		else if (goes_to_place(plan, lane, step, end))
			err = net_send_place(end, at, bytes, signature);
		else
			err = net_send_slot(end, bytes, signature);
		if (err)
			return err;
	}
	for (i = 0; i < step->n_recv; i++) {
		struct net_lane *end = step->recv[i];

		/* Who sent it may be waiting until it is read. */
		err = net_consume(end, is_read_here(plan, lane, step, end)
					       ? 1 : batch);
		if (err)
			return err;
	}
	return 0;
}

/* All that the step reads in its peers' memory must be mapped here. */
static int check_maps(const struct exec_plan *plan,
		      const struct exec_lane *lane,
		      const struct exec_step *step)
{
	uint32_t i;

	if (!(step->flags & SCHED_RECV_INPUT))
		return 0;
	for (i = 0; i < step->n_recv; i++) {
		const struct net_lane *end = step->recv[i];

		if (is_read_here(plan, lane, step, end) &&
		    base_unlikely(!end->conn->input_map))
			return exec_not_mapped(plan, end->conn);
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
	int err;

	if (!lane->has_chunk) {
		lane->bytes = exec_chunk(plan, step, lane->pass, &lane->offset);
		lane->has_chunk = true;
	}
	bytes = lane->bytes;
	offset = lane->offset;
	/* Nothing to do, at the other end neither; but the first pass tells
	 * who disagrees. */
	if (bytes == EXEC_ABSENT || (!bytes && lane->pass))
		return 1;
	err = can_run(plan, lane, step);
	if (err <= 0)
		return err;
	err = check_maps(plan, lane, step);
	if (err)
		return err;
	fold.n_src = (int)sources(plan, lane, step, offset, bytes, src);
	fold.n_dst = (int)targets(plan, lane, step, offset, dst, &all_final);
	fold.divisor = exec_divisor(plan, step);
	/* What is in its place is not copied onto itself. */
	if (fold.n_dst && fold.n_src == 1 && !fold.divisor &&
	    dst[0] == src[0]) {
		fold.n_dst--;
		memmove(dst, dst + 1, (size_t)fold.n_dst * sizeof(*dst));
	}
	if (bytes && fold.n_dst) {
		fold.src = src;
		fold.dst = dst;
		fold.count = bytes / args->elem_bytes;
		fold.flags = plan->streams && all_final ? REDUCE_STREAM : 0;
		args->fold(&fold);
	}
	err = send_and_consume(plan, lane, step, offset, bytes);
	return err ? err : 1;
}
