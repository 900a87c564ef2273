/* SPDX-License-Identifier: MIT */
/*
 * Goal: the simulated driver's memory is as strict as that of GPUs, or more.
 * Method: each case in a process of its own; what the host must not touch is
 * touched, and the fault is caught.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "test/unit/cuda_kit.h"

static sigjmp_buf after_fault;

static void on_fault(int number)
{
	(void)number;
	siglongjmp(after_fault, 1);
}

static bool faults(cu_ptr at)
{
	volatile char *byte = (volatile char *)(uintptr_t)at;
	const char *under = getenv("TEST_UNDER");
	void (*before)(int) = signal(SIGSEGV, on_fault);
	bool is_fault = true;

	/* Where each fault is a failure, none is made. */
	if (under && !strcmp(under, "valgrind"))
		return true;
	if (!sigsetjmp(after_fault, 1)) {
		(void)*byte;
		is_fault = false;
	}
	signal(SIGSEGV, before);
	return is_fault;
}

static void touch(void)
{
	unsigned char bytes[300];
	cu_ptr ptr, managed;
	void *pinned;
	int i;

	OK(CU(cuInit)(0));
	kit_use(1);
	ptr = kit_alloc(sizeof(bytes));
	CHECK(faults(ptr) && faults(ptr + sizeof(bytes) - 1));
	OK(CU(cuMemcpyDtoH_v2)(bytes, ptr, sizeof(bytes)));
	for (i = 0; i < (int)sizeof(bytes); i++)
		CHECK(bytes[i] == 0xfb);
	OK(CU(cuMemAllocManaged)(&managed, 100, CU_MEM_ATTACH_GLOBAL));
	OK(CU(cuMemHostAlloc)(&pinned, 100, 0));
	*(char *)(uintptr_t)managed = 1;
	*(char *)pinned = 1;
	OK(CU(cuMemFree_v2)(ptr));
	CHECK(faults(ptr));
	OK(CU(cuMemFree_v2)(managed));
	OK(CU(cuMemFreeHost)(pinned));
	kit_leave(1);
}

static void device_memory_faults_when_the_host_touches_it(void **state)
{
	(void)state;
	kit_case("seed=3", touch);
}

static void touch_peermem(void)
{
	char byte = 0;
	cu_ptr ptr;

	OK(CU(cuInit)(0));
	kit_use(0);
	ptr = kit_alloc(5000);
	*(char *)(uintptr_t)(ptr + 4999) = 7;
	OK(CU(cuMemcpyDtoH_v2)(&byte, ptr + 4999, 1));
	CHECK(byte == 7);
	OK(CU(cuMemFree_v2)(ptr));
	kit_leave(0);
}

static void peermem_makes_it_readable(void **state)
{
	(void)state;
	kit_case("peermem", touch_peermem);
}

/* Everything that is asked of a pointer. */
static void look(cu_ptr ptr, int *type, int *device, cu_ptr *base,
		 size_t *bytes, uint64_t *id)
{
	int names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
		       CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
		       CU_POINTER_ATTRIBUTE_RANGE_SIZE,
		       CU_POINTER_ATTRIBUTE_BUFFER_ID};
	void *out[] = {type, device, base, bytes, id};

	OK(CU(cuPointerGetAttributes)(5, names, out, ptr));
}

static void ask(void)
{
	int type, device;
	uint64_t id, other;
	size_t bytes;
	cu_ptr ptr, base;
	int on_stack = 0;

	OK(CU(cuInit)(0));
	kit_use(1);
	ptr = kit_alloc(1000);
	look(ptr + 999, &type, &device, &base, &bytes, &id);
	CHECK(type == CU_MEMORYTYPE_DEVICE && device == 1 && base == ptr &&
	      bytes == 1000 && id);
	look((uintptr_t)&on_stack, &type, &device, &base, &bytes, &other);
	CHECK(!type && device == CU_DEVICE_INVALID && !base && !other);
	FAILS(CUDA_ERROR_INVALID_VALUE,
	      CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					(uintptr_t)&on_stack));
	OK(CU(cuMemFree_v2)(ptr));
	look(ptr, &type, &device, &base, &bytes, &other);
	CHECK(!type && !bytes);
	FAILS(CUDA_ERROR_INVALID_VALUE,
	      CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					ptr));
	FAILS(CUDA_ERROR_INVALID_VALUE,
	      CU(cuMemcpyDtoH_v2)(&type, ptr, 4));
	ptr = kit_alloc(1000);
	look(ptr, &type, &device, &base, &bytes, &other);
	CHECK(other != id);
	OK(CU(cuMemFree_v2)(ptr));
	FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree_v2)(ptr));
	kit_leave(1);
}

static void what_was_freed_is_not_known_any_more(void **state)
{
	(void)state;
	kit_case("", ask);
}

static void fill_up(void)
{
	size_t left, total;
	cu_ptr ptr, more = 0;

	OK(CU(cuInit)(0));
	kit_use(0);
	ptr = kit_alloc(700 << 10);
	OK(CU(cuMemGetInfo_v2)(&left, &total));
	CHECK(total == 1 << 20 && left == 324 << 10);
	FAILS(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc_v2)(&more, 400 << 10));
	OK(CU(cuMemFree_v2)(ptr));
	OK(CU(cuMemAlloc_v2)(&more, 1 << 20));
	OK(CU(cuMemFree_v2)(more));
	kit_leave(0);
}

static void memory_is_as_large_as_it_is_set(void **state)
{
	(void)state;
	kit_case("memory=1M", fill_up);
}

static void register_host(void)
{
	char *at = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int type, device;
	cu_ptr base;
	uint64_t id;
	size_t bytes;

	CHECK(at != MAP_FAILED && !munmap(at + 3 * 4096, 4096));
	OK(CU(cuInit)(0));
	kit_use(0);
	OK(CU(cuMemHostRegister_v2)(at, 2 * 4096, 1));
	look((uintptr_t)at + 4096, &type, &device, &base, &bytes, &id);
	CHECK(type == CU_MEMORYTYPE_HOST && device == 0);
	FAILS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
	      CU(cuMemHostRegister_v2)(at + 4096, 2 * 4096, 1));
	FAILS(CUDA_ERROR_INVALID_VALUE,
	      CU(cuMemHostRegister_v2)(at + 2 * 4096, 2 * 4096, 1));
	FAILS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
	      CU(cuMemHostUnregister)(at + 4096));
	OK(CU(cuMemHostUnregister)(at));
	kit_leave(0);
	munmap(at, 5 * 4096);
}

static void host_memory_is_registered_once(void **state)
{
	(void)state;
	kit_case("", register_host);
}

/* As a device would that was told a wrong length. */
static void write_around(void)
{
	cu_ptr ptr;

	OK(CU(cuInit)(0));
	kit_use(0);
	ptr = kit_alloc(100);
	((char *)CU(fakeCudaAlias)(ptr, 100))[100] = 1;
	CU(cuMemFree_v2)(ptr);
}

static void a_byte_beyond_the_end_is_seen(void **state)
{
	int status;

	(void)state;
	status = kit_status("", write_around);
	assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGABRT
					: WEXITSTATUS(status) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_memory_faults_when_the_host_touches_it),
		cmocka_unit_test(peermem_makes_it_readable),
		cmocka_unit_test(what_was_freed_is_not_known_any_more),
		cmocka_unit_test(memory_is_as_large_as_it_is_set),
		cmocka_unit_test(host_memory_is_registered_once),
		cmocka_unit_test(a_byte_beyond_the_end_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
