/* SPDX-License-Identifier: MIT */
/*
 * The longest chain through the schedules of all ranks: each step starts when
 * the last of what it waits for is there, as if every lane had a processor of
 * its own and slots never ran out.  What ranks and ports must do one after the
 * other is counted elsewhere (stats.c).
 */
#include "stats.h"

#define NOTHING UINT32_MAX

struct path {
	struct sched_work work;
	double length; /* seconds */
};

/* On its way from a step to the one that takes it. */
struct message {
	struct path path;
	uint32_t next;
};

struct queue {
	uint32_t head, tail;
};

struct cursor {
	uint32_t step, pass;
	struct path path; /* to the end of the step before */
};

struct trace {
	struct sched *const *scheds;
	const struct sched_cost *cost;
	double bytes;
	bool is_in_place;
	uint32_t n_ranks, n_lanes;
	struct cursor *cursors; /* [n_ranks][n_lanes] */
	struct queue *queues;	/* [n_ranks][n_lanes][n_ranks]: by sender */
	struct message *messages;
	uint32_t n_messages;
	/* [n_steps of all][TRACE_PASSES]: to the end of each step. */
	struct path *done;
	uint32_t *first_step; /* [n_ranks]: where a rank's are in @done */
	struct sched_work *ends;
	double end_lengths[TRACE_PASSES];
};

static struct cursor *cursor_of(const struct trace *trace, uint32_t rank,
				uint32_t lane)
{
	return &trace->cursors[rank * trace->n_lanes + lane];
}

static struct queue *queue_of(const struct trace *trace, uint32_t rank,
			      uint32_t lane, uint32_t from)
{
	return &trace->queues[((size_t)rank * trace->n_lanes + lane) *
				      trace->n_ranks + from];
}

static struct path *done_at(const struct trace *trace, uint32_t rank,
			    uint32_t step, uint32_t pass)
{
	return &trace->done[((size_t)trace->first_step[rank] + step) *
				    TRACE_PASSES + pass];
}

static void longer(struct path *path, const struct path *other)
{
	if (other->length > path->length)
		*path = *other;
}

static bool is_ready(const struct trace *trace, uint32_t rank, uint32_t lane,
		     const struct sched_step *step)
{
	const struct sched *sched = trace->scheds[rank];
	const struct cursor *at = cursor_of(trace, rank, lane);
	uint32_t i;

	if (step->after_lane >= 0) {
		const struct cursor *other =
			cursor_of(trace, rank, (uint32_t)step->after_lane);

		if (other->pass < at->pass ||
		    (other->pass == at->pass &&
		     other->step <= (uint32_t)step->after_step))
			return false;
	}
	for (i = 0; i < step->n_recv; i++)
		if (queue_of(trace, rank, lane, sched->peers[step->recv + i])
			    ->head == NOTHING)
			return false;
	return true;
}

static void send(struct trace *trace, uint32_t rank,
		 const struct sched_step *step, const struct path *path,
		 double share)
{
	const struct sched *sched = trace->scheds[rank];
	uint32_t channel = sched->lanes[step->send_lane].channel;
	uint32_t i;

	for (i = 0; i < step->n_send; i++) {
		uint32_t peer = sched->peers[step->send + i];
		int tier = sched_tier(&sched->shape, trace->cost, (int)rank,
				      (int)peer, channel);
		struct queue *queue =
			queue_of(trace, peer, step->send_lane, rank);
		uint32_t at = trace->n_messages++;
		struct message *message = &trace->messages[at];
		struct sched_work hop = {.messages = {0}};

		hop.messages[tier] = 1;
		hop.moved[tier] = share;
		message->path = *path;
		message->path.work.messages[tier] += 1;
		message->path.work.moved[tier] += share;
		message->path.length +=
			sched_chain(&hop, trace->cost, trace->bytes);
		message->next = NOTHING;
		if (queue->head == NOTHING)
			queue->head = at;
		else
			trace->messages[queue->tail].next = at;
		queue->tail = at;
	}
}

static void run_step(struct trace *trace, uint32_t rank, uint32_t lane,
		     const struct sched_step *step, double share)
{
	const struct sched *sched = trace->scheds[rank];
	struct cursor *at = cursor_of(trace, rank, lane);
	struct path *path = &at->path;
	struct sched_work own = {.messages = {0}};
	double n_folded, n_copied;
	uint32_t i;

	if (step->after_lane >= 0)
		longer(path, done_at(trace, rank,
				     sched->lanes[step->after_lane].step +
					     (uint32_t)step->after_step,
				     at->pass));
	for (i = 0; i < step->n_recv; i++) {
		struct queue *queue = queue_of(trace, rank, lane,
					       sched->peers[step->recv + i]);

		longer(path, &trace->messages[queue->head].path);
		queue->head = trace->messages[queue->head].next;
	}
	sched_step_work(step, trace->is_in_place, &n_folded, &n_copied);
	own.folded = n_folded * share;
	own.copied = n_copied * share;
	path->work.folded += own.folded;
	path->work.copied += own.copied;
	path->length += sched_chain(&own, trace->cost, trace->bytes);
	*done_at(trace, rank, sched->lanes[lane].step + at->step, at->pass) =
		*path;
	send(trace, rank, step, path, share);
}

static void end_pass(struct trace *trace, struct cursor *at)
{
	if (at->path.length >= trace->end_lengths[at->pass]) {
		trace->end_lengths[at->pass] = at->path.length;
		trace->ends[at->pass] = at->path.work;
	}
	at->step = 0;
	at->pass++;
}

/* As far as the lane can go; did it move? */
static bool advance(struct trace *trace, uint32_t rank, uint32_t i_lane)
{
	const struct sched *sched = trace->scheds[rank];
	const struct sched_lane *lane = &sched->lanes[i_lane];
	struct cursor *at = cursor_of(trace, rank, i_lane);
	double share = sched_chunk_share(sched, trace->cost, lane->channel);
	bool has_moved = false;

	while (at->pass < TRACE_PASSES) {
		const struct sched_step *step;

		if (at->step == lane->n_steps) {
			end_pass(trace, at);
			has_moved = true;
			continue;
		}
		step = &sched->steps[lane->step + at->step];
		if (!is_ready(trace, rank, i_lane, step))
			break;
		run_step(trace, rank, i_lane, step, share);
		at->step++;
		has_moved = true;
	}
	return has_moved;
}

static int run(struct trace *trace)
{
	uint32_t rank, lane;
	bool has_moved = true;

	while (has_moved) {
		has_moved = false;
		for (rank = 0; rank < trace->n_ranks; rank++)
			for (lane = 0; lane < trace->n_lanes; lane++)
				has_moved |= advance(trace, rank, lane);
	}
	for (rank = 0; rank < trace->n_ranks * trace->n_lanes; rank++)
		if (trace->cursors[rank].pass < TRACE_PASSES)
			return base_error(WREATH_EINVAL,
					  "%s: lane %u of rank %u waits in "
					  "vain", sched_algo_name(
						  trace->scheds[0]->shape.algo),
					  rank % trace->n_lanes,
					  rank / trace->n_lanes);
	return 0;
}

static int allocate(struct trace *trace)
{
	size_t n_ends = (size_t)trace->n_ranks * trace->n_lanes;
	size_t n_steps = 0;
	size_t n_sends = 0;
	size_t i;
	uint32_t j;

	trace->first_step =
		base_alloc(trace->n_ranks, sizeof(*trace->first_step));
	if (!trace->first_step)
		return WREATH_ENOMEM;
	for (i = 0; i < trace->n_ranks; i++) {
		const struct sched *sched = trace->scheds[i];

		trace->first_step[i] = (uint32_t)n_steps;
		n_steps += sched->n_steps;
		for (j = 0; j < sched->n_steps; j++)
			n_sends += sched->steps[j].n_send;
	}
	trace->cursors = base_alloc(n_ends, sizeof(*trace->cursors));
	trace->queues = base_alloc(n_ends * trace->n_ranks,
				   sizeof(*trace->queues));
	trace->messages = base_alloc(n_sends * TRACE_PASSES + 1,
				     sizeof(*trace->messages));
	trace->done = base_alloc(n_steps * TRACE_PASSES + 1,
				 sizeof(*trace->done));
	if (!trace->cursors || !trace->queues || !trace->messages ||
	    !trace->done)
		return WREATH_ENOMEM;
	for (i = 0; i < n_ends * trace->n_ranks; i++)
		trace->queues[i].head = NOTHING;
	return 0;
}

int sched_trace(struct sched *const *scheds, const struct sched_cost *cost,
		double bytes, bool is_in_place,
		struct sched_work ends[TRACE_PASSES])
{
	struct trace trace = {
		.scheds = scheds,
		.cost = cost,
		.bytes = bytes,
		.is_in_place = is_in_place,
		.n_ranks = (uint32_t)scheds[0]->shape.n_ranks,
		.n_lanes = scheds[0]->n_lanes,
		.ends = ends,
	};
	int err = allocate(&trace);

	if (!err)
		err = run(&trace);
	base_free(trace.cursors);
	base_free(trace.queues);
	base_free(trace.messages);
	base_free(trace.done);
	base_free(trace.first_step);
	return err;
}
