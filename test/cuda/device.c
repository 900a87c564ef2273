/* SPDX-License-Identifier: MIT */
/* Devices: all alike, but for their numbers. */
#include <stdio.h>
#include <string.h>

#include "test/cuda/fake.h"

static int enter_device(const char *name, int device, const void *out)
{
	int err = fake_enter(name);

	if (err)
		return err;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= fake_config.n_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	return 0;
}

int cuDeviceGetCount(int *out)
{
	int err = enter_device(__func__, 0, out);

	if (!err)
		*out = fake_config.n_devices;
	return err;
}

int cuDeviceGet(int *out, int device)
{
	int err = enter_device(__func__, device, out);

	if (!err)
		*out = device;
	return err;
}

int cuDeviceGetName(char *out, int bytes, int device)
{
	int err = enter_device(__func__, device, out);

	if (err)
		return err;
	if (bytes <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(out, (size_t)bytes, "Simulated %s",
		 fake_config.hopper ? "H100" : "A100");
	return 0;
}

static void make_uuid(struct cu_uuid *out, int device)
{
	/* The same in all processes of the host. */
	memset(out, 0x5f, sizeof(*out));
	out->bytes[15] = (unsigned char)device;
}

int cuDeviceGetUuid(struct cu_uuid *out, int device)
{
	int err = enter_device(__func__, device, out);

	if (!err)
		make_uuid(out, device);
	return err;
}

int cuDeviceGetUuid_v2(struct cu_uuid *out, int device)
{
	int err = enter_device(__func__, device, out);

	if (!err)
		make_uuid(out, device);
	return err;
}

int cuDeviceGetPCIBusId(char *out, int bytes, int device)
{
	int err = enter_device(__func__, device, out);

	if (err)
		return err;
	if (bytes < 13)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(out, (size_t)bytes, "0000:%02X:00.0", 0x1b + device);
	return 0;
}

int cuDeviceTotalMem_v2(size_t *out, int device)
{
	int err = enter_device(__func__, device, out);

	if (!err)
		*out = fake_config.memory;
	return err;
}

int cuDeviceCanAccessPeer(int *out, int device, int peer)
{
	int err = enter_device(__func__, device, out);

	if (err)
		return err;
	if (peer < 0 || peer >= fake_config.n_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	*out = device != peer && !fake_config.nopeer;
	return 0;
}

static int attribute_of(int attribute, int device)
{
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		return 1024;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
		return 32;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		return fake_config.hopper ? 132 : 108;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
		return 2048;
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
		return 3;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		return 0x1b + device;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		return fake_config.hopper ? 9 : 8;
	case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
		return !fake_config.nomemops;
	case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
		return !fake_config.nodmabuf;
	case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
		return !fake_config.noipc;
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING:
		return fake_config.hopper
			       ? CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER
			       : 0;
	case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
	case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS:
		return 1;
	default:
		return 0;
	}
}

int cuDeviceGetAttribute(int *out, int attribute, int device)
{
	int err = enter_device(__func__, device, out);

	if (err)
		return err;
	if (attribute < 1 || attribute > 148)
		return CUDA_ERROR_INVALID_VALUE;
	*out = attribute_of(attribute, device);
	return 0;
}
