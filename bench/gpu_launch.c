/* SPDX-License-Identifier: MIT */
/*
 * What it costs to start a chunk.  A chunk alone shows the time from the call
 * to the word that says it is done.  A stream of chunks, as a long vector has
 * them, shows what each adds when others are under way: by a launch each, and
 * by launches of several.
 */
#include "bench/gpu.h"

/* As the library cuts vectors: slots of 512K, and parts of them. */
static const uint64_t chunk_sizes[] = {16 << 10, 128 << 10, 512 << 10};
static const int batches[] = {1, 2, 4, 8};

/* A chunk alone is tried so often a round, and so many make a stream. */
#define N_ALONE 100
#define N_CHUNKS 256
#define ALONE_BYTES 4096

struct chunks {
	struct gpu_bench *bench;
	uint64_t bytes, n_places;
	uint64_t host_ns; /* in calls, and not for want of room */
};

/* Chunk @i of vectors that are as long as the memory. */
static int put(struct chunks *chunks, uint64_t i, uint64_t *number)
{
	struct gpu_bench *bench = chunks->bench;
	char *at = bench->memory + i % chunks->n_places * chunks->bytes;
	const void *src[2] = {at, at + bench->bytes};
	void *dst[1] = {at + 2 * bench->bytes};
	struct mem_job job = {
		.fold = {.dst = dst, .n_dst = 1, .src = src, .n_src = 2,
			 .count = chunks->bytes / sizeof(float)},
		.type = WREATH_FLOAT32, .op = WREATH_SUM, .gpu_src = 3,
		.gpu_dst = 1, .is_pinned = true};
	int error = mem_gpu_fold(bench->mem, &job, number);

	while (error == WREATH_EAGAIN) {
		error = mem_gpu_push(bench->mem);
		if (!error)
			error = mem_gpu_done(bench->mem, *number);
		if (error >= 0)
			error = mem_gpu_fold(bench->mem, &job, number);
	}
	return error;
}

static int alone(struct chunks *chunks, double *us, double *host_us)
{
	uint64_t start = base_now_ns();
	uint64_t number = 0;
	int error = 0;
	uint64_t i;

	chunks->host_ns = 0;
	for (i = 0; i < N_ALONE && !error; i++) {
		uint64_t call = base_now_ns();

		error = put(chunks, i, &number);
		if (!error)
			error = mem_gpu_push(chunks->bench->mem);
		chunks->host_ns += base_now_ns() - call;
		if (!error)
			error = gpu_finish(chunks->bench, number);
	}
	*us = (double)(base_now_ns() - start) / 1e3 / N_ALONE;
	*host_us = (double)chunks->host_ns / 1e3 / N_ALONE;
	return error;
}

/*
 * Two launches are under way at least, and as many jobs as the library takes at
 * most, of which the oldest is waited for.
 */
static int stream(struct chunks *chunks, int n_jobs, double *us,
		  double *host_us)
{
	struct mem_gpu *mem = chunks->bench->mem;
	uint64_t window = MEM_JOBS_MAX / 2;
	uint64_t start = base_now_ns();
	uint64_t number = 0;
	int error = 0;
	uint64_t i;

	chunks->host_ns = 0;
	for (i = 0; i < N_CHUNKS && !error; i += (uint64_t)n_jobs) {
		uint64_t call = base_now_ns();
		int j;

		for (j = 0; j < n_jobs && !error; j++)
			error = put(chunks, i + (uint64_t)j, &number);
		if (!error)
			error = mem_gpu_push(mem);
		chunks->host_ns += base_now_ns() - call;
		if (!error && i + (uint64_t)n_jobs >= window)
			error = gpu_finish(chunks->bench, number - window + 1);
	}
	if (!error)
		error = gpu_finish(chunks->bench, number);
	*us = (double)(base_now_ns() - start) / 1e3 / N_CHUNKS;
	*host_us = (double)chunks->host_ns / 1e3 / N_CHUNKS;
	return error;
}

/* @n_jobs 0: alone. */
static int measure(struct gpu_bench *bench, uint64_t bytes, int n_jobs)
{
	struct gpu_launch_row row = {.bytes = bytes, .n_jobs = n_jobs};
	struct chunks chunks = {.bench = bench, .bytes = bytes,
				.n_places = bench->bytes / bytes};
	int64_t n = bench->options->n_rounds;
	double *us = bench->samples[0];
	double *host_us = bench->samples[1];
	int error = 0;
	int64_t i;

	for (i = 0; i < n && !error; i++)
		error = n_jobs ? stream(&chunks, n_jobs, &us[i], &host_us[i])
			       : alone(&chunks, &us[i], &host_us[i]);
	if (error)
		return error;
	gpu_take_spread(us, n, &row.us);
	gpu_take_spread(host_us, n, &row.host_us);
	/* Two are read, and one is written. */
	row.gbs = 3 * (double)bytes / 1e3 / row.us.median;
	bench->on_launch(bench, &row);
	return 0;
}

int gpu_measure_launches(struct gpu_bench *bench)
{
	int error = measure(bench, ALONE_BYTES, 0);
	size_t c, b;

	for (c = 0; c < base_countof(chunk_sizes) && !error; c++) {
		if (chunk_sizes[c] > bench->bytes)
			break;
		error = measure(bench, chunk_sizes[c], 0);
		for (b = 0; b < base_countof(batches) && !error; b++)
			error = measure(bench, chunk_sizes[c], batches[b]);
	}
	return error;
}
