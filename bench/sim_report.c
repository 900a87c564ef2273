/* SPDX-License-Identifier: MIT */
/* What wreath sim shows: a table, paths, CSV, JSON. */
#include <string.h>

#include "bench/sim.h"

/* Hops of a path at its beginning and its end that are shown. */
#define HOPS_SHOWN 8

static double seconds(uint64_t ps)
{
	return (double)ps / 1e12;
}

static double algbw(const struct sim_row *row)
{
	return row->sim.time_ps ? (double)row->bytes /
					  seconds(row->sim.time_ps) / 1e9 : 0;
}

double sim_busbw(const struct sim_options *options, const struct sim_row *row)
{
	return algbw(row) *
	       sched_bus_factor((enum sched_collective)options->collective,
				options->fabric.n_ranks);
}

static double bound_share(const struct sim_row *row)
{
	return row->sim.time_ps ? (double)row->sim.bound_ps /
					  (double)row->sim.time_ps : 0;
}

/* "400 Gb/s" */
static void put_rail(const char *name, const struct sched_rail *rail)
{
	printf("#   %s: %.6g Gb/s each way, %.6g us\n", name,
	       (double)rail->rate * 8 / 1e9, (double)rail->latency_ps / 1e6);
}

void sim_print_head(const struct sim_options *options)
{
	const struct sched_fabric *fabric = &options->fabric;
	char name[64];
	int i;

	printf("# wreath %s sim %s, %d rank%s on %d node%s, %s\n",
	       bench_version(),
	       sched_collective_name(
		       (enum sched_collective)options->collective),
	       fabric->n_ranks, fabric->n_ranks == 1 ? "" : "s",
	       fabric->n_nodes, fabric->n_nodes == 1 ? "" : "s",
	       sched_topology_name(fabric->topology));
	for (i = 0; i < fabric->n_rails; i++) {
		snprintf(name, sizeof(name), "rail %d of each %s", i,
			 fabric->is_per_rank ? "rank" : "node");
		put_rail(name, &fabric->rails[i]);
	}
	if (fabric->in_node.rate)
		put_rail("inside a node, each rank", &fabric->in_node);
	if (options->lost)
		printf("#   rails that a node has lost are used by none\n");
	printf("#   %lld channel%s, slots of %llu bytes, %d of them\n",
	       (long long)options->n_channels,
	       options->n_channels == 1 ? "" : "s",
	       (unsigned long long)fabric->slot_bytes, fabric->n_slots);
	printf("#\n# %12s  %-10s  %12s  %8s  %8s  %6s  %6s  %s\n", "bytes",
	       "algo", "us", "algbw", "busbw", "bound", "used",
	       "busiest link");
}

void sim_print_row(const struct sim_options *options,
		   const struct sim_row *row)
{
	const char *algo = sched_algo_name((enum sched_algo)row->algo);

	if (row->refused[0]) {
		printf("  %12llu  %-10s  # %s\n",
		       (unsigned long long)row->bytes, algo, row->refused);
		return;
	}
	printf("  %12llu  %-10s  %12.2f  %8.2f  %8.2f  %5.1f%%  %5.1f%%  %s\n",
	       (unsigned long long)row->bytes, algo,
	       (double)row->sim.time_ps / 1e6, algbw(row),
	       sim_busbw(options, row), 100 * bound_share(row),
	       100 * row->sim.utilisation, row->sim.busiest);
}

static const char *const parts[SCHED_SIM_N_PARTS] = {
	[SCHED_SIM_HOST] = "host", [SCHED_SIM_WIRE] = "wire",
	[SCHED_SIM_LATENCY] = "latency", [SCHED_SIM_QUEUE] = "queue",
	[SCHED_SIM_RETURN] = "credit",
};

static void print_hop(const struct sched_sim_hop *hop)
{
	static const char *const why[] = {
		[SCHED_SIM_START] = "at the start",
		[SCHED_SIM_BUSY] = "after its step before",
		[SCHED_SIM_MESSAGE] = "waited for a message of rank",
		[SCHED_SIM_CREDIT] = "waited for credit of rank",
	};

	printf("  %12.3f us  rank %d lane %u step %u", (double)hop->start_ps /
	       1e6, hop->rank, hop->lane, hop->step);
	if (hop->pass)
		printf(" pass %llu", (unsigned long long)hop->pass);
	printf(": %s", why[hop->cause]);
	if (hop->cause == SCHED_SIM_MESSAGE || hop->cause == SCHED_SIM_CREDIT)
		printf(" %d", hop->from);
	printf(", ran %.3f us\n", (double)(hop->end_ps - hop->start_ps) / 1e6);
}

void sim_print_path(const struct sim_options *options,
		    const struct sim_row *row)
{
	const struct sched_sim *sim = &row->sim;
	uint32_t i;

	if (row->refused[0])
		return;
	printf("\n%s of %llu bytes: %llu messages, %llu steps of %d ranks, "
	       "%llu pass%s%s\n", sched_algo_name((enum sched_algo)row->algo),
	       (unsigned long long)row->bytes,
	       (unsigned long long)sim->n_messages,
	       (unsigned long long)sim->n_steps, sim->n_simulated,
	       (unsigned long long)sim->n_passes,
	       sim->n_passes == 1 ? "" : "es",
	       sim->n_simulated < options->fabric.n_ranks
		       ? ", the others being alike" : "");
	if (!sim->n_hops) {
		printf("the critical path is too long to be kept\n");
		return;
	}
	printf("critical path, %u steps:", sim->n_hops);
	for (i = 0; i < SCHED_SIM_N_PARTS; i++)
		printf(" %s %.1f%%", parts[i], sim->time_ps
		       ? 100 * (double)sim->part_ps[i] / (double)sim->time_ps
		       : 0);
	printf("\n");
	for (i = 0; i < sim->n_hops; i++) {
		if (!options->shows_path && i == HOPS_SHOWN &&
		    sim->n_hops > 2 * HOPS_SHOWN) {
			i = sim->n_hops - HOPS_SHOWN;
			printf("  ... %u more (--path shows all) ...\n",
			       i - HOPS_SHOWN);
		}
		print_hop(&sim->hops[i]);
	}
}

void sim_print_csv(const struct sim_report *report)
{
	const struct sim_options *options = report->options;
	int i;

	printf("collective,ranks,nodes,algo,bytes,us,algbw_gbs,busbw_gbs,"
	       "bound_us,utilisation,busiest\n");
	for (i = 0; i < report->n_rows; i++) {
		const struct sim_row *row = &report->rows[i];

		printf("%s,%d,%d,%s,%llu,", sched_collective_name(
			       (enum sched_collective)options->collective),
		       options->fabric.n_ranks, options->fabric.n_nodes,
		       sched_algo_name((enum sched_algo)row->algo),
		       (unsigned long long)row->bytes);
		if (row->refused[0])
			printf(",,,,,\n");
		else
			printf("%.6f,%.6g,%.6g,%.6f,%.6g,\"%s\"\n",
			       (double)row->sim.time_ps / 1e6, algbw(row),
			       sim_busbw(options, row),
			       (double)row->sim.bound_ps / 1e6,
			       row->sim.utilisation, row->sim.busiest);
	}
}

static void json_row(const struct sim_options *options,
		     const struct sim_row *row)
{
	const struct sched_sim *sim = &row->sim;
	int i;

	printf("    {\"algo\": \"%s\", \"bytes\": %llu",
	       sched_algo_name((enum sched_algo)row->algo),
	       (unsigned long long)row->bytes);
	if (row->refused[0]) {
		printf(", \"refused\": ");
		bench_json_string(stdout, row->refused);
		printf("}");
		return;
	}
	printf(", \"us\": %.6f, \"algbw_gbs\": %.6g, \"busbw_gbs\": %.6g, "
	       "\"bound_us\": %.6f, \"bound_share\": %.6g,\n     "
	       "\"busiest\": ", (double)sim->time_ps / 1e6, algbw(row),
	       sim_busbw(options, row), (double)sim->bound_ps / 1e6,
	       bound_share(row));
	bench_json_string(stdout, sim->busiest);
	printf(", \"utilisation\": %.6g, \"messages\": %llu, \"passes\": %llu,"
	       " \"ranks_simulated\": %d,\n     \"path_steps\": %u, "
	       "\"path_us\": {", sim->utilisation,
	       (unsigned long long)sim->n_messages,
	       (unsigned long long)sim->n_passes, sim->n_simulated,
	       sim->n_hops);
	for (i = 0; i < SCHED_SIM_N_PARTS; i++)
		printf("%s\"%s\": %.6f", i ? ", " : "", parts[i],
		       (double)sim->part_ps[i] / 1e6);
	printf("}}");
}

void sim_print_json(const struct sim_report *report)
{
	const struct sim_options *options = report->options;
	const struct sched_fabric *fabric = &options->fabric;
	int i;

	printf("{\"version\": \"%s\", \"collective\": \"%s\", \"ranks\": %d, "
	       "\"nodes\": %d, \"topology\": \"%s\", \"channels\": %lld,\n"
	       "  \"results\": [\n", bench_version(),
	       sched_collective_name(
		       (enum sched_collective)options->collective),
	       fabric->n_ranks, fabric->n_nodes,
	       sched_topology_name(fabric->topology),
	       (long long)options->n_channels);
	for (i = 0; i < report->n_rows; i++) {
		json_row(options, &report->rows[i]);
		printf("%s\n", i + 1 < report->n_rows ? "," : "");
	}
	printf("  ]\n}\n");
}
