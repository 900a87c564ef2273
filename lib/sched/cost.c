/* SPDX-License-Identifier: MIT */
/*
 * From counts to seconds.
 *
 * A pass cannot end before its longest chain of messages has, nor before the
 * busiest rank has moved and folded its share.  Further passes follow at the
 * distance that the schedule, the busiest rank or the slots' window allow.
 */
#include <math.h>
#include <string.h>

#include "stats.h"

/*
 * Soft ports of one host, measured on a machine of 2 cores (Zen 5): a line
 * from core to core takes 0.2 us and costs a rank 0.05 us; a wait on a shared
 * core is a yield of about 5 us for each rank that is to have its turn; a core
 * reads 40 GB/s to fold and writes 20 GB/s out of the cache.  The slots are
 * those of the executor.
 */
#define NODE_LATENCY 0.1e-6
#define NODE_OVERHEAD 0.05e-6
#define YIELD 5e-6
#define FOLD_RATE 40e9
#define COPY_RATE 20e9
#define SLOT_BYTES (64 << 10)
#define SLOT_BYTES_CROWDED (256 << 10)
#define N_SLOTS 4
/* A verbs port that nobody has measured yet. */
#define RAIL_LATENCY 5e-6
#define RAIL_OVERHEAD 0.3e-6
#define RAIL_RATE 12.5e9

void sched_cost_default(struct sched_cost *cost, int n_ranks, int n_cores)
{
	int i;

	memset(cost, 0, sizeof(*cost));
	cost->crowd = n_cores > 0 && n_ranks > n_cores
			      ? (double)n_ranks / n_cores : 1;
	cost->wait = cost->crowd > 1 ? YIELD * cost->crowd : 0;
	cost->tiers[0].latency = NODE_LATENCY;
	cost->tiers[0].overhead = NODE_OVERHEAD;
	for (i = 1; i < SCHED_TIERS; i++) {
		cost->tiers[i].latency = RAIL_LATENCY;
		cost->tiers[i].overhead = RAIL_OVERHEAD;
		cost->tiers[i].bandwidth = RAIL_RATE;
	}
	cost->fold = FOLD_RATE;
	cost->copy = COPY_RATE;
	cost->slot_bytes = cost->crowd > 1 ? SLOT_BYTES_CROWDED : SLOT_BYTES;
	cost->n_slots = N_SLOTS;
	cost->is_mapped = true;
}

void sched_cost_measured(struct sched_cost *cost,
			 const struct sched_measured *all, int n)
{
	int i, t;

	cost->is_plain = n > 0;
	for (i = 0; i < n; i++) {
		cost->is_mapped &= all[i].maps_all != 0;
		cost->is_plain &= all[i].is_plain != 0;
	}
	for (t = 0; t < SCHED_TIERS; t++) {
		double latency = -1;
		double bandwidth = 0;
		double overhead = 0;

		for (i = 0; i < n; i++) {
			double rate = all[i].bandwidth[t];

			/* A NaN, which nobody sends, compares to nothing. */
			if (!(all[i].latency[t] >= 0))
				continue;
			latency = fmax(latency, all[i].latency[t]);
			overhead = fmax(overhead, all[i].overhead[t]);
			if (rate > 0 && (!(bandwidth > 0) || rate < bandwidth))
				bandwidth = rate;
		}
		if (latency < 0)
			continue;
		cost->tiers[t].latency = latency;
		cost->tiers[t].bandwidth = bandwidth;
		if (overhead > 0)
			cost->tiers[t].overhead = overhead;
	}
}

static bool is_time(double seconds)
{
	return isfinite(seconds) && seconds >= 0;
}

const char *sched_cost_fault(const struct sched_cost *cost)
{
	int i;

	for (i = 0; i < SCHED_TIERS; i++) {
		if (!is_time(cost->tiers[i].latency))
			return "a latency is no time";
		if (!is_time(cost->tiers[i].overhead))
			return "an overhead is no time";
		if (!is_time(cost->tiers[i].bandwidth))
			return "a bandwidth is no rate";
	}
	if (cost->n_rails < 0 || cost->n_rails > SCHED_RAILS_MAX)
		return "there are too many rails";
	if (!(cost->fold > 0) || !(cost->copy > 0))
		return "folding or copying has no speed";
	if (!is_time(cost->wait) || !is_time(cost->call))
		return "a wait is no time";
	if (!isfinite(cost->crowd) || !(cost->crowd >= 1))
		return "a core has less than one rank";
	if (!cost->slot_bytes || cost->n_slots < 1)
		return "there are no slots";
	return NULL;
}

double sched_channel_share(const struct sched_shape *shape,
			   const struct sched_cost *cost, int channel)
{
	double all = 0;
	double own = 0;
	int k;

	if (shape->n_nodes <= 1 || cost->n_rails <= 1)
		return 1.0 / shape->n_channels;
	for (k = 0; k < shape->n_channels; k++) {
		int rail = k % cost->n_rails;
		/* Channels of a rail share it. */
		int n_sharing = (shape->n_channels - rail + cost->n_rails - 1) /
				cost->n_rails;
		double rate = cost->weights[rail] > 0
				      ? cost->weights[rail]
				      : cost->tiers[1 + rail].bandwidth;

		/* Without a limit all are alike. */
		if (!(rate > 0))
			return 1.0 / shape->n_channels;
		all += rate / n_sharing;
		if (k == channel)
			own = rate / n_sharing;
	}
	return own / all;
}

/* The seconds of a chain, in which each message is waited for. */
double sched_chain(const struct sched_work *work,
		   const struct sched_cost *cost, double bytes)
{
	double seconds = (work->folded / cost->fold +
			  work->copied / cost->copy) * cost->crowd * bytes;
	int i;

	for (i = 0; i < SCHED_TIERS; i++) {
		const struct sched_tier *tier = &cost->tiers[i];

		seconds += work->messages[i] *
			   (tier->latency + 2 * tier->overhead + cost->wait);
		if (tier->bandwidth > 0)
			seconds += work->moved[i] * bytes / tier->bandwidth;
	}
	return seconds;
}

/*
 * A rank is one thread: what it does itself while its ports work delays, now
 * and then, what they could do next.
 */
#define DELAYED 0.1

/* The seconds of a rank that never waits; its ports work beside it. */
static double toil(const struct sched_work *work,
		   const struct sched_cost *cost, double bytes)
{
	double most = 0;
	double own = (work->folded / cost->fold + work->copied / cost->copy) *
		     bytes;
	int i;

	for (i = 0; i < SCHED_TIERS; i++) {
		const struct sched_tier *tier = &cost->tiers[i];

		own += work->messages[i] * tier->overhead;
		if (tier->bandwidth > 0)
			most = fmax(most,
				    work->moved[i] * bytes / tier->bandwidth);
	}
	own *= cost->crowd;
	return fmax(most, own) + DELAYED * fmin(most, own);
}

double sched_passes(const struct sched_stats *stats,
		    const struct sched_cost *cost, size_t bytes)
{
	double most = stats->pass_slots * (double)cost->slot_bytes;

	if (stats->is_in_place || (double)bytes <= most)
		return 1;
	return ceil((double)bytes / most);
}

/* Slots are free again after a round trip: what that allows at best. */
static double window(const struct sched_stats *stats,
		     const struct sched_cost *cost, double bytes)
{
	double most = 0;
	int i;

	for (i = 0; i < SCHED_TIERS; i++) {
		const struct sched_tier *tier = &cost->tiers[i];
		double trip = 2 * tier->latency;

		if (!(stats->busy.messages[i] > 0))
			continue;
		if (tier->bandwidth > 0)
			trip += bytes / stats->pass_slots / tier->bandwidth;
		most = fmax(most, trip);
	}
	return most / cost->n_slots;
}

double sched_seconds(const struct sched_stats *stats,
		     const struct sched_cost *cost, size_t bytes)
{
	double n_passes = sched_passes(stats, cost, bytes);
	double pass = (double)bytes / n_passes;
	double work = toil(&stats->busy, cost, pass);
	double first, again;

	first = fmax(sched_chain(&stats->first[0], cost, pass),
		     sched_chain(&stats->first[1], cost, pass));
	/* The first message has to come before the busiest rank is busy. */
	first = fmax(first, sched_chain(&stats->first[0], cost, 0) + work);
	if (n_passes <= 1)
		return cost->call + first;
	again = fmax(sched_chain(&stats->again[0], cost, pass),
		     sched_chain(&stats->again[1], cost, pass));
	again = fmax(again, fmax(work, window(stats, cost, pass)));
	return cost->call + first + (n_passes - 1) * again;
}

/* ---- what a tuning file says of the machine ---- */

static double *knob_of(struct sched_cost *cost, enum sched_knob knob, int tier)
{
	switch (knob) {
	case SCHED_LATENCY:
		return &cost->tiers[tier].latency;
	case SCHED_OVERHEAD:
		return &cost->tiers[tier].overhead;
	case SCHED_BANDWIDTH:
		return &cost->tiers[tier].bandwidth;
	case SCHED_FOLD:
		return &cost->fold;
	case SCHED_COPY:
		return &cost->copy;
	case SCHED_WAIT:
	case SCHED_N_KNOBS:
		break;
	}
	return &cost->wait;
}

void sched_tuning_apply(const struct sched_tuning *tuning,
			struct sched_cost *cost)
{
	int knob, tier;

	for (knob = 0; knob < SCHED_N_KNOBS; knob++)
		for (tier = 0; tier < SCHED_TIERS; tier++)
			if (tuning->is_given[knob][tier])
				*knob_of(cost, (enum sched_knob)knob, tier) =
					tuning->given[knob][tier];
}
