/* SPDX-License-Identifier: MIT */
/*
 * All-reduce on a GPU, in the order of a CUDA stream.
 *
 * Gradients lie in memory of the GPU.  What computes them is put on a stream;
 * the all-reduce is put behind it, and what uses the averages behind that: the
 * stream keeps the order, and the program waits for nothing in between.  Copies
 * stand here for what a model would compute.
 *
 * It uses CUDA's driver, which has all that it takes; streams and pointers of
 * the CUDA runtime (cudaStream_t, cudaMalloc) serve as well.
 *
 *	cc 05_gpu.c $(pkg-config --cflags --libs wreath) \
 *		-I/usr/local/cuda/include -lcuda -o 05_gpu
 *	wreath run -n 2 ./05_gpu
 *
 * Ranks take the GPUs of their host in turn; several may share one.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <wreath.h>

#define N ((size_t)1 << 18)
#define BYTES (N * sizeof(float))
#define N_STEPS 5

/* What a rank has on its GPU. */
struct gpu {
	CUcontext ctx;
	CUstream cuda;
	struct wreath_stream *stream; /* in order with @cuda */
	void *gradients, *averages;
	/*
	 * Of the host, [N_STEPS][N] each: what goes in, and what came out.
	 * Only pinned memory is copied without the caller's waiting for it.
	 */
	float *inputs, *results;
};

static int fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, wreath_error_text());
	return 1;
}

static int cuda_failed(CUresult error, const char *what)
{
	const char *text = "CUDA is not here";

	if (!error)
		return 0;
	cuGetErrorString(error, &text);
	fprintf(stderr, "%s: %s\n", what, text);
	return 1;
}

/* The primary context is the one that the CUDA runtime uses. */
static int use_gpu(int rank, struct gpu *gpu)
{
	CUdevice device;
	int n;

	return cuda_failed(cuInit(0), "cannot start CUDA") ||
	       cuda_failed(cuDeviceGetCount(&n), "cannot count GPUs") ||
	       cuda_failed(cuDeviceGet(&device, n ? rank % n : 0), "no GPU") ||
	       cuda_failed(cuDevicePrimaryCtxRetain(&gpu->ctx, device),
			   "cannot use the GPU") ||
	       cuda_failed(cuCtxSetCurrent(gpu->ctx), "cannot use the GPU") ||
	       cuda_failed(cuStreamCreate(&gpu->cuda, CU_STREAM_NON_BLOCKING),
			   "no stream");
}

/* On the device whose context is current: the one that @ptr NULL asks for. */
static int make_buffers(struct gpu *gpu)
{
	int device;

	if (wreath_mem_device(NULL, &device) ||
	    wreath_mem_alloc_gpu(BYTES, device, &gpu->gradients) ||
	    wreath_mem_alloc_gpu(BYTES, device, &gpu->averages))
		return fail("no memory on the GPU");
	if (cuda_failed(cuMemHostAlloc((void **)&gpu->inputs, N_STEPS * BYTES,
				       0), "no pinned memory") ||
	    cuda_failed(cuMemHostAlloc((void **)&gpu->results, N_STEPS * BYTES,
				       0), "no pinned memory"))
		return 1;
	if (wreath_stream_from_cuda(gpu->cuda, &gpu->stream))
		return fail("no stream in order with CUDA's");
	return 0;
}

/* All of it is put on the stream, and nothing of it waited for. */
static int put_step(const struct gpu *gpu, struct wreath_comm *comm, int step)
{
	CUdeviceptr gradients = (CUdeviceptr)gpu->gradients;
	CUdeviceptr averages = (CUdeviceptr)gpu->averages;

	if (cuda_failed(cuMemcpyHtoDAsync(gradients, gpu->inputs + step * N,
					  BYTES, gpu->cuda), "cannot compute"))
		return 1;
	if (wreath_all_reduce(gpu->gradients, gpu->averages, N, WREATH_FLOAT32,
			      WREATH_AVG, comm, gpu->stream))
		return fail("cannot reduce");
	return cuda_failed(cuMemcpyDtoHAsync(gpu->results + step * N, averages,
					     BYTES, gpu->cuda), "cannot use it");
}

/* Rank r gives 2r more than the place says; that is n - 1 on average. */
static float want(int n_ranks, size_t i)
{
	return (float)(n_ranks - 1) + (float)(i % 1021);
}

static int train(const struct gpu *gpu, struct wreath_comm *comm)
{
	int rank = wreath_comm_rank(comm);
	int n = wreath_comm_size(comm);
	int step;
	size_t i;

	for (i = 0; i < N_STEPS * N; i++)
		gpu->inputs[i] = (float)(2 * rank) + (float)(i % 1021);
	for (step = 0; step < N_STEPS; step++)
		if (put_step(gpu, comm, step))
			return 1;
	/* Here, in the end, the program needs the results. */
	if (cuda_failed(cuStreamSynchronize(gpu->cuda), "the GPU failed"))
		return 1;
	/* If an operation has failed, the stream went on without its result. */
	if (wreath_stream_wait(gpu->stream))
		return fail("cannot reduce");
	for (i = 0; i < N_STEPS * N; i++) {
		if (gpu->results[i] == want(n, i))
			continue;
		fprintf(stderr, "rank %d, step %zu: element %zu is %g, not "
				"%g\n", rank, i / N, i % N,
			(double)gpu->results[i], (double)want(n, i));
		return 1;
	}
	printf("rank %d of %d on %s: %d averages of %zu KiB are right\n", rank,
	       n, wreath_comm_device(comm), N_STEPS, BYTES >> 10);
	return 0;
}

int main(void)
{
	struct gpu gpu = {.cuda = NULL};
	struct wreath_comm *comm;
	int bad;

	if (wreath_comm_init_env(&comm))
		return fail("cannot join");
	bad = use_gpu(wreath_comm_rank(comm), &gpu) || make_buffers(&gpu) ||
	      train(&gpu, comm);
	/* Before the communicator, whose operations are on it. */
	if (wreath_stream_destroy(gpu.stream) && !bad)
		bad = fail("the stream failed");
	if (wreath_comm_destroy(comm) && !bad)
		bad = fail("cannot leave");
	wreath_mem_free(gpu.gradients);
	wreath_mem_free(gpu.averages);
	if (gpu.inputs)
		cuMemFreeHost(gpu.inputs);
	if (gpu.results)
		cuMemFreeHost(gpu.results);
	if (gpu.cuda)
		cuStreamDestroy(gpu.cuda);
	return bad;
}
