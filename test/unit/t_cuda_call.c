/* SPDX-License-Identifier: MIT */
/*
 * Goal: the simulated driver fails where it is told, tells what was called and
 * what is left, and takes no settings that it does not understand.
 * Method: calls of each kind, with settings of each kind.
 */
#include "test/unit/cuda_kit.h"

static void not_yet(void)
{
	int n;

	FAILS(CUDA_ERROR_NOT_INITIALIZED, CU(cuDeviceGetCount)(&n));
	OK(CU(cuInit)(0));
	OK(CU(cuDeviceGetCount)(&n));
	CHECK(n == 3);
}

static void cuda_begins_with_its_first_call(void **state)
{
	(void)state;
	kit_case("devices=3", not_yet);
}

static void no_device(void)
{
	FAILS(CUDA_ERROR_NO_DEVICE, CU(cuInit)(0));
}

static void there_may_be_no_device(void **state)
{
	(void)state;
	kit_case("devices=0", no_device);
}

static void third(void)
{
	cu_ptr ptr[2], none;

	OK(CU(cuInit)(0));
	kit_use(0);
	ptr[0] = kit_alloc(1);
	ptr[1] = kit_alloc(1);
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc_v2)(&none, 1));
	none = kit_alloc(1);
	OK(CU(cuMemFree_v2)(none));
	OK(CU(cuMemFree_v2)(ptr[0]));
	OK(CU(cuMemFree_v2)(ptr[1]));
	CHECK(CU(fakeCudaCalls)("cuMemAlloc_v2") == 4);
	CHECK(CU(fakeCudaCalls)("cuMemFree_v2") == 3);
	CHECK(!CU(fakeCudaCalls)("cuCtxSynchronize"));
	kit_leave(0);
}

static void the_nth_call_fails(void **state)
{
	(void)state;
	kit_case("fail=cuMemAlloc_v2:3", third);
}

/* What is told to fail does once, and nothing is left after a failure. */
static void any(void)
{
	int n_failed = 0;
	uint64_t n;

	OK(CU(cuInit)(0));
	for (n = 1; n < 20; n++) {
		struct CUevent_st *event;
		struct CUctx_st *ctx;
		int n_before = n_failed;

		CU(fakeCudaFail)("any", n);
		if (CU(cuDevicePrimaryCtxRetain)(&ctx, 0)) {
			n_failed++;
			continue;
		}
		OK(CU(cuCtxSetCurrent)(ctx));
		if (CU(cuEventCreate)(&event, 0)) {
			n_failed++;
		} else {
			n_failed += CU(cuEventRecord)(event, NULL) != 0;
			n_failed += CU(cuEventSynchronize)(event) != 0;
			OK(CU(cuEventDestroy_v2)(event));
		}
		kit_leave(0);
		if (n_failed == n_before)
			break;
	}
	CHECK(n_failed == 4 && n == 5);
}

static void failures_leave_nothing_behind(void **state)
{
	(void)state;
	kit_case("", any);
}

static void leak(void)
{
	struct fake_leaks leaks;
	struct CUstream_st *stream;
	struct CUevent_st *event;
	struct CUmod_st *module;
	static char page[4096];
	void *pinned;

	OK(CU(cuInit)(0));
	CHECK(!CU(fakeCudaLeaks)(&leaks));
	kit_use(0);
	kit_use(0);
	kit_alloc(7);
	OK(CU(cuMemHostAlloc)(&pinned, 9, 0));
	OK(CU(cuMemHostRegister_v2)(page, sizeof(page), 0));
	OK(CU(cuStreamCreate)(&stream, 0));
	OK(CU(cuEventCreate)(&event, 0));
	OK(CU(cuModuleLoadData)(&module, "fake"));
	CHECK(CU(fakeCudaLeaks)(&leaks) == 8);
	CHECK(leaks.allocations == 2 && leaks.registrations == 1 &&
	      leaks.streams == 1 && leaks.events == 1 && leaks.modules == 1 &&
	      leaks.retained == 2 && !leaks.imports);
	_exit(0);
}

static void what_is_left_is_counted(void **state)
{
	(void)state;
	kit_case("", leak);
}

static void try_settings(void)
{
	CU(cuInit)(0);
}

static void settings_are_understood_or_refused(void **state)
{
	static const char *const bad[] = {
		"devices", "devices=", "devices=17", "late=5", "late=2000ms",
		"memory=5Q", "fail=cuMemAlloc_v2", "fail=cuNothing:1", "x",
		"seed=1,,noipc", "noipc,", "noipc=1", "seed=-1",
	};
	size_t i;

	(void)state;
	kit_case("devices=2,seed=7,fail=any:100000,peermem,nodmabuf,noipc,"
		 "hopper,memory=64M,late=500us,nomemops,nopeer,strict,"
		 "version=12020", try_settings);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int status = kit_status(bad[i], try_settings);

		if (WIFEXITED(status) && !WEXITSTATUS(status))
			fail_msg("%s", bad[i]);
	}
}

static void find(void)
{
	int (*alloc)(cu_ptr *out, size_t bytes);
	const char *text = NULL;
	void *fn = NULL;
	int status = -1;

	OK(CU(cuInit)(0));
	OK(CU(cuGetProcAddress_v2)("cuMemAlloc", &fn, 12000, 0, &status));
	alloc = CU(cuMemAlloc_v2);
	CHECK(!memcmp(&fn, &alloc, sizeof(fn)) && !status);
	FAILS(CUDA_ERROR_NOT_FOUND,
	      CU(cuGetProcAddress_v2)("cuNothing", &fn, 12000, 0, &status));
	CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND && !fn);
	OK(CU(cuGetErrorName)(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
	CHECK(!strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
	FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuGetErrorString)(12345, &text));
}

static void functions_are_found_by_name(void **state)
{
	(void)state;
	kit_case("", find);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuda_begins_with_its_first_call),
		cmocka_unit_test(there_may_be_no_device),
		cmocka_unit_test(the_nth_call_fails),
		cmocka_unit_test(failures_leave_nothing_behind),
		cmocka_unit_test(what_is_left_is_counted),
		cmocka_unit_test(settings_are_understood_or_refused),
		cmocka_unit_test(functions_are_found_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
