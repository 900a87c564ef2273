/* SPDX-License-Identifier: MIT */
/* What is known of a pointer. */
#include <string.h>

#include "test/cuda/fake.h"

static bool is_host(const struct fake_range *range)
{
	return range->kind == FAKE_PINNED || range->kind == FAKE_REGISTERED;
}

static bool is_device(const struct fake_range *range)
{
	return range->kind == FAKE_DEVICE || range->kind == FAKE_IMPORTED;
}

/* Numbers of every size, as the attribute has it. */
static size_t bytes_of(int attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return 8;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return 4;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		/* bool in some headers, int in others: both read zeros. */
		return 4;
	default:
		return 0;
	}
}

static uint64_t value_of(const struct fake_range *range, int attribute,
			 cu_ptr ptr)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		return (uintptr_t)range->ctx;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		return is_host(range) ? CU_MEMORYTYPE_HOST
				      : CU_MEMORYTYPE_DEVICE;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		return ptr;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		return is_device(range) ? 0 : ptr;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		return range->sync_memops;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return range->id;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		return range->kind == FAKE_MANAGED;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return (uint32_t)range->device;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		return range->kind == FAKE_DEVICE && !fake_config.noipc;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		return range->base;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		return range->bytes;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		return 1;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		return is_device(range);
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		return range->map ? range->map_bytes : range->bytes;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		return range->map ? (uintptr_t)range->map : range->base;
	default:
		return 0;
	}
}

static void put(void *out, int attribute, uint64_t value)
{
	uint32_t low = (uint32_t)value;

	if (bytes_of(attribute) == 8)
		memcpy(out, &value, sizeof(value));
	else
		memcpy(out, &low, sizeof(low));
}

int cuPointerGetAttribute(void *out, int attribute, cu_ptr ptr)
{
	const struct fake_range *range;
	int err = fake_enter(__func__);

	if (err)
		return err;
	if (!out || !bytes_of(attribute))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&fake_lock);
	range = fake_find(ptr, 1);
	if (!range ||
	    (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER &&
	     is_device(range)))
		err = CUDA_ERROR_INVALID_VALUE;
	else
		put(out, attribute, value_of(range, attribute, ptr));
	pthread_mutex_unlock(&fake_lock);
	return err;
}

/* Of a pointer that is not known everything is zero, and that is no error. */
int cuPointerGetAttributes(unsigned int n, int *attributes, void **out,
			   cu_ptr ptr)
{
	const struct fake_range *range;
	int err = fake_enter(__func__);
	unsigned int i;

	if (err)
		return err;
	if (!n || !attributes || !out)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < n; i++)
		if (!out[i] || !bytes_of(attributes[i]))
			return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&fake_lock);
	range = fake_find(ptr, 1);
	for (i = 0; i < n; i++) {
		uint64_t value = 0;

		if (range)
			value = value_of(range, attributes[i], ptr);
		else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			value = (uint32_t)CU_DEVICE_INVALID;
		put(out[i], attributes[i], value);
	}
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int cuPointerSetAttribute(const void *value, int attribute, cu_ptr ptr)
{
	struct fake_range *range;
	int err = fake_enter(__func__);
	unsigned int on;

	if (err)
		return err;
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&on, value, sizeof(on));
	pthread_mutex_lock(&fake_lock);
	range = fake_find(ptr, 1);
	if (!range || is_host(range))
		err = CUDA_ERROR_INVALID_VALUE;
	else
		range->sync_memops = on != 0;
	pthread_mutex_unlock(&fake_lock);
	return err;
}
