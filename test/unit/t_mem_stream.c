/* SPDX-License-Identifier: MIT */
/*
 * Goal: a put is reached when the stream has done what came before it, and what
 * comes after it is not done before it is released; nothing of that blocks.
 * Method: values that the simulated driver's late streams write before and
 * after puts, on streams of every kind.
 */
#define _GNU_SOURCE
#include "mem/cuda.h"
#include "test/unit/mem_gpu.h"

#define ST struct CUstream_st *

static struct mem_stream *open_stream(void *cuda_stream)
{
	struct mem_stream *stream;

	if (mem_stream_open(cuda_stream, &stream))
		kit_broken(base_error_text(), "mem_stream_open", 0);
	return stream;
}

static uint32_t put(struct mem_stream *stream)
{
	uint32_t number;

	if (mem_stream_put(stream, &number))
		kit_broken(base_error_text(), "mem_stream_put", 0);
	return number;
}

static void reach(struct mem_stream *stream, uint32_t number)
{
	int is_reached;

	while (!(is_reached = mem_stream_reached(stream, number)))
		sched_yield();
	CHECK(is_reached == 1);
}

static ST new_stream(int flags)
{
	ST stream;

	OK(CU(cuStreamCreate)(&stream, (unsigned int)flags));
	return stream;
}

/* Each value is written when the puts before it are released, not earlier. */
static void walk(ST queue, int n)
{
	struct mem_stream *stream = open_stream(queue);
	cu_ptr memory = kit_alloc(64);
	volatile char *at = alias((void *)(uintptr_t)memory, 64);
	uint32_t numbers[8];
	int i;

	OK(CU(cuMemsetD8Async)(memory, 100, 64, queue));
	for (i = 0; i < n; i++) {
		numbers[i] = put(stream);
		OK(CU(cuMemsetD8Async)(memory, (unsigned char)i, 64, queue));
	}
	for (i = 0; i < n; i++) {
		reach(stream, numbers[i]);
		CHECK(at[0] == (i ? i - 1 : 100));
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
		CHECK(at[63] == (i ? i - 1 : 100));
		CHECK(i == n - 1 ||
		      !mem_stream_reached(stream, numbers[i + 1]));
		mem_stream_release(stream, numbers[i]);
	}
	OK(CU(cuStreamSynchronize)(queue));
	CHECK(at[0] == n - 1 && at[63] == n - 1);
	/* A release is for all puts before it as well, and never taken back. */
	numbers[0] = put(stream);
	numbers[1] = put(stream);
	OK(CU(cuMemsetD8Async)(memory, 77, 64, queue));
	mem_stream_release(stream, numbers[1]);
	mem_stream_release(stream, numbers[0]);
	OK(CU(cuStreamSynchronize)(queue));
	CHECK(at[0] == 77);
	CHECK(mem_stream_reached(stream, numbers[0]) == 1);
	mem_stream_close(stream);
	OK(CU(cuMemFree_v2)(memory));
}

static void streams(void)
{
	static const int flags[] = {0, CU_STREAM_NON_BLOCKING};
	struct CUctx_st *is, *mine;
	size_t i;

	OK(CU(cuInit)(0));
	mine = kit_use(1);
	for (i = 0; i < 2; i++) {
		ST stream = new_stream(flags[i]);

		walk(stream, 8);
		OK(CU(cuStreamDestroy_v2)(stream));
	}
	walk(NULL, 3);
	walk(CU_STREAM_LEGACY, 3);
	walk(CU_STREAM_PER_THREAD, 3);
	CHECK(!CU(cuCtxGetCurrent)(&is) && is == mine);
	CHECK(!CU(fakeCudaCalls)("cuCtxSynchronize"));
	kit_leave(1);
}

static void a_stream_waits_for_its_release(void **unused)
{
	(void)unused;
	gpu_case("late=200us", streams);
	gpu_case("late=0", streams);
}

static void others(void)
{
	struct mem_stream *stream, *second;
	struct CUctx_st *foreign;
	ST queue;

	OK(CU(cuInit)(0));
	FAILS(WREATH_EINVAL, mem_stream_open(NULL, &stream));
	CHECK(tells("cudaSetDevice"));
	kit_use(0);
	stream = open_stream(NULL);
	CHECK(mem_stream_gpu(stream) == 0);
	mem_stream_close(stream);
	OK(CU(cuCtxCreate_v2)(&foreign, 0, 1));
	queue = new_stream(0);
	FAILS(WREATH_EINVAL, mem_stream_open(queue, &stream));
	CHECK(tells("primary") && tells("GPU 1"));
	kit_use(1);
	FAILS(WREATH_EINVAL, mem_stream_open(queue, &stream));
	second = open_stream(NULL);
	CHECK(mem_stream_gpu(second) == 1);
	mem_stream_close(second);
	OK(CU(cuStreamDestroy_v2)(queue));
	OK(CU(cuCtxDestroy_v2)(foreign));
	queue = new_stream(0);
	OK(CU(cuStreamDestroy_v2)(queue));
	FAILS(WREATH_EINVAL, mem_stream_open(queue, &stream));
	CHECK(tells("no CUDA stream"));
	mem_stream_close(NULL);
	kit_leave(1);
	OK(CU(cuCtxSetCurrent)(NULL));
	OK(CU(cuDevicePrimaryCtxRelease_v2)(0));
}

static void streams_that_cannot_be_are_refused(void **unused)
{
	(void)unused;
	gpu_case("", others);
}

static void captured(void)
{
	struct mem_stream *stream, *other;
	struct CUgraph_st *graph;
	struct mem_gpu *gpu;
	uint32_t number;
	ST queue;
	ST free_one;

	OK(CU(cuInit)(0));
	kit_use(0);
	set_image("fake");
	queue = new_stream(CU_STREAM_NON_BLOCKING);
	free_one = new_stream(CU_STREAM_NON_BLOCKING);
	stream = open_stream(queue);
	other = open_stream(free_one);
	number = put(stream);
	mem_stream_release(stream, number);
	reach(stream, number);
	OK(CU(cuStreamBeginCapture_v2)(queue, CU_STREAM_CAPTURE_MODE_GLOBAL));
	FAILS(WREATH_EUNSUP, mem_stream_put(stream, &number));
	CHECK(tells("graph"));
	/* What else is done does not disturb the capture. */
	gpu = open_gpu(0, 4096);
	OK(mem_free(new_memory(100, 0)));
	number = put(other);
	reach(other, number);
	mem_stream_release(other, number);
	drain(gpu);
	mem_gpu_close(gpu);
	OK(CU(cuStreamEndCapture)(queue, &graph));
	OK(CU(cuGraphDestroy)(graph));
	number = put(stream);
	mem_stream_release(stream, number);
	reach(stream, number);
	OK(CU(cuStreamSynchronize)(queue));
	OK(CU(cuStreamSynchronize)(free_one));
	mem_stream_close(stream);
	mem_stream_close(other);
	OK(CU(cuStreamDestroy_v2)(queue));
	OK(CU(cuStreamDestroy_v2)(free_one));
	kit_leave(0);
}

static void a_captured_stream_is_refused(void **unused)
{
	(void)unused;
	gpu_case("", captured);
}

static void many(void)
{
	struct mem_stream *stream;
	uint32_t first, number;
	int i;
	ST queue;

	OK(CU(cuInit)(0));
	kit_use(0);
	queue = new_stream(0);
	stream = open_stream(queue);
	first = put(stream);
	for (i = 1; i < MEM_STREAM_MAX; i++)
		CHECK(put(stream) == first + (uint32_t)i);
	FAILS(WREATH_EAGAIN, mem_stream_put(stream, &number));
	CHECK(tells("1024"));
	mem_stream_release(stream, first);
	put(stream);
	FAILS(WREATH_EAGAIN, mem_stream_put(stream, &number));
	mem_stream_release(stream, first + MEM_STREAM_MAX);
	OK(CU(cuStreamSynchronize)(queue));
	CHECK(mem_stream_reached(stream, first + MEM_STREAM_MAX) == 1);
	mem_stream_close(stream);
	OK(CU(cuStreamDestroy_v2)(queue));
	kit_leave(0);
}

static void puts_are_bounded(void **unused)
{
	(void)unused;
	gpu_case("late=0", many);
}

/* The words of a stream that is closed are the next one's, wherever the
 * numbers are. */
static void wrap(void)
{
	struct cuda_words words;
	struct cuda_gpu *gpu;
	int i, k;

	OK(cuda_gpu_get(0, &gpu));
	OK(cuda_words_get(gpu, &words));
	atomic_store(words.from_gpu, UINT32_MAX - 20);
	cuda_words_put(&words);
	kit_use(0);
	for (i = 0; i < 5; i++) {
		ST queue = new_stream(0);
		struct mem_stream *stream = open_stream(queue);

		for (k = 0; k < 10; k++) {
			uint32_t number = put(stream);

			CHECK(k || number == (uint32_t)(10 * i - 20));
			CHECK(number - (uint32_t)k ==
			      (uint32_t)(10 * i - 20));
			reach(stream, number);
			mem_stream_release(stream, number);
		}
		OK(CU(cuStreamSynchronize)(queue));
		mem_stream_close(stream);
		OK(CU(cuStreamDestroy_v2)(queue));
	}
	kit_leave(0);
}

static void numbers_go_round(void **unused)
{
	(void)unused;
	gpu_case("", wrap);
}

/* Closed while the stream has not come to its put: nothing is disturbed. */
static void early_close(void)
{
	int i;

	OK(CU(cuInit)(0));
	kit_use(0);
	for (i = 0; i < 20; i++) {
		ST queue = new_stream(0);
		struct mem_stream *stream = open_stream(queue);

		put(stream);
		put(stream);
		mem_stream_close(stream);
		/* It was let go. */
		OK(CU(cuStreamSynchronize)(queue));
		OK(CU(cuStreamDestroy_v2)(queue));
	}
	kit_leave(0);
	_exit(0);
}

static void a_stream_may_be_closed_early(void **unused)
{
	(void)unused;
	kit_case("late=1ms", early_close);
}

static void failing(void)
{
	static const char *const calls[] = {"cuStreamWriteValue32_v2",
					    "cuStreamWaitValue32_v2",
					    "cuStreamIsCapturing"};
	struct mem_stream *stream;
	uint32_t number, first = 0;
	cu_ptr memory;
	size_t i;
	ST queue;
	int err;

	OK(CU(cuInit)(0));
	kit_use(0);
	queue = new_stream(0);
	memory = kit_alloc(100);
	stream = open_stream(queue);
	for (i = 0; i < 3; i++) {
		CU(fakeCudaFail)(calls[i], 1);
		FAILS(WREATH_EDEVICE, mem_stream_put(stream, &number));
		CHECK(tells("CUDA_ERROR_") && tells("GPU 0"));
		CU(fakeCudaFail)(NULL, 0);
		number = put(stream);
		CHECK(number != first);
		first = number;
		reach(stream, number);
		mem_stream_release(stream, number);
		OK(CU(cuStreamSynchronize)(queue));
	}
	/* A context that breaks writes no more words. */
	CU(fakeCudaFail)("copy", 1);
	OK(CU(cuMemcpyAsync)(memory, memory + 50, 10, queue));
	err = mem_stream_put(stream, &number);
	while (!err) {
		err = mem_stream_reached(stream, number);
		CHECK(err <= 0);
	}
	FAILS(WREATH_EDEVICE, err);
	CHECK(tells("CUDA_ERROR_"));
	mem_stream_close(stream);
	_exit(0);
}

static void failures_of_the_device_are_told(void **unused)
{
	(void)unused;
	kit_case("", failing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_waits_for_its_release),
		cmocka_unit_test(streams_that_cannot_be_are_refused),
		cmocka_unit_test(a_captured_stream_is_refused),
		cmocka_unit_test(puts_are_bounded),
		cmocka_unit_test(numbers_go_round),
		cmocka_unit_test(a_stream_may_be_closed_early),
		cmocka_unit_test(failures_of_the_device_are_told),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
