/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>

#include "mem/cuda.h"

#define LIBRARY "libcuda.so.1"

struct cuda_api cuda;

enum { ABSENT, HERE, STARTED };

static struct {
	pthread_mutex_t lock;
	_Atomic int state;
	/* Objects that had been loaded when the driver was not among them. */
	_Atomic uint64_t n_loads;
	bool has_env;
	_Atomic bool is_off, ipc_is_off;
	_Atomic int env_error;
	char lacks[96]; /* "": nothing */
} load = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct row {
	const char *symbol;
	size_t offset;
	bool is_optional;
};

#define ROW(field, symbol) {symbol, offsetof(struct cuda_api, field), false}
#define MAY(field, symbol) {symbol, offsetof(struct cuda_api, field), true}

/* The names with the versions that have these arguments: a name without one
 * is the first form, of CUDA 3. */
static const struct row rows[] = {
	ROW(init, "cuInit"),
	ROW(driver_version, "cuDriverGetVersion"),
	MAY(error_name, "cuGetErrorName"),
	MAY(error_string, "cuGetErrorString"),
	ROW(device_count, "cuDeviceGetCount"),
	ROW(device_get, "cuDeviceGet"),
	ROW(device_name, "cuDeviceGetName"),
	ROW(device_uuid, "cuDeviceGetUuid_v2"),
	ROW(device_bytes, "cuDeviceTotalMem_v2"),
	ROW(device_attribute, "cuDeviceGetAttribute"),
	ROW(device_pci, "cuDeviceGetPCIBusId"),
	ROW(device_reaches, "cuDeviceCanAccessPeer"),
	ROW(ctx_retain, "cuDevicePrimaryCtxRetain"),
	ROW(ctx_release, "cuDevicePrimaryCtxRelease_v2"),
	ROW(ctx_state, "cuDevicePrimaryCtxGetState"),
	ROW(ctx_push, "cuCtxPushCurrent_v2"),
	ROW(ctx_pop, "cuCtxPopCurrent_v2"),
	ROW(ctx_current, "cuCtxGetCurrent"),
	ROW(ctx_device, "cuCtxGetDevice"),
	ROW(ctx_priorities, "cuCtxGetStreamPriorityRange"),
	ROW(ctx_enable_peer, "cuCtxEnablePeerAccess"),
	MAY(capture_mode, "cuThreadExchangeStreamCaptureMode"),
	ROW(stream_new, "cuStreamCreateWithPriority"),
	ROW(stream_free, "cuStreamDestroy_v2"),
	ROW(stream_query, "cuStreamQuery"),
	ROW(stream_ctx, "cuStreamGetCtx"),
	ROW(stream_capturing, "cuStreamIsCapturing"),
	/* The first form needs a module parameter of the kernel's driver. */
	ROW(stream_write, "cuStreamWriteValue32_v2"),
	ROW(stream_wait, "cuStreamWaitValue32_v2"),
	ROW(mem_new, "cuMemAlloc_v2"),
	ROW(mem_free, "cuMemFree_v2"),
	ROW(mem_host_new, "cuMemHostAlloc"),
	ROW(mem_host_free, "cuMemFreeHost"),
	ROW(mem_host_register, "cuMemHostRegister_v2"),
	ROW(mem_host_unregister, "cuMemHostUnregister"),
	ROW(mem_copy, "cuMemcpyAsync"),
	MAY(mem_dmabuf, "cuMemGetHandleForAddressRange"),
	ROW(pointer_get, "cuPointerGetAttributes"),
	ROW(pointer_set, "cuPointerSetAttribute"),
	ROW(ipc_export, "cuIpcGetMemHandle"),
	ROW(ipc_open, "cuIpcOpenMemHandle_v2"),
	ROW(ipc_close, "cuIpcCloseMemHandle"),
	ROW(module_load, "cuModuleLoadData"),
	ROW(module_unload, "cuModuleUnload"),
	ROW(module_function, "cuModuleGetFunction"),
	MAY(function_load, "cuFuncLoad"),
	ROW(launch, "cuLaunchKernel"),
};

static void fill(void *handle)
{
	size_t i;

	for (i = 0; i < base_countof(rows); i++) {
		void *found = dlsym(handle, rows[i].symbol);

		if (!found && !rows[i].is_optional && !load.lacks[0])
			snprintf(load.lacks, sizeof(load.lacks), "%s",
				 rows[i].symbol);
		*(void **)(void *)((char *)&cuda + rows[i].offset) = found;
	}
}

/* Caller holds @load.lock. */
static void read_settings(void)
{
	struct base_env *env;

	if (load.has_env)
		return;
	env = base_alloc(1, sizeof(*env));
	load.env_error = env ? base_env_load(env) : WREATH_ENOMEM;
	if (!load.env_error) {
		load.is_off = env->value[BASE_ENV_GPU];
		load.ipc_is_off = env->value[BASE_ENV_GPU_IPC];
		load.has_env = true;
	}
	base_free(env);
}

/* Caller holds @load.lock.  The driver is never unloaded: it keeps threads. */
static bool take(int flags)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | flags);

	if (!handle)
		return false;
	fill(handle);
	read_settings();
	/* Pairs with the acquire in mem_cuda_is_here(): the table is filled. */
	atomic_store_explicit(&load.state, HERE, memory_order_release);
	return true;
}

static int read_adds(struct dl_phdr_info *info, size_t bytes, void *out)
{
	(void)bytes;
	*(uint64_t *)out = info->dlpi_adds;
	return 1;
}

static bool look_again(uint64_t n_loads)
{
	bool found;

	pthread_mutex_lock(&load.lock);
	found = atomic_load_explicit(&load.state, memory_order_relaxed) !=
			ABSENT ||
		take(RTLD_NOLOAD);
	atomic_store_explicit(&load.n_loads, n_loads, memory_order_relaxed);
	pthread_mutex_unlock(&load.lock);
	return found;
}

bool mem_cuda_is_here(void)
{
	uint64_t n_loads = 0;

	/* Pairs with the release in take(). */
	if (atomic_load_explicit(&load.state, memory_order_acquire) != ABSENT)
		return true;
	/*
	 * Nobody is told when the program loads the driver.  The loader counts
	 * what it loads, and tells the count with the first object: 10 ns on a
	 * Xeon of 2.1 GHz with glibc 2.36, a tenth of the shortest operation.
	 */
	dl_iterate_phdr(read_adds, &n_loads);
	if (base_likely(n_loads == atomic_load_explicit(&load.n_loads,
							memory_order_relaxed)))
		return false;
	return look_again(n_loads);
}

bool cuda_is_off(void)
{
	return load.is_off;
}

bool cuda_ipc_is_off(void)
{
	return load.ipc_is_off;
}

/* What can be said without starting the driver. */
int cuda_usable(void)
{
	int version = 0;

	if (load.env_error)
		return base_error(load.env_error,
				  "the settings of GPUs cannot be read: %s",
				  base_error_text());
	if (load.is_off)
		return base_error(WREATH_EUNSUP,
				  "memory of GPUs is not used: WREATH_GPU=off; "
				  "unset it");
	if (!load.lacks[0])
		return 0;
	if (cuda.driver_version)
		cuda.driver_version(&version);
	return base_error(WREATH_EUNSUP,
			  "the CUDA driver is too old (%d.%d): it lacks %s; "
			  "install one for CUDA 11.7 or later",
			  version / 1000, version % 1000 / 10, load.lacks);
}

/* Caller holds @load.lock. */
static int start(void)
{
	int n = 0;
	int result, err;

	/* What was a bad value may have been set right. */
	read_settings();
	if (!load.is_off &&
	    atomic_load_explicit(&load.state, memory_order_relaxed) == ABSENT &&
	    !load.env_error && !take(0))
		return base_error(WREATH_EUNSUP,
				  "there is no CUDA driver here (%s); memory "
				  "of GPUs needs NVIDIA's", dlerror());
	err = cuda_usable();
	if (err)
		return err;
	result = cuda.init(0);
	if (result)
		return cuda_error(result, "cuInit", "the CUDA driver");
	result = cuda.device_count(&n);
	if (result)
		return cuda_error(result, "cuDeviceGetCount",
				  "the CUDA driver");
	if (!n)
		return cuda_error(CUDA_NO_DEVICE, "cuDeviceGetCount",
				  "the CUDA driver");
	/* Pairs with the acquire in mem_cuda_load(). */
	atomic_store_explicit(&load.state, STARTED, memory_order_release);
	return 0;
}

int mem_cuda_load(void)
{
	int err = 0;

	/* Pairs with the release in start(). */
	if (atomic_load_explicit(&load.state, memory_order_acquire) == STARTED)
		return 0;
	pthread_mutex_lock(&load.lock);
	if (atomic_load_explicit(&load.state, memory_order_relaxed) != STARTED)
		err = start();
	pthread_mutex_unlock(&load.lock);
	return err;
}
