/* SPDX-License-Identifier: MIT */
/* Handles and functions.  Part of abi.h. */
#ifndef CUDA_API_H
#define CUDA_API_H

#include <stddef.h>
#include <stdint.h>

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;
struct CUgraph_st;
typedef uint64_t cu_ptr;
struct cu_uuid {
	unsigned char bytes[16];
};
struct cu_ipc {
	unsigned char bytes[64];
};

#define CU_STREAM_LEGACY ((struct CUstream_st *)1)
#define CU_STREAM_PER_THREAD ((struct CUstream_st *)2)

#define ST struct CUstream_st *

int cuInit(unsigned int flags);
int cuDriverGetVersion(int *version);
int cuGetErrorName(int error, const char **out);
int cuGetErrorString(int error, const char **out);
int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **out, int version,
			uint64_t flags, int *status);

int cuDeviceGetCount(int *out);
int cuDeviceGet(int *out, int device);
int cuDeviceGetName(char *out, int bytes, int device);
int cuDeviceGetUuid(struct cu_uuid *out, int device);
int cuDeviceGetUuid_v2(struct cu_uuid *out, int device);
int cuDeviceGetAttribute(int *out, int attribute, int device);
int cuDeviceGetPCIBusId(char *out, int bytes, int device);
int cuDeviceTotalMem_v2(size_t *out, int device);
int cuDeviceCanAccessPeer(int *out, int device, int peer);

int cuDevicePrimaryCtxRetain(struct CUctx_st **out, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxGetState(int device, unsigned int *flags, int *active);
int cuCtxCreate_v2(struct CUctx_st **out, unsigned int flags, int device);
int cuCtxDestroy_v2(struct CUctx_st *ctx);
int cuCtxGetCurrent(struct CUctx_st **out);
int cuCtxSetCurrent(struct CUctx_st *ctx);
int cuCtxPushCurrent_v2(struct CUctx_st *ctx);
int cuCtxPopCurrent_v2(struct CUctx_st **out);
int cuCtxGetDevice(int *out);
int cuCtxSynchronize(void);
int cuCtxGetStreamPriorityRange(int *least, int *greatest);
int cuCtxEnablePeerAccess(struct CUctx_st *peer, unsigned int flags);
int cuCtxDisablePeerAccess(struct CUctx_st *peer);

int cuMemAlloc_v2(cu_ptr *out, size_t bytes);
int cuMemFree_v2(cu_ptr ptr);
int cuMemGetAddressRange_v2(cu_ptr *base, size_t *bytes, cu_ptr ptr);
int cuMemGetInfo_v2(size_t *out_free, size_t *out_total);
int cuMemAllocManaged(cu_ptr *out, size_t bytes, unsigned int flags);
int cuMemHostAlloc(void **out, size_t bytes, unsigned int flags);
int cuMemFreeHost(void *ptr);
int cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags);
int cuMemHostUnregister(void *ptr);
int cuMemHostGetDevicePointer_v2(cu_ptr *out, void *ptr, unsigned int flags);
int cuPointerGetAttribute(void *out, int attribute, cu_ptr ptr);
int cuPointerGetAttributes(unsigned int n, int *attributes, void **out,
			   cu_ptr ptr);
int cuPointerSetAttribute(const void *value, int attribute, cu_ptr ptr);

int cuMemcpy(cu_ptr dst, cu_ptr src, size_t bytes);
int cuMemcpyHtoD_v2(cu_ptr dst, const void *src, size_t bytes);
int cuMemcpyDtoH_v2(void *dst, cu_ptr src, size_t bytes);
int cuMemcpyDtoD_v2(cu_ptr dst, cu_ptr src, size_t bytes);
int cuMemcpyAsync(cu_ptr dst, cu_ptr src, size_t bytes, ST stream);
int cuMemcpyHtoDAsync_v2(cu_ptr dst, const void *src, size_t bytes, ST stream);
int cuMemcpyDtoHAsync_v2(void *dst, cu_ptr src, size_t bytes, ST stream);
int cuMemcpyDtoDAsync_v2(cu_ptr dst, cu_ptr src, size_t bytes, ST stream);
int cuMemsetD8_v2(cu_ptr dst, unsigned char value, size_t n);
int cuMemsetD8Async(cu_ptr dst, unsigned char value, size_t n, ST stream);

int cuStreamCreate(ST *out, unsigned int flags);
int cuStreamCreateWithPriority(ST *out, unsigned int flags, int priority);
int cuStreamDestroy_v2(ST stream);
int cuStreamQuery(ST stream);
int cuStreamSynchronize(ST stream);
int cuStreamGetCtx(ST stream, struct CUctx_st **out);
int cuStreamGetFlags(ST stream, unsigned int *out);
int cuStreamGetPriority(ST stream, int *out);
int cuStreamIsCapturing(ST stream, int *out);
int cuStreamBeginCapture_v2(ST stream, int mode);
int cuStreamEndCapture(ST stream, struct CUgraph_st **out);
int cuThreadExchangeStreamCaptureMode(int *mode);
int cuGraphDestroy(struct CUgraph_st *graph);
int cuStreamWaitEvent(ST stream, struct CUevent_st *event, unsigned int flags);
int cuStreamWriteValue32(ST stream, cu_ptr at, uint32_t value,
			 unsigned int flags);
int cuStreamWriteValue32_v2(ST stream, cu_ptr at, uint32_t value,
			    unsigned int flags);
int cuStreamWaitValue32(ST stream, cu_ptr at, uint32_t value,
			unsigned int flags);
int cuStreamWaitValue32_v2(ST stream, cu_ptr at, uint32_t value,
			   unsigned int flags);
int cuLaunchHostFunc(ST stream, void (*fn)(void *), void *arg);

int cuEventCreate(struct CUevent_st **out, unsigned int flags);
int cuEventDestroy_v2(struct CUevent_st *event);
int cuEventRecord(struct CUevent_st *event, ST stream);
int cuEventQuery(struct CUevent_st *event);
int cuEventSynchronize(struct CUevent_st *event);
int cuEventElapsedTime(float *out_ms, struct CUevent_st *start,
		       struct CUevent_st *end);
int cuEventElapsedTime_v2(float *out_ms, struct CUevent_st *start,
			  struct CUevent_st *end);

int cuModuleLoadData(struct CUmod_st **out, const void *image);
int cuModuleUnload(struct CUmod_st *module);
int cuModuleGetFunction(struct CUfunc_st **out, struct CUmod_st *module,
			const char *name);
int cuLaunchKernel(struct CUfunc_st *fn, unsigned int grid_x,
		   unsigned int grid_y, unsigned int grid_z,
		   unsigned int block_x, unsigned int block_y,
		   unsigned int block_z, unsigned int shared_bytes, ST stream,
		   void **params, void **extra);
int cuFuncSetAttribute(struct CUfunc_st *fn, int attribute, int value);
int cuFuncGetAttribute(int *out, int attribute, struct CUfunc_st *fn);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, struct CUfunc_st *fn,
						int threads, size_t shared);

int cuIpcGetMemHandle(struct cu_ipc *out, cu_ptr ptr);
int cuIpcOpenMemHandle(cu_ptr *out, struct cu_ipc handle, unsigned int flags);
int cuIpcOpenMemHandle_v2(cu_ptr *out, struct cu_ipc handle,
			  unsigned int flags);
int cuIpcCloseMemHandle(cu_ptr ptr);
int cuMemGetHandleForAddressRange(void *out, cu_ptr ptr, size_t bytes,
				  int type, unsigned long long flags);
int cuFlushGPUDirectRDMAWrites(int target, int scope);

#undef ST

#endif
