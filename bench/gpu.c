/* SPDX-License-Identifier: MIT */
/* wreath gpu: a GPU's folds beside its copies, and what a launch costs. */
#include <stdlib.h>
#include <string.h>

#include "bench/gpu.h"
#include "bench/perf.h"

#define AT(field) offsetof(struct gpu_options, field)

/* Operands of folds that are staged, where there are no kernels. */
#define STAGED_BYTES (1 << 20)
/* Of the host's memory: some milliseconds of PCIe. */
#define HOST_BYTES (64 << 20)
/* What buffers are filled with, again and again. */
#define FILLING (1 << 20)

static const struct bench_option option_table[] = {
	{'d', "datatype", "LIST", "types, or all (float half bfloat16 double "
	 "int32 f8e4m3)", BENCH_OTHER, 0, 0, 0, NULL},
	{0, "gpu", "N", "the GPU, as CUDA numbers them (0)", BENCH_INT,
	 AT(number), 0, 63, NULL},
	{'b', "bytes", "SIZE", "an operand of two sources (256M)", BENCH_SIZE,
	 AT(bytes), 64 << 10, 1ll << 36, NULL},
	{'n', "rounds", "N", "of which the median counts (9)", BENCH_INT,
	 AT(n_rounds), 1, GPU_ROUNDS_MAX, NULL},
	{0, "min-ratio", "R", "exit status 7 if a fold of two sources is "
	 "slower than R of a copy", BENCH_NUMBER, AT(min_ratio), 0, 2, NULL},
	{0, "json", NULL, "as JSON, to standard output", BENCH_FLAG,
	 AT(as_json), 0, 0, NULL},
	{0, NULL, NULL, NULL, BENCH_OTHER, 0, 0, 0, NULL},
};

static const char usage_line[] = "wreath gpu [options]";
static const char usage_text[] =
	"Measures how fast a GPU combines vectors, beside device-to-device "
	"copies of as\nmany bytes, read and written; and what it costs to "
	"start chunks one by one, or\nseveral by one launch.  GB/s are "
	"decimal.";

static bool take_types(const struct bench_args *args, const char *value,
		       struct gpu_options *options)
{
	struct perf_options *lists = calloc(1, sizeof(*lists));
	bool taken = lists &&
		     perf_list_read(args, PERF_TYPES, value, lists);
	int i;

	for (i = 0; taken && i < WREATH_N_TYPES; i++)
		options->types[i] |= lists->types[i];
	free(lists);
	return taken;
}

/* 0 to go on, else the exit status plus one. */
static int parse(int argc, char **argv, struct gpu_options *options)
{
	static const enum wreath_type usual[] = {
		WREATH_FLOAT32, WREATH_FLOAT16, WREATH_BFLOAT16,
		WREATH_FLOAT64, WREATH_INT32, WREATH_FLOAT8E4M3};
	struct bench_args args = {"wreath gpu", option_table, argc, argv, 0,
				  false};
	const char *value;
	bool has_types = false;
	size_t i;
	int found;

	while ((found = bench_read(&args, options, &value)) != BENCH_END) {
		if (found == BENCH_HELP) {
			bench_usage(stdout, usage_line, usage_text,
				    option_table);
			return BENCH_OK + 1;
		}
		if (found == BENCH_OPERAND)
			bench_refuse(&args, "'%.64s' is no option", value);
		if (found < 0 || !take_types(&args, value, options))
			return BENCH_USAGE + 1;
		has_types = true;
	}
	for (i = 0; !has_types && i < base_countof(usual); i++)
		options->types[usual[i]] = true;
	return 0;
}

/*
 * Bytes from 0x30 to 0x3f make numbers of moderate size in every type, which
 * are not the same all over.
 */
static int fill(struct gpu_bench *bench, size_t total)
{
	size_t done = total < FILLING ? total : FILLING;
	uint64_t state = 1;
	size_t i;
	int error;

	for (i = 0; i < bench->host_bytes; i++) {
		/* Knuth's linear congruential generator: MMIX. */
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		bench->host[i] = (char)(0x30 + (state >> 60));
	}
	if (done > bench->host_bytes)
		done = bench->host_bytes;
	error = bench_gpu_copy(&bench->gpu, bench->memory, bench->host, done);
	while (!error && done < total) {
		size_t n = total - done < done ? total - done : done;

		error = bench_gpu_copy(&bench->gpu, bench->memory + done,
				       bench->memory, n);
		done += n;
	}
	return error;
}

static int open_bench(struct gpu_bench *bench)
{
	const struct gpu_options *options = bench->options;
	int error = bench_gpu_open((int)options->number, &bench->gpu);
	void *memory;

	if (!error)
		error = mem_gpu_open((int)options->number, STAGED_BYTES,
				     &bench->mem);
	if (error)
		return error;
	bench->bytes = options->bytes & ~(size_t)4095;
	if (!mem_gpu_about(bench->mem)->has_kernels &&
	    bench->bytes > STAGED_BYTES)
		bench->bytes = STAGED_BYTES;
	bench->host_bytes = bench->bytes < HOST_BYTES ? bench->bytes
						      : HOST_BYTES;
	error = mem_pinned_new(bench->host_bytes, &memory);
	if (error)
		return error;
	bench->host = memory;
	error = mem_gpu_alloc(3 * bench->bytes, (int)options->number,
				     &memory);
	if (error)
		return error;
	bench->memory = memory;
	return fill(bench, 3 * bench->bytes);
}

static void close_bench(struct gpu_bench *bench)
{
	mem_gpu_close(bench->mem);
	mem_free(bench->memory);
	mem_pinned_free(bench->host);
	bench_gpu_close(&bench->gpu);
}

int gpu_main(int argc, char **argv)
{
	static struct gpu_bench bench;
	static struct gpu_options options = {.bytes = 256 << 20,
					     .n_rounds = 9};
	int status = parse(argc, argv, &options);
	int error;

	if (status)
		return status - 1;
	if (mem_cuda_load()) {
		fprintf(stderr, "wreath gpu: %s\n", wreath_error_text());
		return BENCH_USAGE;
	}
	if (options.number >= mem_gpu_count()) {
		fprintf(stderr, "wreath gpu: --gpu %lld: CUDA sees GPUs 0 to "
				"%d\n", (long long)options.number,
			mem_gpu_count() - 1);
		return BENCH_USAGE;
	}
	bench.options = &options;
	bench.worst_ratio = 1e9;
	error = open_bench(&bench);
	if (!error) {
		gpu_report_head(&bench);
		error = gpu_measure_folds(&bench);
		if (!error)
			error = gpu_measure_launches(&bench);
		gpu_report_foot(&bench, error);
	}
	if (error)
		fprintf(stderr, "wreath gpu: %s: %s\n",
			wreath_error_name(error), wreath_error_text());
	close_bench(&bench);
	if (error)
		return BENCH_WREATH;
	return bench.worst_ratio < options.min_ratio ? BENCH_WRONG : BENCH_OK;
}
