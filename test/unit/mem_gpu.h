/* SPDX-License-Identifier: MIT */
/* For tests of mem's GPU part, on the simulated driver. */
#ifndef MEM_GPU_TEST_H
#define MEM_GPU_TEST_H

#include <sched.h>
#include <sys/mman.h>

#include "mem/mem.h"
#include "test/unit/cuda_kit.h"

/* An image that the simulated driver takes, in builds without nvcc as well. */
static KIT_UNUSED void set_image(const char *bytes)
{
	int fd = memfd_create("image", 0);
	char path[64];

	CHECK(fd >= 0);
	CHECK(write(fd, bytes, strlen(bytes)) == (ssize_t)strlen(bytes));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	setenv("WREATH_GPU_IMAGE", path, 1);
}

static KIT_UNUSED struct mem_gpu *open_gpu(int number, size_t fold_bytes)
{
	struct mem_gpu *gpu = NULL;
	int err = mem_gpu_open(number, fold_bytes, &gpu);

	if (err)
		kit_broken(base_error_text(), "mem_gpu_open", err);
	return gpu;
}

static KIT_UNUSED void drain(struct mem_gpu *gpu)
{
	int err = mem_gpu_drain(gpu, 20000);

	if (err)
		kit_broken(base_error_text(), "mem_gpu_drain", err);
}

static KIT_UNUSED void *new_memory(size_t bytes, int gpu)
{
	void *ptr;

	if (gpu < 0)
		OK(mem_alloc(bytes, &ptr));
	else
		OK(mem_gpu_alloc(bytes, gpu, &ptr));
	return ptr;
}

/* A fold of two vectors in 8192 bytes of device memory. */
static KIT_UNUSED void one_fold(struct mem_gpu *gpu, char *at,
				uint64_t *number)
{
	const void *src[] = {at, at + 4096};
	void *dst[] = {at};
	struct mem_job job = {
		.fold = {.src = src, .dst = dst, .n_src = 2, .n_dst = 1,
			 .count = 1024},
		.type = WREATH_FLOAT32,
		.gpu_src = 3,
		.gpu_dst = 1,
	};

	OK(mem_gpu_fold(gpu, &job, number));
}

/* As a device reads and writes it. */
static KIT_UNUSED char *alias(const void *ptr, size_t bytes)
{
	void *at = CU(fakeCudaAlias)((uintptr_t)ptr, bytes);

	CHECK(at);
	return at;
}

static KIT_UNUSED bool tells(const char *word)
{
	if (strstr(base_error_text(), word))
		return true;
	fprintf(stderr, "'%s' is not in: %s\n", word, base_error_text());
	return false;
}

/*
 * Like kit_case(), for a library that keeps contexts, kernels and words until
 * the process ends: @body runs twice, and the second time must leave no more
 * than the first.
 */
static KIT_UNUSED void (*twice_body)(void);

static KIT_UNUSED void twice(void)
{
	struct fake_leaks before, after;

	twice_body();
	CU(fakeCudaLeaks)(&before);
	twice_body();
	CU(fakeCudaLeaks)(&after);
	CHECK(!memcmp(&before, &after, sizeof(before)));
	CHECK(!before.imports && !before.registrations);
	fflush(NULL);
	_exit(0);
}

static KIT_UNUSED void gpu_case(const char *settings, void (*body)(void))
{
	twice_body = body;
	assert_int_equal(kit_status(settings, twice), 0);
}

/* A case in a process that does not have the driver yet. */
static KIT_UNUSED void plain_case(const char *settings, void (*body)(void))
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		kit_default_handlers();
		setenv("FAKE_CUDA", settings, 1);
		alarm(60);
		body();
		fflush(NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static KIT_UNUSED uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static KIT_UNUSED uint64_t seed_of_run(void)
{
	const char *text = getenv("SEED");
	uint64_t seed = text ? strtoull(text, NULL, 10)
			     : kit_now_ns() % 1000000;

	print_message("SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

#endif
