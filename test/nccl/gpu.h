/* SPDX-License-Identifier: MIT */
/* A rank that has a GPU, for programs of NCCL. */
#ifndef TEST_NCCL_GPU_H
#define TEST_NCCL_GPU_H

#include <stdint.h>

#include "abi.h"
#include "test/cuda/abi.h"

#define GPU_COUNT 12000
#define GPU_BYTES (GPU_COUNT * sizeof(int32_t))

#define CU(call) gpu_is((call), 0, #call, __FILE__, __LINE__)
void gpu_is(int result, int wanted, const char *what, const char *file,
	    int line);

struct gpu_rank {
	struct abi_rank *rank;
	struct CUctx_st *context;
	struct CUstream_st *stream;
	cudaStream_t cuda; /* the same */
	ncclComm_t comm;
	void *send, *recv;     /* on the GPU */
	int32_t *in, *out;     /* on the host */
};

struct gpu_test {
	const char *name;
	void (*run)(void);
};

void gpu_start(void);
int gpu_n_devices(void);
/* The rank's device, stream, memory and communicator. */
void gpu_open(struct gpu_rank *gpu, struct abi_rank *rank);
void gpu_close(struct gpu_rank *gpu);
/* The same without a communicator. */
void gpu_open_memory(struct gpu_rank *gpu, struct abi_rank *rank);
void gpu_close_memory(struct gpu_rank *gpu);
/* Element @i of what is called @factor. */
int32_t gpu_value(int factor, int i);
/* Of the ranks' values with factors 1..@n. */
int32_t gpu_sum(int n, int i);
/* On the stream: the values with @factor to @to; @from to gpu->out. */
void gpu_put(struct gpu_rank *gpu, void *to, int factor);
void gpu_take(struct gpu_rank *gpu, const void *from);

/* gpu_more.c */
void gpu_test_memory(void);
void gpu_test_host(void);
void gpu_test_bad_input(void);
void gpu_test_abort(void);

#endif
