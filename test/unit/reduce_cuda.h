/* SPDX-License-Identifier: MIT */
/*
 * For the tests of the reduce room: the kernels of GPUs compiled for the
 * processor.  A launch is a loop over the threads, each of which runs to its
 * end: the kernels neither share memory nor wait for one another.
 */
#ifndef REDUCE_CUDA_H
#define REDUCE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include "reduce/gpu.h"

typedef struct {
	uint32_t x, y, z, w;
} __attribute__((aligned(16), may_alias)) uint4;

struct cuda_index {
	unsigned int x;
};

static struct cuda_index blockIdx, threadIdx;

typedef void cuda_kernel(const struct reduce_gpu_batch *batch);

/* One of each type for all operations: compilers take a tenth of the time. */
#define JOB_FN static __attribute__((noinline))
#define UNROLL
#define NO_UNROLL
#define KERNEL(name, fold_part, op)                              \
	static void name(const struct reduce_gpu_batch *batch)   \
	{                                                        \
		struct part part;                                \
								 \
		if (part_find(&part, batch))                     \
			fold_part(&part, op);                    \
	}

#include "reduce/gpu.cu"

#define CUDA_ROW(name)                                                     \
	{                                                                  \
		wreath_fold_##name##_sum, wreath_fold_##name##_prod,       \
			wreath_fold_##name##_min, wreath_fold_##name##_max \
	}

/* In the order of enum wreath_type and enum wreath_op. */
static cuda_kernel *const cuda_kernels[][4] = {
	CUDA_ROW(int8),        CUDA_ROW(uint8),       CUDA_ROW(int16),
	CUDA_ROW(uint16),      CUDA_ROW(int32),       CUDA_ROW(uint32),
	CUDA_ROW(int64),       CUDA_ROW(uint64),      CUDA_ROW(float16),
	CUDA_ROW(bfloat16),    CUDA_ROW(float32),     CUDA_ROW(float64),
	CUDA_ROW(float8e4m3),  CUDA_ROW(float8e5m2),
};

/* Threads of a block run from the last to the first where @backwards. */
static inline void cuda_launch(cuda_kernel *kernel,
			       const struct reduce_gpu_batch *batch,
			       unsigned int n_blocks, bool backwards)
{
	unsigned int b, t;

	for (b = 0; b < n_blocks; b++) {
		for (t = 0; t < REDUCE_GPU_THREADS; t++) {
			blockIdx.x = backwards ? n_blocks - 1 - b : b;
			threadIdx.x =
				backwards ? REDUCE_GPU_THREADS - 1 - t : t;
			kernel(batch);
		}
	}
}

#endif
