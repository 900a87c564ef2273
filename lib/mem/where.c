/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "mem/mem.h"

int mem_gpu_region(const void *ptr, size_t bytes, struct mem_region *out)
{
	return mem_find(ptr, bytes, out) && out->gpu >= 0;
}
