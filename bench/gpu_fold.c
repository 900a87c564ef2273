/* SPDX-License-Identifier: MIT */
/*
 * The bandwidth of folds beside that of copies.  Both are timed by the host's
 * clock, from the first of some that are given at once to the end of the last,
 * by turns, so that both see the same machine.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/gpu.h"

/* What is timed lasts about so long; what begins and ends it takes 10 us. */
#define ROUND_NS 3e6
#define REPEATS_MAX 48

/* Eight is what a rank of a node of eight folds by one call. */
static const int source_counts[] = {2, 8};

/* A fold, and the copy that it is compared with. */
struct pair {
	struct gpu_bench *bench;
	struct mem_job job;
	const void *src[8];
	void *dst[1];
	void *copy_to;
	const void *copy_from;
	size_t copy_bytes;
	double moved; /* bytes that count, of the fold and of the copy */
	int n_repeats;
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

void gpu_take_spread(double *samples, int64_t n, struct gpu_spread *out)
{
	qsort(samples, (size_t)n, sizeof(*samples), compare);
	out->median = samples[n / 2];
	out->min = samples[0];
	out->max = samples[n - 1];
}

int gpu_finish(struct gpu_bench *bench, uint64_t number)
{
	int done = 0;

	while (!done) {
		/* What is staged goes on only when it is pushed. */
		int error = mem_gpu_push(bench->mem);

		done = error ? error : mem_gpu_done(bench->mem, number);
	}
	return done < 0 ? done : 0;
}

/* The nanoseconds of all repeats. */
static int run_folds(struct pair *pair, double *ns)
{
	struct mem_gpu *mem = pair->bench->mem;
	uint64_t start = base_now_ns();
	uint64_t number = 0;
	int error = 0;
	int i;

	/* A launch each: what shared one would share the caches. */
	for (i = 0; i < pair->n_repeats && !error; i++) {
		error = mem_gpu_fold(mem, &pair->job, &number);
		if (!error)
			error = mem_gpu_push(mem);
	}
	if (!error)
		error = gpu_finish(pair->bench, number);
	*ns = (double)(base_now_ns() - start);
	return error;
}

static int run_copies(struct pair *pair, double *ns)
{
	struct bench_gpu *gpu = &pair->bench->gpu;
	uint64_t start = base_now_ns();
	int error = 0;
	int i;

	for (i = 0; i < pair->n_repeats && !error; i++)
		error = bench_gpu_put_copy(gpu, pair->copy_to, pair->copy_from,
					   pair->copy_bytes);
	if (!error)
		error = bench_gpu_wait(gpu);
	*ns = (double)(base_now_ns() - start);
	return error;
}

/* Once to load what is loaded at first use, and once to see how long it is. */
static int choose_repeats(struct pair *pair)
{
	double ns = 0;
	int error = 0;
	int i;

	pair->n_repeats = 1;
	for (i = 0; i < 2 && !error; i++) {
		error = run_copies(pair, &ns);
		if (!error)
			error = run_folds(pair, &ns);
	}
	if (ROUND_NS / ns > REPEATS_MAX)
		pair->n_repeats = REPEATS_MAX;
	else
		pair->n_repeats = 1 + (int)(ROUND_NS / ns);
	return error;
}

static int measure(struct pair *pair, struct gpu_fold_row *row)
{
	struct gpu_bench *bench = pair->bench;
	int64_t n = bench->options->n_rounds;
	int error = choose_repeats(pair);
	int64_t i;

	for (i = 0; i < n && !error; i++) {
		double bytes = pair->moved * pair->n_repeats;
		double fold_ns, copy_ns;

		error = run_folds(pair, &fold_ns);
		if (!error)
			error = run_copies(pair, &copy_ns);
		if (error)
			break;
		bench->samples[0][i] = bytes / fold_ns;
		bench->samples[1][i] = bytes / copy_ns;
	}
	if (error)
		return error;
	gpu_take_spread(bench->samples[0], n, &row->fold_gbs);
	gpu_take_spread(bench->samples[1], n, &row->copy_gbs);
	row->ratio = row->fold_gbs.median / row->copy_gbs.median;
	return 0;
}

static void set_job(struct pair *pair, const struct gpu_fold_row *row)
{
	size_t size = wreath_type_size(row->type);
	int i;

	for (i = 0; i < row->n_src; i++)
		pair->src[i] = pair->bench->memory + (size_t)i * row->bytes;
	pair->dst[0] = pair->bench->memory + (size_t)row->n_src * row->bytes;
	pair->job = (struct mem_job){
		.fold = {.dst = pair->dst, .n_dst = 1, .src = pair->src,
			 .n_src = row->n_src, .count = row->bytes / size},
		.type = row->type, .op = WREATH_SUM,
		.gpu_src = (1ull << row->n_src) - 1, .gpu_dst = 1,
		.is_pinned = true};
}

/* All on the GPU: as many bytes are read and written by both. */
static void set_fold(struct pair *pair, const struct gpu_fold_row *row)
{
	size_t half = (size_t)(row->n_src + 1) * row->bytes / 2;

	set_job(pair, row);
	pair->copy_from = pair->bench->memory;
	pair->copy_to = pair->bench->memory + half;
	pair->copy_bytes = half;
	pair->moved = 2 * (double)half;
}

/* Between the host and the GPU, of which the host's bytes count. */
static void set_host(struct pair *pair, const struct gpu_fold_row *row)
{
	struct gpu_bench *bench = pair->bench;

	set_job(pair, row);
	pair->copy_bytes = row->bytes;
	pair->moved = (double)row->bytes;
	if (row->way == GPU_FROM_HOST) {
		pair->src[row->n_src - 1] = bench->host;
		pair->job.gpu_src >>= 1;
		pair->copy_from = bench->host;
		pair->copy_to = pair->dst[0];
	} else {
		pair->dst[0] = bench->host;
		pair->job.gpu_dst = 0;
		pair->copy_from = bench->memory;
		pair->copy_to = bench->host;
	}
}

static int measure_row(struct gpu_bench *bench, struct gpu_fold_row *row)
{
	struct pair pair = {.bench = bench};
	int error;

	if (row->way == GPU_FOLD)
		set_fold(&pair, row);
	else
		set_host(&pair, row);
	error = measure(&pair, row);
	if (error)
		return error;
	if (row->way == GPU_FOLD && row->n_src == 2 &&
	    row->ratio < bench->worst_ratio)
		bench->worst_ratio = row->ratio;
	bench->on_fold(bench, row);
	return 0;
}

int gpu_measure_folds(struct gpu_bench *bench)
{
	size_t total = 3 * bench->bytes;
	int error = 0;
	int type;
	size_t i;
	int way;

	for (type = 0; type < WREATH_N_TYPES; type++) {
		for (i = 0; i < base_countof(source_counts) && !error; i++) {
			int n = source_counts[i];
			struct gpu_fold_row row = {
				.type = (enum wreath_type)type, .n_src = n,
				.bytes = total / (size_t)(n + 1) & ~4095ull};

			if (bench->options->types[type])
				error = measure_row(bench, &row);
		}
	}
	for (way = GPU_FROM_HOST; way <= GPU_TO_HOST && !error; way++) {
		struct gpu_fold_row row = {.way = (enum gpu_way)way,
					   .type = WREATH_FLOAT32, .n_src = 2,
					   .bytes = bench->host_bytes};

		error = measure_row(bench, &row);
	}
	return error;
}
