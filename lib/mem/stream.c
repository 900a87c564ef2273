/* SPDX-License-Identifier: MIT */
/* Streams of the user, in whose order operations run. */
#include <pthread.h>

#include "mem/cuda.h"

/* Looks without an answer before the context is asked whether it is broken. */
#define POLLS 4096

struct mem_stream {
	struct cuda_gpu *gpu;
	struct CUstream_st *stream;
	struct cuda_words words;
	uint32_t last;
	_Atomic uint32_t released;
	_Atomic unsigned int n_polls;
};

/* Puts of all streams that are not released. */
static struct {
	pthread_mutex_t lock;
	_Atomic long n_held;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool cuda_gate_shut(void)
{
	pthread_mutex_lock(&gate.lock);
	if (!atomic_load_explicit(&gate.n_held, memory_order_relaxed))
		return true;
	pthread_mutex_unlock(&gate.lock);
	return false;
}

void cuda_gate_open(void)
{
	pthread_mutex_unlock(&gate.lock);
}

static int find_gpu(void *stream, struct cuda_gpu **out)
{
	struct CUctx_st *ctx = NULL;
	struct CUctx_st *old;
	unsigned int flags;
	int device = -1;
	int is_active = 0;
	int result = cuda.stream_ctx(stream, &ctx);
	int err;

	if (result && result != CUDA_INVALID_HANDLE &&
	    result != CUDA_INVALID_CONTEXT)
		return cuda_error(result, "cuStreamGetCtx", "stream %p of a GPU",
				  stream);
	if (result || !ctx)
		return base_error(WREATH_EINVAL,
				  "%p is no CUDA stream of this process%s",
				  stream, stream ? ""
				  : ": the calling thread has no context; call "
				    "cudaSetDevice() first");
	result = cuda.ctx_push(ctx);
	if (!result) {
		result = cuda.ctx_device(&device);
		cuda.ctx_pop(&old);
	}
	if (!result)
		result = cuda.ctx_state(device, &flags, &is_active);
	if (result)
		return cuda_error(result, "cuCtxGetDevice", "stream %p",
				  stream);
	if (is_active) {
		err = cuda_gpu_get(device, out);
		if (err || (*out)->ctx == ctx)
			return err;
	}
	return base_error(WREATH_EINVAL,
			  "stream %p is of a context that is not the primary "
			  "one of GPU %d; make it by cudaStreamCreate(), or in "
			  "the context of cuDevicePrimaryCtxRetain()", stream,
			  device);
}

int mem_stream_open(void *cuda_stream, struct mem_stream **out)
{
	struct mem_gpu_info info;
	struct mem_stream *stream;
	struct cuda_gpu *gpu;
	int err = mem_cuda_load();

	if (!err)
		err = find_gpu(cuda_stream, &gpu);
	/* Loading kernels may wait for all streams: it must not be left to an
	 * operation that this stream waits for. */
	if (!err)
		err = cuda_kernels_load(gpu, &info);
	if (err)
		return err;
	stream = base_alloc(1, sizeof(*stream));
	if (!stream)
		return WREATH_ENOMEM;
	stream->gpu = gpu;
	stream->stream = cuda_stream;
	err = cuda_words_get(gpu, &stream->words);
	if (err) {
		base_free(stream);
		return err;
	}
	/* Its words may have been another's, who left them at one number. */
	stream->last = atomic_load_explicit(stream->words.from_gpu,
					    memory_order_relaxed);
	atomic_store_explicit(stream->words.to_gpu, stream->last,
			      memory_order_relaxed);
	atomic_store_explicit(&stream->released, stream->last,
			      memory_order_relaxed);
	*out = stream;
	return 0;
}

void mem_stream_close(struct mem_stream *stream)
{
	if (!stream)
		return;
	mem_stream_release(stream, stream->last);
	/* What the stream is still to write would disturb the next owner. */
	if (atomic_load_explicit(stream->words.from_gpu,
				 memory_order_acquire) == stream->last)
		cuda_words_put(&stream->words);
	base_free(stream);
}

int mem_stream_gpu(const struct mem_stream *stream)
{
	return stream->gpu->number;
}

static int check_capture(struct mem_stream *stream)
{
	int status = CUDA_CAPTURE_NONE;
	int result = cuda.stream_capturing(stream->stream, &status);

	if (result && result != CUDA_STREAM_CAPTURE_IMPLICIT)
		return cuda_error(result, "cuStreamIsCapturing",
				  "a stream of GPU %d", stream->gpu->number);
	if (result || status != CUDA_CAPTURE_NONE)
		return base_error(WREATH_EUNSUP,
				  "the stream of GPU %d is being captured into "
				  "a graph, where operations between ranks "
				  "cannot be; call it outside of the capture",
				  stream->gpu->number);
	return 0;
}

/* Caller holds @gate.lock and has entered the context. */
static int put(struct mem_stream *stream, uint32_t number)
{
	int result = cuda.stream_write(stream->stream,
				       (uintptr_t)stream->words.from_gpu,
				       number, 0);

	if (result)
		return cuda_error(result, "cuStreamWriteValue32",
				  "a stream of GPU %d", stream->gpu->number);
	result = cuda.stream_wait(stream->stream,
				  (uintptr_t)stream->words.to_gpu, number, 0);
	if (result)
		return cuda_error(result, "cuStreamWaitValue32",
				  "a stream of GPU %d", stream->gpu->number);
	return 0;
}

int mem_stream_put(struct mem_stream *stream, uint32_t *number)
{
	uint32_t released = atomic_load_explicit(&stream->released,
						 memory_order_relaxed);
	int err;

	if (stream->last - released >= MEM_STREAM_MAX)
		return base_error(WREATH_EAGAIN,
				  "%d operations wait on a stream of GPU %d; "
				  "wait for some", MEM_STREAM_MAX,
				  stream->gpu->number);
	err = cuda_enter(stream->gpu);
	if (err)
		return err;
	err = check_capture(stream);
	if (err)
		goto out;
	/* A number is not used again: a put of which one half failed may have
	 * left the other. */
	stream->last++;
	pthread_mutex_lock(&gate.lock);
	atomic_fetch_add_explicit(&gate.n_held, 1, memory_order_relaxed);
	err = put(stream, stream->last);
	pthread_mutex_unlock(&gate.lock);
	if (!err)
		*number = stream->last;
out:
	cuda_leave();
	return err;
}

int mem_stream_reached(struct mem_stream *stream, uint32_t number)
{
	/* What the stream did before it wrote the word is seen behind it. */
	uint32_t word = atomic_load_explicit(stream->words.from_gpu,
					     memory_order_acquire);
	unsigned int n;
	int result;

	if ((int32_t)(word - number) >= 0)
		return 1;
	n = atomic_fetch_add_explicit(&stream->n_polls, 1,
				      memory_order_relaxed);
	if (n % POLLS != POLLS - 1)
		return 0;
	/* Not the stream itself, which may be captured by now. */
	result = cuda_gpu_health(stream->gpu);
	return result ? cuda_error(result, "waiting for a stream", "GPU %d (%s)",
				   stream->gpu->number, stream->gpu->info.name)
		      : 0;
}

void mem_stream_release(struct mem_stream *stream, uint32_t number)
{
	uint32_t before = atomic_load_explicit(&stream->released,
					       memory_order_relaxed);
	int32_t n = (int32_t)(number - before);

	if (n <= 0)
		return;
	/* What was done for the put is seen by what the stream does next. */
	atomic_store_explicit(stream->words.to_gpu, number,
			      memory_order_release);
	atomic_store_explicit(&stream->released, number, memory_order_relaxed);
	atomic_fetch_sub_explicit(&gate.n_held, n, memory_order_relaxed);
}
