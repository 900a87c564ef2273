/* SPDX-License-Identifier: MIT */
/* The command line of `wreath perf`: that of nccl-tests, and some more. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/perf.h"

static const char *const buffer_names[] = {"alloc", "malloc", "register",
					   NULL};
static const char *const half_names[] = {"both", "out", "in", NULL};
static const char *const switch_names[] = {"0", "1", NULL};

#define COUNT_MAX 1000000000
#define AT(field) offsetof(struct perf_options, field)

/* Those that bench_read() leaves to us: lists, in their enum's order. */
enum { OPT_REGISTER = PERF_N_LISTS };

static const struct bench_option option_table[] = {
	{'o', "op", "LIST", "sum prod min max avg, or all (sum)", BENCH_OTHER,
	 0, 0, 0, NULL},
	{'d', "datatype", "LIST", "int8 ... uint64, half bfloat16 float "
	 "double f8e4m3 f8e5m2, or all (float)", BENCH_OTHER, 0, 0, 0, NULL},
	{0, "algo", "LIST", "ring oneshot twoshot, all of them, or auto "
	 "(auto)", BENCH_OTHER, 0, 0, 0, NULL},
	{0, "sizes", "LIST", "these sizes, instead of -b -e -i -f",
	 BENCH_OTHER, 0, 0, 0, NULL},
	{'R', "local_register", "0|1|2", "--buffers malloc, register, alloc",
	 BENCH_OTHER, 0, 0, 0, NULL},
	{'b', "minbytes", "SIZE", "the smallest vector (8)", BENCH_SIZE,
	 AT(min_bytes), 0, PERF_BYTES_MAX, NULL},
	{'e', "maxbytes", "SIZE", "the largest (64M)", BENCH_SIZE,
	 AT(max_bytes), 0, PERF_BYTES_MAX, NULL},
	{'i', "stepbytes", "SIZE", "go from size to size by adding",
	 BENCH_SIZE, AT(step_bytes), 1, PERF_BYTES_MAX, NULL},
	{'f', "stepfactor", "N", "or by multiplying (4)", BENCH_INT,
	 AT(step_factor), 2, 1 << 20, NULL},
	{'g', "ngpus", "N", "ranks to fork (2); 1 under a launcher",
	 BENCH_INT, AT(n_procs), 1, PERF_RANKS_MAX, NULL},
	{'t', "nthreads", "N", "ranks in each process, as threads (1)",
	 BENCH_INT, AT(n_threads), 1, 64, NULL},
	{0, "nodes", "N|LIST", "pretend to be N nodes, or nodes of so many "
	 "ranks each: 3,5", BENCH_TEXT, AT(nodes), 0, 0, NULL},
	{'n', "iters", "N", "operations to time (what --seconds holds)",
	 BENCH_INT, AT(n_iters), 1, COUNT_MAX, NULL},
	{'w', "warmup_iters", "N", "operations before that (5)", BENCH_INT,
	 AT(n_warmup), 0, COUNT_MAX, NULL},
	{'m', "agg_iters", "N", "operations of an iteration (1)", BENCH_INT,
	 AT(n_agg), 1, COUNT_MAX, NULL},
	{'N', "run_cycles", "N", "do it all N times, 0: until interrupted (1)",
	 BENCH_INT, AT(n_cycles), 0, COUNT_MAX, NULL},
	{'c', "check", "N", "results of each half row to check (1)", BENCH_INT,
	 AT(n_checks), 0, COUNT_MAX, NULL},
	{'I', "per_iter_timing", "0|1", "more columns: i_min i_max i_p99 "
	 "i_cv%", BENCH_WORD, AT(per_iter), 0, 0, switch_names},
	{'u', "unalign", "BYTES", "start buffers that far off a page (0)",
	 BENCH_SIZE, AT(unalign), 0, 4095, NULL},
	{'T', "timeout", "SECONDS", "without progress, then exit status 4",
	 BENCH_INT, AT(timeout_s), 1, 86400, NULL},
	{'J', "json", "FILE", "results as JSON; - is stdout, without table",
	 BENCH_TEXT, AT(json), 0, 0, NULL},
	{0, "csv", "FILE", "results as CSV, a line for each half of a row",
	 BENCH_TEXT, AT(csv), 0, 0, NULL},
	{0, "plot", "FILE.svg", "draw by gnuplot; - draws on the terminal",
	 BENCH_TEXT, AT(plot), 0, 0, NULL},
	{0, "seconds", "S", "time for each half of a row (0.2)", BENCH_NUMBER,
	 AT(seconds), 0, 3600, NULL},
	{0, "touch", NULL, "write the input before each operation, so that "
	 "caches do not flatter", BENCH_FLAG, AT(touch), 0, 0, NULL},
	{0, "stream", NULL, "queue operations on a stream", BENCH_FLAG,
	 AT(stream), 0, 0, NULL},
	{0, "buffers", "KIND", "alloc malloc register (alloc)", BENCH_WORD,
	 AT(buffers), 0, 0, buffer_names},
	{0, "place", "WHICH", "out of place, in place: both out in (both)",
	 BENCH_WORD, AT(halves), 0, 0, half_names},
	{0, "min-busbw", "GB/s", "exit status 7 if the average is lower",
	 BENCH_NUMBER, AT(min_busbw), 0, 1000000, NULL},
	{'q', "quiet", NULL, "no progress on the terminal", BENCH_FLAG,
	 AT(quiet), 0, 0, NULL},
	{'r', "root", "RANK", "all_reduce has none: any", BENCH_INT,
	 AT(ignored), 0, PERF_RANKS_MAX, NULL},
	{'a', "average", "3", "times are those of the slowest rank: 3",
	 BENCH_INT, AT(ignored), 3, 3, NULL},
	{'p', "parallel_init", "0|1", "without meaning here", BENCH_INT,
	 AT(ignored), 0, 1, NULL},
	{'z', "blocking", "0..3", "without meaning here", BENCH_INT,
	 AT(ignored), 0, 3, NULL},
	{'y', "stream_null", "0|1", "without meaning here", BENCH_INT,
	 AT(ignored), 0, 1, NULL},
	{'G', "cudagraph", "0", "only 0", BENCH_INT, AT(ignored), 0, 0, NULL},
	{'C', "report_cputime", "0", "only 0", BENCH_INT, AT(ignored), 0, 0,
	 NULL},
	{'M', "memory", "0", "only 0", BENCH_INT, AT(ignored), 0, 0, NULL},
	{0, NULL, NULL, NULL, BENCH_OTHER, 0, 0, 0, NULL},
};

static const char usage_line[] = "wreath perf all_reduce [options]";
static const char usage_text[] =
	"Measures all-reduce between ranks on this machine, or between those "
	"that a\nlauncher has started, and checks every element of the "
	"results.  Options and\ntable are those of nccl-tests.  Sizes take K, "
	"M and G (binary); GB/s are decimal,\nper rank and direction.  Exit "
	"status: 0, 3 error, 4 timeout, 6 usage, 7 wrong\nresults or too "
	"slow.";

static bool take(const struct bench_args *args, int option, const char *value,
		 struct perf_options *options)
{
	static const char *const words[] = {"0", "1", "2", NULL};
	static const enum perf_buffers buffers[] = {PERF_MALLOC, PERF_REGISTER,
						    PERF_ALLOC};
	int word;

	if (option != OPT_REGISTER)
		return perf_list_read(args, (enum perf_list)option, value,
				      options);
	word = bench_word(args, "--local_register", value, words);
	if (word >= 0)
		options->buffers = (int)buffers[word];
	return word >= 0;
}

/* Set what was not given, and refuse what does not go together. */
static int complete(const struct bench_args *args,
		    struct perf_options *options, const struct base_env *env)
{
	bool has_types = false;
	bool has_ops = false;
	int i;

	for (i = 0; i < WREATH_N_TYPES; i++)
		has_types |= options->types[i];
	for (i = 0; i < WREATH_N_OPS; i++)
		has_ops |= options->ops[i];
	options->types[WREATH_FLOAT32] |= !has_types;
	options->ops[WREATH_SUM] |= !has_ops;
	if (!options->n_algos)
		options->algos[options->n_algos++] =
			(int)env->value[BASE_ENV_ALGO];
	if (options->n_sizes)
		options->min_bytes = options->max_bytes = options->sizes[0];
	for (i = 1; i < options->n_sizes; i++) {
		uint64_t bytes = options->sizes[i];

		if (bytes < options->min_bytes)
			options->min_bytes = bytes;
		if (bytes > options->max_bytes)
			options->max_bytes = bytes;
	}
	/* One of them given alone asks for one size, or for more than 64M. */
	if (options->max_bytes == UINT64_MAX)
		options->max_bytes = options->min_bytes > 64 << 20 &&
						     options->min_bytes !=
							     UINT64_MAX
					     ? options->min_bytes
					     : 64 << 20;
	if (options->min_bytes == UINT64_MAX)
		options->min_bytes = options->max_bytes < 8
					     ? options->max_bytes
					     : 8;
	if (options->min_bytes > options->max_bytes)
		return bench_refuse(args, "--minbytes %llu is more than "
					  "--maxbytes %llu",
				    (unsigned long long)options->min_bytes,
				    (unsigned long long)options->max_bytes);
	if (!options->min_bytes && options->max_bytes &&
	    !options->step_bytes && !options->n_sizes)
		return bench_refuse(args, "--minbytes 0 cannot grow by a "
					  "factor: give --stepbytes");
	if (options->json && options->csv && !strcmp(options->json, "-") &&
	    !strcmp(options->csv, "-"))
		return bench_refuse(args, "only one of --json and --csv can be "
					  "standard output");
	return 0;
}

/* Ranks, and the memory that they need, if all are on this machine. */
static int check_ranks(const struct bench_args *args,
		       struct perf_options *options, bool launched)
{
	double have = (double)sysconf(_SC_PHYS_PAGES) *
		      (double)sysconf(_SC_PAGESIZE);
	double need;

	if (launched && (options->n_procs > 1 || options->n_threads > 1))
		return bench_refuse(args, "a launcher has started the ranks "
					  "already: leave --ngpus and "
					  "--nthreads out");
	options->is_launched = launched;
	if (launched)
		options->n_procs = 1;
	else if (!options->n_procs)
		options->n_procs = options->n_threads > 1 ? 1 : 2;
	if (options->n_procs * options->n_threads > PERF_RANKS_MAX)
		return bench_refuse(args, "%lld ranks are more than %d",
				    (long long)(options->n_procs *
						options->n_threads),
				    PERF_RANKS_MAX);
	need = (double)options->max_bytes * (double)options->n_procs *
	       (double)options->n_threads *
	       (options->halves == PERF_IN ? 1 : 2);
	if (need > have * 0.9)
		return bench_refuse(args, "buffers of %.1f GiB do not fit this "
					  "machine's %.1f GiB: lower "
					  "--maxbytes or --ngpus",
				    need / (1 << 30), have / (1 << 30));
	return 0;
}

/* Ranks of one process have one environment, and so are on one node. */
static int take_nodes(const struct bench_args *args,
		      struct perf_options *options)
{
	int n = (int)(options->n_procs * options->n_threads);
	int t = (int)options->n_threads;
	int i;

	if (!options->nodes)
		return 0;
	if (options->is_launched)
		return bench_refuse(args, "a launcher has started the ranks: "
					  "`wreath run --nodes`, or "
					  "WREATH_NODE, makes them nodes");
	options->node_of = calloc((size_t)n, sizeof(*options->node_of));
	if (!options->node_of)
		return bench_refuse(args, "no memory for %d ranks", n);
	if (bench_nodes(args, options->nodes, n, options->node_of))
		return BENCH_BAD;
	for (i = 0; i < n; i++)
		if (options->node_of[i] != options->node_of[i / t * t])
			return bench_refuse(args, "--nodes puts ranks %d and "
						  "%d, threads of one process, "
						  "on two nodes: give each "
						  "node a multiple of the %d "
						  "threads of --nthreads",
					    i / t * t, i, t);
	for (i = 0; i < options->n_procs; i++)
		options->node_of[i] = options->node_of[i * t];
	return 0;
}

static bool is_launched(void)
{
	static const char *const names[] = {"WREATH_RANK", "PMI_RANK",
					    "OMPI_COMM_WORLD_RANK"};
	size_t i;

	for (i = 0; i < base_countof(names); i++) {
		if (base_env_foreign(names[i]))
			return true;
	}
	return base_env_foreign("RANK") && base_env_foreign("WORLD_SIZE");
}

int perf_options_read(int argc, char **argv, struct perf_options *options)
{
	struct bench_args args = {"wreath perf", option_table, argc, argv, 0,
				  false};
	static const char *const collectives[] = {"all_reduce", NULL};
	static struct base_env env;
	const char *value;
	bool is_named = false;
	int found;

	*options = (struct perf_options){
		.min_bytes = UINT64_MAX, .max_bytes = UINT64_MAX,
		.step_factor = 4, .n_threads = 1, .n_warmup = 5, .n_agg = 1,
		.n_cycles = 1, .n_checks = 1, .seconds = 0.2};
	while ((found = bench_read(&args, options, &value)) != BENCH_END) {
		if (found == BENCH_HELP) {
			bench_usage(stdout, usage_line, usage_text,
				    option_table);
			return BENCH_OK + 1;
		}
		if (found == BENCH_BAD ||
		    (found >= 0 && !take(&args, found, value, options)))
			return BENCH_USAGE + 1;
		if (found != BENCH_OPERAND)
			continue;
		if (bench_word(&args, "collective", value, collectives) < 0)
			return BENCH_USAGE + 1;
		is_named = true;
	}
	if (!is_named) {
		bench_refuse(&args, "which collective? wreath perf "
				    "all_reduce");
		return BENCH_USAGE + 1;
	}
	if (base_env_load(&env)) {
		bench_refuse(&args, "%s", wreath_error_text());
		return BENCH_USAGE + 1;
	}
	if (complete(&args, options, &env) ||
	    check_ranks(&args, options, is_launched()) ||
	    take_nodes(&args, options))
		return BENCH_USAGE + 1;
	return 0;
}

bool perf_next_size(const struct perf_options *options, int i,
		    uint64_t *bytes)
{
	uint64_t next = options->min_bytes;

	if (options->n_sizes) {
		if (i < options->n_sizes)
			*bytes = options->sizes[i];
		return i < options->n_sizes;
	}
	if (i && options->step_bytes)
		next = *bytes + options->step_bytes;
	else if (i)
		next = *bytes * (uint64_t)options->step_factor;
	/* 0 times a factor does not grow. */
	if (next > options->max_bytes || (i && next <= *bytes))
		return false;
	*bytes = next;
	return true;
}
