/* SPDX-License-Identifier: MIT */
/* wreath plan: does a network hide the reduction of a training job? */
#include <math.h>
#include <string.h>

#include "bench/plan.h"

const char *const plan_fabrics[PLAN_N_FABRICS + 2] = {"ib", "roce", "node",
						      "all", NULL};

#define AT(field) offsetof(struct plan_input, field)
#define MAX_PARAMS 1000000000000000ll

static const struct bench_option options[] = {
	{0, "params", "N", "parameters of the model, such as 70e9",
	 BENCH_NUMBER, AT(params), 1, MAX_PARAMS, NULL},
	{0, "bytes", "N", "of a gradient's element (2)", BENCH_NUMBER,
	 AT(bytes), 1, 8, NULL},
	{0, "tp", "N", "tensor-parallel ranks (1)", BENCH_INT, AT(tp), 1,
	 SCHED_RANKS_MAX, NULL},
	{0, "pp", "N", "pipeline stages (1)", BENCH_INT, AT(pp), 1,
	 SCHED_RANKS_MAX, NULL},
	{0, "dp", "N", "data-parallel replicas: who reduce together",
	 BENCH_INT, AT(dp), 2, SCHED_RANKS_MAX, NULL},
	{0, "step-ms", "MS", "computation of a training step",
	 BENCH_NUMBER, AT(step_ms), 0, 86400000, NULL},
	{0, "overlap", "PART", "of the step in which gradients come (0.67)",
	 BENCH_NUMBER, AT(overlap), 0, 1, NULL},
	{0, "bucket", "SIZE", "gradients reduced at a time (25M)", BENCH_SIZE,
	 AT(bucket), 1 << 10, 1ll << 50, NULL},
	{0, "fabric", "NAME", "ib, roce, node or all (all)", BENCH_WORD,
	 AT(fabric), 0, 0, plan_fabrics},
	{0, "nic", "RATE", "of a NIC: 400G bits, or 50GB bytes (400G)",
	 BENCH_TEXT, AT(nic_text), 0, 0, NULL},
	{0, "rails", "N", "NICs of a node (one a rank)", BENCH_INT, AT(rails),
	 1, 1024, NULL},
	{0, "ranks-per-node", "N", "ranks of a node (8)", BENCH_INT,
	 AT(ranks_per_node), 1, 1024, NULL},
	{0, "dp-per-node", "N", "replicas in a node (ranks-per-node / tp)",
	 BENCH_INT, AT(dp_per_node), 1, 1024, NULL},
	{0, "nvlink", "RATE", "of a rank within a node, one way (450GB)",
	 BENCH_TEXT, AT(nvlink_text), 0, 0, NULL},
	{0, "ib-latency", "TIME", "of a message over InfiniBand (2.7us)",
	 BENCH_TEXT, AT(latency_text[PLAN_IB]), 0, 0, NULL},
	{0, "roce-latency", "TIME", "over RoCEv2 (3.5us)", BENCH_TEXT,
	 AT(latency_text[PLAN_ROCE]), 0, 0, NULL},
	{0, "node-latency", "TIME", "within a node (0.47us)", BENCH_TEXT,
	 AT(latency_text[PLAN_NODE]), 0, 0, NULL},
	{0, "efficiency", "PART", "of a NIC's rate that is reached (0.96)",
	 BENCH_NUMBER, AT(efficiency), 0, 1, NULL},
	{0, "memory", "RATE", "at which a rank folds and copies (1TB)",
	 BENCH_TEXT, AT(memory_text), 0, 0, NULL},
	{0, "slot", "SIZE", "of a message on its way (512K)", BENCH_SIZE,
	 AT(slot), 64, 1ll << 30, NULL},
	{0, "max-exposed", "PERCENT", "of the step that may stay exposed (5)",
	 BENCH_NUMBER, AT(max_exposed), 0, 100, NULL},
	{0, "sources", NULL, "say where the defaults come from", BENCH_FLAG,
	 AT(sources), 0, 0, NULL},
	{0, "json", NULL, "as JSON", BENCH_FLAG, AT(json), 0, 0, NULL},
	{0, NULL, NULL, NULL, BENCH_OTHER, 0, 0, 0, NULL},
};

static const char usage_line[] =
	"wreath plan --params N --dp N --step-ms MS [options]";
static const char usage_text[] =
	"Says what the reduction of a training job's gradients demands of the "
	"network,\nwhat each engine is predicted to take, how much of it the "
	"computation hides,\nand, where it is too slow, what would help.  G is "
	"a billion; a rate in G is of\nbits, in GB of bytes, a second.  Exit "
	"status 1 if no fabric suffices.";

static const struct plan_input defaults = {
	.bytes = 2,
	.tp = 1,
	.pp = 1,
	.overlap = 0.67,
	.bucket = 25 << 20,
	.fabric = PLAN_N_FABRICS,
	.ranks_per_node = 8,
	.nic = 400e9 / 8,
	.nvlink = 450e9,
	.memory = 1e12,
	.latency = {2.7e-6, 3.5e-6, 0.47e-6},
	.efficiency = 0.96,
	.slot = 512 << 10,
	.max_exposed = 5,
};

static bool read_rate(const struct bench_args *args, const char *name,
		      const char *text, double *out)
{
	double rate;

	if (!text)
		return true;
	/* From what a serial line had to what no machine has. */
	if (sched_parse_rate(text, &rate) && rate >= 1e6 / 8 && rate <= 1e15) {
		*out = rate;
		return true;
	}
	bench_refuse(args, "%s '%.64s' is not a rate from 1M to 8000T, such as "
			   "400G (bits a second) or 50GB (bytes)", name, text);
	return false;
}

static bool read_time(const struct bench_args *args, const char *name,
		      const char *text, double *out)
{
	double seconds;

	if (!text)
		return true;
	if (sched_parse_time(text, &seconds) && seconds <= 1) {
		*out = seconds;
		return true;
	}
	bench_refuse(args, "%s '%.64s' is not a time from 0ns to 1s, such as "
			   "5us or 200ns", name, text);
	return false;
}

static bool read_texts(const struct bench_args *args, struct plan_input *input)
{
	return read_rate(args, "--nic", input->nic_text, &input->nic) &&
	       read_rate(args, "--nvlink", input->nvlink_text,
			 &input->nvlink) &&
	       read_rate(args, "--memory", input->memory_text,
			 &input->memory) &&
	       read_time(args, "--ib-latency", input->latency_text[PLAN_IB],
			 &input->latency[PLAN_IB]) &&
	       read_time(args, "--roce-latency",
			 input->latency_text[PLAN_ROCE],
			 &input->latency[PLAN_ROCE]) &&
	       read_time(args, "--node-latency",
			 input->latency_text[PLAN_NODE],
			 &input->latency[PLAN_NODE]);
}

/* What was not given and follows from the rest; what does not fit. */
static bool complete(const struct bench_args *args, struct plan_input *input)
{
	const char *lacking = input->params <= 0 ? "--params"
			      : !input->dp ? "--dp"
			      : input->step_ms <= 0 ? "--step-ms" : NULL;

	if (lacking) {
		bench_refuse(args, "%s is needed, above 0; see wreath plan "
				   "--help", lacking);
		return false;
	}
	if (input->overlap <= 0 || input->efficiency <= 0) {
		bench_refuse(args, "--%s is 0; it must be above 0, up to 1",
			     input->overlap <= 0 ? "overlap" : "efficiency");
		return false;
	}
	if (input->dp_per_node > input->ranks_per_node) {
		bench_refuse(args, "--dp-per-node %lld is more than the %lld "
				   "ranks of a node",
			     (long long)input->dp_per_node,
			     (long long)input->ranks_per_node);
		return false;
	}
	if (!input->rails)
		input->rails = input->ranks_per_node;
	/* Tensor-parallel ranks are neighbours, and replicas come next. */
	if (!input->dp_per_node)
		input->dp_per_node = input->ranks_per_node / input->tp;
	if (input->dp_per_node < 1)
		input->dp_per_node = 1;
	if (input->dp_per_node > input->dp)
		input->dp_per_node = input->dp;
	return read_texts(args, input);
}

/* 0 to go on, else the exit status plus one. */
static int parse(int argc, char **argv, struct plan_input *input)
{
	struct bench_args args = {"wreath plan", options, argc, argv, 0, false};
	const char *value;
	int found;

	while ((found = bench_read(&args, input, &value)) != BENCH_END) {
		if (found == BENCH_HELP) {
			bench_usage(stdout, usage_line, usage_text, options);
			return BENCH_OK + 1;
		}
		if (found == BENCH_OPERAND)
			bench_refuse(&args, "'%.64s' is no option; --help "
					    "lists them all", value);
		return BENCH_USAGE + 1;
	}
	if (input->sources) {
		plan_sources();
		return BENCH_OK + 1;
	}
	return complete(&args, input) ? 0 : BENCH_USAGE + 1;
}

int plan_main(int argc, char **argv)
{
	struct plan_result results[PLAN_N_FABRICS];
	struct plan_input input = defaults;
	struct plan_need need;
	bool any = false;
	int status = parse(argc, argv, &input);
	int n = 0;
	int i;

	if (status)
		return status - 1;
	plan_need(&input, &need);
	for (i = 0; i < PLAN_N_FABRICS; i++) {
		if (input.fabric != PLAN_N_FABRICS && input.fabric != i)
			continue;
		if (!plan_predict(&input, &need, (enum plan_fabric_name)i,
				  &results[n])) {
			fprintf(stderr, "wreath plan: %s\n",
				wreath_error_text());
			return BENCH_FAILED;
		}
		any |= results[n++].suffices;
	}
	if (input.json)
		plan_json(&input, &need, results, n);
	else
		plan_report(&input, &need, results, n);
	return any ? BENCH_OK : BENCH_FAILED;
}
