/* SPDX-License-Identifier: MIT */
/* wreath perf: measure a collective, and check its results. */
#include <signal.h>
#include <stdlib.h>

#include "bench/perf_measure.h"
#include "topo/topo.h"

static void apply(const struct perf_options *options)
{
	char seconds[32];

	if (!options->timeout_s)
		return;
	snprintf(seconds, sizeof(seconds), "%llds",
		 (long long)options->timeout_s);
	setenv("WREATH_TIMEOUT", seconds, 1);
}

int perf_main(int argc, char **argv)
{
	static struct perf_options options;
	static struct perf_report report;
	int status = perf_options_read(argc, argv, &options);
	int shown;

	if (status)
		return status - 1;
	options.n_cores = topo_n_cores();
	apply(&options);
	if (!perf_memory_exists(&options))
		return BENCH_USAGE;
	if (!perf_report_open(&options, &report))
		return BENCH_USAGE;
	if (options.is_launched)
		status = perf_launched(&options, &report);
	else
		status = perf_local(&options, &report);
	shown = perf_report_close(&report);
	if (status)
		return status;
	if (report.is_interrupted)
		return 128 + SIGINT;
	return shown;
}
