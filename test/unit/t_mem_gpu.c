/* SPDX-License-Identifier: MIT */
/*
 * Goal: whatever call of the driver fails, it is told, nothing is left behind
 * and nothing hangs; what a device breaks stays broken; the caller's context
 * stays what it is.
 * Method: an operation as a whole, in which each call of the simulated driver
 * fails in turn.
 */
#define _GNU_SOURCE
#include "test/unit/mem_gpu.h"

static void broken_device(void)
{
	struct mem_gpu *gpu = open_gpu(0, 4096);
	char *at = new_memory(8192, 0);
	uint64_t number, second;
	int done;

	one_fold(gpu, at, &number);
	CU(fakeCudaFail)(getenv("FAIL"), 1);
	/* It may have failed by the end of the push already. */
	done = mem_gpu_push(gpu);
	while (!done)
		done = mem_gpu_done(gpu, number);
	FAILS(WREATH_EDEVICE, done);
	CHECK(tells("CUDA_ERROR_"));
	CHECK(tells("GPU 0"));
	/* It stays, and is said again. */
	base_error_again(0, "");
	FAILS(WREATH_EDEVICE, mem_gpu_push(gpu));
	CHECK(tells("CUDA_ERROR_"));
	FAILS(WREATH_EDEVICE, mem_gpu_drain(gpu, 1000));
	FAILS(WREATH_EDEVICE, mem_gpu_copy(gpu, at, at, 1, &second));
	CHECK(mem_gpu_done(gpu, 0) == 1);
	mem_gpu_close(gpu);
	mem_free(at);
	_exit(0);
}

static void an_error_of_the_device_stays(void **unused)
{
	(void)unused;
	set_image("fake");
	setenv("WREATH_GPU_REDUCE", "gpu", 1);
	setenv("FAIL", "kernel", 1);
	gpu_case("", broken_device);
	setenv("WREATH_GPU_REDUCE", "host", 1);
	setenv("FAIL", "copy", 1);
	gpu_case("", broken_device);
}

/* All that an operation does; the first error. */
static int whole(int number)
{
	struct mem_gpu *gpu = NULL;
	void *memory = NULL;
	uint64_t last;
	int err = mem_gpu_open(number, 4096, &gpu);

	if (!err)
		err = mem_gpu_alloc(8192, number, &memory);
	if (!err) {
		one_fold(gpu, memory, &last);
		err = mem_gpu_push(gpu);
	}
	if (!err)
		err = mem_gpu_copy(gpu, memory, (char *)memory + 100, 50,
				   &last);
	if (!err)
		err = mem_gpu_drain(gpu, 5000);
	mem_gpu_close(gpu);
	/* A broken device says so once more. */
	if (memory && mem_free(memory))
		CHECK(err == WREATH_EDEVICE);
	return err;
}

/* What a child tells its parent. */
static struct report {
	struct fake_leaks leaks;
	uint64_t n_calls;
	int err;
	bool is_broken;
} *report;

static void one_fails(void)
{
	base_error_again(0, "");
	report->err = whole(0);
	report->n_calls = CU(fakeCudaCalls)(NULL);
	CHECK(!report->err || tells("CUDA"));
	CU(fakeCudaFail)(NULL, 0);
	/* A kernel that failed has broken the context. */
	report->is_broken = whole(0) == WREATH_EDEVICE && report->err;
	if (!report->is_broken)
		OK(whole(0));
	CU(fakeCudaLeaks)(&report->leaks);
	fflush(NULL);
	_exit(0);
}

/* Until no call is left; what is left behind is no more than without. */
static void fail_in_turn(const char *reduce)
{
	struct fake_leaks clean;
	char settings[64];
	int n_failed = 0;
	int n = 0;

	set_image("fake");
	setenv("WREATH_GPU_REDUCE", reduce, 1);
	kit_case("late=0", one_fails);
	assert_int_equal(report->err, 0);
	clean = report->leaks;
	do {
		snprintf(settings, sizeof(settings), "late=0,fail=any:%d", ++n);
		kit_case(settings, one_fails);
		n_failed += report->err != 0;
		if (!report->is_broken)
			assert_memory_equal(&report->leaks, &clean,
					    sizeof(clean));
	} while (report->err || report->n_calls + 8 > (uint64_t)n);
	print_message("%d calls, %d of them are needed\n", n, n_failed);
	assert_true(n_failed > 25);
}

static void every_call_may_fail(void **unused)
{
	(void)unused;
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(report != MAP_FAILED);
	fail_in_turn("auto");
	fail_in_turn("host");
	munmap(report, sizeof(*report));
}

static void contexts(void)
{
	struct mem_where where;
	struct CUctx_st *mine, *is;
	void *memory;

	OK(CU(cuInit)(0));
	mine = kit_use(1);
	OK(whole(0));
	CHECK(!CU(cuCtxGetCurrent)(&is) && is == mine);
	memory = new_memory(100, 0);
	OK(mem_where(memory, &where));
	CHECK(where.gpu == 0 && where.kind == MEM_DEVICE);
	OK(mem_free(memory));
	CHECK(!CU(cuCtxGetCurrent)(&is) && is == mine);
	kit_leave(1);
}

static void the_callers_context_stays(void **unused)
{
	(void)unused;
	setenv("WREATH_GPU_REDUCE", "auto", 1);
	set_image("fake");
	gpu_case("", contexts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_of_the_device_stays),
		cmocka_unit_test(every_call_may_fail),
		cmocka_unit_test(the_callers_context_stays),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
