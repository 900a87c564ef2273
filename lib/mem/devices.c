/* SPDX-License-Identifier: MIT */
/* The GPUs of this process, and how a thread comes to work on one. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "mem/cuda.h"
#include "reduce/gpu.h"

static struct {
	pthread_mutex_t lock;
	struct cuda_gpu gpus[CUDA_GPUS_MAX];
	/* The first that was retained. */
	struct cuda_gpu *_Atomic any;
} devices = {.lock = PTHREAD_MUTEX_INITIALIZER};

int cuda_enter(const struct cuda_gpu *gpu)
{
	int result = cuda.ctx_push(gpu->ctx);

	if (result)
		return cuda_error(result, "cuCtxPushCurrent", "GPU %d",
				  gpu->number);
	return 0;
}

void cuda_leave(void)
{
	struct CUctx_st *old;

	cuda.ctx_pop(&old);
}

static void relax(struct cuda_visit *visit)
{
	visit->capture_mode = CUDA_CAPTURE_RELAXED;
	visit->is_relaxed = cuda.capture_mode &&
			    !cuda.capture_mode(&visit->capture_mode);
}

static void unrelax(struct cuda_visit *visit)
{
	if (visit->is_relaxed)
		cuda.capture_mode(&visit->capture_mode);
}

int cuda_visit(const struct cuda_gpu *gpu, struct cuda_visit *visit)
{
	int err = cuda_enter(gpu);

	if (!err)
		relax(visit);
	return err;
}

void cuda_visit_end(struct cuda_visit *visit)
{
	unrelax(visit);
	cuda_leave();
}

int cuda_gpu_health(const struct cuda_gpu *gpu)
{
	struct cuda_visit visit;
	int result;

	if (cuda_visit(gpu, &visit))
		return CUDA_CONTEXT_IS_DESTROYED;
	result = cuda.stream_query(gpu->probe);
	cuda_visit_end(&visit);
	return result == CUDA_NOT_READY ? CUDA_OK : result;
}

/* Of a driver that does not know it yet it is 0. */
static int attribute(const struct cuda_gpu *gpu, int which, int *out)
{
	int result;

	*out = 0;
	result = cuda.device_attribute(out, which, gpu->device);
	return result == CUDA_INVALID_VALUE ? 0 : result;
}

static int read_attributes(struct cuda_gpu *gpu)
{
	struct mem_gpu_info *info = &gpu->info;
	int has_dmabuf, ordering, uses_host_pointers;
	struct {
		int which;
		int *out;
	} rows[] = {
		{CUDA_DEVICE_MULTIPROCESSORS, &gpu->n_multiprocessors},
		{CUDA_DEVICE_UNIFIED_ADDRESSING, &gpu->is_unified},
		{CUDA_DEVICE_CAPABILITY_MAJOR, &info->major},
		{CUDA_DEVICE_CAPABILITY_MINOR, &info->minor},
		{CUDA_DEVICE_USES_HOST_POINTERS, &uses_host_pointers},
		{CUDA_DEVICE_RDMA_ORDERING, &ordering},
		{CUDA_DEVICE_DMA_BUF, &has_dmabuf},
	};
	size_t i;

	for (i = 0; i < base_countof(rows); i++) {
		int result = attribute(gpu, rows[i].which, rows[i].out);

		if (result)
			return result;
	}
	info->has_dmabuf = cuda.mem_dmabuf && has_dmabuf;
	info->needs_flush = ordering < CUDA_ORDERING_OWNER;
	gpu->uses_host_pointers = uses_host_pointers;
	return 0;
}

/* What can be known without a context. */
static int describe(int number, struct cuda_gpu *gpu)
{
	struct mem_gpu_info *info = &gpu->info;
	struct cuda_uuid uuid;
	const char *call = "cuDeviceGet";
	int result;

	memset(info, 0, sizeof(*info));
	gpu->number = number;
	result = cuda.device_get(&gpu->device, number);
	if (!result) {
		call = "cuDeviceGetName";
		result = cuda.device_name(info->name, sizeof(info->name),
					  gpu->device);
	}
	if (!result) {
		call = "cuDeviceGetPCIBusId";
		result = cuda.device_pci(info->pci, sizeof(info->pci),
					 gpu->device);
	}
	if (!result) {
		call = "cuDeviceGetUuid";
		result = cuda.device_uuid(&uuid, gpu->device);
	}
	if (!result) {
		call = "cuDeviceTotalMem";
		result = cuda.device_bytes(&info->bytes, gpu->device);
	}
	if (!result) {
		call = "cuDeviceGetAttribute";
		result = read_attributes(gpu);
	}
	if (result)
		return cuda_error(result, call, "GPU %d", number);
	memcpy(info->uuid, uuid.bytes, sizeof(info->uuid));
	return 0;
}

/* Caller holds @devices.lock. */
static int retain(struct cuda_gpu *gpu)
{
	struct cuda_visit visit;
	int least = 0;
	int result;

	if (!gpu->is_unified)
		return base_error(WREATH_EUNSUP,
				  "GPU %d (%s) has no unified addresses, which "
				  "wreath needs", gpu->number, gpu->info.name);
	/* The context may be made here, which counts as unsafe. */
	relax(&visit);
	result = cuda.ctx_retain(&gpu->ctx, gpu->device);
	unrelax(&visit);
	if (result)
		return cuda_error(result, "cuDevicePrimaryCtxRetain",
				  "GPU %d (%s)", gpu->number, gpu->info.name);
	if (cuda_visit(gpu, &visit)) {
		cuda.ctx_release(gpu->device);
		return WREATH_EDEVICE;
	}
	if (cuda.ctx_priorities(&least, &gpu->priority))
		gpu->priority = 0;
	result = cuda.stream_new(&gpu->probe, CUDA_STREAM_NON_BLOCKING, 0);
	cuda_visit_end(&visit);
	if (result) {
		cuda.ctx_release(gpu->device);
		return cuda_error(result, "cuStreamCreate", "GPU %d (%s)",
				  gpu->number, gpu->info.name);
	}
	return 0;
}

int mem_gpu_count(void)
{
	int n = 0;

	if (!mem_cuda_is_here() || cuda_is_off() || !cuda.device_count ||
	    cuda.device_count(&n))
		return 0;
	return n;
}

static int check_number(int number)
{
	int err = mem_cuda_load();
	int n = 0;
	int result;

	if (err)
		return err;
	result = cuda.device_count(&n);
	if (result)
		return cuda_error(result, "cuDeviceGetCount", "GPU %d", number);
	if (n > CUDA_GPUS_MAX)
		n = CUDA_GPUS_MAX;
	if (number < 0 || number >= n)
		return base_error(WREATH_EINVAL,
				  "GPU %d is not in 0..%d; CUDA_VISIBLE_DEVICES "
				  "hides others", number, n - 1);
	return 0;
}

static bool is_retained(const struct cuda_gpu *gpu)
{
	/* Pairs with the release in cuda_gpu_get(): all is filled in. */
	return atomic_load_explicit(&gpu->is_retained, memory_order_acquire);
}

int cuda_gpu_get(int number, struct cuda_gpu **out)
{
	struct cuda_gpu *gpu;
	int err;

	if (number >= 0 && number < CUDA_GPUS_MAX &&
	    is_retained(&devices.gpus[number])) {
		*out = &devices.gpus[number];
		return 0;
	}
	err = check_number(number);
	if (err)
		return err;
	gpu = &devices.gpus[number];
	pthread_mutex_lock(&devices.lock);
	if (!is_retained(gpu)) {
		err = describe(number, gpu);
		if (!err)
			err = retain(gpu);
		/* Pairs with the acquire in is_retained(). */
		atomic_store_explicit(&gpu->is_retained, !err,
				      memory_order_release);
	}
	pthread_mutex_unlock(&devices.lock);
	if (err)
		return err;
	/* Pairs with the acquire in cuda_gpu_any(). */
	atomic_store_explicit(&devices.any, gpu, memory_order_release);
	*out = gpu;
	return 0;
}

struct cuda_gpu *cuda_gpu_any(void)
{
	/* Pairs with the release in cuda_gpu_get(). */
	return atomic_load_explicit(&devices.any, memory_order_acquire);
}

int cuda_gpu_find(const unsigned char uuid[16])
{
	int n = mem_gpu_count();
	int i;

	for (i = 0; i < n && i < CUDA_GPUS_MAX; i++) {
		struct cuda_uuid at;
		int device;

		if (!cuda.device_get(&device, i) &&
		    !cuda.device_uuid(&at, device) &&
		    !memcmp(at.bytes, uuid, sizeof(at.bytes)))
			return i;
	}
	return -1;
}

int mem_gpu_info(int number, struct mem_gpu_info *out)
{
	struct cuda_gpu gpu;
	size_t bytes;
	int err = check_number(number);

	if (!err)
		err = describe(number, &gpu);
	if (err)
		return err;
	gpu.info.has_kernels = reduce_gpu_image(&bytes);
	if (!gpu.info.has_kernels)
		snprintf(gpu.info.why, sizeof(gpu.info.why),
			 "this library was built without nvcc");
	*out = gpu.info;
	return 0;
}

int mem_cuda_device(void)
{
	struct CUctx_st *ctx = NULL;
	int device;

	if (!mem_cuda_is_here() || cuda_is_off() || !cuda.ctx_current ||
	    !cuda.ctx_device || cuda.ctx_current(&ctx) || !ctx ||
	    cuda.ctx_device(&device))
		return -1;
	return device;
}

int mem_gpu_held(void)
{
	struct cuda_gpu *gpu = mem_cuda_is_here() ? cuda_gpu_any() : NULL;

	return gpu ? gpu->number : -1;
}
