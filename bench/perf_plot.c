/* SPDX-License-Identifier: MIT */
/* Bus bandwidth and latency against size, drawn by gnuplot. */
#include <string.h>

#include "bench/perf.h"

#define CURVES_MAX 64

/* What a curve's points have in common; one of them stands for all. */
static bool is_same_curve(const struct perf_result *a,
			  const struct perf_result *b)
{
	return a->algo == b->algo && a->type == b->type && a->op == b->op &&
	       a->root == b->root && a->in_place == b->in_place;
}

static int find_curves(const struct perf_report *report,
		       const struct perf_result **curves)
{
	int n = 0;
	size_t i;
	int c;

	for (i = 0; i < report->n_results && n < CURVES_MAX; i++) {
		const struct perf_result *result = &report->results[i];

		for (c = 0; c < n; c++) {
			if (is_same_curve(curves[c], result))
				break;
		}
		/* A vector of no bytes has no place on a logarithmic axis. */
		if (c == n && result->bytes)
			curves[n++] = result;
	}
	return n;
}

/* The points as here-documents: a block for each curve. */
static void put_data(const struct perf_report *report, FILE *to,
		     const struct perf_result *const *curves, int n)
{
	size_t i;
	int c;

	for (c = 0; c < n; c++) {
		fprintf(to, "$curve%d << END\n", c);
		for (i = 0; i < report->n_results; i++) {
			const struct perf_result *result = &report->results[i];

			if (result->bytes && is_same_curve(curves[c], result))
				fprintf(to, "%llu %.6g %.6g\n",
					(unsigned long long)result->bytes,
					perf_busbw(result, report->n_ranks),
					result->us.avg);
		}
		fprintf(to, "END\n");
	}
}

static void put_curve(FILE *to, const struct perf_result *curve)
{
	fprintf(to, " with linespoints lw 2 title '%s %s",
		perf_algo_names[curve->algo], perf_result_type(curve));
	if (curve->op != PERF_NO_OP)
		fprintf(to, " %s", perf_result_op(curve));
	if (curve->root >= 0)
		fprintf(to, " root %d", curve->root);
	fprintf(to, ", %s'", curve->in_place ? "in place" : "out of place");
}

static void put_panel(FILE *to, const struct perf_result *const *curves, int n,
		      int column, const char *title)
{
	const char *name = perf_collectives[curves[0]->kind].name;
	int c;

	fprintf(to, "set title '");
	/* "all-reduce": an underscore makes gnuplot lower what follows. */
	for (; *name; name++)
		fputc(*name == '_' ? '-' : *name, to);
	fprintf(to, ": %s'\nplot ", title);
	for (c = 0; c < n; c++) {
		fprintf(to, "%s$curve%d using 1:%d", c ? ", " : "", c, column);
		put_curve(to, curves[c]);
	}
	fprintf(to, "\n");
}

static void put_script(const void *arg, FILE *to, const char *path)
{
	const struct perf_report *report = arg;
	const struct perf_result *curves[CURVES_MAX];
	int n = find_curves(report, curves);
	bool is_text = !strcmp(path, "-");

	put_data(report, to, curves, n);
	bench_plot_start(to, path);
	put_panel(to, curves, n, 2, "bus bandwidth");
	fprintf(to, "set logscale y\nset ylabel 'us' offset 1\n");
	put_panel(to, curves, n, 3, "time");
	if (!is_text)
		fprintf(to, "unset multiplot\n");
}

bool perf_plot(const struct perf_report *report, const char *path)
{
	const struct bench_plot plot = {"wreath perf", path, "wreath-perf",
					put_script, report};
	const struct perf_result *curves[CURVES_MAX];

	if (!find_curves(report, curves)) {
		fprintf(stderr, "wreath perf: --plot: no size above zero, and "
				"so nothing to draw\n");
		return false;
	}
	return bench_plot(&plot);
}
