/* SPDX-License-Identifier: MIT */
/* Bus bandwidth and latency against size, drawn by gnuplot. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void put_script(const struct perf_report *report, FILE *to,
		       const char *path)
{
	const struct perf_result *curves[CURVES_MAX];
	int n = find_curves(report, curves);
	bool is_text = !strcmp(path, "-");

	put_data(report, to, curves, n);
	if (is_text)
		fprintf(to, "set terminal dumb size 79, 24\n");
	else
		fprintf(to, "set terminal svg size 1000, 420 font 'sans,12' "
			    "background 'white'\nset output '%s'\n"
			    "set multiplot layout 1, 2\n", path);
	/* gnuplot's own binary prefixes leave a gap where there is none. */
	fprintf(to, "set logscale x 2\nset xtics ('1' 1, '16' 16, '256' 256, "
		    "'4K' 4096, '64K' 65536, '1M' 2**20, '16M' 2**24, "
		    "'256M' 2**28, '4G' 2.0**32)\nset grid\n"
		    "set key top left%s\nset xlabel 'bytes'\n"
		    "set ylabel 'GB/s' offset 1\n",
		is_text ? "" : " font ',9'");
	put_panel(to, curves, n, 2, "bus bandwidth");
	fprintf(to, "set logscale y\nset ylabel 'us' offset 1\n");
	put_panel(to, curves, n, 3, "time");
	if (!is_text)
		fprintf(to, "unset multiplot\n");
}

/* gnuplot with its input from us; NULL where there is none to be had. */
static FILE *start_gnuplot(pid_t *pid)
{
	int fds[2];
	FILE *to;

	if (pipe(fds))
		return NULL;
	*pid = fork();
	if (!*pid) {
		dup2(fds[0], 0);
		close(fds[0]);
		close(fds[1]);
		execlp("gnuplot", "gnuplot", "-", (char *)NULL);
		_exit(127);
	}
	close(fds[0]);
	to = *pid < 0 ? NULL : fdopen(fds[1], "w");
	if (!to)
		close(fds[1]);
	return to;
}

static bool write_script(const struct perf_report *report, const char *path)
{
	char name[4096];
	FILE *to;

	snprintf(name, sizeof(name), "%s.gp",
		 strcmp(path, "-") ? path : "wreath-perf");
	to = fopen(name, "w");
	if (to)
		put_script(report, to, path);
	if (!to || fclose(to)) {
		fprintf(stderr, "wreath perf: cannot write %s: %s\n", name,
			strerror(errno));
		return false;
	}
	fprintf(stderr, "wreath perf: gnuplot is not installed; the plot with "
			"its data is in %s, for `gnuplot %s`\n", name, name);
	return false;
}

bool perf_plot(const struct perf_report *report, const char *path)
{
	const struct perf_result *curves[CURVES_MAX];
	void (*old)(int);
	pid_t pid = -1;
	FILE *to;
	int how = 0;

	if (!find_curves(report, curves)) {
		fprintf(stderr, "wreath perf: --plot: no size above zero, and "
				"so nothing to draw\n");
		return false;
	}
	/* It would end the name within gnuplot's quotes. */
	if (strchr(path, '\'')) {
		fprintf(stderr, "wreath perf: --plot: a name with ' in it "
				"cannot be given to gnuplot\n");
		return false;
	}
	old = signal(SIGPIPE, SIG_IGN);
	fflush(NULL);
	to = start_gnuplot(&pid);
	if (to) {
		put_script(report, to, path);
		fclose(to);
	}
	while (pid > 0 && waitpid(pid, &how, 0) < 0 && errno == EINTR)
		;
	signal(SIGPIPE, old);
	if (!to || (WIFEXITED(how) && WEXITSTATUS(how) == 127))
		return write_script(report, path);
	if (!WIFEXITED(how) || WEXITSTATUS(how)) {
		fprintf(stderr, "wreath perf: gnuplot could not draw %s\n",
			path);
		return false;
	}
	return true;
}
