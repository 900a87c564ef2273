/* SPDX-License-Identifier: MIT */
/* What `wreath plan` found, for people and for programs. */
#include <math.h>
#include <string.h>

#include "bench/plan.h"

static const char *const titles[PLAN_N_FABRICS] = {
	[PLAN_IB] = "InfiniBand", [PLAN_ROCE] = "RoCEv2",
	[PLAN_NODE] = "in one node",
};

/* A figure, and who published it. */
static const struct {
	const char *option, *value, *source;
} sources[] = {
	{"--ib-latency", "2.7us",
	 "NVIDIA/nccl, src/graph/tuning.cc (2020): its own model's cost of a "
	 "network step of a ring, protocol LL"},
	{"--roce-latency", "3.5us",
	 "assumed: as InfiniBand, with an Ethernet switch's longer way"},
	{"--node-latency", "0.47us",
	 "the same file: a step over NVLink, protocol LL"},
	{"--nvlink", "450GB",
	 "half of the 900 GB/s, both directions together, of the H200 SXM "
	 "(MLPerf Inference v4.1, system descriptions)"},
	{"--nic", "400G", "assumed: one 400 Gbit/s port a rank"},
	{"--efficiency", "0.96",
	 "NVIDIA/nccl-tests, issue 119: 24 GB/s of a 200 Gbit/s port; issue "
	 "29: 12.2 GB/s of 100 Gbit/s is as good as it gets"},
	{"RoCEv2", "0.987",
	 "of InfiniBand's rate: a packet of 4096 bytes has 82 bytes around it, "
	 "not 26 (IEEE 802.3, RFC 768, RFC 791, InfiniBand Architecture)"},
	{"overhead", "0.2us",
	 "assumed: of a rank's time for a message, to post and to poll"},
	{"--memory", "1TB", "assumed: a third of what an HBM3 GPU reads"},
	{"--bucket", "25M",
	 "PyTorch, DistributedDataParallel: bucket_cap_mb is 25 by default"},
	{"--overlap", "0.67",
	 "assumed: gradients come in the backward pass, which computes twice "
	 "as much as the forward pass"},
	{"--slot", "512K",
	 "NVIDIA/nccl: NCCL_BUFFSIZE is 4 MiB, in 8 steps"},
	{"--max-exposed", "5", "assumed"},
};

void plan_sources(void)
{
	size_t i;

	for (i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		printf("%-15s %-7s %s\n", sources[i].option, sources[i].value,
		       sources[i].source);
}

/* 2.1875e9 is "2.188 GB"; in decimal units, as rates are. */
static const char *amount(double value, char *out, size_t size)
{
	static const char units[] = " KMGTPE";
	int unit = 0;

	while (value >= 999.95 && units[unit + 1]) {
		value /= 1000;
		unit++;
	}
	snprintf(out, size, "%.4g %.1sB", value, unit ? units + unit : "");
	return out;
}

/* 7e10 is "70e9", as an option takes it. */
static const char *number(double value, char *out, size_t size)
{
	int exponent = 0;

	while (value >= 999.95) {
		value /= 1000;
		exponent += 3;
	}
	if (exponent)
		snprintf(out, size, "%.4ge%d", value, exponent);
	else
		snprintf(out, size, "%.4g", value);
	return out;
}

/* A size as an option takes it, where it is a whole number of MiB. */
static const char *binary(double bytes, char *out, size_t size)
{
	if (bytes >= 1 << 20 && fmod(bytes, 1 << 20) == 0)
		snprintf(out, size, "%.0fM", bytes / (1 << 20));
	else if (fmod(bytes, 1 << 10) == 0)
		snprintf(out, size, "%.0fK", bytes / (1 << 10));
	else
		snprintf(out, size, "%.0f", bytes);
	return out;
}

static void report_need(const struct plan_input *input,
			const struct plan_need *need)
{
	char a[32], b[32];

	printf("parameters        %s of %g bytes; tp %lld, pp %lld, dp %lld: "
	       "%.0f ranks\n", number(input->params, a, sizeof(a)),
	       input->bytes, (long long)input->tp, (long long)input->pp,
	       (long long)input->dp, need->n_ranks);
	printf("gradient          %s a rank, in %.0f buckets of %s\n",
	       amount(need->gradient, a, sizeof(a)), need->n_buckets,
	       binary((double)input->bucket, b, sizeof(b)));
	printf("traffic           %s a rank: 2(N-1)/N of it, N = dp\n",
	       amount(need->traffic, a, sizeof(a)));
	printf("to be hidden in   %.6g ms: %g of a step's %.6g ms\n",
	       need->window * 1e3, input->overlap, input->step_ms);
	printf("needed bandwidth  %s/s a rank, each direction\n",
	       amount(need->rate, a, sizeof(a)));
	printf("placement         %lld of %lld ranks a node are replicas of "
	       "each other; %d node%s\n", (long long)input->dp_per_node,
	       (long long)input->ranks_per_node, need->n_nodes,
	       need->n_nodes == 1 ? "" : "s");
}

static void report_engines(const struct plan_input *input,
			   const struct plan_result *result)
{
	int i;

	printf("  %-11s %10s %10s %10s %10s %9s\n", "engine", "bucket", "all",
	       "hidden", "exposed", "of step");
	for (i = 0; i < SCHED_N_ALGOS; i++) {
		const struct plan_engine *engine = &result->engines[i];

		if (!engine->has_form)
			continue;
		printf("%c %-11s %7.3f ms %7.1f ms %7.1f ms %7.2f ms %7.1f %%\n",
		       (int)result->best == i ? '*' : ' ',
		       sched_algo_name((enum sched_algo)i),
		       engine->bucket * 1e3, engine->total * 1e3,
		       engine->hidden * 1e3, engine->exposed * 1e3,
		       engine->exposed * 1e5 / input->step_ms);
	}
}

static void report_advice(const struct plan_input *input,
			  const struct plan_result *result)
{
	const struct plan_advice *advice = &result->advice;
	double now = result->engines[result->best].exposed;
	char text[32];

	printf("  what would suffice:\n");
	if (result->fabric != PLAN_NODE) {
		if (advice->rails)
			printf("    --rails %.0f instead of %lld\n",
			       advice->rails, (long long)input->rails);
		else
			printf("    no number of rails does\n");
		if (advice->nic)
			printf("    --nic %.0fG\n", advice->nic * 8 / 1e9);
		else
			printf("    no NIC does\n");
	}
	if (advice->bucket_exposed * 1e5 / input->step_ms <= input->max_exposed)
		printf("    --bucket %s: exposes %.2f ms\n",
		       binary(advice->bucket, text, sizeof(text)),
		       advice->bucket_exposed * 1e3);
	else if (advice->bucket_exposed < 0.99 * now)
		printf("    no bucket does; the best, --bucket %s, exposes "
		       "%.2f ms\n", binary(advice->bucket, text, sizeof(text)),
		       advice->bucket_exposed * 1e3);
	else
		printf("    no other bucket does\n");
	if (advice->step)
		printf("    a step of %.0f ms\n", advice->step * 1e3);
}

void plan_report(const struct plan_input *input, const struct plan_need *need,
		 const struct plan_result *results, int n_results)
{
	char text[32];
	int i;

	report_need(input, need);
	for (i = 0; i < n_results; i++) {
		const struct plan_result *result = &results[i];
		bool is_inside = result->fabric == PLAN_NODE ||
				 need->n_nodes == 1;

		printf("\n%s: %s/s a rank, %.2f us a message%s\n",
		       titles[result->fabric],
		       amount(result->rate, text, sizeof(text)),
		       result->latency * 1e6,
		       is_inside && result->fabric != PLAN_NODE
			       ? " (not used: all replicas are in one node)"
			       : "");
		report_engines(input, result);
		printf("  %s: %s exposes %.1f %% of the step, and %g %% are "
		       "allowed\n",
		       result->suffices ? "suffices" : "does not suffice",
		       sched_algo_name(result->best),
		       result->engines[result->best].exposed * 1e5 /
			       input->step_ms, input->max_exposed);
		if (!result->suffices)
			report_advice(input, result);
	}
}

static void json_engines(const struct plan_result *result)
{
	const char *comma = "";
	int i;

	printf("\"engines\": [");
	for (i = 0; i < SCHED_N_ALGOS; i++) {
		const struct plan_engine *engine = &result->engines[i];

		if (!engine->has_form)
			continue;
		printf("%s\n     {\"name\": \"%s\", \"bucket_s\": %.9g, "
		       "\"total_s\": %.9g, \"hidden_s\": %.9g, "
		       "\"exposed_s\": %.9g}", comma,
		       sched_algo_name((enum sched_algo)i), engine->bucket,
		       engine->total, engine->hidden, engine->exposed);
		comma = ",";
	}
	printf("],\n    \"best\": \"%s\", \"suffices\": %s",
	       sched_algo_name(result->best),
	       result->suffices ? "true" : "false");
}

/* A number, or null where the thing does not help. */
static void json_number(const char *name, double value)
{
	if (value > 0)
		printf(", \"%s\": %.9g", name, value);
	else
		printf(", \"%s\": null", name);
}

static void json_advice(const struct plan_advice *advice)
{
	printf(",\n    \"advice\": {\"best_bucket\": %.0f", advice->bucket);
	json_number("best_bucket_exposed_s", advice->bucket_exposed);
	json_number("rails", advice->rails);
	json_number("nic_bytes_per_s", advice->nic);
	json_number("step_s", advice->step);
	printf("}");
}

void plan_json(const struct plan_input *input, const struct plan_need *need,
	       const struct plan_result *results, int n_results)
{
	int i;

	printf("{\"version\": \"%s\",\n \"params\": %.9g, "
	       "\"bytes_per_param\": %.9g, \"tp\": %lld, \"pp\": %lld, "
	       "\"dp\": %lld,\n \"step_s\": %.9g, \"overlap\": %.9g, "
	       "\"bucket\": %llu, \"rails\": %lld, \"ranks_per_node\": %lld, "
	       "\"dp_per_node\": %lld,\n", bench_version(), input->params,
	       input->bytes, (long long)input->tp, (long long)input->pp,
	       (long long)input->dp, input->step_ms / 1e3, input->overlap,
	       (unsigned long long)input->bucket, (long long)input->rails,
	       (long long)input->ranks_per_node,
	       (long long)input->dp_per_node);
	printf(" \"gradient_bytes\": %.9g, \"traffic_bytes\": %.9g, "
	       "\"window_s\": %.9g, \"needed_bytes_per_s\": %.9g,\n"
	       " \"n_nodes\": %d, \"n_buckets\": %.9g,\n \"fabrics\": [",
	       need->gradient, need->traffic, need->window, need->rate,
	       need->n_nodes, need->n_buckets);
	for (i = 0; i < n_results; i++) {
		printf("%s\n   {\"name\": \"%s\", \"bytes_per_s\": %.9g, "
		       "\"latency_s\": %.9g,\n    ", i ? "," : "",
		       plan_fabrics[results[i].fabric], results[i].rate,
		       results[i].latency);
		json_engines(&results[i]);
		if (!results[i].suffices)
			json_advice(&results[i].advice);
		printf("}");
	}
	printf("]}\n");
}
