/* SPDX-License-Identifier: MIT */
/*
 * Goal: it is told where a pointer points, at next to no cost in a process
 * without CUDA, and what cannot be used is refused by name.
 * Method: memory of every kind, before and after it is freed, before and after
 * the program loads the driver, on the simulated one.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>

#include "test/unit/mem_gpu.h"

static int in_static[4];

static struct mem_where find(const void *ptr)
{
	struct mem_where where;

	if (mem_where(ptr, &where))
		kit_broken(base_error_text(), "mem_where", 0);
	return where;
}

static void is_host(const void *ptr)
{
	struct mem_where where = find(ptr);

	CHECK(where.kind == MEM_HOST && where.gpu == -1);
}

static void hosts(void)
{
	int in_stack = 0;
	char *in_heap = malloc(100000);

	is_host(&in_stack);
	is_host(in_heap + 50001);
	is_host(in_static);
	is_host("constant");
	is_host(NULL);
	free(in_heap);
}

static void is_device(const char *ptr, const void *base, size_t bytes, int gpu)
{
	struct mem_where where = find(ptr);

	CHECK(where.kind == MEM_DEVICE);
	CHECK(where.gpu == gpu);
	CHECK(where.base == base);
	CHECK(where.bytes == bytes);
	CHECK(where.id);
}

static void kinds(void)
{
	struct CUctx_st *ctx[2];
	void *pinned, *page;
	char *device;
	cu_ptr managed;

	OK(CU(cuInit)(0));
	ctx[0] = kit_use(0);
	ctx[1] = kit_use(1);
	hosts();
	device = (char *)(uintptr_t)kit_alloc(3000);
	is_device(device, device, 3000, 1);
	is_device(device + 2999, device, 3000, 1);
	OK(CU(cuCtxSetCurrent)(ctx[0]));
	is_device(device + 1, device, 3000, 1);
	OK(CU(cuCtxSetCurrent)(NULL));
	is_device(device + 1, device, 3000, 1);
	OK(CU(cuCtxSetCurrent)(ctx[1]));
	OK(CU(cuMemAllocManaged)(&managed, 5000, CU_MEM_ATTACH_GLOBAL));
	CHECK(find((char *)(uintptr_t)managed + 4999).kind == MEM_MANAGED);
	CHECK(find((void *)(uintptr_t)managed).gpu == 1);
	OK(CU(cuMemHostAlloc)(&pinned, 100, 0));
	CHECK(find((char *)pinned + 99).kind == MEM_PINNED);
	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	is_host(page);
	OK(CU(cuMemHostRegister_v2)(page, 4096, 0));
	CHECK(find(page).kind == MEM_PINNED);
	is_host((char *)page + 4096);
	OK(CU(cuMemHostUnregister)(page));
	is_host(page);
	OK(CU(cuMemFreeHost)(pinned));
	OK(CU(cuMemFree_v2)(managed));
	OK(CU(cuMemFree_v2)((uintptr_t)device));
	kit_leave(0);
	kit_leave(1);
}

static void every_kind_is_told(void **unused)
{
	(void)unused;
	kit_case("", kinds);
}

static void freed(void)
{
	struct mem_where where;
	uint64_t id = 0;
	void *page;
	int i;

	OK(CU(cuInit)(0));
	kit_use(0);
	for (i = 0; i < 20; i++) {
		char *ptr = (char *)(uintptr_t)kit_alloc(100);

		where = find(ptr + 50);
		CHECK(where.id && where.id != id);
		id = where.id;
		OK(CU(cuMemFree_v2)((uintptr_t)ptr));
		FAILS(WREATH_EINVAL, mem_where(ptr + 50, &where));
		CHECK(tells("freed") && tells("0x"));
		FAILS(WREATH_EINVAL, mem_register(ptr, 100));
	}
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(page, 4096);
	FAILS(WREATH_EINVAL, mem_where(page, &where));
	FAILS(WREATH_EINVAL, mem_where((void *)100, &where));
	kit_leave(0);
}

static void freed_memory_is_refused(void **unused)
{
	(void)unused;
	kit_case("", freed);
}

static double cost_ns(const void *ptr)
{
	double best = 1e9;
	int i, k;

	for (i = 0; i < 5; i++) {
		uint64_t start = kit_now_ns();
		double ns;

		for (k = 0; k < 20000; k++)
			find(ptr);
		ns = (double)(kit_now_ns() - start) / 20000;
		best = ns < best ? ns : best;
	}
	return best;
}

static void late_comer(void)
{
	struct mem_where where;
	char *ptr;
	double before;
	int i;

	hosts();
	before = cost_ns(in_static);
	CHECK(!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
	CHECK(mem_cuda_device() == -1);
	CHECK(!mem_gpu_count());
	/* Other libraries that come are none of ours. */
	for (i = 0; i < 3; i++)
		CHECK(dlopen("libm.so.6", RTLD_NOW) || i);
	hosts();
	kit_load();
	/* The driver is there, and not started. */
	hosts();
	CHECK(mem_cuda_device() == -1);
	OK(CU(cuInit)(0));
	CHECK(mem_cuda_device() == -1);
	CHECK(mem_gpu_count() == 2);
	kit_use(1);
	CHECK(mem_cuda_device() == 1);
	ptr = (char *)(uintptr_t)kit_alloc(100);
	CHECK(find(ptr).gpu == 1);
	FAILS(WREATH_EINVAL, mem_where((void *)8, &where));
	fprintf(stderr, "%.1f ns without CUDA, %.1f ns with the simulated one\n",
		before, cost_ns(in_static));
}

static void the_driver_may_come_late(void **unused)
{
	(void)unused;
	plain_case("", late_comer);
}

static void off(void)
{
	struct mem_where where;
	struct mem_gpu *gpu;
	cu_ptr device, managed;
	void *pinned;

	OK(CU(cuInit)(0));
	kit_use(0);
	device = kit_alloc(100);
	OK(CU(cuMemAllocManaged)(&managed, 5000, CU_MEM_ATTACH_GLOBAL));
	OK(CU(cuMemHostAlloc)(&pinned, 100, 0));
	hosts();
	FAILS(WREATH_EUNSUP, mem_where((void *)(uintptr_t)device, &where));
	CHECK(tells("WREATH_GPU=off") && tells("GPU 0"));
	FAILS(WREATH_EUNSUP, mem_where((void *)(uintptr_t)managed, &where));
	CHECK(find(pinned).kind == MEM_HOST);
	FAILS(WREATH_EUNSUP, mem_cuda_load());
	CHECK(tells("WREATH_GPU=off"));
	FAILS(WREATH_EUNSUP, mem_gpu_open(0, 4096, &gpu));
	FAILS(WREATH_EUNSUP, mem_gpu_alloc(100, 0, &pinned));
	CHECK(!mem_gpu_count() && mem_cuda_device() == -1);
	_exit(0);
}

static void off_without_driver(void)
{
	FAILS(WREATH_EUNSUP, mem_cuda_load());
	CHECK(tells("WREATH_GPU=off"));
	CHECK(!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
}

static void it_may_be_off(void **unused)
{
	(void)unused;
	setenv("WREATH_GPU", "off", 1);
	kit_case("", off);
	plain_case("", off_without_driver);
	unsetenv("WREATH_GPU");
}

static void bad_setting(void)
{
	struct mem_where where;

	OK(CU(cuInit)(0));
	kit_use(0);
	FAILS(WREATH_EINVAL, mem_where((void *)(uintptr_t)kit_alloc(8),
				       &where));
	CHECK(tells("WREATH_GPU_IPC"));
	FAILS(WREATH_EINVAL, mem_cuda_load());
	hosts();
	setenv("WREATH_GPU_IPC", "off", 1);
	OK(mem_cuda_load());
	_exit(0);
}

static void a_bad_setting_is_told(void **unused)
{
	(void)unused;
	setenv("WREATH_GPU_IPC", "perhaps", 1);
	kit_case("", bad_setting);
	unsetenv("WREATH_GPU_IPC");
}

static void no_driver(void)
{
	int err = mem_cuda_load();

	/* This machine has one; there is nothing to test then. */
	if (!err)
		return;
	CHECK(err == WREATH_EUNSUP && tells("CUDA"));
	FAILS(WREATH_EUNSUP, mem_cuda_load());
	hosts();
}

static void no_device(void)
{
	FAILS(WREATH_EUNSUP, mem_cuda_load());
	CHECK(tells("CUDA_ERROR_NO_DEVICE") && tells("nvidia-smi"));
	CHECK(!mem_gpu_count());
	hosts();
}

static void a_missing_driver_or_device_is_told(void **unused)
{
	(void)unused;
	plain_case("", no_driver);
	kit_case("devices=0", no_device);
}

static void regions(void)
{
	struct mem_region region, other;
	char *foreign, *ours, *host;
	cu_ptr managed;

	OK(CU(cuInit)(0));
	kit_use(0);
	foreign = (char *)(uintptr_t)kit_alloc(1000);
	ours = new_memory(1000, 1);
	host = new_memory(1000, -1);
	OK(CU(cuMemAllocManaged)(&managed, 5000, CU_MEM_ATTACH_GLOBAL));
	CHECK(mem_gpu_region(foreign + 10, 990, &region));
	CHECK(region.base == foreign && region.bytes == 1000);
	CHECK(region.gpu == 0 && region.fd == -1);
	CHECK(region.id & MEM_GPU_ID);
	CHECK(!mem_gpu_region(foreign + 10, 991, &other));
	CHECK(!mem_gpu_region(foreign + 10, SIZE_MAX, &other));
	CHECK(mem_gpu_region(ours, 1000, &other));
	CHECK(other.gpu == 1 && !(other.id & MEM_GPU_ID));
	CHECK(other.bytes == 1000 && other.id != region.id);
	CHECK(!mem_gpu_region(host, 10, &other));
	CHECK(!mem_gpu_region(&region, 10, &other));
	CHECK(!mem_gpu_region((void *)(uintptr_t)managed, 10, &other));
	/* Registered, it is in the table. */
	FAILS(WREATH_EINVAL, mem_register(foreign + 1, 1000));
	CHECK(tells("ends 999 bytes"));
	OK(mem_register(foreign + 1, 900));
	CHECK(mem_gpu_region(foreign + 1, 900, &other));
	CHECK(other.base == foreign + 1 && !(other.id & MEM_GPU_ID));
	CHECK(mem_gpu_region(foreign, 901, &other));
	CHECK(other.id == region.id);
	FAILS(WREATH_EINVAL, mem_free(foreign + 1));
	FAILS(WREATH_EINVAL, mem_deregister(ours));
	OK(mem_deregister(foreign + 1));
	FAILS(WREATH_EUNSUP, mem_register((void *)(uintptr_t)managed, 100));
	CHECK(tells("managed"));
	OK(mem_free(ours));
	CHECK(!mem_gpu_region(ours, 1000, &other));
	OK(mem_free(host));
	OK(CU(cuMemFree_v2)(managed));
	OK(CU(cuMemFree_v2)((uintptr_t)foreign));
	CHECK(!mem_gpu_region(foreign, 1, &other));
	kit_leave(0);
}

static void memory_of_a_gpu_has_a_region(void **unused)
{
	(void)unused;
	gpu_case("", regions);
}

static _Atomic bool has_ended;

static void *asker(void *arg)
{
	struct mem_where where;

	(void)arg;
	while (!atomic_load(&has_ended)) {
		is_host(in_static);
		mem_gpu_count();
		mem_where((void *)16, &where);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t ids[3];
	int i;

	for (i = 0; i < 3; i++)
		CHECK(!pthread_create(&ids[i], NULL, asker, NULL));
	kit_load();
	OK(CU(cuInit)(0));
	for (i = 0; i < 100; i++) {
		char *ptr = new_memory(100, i % 2);

		is_device(ptr, ptr, (size_t)2 << 20, i % 2);
		OK(mem_free(ptr));
	}
	atomic_store(&has_ended, true);
	for (i = 0; i < 3; i++)
		CHECK(!pthread_join(ids[i], NULL));
}

static void any_thread_may_ask(void **unused)
{
	(void)unused;
	plain_case("", threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_told),
		cmocka_unit_test(freed_memory_is_refused),
		cmocka_unit_test(the_driver_may_come_late),
		cmocka_unit_test(it_may_be_off),
		cmocka_unit_test(a_bad_setting_is_told),
		cmocka_unit_test(a_missing_driver_or_device_is_told),
		cmocka_unit_test(memory_of_a_gpu_has_a_region),
		cmocka_unit_test(any_thread_may_ask),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
