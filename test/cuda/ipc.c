/* SPDX-License-Identifier: MIT */
/*
 * Memory of devices for others: processes, by the descriptor of the memfd,
 * which the kernel hands to whoever may look into the process; and devices, by
 * a copy of it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/cuda/fake.h"

#define PAGE ((size_t)4096)
#define MAGIC UINT32_C(0xfa4ecada)

/* How cu_ipc is read here. */
struct handle {
	uint32_t magic;
	int32_t pid, fd, device;
	uint64_t inode, host, id;
	uint64_t bytes;
	uint32_t before;
	uint32_t unused;
	uint64_t check;
};
_Static_assert(sizeof(struct handle) == sizeof(struct cu_ipc), "64 bytes");

static uint64_t check_of(const struct handle *handle)
{
	uint64_t state = handle->inode ^ handle->host << 32 ^ handle->id ^
			 handle->bytes ^ handle->before ^
			 (uint64_t)handle->pid << 20 ^ (uint64_t)handle->fd;

	return fake_random(&state);
}

int cuIpcGetMemHandle(struct cu_ipc *out, cu_ptr ptr)
{
	struct handle handle = {.magic = MAGIC, .pid = getpid()};
	const struct fake_range *range;
	struct CUctx_st *ctx;
	struct stat st;
	int err = fake_enter(__func__);

	if (!err)
		err = fake_ctx(&ctx);
	if (err)
		return err;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (fake_config.noipc)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&fake_lock);
	range = fake_find_base(ptr);
	if (!range || range->kind != FAKE_DEVICE) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else if (fstat(range->fd, &st)) {
		err = CUDA_ERROR_MAP_FAILED;
	} else {
		handle.fd = range->fd;
		handle.device = range->device;
		handle.inode = st.st_ino;
		handle.host = st.st_dev;
		handle.id = range->id;
		handle.bytes = range->bytes;
		handle.before = (uint32_t)(range->alias - range->alias_map);
		handle.check = check_of(&handle);
		memcpy(out, &handle, sizeof(handle));
	}
	pthread_mutex_unlock(&fake_lock);
	return err;
}

/* The number may be another file's by this time. */
static int open_handle(const struct handle *handle)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)handle->pid,
		 (int)handle->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && st.st_ino == handle->inode &&
	    st.st_dev == handle->host &&
	    (uint64_t)st.st_size >= handle->before + handle->bytes)
		return fd;
	close(fd);
	return -1;
}

/* Caller holds the lock. */
static int import(struct CUctx_st *ctx, const struct handle *handle,
		  struct fake_range **out)
{
	struct fake_range *range = calloc(1, sizeof(*range));
	int fd, err;

	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fd = open_handle(handle);
	if (fd < 0) {
		free(range);
		return CUDA_ERROR_MAP_FAILED;
	}
	range->kind = FAKE_IMPORTED;
	range->ctx = ctx;
	range->device = handle->device;
	range->bytes = handle->bytes;
	memcpy(&range->handle, handle, sizeof(*handle));
	err = fake_map(range, fd, handle->before);
	if (err) {
		close(fd);
		free(range);
		return err;
	}
	fake_range_add(range);
	*out = range;
	return 0;
}

int cuIpcOpenMemHandle_v2(cu_ptr *out, struct cu_ipc from, unsigned int flags)
{
	struct fake_range *range;
	struct handle handle;
	struct CUctx_st *ctx;
	int err = fake_enter(__func__);

	if (!err)
		err = fake_ctx(&ctx);
	if (err)
		return err;
	memcpy(&handle, &from, sizeof(handle));
	if (!out || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	if (handle.magic != MAGIC || handle.check != check_of(&handle) ||
	    handle.device < 0 || handle.device >= fake_config.n_devices)
		return CUDA_ERROR_INVALID_HANDLE;
	if (handle.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (fake_config.noipc)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (handle.device != ctx->device && fake_config.nopeer)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	pthread_mutex_lock(&fake_lock);
	range = fake_find_import(ctx, &from);
	if (!range)
		err = import(ctx, &handle, &range);
	if (!err) {
		range->n_opened++;
		if (handle.device != ctx->device)
			ctx->reaches[handle.device] = true;
		*out = range->base;
	}
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuIpcOpenMemHandle(cu_ptr *out, struct cu_ipc handle, unsigned int flags)
{
	return cuIpcOpenMemHandle_v2(out, handle, flags);
}

int cuIpcCloseMemHandle(cu_ptr ptr)
{
	struct fake_range *range;
	int err = fake_enter(__func__);

	if (err)
		return err;
	pthread_mutex_lock(&fake_lock);
	range = fake_find_base(ptr);
	if (!range || range->kind != FAKE_IMPORTED) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else if (!--range->n_opened) {
		fake_ctx_wait(range->ctx);
		fake_range_remove(range);
	}
	pthread_mutex_unlock(&fake_lock);
	return err;
}

/*
 * The descriptor is the whole memfd's, while the driver's would be of the
 * range alone: only a range that begins with the allocation can be told.
 */
int cuMemGetHandleForAddressRange(void *out, cu_ptr ptr, size_t bytes,
				  int type, unsigned long long flags)
{
	const struct fake_range *range;
	struct CUctx_st *ctx;
	int fd = -1;
	int err = fake_enter(__func__);

	if (!err)
		err = fake_ctx(&ctx);
	if (err)
		return err;
	if (!out || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD ||
	    flags & ~UINT64_C(1) || !bytes || ptr % PAGE || bytes % PAGE)
		return CUDA_ERROR_INVALID_VALUE;
	if (fake_config.nodmabuf)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&fake_lock);
	range = fake_find_mapping(ptr, bytes);
	if (!range || range->kind != FAKE_DEVICE) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else if (ptr != (uintptr_t)range->map) {
		fake_tell("a DMA-BUF of a part of an allocation");
		err = CUDA_ERROR_NOT_SUPPORTED;
	} else {
		fd = fcntl(range->fd, F_DUPFD_CLOEXEC, 0);
		err = fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : 0;
	}
	pthread_mutex_unlock(&fake_lock);
	if (!err)
		memcpy(out, &fd, sizeof(fd));
	return err;
}

int cuFlushGPUDirectRDMAWrites(int target, int scope)
{
	struct CUctx_st *ctx;
	int err = fake_enter(__func__);

	if (!err)
		err = fake_ctx(&ctx);
	if (err)
		return err;
	if (target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX ||
	    (scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER &&
	     scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES))
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return 0;
}
