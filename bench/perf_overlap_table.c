/* SPDX-License-Identifier: MIT */
/* What `wreath perf overlap` shows. */
#include <math.h>

#include "bench/perf.h"

double perf_hidden(const struct perf_overlap *overlap)
{
	if (overlap->comm_us <= 0)
		return 0;
	return 1 - (overlap->both_us - overlap->compute_us) / overlap->comm_us;
}

/*
 * The first bucket must be computed before anything can be sent, and the last
 * sent after everything has been computed.
 */
double perf_hidden_ideal(const struct perf_overlap *overlap)
{
	double rest = 1 - 1 / (double)overlap->n_buckets;

	if (overlap->comm_us <= 0)
		return 0;
	return rest * fmin(1, overlap->compute_us / overlap->comm_us);
}

static double speedup(const struct perf_overlap *overlap)
{
	return overlap->both_us > 0
		       ? (overlap->compute_us + overlap->comm_us) /
				 overlap->both_us
		       : 0;
}

void perf_overlap_columns(void)
{
	printf("# %10s  %8s  %8s  %6s  %9s  %9s  %9s  %7s  %7s  %7s %7s\n",
	       "bucket", "buckets", "type", "redop", "compute", "comm", "both",
	       "hidden", "ideal", "faster", "#wrong");
	printf("# %10s  %8s  %8s  %6s  %9s  %9s  %9s  %7s  %7s  %7s\n", "(B)",
	       "", "", "", "(ms)", "(ms)", "(ms)", "(%)", "(%)", "(times)");
}

void perf_overlap_row(const struct perf_result *result)
{
	const struct perf_overlap *overlap = &result->overlap;

	printf("%12llu  %8lld  %8s  %6s  %9.3f  %9.3f  %9.3f  %7.1f  %7.1f  "
	       "%7.2f",
	       (unsigned long long)result->bytes,
	       (long long)overlap->n_buckets, perf_result_type(result),
	       perf_result_op(result), overlap->compute_us / 1e3,
	       overlap->comm_us / 1e3, overlap->both_us / 1e3,
	       100 * perf_hidden(overlap), 100 * perf_hidden_ideal(overlap),
	       speedup(overlap));
	if (result->is_checked)
		printf("  %6g\n", (double)result->check.wrong);
	else
		printf("  %6s\n", "N/A");
}

void perf_overlap_foot(const struct perf_report *report)
{
	const struct perf_result *best = NULL;
	size_t i;

	for (i = 0; i < report->n_results; i++) {
		const struct perf_result *result = &report->results[i];

		if (!best || result->overlap.both_us < best->overlap.both_us)
			best = result;
	}
	if (best)
		printf("# Least time           : %.3f ms by buckets of %llu "
		       "bytes, %.1f %% of the communication hidden\n",
		       best->overlap.both_us / 1e3,
		       (unsigned long long)best->bytes,
		       100 * perf_hidden(&best->overlap));
}

void perf_overlap_json(const struct perf_result *result, FILE *to)
{
	const struct perf_overlap *overlap = &result->overlap;

	fprintf(to, "\"gradient_bytes\": %llu, \"buckets\": %lld,\n"
		    "     \"compute_us\": %.6g, \"comm_us\": %.6g, "
		    "\"both_us\": %.6g,\n     \"hidden\": %.4f, "
		    "\"hidden_ideal\": %.4f, \"speedup\": %.4f",
		(unsigned long long)overlap->gradient,
		(long long)overlap->n_buckets, overlap->compute_us,
		overlap->comm_us, overlap->both_us, perf_hidden(overlap),
		perf_hidden_ideal(overlap), speedup(overlap));
}

void perf_overlap_csv(const struct perf_report *report, FILE *to)
{
	size_t i;

	fprintf(to, "version,collective,ranks,algo,gradient_bytes,bytes,"
		    "buckets,type,op,compute_us,comm_us,both_us,hidden,"
		    "hidden_ideal,speedup,iters,wrong\n");
	for (i = 0; i < report->n_results; i++) {
		const struct perf_result *result = &report->results[i];
		const struct perf_overlap *overlap = &result->overlap;

		fprintf(to, "%s,overlap,%d,%s,%llu,%llu,%lld,%s,%s,%.6g,%.6g,"
			    "%.6g,%.4f,%.4f,%.4f,%lld,",
			bench_version(), report->n_ranks,
			perf_result_algo(result),
			(unsigned long long)overlap->gradient,
			(unsigned long long)result->bytes,
			(long long)overlap->n_buckets,
			perf_result_type(result), perf_result_op(result),
			overlap->compute_us, overlap->comm_us,
			overlap->both_us, perf_hidden(overlap),
			perf_hidden_ideal(overlap), speedup(overlap),
			(long long)result->n_iters);
		if (result->is_checked)
			fprintf(to, "%lld", (long long)result->check.wrong);
		fprintf(to, "\n");
	}
}
