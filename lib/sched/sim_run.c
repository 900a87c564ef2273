/* SPDX-License-Identifier: MIT */
/* The events, one after the other. */
#include <inttypes.h>
#include <string.h>

#include "sim_run.h"

static const struct sim_step *step_of(const struct sim_rank *rank,
				      uint32_t lane,
				      const struct sim_lane *state)
{
	return &rank->class->steps[rank->class->lanes[lane].step +
				   state->step];
}

static void advance(struct sim *sim, const struct sim_rank *rank,
		    uint32_t lane, struct sim_lane *state)
{
	state->n_arrived = 0;
	if (++state->step < rank->class->lanes[lane].n_steps)
		return;
	state->step = 0;
	if (++state->pass == sim->n_passes) {
		state->is_done = true;
		sim->n_undone--;
	}
}

static bool has_run(const struct sim_lane *other, const struct sim_lane *lane,
		    int32_t step)
{
	return other->is_done || other->pass > lane->pass ||
	       (other->pass == lane->pass && (int64_t)other->step > step);
}

/* Can the lane's step run?  Those that have nothing to do are passed by. */
static bool is_ready(struct sim *sim, const struct sim_rank *rank,
		     uint32_t i_lane)
{
	struct sim_lane *lanes =
		&sim->lanes[(uint32_t)(rank - sim->ranks) * sim->n_lanes];
	struct sim_lane *lane = &lanes[i_lane];
	const uint32_t *lists = rank->class->lists;
	const struct sim_step *step;
	uint32_t i;

	for (;;) {
		if (lane->is_done)
			return false;
		step = step_of(rank, i_lane, lane);
		if (!lane->pass || sim_cut_bytes(&sim->cut, step->channel,
						 lane->pass, step->at))
			break;
		advance(sim, rank, i_lane, lane);
		sim->has_skipped = true;
	}
	if (step->after_lane >= 0 &&
	    !has_run(&lanes[step->after_lane], lane, step->after_step))
		return false;
	for (; lane->n_arrived < step->n_recv; lane->n_arrived++) {
		i = rank->rx + lists[step->recv + lane->n_arrived];
		if (!sim->rxs[i].n_waiting)
			return false;
	}
	for (i = 0; i < step->n_send; i++)
		if (sim->txs[rank->tx + lists[step->send + i]].n_out >=
		    sim->cut.window)
			return false;
	return true;
}

/* The step as kept for the path, or SIM_NONE. */
static uint32_t keep(struct sim *sim, const struct sim_trace *trace)
{
	if (!sim->is_traced)
		return SIM_NONE;
	if (sim->n_traces == sim->traces_room) {
		uint32_t room = sim->traces_room ? sim->traces_room * 2 : 1024;
		struct sim_trace *traces = NULL;

		if (sim->n_traces < sim->args->trace_max)
			traces = base_alloc(room, sizeof(*traces));
		if (!traces) {
			sim->is_traced = false;
			return SIM_NONE;
		}
		if (sim->n_traces)
			memcpy(traces, sim->traces,
			       sim->n_traces * sizeof(*traces));
		base_free(sim->traces);
		sim->traces = traces;
		sim->traces_room = room;
	}
	sim->traces[sim->n_traces] = *trace;
	return sim->n_traces++;
}

static uint64_t work_ps(const struct sim *sim, const struct sim_step *step,
			uint64_t bytes)
{
	uint32_t n_sources = step->n_recv + (step->local != SCHED_NONE);
	uint64_t ps = step->n_recv * sim->fabric->overhead_ps;

	if (n_sources > 1)
		ps += (n_sources - 1) *
		      sim_work_ps(bytes, sim->reduce_per_byte);
	else if (step->n_send || ((step->flags & SCHED_STORE) &&
				  !(step->flags & SCHED_RECV_FINAL)))
		ps += sim_work_ps(bytes, sim->copy_per_byte);
	return ps + (step->n_send ? sim->fabric->overhead_ps : 0);
}

static void begin(struct sim *sim, struct sim_rank *rank, uint32_t i_lane,
		  enum sched_sim_cause cause, uint32_t with, uint32_t before)
{
	uint32_t at = (uint32_t)(rank - sim->ranks);
	const struct sim_lane *lane = &sim->lanes[at * sim->n_lanes + i_lane];
	const struct sim_step *step = step_of(rank, i_lane, lane);
	uint64_t bytes = sim_cut_bytes(&sim->cut, step->channel, lane->pass,
				       step->at);
	const struct sim_trace trace = {
		.start_ps = sim->queue.now_ps,
		.pass = lane->pass,
		.before = before,
		.lane = at * sim->n_lanes + i_lane,
		.step = lane->step,
		.with = with,
		.cause = cause,
	};

	rank->is_busy = true;
	rank->lane = i_lane;
	rank->i_send = 0;
	rank->traced = keep(sim, &trace);
	sim_push(sim, sim->queue.now_ps + work_ps(sim, step, bytes), SIM_WORKED,
	     at, 0);
}

/*
 * A rank is free: the lane it is in, then the others, and again as long as
 * steps were passed by that one of them may have waited for.
 */
static void look_on(struct sim *sim, struct sim_rank *rank,
		    enum sched_sim_cause cause)
{
	uint32_t lane = rank->lane;
	uint32_t i;

	do {
		sim->has_skipped = false;
		for (i = 0; i < sim->n_lanes; i++) {
			if (is_ready(sim, rank, lane)) {
				begin(sim, rank, lane, cause, 0,
				      rank->before);
				return;
			}
			if (++lane == sim->n_lanes)
				lane = 0;
		}
	} while (sim->has_skipped);
}

/* Something came for a lane: its rank goes on if it is free. */
static void wake(struct sim *sim, uint32_t lane, enum sched_sim_cause cause,
		 uint32_t with, uint32_t before)
{
	struct sim_rank *rank = &sim->ranks[lane / sim->n_lanes];

	lane %= sim->n_lanes;
	if (rank->is_busy)
		return;
	sim->has_skipped = false;
	if (is_ready(sim, rank, lane))
		begin(sim, rank, lane, cause, with, before);
	else if (sim->has_skipped)
		look_on(sim, rank, SCHED_SIM_BUSY);
}

static void worked(struct sim *sim, uint32_t at)
{
	struct sim_rank *rank = &sim->ranks[at];
	struct sim_lane *lane =
		&sim->lanes[at * sim->n_lanes + rank->lane];
	const struct sim_step *step = step_of(rank, rank->lane, lane);

	if (rank->i_send < step->n_send) {
		uint64_t bytes = sim_cut_bytes(&sim->cut, step->channel,
					       lane->pass, step->at);

		sim_send(sim, rank,
		     rank->tx + rank->class->lists[step->send + rank->i_send],
		     bytes);
		if (++rank->i_send < step->n_send) {
			sim_push(sim, sim->queue.now_ps +
					 sim->fabric->overhead_ps,
				 SIM_WORKED, at, 0);
			return;
		}
	}
	sim_consume(sim, rank, step);
	if (rank->traced != SIM_NONE)
		sim->traces[rank->traced].end_ps = sim->queue.now_ps;
	rank->before = rank->traced;
	sim->n_steps++;
	/* Of those that end last the first one counts: so it is one. */
	if (sim->queue.now_ps > sim->end_ps || sim->last == SIM_NONE) {
		sim->end_ps = sim->queue.now_ps;
		sim->last = rank->traced;
	}
	advance(sim, rank, rank->lane, lane);
	rank->is_busy = false;
	look_on(sim, rank, SCHED_SIM_BUSY);
}

static void arrived(struct sim *sim, uint32_t at)
{
	struct sim_rx *rx = &sim->rxs[at];
	uint32_t from = SIM_NONE;

	if (sim->sent_traced)
		from = sim->sent_traced[at * sim->cut.window +
					rx->n_arrived % sim->cut.window];
	rx->n_arrived++;
	rx->n_waiting++;
	wake(sim, rx->lane, SCHED_SIM_MESSAGE, at, from);
}

static void handle(struct sim *sim, const struct sim_event *event)
{
	uint32_t whom = event->what & SIM_WHOM;
	struct sim_tx *tx;

	switch ((enum sim_kind)(event->what >> SIM_KIND_SHIFT)) {
	case SIM_WORKED:
		worked(sim, whom);
		return;
	case SIM_HOP:
		sim_hop(sim, whom);
		return;
	case SIM_ARRIVED:
		arrived(sim, whom);
		return;
	case SIM_CREDIT:
	case SIM_GRANT:
		tx = &sim->txs[whom];
		tx->n_out -= event->what >> SIM_KIND_SHIFT == SIM_CREDIT
				     ? sim->batch : sim->cut.window;
		wake(sim, tx->lane, SCHED_SIM_CREDIT, whom, event->with);
		return;
	}
}

/* Who still waits: a schedule that the verifier has proved never does. */
static int report_stop(const struct sim *sim)
{
	uint32_t i;

	for (i = 0; i < sim->n_ranks * sim->n_lanes; i++)
		if (!sim->lanes[i].is_done)
			break;
	return base_error(WREATH_EINVAL,
			  "the simulation stops: rank %" PRIu32 " lane %"
			  PRIu32 " step %" PRIu32 " of pass %" PRIu64
			  " waits for ever", i / sim->n_lanes,
			  i % sim->n_lanes, sim->lanes[i].step,
			  sim->lanes[i].pass);
}

int sim_run(struct sim *sim)
{
	const struct sim_event *next;
	uint32_t r;

	for (r = 0; r < sim->n_ranks; r++)
		look_on(sim, &sim->ranks[r], SCHED_SIM_START);
	while ((next = sim_queue_pop(&sim->queue)) != NULL) {
		const struct sim_event now = *next;

		handle(sim, &now);
	}
	if (sim->queue.is_short)
		return base_error(WREATH_ENOMEM,
				  "no memory for the events of the "
				  "simulation");
	return sim->n_undone ? report_stop(sim) : 0;
}
