/* SPDX-License-Identifier: MIT */
/* The table of `wreath perf`: nccl-tests', to the letter. */
#include <stdio.h>
#include <string.h>

#include "bench/perf.h"

void perf_table_head(const struct perf_report *report)
{
	const struct perf_options *options = report->options;
	char program[64];
	char iters[48];

	if (options->n_iters)
		snprintf(iters, sizeof(iters), "%lld",
			 (long long)options->n_iters);
	else
		snprintf(iters, sizeof(iters), "0(%g s)", options->seconds);
	printf("# wreath version %s\n", bench_version());
	perf_program(options->kind, program, sizeof(program));
	printf("# Collective test starting: %s\n", program);
	printf("# nThread %lld nGpus %lld minBytes %llu maxBytes %llu "
	       "step: %llu(%s) warmup iters: %lld iters: %s agg iters: %lld "
	       "validation: %lld graph: 0 unalign: %llu\n",
	       (long long)options->n_threads, (long long)options->n_procs,
	       (unsigned long long)options->min_bytes,
	       (unsigned long long)options->max_bytes,
	       (unsigned long long)(options->step_bytes
					    ? options->step_bytes
					    : (uint64_t)options->step_factor),
	       options->step_bytes ? "bytes" : "factor",
	       (long long)options->n_warmup, iters, (long long)options->n_agg,
	       (long long)options->n_checks,
	       (unsigned long long)options->unalign);
	if (options->memory != PERF_HOST)
		printf("# Memory: %s, %s\n",
		       perf_memory_names[options->memory],
		       options->blocking ? "calls block"
					 : "calls in order of a CUDA stream");
	printf("#\n# Using devices\n");
}

void perf_table_place(const struct perf_place *place)
{
	size_t name = strcspn(place->device, " ");
	size_t pci = strcspn(place->gpu_name, " ");

	printf("#  Rank %2d Group %2d Pid %6d on %10s device %2d ", place->rank,
	       0, place->pid, place->host, place->gpu < 0 ? 0 : place->gpu);
	if (place->gpu < 0)
		printf("[%.*s]%s\n", (int)name, place->device,
		       place->device + name);
	else
		printf("[%.*s]%s, %s\n", (int)pci, place->gpu_name,
		       place->gpu_name + pci, place->device);
}

void perf_table_columns(const struct perf_report *report, int algo)
{
	const char *more = report->options->per_iter
				   ? "    i_min    i_max    i_p99   i_cv%" : "";
	const char *units = report->options->per_iter
				    ? "     (us)     (us)     (us)"
				    : "";
	const char *gap = report->options->per_iter
				  ? "                                   " : "";

	printf("#\n");
	if (report->options->n_algos > 1 || algo)
		printf("# Algorithm: %s\n#\n", perf_algo_names[algo]);
	if (report->options->kind == PERF_OVERLAP) {
		perf_overlap_columns();
		return;
	}
	printf("# %73s%s%31s%s\n", "out-of-place", gap, "in-place", gap);
	printf("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type",
	       "redop", "root");
	printf("  %7s  %6s  %6s %7s%s", "time", "algbw", "busbw", "#wrong",
	       more);
	printf("  %7s  %6s  %6s %7s%s\n", "time", "algbw", "busbw", "#wrong",
	       more);
	printf("# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
	printf("  %7s  %6s  %6s  %6s%s", "(us)", "(GB/s)", "(GB/s)", "",
	       units);
	printf("  %7s  %6s  %6s%s%s\n", "(us)", "(GB/s)", "(GB/s)",
	       units[0] ? "        " : "", units);
}

/* A number in @width columns with as many decimals, 2 at most, as fit. */
static void print_fit(int width, double value)
{
	double limit = 1;
	int digits = 0;

	for (; value >= limit && digits < width; limit *= 10)
		digits++;
	printf("  %*.*f", width,
	       digits < width - 2 ? 2 : digits < width - 1 ? 1 : 0, value);
}

static void print_none(const struct perf_report *report)
{
	printf("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
	if (report->options->per_iter)
		printf("  %7s  %7s  %7s  %6s", "N/A", "N/A", "N/A", "N/A");
}

static void print_half(const struct perf_report *report,
		       const struct perf_result *result)
{
	print_fit(7, result->us.avg);
	print_fit(6, perf_algbw(result));
	print_fit(6, perf_busbw(result, report->n_ranks));
	if (result->is_checked)
		printf("  %6g", (double)result->check.wrong);
	else
		printf("  %6s", "N/A");
	if (!report->options->per_iter)
		return;
	print_fit(7, result->us.min);
	print_fit(7, result->us.max);
	print_fit(7, result->us.p99);
	print_fit(6, result->us.cv);
}

void perf_table_end_row(struct perf_report *report)
{
	if (!report->is_row_open)
		return;
	print_none(report);
	printf("\n");
	report->is_row_open = false;
}

void perf_table_result(struct perf_report *report,
		       const struct perf_result *result)
{
	if (result->kind == PERF_OVERLAP) {
		perf_overlap_row(result);
		fflush(stdout);
		return;
	}
	if (!result->in_place || !report->is_row_open) {
		perf_table_end_row(report);
		printf("%12lli  %12lli  %8s  %6s  %6d",
		       (long long)result->bytes, (long long)result->count,
		       perf_result_type(result),
		       perf_result_op(result), result->root);
		report->is_row_open = true;
		if (result->in_place)
			print_none(report);
	}
	print_half(report, result);
	if (result->in_place) {
		printf("\n");
		report->is_row_open = false;
	} else if (report->options->halves == PERF_OUT) {
		perf_table_end_row(report);
	}
	fflush(stdout);
}
