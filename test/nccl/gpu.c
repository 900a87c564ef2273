/* SPDX-License-Identifier: MIT */
/*
 * Goal: on memory of GPUs a program of NCCL gets what CUDA's streams promise:
 * operations begin when their stream comes to them, the stream goes on when
 * they are done, and the host never waits.  Method: ranks are threads of a
 * process, with a device each, on a driver of CUDA, the simulated one in most
 * places; all that a rank does is put on its stream, and looked at in the end.
 *
 * gpu [TEST]
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu.h"

/* ---- the order of a stream ---- */

/* Holds a stream up until the host lets it go. */
static void gate(void *arg)
{
	atomic_bool *is_open = arg;

	while (!atomic_load(is_open))
		abi_nap();
}

static void ordered_rank(struct abi_rank *rank)
{
	atomic_bool is_open = false;
	struct gpu_rank gpu;
	int step;

	gpu_open(&gpu, rank);
	CU(cuLaunchHostFunc(gpu.stream, gate, &is_open));
	/* One after the other, each on the result of the one before. */
	gpu_put(&gpu, gpu.send, rank->rank + 1);
	for (step = 0; step < 4; step++) {
		OK(ncclAllReduce(gpu.send, gpu.recv, GPU_COUNT, ncclInt32,
				 ncclSum, gpu.comm, gpu.cuda));
		OK(ncclAllReduce(gpu.recv, gpu.send, GPU_COUNT, ncclInt32,
				 ncclMax, gpu.comm, gpu.cuda));
	}
	gpu_take(&gpu, gpu.send);
	/* All calls have returned, and nothing has happened. */
	CHECK(cuStreamQuery(gpu.stream) == CUDA_ERROR_NOT_READY);
	CHECK(gpu.out[0] == -1);
	atomic_store(&is_open, true);
	CU(cuStreamSynchronize(gpu.stream));
	for (step = 0; step < GPU_COUNT; step++)
		CHECK(gpu.out[step] == gpu_sum(rank->n_ranks, step) *
					       rank->n_ranks * rank->n_ranks *
					       rank->n_ranks);
	gpu_close(&gpu);
}

static void test_order(void)
{
	abi_threads(2, ordered_rank, NULL);
	abi_threads(3, ordered_rank, NULL);
	abi_threads(1, ordered_rank, NULL);
}

/* ---- every operation ---- */

static void copy_out(struct gpu_rank *gpu, const void *from)
{
	gpu_take(gpu, from);
	CU(cuStreamSynchronize(gpu->stream));
}

static void every_rank(struct abi_rank *rank)
{
	const int n = rank->n_ranks, r = rank->rank;
	const int part = GPU_COUNT / 12; /* of a block: divides by 1..4 */
	struct gpu_rank gpu;
	int i, peer;

	gpu_open(&gpu, rank);
	gpu_put(&gpu, gpu.send, r + 1);
	OK(ncclReduce(gpu.send, gpu.recv, GPU_COUNT, ncclInt32, ncclSum, n - 1,
		      gpu.comm, gpu.cuda));
	copy_out(&gpu, gpu.recv);
	for (i = 0; i < GPU_COUNT && r == n - 1; i++)
		CHECK(gpu.out[i] == gpu_sum(n, i));
	OK(ncclBroadcast(gpu.send, gpu.recv, GPU_COUNT, ncclInt32, 0, gpu.comm,
			 gpu.cuda));
	copy_out(&gpu, gpu.recv);
	for (i = 0; i < GPU_COUNT; i++)
		CHECK(gpu.out[i] == gpu_value(1, i));
	OK(ncclReduceScatter(gpu.send, gpu.recv, (size_t)part, ncclInt32,
			     ncclSum, gpu.comm, gpu.cuda));
	copy_out(&gpu, gpu.recv);
	for (i = 0; i < part; i++)
		CHECK(gpu.out[i] == gpu_sum(n, r * part + i));
	OK(ncclAllGather(gpu.send, gpu.recv, (size_t)part, ncclInt32, gpu.comm,
			 gpu.cuda));
	copy_out(&gpu, gpu.recv);
	for (i = 0; i < n * part; i++)
		CHECK(gpu.out[i] == gpu_value(i / part + 1, i % part));
	OK(ncclAlltoAll(gpu.send, gpu.recv, (size_t)part, ncclInt32, gpu.comm,
			gpu.cuda));
	copy_out(&gpu, gpu.recv);
	for (i = 0; i < n * part; i++)
		CHECK(gpu.out[i] ==
		      gpu_value(i / part + 1, r * part + i % part));
	OK(ncclGroupStart());
	for (peer = 0; peer < n; peer++) {
		OK(ncclSend((char *)gpu.send + 4 * peer * part, (size_t)part,
			    ncclInt32, peer, gpu.comm, gpu.cuda));
		OK(ncclRecv((char *)gpu.recv + 4 * peer * part, (size_t)part,
			    ncclInt32, peer, gpu.comm, gpu.cuda));
	}
	OK(ncclGroupEnd());
	copy_out(&gpu, gpu.recv);
	for (i = 0; i < n * part; i++)
		CHECK(gpu.out[i] ==
		      gpu_value(i / part + 1, r * part + i % part));
	gpu_close(&gpu);
}

static void test_every(void)
{
	abi_threads(2, every_rank, NULL);
	abi_threads(3, every_rank, NULL);
}

static void test_processes(void)
{
	abi_processes(2, false);
	abi_processes(3, false);
}

/* ---- one thread with a communicator for each device ---- */

static void test_one_thread(void)
{
	const int second = gpu_n_devices() > 1;
	struct abi_rank ranks[2] = {{.rank = 0, .n_ranks = 2},
				    {.rank = 1, .n_ranks = 2}};
	struct gpu_rank gpus[2];
	const int devices[2] = {0, second};
	ncclComm_t comms[2];
	int i, at, device;

	OK(ncclCommInitAll(comms, 2, devices));
	for (i = 0; i < 2; i++) {
		gpu_open_memory(&gpus[i], &ranks[i]);
		OK(ncclCommCuDevice(comms[i], &device));
		CHECK(device == devices[i]);
		gpu_put(&gpus[i], gpus[i].send, i + 1);
	}
	OK(ncclGroupStart());
	for (i = 0; i < 2; i++) {
		CU(cuCtxSetCurrent(gpus[i].context));
		OK(ncclAllReduce(gpus[i].send, gpus[i].recv, GPU_COUNT,
				 ncclInt32, ncclSum, comms[i], gpus[i].cuda));
	}
	OK(ncclGroupEnd());
	for (i = 0; i < 2; i++) {
		CU(cuCtxSetCurrent(gpus[i].context));
		copy_out(&gpus[i], gpus[i].recv);
		for (at = 0; at < GPU_COUNT; at++)
			CHECK(gpus[i].out[at] == gpu_sum(2, at));
	}
	for (i = 0; i < 2; i++)
		OK(ncclCommDestroy(comms[i]));
	for (i = 0; i < 2; i++)
		gpu_close_memory(&gpus[i]);
}

/* ---- many streams, and the ones that are always there ---- */

static void streams_rank(struct abi_rank *rank)
{
	struct CUstream_st *streams[24];
	struct gpu_rank gpu;
	int i, step;

	gpu_open(&gpu, rank);
	gpu_put(&gpu, gpu.send, rank->rank + 1);
	CU(cuStreamSynchronize(gpu.stream));
	for (i = 0; i < 24; i++)
		CU(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	/* More than are remembered, each several times. */
	for (i = 0; i < 72; i++)
		OK(ncclAllReduce(gpu.send, gpu.recv, 16, ncclInt32, ncclSum,
				 gpu.comm, (cudaStream_t)streams[i % 24]));
	for (i = 0; i < 24; i++) {
		CU(cuStreamSynchronize(streams[i]));
		CU(cuStreamDestroy_v2(streams[i]));
	}
	/* Ranks of one device share its default stream, where each would wait
	 * for the other, and which waits for the one of each thread. */
	for (i = gpu_n_devices() < rank->n_ranks ? 3 : 0; i < 3; i++) {
		CU(cuMemsetD8_v2((uintptr_t)gpu.recv, 0, 64));
		OK(ncclAllReduce(gpu.send, gpu.recv, 16, ncclInt32, ncclSum,
				 gpu.comm, (cudaStream_t)(uintptr_t)i));
		CU(cuStreamSynchronize(
			(struct CUstream_st *)(uintptr_t)i));
		copy_out(&gpu, gpu.recv);
		for (step = 0; step < 16; step++)
			CHECK(gpu.out[step] == gpu_sum(rank->n_ranks, step));
	}
	gpu_close(&gpu);
}

/* Two communicators, each on its own stream, used in turn. */
static void two_comms_rank(struct abi_rank *rank)
{
	struct CUstream_st *other;
	struct gpu_rank gpu;
	ncclComm_t second;
	void *more;
	int i;

	gpu_open(&gpu, rank);
	CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(ncclCommSplit(gpu.comm, 0, rank->rank, &second, NULL));
	OK(ncclMemAlloc(&more, GPU_BYTES));
	gpu_put(&gpu, gpu.send, rank->rank + 1);
	CU(cuStreamSynchronize(gpu.stream));
	for (i = 0; i < 10; i++) {
		OK(ncclAllReduce(gpu.send, gpu.recv, GPU_COUNT, ncclInt32,
				 ncclSum, gpu.comm, gpu.cuda));
		OK(ncclAllReduce(gpu.send, more, GPU_COUNT, ncclInt32, ncclMax,
				 second, (cudaStream_t)other));
	}
	CU(cuStreamSynchronize(other));
	copy_out(&gpu, gpu.recv);
	for (i = 0; i < GPU_COUNT; i++)
		CHECK(gpu.out[i] == gpu_sum(rank->n_ranks, i));
	copy_out(&gpu, more);
	for (i = 0; i < GPU_COUNT; i++)
		CHECK(gpu.out[i] == gpu_value(rank->n_ranks, i));
	OK(ncclMemFree(more));
	OK(ncclCommDestroy(second));
	CU(cuStreamDestroy_v2(other));
	gpu_close(&gpu);
}

static void test_streams(void)
{
	abi_threads(2, streams_rank, NULL);
	abi_threads(2, two_comms_rank, NULL);
}

/* ---- scalars in memory of the GPU ---- */

static void premul_rank(struct abi_rank *rank)
{
	static int32_t factors[MAX_RANKS];
	struct gpu_rank gpu;
	void *scalar = NULL;
	ncclRedOp_t op;
	int i, r;

	gpu_open(&gpu, rank);
	OK(ncclMemAlloc(&scalar, 4));
	gpu_put(&gpu, gpu.send, rank->rank + 1);
	OK(ncclRedOpCreatePreMulSum(&op, scalar, ncclInt32, ncclScalarDevice,
				    gpu.comm));
	/* It is there only when the stream comes to the collective. */
	factors[rank->rank] = rank->rank + 2;
	CU(cuMemcpyHtoDAsync_v2((uintptr_t)scalar, &factors[rank->rank], 4,
				gpu.stream));
	OK(ncclAllReduce(gpu.send, gpu.recv, GPU_COUNT, ncclInt32, op, gpu.comm,
			 gpu.cuda));
	OK(ncclRedOpDestroy(op, gpu.comm));
	copy_out(&gpu, gpu.recv);
	for (i = 0; i < GPU_COUNT; i++) {
		int wanted = 0;

		for (r = 0; r < rank->n_ranks; r++)
			wanted += (r + 2) * gpu_value(r + 1, i);
		CHECK(gpu.out[i] == wanted);
	}
	OK(ncclMemFree(scalar));
	gpu_close(&gpu);
}

static void test_premul_gpu(void)
{
	abi_threads(2, premul_rank, NULL);
	abi_threads(3, premul_rank, NULL);
}

static const struct gpu_test tests[] = {
	{"order", test_order},
	{"every", test_every},
	{"processes", test_processes},
	{"one-thread", test_one_thread},
	{"streams", test_streams},
	{"premul", test_premul_gpu},
	{"memory", gpu_test_memory},
	{"host", gpu_test_host},
	{"bad-input", gpu_test_bad_input},
	{"abort", gpu_test_abort},
};

int main(int argc, char **argv)
{
	size_t i;

	alarm(100);
	gpu_start();
	if (argc == 4) {
		abi_be_process(argv, every_rank);
		return 0;
	}
	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (argc > 1 && strcmp(argv[1], tests[i].name))
			continue;
		tests[i].run();
		printf("%s\n", tests[i].name);
		fflush(stdout);
	}
	return 0;
}
