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

int mem_dmabuf(const void *ptr, size_t bytes, int *fd, uint64_t *offset)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)ptr & ~(page - 1);
	struct mem_where where;
	struct cuda_visit visit;
	struct cuda_gpu *gpu;
	int err = mem_where(ptr, &where);
	int result;
	int found = -1;

	if (err)
		return err;
	if (where.kind != MEM_DEVICE || !bytes ||
	    bytes > where.bytes - (size_t)((const char *)ptr - where.base))
		return base_error(WREATH_EINVAL,
				  "%zu bytes at %p are not within one "
				  "allocation of a GPU", bytes, ptr);
	err = cuda_gpu_get(where.gpu, &gpu);
	if (err)
		return err;
	if (!gpu->info.has_dmabuf)
		return base_error(WREATH_EUNSUP,
				  "GPU %d (%s) exports no DMA-BUF: that needs "
				  "the open kernel modules of a driver for "
				  "CUDA 11.7 or later, and Linux 5.12",
				  where.gpu, gpu->info.name);
	err = cuda_visit(gpu, &visit);
	if (err)
		return err;
	/* Whole pages: the driver takes nothing else. */
	result = cuda.mem_dmabuf(&found, start,
				 base_round_up((uintptr_t)ptr + bytes - start,
					       page),
				 CUDA_HANDLE_DMA_BUF, 0);
	cuda_visit_end(&visit);
	if (result || found < 0) {
		char text[128];

		cuda_describe(result, text);
		return base_error(WREATH_EUNSUP,
				  "no DMA-BUF of %zu bytes at %p on GPU %d "
				  "(%s): %s", bytes, ptr, where.gpu,
				  gpu->info.name, text);
	}
	*fd = found;
	*offset = (uintptr_t)ptr - start;
	return 0;
}
