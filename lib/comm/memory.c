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
