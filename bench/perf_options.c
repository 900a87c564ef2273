/* SPDX-License-Identifier: MIT */
/* The command line of `wreath perf`: that of nccl-tests, and some more. */
#include <string.h>

#include "bench/perf.h"

static const char *const buffer_names[] = {"alloc", "malloc", "register",
					   NULL};
static const char *const half_names[] = {"both", "out", "in", NULL};
static const char *const switch_names[] = {"0", "1", NULL};

#define COUNT_MAX 1000000000
#define AT(field) offsetof(struct perf_options, field)

/* Those that bench_read() leaves to us: lists, in their enum's order. */
enum { OPT_REGISTER = PERF_N_LISTS, OPT_ROOT, OPT_MEMORY };

static const struct bench_option option_table[] = {
	{'o', "op", "LIST", "sum prod min max avg, or all (sum)", BENCH_OTHER,
	 0, 0, 0, NULL},
	{'d', "datatype", "LIST", "int8 ... uint64, half bfloat16 float "
	 "double f8e4m3 f8e5m2, or all (float)", BENCH_OTHER, 0, 0, 0, NULL},
	{0, "algo", "LIST", "ring oneshot twoshot tree split-ring halving "
	 "direct, auto, or all side by side (auto)", BENCH_OTHER, 0, 0, 0,
	 NULL},
	{0, "sizes", "LIST", "these sizes, instead of -b -e -i -f",
	 BENCH_OTHER, 0, 0, 0, NULL},
	{'R', "local_register", "0|1|2", "--buffers malloc, register, alloc",
	 BENCH_OTHER, 0, 0, 0, NULL},
	{'r', "root", "RANK|all", "of broadcast, reduce, gather, scatter (0)",
	 BENCH_OTHER, 0, 0, 0, NULL},
	{'M', "memory", "WHERE", "of buffers: host gpu managed mixed, or on one "
	 "GPU gpu:N (host)", BENCH_OTHER, 0, 0, 0, NULL},
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
	{'z', "blocking", "0|1", "on a GPU: each call blocks, instead of going "
	 "by a CUDA stream", BENCH_INT, AT(blocking), 0, 3, NULL},
	{0, "buffers", "KIND", "alloc malloc register (alloc)", BENCH_WORD,
	 AT(buffers), 0, 0, buffer_names},
	{0, "place", "WHICH", "out of place, in place: both out in (both)",
	 BENCH_WORD, AT(halves), 0, 0, half_names},
	{0, "gradient", "SIZE", "of overlap: the sum of its buckets (64M)",
	 BENCH_SIZE, AT(gradient), 1, PERF_BYTES_MAX, NULL},
	{0, "compute", "MS", "of overlap: computation for all of a gradient",
	 BENCH_NUMBER, AT(compute_ms), 0, 60000, NULL},
	{0, "min-busbw", "GB/s", "exit status 7 if the average is lower",
	 BENCH_NUMBER, AT(min_busbw), 0, 1000000, NULL},
	{'q', "quiet", NULL, "no progress on the terminal", BENCH_FLAG,
	 AT(quiet), 0, 0, NULL},
	{'a', "average", "3", "times are those of the slowest rank: 3",
	 BENCH_INT, AT(ignored), 3, 3, NULL},
	{'p', "parallel_init", "0|1", "without meaning here", BENCH_INT,
	 AT(ignored), 0, 1, NULL},
	{'y', "stream_null", "0|1", "without meaning here", BENCH_INT,
	 AT(ignored), 0, 1, NULL},
	{'G', "cudagraph", "0", "only 0", BENCH_INT, AT(ignored), 0, 0, NULL},
	{'C', "report_cputime", "0", "only 0", BENCH_INT, AT(ignored), 0, 0,
	 NULL},
	{0, NULL, NULL, NULL, BENCH_OTHER, 0, 0, 0, NULL},
};

static const char usage_line[] = "wreath perf COLLECTIVE [options]";
static const char usage_text[] =
	"Measures a collective between ranks on this machine, or between those "
	"that a\nlauncher has started, and checks every element of the "
	"results:\nall_reduce reduce broadcast reduce_scatter all_gather gather "
	"scatter all_to_all\nsendrecv barrier reduce_scatter_v all_gather_v "
	"all_to_all_v; and overlap, which\nshows how much of an all-reduce in "
	"buckets a computation hides.  Options and\ntable are those of "
	"nccl-tests.  Sizes take K, M and G (binary); GB/s are\ndecimal, per "
	"rank and direction.  Exit status: 0, 3 error, 4 timeout, 6 usage,\n7 "
	"wrong results or too slow.";

static bool take(const struct bench_args *args, int option, const char *value,
		 struct perf_options *options)
{
	static const char *const words[] = {"0", "1", "2", NULL};
	static const enum perf_buffers buffers[] = {PERF_MALLOC, PERF_REGISTER,
						    PERF_ALLOC};
	int word;

	if (option == OPT_ROOT) {
		options->root = PERF_ALL_ROOTS;
		if (!strcmp(value, "all") ||
		    base_parse_int(value, 0, PERF_RANKS_MAX - 1,
				   &options->root))
			return true;
		bench_refuse(args, "--root '%.64s' is neither a rank, 0 to %d, "
				   "nor all", value, PERF_RANKS_MAX - 1);
		return false;
	}
	if (option == OPT_MEMORY)
		return perf_memory_read(args, value, options);
	if (option != OPT_REGISTER)
		return perf_list_read(args, (enum perf_list)option, value,
				      options);
	word = bench_word(args, "--local_register", value, words);
	if (word >= 0)
		options->buffers = (int)buffers[word];
	return word >= 0;
}

int perf_options_read(int argc, char **argv, struct perf_options *options)
{
	struct bench_args args = {"wreath perf", option_table, argc, argv, 0,
				  false};
	const char *value;
	int kind = -1;
	int found;

	*options = (struct perf_options){
		.min_bytes = UINT64_MAX, .max_bytes = UINT64_MAX,
		.step_factor = 4, .n_threads = 1, .n_warmup = 5, .n_agg = 1,
		.n_cycles = 1, .n_checks = 1, .seconds = 0.2, .gpu = -1};
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
		if (kind >= 0) {
			bench_refuse(&args, "%s or %.64s?  One at a time",
				     perf_collectives[kind].name, value);
			return BENCH_USAGE + 1;
		}
		kind = perf_kind_read(&args, value);
		if (kind < 0)
			return BENCH_USAGE + 1;
	}
	if (kind < 0) {
		bench_refuse(&args, "which collective? wreath perf "
				    "all_reduce, for example");
		return BENCH_USAGE + 1;
	}
	options->kind = (enum perf_kind)kind;
	return perf_options_complete(&args, options) ? BENCH_USAGE + 1 : 0;
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
