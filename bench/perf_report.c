/* SPDX-License-Identifier: MIT */
/*
 * What `wreath perf` shows: nccl-tests' table, to the letter where programs
 * read it; all that is ours stands in lines that begin with #.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/perf.h"

/* A sweep without end keeps the results up to here for the files. */
#define RESULTS_MAX 1000000

double perf_algbw(const struct perf_result *result)
{
	if (result->us.avg <= 0)
		return 0;
	return (double)result->bytes / result->us.avg / 1e3;
}

double perf_busbw(const struct perf_result *result, int n_ranks)
{
	return perf_algbw(result) * 2 * (n_ranks - 1) / n_ranks;
}

const char *perf_result_algo(const struct perf_result *result)
{
	return perf_algo_names[result->used];
}

static bool open_file(const char *path, FILE **out)
{
	FILE *file = path && strcmp(path, "-") ? fopen(path, "w") : stdout;

	if (path)
		*out = file;
	if (file)
		return true;
	fprintf(stderr, "wreath perf: cannot write %s: %s\n", path,
		strerror(errno));
	return false;
}

static bool open_files(struct perf_report *report)
{
	if (!open_file(report->options->json, &report->json) ||
	    !open_file(report->options->csv, &report->csv))
		return false;
	if (report->json == stdout || report->csv == stdout)
		report->table = NULL;
	return true;
}

bool perf_report_open(const struct perf_options *options,
		      struct perf_report *report)
{
	memset(report, 0, sizeof(*report));
	report->options = options;
	report->table = stdout;
	report->n_ranks = (int)(options->n_procs * options->n_threads);
	/* Of launched ranks only the one that hears of places writes files. */
	return options->is_launched || open_files(report);
}

static void clear_progress(struct perf_report *report)
{
	if (report->has_progress)
		fprintf(stderr, "\r\033[K");
	report->has_progress = false;
}

static void show_progress(struct perf_report *report,
			  const struct perf_result *result)
{
	if (report->options->quiet || !isatty(STDERR_FILENO))
		return;
	/* On one terminal it would stand in the middle of an open row. */
	if (report->table && report->is_row_open && isatty(STDOUT_FILENO))
		return;
	fprintf(stderr, "\r\033[K%s %s %llu bytes %s ...",
		perf_types[result->type].name, perf_op_names[result->op],
		(unsigned long long)result->bytes,
		result->in_place ? "in place" : "out of place");
	fflush(stderr);
	report->has_progress = true;
}

static void print_head(struct perf_report *report)
{
	const struct perf_options *options = report->options;
	char iters[48];

	if (options->n_iters)
		snprintf(iters, sizeof(iters), "%lld",
			 (long long)options->n_iters);
	else
		snprintf(iters, sizeof(iters), "0(%g s)", options->seconds);
	printf("# wreath version %s\n", bench_version());
	printf("# Collective test starting: all_reduce_perf\n");
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
	printf("#\n# Using devices\n");
}

static void print_place(const struct perf_place *place)
{
	size_t name = strcspn(place->device, " ");

	printf("#  Rank %2d Group %2d Pid %6d on %10s device %2d [%.*s]%s\n",
	       place->rank, 0, place->pid, place->host, 0, (int)name,
	       place->device, place->device + name);
}

static void print_columns(const struct perf_report *report, int algo)
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

static void end_row(struct perf_report *report)
{
	if (!report->is_row_open)
		return;
	print_none(report);
	printf("\n");
	report->is_row_open = false;
}

static void print_wrong(const struct perf_result *result)
{
	const struct perf_check *check = &result->check;

	if (!result->is_checked || !check->wrong)
		return;
	if (check->is_input)
		fprintf(stderr, "wreath perf: rank %d: the input was changed: "
				"element %llu is %.17g, and was %.17g\n",
			result->wrong_rank, (unsigned long long)check->first,
			check->got, check->want);
	else
		fprintf(stderr, "wreath perf: rank %d: element %llu of %llu "
				"is %.17g instead of %.17g\n",
			result->wrong_rank, (unsigned long long)check->first,
			(unsigned long long)result->count, check->got,
			check->want);
}

static void print_result(struct perf_report *report,
			 const struct perf_result *result)
{
	if (!result->in_place || !report->is_row_open) {
		end_row(report);
		printf("%12lli  %12lli  %8s  %6s  %6s",
		       (long long)result->bytes, (long long)result->count,
		       perf_types[result->type].name,
		       perf_op_names[result->op], "-1");
		report->is_row_open = true;
		if (result->in_place)
			print_none(report);
	}
	print_half(report, result);
	if (result->in_place) {
		printf("\n");
		report->is_row_open = false;
	} else if (report->options->halves == PERF_OUT) {
		end_row(report);
	}
	fflush(stdout);
}

static void keep(struct perf_report *report, const struct perf_result *result)
{
	size_t max = report->max_results ? 2 * report->max_results : 64;
	struct perf_result *results;

	if (report->n_results == report->max_results) {
		results = max > RESULTS_MAX
				  ? NULL
				  : realloc(report->results,
					    max * sizeof(*results));
		if (!results)
			return;
		report->results = results;
		report->max_results = max;
	}
	report->results[report->n_results++] = *result;
}

static void take_place(struct perf_report *report,
		       const struct perf_place *place)
{
	struct perf_place *places = realloc(report->places,
					    ((size_t)report->n_places + 1) *
						    sizeof(*places));

	if (!places)
		return;
	report->places = places;
	/* With the second algorithm the ranks come again. */
	if (report->n_places > place->rank)
		return;
	if (!report->n_places && report->options->is_launched)
		report->has_failed = !open_files(report);
	if (report->table && !report->n_places)
		print_head(report);
	places[report->n_places++] = *place;
	if (report->n_ranks < report->n_places)
		report->n_ranks = report->n_places;
	if (report->table)
		print_place(place);
}

void perf_report_event(struct perf_report *report,
		       const struct perf_event *event)
{
	clear_progress(report);
	switch (event->kind) {
	case PERF_PLACE:
		take_place(report, &event->place);
		break;
	case PERF_ALGO:
		if (report->table) {
			end_row(report);
			print_columns(report, event->result.algo);
			fflush(stdout);
		}
		break;
	case PERF_BEGIN:
		show_progress(report, &event->result);
		break;
	case PERF_RESULT:
		keep(report, &event->result);
		if (event->result.is_checked)
			report->n_wrong += event->result.check.wrong;
		report->sum_busbw += perf_busbw(&event->result,
						report->n_ranks);
		report->n_measured++;
		if (report->table)
			print_result(report, &event->result);
		print_wrong(&event->result);
		break;
	}
}

static void print_foot(struct perf_report *report, double busbw, bool is_slow)
{
	const struct perf_result *best = NULL;
	const char *verdict = "";
	size_t i;

	end_row(report);
	for (i = 0; i < report->n_results; i++) {
		if (!best || perf_algbw(&report->results[i]) >
				     perf_algbw(best))
			best = &report->results[i];
	}
	if (report->options->min_busbw > 0)
		verdict = is_slow ? "FAILED" : "OK";
	printf("# Out of bounds values : %lld %s\n",
	       (long long)report->n_wrong, report->n_wrong ? "FAILED" : "OK");
	printf("# Avg bus bandwidth    : %g %s\n", busbw, verdict);
	if (best)
		printf("# Peak bus bandwidth   : %g at %llu bytes\n",
		       perf_busbw(best, report->n_ranks),
		       (unsigned long long)best->bytes);
	if (report->is_interrupted)
		printf("# Interrupted\n");
	printf("#\n# Collective test concluded: all_reduce_perf\n");
}

/* Everything has been written, also what the buffers still held. */
static bool close_file(FILE *file, const char *path)
{
	bool ok = !fflush(file) && !ferror(file);

	if (file != stdout && fclose(file))
		ok = false;
	if (!ok)
		fprintf(stderr, "wreath perf: cannot write %s: %s\n", path,
			strerror(errno));
	return ok;
}

int perf_report_close(struct perf_report *report)
{
	const struct perf_options *options = report->options;
	double busbw = report->n_measured
			       ? report->sum_busbw / (double)report->n_measured
			       : 0;
	bool is_slow = busbw < options->min_busbw;
	bool ok = !report->has_failed;

	clear_progress(report);
	if (report->table && report->n_places)
		print_foot(report, busbw, is_slow);
	if (report->json) {
		perf_write_json(report, report->json);
		ok = close_file(report->json, options->json);
	}
	if (report->csv) {
		perf_write_csv(report, report->csv);
		ok = close_file(report->csv, options->csv) && ok;
	}
	if (report->table)
		ok = close_file(stdout, "standard output") && ok;
	if (options->plot && report->n_results)
		ok = perf_plot(report, options->plot) && ok;
	free(report->places);
	free(report->results);
	if (!ok)
		return BENCH_FAILED;
	return report->n_wrong || is_slow ? BENCH_WRONG : BENCH_OK;
}
