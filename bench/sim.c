/* SPDX-License-Identifier: MIT */
/* wreath sim: schedules in virtual time over a described fabric. */
#include <stdlib.h>
#include <string.h>

#include "bench/sim.h"

/* Steps whose path is kept: 56 bytes each, twice that while they move. */
#define TRACE_MAX (1u << 22)
/* Enough to know how long a pass takes, in some seconds. */
#define MESSAGES_ENOUGH 8000000

static void run_row(const struct sim_options *options, struct sim_row *row)
{
	const struct sched_fabric *fabric = &options->fabric;
	struct sched_shape shape = {
		.collective = (enum sched_collective)options->collective,
		.algo = (enum sched_algo)row->algo,
		.n_ranks = fabric->n_ranks,
		.n_channels = (int)options->n_channels,
		.root = (int)options->root,
		.n_nodes = fabric->n_nodes,
	};
	struct sched_sim_args args = {
		.shape = &shape,
		.fabric = fabric,
		.bytes = row->bytes,
		.is_plain = options->is_plain,
		.trace_max = TRACE_MAX,
		.messages_enough = MESSAGES_ENOUGH,
		.messages_max = options->limit,
	};

	row->refused[0] = '\0';
	if (sched_simulate(&args, &row->sim)) {
		snprintf(row->refused, sizeof(row->refused), "%s",
			 wreath_error_text());
		memset(&row->sim, 0, sizeof(row->sim));
	}
}

static int run_all(const struct sim_options *options,
		   struct sim_report *report)
{
	int i, algo, n_good = 0;
	bool is_table = !options->json && !options->csv;

	if (is_table)
		sim_print_head(options);
	for (i = 0; i < options->n_bytes; i++) {
		for (algo = 0; algo < SCHED_N_ALGOS; algo++) {
			struct sim_row *row = &report->rows[report->n_rows];

			if (!(options->algos >> algo & 1))
				continue;
			row->algo = algo;
			row->bytes = options->bytes[i];
			run_row(options, row);
			n_good += !row->refused[0];
			report->n_rows++;
			if (is_table)
				sim_print_row(options, row);
			fflush(stdout);
		}
	}
	return n_good ? BENCH_OK : BENCH_FAILED;
}

int sim_main(int argc, char **argv)
{
	struct sim_options options;
	struct sim_report report = {.options = &options};
	int status = sim_parse(argc, argv, &options);
	int i;

	if (status)
		return status - 1;
	report.rows = calloc((size_t)options.n_bytes * SCHED_N_ALGOS,
			     sizeof(*report.rows));
	if (!report.rows)
		return BENCH_FAILED;
	status = run_all(&options, &report);
	if (options.json)
		sim_print_json(&report);
	else if (options.csv)
		sim_print_csv(&report);
	else if (options.shows_path || report.n_rows == 1)
		for (i = 0; i < report.n_rows; i++)
			sim_print_path(&options, &report.rows[i]);
	if (options.plot && !status && !sim_plot(&report, options.plot))
		status = BENCH_FAILED;
	for (i = 0; i < report.n_rows; i++)
		sched_sim_release(&report.rows[i].sim);
	free(report.rows);
	return status;
}
