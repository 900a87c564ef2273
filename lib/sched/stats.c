/* SPDX-License-Identifier: MIT */
/*
 * What counts of a shape: its chains, and what its busiest rank has to do.
 */
#include <math.h>
#include <string.h>

#include "draft.h"
#include "stats.h"

int sched_tier(const struct sched_shape *shape, const struct sched_cost *cost,
	       int rank, int peer, uint32_t channel)
{
	if (shape->n_nodes <= 1 || cost->n_rails < 1 ||
	    sched_node_of(shape, rank) == sched_node_of(shape, peer))
		return 0;
	return 1 + (int)channel % cost->n_rails;
}

double sched_chunk_share(const struct sched *sched,
			 const struct sched_cost *cost, uint32_t channel)
{
	return sched_channel_share(&sched->shape, cost, (int)channel) *
	       sched->shape.n_channels / sched->n_chunks;
}

void sched_step_work(const struct sched_step *step, bool is_in_place,
		     double *n_folded, double *n_copied)
{
	double n_sources = step->n_recv + (step->local ? 1.0 : 0.0);
	double n_targets = step->n_send;

	/* Raw input that is read where it lies is not written anywhere. */
	if (is_in_place && (step->flags & SCHED_SEND_INPUT))
		n_targets = 0;
	/* A final message is in its place already. */
	if ((step->flags & SCHED_STORE) && !(step->flags & SCHED_RECV_FINAL))
		n_targets++;
	*n_folded = n_sources > 1 ? n_sources : 0;
	*n_copied = n_targets;
}

/* Every message is raw input, read in place, or final. */
static bool is_in_place(struct sched *const *scheds,
			const struct sched_cost *cost)
{
	const struct sched_shape *shape = &scheds[0]->shape;
	uint32_t i;
	int r;

	if (!cost->is_mapped || (shape->n_nodes > 1 && cost->n_rails))
		return false;
	for (r = 0; r < shape->n_ranks; r++)
		for (i = 0; i < scheds[r]->n_steps; i++) {
			const struct sched_step *step = &scheds[r]->steps[i];

			if (step->n_recv && !(step->flags & (SCHED_RECV_INPUT |
							     SCHED_RECV_FINAL)))
				return false;
		}
	return true;
}

static uint32_t channel_to(const struct sched *sched,
			   const struct sched_step *step)
{
	return sched->lanes[step->send_lane].channel;
}

static void count_message(const struct sched *sched,
			  const struct sched_cost *cost, uint32_t channel,
			  uint32_t at, double share, struct sched_work *own,
			  struct sched_work *moved)
{
	int tier = sched_tier(&sched->shape, cost, sched->rank,
			      (int)sched->peers[at], channel);

	own->messages[tier]++;
	moved->moved[tier] += share;
}

/* One rank's work in a pass; @in: what it receives, a port's load as well. */
static void count_rank(const struct sched *sched,
		       const struct sched_cost *cost, bool in_place,
		       struct sched_work *own, struct sched_work *in)
{
	uint32_t i, j, k;

	for (i = 0; i < sched->n_lanes; i++) {
		const struct sched_lane *lane = &sched->lanes[i];
		double share = sched_chunk_share(sched, cost, lane->channel);

		for (j = lane->step; j < lane->step + lane->n_steps; j++) {
			const struct sched_step *step = &sched->steps[j];
			double n_folded, n_copied;

			for (k = 0; k < step->n_recv; k++)
				count_message(sched, cost, lane->channel,
					      step->recv + k, share, own, in);
			for (k = 0; k < step->n_send; k++)
				count_message(sched, cost, channel_to(sched,
								      step),
					      step->send + k, share, own, own);
			sched_step_work(step, in_place, &n_folded, &n_copied);
			own->folded += n_folded * share;
			own->copied += n_copied * share;
		}
	}
}

static void count_busiest(struct sched *const *scheds,
			  const struct sched_cost *cost,
			  struct sched_stats *stats)
{
	struct sched_work *busy = &stats->busy;
	int r, t;

	for (r = 0; r < scheds[0]->shape.n_ranks; r++) {
		struct sched_work own = {.messages = {0}};
		struct sched_work in = {.messages = {0}};

		count_rank(scheds[r], cost, stats->is_in_place, &own, &in);
		for (t = 0; t < SCHED_TIERS; t++) {
			busy->messages[t] =
				fmax(busy->messages[t], own.messages[t]);
			busy->moved[t] = fmax(busy->moved[t],
					      fmax(own.moved[t], in.moved[t]));
		}
		busy->folded = fmax(busy->folded, own.folded);
		busy->copied = fmax(busy->copied, own.copied);
	}
}

/* A pass is full when the channel with the largest pieces fills a slot. */
static double pass_slots(const struct sched *sched,
			 const struct sched_cost *cost)
{
	double most = 0;
	uint32_t k;

	for (k = 0; k < (uint32_t)sched->shape.n_channels; k++)
		most = fmax(most, sched_chunk_share(sched, cost, k));
	return 1 / most;
}

/* What of @late lies behind @soon; no less than 0 where they differ in kind. */
static struct sched_work further(const struct sched_work *late,
				 const struct sched_work *soon)
{
	struct sched_work work;
	int t;

	for (t = 0; t < SCHED_TIERS; t++) {
		work.messages[t] = fmax(0, late->messages[t] -
						   soon->messages[t]);
		work.moved[t] = fmax(0, late->moved[t] - soon->moved[t]);
	}
	work.folded = fmax(0, late->folded - soon->folded);
	work.copied = fmax(0, late->copied - soon->copied);
	return work;
}

static int count(struct sched *const *scheds, const struct sched_cost *cost,
		 struct sched_stats *stats)
{
	int err = 0;
	int i;

	stats->is_in_place = is_in_place(scheds, cost);
	stats->pass_slots = pass_slots(scheds[0], cost);
	count_busiest(scheds, cost, stats);
	for (i = 0; i < 2 && !err; i++) {
		struct sched_work ends[TRACE_PASSES] = {{.messages = {0}}};
		double bytes = i ? stats->pass_slots * (double)cost->slot_bytes
				 : 0;

		err = sched_trace(scheds, cost, bytes, stats->is_in_place,
				  ends);
		stats->first[i] = ends[0];
		stats->again[i] = further(&ends[TRACE_PASSES - 1],
					  &ends[TRACE_PASSES - 2]);
	}
	return err;
}

int sched_stats_trace(const struct sched_shape *shape,
		      const struct sched_cost *cost, struct sched_stats *stats)
{
	struct sched **scheds = base_alloc((size_t)shape->n_ranks,
					   sizeof(struct sched *));
	int err = scheds ? 0 : WREATH_ENOMEM;
	int r;

	memset(stats, 0, sizeof(*stats));
	for (r = 0; r < shape->n_ranks && !err; r++)
		err = sched_make(shape, r, &scheds[r]);
	if (!err)
		err = count(scheds, cost, stats);
	for (r = 0; scheds && r < shape->n_ranks; r++)
		sched_free(scheds[r]);
	base_free(scheds);
	return err;
}

int sched_stats_make(const struct sched_shape *shape,
		     const struct sched_cost *cost, struct sched_stats *stats)
{
	return sched_stats_scaled(shape, cost, SCHED_TRACE_RANKS_MAX, stats);
}
