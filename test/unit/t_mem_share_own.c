/* SPDX-License-Identifier: MIT */
/*
 * Goal: within a process the pointer itself serves, on every GPU that reaches
 * it, and only where CUDA agrees with what the peer says.
 * Method: exports and imports in one process on two simulated GPUs, with
 * settings under which they do not reach each other.
 */
#define _GNU_SOURCE
#include "test/unit/mem_gpu.h"

#define BYTES ((size_t)5000)

static struct mem_where find(const void *ptr)
{
	struct mem_where where;

	OK(mem_where(ptr, &where));
	return where;
}

static void copy(struct mem_gpu *gpu, void *dst, const void *src, size_t bytes)
{
	uint64_t number;

	OK(mem_gpu_copy(gpu, dst, src, bytes, &number));
	drain(gpu);
}

static void refuse(struct mem_gpu *gpu, const struct mem_export *from,
		   uint64_t at, size_t bytes)
{
	void *out;

	FAILS(WREATH_EINVAL, mem_import(gpu, from, at, bytes, &out));
	CHECK(tells("0x"));
}

static void own(void)
{
	struct mem_gpu *gpu = open_gpu(0, 4096);
	char *near = new_memory(BYTES, 0);
	char *far = new_memory(BYTES, 1);
	struct mem_export from;
	struct mem_where where = find(far);
	void *out;

	OK(mem_export(&where, &from));
	OK(mem_import(gpu, &from, from.base + 5, 100, &out));
	CHECK(out == far + 5);
	copy(gpu, near, out, 100);
	refuse(gpu, &from, from.base + from.bytes, 1);
	where = find(near);
	OK(mem_export(&where, &from));
	OK(mem_import(gpu, &from, from.base, BYTES, &out));
	CHECK(out == near);
	/* It says that it is ours; our driver knows better. */
	from.bytes--;
	refuse(gpu, &from, from.base, 1);
	from.bytes++;
	from.base = (uintptr_t)&from;
	refuse(gpu, &from, from.base, 1);
	from.base = (uintptr_t)near;
	OK(mem_free(near));
	refuse(gpu, &from, from.base, 1);
	OK(mem_free(far));
	mem_gpu_close(gpu);
	CHECK(!CU(fakeCudaCalls)("cuIpcOpenMemHandle_v2"));
}

static void within_a_process_the_pointer_serves(void **unused)
{
	(void)unused;
	gpu_case("", own);
}

static void apart(void)
{
	struct mem_gpu *gpu = open_gpu(0, 4096);
	char *far = new_memory(BYTES, 1);
	struct mem_where where = find(far);
	struct mem_export from;
	void *out;

	base_error_again(0, "");
	OK(mem_export(&where, &from));
	FAILS(WREATH_EUNSUP, mem_import(gpu, &from, from.base, 1, &out));
	CHECK(strstr(base_error_text(), "GPU 0 does not reach"));
	OK(mem_free(far));
	mem_gpu_close(gpu);
}

static void no_export(void)
{
	char *memory = new_memory(BYTES, 1);
	struct mem_where where = find(memory);
	struct mem_export from;

	base_error_again(0, "");
	FAILS(WREATH_EUNSUP, mem_export(&where, &from));
	FAILS(WREATH_EUNSUP, mem_export(&where, &from));
	where = find(&from);
	FAILS(WREATH_EUNSUP, mem_export(&where, &from));
	CHECK(!*base_error_text());
	OK(mem_free(memory));
}

static void what_cannot_be_reached_is_not(void **unused)
{
	(void)unused;
	gpu_case("nopeer", apart);
	gpu_case("noipc", no_export);
	setenv("WREATH_GPU_IPC", "off", 1);
	gpu_case("", no_export);
	unsetenv("WREATH_GPU_IPC");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(within_a_process_the_pointer_serves),
		cmocka_unit_test(what_cannot_be_reached_is_not),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
