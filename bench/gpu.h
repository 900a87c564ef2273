/* SPDX-License-Identifier: MIT */
/*
 * wreath gpu: what its files share.  Two measurements: the bandwidth of folds
 * beside that of copies (gpu_fold.c), and what a launch costs, by how many
 * chunks share one (gpu_launch.c).
 */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include "bench/bench.h"
#include "bench/cuda.h"
#include "mem/mem.h"

#define GPU_ROUNDS_MAX 101

struct gpu_options {
	int64_t number;
	uint64_t bytes; /* of an operand of two sources */
	bool types[WREATH_N_TYPES];
	int64_t n_rounds;
	double min_ratio;
	bool as_json;
};

/* Of the rounds. */
struct gpu_spread {
	double median, min, max;
};

enum gpu_way {
	GPU_FOLD,      /* all operands are on the GPU */
	GPU_FROM_HOST, /* the last source is pinned memory of the host */
	GPU_TO_HOST,   /* the destination is */
};

struct gpu_fold_row {
	enum gpu_way way;
	enum wreath_type type;
	int n_src;
	uint64_t bytes; /* of an operand */
	struct gpu_spread fold_gbs, copy_gbs;
	double ratio; /* of the medians */
};

struct gpu_launch_row {
	uint64_t bytes; /* of an operand */
	int n_jobs;	/* of a launch */
	struct gpu_spread us, host_us; /* of a job */
	double gbs;
};

struct gpu_bench {
	const struct gpu_options *options;
	struct bench_gpu gpu; /* copies, on a stream of their own */
	struct mem_gpu *mem;  /* folds, as the library does them */
	char *memory; /* on the GPU, 3 * @bytes */
	char *host;   /* pinned, @host_bytes */
	size_t bytes, host_bytes;
	double samples[4][GPU_ROUNDS_MAX];
	void (*on_fold)(const struct gpu_bench *bench,
			const struct gpu_fold_row *row);
	void (*on_launch)(const struct gpu_bench *bench,
			  const struct gpu_launch_row *row);
	double worst_ratio; /* of folds of two sources on the GPU */
};

/* ---- gpu_fold.c ---- */

/* 0, or an error; each row is given to on_fold(). */
int gpu_measure_folds(struct gpu_bench *bench);

/* Sorts @samples. */
void gpu_take_spread(double *samples, int64_t n, struct gpu_spread *out);
/* Wait until job @number is done. */
int gpu_finish(struct gpu_bench *bench, uint64_t number);

/* ---- gpu_launch.c ---- */

int gpu_measure_launches(struct gpu_bench *bench);

/* ---- gpu_report.c ---- */

/* The table, as it comes; or JSON. */
void gpu_report_head(struct gpu_bench *bench);
void gpu_report_foot(const struct gpu_bench *bench, int error);

#endif
