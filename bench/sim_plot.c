/* SPDX-License-Identifier: MIT */
/* Bus bandwidth and time against size, a curve for each engine. */
#include <string.h>

#include "bench/sim.h"

/* The points as here-documents; those that have no result are left out. */
static unsigned int put_data(const struct sim_report *report, FILE *to)
{
	unsigned int drawn = 0;
	int algo, i;

	for (algo = 0; algo < SCHED_N_ALGOS; algo++) {
		for (i = 0; i < report->n_rows; i++) {
			const struct sim_row *row = &report->rows[i];

			if (row->algo != algo || row->refused[0] ||
			    !row->sim.time_ps)
				continue;
			if (!(drawn >> algo & 1))
				fprintf(to, "$curve%d << END\n", algo);
			drawn |= 1u << algo;
			fprintf(to, "%llu %.6g %.6g\n",
				(unsigned long long)row->bytes,
				sim_busbw(report->options, row),
				(double)row->sim.time_ps / 1e6);
		}
		if (drawn >> algo & 1)
			fprintf(to, "END\n");
	}
	return drawn;
}

static void put_panel(FILE *to, unsigned int drawn, int column)
{
	const char *comma = "";
	int algo;

	fprintf(to, "plot ");
	for (algo = 0; algo < SCHED_N_ALGOS; algo++) {
		if (!(drawn >> algo & 1))
			continue;
		fprintf(to, "%s$curve%d using 1:%d with linespoints lw 2 title "
			    "'%s'", comma, algo, column,
			sched_algo_name((enum sched_algo)algo));
		comma = ", ";
	}
	fprintf(to, "\n");
}

static void put_script(const void *arg, FILE *to, const char *path)
{
	const struct sim_report *report = arg;
	/* In gnuplot's text an underscore would lower what follows. */
	char name[32];
	unsigned int drawn = put_data(report, to);
	size_t i;

	snprintf(name, sizeof(name), "%s",
		 sched_collective_name((enum sched_collective)
				       report->options->collective));
	for (i = 0; name[i]; i++)
		if (name[i] == '_')
			name[i] = '-';
	bench_plot_start(to, path);
	fprintf(to, "set title '%s of %d ranks, predicted: bus bandwidth'\n",
		name, report->options->fabric.n_ranks);
	put_panel(to, drawn, 2);
	fprintf(to, "set logscale y\nset ylabel 'us' offset 1\n"
		    "set title '%s of %d ranks, predicted: time'\n", name,
		report->options->fabric.n_ranks);
	put_panel(to, drawn, 3);
	if (strcmp(path, "-"))
		fprintf(to, "unset multiplot\n");
}

bool sim_plot(const struct sim_report *report, const char *path)
{
	const struct bench_plot plot = {"wreath sim", path, "wreath-sim",
					put_script, report};

	return bench_plot(&plot);
}
