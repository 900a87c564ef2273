/* SPDX-License-Identifier: MIT */
#include "draft.h"
#include "sim_run.h"

double sched_bus_factor(enum sched_collective collective, int n_ranks)
{
	double others = (double)(n_ranks - 1) / n_ranks;

	switch (collective) {
	case SCHED_ALL_REDUCE:
	case SCHED_BARRIER:
		return 2 * others;
	case SCHED_REDUCE_SCATTER:
	case SCHED_ALL_GATHER:
	case SCHED_GATHER:
	case SCHED_SCATTER:
	case SCHED_ALL_TO_ALL:
		return others;
	case SCHED_REDUCE:
	case SCHED_BROADCAST:
	case SCHED_EXCHANGE:
	case SCHED_N_COLLECTIVES:
		break;
	}
	return 1;
}

/*
 * Those who move the vector between them, and the rate that each has: nodes by
 * all their rails, or ranks within the node.  What a node must send it sends
 * once, however many ranks it has, but for all_to_all.
 */
static uint64_t bound_ps(const struct sched_sim_args *args)
{
	const struct sched_fabric *fabric = args->fabric;
	double rate = 0, bytes = (double)args->bytes;
	int i, n = fabric->n_nodes;

	for (i = 0; i < fabric->n_rails; i++)
		rate += (double)fabric->rails[i].rate;
	if (fabric->is_per_rank)
		rate *= (double)fabric->n_ranks / n;
	if (n == 1) {
		n = fabric->n_ranks;
		rate = fabric->in_node.rate ? (double)fabric->in_node.rate
					    : rate / (fabric->is_per_rank
						      ? n : 1);
	} else if (args->shape->collective == SCHED_ALL_TO_ALL) {
		bytes *= (double)fabric->n_ranks / n;
	}
	if (n < 2 || rate <= 0)
		return 0;
	return (uint64_t)(sched_bus_factor(args->shape->collective, n) *
			  bytes / rate * 1e12);
}

/*
 * Until the end: credit for the last messages may still wait then, which
 * nobody waits for.  All else is through, so what is left has no gaps.
 */
static uint64_t busy_ps(const struct sim *sim, uint32_t at)
{
	const struct sim_link *link = &sim->net.links[at];
	uint64_t late_ps = link->free_ps > sim->end_ps
				   ? link->free_ps - sim->end_ps
				   : 0;

	return link->busy_ps > late_ps ? link->busy_ps - late_ps : 0;
}

static void find_busiest(const struct sim *sim, struct sched_sim *out)
{
	uint32_t i, at = 0;

	for (i = 1; i < sim->net.n_links; i++)
		if (busy_ps(sim, i) > busy_ps(sim, at))
			at = i;
	if (!sim->net.n_links || !sim->end_ps)
		return;
	sim_net_name(&sim->net, at, out->busiest, sizeof(out->busiest));
	out->utilisation = (double)busy_ps(sim, at) / (double)sim->end_ps;
}

static void sim_free(struct sim *sim)
{
	sim_classes_release(sim);
	base_free(sim->ranks);
	base_free(sim->lanes);
	base_free(sim->txs);
	base_free(sim->rxs);
	base_free(sim->paths);
	base_free(sim->sent_traced);
	base_free(sim->messages);
	base_free(sim->traces);
	sim_net_release(&sim->net);
	sim_queue_release(&sim->queue);
	base_free(sim);
}

static struct sim *sim_new(const struct sched_sim_args *args)
{
	struct sim *sim = base_alloc(1, sizeof(*sim));

	if (!sim)
		return NULL;
	sim->args = args;
	sim->shape = args->shape;
	sim->fabric = args->fabric;
	sim->free_message = SIM_NONE;
	sim->last = SIM_NONE;
	sim->reduce_per_byte = sim_per_byte(args->fabric->reduce_rate);
	sim->copy_per_byte = sim_per_byte(args->fabric->copy_rate);
	return sim;
}

/* How long half of the passes take. */
static int run_half(const struct sched_sim_args *args, uint64_t n_passes,
		    uint64_t *ps)
{
	struct sched_sim_args half = *args;
	struct sim *sim;
	int err;

	half.trace_max = 0;
	sim = sim_new(&half);
	if (!sim)
		return WREATH_ENOMEM;
	sim->passes_max = n_passes / 2;
	err = sim_build(sim);
	if (!err)
		err = sim_run(sim);
	*ps = sim->end_ps;
	sim_free(sim);
	return err;
}

/* The passes that were not run take what the last of those that were took. */
static int add_passes(const struct sim *sim, struct sched_sim *out)
{
	uint64_t n = sim->n_passes;
	uint64_t half_ps = 0;
	int err;

	if (n == sim->cut.n_passes)
		return 0;
	err = run_half(sim->args, n, &half_ps);
	if (err)
		return err;
	out->time_ps += (uint64_t)((double)(sim->end_ps - half_ps) /
				   (double)(n - n / 2) *
				   (sim_cut_passes(&sim->cut) - (double)n));
	return 0;
}

static int run(struct sim *sim, struct sched_sim *out)
{
	int err = sim_build(sim);

	if (!err)
		err = sim_run(sim);
	if (!err)
		err = sim_trace_path(sim, out);
	if (err)
		return err;
	out->time_ps = sim->end_ps;
	out->bound_ps = bound_ps(sim->args);
	out->n_messages = sim->n_sent;
	out->n_steps = sim->n_steps;
	out->n_passes = sim->cut.n_passes;
	out->n_passes_run = sim->n_passes;
	out->n_simulated = (int)sim->n_ranks;
	out->is_even = sim->cut.is_even;
	find_busiest(sim, out);
	return add_passes(sim, out);
}

int sched_simulate(const struct sched_sim_args *args, struct sched_sim *out)
{
	struct sched_sim result = {0};
	struct sim *sim;
	int err = sched_check_shape(args->shape, 0);

	if (err)
		return err;
	if (args->shape->n_ranks != args->fabric->n_ranks)
		return base_error(WREATH_EINVAL,
				  "the schedule is for %d ranks, and the "
				  "fabric has %d", args->shape->n_ranks,
				  args->fabric->n_ranks);
	sim = sim_new(args);
	if (!sim)
		return WREATH_ENOMEM;
	err = run(sim, &result);
	sim_free(sim);
	if (err)
		sched_sim_release(&result);
	else
		*out = result;
	return err;
}

void sched_sim_release(struct sched_sim *sim)
{
	base_free(sim->hops);
	*sim = (struct sched_sim){0};
}
