/* SPDX-License-Identifier: MIT */
/* Memory of GPUs: allocated, and described to devices. */
#include <unistd.h>

#include "mem/cuda.h"

/* What a GPU's memory is made of: of shorter allocations several share one,
 * and whoever is given one of them is given all. */
#define UNIT ((size_t)2 << 20)

int cuda_alloc(int number, size_t bytes, void **out)
{
	struct cuda_visit visit;
	struct cuda_gpu *gpu;
	const int yes = 1;
	uint64_t ptr;
	int result, err;

	if (!bytes || bytes > SIZE_MAX / 2)
		return base_error(WREATH_EINVAL,
				  "cannot allocate %zu bytes on GPU %d: not in "
				  "1..%zu", bytes, number, SIZE_MAX / 2);
	err = cuda_gpu_get(number, &gpu);
	if (err)
		return err;
	err = cuda_visit(gpu, &visit);
	if (err)
		return err;
	result = cuda.mem_new(&ptr, base_round_up(bytes, UNIT));
	/* Copies that seem synchronous are, so that a device which is told of
	 * one reads what it wrote. */
	if (!result && cuda.pointer_set(&yes, CUDA_POINTER_SYNC_MEMOPS, ptr))
		base_log(BASE_LOG_DEBUG, "GPU %d: no SYNC_MEMOPS", number);
	cuda_visit_end(&visit);
	if (result)
		return cuda_error(result, "cuMemAlloc", "%zu bytes on GPU %d "
				  "(%s, %zu bytes in all)", bytes, number,
				  gpu->info.name, gpu->info.bytes);
	*out = (void *)(uintptr_t)ptr;
	return 0;
}

int cuda_free(int number, void *ptr)
{
	struct cuda_visit visit;
	struct cuda_gpu *gpu;
	int result;
	int err = cuda_gpu_get(number, &gpu);

	if (!err)
		err = cuda_visit(gpu, &visit);
	if (err)
		return err;
	result = cuda.mem_free((uintptr_t)ptr);
	cuda_visit_end(&visit);
	return result ? cuda_error(result, "cuMemFree", "%p on GPU %d", ptr,
				   number)
		      : 0;
}

/* Of whole pages: the driver takes nothing else. */
static int export_range(const char *start, const char *end, int *fd,
			const char **first)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)start & ~(page - 1);
	size_t bytes = base_round_up((uintptr_t)end - at, page);

	*fd = -1;
	*first = start - ((uintptr_t)start - at);
	return cuda.mem_dmabuf(fd, at, bytes, CUDA_HANDLE_DMA_BUF, 0);
}

static int export_memory(const struct mem_where *where, const char *ptr,
			 size_t bytes, int *fd, uint64_t *offset)
{
	struct cuda_visit visit;
	struct cuda_gpu *gpu;
	const char *first;
	char text[128];
	int result;
	int err = cuda_gpu_get(where->gpu, &gpu);

	if (err)
		return err;
	if (!gpu->info.has_dmabuf)
		return base_error(WREATH_EUNSUP,
				  "GPU %d (%s) exports no DMA-BUF: that needs "
				  "the open kernel modules of a driver for "
				  "CUDA 11.7 or later, and Linux 5.12",
				  where->gpu, gpu->info.name);
	err = cuda_visit(gpu, &visit);
	if (err)
		return err;
	/* What a device maps is bounded: all only where a part is refused. */
	result = export_range(ptr, ptr + bytes, fd, &first);
	if (result)
		result = export_range(where->base, where->base + where->bytes,
				      fd, &first);
	cuda_visit_end(&visit);
	if (!result && *fd >= 0) {
		*offset = (uint64_t)(ptr - first);
		return 0;
	}
	cuda_describe(result, text);
	return base_error(WREATH_EUNSUP,
			  "no DMA-BUF of %zu bytes at %p on GPU %d (%s): %s",
			  bytes, (const void *)ptr, where->gpu, gpu->info.name,
			  text);
}

int mem_dmabuf(const void *ptr, size_t bytes, int *fd, uint64_t *offset)
{
	struct mem_where where;
	int found;
	int err = mem_where(ptr, &where);

	if (err)
		return err;
	if (where.kind != MEM_DEVICE || !bytes ||
	    bytes > where.bytes - (size_t)((const char *)ptr - where.base))
		return base_error(WREATH_EINVAL,
				  "%zu bytes at %p are not within one "
				  "allocation of a GPU", bytes, ptr);
	err = export_memory(&where, ptr, bytes, &found, offset);
	if (!err)
		*fd = found;
	return err;
}
