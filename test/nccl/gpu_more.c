/* SPDX-License-Identifier: MIT */
/* What ranks with GPUs share, and what may go wrong with them. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"

static int n_devices;

void gpu_is(int result, int wanted, const char *what, const char *file,
	    int line)
{
	if (result == wanted)
		return;
	fprintf(stderr, "%s:%d: %s is %d, not %d\n", file, line, what, result,
		wanted);
	_exit(1);
}

void gpu_start(void)
{
	CU(cuInit(0));
	CU(cuDeviceGetCount(&n_devices));
	CHECK(n_devices > 0);
}

int gpu_n_devices(void)
{
	return n_devices;
}

int32_t gpu_value(int factor, int i)
{
	return factor * (i % 97 + 1);
}

int32_t gpu_sum(int n, int i)
{
	return gpu_value(n * (n + 1) / 2, i);
}

void gpu_open_memory(struct gpu_rank *gpu, struct abi_rank *rank)
{
	cu_ptr send, recv;
	void *host;

	gpu->rank = rank;
	CU(cuDevicePrimaryCtxRetain(&gpu->context, rank->rank % n_devices));
	CU(cuCtxSetCurrent(gpu->context));
	CU(cuStreamCreate(&gpu->stream, CU_STREAM_NON_BLOCKING));
	gpu->cuda = (cudaStream_t)gpu->stream;
	CU(cuMemAlloc_v2(&send, GPU_BYTES));
	CU(cuMemAlloc_v2(&recv, GPU_BYTES));
	gpu->send = (void *)(uintptr_t)send;
	gpu->recv = (void *)(uintptr_t)recv;
	CU(cuMemHostAlloc(&host, 2 * GPU_BYTES, 0));
	gpu->in = host;
	gpu->out = gpu->in + GPU_COUNT;
	memset(gpu->in, 0xff, 2 * GPU_BYTES);
}

void gpu_close_memory(struct gpu_rank *gpu)
{
	CU(cuCtxSetCurrent(gpu->context));
	CU(cuMemFree_v2((uintptr_t)gpu->send));
	CU(cuMemFree_v2((uintptr_t)gpu->recv));
	CU(cuMemFreeHost(gpu->in));
	CU(cuStreamDestroy_v2(gpu->stream));
	CU(cuDevicePrimaryCtxRelease_v2(gpu->rank->rank % n_devices));
}

void gpu_open(struct gpu_rank *gpu, struct abi_rank *rank)
{
	int device = -1;

	gpu_open_memory(gpu, rank);
	OK(ncclCommInitRank(&gpu->comm, rank->n_ranks, rank->id, rank->rank));
	OK(ncclCommCuDevice(gpu->comm, &device));
	CHECK(device == rank->rank % n_devices);
}

void gpu_close(struct gpu_rank *gpu)
{
	ncclResult_t state = ncclInProgress;

	OK(ncclCommGetAsyncError(gpu->comm, &state));
	CHECK(state == ncclSuccess);
	OK(ncclCommDestroy(gpu->comm));
	gpu_close_memory(gpu);
}

void gpu_put(struct gpu_rank *gpu, void *to, int factor)
{
	int i;

	for (i = 0; i < GPU_COUNT; i++)
		gpu->in[i] = gpu_value(factor, i);
	CU(cuMemcpyHtoDAsync_v2((uintptr_t)to, gpu->in, GPU_BYTES,
				gpu->stream));
}

void gpu_take(struct gpu_rank *gpu, const void *from)
{
	CU(cuMemcpyDtoHAsync_v2(gpu->out, (uintptr_t)from, GPU_BYTES,
				gpu->stream));
}

/* ---- memory ---- */

static void memory_rank(struct abi_rank *rank)
{
	struct gpu_rank gpu;
	ncclWindow_t window;
	void *mine = NULL, *handle = NULL;
	cu_ptr base;
	size_t bytes;
	int i;

	gpu_open(&gpu, rank);
	/* On the current device. */
	OK(ncclMemAlloc(&mine, GPU_BYTES));
	CU(cuMemGetAddressRange_v2(&base, &bytes, (uintptr_t)mine));
	CHECK(bytes >= GPU_BYTES);
	OK(ncclCommRegister(gpu.comm, gpu.send, GPU_BYTES, &handle));
	OK(ncclCommWindowRegister(gpu.comm, mine, GPU_BYTES, &window, 0));
	gpu_put(&gpu, gpu.send, rank->rank + 1);
	OK(ncclAllReduce(gpu.send, mine, GPU_COUNT, ncclInt32, ncclSum,
			 gpu.comm, gpu.cuda));
	gpu_take(&gpu, mine);
	CU(cuStreamSynchronize(gpu.stream));
	for (i = 0; i < GPU_COUNT; i++)
		CHECK(gpu.out[i] == gpu_sum(rank->n_ranks, i));
	OK(ncclCommDeregister(gpu.comm, handle));
	OK(ncclCommWindowDeregister(gpu.comm, window));
	OK(ncclMemFree(mine));
	gpu_close(&gpu);
}

void gpu_test_memory(void)
{
	abi_threads(2, memory_rank, NULL);
}

/* Rank 0 has its vectors on the host, in the order of its stream all the same;
 * the others have theirs on GPUs. */
static void mixed_rank(struct abi_rank *rank)
{
	bool is_host = !rank->rank;
	struct gpu_rank gpu;
	int i;

	gpu_open(&gpu, rank);
	gpu_put(&gpu, gpu.send, rank->rank + 1);
	OK(ncclAllReduce(is_host ? gpu.in : gpu.send,
			 is_host ? gpu.out : gpu.recv, GPU_COUNT, ncclInt32,
			 ncclSum, gpu.comm, gpu.cuda));
	if (!is_host)
		gpu_take(&gpu, gpu.recv);
	CU(cuStreamSynchronize(gpu.stream));
	for (i = 0; i < GPU_COUNT; i++)
		CHECK(gpu.out[i] == gpu_sum(rank->n_ranks, i));
	/* From the host to the GPU, in one call. */
	OK(ncclAllReduce(gpu.in, gpu.recv, GPU_COUNT, ncclInt32, ncclMax,
			 gpu.comm, gpu.cuda));
	gpu_take(&gpu, gpu.recv);
	CU(cuStreamSynchronize(gpu.stream));
	for (i = 0; i < GPU_COUNT; i++)
		CHECK(gpu.out[i] == gpu_value(rank->n_ranks, i));
	gpu_close(&gpu);
}

/* A process with CUDA, a thread without: as if there were none. */
static void plain_rank(struct abi_rank *rank)
{
	ncclComm_t comm;
	int device = 0, in = rank->rank, out = -1;

	OK(ncclCommInitRank(&comm, rank->n_ranks, rank->id, rank->rank));
	OK(ncclCommCuDevice(comm, &device));
	CHECK(device == -1);
	OK(ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comm, NULL));
	CHECK(out == rank->n_ranks * (rank->n_ranks - 1) / 2);
	OK(ncclCommDestroy(comm));
}

void gpu_test_host(void)
{
	abi_threads(3, mixed_rank, NULL);
	abi_threads(2, plain_rank, NULL);
}

/* ---- what is wrong ---- */

/* Buffers and streams of more than one device. */
static void bad_devices(struct gpu_rank *gpu, int rank)
{
	struct CUstream_st *stream;
	struct CUctx_st *other;
	cu_ptr there;
	void *far;

	/* A context that CUDA's runtime would not use. */
	CU(cuCtxCreate_v2(&other, 0, rank % n_devices));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	REFUSED(ncclAllReduce(gpu->send, gpu->recv, 8, ncclInt32, ncclSum,
			      gpu->comm, (cudaStream_t)stream),
		ncclInvalidArgument, "not the primary");
	CU(cuStreamDestroy_v2(stream));
	CU(cuCtxDestroy_v2(other));
	CU(cuCtxSetCurrent(gpu->context));
	if (n_devices < 2)
		return;
	CU(cuDevicePrimaryCtxRetain(&other, (rank + 1) % n_devices));
	CU(cuCtxSetCurrent(other));
	CU(cuMemAlloc_v2(&there, GPU_BYTES));
	CU(cuCtxSetCurrent(gpu->context));
	far = (void *)(uintptr_t)there;
	REFUSED(ncclAllReduce(far, gpu->recv, 8, ncclInt32, ncclSum, gpu->comm,
			      gpu->cuda), ncclInvalidArgument, "GPU");
	REFUSED(ncclAllReduce(far, far, 8, ncclInt32, ncclSum, gpu->comm,
			      gpu->cuda), ncclInvalidArgument, "GPU");
	CU(cuMemFree_v2(there));
	CU(cuDevicePrimaryCtxRelease_v2((rank + 1) % n_devices));
}

static void bad_rank(struct abi_rank *rank)
{
	static atomic_int n_ready;
	struct CUgraph_st *graph = NULL;
	struct gpu_rank gpu;
	cu_ptr freed;

	gpu_open(&gpu, rank);
	CU(cuMemAlloc_v2(&freed, GPU_BYTES));
	CU(cuMemFree_v2(freed));
	IS(ncclAllReduce((void *)(uintptr_t)freed, gpu.recv, 8, ncclInt32,
			 ncclSum, gpu.comm, gpu.cuda), ncclInvalidArgument);
	CHECK(*ncclGetLastError(NULL));
	bad_devices(&gpu, rank->rank);
	/* While a graph is captured. */
	CU(cuStreamBeginCapture_v2(gpu.stream,
				   CU_STREAM_CAPTURE_MODE_RELAXED));
	REFUSED(ncclAllReduce(gpu.send, gpu.recv, 8, ncclInt32, ncclSum,
			      gpu.comm, gpu.cuda), ncclInvalidUsage, "graph");
	CU(cuStreamEndCapture(gpu.stream, &graph));
	CU(cuGraphDestroy(graph));
	/* More than there is. */
	CHECK(ncclMemAlloc((void **)&graph, (size_t)1 << 50) != ncclSuccess);
	CHECK(*ncclGetLastError(NULL));
	/* Memory is freed when its GPU is idle, which must not be waiting for
	 * this rank yet. */
	atomic_fetch_add(&n_ready, 1);
	while (atomic_load(&n_ready) < rank->n_ranks)
		abi_nap();
	/* It works on. */
	gpu_put(&gpu, gpu.send, rank->rank + 1);
	OK(ncclAllReduce(gpu.send, gpu.recv, GPU_COUNT, ncclInt32, ncclSum,
			 gpu.comm, gpu.cuda));
	gpu_take(&gpu, gpu.recv);
	CU(cuStreamSynchronize(gpu.stream));
	CHECK(gpu.out[5] == gpu_sum(rank->n_ranks, 5));
	gpu_close(&gpu);
}

void gpu_test_bad_input(void)
{
	abi_threads(2, bad_rank, NULL);
}

/* ---- given up ---- */

/* Rank 1 never calls; a watchdog on rank 0 aborts, and the stream goes on. */
static void *watchdog(void *arg)
{
	ncclResult_t state;
	int i;

	for (i = 0; i < 200; i++) {
		OK(ncclCommGetAsyncError(arg, &state));
		CHECK(state == ncclSuccess);
		abi_nap();
	}
	OK(ncclCommAbort(arg));
	return NULL;
}

static void abort_rank(struct abi_rank *rank)
{
	struct gpu_rank gpu;
	pthread_t thread;

	gpu_open(&gpu, rank);
	if (!rank->rank) {
		gpu_put(&gpu, gpu.send, 1);
		OK(ncclAllReduce(gpu.send, gpu.recv, GPU_COUNT, ncclInt32,
				 ncclSum, gpu.comm, gpu.cuda));
		CHECK(!pthread_create(&thread, NULL, watchdog, gpu.comm));
		/* Ends, since the operation has failed. */
		CU(cuStreamSynchronize(gpu.stream));
		CHECK(!pthread_join(thread, NULL));
	} else {
		CHECK(abi_await_error(gpu.comm) == ncclRemoteError);
		OK(ncclCommAbort(gpu.comm));
	}
	gpu_close_memory(&gpu);
}

void gpu_test_abort(void)
{
	abi_threads(2, abort_rank, NULL);
}
