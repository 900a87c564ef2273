/* SPDX-License-Identifier: MIT */
/* The critical path, from the last step back to the first. */
#include "sim_run.h"

struct walk {
	struct sim *sim;
	struct sched_sim *out;
	uint32_t rank; /* the one that is meant, not the one it is folded to */
	uint64_t until_ps; /* when the step that came after began */
};

/* A step is left as soon as it has sent what the next one waits for. */
static uint64_t left_ps(const struct walk *walk, const struct sim_trace *trace)
{
	return trace->end_ps < walk->until_ps ? trace->end_ps
					      : walk->until_ps;
}

/* How far ahead of the sender the queue's receiver is. */
static uint32_t ahead_of(const struct sim *sim, uint32_t i_tx)
{
	const struct sim_tx *tx = &sim->txs[i_tx];
	const struct sim_rank *rank = &sim->ranks[tx->lane / sim->n_lanes];

	return rank->class->tx.keys[i_tx - rank->tx].ahead;
}

static const struct sim_step *trace_step(const struct sim *sim,
					 const struct sim_trace *trace)
{
	const struct sim_class *class =
		sim->ranks[trace->lane / sim->n_lanes].class;

	return &class->steps[class->lanes[trace->lane % sim->n_lanes].step +
			     trace->step];
}

/* What the message took without others in its way. */
static void split_message(struct walk *walk, const struct sim_trace *from,
			  uint32_t i_tx, uint64_t ps)
{
	struct sim *sim = walk->sim;
	const struct sim_tx *tx = &sim->txs[i_tx];
	const struct sim_step *step = trace_step(sim, from);
	uint64_t bytes = sim_cut_bytes(&sim->cut, step->channel, from->pass,
				       step->at);
	uint64_t wire = 0, latency = 0;
	uint32_t i;

	for (i = 0; i < tx->n_links; i++) {
		const struct sim_link *link =
			&sim->net.links[sim->paths[tx->path + i]];
		uint64_t needs = sim_link_ps(link, bytes);

		latency += link->latency_ps;
		if (needs > wire)
			wire = needs;
	}
	if (latency > ps)
		latency = ps;
	if (wire > ps - latency)
		wire = ps - latency;
	walk->out->part_ps[SCHED_SIM_LATENCY] += latency;
	walk->out->part_ps[SCHED_SIM_WIRE] += wire;
	walk->out->part_ps[SCHED_SIM_QUEUE] += ps - latency - wire;
}

/* The time between the step before and this one, and whose the former was. */
static void account(struct walk *walk, const struct sim_trace *trace,
		    struct sched_sim_hop *hop)
{
	struct sim *sim = walk->sim;
	uint32_t n = (uint32_t)sim->shape->n_ranks;
	const struct sim_trace *from = trace->before == SIM_NONE
					       ? NULL
					       : &sim->traces[trace->before];
	uint32_t i_tx = trace->with;
	uint64_t ps;

	walk->until_ps = trace->start_ps;
	ps = trace->start_ps - (from ? left_ps(walk, from) : 0);
	switch (trace->cause) {
	case SCHED_SIM_MESSAGE:
		i_tx = sim->rxs[trace->with].tx;
		walk->rank = (walk->rank + n - ahead_of(sim, i_tx)) % n;
		hop->from = (int)walk->rank;
		if (from)
			split_message(walk, from, i_tx, ps);
		return;
	case SCHED_SIM_CREDIT:
		if (from)
			walk->rank = (walk->rank + ahead_of(sim, i_tx)) % n;
		hop->from = (int)walk->rank;
		walk->out->part_ps[SCHED_SIM_RETURN] += ps;
		return;
	case SCHED_SIM_START:
	case SCHED_SIM_BUSY:
	case SCHED_SIM_N_CAUSES:
		break;
	}
	walk->out->part_ps[SCHED_SIM_HOST] += ps;
}

int sim_trace_path(struct sim *sim, struct sched_sim *out)
{
	struct walk walk = {sim, out, 0, sim->end_ps};
	uint32_t at, n = 0;

	if (!sim->is_traced || sim->last == SIM_NONE)
		return 0;
	for (at = sim->last; at != SIM_NONE; at = sim->traces[at].before)
		n++;
	out->hops = base_alloc(n, sizeof(*out->hops));
	if (!out->hops)
		return WREATH_ENOMEM;
	out->n_hops = n;
	walk.rank = sim->traces[sim->last].lane / sim->n_lanes;
	for (at = sim->last; at != SIM_NONE; at = sim->traces[at].before) {
		const struct sim_trace *trace = &sim->traces[at];
		struct sched_sim_hop *hop = &out->hops[--n];

		*hop = (struct sched_sim_hop){
			.rank = (int)walk.rank,
			.lane = trace->lane % sim->n_lanes,
			.step = trace->step,
			.pass = trace->pass,
			.cause = trace->cause,
			.from = (int)walk.rank,
			.start_ps = trace->start_ps,
			.end_ps = trace->end_ps,
		};
		out->part_ps[SCHED_SIM_HOST] +=
			left_ps(&walk, trace) - trace->start_ps;
		account(&walk, trace, hop);
	}
	return 0;
}
