/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/cuda.h"
#include "mem/mem.h"

/* Of the driver's interface, as cuda.h has them. */
#define STREAM_NON_BLOCKING 1
#define MEM_ATTACH_GLOBAL 1
#define WAIT_VALUE_GEQ 0

static struct {
	int (*device_get)(int *out, int number);
	int (*ctx_retain)(void **out, int device);
	int (*ctx_release)(int device);
	int (*ctx_set)(void *ctx);
	int (*stream_new)(void **out, unsigned int flags);
	int (*stream_free)(void *stream);
	int (*stream_wait)(void *stream);
	int (*stream_wait_value)(void *stream, uint64_t at, uint32_t value,
				 unsigned int flags);
	int (*mem_new)(uint64_t *out, size_t bytes);
	int (*mem_new_managed)(uint64_t *out, size_t bytes,
			       unsigned int flags);
	int (*mem_free)(uint64_t at);
	int (*copy)(uint64_t dst, uint64_t src, size_t bytes, void *stream);
	int (*fill)(uint64_t dst, unsigned char byte, size_t bytes,
		    void *stream);
	int (*error_name)(int result, const char **out);
} cuda;

static const struct {
	const char *name;
	void *to;
} functions[] = {
	{"cuDeviceGet", &cuda.device_get},
	{"cuDevicePrimaryCtxRetain", &cuda.ctx_retain},
	{"cuDevicePrimaryCtxRelease_v2", &cuda.ctx_release},
	{"cuCtxSetCurrent", &cuda.ctx_set},
	{"cuStreamCreate", &cuda.stream_new},
	{"cuStreamDestroy_v2", &cuda.stream_free},
	{"cuStreamSynchronize", &cuda.stream_wait},
	{"cuStreamWaitValue32_v2", &cuda.stream_wait_value},
	{"cuMemAlloc_v2", &cuda.mem_new},
	{"cuMemAllocManaged", &cuda.mem_new_managed},
	{"cuMemFree_v2", &cuda.mem_free},
	{"cuMemcpyAsync", &cuda.copy},
	{"cuMemsetD8Async", &cuda.fill},
	{"cuGetErrorName", &cuda.error_name},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_loaded;

/* Caller holds @lock. */
static int load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	size_t i;

	if (!library)
		return base_error(WREATH_EUNSUP, "%s", dlerror());
	for (i = 0; i < base_countof(functions); i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function)
			return base_error(WREATH_EUNSUP,
					  "CUDA's driver has no %s(); it is "
					  "too old", functions[i].name);
		/* ISO C has no conversion to pointers to functions. */
		memcpy(functions[i].to, &function, sizeof(function));
	}
	is_loaded = true;
	return 0;
}

static int load_once(void)
{
	int error = mem_cuda_load();

	if (error)
		return error;
	pthread_mutex_lock(&lock);
	if (!is_loaded)
		error = load();
	pthread_mutex_unlock(&lock);
	return error;
}

static int check(int result, const char *function)
{
	const char *name = NULL;

	if (!result)
		return 0;
	if (cuda.error_name(result, &name) || !name)
		name = "an unknown error";
	return base_error(WREATH_EDEVICE, "%s(): %s (%d)", function, name,
			  result);
}

/* ---- whether there is one ---- */

struct answer {
	int error, n_gpus;
	char text[512];
};

static _Noreturn void probe(int to)
{
	struct answer answer = {0};
	ssize_t n;

	answer.error = mem_cuda_load();
	answer.n_gpus = mem_gpu_count();
	if (answer.error)
		snprintf(answer.text, sizeof(answer.text), "%s",
			 wreath_error_text());
	n = write(to, &answer, sizeof(answer));
	/* Not by exit(): nothing of the parent's may be done twice. */
	_exit(n != (ssize_t)sizeof(answer));
}

int bench_gpu_probe(int *n_gpus)
{
	struct answer answer;
	int fds[2];
	ssize_t n;
	pid_t pid;

	if (pipe(fds))
		return base_error(WREATH_EDEVICE, "pipe: %s", strerror(errno));
	pid = fork();
	if (!pid)
		probe(fds[1]);
	close(fds[1]);
	do {
		n = read(fds[0], &answer, sizeof(answer));
	} while (n < 0 && errno == EINTR);
	close(fds[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof(answer))
		return base_error(WREATH_EDEVICE, "a process that started CUDA "
				  "ended without an answer");
	if (answer.error)
		return base_error(answer.error, "%s", answer.text);
	if (!answer.n_gpus)
		return base_error(WREATH_EUNSUP, "CUDA sees no GPU here");
	*n_gpus = answer.n_gpus;
	return 0;
}

/* ---- a GPU, and what is done there ---- */

int bench_gpu_open(int number, struct bench_gpu *out)
{
	struct bench_gpu gpu = {.number = number};
	int error = load_once();
	int device;

	if (!error)
		error = check(cuda.device_get(&device, number), "cuDeviceGet");
	if (!error)
		error = check(cuda.ctx_retain(&gpu.ctx, device),
			      "cuDevicePrimaryCtxRetain");
	if (error)
		return error;
	error = check(cuda.ctx_set(gpu.ctx), "cuCtxSetCurrent");
	if (!error)
		error = check(cuda.stream_new(&gpu.stream,
					      STREAM_NON_BLOCKING),
			      "cuStreamCreate");
	if (error)
		cuda.ctx_release(device);
	else
		*out = gpu;
	return error;
}

void bench_gpu_close(struct bench_gpu *gpu)
{
	int device;

	if (!gpu->ctx)
		return;
	cuda.stream_free(gpu->stream);
	cuda.ctx_set(NULL);
	if (!cuda.device_get(&device, gpu->number))
		cuda.ctx_release(device);
	memset(gpu, 0, sizeof(*gpu));
}

int bench_gpu_new(size_t bytes, bool is_managed, void **out)
{
	uint64_t at;
	int result = is_managed ? cuda.mem_new_managed(&at, bytes,
						       MEM_ATTACH_GLOBAL)
				: cuda.mem_new(&at, bytes);
	int error = check(result, is_managed ? "cuMemAllocManaged"
					     : "cuMemAlloc");

	if (!error)
		*out = (void *)(uintptr_t)at;
	return error;
}

void bench_gpu_free(void *ptr)
{
	if (ptr)
		cuda.mem_free((uintptr_t)ptr);
}

int bench_gpu_put_copy(struct bench_gpu *gpu, void *dst, const void *src,
		       size_t bytes)
{
	return check(cuda.copy((uintptr_t)dst, (uintptr_t)src, bytes,
			       gpu->stream), "cuMemcpyAsync");
}

int bench_gpu_put_fill(struct bench_gpu *gpu, void *dst, unsigned char byte,
		       size_t bytes)
{
	return check(cuda.fill((uintptr_t)dst, byte, bytes, gpu->stream),
		     "cuMemsetD8Async");
}

int bench_gpu_put_wait(struct bench_gpu *gpu, const uint32_t *word,
		       uint32_t value)
{
	return check(cuda.stream_wait_value(gpu->stream, (uintptr_t)word,
					    value, WAIT_VALUE_GEQ),
		     "cuStreamWaitValue32");
}

int bench_gpu_wait(struct bench_gpu *gpu)
{
	return check(cuda.stream_wait(gpu->stream), "cuStreamSynchronize");
}

int bench_gpu_copy(struct bench_gpu *gpu, void *dst, const void *src,
		   size_t bytes)
{
	int error = bench_gpu_put_copy(gpu, dst, src, bytes);

	return error ? error : bench_gpu_wait(gpu);
}
