/* SPDX-License-Identifier: MIT */
/* Memory, which needs no communicator. */
#include "comm/inner.h"

int wreath_mem_alloc(size_t bytes, void **ptr)
{
	if (!ptr)
		return base_error(WREATH_EINVAL,
				  "wreath_mem_alloc: ptr is NULL");
	return mem_alloc(bytes, ptr);
}

int wreath_mem_alloc_gpu(size_t bytes, int device, void **ptr)
{
	if (!ptr)
		return base_error(WREATH_EINVAL,
				  "wreath_mem_alloc_gpu: ptr is NULL");
	return mem_gpu_alloc(bytes, device, ptr);
}

int wreath_mem_device(const void *ptr, int *device)
{
	struct mem_where where;
	int err;

	if (!device)
		return base_error(WREATH_EINVAL,
				  "wreath_mem_device: device is NULL");
	if (!ptr) {
		*device = mem_cuda_device();
		return 0;
	}
	err = mem_where(ptr, &where);
	if (!err)
		*device = where.kind == MEM_DEVICE ||
					  where.kind == MEM_MANAGED
				  ? where.gpu : -1;
	return err;
}

int wreath_mem_free(void *ptr)
{
	return mem_free(ptr);
}

int wreath_mem_register(void *ptr, size_t bytes)
{
	return mem_register(ptr, bytes);
}

int wreath_mem_deregister(void *ptr)
{
	return mem_deregister(ptr);
}
