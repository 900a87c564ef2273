/* SPDX-License-Identifier: MIT */
/*
 * What `wreath perf` shows: nccl-tests' table, which perf_table.c writes; all
 * that is ours stands in lines that begin with #.
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
	return perf_algbw(result) *
	       sched_bus_factor(perf_collectives[result->kind].sched, n_ranks);
}

const char *perf_result_algo(const struct perf_result *result)
{
	return perf_algo_names[result->used];
}

const char *perf_result_type(const struct perf_result *result)
{
	return result->kind == PERF_BARRIER ? "none"
					    : perf_types[result->type].name;
}

const char *perf_result_op(const struct perf_result *result)
{
	return result->op == PERF_NO_OP ? "none" : perf_op_names[result->op];
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
		perf_result_type(result), perf_result_op(result),
		(unsigned long long)result->bytes,
		result->in_place ? "in place" : "out of place");
	fflush(stderr);
	report->has_progress = true;
}

static void print_wrong(const struct perf_report *report,
			const struct perf_result *result)
{
	const struct perf_check *check = &result->check;
	unsigned long long first = check->first;
	int rank = result->wrong_rank;

	if (!result->is_checked || !check->wrong)
		return;
	fprintf(stderr, "wreath perf: rank %d: ", rank);
	switch (check->fault) {
	case PERF_CHANGED:
		fprintf(stderr, "the input was changed: element %llu is %.17g, "
				"and was %.17g\n",
			first, check->got, check->want);
		break;
	case PERF_WRITTEN:
		fprintf(stderr, "the output was written, and rank %d is the "
				"root: element %llu is %.17g\n",
			result->root, first, check->got);
		break;
	case PERF_EARLY:
		fprintf(stderr, "the barrier let it through when %g of %g "
				"ranks had come\n",
			check->got, check->want);
		break;
	case PERF_WRONG:
		fprintf(stderr, "element %llu of %llu is %.17g instead of "
				"%.17g\n", first,
			(unsigned long long)result->count *
				(perf_collectives[result->kind]
						 .recvs_blocks
					 ? (unsigned int)report->n_ranks : 1u),
			check->got, check->want);
		break;
	}
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
		perf_table_head(report);
	places[report->n_places++] = *place;
	if (report->n_ranks < report->n_places)
		report->n_ranks = report->n_places;
	if (report->table)
		perf_table_place(place);
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
			perf_table_end_row(report);
			perf_table_columns(report, event->result.algo);
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
			perf_table_result(report, &event->result);
		print_wrong(report, &event->result);
		break;
	}
}

static void print_busbw(const struct perf_report *report, double busbw,
			bool is_slow)
{
	const struct perf_result *best = NULL;
	const char *verdict = "";
	size_t i;

	for (i = 0; i < report->n_results; i++) {
		if (!best || perf_algbw(&report->results[i]) >
				     perf_algbw(best))
			best = &report->results[i];
	}
	if (report->options->min_busbw > 0)
		verdict = is_slow ? "FAILED" : "OK";
	printf("# Avg bus bandwidth    : %g %s\n", busbw, verdict);
	if (best)
		printf("# Peak bus bandwidth   : %g at %llu bytes\n",
		       perf_busbw(best, report->n_ranks),
		       (unsigned long long)best->bytes);
}

static void print_foot(const struct perf_report *report, double busbw,
		       bool is_slow)
{
	char program[64];

	/* What was not measured is not OK. */
	if (report->n_measured)
		printf("# Out of bounds values : %lld %s\n",
		       (long long)report->n_wrong,
		       report->n_wrong ? "FAILED" : "OK");
	else if (!report->error[0] && !report->is_interrupted)
		printf("# No size holds an element for every rank\n");
	if (report->options->kind == PERF_OVERLAP)
		perf_overlap_foot(report);
	else if (report->n_measured)
		print_busbw(report, busbw, is_slow);
	if (report->is_interrupted)
		printf("# Interrupted\n");
	perf_program(report->options->kind, program, sizeof(program));
	printf("#\n# Collective test concluded: %s\n", program);
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
		perf_table_end_row(report);
	if (report->table && report->n_places && !report->is_interrupted)
		perf_summary(report);
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
