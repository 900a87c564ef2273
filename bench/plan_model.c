/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of `wreath plan`.
 *
 * A group of dp ranks reduces the gradient in buckets, each when the backward
 * pass has filled it: evenly over the window, the last one at its end.  So the
 * last one is never hidden, and the others are as far as the network keeps up.
 */
#include <math.h>

#include "bench/plan.h"

/* What a message costs a rank's processor; the order of a post and a poll. */
#define OVERHEAD 0.2e-6
/*
 * A RoCEv2 packet has 56 bytes more around its 4,096 than an InfiniBand one:
 * 82 (preamble and gap 20, Ethernet 18, IPv4 20, UDP 8, BTH 12, ICRC 4) against
 * 26 (LRH 8, BTH 12, ICRC 4, VCRC 2).
 */
#define ROCE_PACKET ((4096.0 + 26) / (4096 + 82))
/* A NIC that can be bought, in bits a second. */
static const double nics[] = {100e9, 200e9, 400e9, 800e9, 1600e9, 3200e9};
/* A rank has no use for more NICs than slots of a machine take. */
#define RAILS_OF_RANK_MAX 8
#define BUCKET_MIN (1 << 20)

void plan_need(const struct plan_input *input, struct plan_need *need)
{
	double n = (double)input->dp;

	need->gradient = input->params * input->bytes /
			 (double)(input->tp * input->pp);
	need->traffic = 2 * (n - 1) / n * need->gradient;
	need->window = input->step_ms / 1e3 * input->overlap;
	need->rate = need->traffic / need->window;
	need->n_nodes = (int)((input->dp + input->dp_per_node - 1) /
			      input->dp_per_node);
	need->n_ranks = n * (double)(input->tp * input->pp);
	need->n_buckets = ceil(need->gradient / (double)input->bucket);
}

/* What is asked, with one of its numbers changed. */
struct trial {
	const struct plan_input *input;
	double rails, nic, bucket, step;
};

static struct sched_cost cost_of(const struct trial *trial,
				 enum plan_fabric_name fabric)
{
	const struct plan_input *input = trial->input;
	struct sched_cost cost;

	sched_cost_default(&cost, 1, 1);
	cost.tiers[0] = (struct sched_tier){input->latency[PLAN_NODE], OVERHEAD,
					    input->nvlink};
	/* The NICs of a node are shared by all its ranks, of all groups. */
	cost.tiers[1] = (struct sched_tier){
		input->latency[fabric], OVERHEAD,
		trial->nic * input->efficiency * trial->rails /
			(double)input->ranks_per_node *
			(fabric == PLAN_ROCE ? ROCE_PACKET : 1)};
	cost.n_rails = 1;
	cost.fold = cost.copy = input->memory;
	cost.slot_bytes = input->slot;
	return cost;
}

/* When the last bucket is through, if the backward pass ends at @window. */
static void run_buckets(const struct plan_need *need, double bucket,
			double window, const struct sched_stats *stats,
			const struct sched_cost *cost,
			struct plan_engine *engine)
{
	double n_full = ceil(need->gradient / bucket) - 1;
	double rest = need->gradient - n_full * bucket;
	double gap = window * bucket / need->gradient;
	double last = sched_seconds(stats, cost, (size_t)ceil(rest));
	double each = n_full > 0 ? sched_seconds(stats, cost, (size_t)bucket)
				 : last;
	double end = window + last;

	/* Either the network is idle before the last, or busy from the first,
	 * or from the last but one. */
	if (n_full > 0) {
		end = fmax(end, gap + n_full * each + last);
		end = fmax(end, n_full * gap + each + last);
	}
	engine->bucket = each;
	engine->total = n_full * each + last;
	engine->exposed = end - window;
	engine->hidden = engine->total - engine->exposed;
	if (engine->hidden < 0)
		engine->hidden = 0;
}

struct counted {
	struct sched_stats stats[SCHED_N_ALGOS];
	bool has_form[SCHED_N_ALGOS];
};

/* All engines; the one that is best. */
static enum sched_algo try_engines(const struct trial *trial,
				   const struct plan_need *need,
				   enum plan_fabric_name fabric,
				   const struct counted *counted,
				   struct plan_engine *engines)
{
	struct sched_cost cost = cost_of(trial, fabric);
	double window = trial->step * trial->input->overlap;
	enum sched_algo best = SCHED_N_ALGOS;
	int i;

	for (i = 0; i < SCHED_N_ALGOS; i++) {
		engines[i].has_form = counted->has_form[i];
		if (!counted->has_form[i])
			continue;
		run_buckets(need, trial->bucket, window, &counted->stats[i],
			    &cost, &engines[i]);
		if (best == SCHED_N_ALGOS ||
		    engines[i].exposed < engines[best].exposed)
			best = (enum sched_algo)i;
	}
	return best;
}

static double least_exposed(const struct trial *trial,
			    const struct plan_need *need,
			    enum plan_fabric_name fabric,
			    const struct counted *counted)
{
	struct plan_engine engines[SCHED_N_ALGOS] = {0};
	enum sched_algo best = try_engines(trial, need, fabric, counted,
					   engines);

	return engines[best].exposed;
}

static bool is_enough(const struct trial *trial, double exposed)
{
	return exposed <= trial->step * trial->input->max_exposed / 100;
}

/* One number at a time is turned up until it suffices. */
static void advise(const struct trial *asked, const struct plan_need *need,
		   enum plan_fabric_name fabric, const struct counted *counted,
		   struct plan_advice *advice)
{
	double most = (double)asked->input->ranks_per_node * RAILS_OF_RANK_MAX;
	struct trial trial = *asked;
	double exposed;
	size_t i;

	while (fabric != PLAN_NODE && !advice->rails && ++trial.rails <= most)
		if (is_enough(&trial, least_exposed(&trial, need, fabric,
						    counted)))
			advice->rails = trial.rails;
	trial = *asked;
	for (i = 0; fabric != PLAN_NODE && !advice->nic &&
	     i < sizeof(nics) / sizeof(nics[0]); i++) {
		trial.nic = nics[i] / 8;
		if (trial.nic > asked->nic &&
		    is_enough(&trial, least_exposed(&trial, need, fabric,
						    counted)))
			advice->nic = trial.nic;
	}
	trial = *asked;
	advice->bucket_exposed = INFINITY;
	for (trial.bucket = BUCKET_MIN; trial.bucket < 2 * need->gradient;
	     trial.bucket *= 2) {
		exposed = least_exposed(&trial, need, fabric, counted);
		if (exposed >= advice->bucket_exposed)
			continue;
		advice->bucket_exposed = exposed;
		advice->bucket = trial.bucket;
	}
	trial = *asked;
	/* By a tenth more each; a step of a day hides everything. */
	while (!advice->step && (trial.step *= 1.1) < 86400)
		if (is_enough(&trial, least_exposed(&trial, need, fabric,
						    counted)))
			advice->step = trial.step;
}

/* Each engine's schedule is counted once, whatever the rates. */
static bool count(const struct sched_shape *shape,
		  const struct sched_cost *cost, struct counted *counted)
{
	struct sched_shape form = *shape;
	bool any = false;
	int i;

	for (i = 0; i < SCHED_N_ALGOS; i++) {
		form.algo = (enum sched_algo)i;
		counted->has_form[i] =
			!sched_stats_make(&form, cost, &counted->stats[i]);
		any |= counted->has_form[i];
	}
	return any;
}

bool plan_predict(const struct plan_input *input, const struct plan_need *need,
		  enum plan_fabric_name fabric, struct plan_result *result)
{
	struct sched_shape shape = {
		.collective = SCHED_ALL_REDUCE,
		.n_ranks = (int)input->dp,
		.n_channels = 1,
		.n_nodes = fabric == PLAN_NODE ? 1 : need->n_nodes,
	};
	struct trial trial = {input, (double)input->rails, input->nic,
			      (double)input->bucket, input->step_ms / 1e3};
	struct sched_cost cost = cost_of(&trial, fabric);
	struct counted counted = {.has_form = {false}};
	int tier = shape.n_nodes > 1;

	*result = (struct plan_result){
		.fabric = fabric,
		.rate = cost.tiers[tier].bandwidth,
		.latency = cost.tiers[tier].latency,
	};
	if (!count(&shape, &cost, &counted))
		return false;
	result->best = try_engines(&trial, need, fabric, &counted,
				   result->engines);
	result->suffices = is_enough(&trial,
				     result->engines[result->best].exposed);
	if (!result->suffices)
		advise(&trial, need, fabric, &counted, &result->advice);
	return true;
}
