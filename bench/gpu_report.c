/* SPDX-License-Identifier: MIT */
/* What `wreath gpu` prints: tables as the figures come, or JSON. */
#include "bench/gpu.h"
#include "bench/perf.h"

static const char *const ways[] = {"gpu", "from host", "to host"};

/* Which table is open, and has a row. */
enum section { NONE, FOLDS, LAUNCHES };
static enum section section;

static void open_section(const struct gpu_bench *bench, enum section which)
{
	bool as_json = bench->options->as_json;
	bool is_open = section == which;

	section = which;
	if (as_json && is_open)
		printf(",\n");
	if (is_open)
		return;
	if (as_json) {
		printf(which == FOLDS ? "  \"folds\": [\n"
				      : "\n  ],\n  \"launches\": [\n");
	} else if (which == FOLDS) {
		printf("#\n# Folds, beside copies of as many bytes, read and "
		       "written, GB/s; with the host,\n# beside copies from "
		       "and to it, of whose bytes only the host's count\n");
		printf("# %8s %9s %7s %11s %9s (%9s %9s) %9s (%9s %9s) %6s\n",
		       "type", "operands", "sources", "operand", "fold", "min",
		       "max", "copy", "min", "max", "ratio");
	} else {
		printf("#\n# Chunks of two sources: alone, from the call to "
		       "the word that it is done; and\n# when others are under "
		       "way, by how many share a launch; us of a chunk\n");
		printf("# %8s %12s %9s (%9s %9s) %9s (%9s %9s) %9s\n", "chunk",
		       "jobs/launch", "time", "min", "max", "calls", "min",
		       "max", "GB/s");
	}
}

static void json_spread(const char *name, const struct gpu_spread *spread)
{
	printf("\"%s\": {\"median\": %.6g, \"min\": %.6g, \"max\": %.6g}",
	       name, spread->median, spread->min, spread->max);
}

static void on_fold(const struct gpu_bench *bench,
		    const struct gpu_fold_row *row)
{
	open_section(bench, FOLDS);
	if (bench->options->as_json) {
		printf("    {\"type\": \"%s\", \"operands\": \"%s\", "
		       "\"sources\": %d, \"bytes\": %llu,\n     ",
		       perf_types[row->type].name, ways[row->way], row->n_src,
		       (unsigned long long)row->bytes);
		json_spread("fold_gbs", &row->fold_gbs);
		printf(",\n     ");
		json_spread("copy_gbs", &row->copy_gbs);
		printf(", \"ratio\": %.4f}", row->ratio);
	} else {
		printf("  %8s %9s %7d %11llu %9.2f (%9.2f %9.2f) %9.2f "
		       "(%9.2f %9.2f) %6.3f\n",
		       perf_types[row->type].name, ways[row->way], row->n_src,
		       (unsigned long long)row->bytes, row->fold_gbs.median,
		       row->fold_gbs.min, row->fold_gbs.max,
		       row->copy_gbs.median, row->copy_gbs.min,
		       row->copy_gbs.max, row->ratio);
	}
	fflush(stdout);
}

static void on_launch(const struct gpu_bench *bench,
		      const struct gpu_launch_row *row)
{
	char jobs[16] = "alone";

	open_section(bench, LAUNCHES);
	if (row->n_jobs)
		snprintf(jobs, sizeof(jobs), "%d", row->n_jobs);
	if (bench->options->as_json) {
		printf("    {\"bytes\": %llu, \"jobs_a_launch\": %d,\n     ",
		       (unsigned long long)row->bytes, row->n_jobs);
		json_spread("us", &row->us);
		printf(",\n     ");
		json_spread("host_us", &row->host_us);
		printf(", \"gbs\": %.6g}", row->gbs);
	} else {
		printf("  %8llu %12s %9.2f (%9.2f %9.2f) %9.2f (%9.2f %9.2f) "
		       "%9.2f\n",
		       (unsigned long long)row->bytes, jobs, row->us.median,
		       row->us.min, row->us.max, row->host_us.median,
		       row->host_us.min, row->host_us.max, row->gbs);
	}
	fflush(stdout);
}

void gpu_report_head(struct gpu_bench *bench)
{
	const struct mem_gpu_info *info = mem_gpu_about(bench->mem);

	bench->on_fold = on_fold;
	bench->on_launch = on_launch;
	if (!bench->options->as_json) {
		printf("# wreath version %s\n", bench_version());
		printf("# GPU %d: [%s] %s, compute capability %d.%d\n",
		       mem_gpu_number(bench->mem), info->pci, info->name,
		       info->major, info->minor);
		printf("# Folds: %s%s\n", info->has_kernels
						  ? "by kernels"
						  : "staged, by the "
						    "processor: ",
		       info->has_kernels ? "" : info->why);
		return;
	}
	printf("{\n  \"version\": \"%s\",\n  \"gpu\": %d,\n  \"name\": ",
	       bench_version(), mem_gpu_number(bench->mem));
	bench_json_string(stdout, info->name);
	printf(",\n  \"pci\": ");
	bench_json_string(stdout, info->pci);
	printf(",\n  \"capability\": \"%d.%d\",\n  \"kernels\": %s,\n",
	       info->major, info->minor, info->has_kernels ? "true" : "false");
}

void gpu_report_foot(const struct gpu_bench *bench, int error)
{
	if (bench->options->as_json) {
		if (section == NONE)
			printf("  \"folds\": [\n");
		if (section != LAUNCHES)
			printf("\n  ],\n  \"launches\": [");
		printf("\n  ],\n  \"error\": ");
		if (error)
			bench_json_string(stdout, wreath_error_text());
		else
			printf("null");
		printf("\n}\n");
	} else if (!error) {
		printf("#\n# Least ratio of two sources on the GPU: %.3f%s\n",
		       bench->worst_ratio,
		       bench->options->min_ratio <= 0 ? ""
		       : bench->worst_ratio < bench->options->min_ratio
			       ? " FAILED" : " OK");
	}
}
