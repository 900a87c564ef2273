/* SPDX-License-Identifier: MIT */
/*
 * Goal: the simulated driver's streams are in order each, out of step with one
 * another, and late, so that a program that relies on luck fails on them.
 * Method: many pieces of work with delays by chance, whose effects tell their
 * order.
 */
#include "test/unit/cuda_kit.h"

#define N 200

static uint32_t *words_new(size_t n)
{
	void *at;

	OK(CU(cuMemHostAlloc)(&at, n * sizeof(uint32_t), 0));
	memset(at, 0, n * sizeof(uint32_t));
	return at;
}

static uint32_t load(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static struct CUstream_st *stream_new(unsigned int flags)
{
	struct CUstream_st *stream;

	OK(CU(cuStreamCreate)(&stream, flags));
	return stream;
}

struct seen {
	uint32_t order[2 * N];
	_Atomic uint32_t n;
};

static struct seen seen;

static void note(void *arg)
{
	int count;

	seen.order[seen.n++] = (uint32_t)(uintptr_t)arg;
	/* Within such a function nothing of CUDA may be called. */
	FAILS(CUDA_ERROR_NOT_PERMITTED, CU(cuDeviceGetCount)(&count));
}

static void two_streams(void)
{
	struct CUstream_st *stream[2];
	uint32_t next[2] = {0, 0};
	int n_turns = 0;
	uintptr_t i;

	OK(CU(cuInit)(0));
	kit_use(0);
	stream[0] = stream_new(CU_STREAM_NON_BLOCKING);
	stream[1] = stream_new(0);
	for (i = 0; i < 2 * N; i++)
		OK(CU(cuLaunchHostFunc)(stream[i % 2], note, (void *)i));
	FAILS(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(stream[0]));
	OK(CU(cuStreamSynchronize)(stream[0]));
	OK(CU(cuStreamSynchronize)(stream[1]));
	CHECK(seen.n == 2 * N);
	/* Each in order; they overtake each other, again and again. */
	for (i = 0; i < 2 * N; i++) {
		uint32_t is = seen.order[i];

		CHECK(is / 2 == next[is % 2]);
		next[is % 2]++;
		n_turns += i && seen.order[i - 1] % 2 != is % 2;
	}
	CHECK(n_turns > 10 && n_turns < 2 * N - 10);
	OK(CU(cuStreamDestroy_v2)(stream[0]));
	FAILS(CUDA_ERROR_INVALID_HANDLE, CU(cuStreamQuery)(stream[0]));
	OK(CU(cuStreamDestroy_v2)(stream[1]));
	kit_leave(0);
}

static void work_of_a_stream_is_in_order_and_streams_are_not(void **state)
{
	(void)state;
	kit_case("late=300us", two_streams);
}

static void legacy(void)
{
	struct CUstream_st *blocking, *apart;
	uint32_t *words = NULL;
	uint32_t value = 0;
	cu_ptr ptr;
	int i;

	OK(CU(cuInit)(0));
	kit_use(0);
	words = words_new(16);
	ptr = kit_alloc(4);
	blocking = stream_new(0);
	apart = stream_new(CU_STREAM_NON_BLOCKING);
	/* It waits here for ever, and holds up nobody but itself. */
	OK(CU(cuStreamWaitValue32_v2)(apart, (uintptr_t)&words[1], 1,
				      CU_STREAM_WAIT_VALUE_GEQ));
	for (i = 1; i <= 20; i++) {
		OK(CU(cuMemsetD8Async)(ptr, (unsigned char)i, 4, blocking));
		/* On the default stream: after it, and before the next. */
		OK(CU(cuMemcpyDtoH_v2)(&value, ptr, 4));
		CHECK(value == 0x01010101u * (uint32_t)i);
		OK(CU(cuMemsetD8_v2)(ptr, 0x80, 4));
		OK(CU(cuMemcpyDtoHAsync_v2)(&value, ptr, 4, blocking));
		CHECK(value == 0x80808080u);
	}
	CHECK(CU(cuStreamQuery)(apart) == CUDA_ERROR_NOT_READY);
	__atomic_store_n(&words[1], 1, __ATOMIC_RELEASE);
	OK(CU(cuCtxSynchronize)());
	OK(CU(cuStreamDestroy_v2)(apart));
	OK(CU(cuStreamDestroy_v2)(blocking));
	OK(CU(cuMemFree_v2)(ptr));
	OK(CU(cuMemFreeHost)(words));
	kit_leave(0);
}

static void the_default_stream_is_in_order_with_those_that_block(void **state)
{
	(void)state;
	kit_case("late=1ms", legacy);
}

static void wait_one(uint32_t *word, uint32_t before, uint32_t after,
		     uint32_t value, unsigned int how)
{
	const struct timespec some = {.tv_nsec = 2000000};
	struct CUstream_st *stream = stream_new(CU_STREAM_NON_BLOCKING);

	__atomic_store_n(word, before, __ATOMIC_RELEASE);
	OK(CU(cuStreamWaitValue32_v2)(stream, (uintptr_t)word, value, how));
	nanosleep(&some, NULL);
	CHECK(CU(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY);
	__atomic_store_n(word, after, __ATOMIC_RELEASE);
	OK(CU(cuStreamSynchronize)(stream));
	OK(CU(cuStreamDestroy_v2)(stream));
}

static void words(void)
{
	uint32_t *word;
	uint32_t apart = 0;

	OK(CU(cuInit)(0));
	kit_use(0);
	word = words_new(2);
	wait_one(word, 4, 5, 5, CU_STREAM_WAIT_VALUE_GEQ);
	wait_one(word, 0xfffffff0u, 3, 2, CU_STREAM_WAIT_VALUE_GEQ);
	wait_one(word, 4, 5, 5, CU_STREAM_WAIT_VALUE_EQ);
	wait_one(word, 4, 3, 3, CU_STREAM_WAIT_VALUE_AND);
	wait_one(word, 0x0fffffffu, 7, 0xf0000000u, CU_STREAM_WAIT_VALUE_NOR);
	FAILS(CUDA_ERROR_INVALID_VALUE,
	      CU(cuStreamWaitValue32_v2)(NULL, (uintptr_t)&apart, 1, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE,
	      CU(cuStreamWriteValue32_v2)(NULL, (uintptr_t)word + 2, 1, 0));
	OK(CU(cuMemFreeHost)(word));
	kit_leave(0);
}

static void streams_wait_for_values_that_wrap(void **state)
{
	(void)state;
	kit_case("", words);
}

static void no_words(void)
{
	uint32_t *word;

	OK(CU(cuInit)(0));
	kit_use(0);
	word = words_new(1);
	FAILS(CUDA_ERROR_NOT_SUPPORTED,
	      CU(cuStreamWriteValue32_v2)(NULL, (uintptr_t)word, 1, 0));
	OK(CU(cuMemFreeHost)(word));
	kit_leave(0);
}

static void memory_operations_may_be_missing(void **state)
{
	(void)state;
	kit_case("nomemops", no_words);
}

static void events(void)
{
	struct CUstream_st *a, *b;
	struct CUevent_st *event, *end;
	uint32_t *word;
	float ms = -1;

	OK(CU(cuInit)(0));
	kit_use(0);
	word = words_new(4);
	a = stream_new(CU_STREAM_NON_BLOCKING);
	b = stream_new(CU_STREAM_NON_BLOCKING);
	OK(CU(cuEventCreate)(&event, 0));
	OK(CU(cuEventCreate)(&end, 0));
	OK(CU(cuEventQuery)(event));
	OK(CU(cuStreamWaitValue32_v2)(a, (uintptr_t)&word[0], 1, 0));
	OK(CU(cuStreamWriteValue32_v2)(a, (uintptr_t)&word[1], 7, 0));
	OK(CU(cuEventRecord)(event, a));
	OK(CU(cuStreamWaitEvent)(b, event, 0));
	OK(CU(cuMemcpyAsync)((uintptr_t)&word[2], (uintptr_t)&word[1], 4, b));
	OK(CU(cuEventRecord)(end, b));
	FAILS(CUDA_ERROR_NOT_READY, CU(cuEventQuery)(event));
	FAILS(CUDA_ERROR_NOT_READY, CU(cuEventQuery)(end));
	__atomic_store_n(&word[0], 1, __ATOMIC_RELEASE);
	OK(CU(cuEventSynchronize)(end));
	OK(CU(cuEventQuery)(event));
	CHECK(word[2] == 7);
	OK(CU(cuEventElapsedTime)(&ms, event, end));
	CHECK(ms >= 0 && ms < 60000);
	/* A wait is for the record of its time, not for a later one. */
	OK(CU(cuStreamWaitEvent)(b, event, 0));
	OK(CU(cuStreamWaitValue32_v2)(a, (uintptr_t)&word[0], 2, 0));
	OK(CU(cuEventRecord)(event, a));
	OK(CU(cuStreamSynchronize)(b));
	FAILS(CUDA_ERROR_NOT_READY, CU(cuEventQuery)(event));
	OK(CU(cuEventDestroy_v2)(event));
	__atomic_store_n(&word[0], 2, __ATOMIC_RELEASE);
	OK(CU(cuCtxSynchronize)());
	OK(CU(cuEventDestroy_v2)(end));
	OK(CU(cuStreamDestroy_v2)(a));
	OK(CU(cuStreamDestroy_v2)(b));
	OK(CU(cuMemFreeHost)(word));
	kit_leave(0);
}

static void events_order_streams(void **state)
{
	(void)state;
	kit_case("late=1ms", events);
}

static void pageable(void)
{
	struct CUstream_st *stream;
	uint32_t *word;
	uint32_t value = 5;
	cu_ptr ptr;

	OK(CU(cuInit)(0));
	kit_use(0);
	word = words_new(2);
	ptr = kit_alloc(4);
	stream = stream_new(0);
	OK(CU(cuStreamWaitValue32_v2)(stream, (uintptr_t)word, 1, 0));
	/* Taken at the call, though the stream has not come to it ... */
	OK(CU(cuMemcpyHtoDAsync_v2)(ptr, &value, 4, stream));
	value = 6;
	/* ... while pinned memory is read when it has. */
	word[1] = 7;
	OK(CU(cuMemcpyDtoDAsync_v2)((uintptr_t)&word[1], ptr, 4, stream));
	CHECK(load(&word[1]) == 7);
	__atomic_store_n(&word[0], 1, __ATOMIC_RELEASE);
	OK(CU(cuMemcpyDtoHAsync_v2)(&value, ptr, 4, stream));
	CHECK(value == 5 && word[1] == 5);
	OK(CU(cuStreamDestroy_v2)(stream));
	OK(CU(cuMemFree_v2)(ptr));
	OK(CU(cuMemFreeHost)(word));
	kit_leave(0);
}

static void pageable_memory_is_staged(void **state)
{
	(void)state;
	kit_case("", pageable);
}

static void capture(void)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct CUstream_st *stream;
	struct CUgraph_st *graph;
	cu_ptr ptr, more;
	int is = 0;

	OK(CU(cuInit)(0));
	kit_use(0);
	ptr = kit_alloc(64);
	stream = stream_new(CU_STREAM_NON_BLOCKING);
	OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(CU(cuMemsetD8Async)(ptr, 1, 64, stream));
	OK(CU(cuStreamIsCapturing)(stream, &is));
	CHECK(is == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(CU(cuThreadExchangeStreamCaptureMode)(&mode));
	OK(CU(cuMemAlloc_v2)(&more, 64));
	OK(CU(cuMemFree_v2)(more));
	OK(CU(cuThreadExchangeStreamCaptureMode)(&mode));
	OK(CU(cuStreamIsCapturing)(stream, &is));
	CHECK(is == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
	      CU(cuMemAlloc_v2)(&more, 64));
	OK(CU(cuStreamIsCapturing)(stream, &is));
	CHECK(is == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
	      CU(cuStreamEndCapture)(stream, &graph));
	OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(CU(cuStreamEndCapture)(stream, &graph));
	OK(CU(cuGraphDestroy)(graph));
	OK(CU(cuStreamDestroy_v2)(stream));
	OK(CU(cuMemFree_v2)(ptr));
	kit_leave(0);
}

static void unsafe_calls_spoil_a_capture(void **state)
{
	(void)state;
	kit_case("", capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			work_of_a_stream_is_in_order_and_streams_are_not),
		cmocka_unit_test(
			the_default_stream_is_in_order_with_those_that_block),
		cmocka_unit_test(streams_wait_for_values_that_wrap),
		cmocka_unit_test(memory_operations_may_be_missing),
		cmocka_unit_test(events_order_streams),
		cmocka_unit_test(pageable_memory_is_staged),
		cmocka_unit_test(unsafe_calls_spoil_a_capture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
