/* SPDX-License-Identifier: MIT */
/*
 * For tests on the simulated CUDA driver.  A case runs in a process of its own,
 * with settings of its own, and must leave nothing alive in the driver.
 */
#ifndef CUDA_KIT_H
#define CUDA_KIT_H

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "test/cuda/abi.h"

#define KIT_UNUSED __attribute__((unused))

/* In a case; the test itself has cmocka's. */
#define CHECK(cond)                                                            \
	((cond) ? (void)0 : kit_broken(#cond, __FILE__, __LINE__))
/* A call that succeeds, and one that fails in a certain way. */
#define OK(call) kit_expect((call), 0, #call, __LINE__)
#define FAILS(error, call) kit_expect((call), (error), #call, __LINE__)
/* A function of the driver. */
#define CU(name) ((__typeof__(&name))kit_symbol(#name))

static _Noreturn void kit_broken(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: not %s\n", file, line, what);
	_exit(1);
}

static KIT_UNUSED void kit_expect(int is, int want, const char *what, int line)
{
	if (is == want)
		return;
	fprintf(stderr, "line %d: %d, not %d: %s\n", line, is, want, what);
	_exit(1);
}

static void *kit_driver;

static KIT_UNUSED void *kit_symbol(const char *name)
{
	void *at = dlsym(kit_driver, name);

	if (!at)
		kit_broken(name, "libcuda.so.1", 0);
	return at;
}

/* It lies where the tests were built. */
static KIT_UNUSED void kit_load(void)
{
	static const char tail[] = "/../../cuda/libcuda.so.1";
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path,
			     sizeof(path) - sizeof(tail));
	char *slash;

	CHECK(n > 0);
	path[n] = 0;
	slash = strrchr(path, '/');
	CHECK(slash);
	memcpy(slash, tail, sizeof(tail));
	kit_driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!kit_driver)
		kit_broken(dlerror(), path, 0);
}

/* The primary context of @device is current then. */
static KIT_UNUSED struct CUctx_st *kit_use(int device)
{
	struct CUctx_st *ctx;

	OK(CU(cuDevicePrimaryCtxRetain)(&ctx, device));
	OK(CU(cuCtxSetCurrent)(ctx));
	return ctx;
}

static KIT_UNUSED void kit_leave(int device)
{
	OK(CU(cuCtxSetCurrent)(NULL));
	OK(CU(cuDevicePrimaryCtxRelease_v2)(device));
}

static KIT_UNUSED cu_ptr kit_alloc(size_t bytes)
{
	cu_ptr ptr = 0;

	OK(CU(cuMemAlloc_v2)(&ptr, bytes));
	return ptr;
}

static KIT_UNUSED void kit_run(void (*body)(void))
{
	struct fake_leaks leaks;

	alarm(60);
	kit_load();
	body();
	if (CU(fakeCudaLeaks)(&leaks)) {
		fprintf(stderr, "left: %d allocations, %d registrations, %d "
			"imports, %d streams, %d events, %d modules, %d "
			"contexts\n", leaks.allocations, leaks.registrations,
			leaks.imports, leaks.streams, leaks.events,
			leaks.modules, leaks.retained);
		exit(1);
	}
	exit(0);
}

/* What cmocka does on a crash is not for children. */
static KIT_UNUSED void kit_default_handlers(void)
{
	static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE};
	size_t i;

	for (i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		signal(crashes[i], SIG_DFL);
}

/* The wait status of a case. */
static KIT_UNUSED int kit_status(const char *settings, void (*body)(void))
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		kit_default_handlers();
		setenv("FAKE_CUDA", settings, 1);
		kit_run(body);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static KIT_UNUSED void kit_case(const char *settings, void (*body)(void))
{
	assert_int_equal(kit_status(settings, body), 0);
}

static KIT_UNUSED uint64_t kit_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
