/* SPDX-License-Identifier: MIT */
/* The command line of `wreath perf` as a whole: defaults, contradictions. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/perf.h"

static void complete_lists(struct perf_options *options,
			   const struct base_env *env)
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
	if (!options->n_algos) {
		int algo = (int)env->value[BASE_ENV_ALGO];

		/* Of a collective that has it not, the library chooses. */
		if (algo && !sched_has_form(
				    perf_collectives[options->kind].sched,
				    (enum sched_algo)(algo - 1)))
			algo = 0;
		options->algos[options->n_algos++] = algo;
	}
}

/* A barrier has one size, which is none, of no type. */
static void complete_barrier(struct perf_options *options)
{
	memset(options->types, 0, sizeof(options->types));
	options->types[WREATH_UINT8] = true;
	options->n_sizes = 1;
	options->sizes[0] = 0;
}

/* Sizes are those of buckets, up to the whole gradient. */
static int complete_overlap(const struct bench_args *args,
			    struct perf_options *options)
{
	int i;

	if (!options->gradient)
		options->gradient = 64 << 20;
	if (options->max_bytes == UINT64_MAX)
		options->max_bytes = options->gradient;
	/* Smaller ones keep no network busy. */
	if (options->min_bytes == UINT64_MAX)
		options->min_bytes = options->max_bytes < 256 << 10
					     ? options->max_bytes
					     : 256 << 10;
	if (options->max_bytes > options->gradient)
		return bench_refuse(args, "--maxbytes is a bucket's size, and "
					  "more than --gradient %llu",
				    (unsigned long long)options->gradient);
	for (i = 0; i < options->n_sizes; i++) {
		if (!options->sizes[i] ||
		    options->sizes[i] > options->gradient)
			return bench_refuse(args, "--sizes %llu is no bucket "
						  "of --gradient %llu",
					    (unsigned long long)
						    options->sizes[i],
					    (unsigned long long)
						    options->gradient);
	}
	if (!options->min_bytes)
		return bench_refuse(args, "--minbytes 0 is no bucket");
	if (options->plot)
		return bench_refuse(args, "--plot: overlap is not drawn");
	if (options->memory != PERF_HOST)
		return bench_refuse(args, "--memory %s: what overlap computes, "
					  "the processor does, in host memory",
				    perf_memory_names[options->memory]);
	options->halves = PERF_IN;
	options->stream = true;
	return 0;
}

static int complete_sizes(const struct bench_args *args,
			  struct perf_options *options)
{
	int i;

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
	return 0;
}

/* Set what was not given, and refuse what does not go together. */
static int complete_all(const struct bench_args *args,
		    struct perf_options *options, const struct base_env *env)
{
	const struct perf_collective *what = &perf_collectives[options->kind];

	complete_lists(options, env);
	if (!perf_list_fit(args, options))
		return BENCH_BAD;
	if (options->kind == PERF_BARRIER)
		complete_barrier(options);
	if (options->kind == PERF_OVERLAP && complete_overlap(args, options))
		return BENCH_BAD;
	if (!what->has_in_place && options->halves == PERF_IN)
		return bench_refuse(args, "--place in: %s has no form in place",
				    what->name);
	if (!what->has_in_place)
		options->halves = PERF_OUT;
	if (options->memory == PERF_MANAGED &&
	    options->buffers == PERF_REGISTER)
		return bench_refuse(args, "--buffers register: managed memory "
					  "moves, and cannot be registered");
	if (options->json && options->csv && !strcmp(options->json, "-") &&
	    !strcmp(options->csv, "-"))
		return bench_refuse(args, "only one of --json and --csv can be "
					  "standard output");
	return complete_sizes(args, options);
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
	if (!launched && perf_is_rooted(options->kind) &&
	    options->root >= options->n_procs * options->n_threads)
		return bench_refuse(args, "--root %lld: there are %lld ranks",
				    (long long)options->root,
				    (long long)(options->n_procs *
						options->n_threads));
	options->buffer_bytes = options->kind == PERF_OVERLAP
					? options->gradient
					: options->max_bytes;
	need = (double)options->buffer_bytes * (double)options->n_procs *
	       (double)options->n_threads *
	       (options->halves == PERF_IN || options->memory != PERF_HOST
			? 1 : 2);
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

int perf_options_complete(const struct bench_args *args,
			  struct perf_options *options)
{
	static struct base_env env;

	if (base_env_load(&env))
		return bench_refuse(args, "%s", wreath_error_text());
	if (complete_all(args, options, &env) ||
	    check_ranks(args, options, is_launched()) ||
	    take_nodes(args, options))
		return BENCH_BAD;
	return 0;
}
