/* SPDX-License-Identifier: MIT */
/* Functions by their names, and errors by their numbers. */
#include <stdio.h>
#include <string.h>

#include "test/cuda/fake.h"

#define F(name) {#name, (void (*)(void))name}

static const struct {
	const char *name;
	void (*fn)(void);
} functions[] = {
	F(cuInit), F(cuDriverGetVersion), F(cuGetErrorName),
	F(cuGetErrorString), F(cuGetProcAddress), F(cuGetProcAddress_v2),
	F(cuDeviceGetCount), F(cuDeviceGet), F(cuDeviceGetName),
	F(cuDeviceGetUuid), F(cuDeviceGetUuid_v2), F(cuDeviceGetAttribute),
	F(cuDeviceGetPCIBusId), F(cuDeviceTotalMem_v2),
	F(cuDeviceCanAccessPeer), F(cuDevicePrimaryCtxRetain),
	F(cuDevicePrimaryCtxRelease_v2), F(cuDevicePrimaryCtxGetState),
	F(cuCtxCreate_v2), F(cuCtxDestroy_v2), F(cuCtxGetCurrent),
	F(cuCtxSetCurrent), F(cuCtxPushCurrent_v2), F(cuCtxPopCurrent_v2),
	F(cuCtxGetDevice), F(cuCtxSynchronize),
	F(cuCtxGetStreamPriorityRange), F(cuCtxEnablePeerAccess),
	F(cuCtxDisablePeerAccess), F(cuMemAlloc_v2), F(cuMemFree_v2),
	F(cuMemGetAddressRange_v2), F(cuMemGetInfo_v2), F(cuMemAllocManaged),
	F(cuMemHostAlloc), F(cuMemFreeHost), F(cuMemHostRegister_v2),
	F(cuMemHostUnregister), F(cuMemHostGetDevicePointer_v2),
	F(cuPointerGetAttribute), F(cuPointerGetAttributes),
	F(cuPointerSetAttribute), F(cuMemcpy), F(cuMemcpyHtoD_v2),
	F(cuMemcpyDtoH_v2), F(cuMemcpyDtoD_v2), F(cuMemcpyAsync),
	F(cuMemcpyHtoDAsync_v2), F(cuMemcpyDtoHAsync_v2),
	F(cuMemcpyDtoDAsync_v2), F(cuMemsetD8_v2), F(cuMemsetD8Async),
	F(cuStreamCreate), F(cuStreamCreateWithPriority),
	F(cuStreamDestroy_v2), F(cuStreamQuery), F(cuStreamSynchronize),
	F(cuStreamGetCtx), F(cuStreamGetFlags), F(cuStreamGetPriority),
	F(cuStreamIsCapturing), F(cuStreamBeginCapture_v2),
	F(cuStreamEndCapture), F(cuThreadExchangeStreamCaptureMode),
	F(cuGraphDestroy), F(cuStreamWaitEvent), F(cuStreamWriteValue32),
	F(cuStreamWriteValue32_v2), F(cuStreamWaitValue32),
	F(cuStreamWaitValue32_v2), F(cuLaunchHostFunc), F(cuEventCreate),
	F(cuEventDestroy_v2), F(cuEventRecord), F(cuEventQuery),
	F(cuEventSynchronize), F(cuEventElapsedTime),
	F(cuEventElapsedTime_v2), F(cuModuleLoadData), F(cuModuleUnload),
	F(cuModuleGetFunction), F(cuLaunchKernel), F(cuFuncSetAttribute),
	F(cuFuncGetAttribute), F(cuOccupancyMaxActiveBlocksPerMultiprocessor),
	F(cuIpcGetMemHandle), F(cuIpcOpenMemHandle), F(cuIpcOpenMemHandle_v2),
	F(cuIpcCloseMemHandle), F(cuMemGetHandleForAddressRange),
	F(cuFlushGPUDirectRDMAWrites),
};

#define E(name, text) {CUDA_##name, "CUDA_" #name, text}

static const struct {
	int error;
	const char *name, *text;
} errors[] = {
	E(SUCCESS, "no error"),
	E(ERROR_INVALID_VALUE, "invalid argument"),
	E(ERROR_OUT_OF_MEMORY, "out of memory"),
	E(ERROR_NOT_INITIALIZED, "initialization error"),
	E(ERROR_DEINITIALIZED, "driver shutting down"),
	E(ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
	E(ERROR_INVALID_DEVICE, "invalid device ordinal"),
	E(ERROR_INVALID_IMAGE, "device kernel image is invalid"),
	E(ERROR_INVALID_CONTEXT, "invalid device context"),
	E(ERROR_MAP_FAILED, "mapping of buffer object failed"),
	E(ERROR_NO_BINARY_FOR_GPU, "no kernel image for the device"),
	E(ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported"),
	E(ERROR_OPERATING_SYSTEM, "OS call failed or is not supported"),
	E(ERROR_INVALID_HANDLE, "invalid resource handle"),
	E(ERROR_NOT_FOUND, "named symbol not found"),
	E(ERROR_NOT_READY, "device not ready"),
	E(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
	E(ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested"),
	E(ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access already enabled"),
	E(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
	E(ERROR_HOST_MEMORY_ALREADY_REGISTERED, "already registered"),
	E(ERROR_HOST_MEMORY_NOT_REGISTERED, "not a registered host pointer"),
	E(ERROR_LAUNCH_FAILED, "unspecified launch failure"),
	E(ERROR_NOT_PERMITTED, "operation not permitted"),
	E(ERROR_NOT_SUPPORTED, "operation not supported"),
	E(ERROR_STREAM_CAPTURE_UNSUPPORTED, "not permitted when capturing"),
	E(ERROR_STREAM_CAPTURE_INVALIDATED, "capture was invalidated"),
	E(ERROR_STREAM_CAPTURE_UNMATCHED, "the capture was not begun here"),
	E(ERROR_STREAM_CAPTURE_IMPLICIT, "dependency on a captured stream"),
	E(ERROR_CAPTURED_EVENT, "the event belongs to a capture"),
	E(ERROR_UNKNOWN, "unknown error"),
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

void *fake_function(const char *name)
{
	void *out = NULL;
	size_t i;

	for (i = 0; i < COUNT(functions); i++)
		if (!strcmp(functions[i].name, name))
			memcpy(&out, &functions[i].fn, sizeof(out));
	return out;
}

int cuGetErrorName(int error, const char **out)
{
	size_t i;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	for (i = 0; i < COUNT(errors); i++)
		if (errors[i].error == error)
			*out = errors[i].name;
	return *out ? 0 : CUDA_ERROR_INVALID_VALUE;
}

int cuGetErrorString(int error, const char **out)
{
	size_t i;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	for (i = 0; i < COUNT(errors); i++)
		if (errors[i].error == error)
			*out = errors[i].text;
	return *out ? 0 : CUDA_ERROR_INVALID_VALUE;
}

/* Names come without a version: the newest that we have is meant. */
static void *newest(const char *name)
{
	char full[96];
	void *fn;

	snprintf(full, sizeof(full), "%s_v2", name);
	fn = fake_function(full);
	return fn ? fn : fake_function(name);
}

int cuGetProcAddress_v2(const char *name, void **out, int version,
			uint64_t flags, int *status)
{
	int err = fake_enter_early(__func__);

	(void)flags;
	if (err)
		return err;
	if (!name || !out || version < 0)
		return CUDA_ERROR_INVALID_VALUE;
	*out = newest(name);
	if (status)
		*status = *out ? CU_GET_PROC_ADDRESS_SUCCESS
			       : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return *out ? 0 : CUDA_ERROR_NOT_FOUND;
}

int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(name, out, version, flags, NULL);
}
