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

/*
 * Which steps need the peers' grants first.  Of an operation on a GPU also
 * those that use what this rank has granted: whether the peer can reach it is
 * told by the peer's own grant.
 */
static unsigned int awaited_flags(const struct exec_plan *plan)
{
	unsigned int flags = SCHED_SEND_FINAL | SCHED_RECV_INPUT;

	return plan->args->gpu ? flags | SCHED_SEND_INPUT | SCHED_RECV_FINAL
			       : flags;
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
		if (net_can_send(step->send[i], window) &&
		    !exec_gpu_fills(plan, step->send[i]))
			continue;
		lane->waits_for = step->send[i];
		return 0;
	}
	if (plan->n_missing && needs_place(plan, lane) &&
	    (step->flags & awaited_flags(plan)))
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

static void mark_src(struct exec_fold *fold, enum exec_where where)
{
	if (where == EXEC_GPU)
		fold->gpu_src |= 1ull << fold->n_src;
	else if (where == EXEC_HOST)
		fold->is_far = true;
}

static void mark_dst(struct exec_fold *fold, enum exec_where where)
{
	if (where == EXEC_GPU)
		fold->gpu_dst |= 1ull << fold->n_dst;
	else if (where == EXEC_HOST)
		fold->is_far = true;
}

/* Of what a peer granted: its GPU's, or memory that no kernel reaches. */
static enum exec_where where_of(const struct net_conn *conn, uint32_t kind)
{
	return conn->place.kinds & kind ? EXEC_GPU : EXEC_HOST;
}

static void add_own(const struct exec_plan *plan, const struct exec_step *step,
		    size_t offset, size_t bytes, struct exec_fold *fold)
{
	mark_src(fold, exec_where(exec_blocks_of(plan, step), step->block));
	fold->src[fold->n_src++] = exec_own_chunk(plan, step, offset, bytes);
}

static void sources(const struct exec_plan *plan, const struct exec_lane *lane,
		    const struct exec_step *step, size_t offset, size_t bytes,
		    struct exec_fold *fold)
{
	const struct exec_blocks *out = &plan->args->out;
	uint32_t i;

	for (i = 0; i < step->n_recv; i++) {
		const struct net_lane *end = step->recv[i];
		const void *from;

		if (step->local && i == step->local_at)
			add_own(plan, step, offset, bytes, fold);
		if (is_read_here(plan, lane, step, end)) {
			mark_src(fold, where_of(end->conn,
						NET_PLACE_INPUT_GPU));
			from = read_from(plan, step, end, offset);
		} else if (came_to_place(plan, lane, step)) {
			mark_src(fold, exec_where(out, step->block));
			from = exec_at(out, step->block, offset);
		} else {
			from = net_payload(end);
		}
		fold->src[fold->n_src++] = from;
	}
	if (step->local && step->local_at >= step->n_recv)
		add_own(plan, step, offset, bytes, fold);
}

/* Where the result goes. */
static void targets(const struct exec_plan *plan, const struct exec_lane *lane,
		    const struct exec_step *step, size_t offset,
		    struct exec_fold *fold)
{
	const struct exec_blocks *out = &plan->args->out;
	uint32_t i;

	fold->all_final = true;
	if (step->flags & SCHED_STORE) {
		mark_dst(fold, exec_where(out, step->block));
		fold->dst[fold->n_dst++] = exec_at(out, step->block, offset);
	}
	for (i = 0; i < step->n_send; i++) {
		struct net_lane *end = step->send[i];
		void *to;

		if (is_read_there(plan, lane, step, end))
			continue;
		if (goes_to_place(plan, lane, step, end) &&
		    end->conn->output_map) {
			mark_dst(fold, where_of(end->conn,
						NET_PLACE_OUTPUT_GPU));
			to = end->conn->output_map +
			     place_offset(plan, out, step->block, offset);
		} else {
			to = net_slot(end);
			fold->all_final = false;
		}
		fold->dst[fold->n_dst++] = to;
	}
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

/* What is in its place is not copied onto itself. */
static void leave_own(struct exec_fold *fold)
{
	fold->n_dst--;
	memmove(fold->dst, fold->dst + 1,
		(size_t)fold->n_dst * sizeof(*fold->dst));
	fold->gpu_dst >>= 1;
}

static void fold_here(const struct exec_plan *plan,
		      const struct exec_step *step,
		      const struct exec_fold *fold, size_t bytes)
{
	struct reduce_args args = {
		.src = fold->src,
		.dst = fold->dst,
		.n_src = (int)fold->n_src,
		.n_dst = (int)fold->n_dst,
		.count = bytes / plan->args->elem_bytes,
		.divisor = exec_divisor(plan, step),
		.flags = plan->streams && fold->all_final ? REDUCE_STREAM : 0,
	};

	plan->args->fold(&args);
}

/* What a device wrote into a GPU's memory is flushed before it is read. */
static int flush_place(struct exec_plan *plan, const struct exec_lane *lane,
		       const struct exec_step *step)
{
	if (!plan->needs_flush || !came_to_place(plan, lane, step) ||
	    (step->recv[0]->conn->granted & NET_PLACE_OUTPUT_GPU))
		return 0;
	return net_flush_amid(plan->net, plan->guard.timeout_ms);
}

/* The step's fold: 1 done, 0 not yet, or an error. */
static int fold_step(struct exec_plan *plan, struct exec_lane *lane,
		     const struct exec_step *step)
{
	const struct exec_args *args = plan->args;
	struct exec_fold fold;
	int err;

	if (lane->job)
		return exec_gpu_is_done(plan, lane);
	err = can_run(plan, lane, step);
	if (err <= 0)
		return err;
	err = check_maps(plan, lane, step);
	if (err)
		return err;
	/* Not its lists, which are long. */
	fold.n_src = fold.n_dst = 0;
	fold.gpu_src = fold.gpu_dst = 0;
	fold.is_far = false;
	sources(plan, lane, step, lane->offset, lane->bytes, &fold);
	targets(plan, lane, step, lane->offset, &fold);
	if (fold.n_dst && fold.n_src == 1 && !exec_divisor(plan, step) &&
	    !(args->gpu && args->factor) && fold.dst[0] == fold.src[0])
		leave_own(&fold);
	if (!lane->bytes || !fold.n_dst)
		return 1;
	if (base_likely(!args->gpu)) {
		fold_here(plan, step, &fold, lane->bytes);
		return 1;
	}
	err = flush_place(plan, lane, step);
	return err ? err : exec_gpu_fold(plan, lane, step, &fold, lane->bytes);
}

int exec_step_slots(struct exec_plan *plan, struct exec_lane *lane)
{
	const struct exec_step *step = &lane->steps[lane->step];
	int err;

	if (!lane->has_chunk) {
		lane->bytes = exec_chunk(plan, step, lane->pass, &lane->offset);
		lane->has_chunk = true;
	}
	/* Nothing to do, at the other end neither; but the first pass tells
	 * who disagrees. */
	if (lane->bytes == EXEC_ABSENT || (!lane->bytes && lane->pass))
		return 1;
	err = fold_step(plan, lane, step);
	if (err <= 0)
		return err;
	err = send_and_consume(plan, lane, step, lane->offset, lane->bytes);
	return err ? err : 1;
}
