/* SPDX-License-Identifier: MIT */
/* All algorithms of a measurement side by side, size by size. */
#include "bench/perf.h"

/* Is it the same measurement by another algorithm? */
static bool is_alike(const struct perf_result *a, const struct perf_result *b)
{
	return a->kind == b->kind && a->type == b->type && a->op == b->op &&
	       a->root == b->root && a->bytes == b->bytes &&
	       a->in_place == b->in_place;
}

/* The last of them that @algo was asked for, or NULL. */
static const struct perf_result *find(const struct perf_report *report,
				      const struct perf_result *like, int algo)
{
	size_t i;

	for (i = report->n_results; i-- > 0;) {
		const struct perf_result *result = &report->results[i];

		if (result->algo == algo && is_alike(result, like))
			return result;
	}
	return NULL;
}

static bool is_first(const struct perf_report *report, size_t at)
{
	size_t i;

	for (i = 0; i < at; i++) {
		if (is_alike(&report->results[i], &report->results[at]))
			return false;
	}
	return true;
}

static bool has_any(const struct perf_report *report, int algo)
{
	size_t i;

	for (i = 0; i < report->n_results; i++) {
		if (report->results[i].algo == algo)
			return true;
	}
	return false;
}

static bool has_predictions(const struct perf_report *report)
{
	size_t i;
	int a;

	for (i = 0; i < report->n_results; i++) {
		for (a = 0; a < SCHED_N_ALGOS; a++) {
			if (report->results[i].predicted_us[a] > 0)
				return true;
		}
	}
	return false;
}

static void print_heads(const struct perf_report *report, int width)
{
	const struct perf_options *options = report->options;
	int i;

	printf("#\n# Algorithms side by side: time in us%s\n",
	       has_predictions(report) ? ", and what was predicted" : "");
	printf("# %10s  %8s  %6s  %4s  %5s", "size", "type", "redop", "root",
	       "place");
	for (i = 0; i < options->n_algos; i++) {
		if (has_any(report, options->algos[i]))
			printf("  %*s", width,
			       perf_algo_names[options->algos[i]]);
	}
	printf("  %-10s", "best");
	if (has_any(report, 0))
		printf("  %-10s  %s", "auto is", "auto/best");
	printf("\n");
}

/* @chosen is auto's, which has the predictions of all, or NULL. */
static void print_time(const struct perf_result *result,
		       const struct perf_result *chosen, int width)
{
	double predicted = 0;
	char text[64];

	if (result && chosen && result->used)
		predicted = chosen->predicted_us[result->used - 1];
	if (!result)
		snprintf(text, sizeof(text), "N/A");
	else if (predicted > 0)
		snprintf(text, sizeof(text), "%.2f (%.1f)", result->us.avg,
			 predicted);
	else
		snprintf(text, sizeof(text), "%.2f", result->us.avg);
	printf("  %*s", width, text);
}

/* Returns auto's time by the best one's. */
static double print_row(const struct perf_report *report,
			const struct perf_result *like, int width)
{
	const struct perf_options *options = report->options;
	const struct perf_result *chosen = find(report, like, 0);
	const struct perf_result *best = NULL;
	double ratio = 1;
	int i;

	printf("# %10llu  %8s  %6s  %4d  %5s",
	       (unsigned long long)like->bytes, perf_result_type(like),
	       perf_result_op(like), like->root, like->in_place ? "in" : "out");
	for (i = 0; i < options->n_algos; i++) {
		const struct perf_result *result;

		if (!has_any(report, options->algos[i]))
			continue;
		result = find(report, like, options->algos[i]);
		print_time(result, chosen, width);
		if (result && options->algos[i] &&
		    (!best || result->us.avg < best->us.avg))
			best = result;
	}
	printf("  %-10s", best ? perf_result_algo(best) : "N/A");
	if (chosen && best && best->us.avg > 0)
		ratio = chosen->us.avg / best->us.avg;
	if (chosen)
		printf("  %-10s  %.2f", perf_result_algo(chosen), ratio);
	printf("\n");
	return ratio;
}

void perf_summary(const struct perf_report *report)
{
	int width = has_predictions(report) ? 18 : 10;
	const struct perf_result *at = NULL;
	double most = 0;
	size_t i;

	if (report->options->n_algos < 2 || !report->n_results)
		return;
	print_heads(report, width);
	for (i = 0; i < report->n_results; i++) {
		double ratio;

		if (!is_first(report, i))
			continue;
		ratio = print_row(report, &report->results[i], width);
		if (ratio > most) {
			most = ratio;
			at = &report->results[i];
		}
	}
	if (at && has_any(report, 0))
		printf("# Auto at its worst    : %.2f times the best, at %llu "
		       "bytes\n", most, (unsigned long long)at->bytes);
	printf("#\n");
}
