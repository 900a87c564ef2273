/* SPDX-License-Identifier: MIT */
/*
 * What counts of a shape: its chains, and what its busiest rank has to do.
 * Small shapes are made and traced; the counts of a large one follow from a
 * small one of the same kind, since each algorithm's number of steps grows by
 * a known law.
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
	const struct sched_shape *shape = &sched->shape;
	uint32_t i, j, k;

	for (i = 0; i < sched->n_lanes; i++) {
		const struct sched_lane *lane = &sched->lanes[i];
		double share = sched_channel_share(shape, cost,
						   (int)lane->channel) *
			       shape->n_channels / sched->n_chunks;

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
	int k;

	for (k = 0; k < sched->shape.n_channels; k++)
		most = fmax(most,
			    sched_channel_share(&sched->shape, cost, k) *
				    sched->shape.n_channels / sched->n_chunks);
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

static int trace_all(const struct sched_shape *shape,
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

/* ---- large shapes ---- */

/* How something grows with the ranks, or the nodes. */
enum growth {
	CONSTANT,
	LINEAR,	      /* n - 1 */
	PROPORTIONAL, /* n */
	LOGARITHMIC,
	SHARE, /* 1 - 1/n: all but the own part of n */
	PIECE, /* 1/n */
};

/*
 * The messages of the chain within a node and between nodes, those of a rank;
 * and the bytes of both.
 */
static const struct law {
	enum growth inside, between, busy;
	enum growth chain_moved, busy_moved;
	bool is_cut;  /* more ranks, more and shorter pieces */
	bool in_node; /* within a node: grows with the node's ranks */
	bool to_all;  /* a rank's messages: one to each other rank */
} laws[SCHED_N_ALGOS] = {
	[SCHED_RING] = {LINEAR, PROPORTIONAL, LINEAR, SHARE, SHARE, true},
	[SCHED_ONESHOT] = {CONSTANT, CONSTANT, LINEAR, CONSTANT, LINEAR,
			   .to_all = true},
	[SCHED_TWOSHOT] = {CONSTANT, CONSTANT, LINEAR, PIECE, SHARE, true,
			   .to_all = true},
	[SCHED_TREE] = {LOGARITHMIC, LOGARITHMIC, CONSTANT, LOGARITHMIC,
			CONSTANT},
	[SCHED_SPLIT_RING] = {LINEAR, PROPORTIONAL, LINEAR, SHARE, SHARE,
			      true, true},
	[SCHED_HALVING] = {LOGARITHMIC, LOGARITHMIC, LOGARITHMIC, SHARE, SHARE,
			   true},
	[SCHED_DIRECT] = {CONSTANT, CONSTANT, LINEAR, PIECE, SHARE, true,
			  .to_all = true},
};

static double grown(enum growth growth, double from, double to)
{
	/* One alone has nothing that could grow. */
	if (from < 2)
		return 1;
	switch (growth) {
	case CONSTANT:
		break;
	case LINEAR:
		return (to - 1) / (from - 1);
	case PROPORTIONAL:
		return to / from;
	case LOGARITHMIC:
		return ceil(log2(to)) / ceil(log2(from));
	case SHARE:
		return (1 - 1 / to) / (1 - 1 / from);
	case PIECE:
		return from / to;
	}
	return 1;
}

static void scale(struct sched_work *work, double inside, double between,
		  double moved)
{
	int t;

	for (t = 0; t < SCHED_TIERS; t++) {
		work->messages[t] *= t ? between : inside;
		work->moved[t] *= moved;
	}
	/* What has come is folded or copied. */
	work->folded *= moved;
	work->copied *= moved;
}

static void grow_busiest(struct sched_stats *stats, const struct law *law,
			 const struct sched_shape *small,
			 const struct sched_shape *large)
{
	double from = small->n_ranks;
	double to = large->n_ranks;
	double in = from / small->n_nodes;   /* ranks of a node */
	double out = to / fmax(large->n_nodes, 1);
	double busy = grown(law->busy, from, to);
	double inside, between;
	int t;

	scale(&stats->busy, busy, busy, grown(law->busy_moved, from, to));
	if (!law->to_all)
		return;
	/* The messages of a node grow with it, the others with the rest. */
	inside = grown(LINEAR, in, out) / busy;
	between = from > in ? (to - out) / (from - in) / busy : 1;
	for (t = 0; t < SCHED_TIERS; t++) {
		stats->busy.messages[t] *= t ? between : inside;
		stats->busy.moved[t] *= t ? between : inside;
	}
}

/*
 * A shape of the same kind with no more than @n_ranks_max ranks.  Two nodes
 * are a special case of many algorithms; three and more are not.
 */
static struct sched_shape smaller(const struct sched_shape *shape,
				  int n_ranks_max)
{
	struct sched_shape small = *shape;
	int n_nodes = shape->n_nodes > 1 ? shape->n_nodes : 1;
	int each = (shape->n_ranks + n_nodes - 1) / n_nodes;

	if (n_nodes > 3 && n_nodes > n_ranks_max / each)
		n_nodes = n_ranks_max / each < 3 ? 3 : n_ranks_max / each;
	if (each > n_ranks_max / n_nodes)
		each = n_ranks_max / n_nodes;
	small.nodes = NULL;
	small.n_nodes = n_nodes;
	small.n_ranks = each * n_nodes;
	small.root = 0;
	return small;
}

int sched_stats_scaled(const struct sched_shape *shape,
		       const struct sched_cost *cost, int n_ranks_max,
		       struct sched_stats *stats)
{
	struct sched_shape small;
	const struct law *law;
	double from, to, inside, between, moved;
	int err, i;

	if (shape->n_ranks <= n_ranks_max)
		return trace_all(shape, cost, stats);
	small = smaller(shape, n_ranks_max);
	err = sched_check_shape(shape, 0);
	if (!err)
		err = trace_all(&small, cost, stats);
	if (err)
		return err;
	law = &laws[shape->algo];
	from = small.n_ranks;
	to = shape->n_ranks;
	inside = law->in_node ? grown(law->inside, from / small.n_nodes,
				      to / fmax(shape->n_nodes, 1))
			      : grown(law->inside, from, to);
	between = grown(law->between, small.n_nodes, shape->n_nodes);
	moved = grown(law->chain_moved, from, to);
	for (i = 0; i < 2; i++) {
		scale(&stats->first[i], inside, between, moved);
		scale(&stats->again[i], inside, between, moved);
	}
	grow_busiest(stats, law, &small, shape);
	if (law->is_cut)
		stats->pass_slots *= to / from;
	return 0;
}

int sched_stats_make(const struct sched_shape *shape,
		     const struct sched_cost *cost, struct sched_stats *stats)
{
	return sched_stats_scaled(shape, cost, SCHED_TRACE_RANKS_MAX, stats);
}
