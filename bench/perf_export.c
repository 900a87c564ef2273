/* SPDX-License-Identifier: MIT */
/* Results as JSON and CSV, a record for each half of a row. */
#include "bench/perf.h"

/*
 * One number of a JSON object or a CSV line.  Six significant digits are more
 * than a measurement has; ours are never infinite.
 */
static void put_number(FILE *to, double value)
{
	fprintf(to, "%.6g", value);
}

static void put_times(FILE *to, const struct perf_times *us)
{
	fprintf(to, "{\"min\": ");
	put_number(to, us->min);
	fprintf(to, ", \"avg\": ");
	put_number(to, us->avg);
	fprintf(to, ", \"p50\": ");
	put_number(to, us->p50);
	fprintf(to, ", \"p99\": ");
	put_number(to, us->p99);
	fprintf(to, ", \"max\": ");
	put_number(to, us->max);
	fprintf(to, "}");
}

/* Of all algorithms that there is one for. */
static void put_predictions(FILE *to, const struct perf_result *result)
{
	bool is_open = false;
	int a;

	for (a = 0; a < SCHED_N_ALGOS; a++) {
		if (result->predicted_us[a] <= 0)
			continue;
		fprintf(to, "%s\"%s\": ", is_open ? ", "
						  : ",\n     "
						    "\"predicted_us\": {",
			perf_algo_names[a + 1]);
		put_number(to, result->predicted_us[a]);
		is_open = true;
	}
	if (is_open)
		fprintf(to, "}");
}

static void put_result(const struct perf_report *report,
		       const struct perf_result *result, FILE *to)
{
	fprintf(to, "    {\"algo\": \"%s\", \"asked\": \"%s\", "
		    "\"bytes\": %llu, \"count\": %llu,\n"
		    "     \"type\": \"%s\", \"op\": \"%s\", \"root\": %d, "
		    "\"in_place\": %s,\n     \"time_us\": ",
		perf_result_algo(result), perf_algo_names[result->algo],
		(unsigned long long)result->bytes,
		(unsigned long long)result->count, perf_result_type(result),
		perf_result_op(result), result->root,
		result->in_place ? "true" : "false");
	put_times(to, &result->us);
	if (result->kind == PERF_OVERLAP) {
		fprintf(to, ",\n     ");
		perf_overlap_json(result, to);
	}
	put_predictions(to, result);
	fprintf(to, ", \"iters\": %lld,\n     \"algbw_gbs\": ",
		(long long)result->n_iters);
	put_number(to, perf_algbw(result));
	fprintf(to, ", \"busbw_gbs\": ");
	put_number(to, perf_busbw(result, report->n_ranks));
	if (result->is_checked)
		fprintf(to, ", \"wrong\": %lld}",
			(long long)result->check.wrong);
	else
		fprintf(to, ", \"wrong\": null}");
}

static void put_places(const struct perf_report *report, FILE *to)
{
	int i;

	fprintf(to, "  \"devices\": [");
	for (i = 0; i < report->n_places; i++) {
		const struct perf_place *place = &report->places[i];

		fprintf(to, "%s\n    {\"rank\": %d, \"pid\": %d, \"host\": ",
			i ? "," : "", place->rank, place->pid);
		bench_json_string(to, place->host);
		fprintf(to, ", \"device\": ");
		bench_json_string(to, place->device);
		if (place->gpu >= 0) {
			fprintf(to, ", \"gpu\": %d, \"gpu_name\": ",
				place->gpu);
			bench_json_string(to, place->gpu_name);
		}
		fprintf(to, "}");
	}
	fprintf(to, "%s],\n", report->n_places ? "\n  " : "");
}

void perf_write_json(const struct perf_report *report, FILE *to)
{
	static const char *const buffers[] = {"alloc", "malloc", "register"};
	size_t i;

	fprintf(to, "{\n  \"version\": \"%s\",\n"
		    "  \"collective\": \"%s\",\n  \"ranks\": %d,\n"
		    "  \"buffers\": \"%s\",\n  \"memory\": \"%s\",\n"
		    "  \"touch\": %s,\n"
		    "  \"interrupted\": %s,\n  \"error\": ",
		bench_version(), perf_collectives[report->options->kind].name,
		report->n_ranks, buffers[report->options->buffers],
		perf_memory_names[report->options->memory],
		report->options->touch ? "true" : "false",
		report->is_interrupted ? "true" : "false");
	if (report->error[0])
		bench_json_string(to, report->error);
	else
		fprintf(to, "null");
	fprintf(to, ",\n");
	put_places(report, to);
	fprintf(to, "  \"results\": [");
	for (i = 0; i < report->n_results; i++) {
		fprintf(to, "%s\n", i ? "," : "");
		put_result(report, &report->results[i], to);
	}
	fprintf(to, "%s]\n}\n", report->n_results ? "\n  " : "");
}

void perf_write_csv(const struct perf_report *report, FILE *to)
{
	size_t i;

	if (report->options->kind == PERF_OVERLAP) {
		perf_overlap_csv(report, to);
		return;
	}
	fprintf(to, "version,collective,ranks,algo,bytes,count,type,op,"
		    "in_place,min_us,avg_us,p50_us,p99_us,max_us,iters,"
		    "algbw_gbs,busbw_gbs,wrong,root,asked,predicted_us,"
		    "memory\n");
	for (i = 0; i < report->n_results; i++) {
		const struct perf_result *result = &report->results[i];

		fprintf(to, "%s,%s,%d,%s,%llu,%llu,%s,%s,%d,"
			    "%.6g,%.6g,%.6g,%.6g,%.6g,%lld,%.6g,%.6g,",
			bench_version(), perf_collectives[result->kind].name,
			report->n_ranks, perf_result_algo(result),
			(unsigned long long)result->bytes,
			(unsigned long long)result->count,
			perf_result_type(result), perf_result_op(result),
			result->in_place,
			result->us.min, result->us.avg, result->us.p50,
			result->us.p99, result->us.max,
			(long long)result->n_iters, perf_algbw(result),
			perf_busbw(result, report->n_ranks));
		if (result->is_checked)
			fprintf(to, "%lld", (long long)result->check.wrong);
		fprintf(to, ",%d,%s,", result->root,
			perf_algo_names[result->algo]);
		if (result->used && result->predicted_us[result->used - 1] > 0)
			put_number(to, result->predicted_us[result->used - 1]);
		fprintf(to, ",%s\n",
			perf_memory_names[report->options->memory]);
	}
}
