/* SPDX-License-Identifier: MIT */
/*
 * The part of the CUDA driver's binary interface that is called, declared from
 * its facts so that no header of CUDA is needed, and what the files of this
 * room share.  t_mem_gpu_abi.c compares the numbers with cuda.h where that is
 * installed.
 */
#ifndef MEM_CUDA_H
#define MEM_CUDA_H

#include <stdatomic.h>

#include "mem/gpu.h"

struct CUctx_st;
struct CUstream_st;
struct CUmod_st;
struct CUfunc_st;

struct cuda_uuid {
	unsigned char bytes[16];
};
/* Passed by value. */
struct cuda_ipc {
	unsigned char bytes[64];
};

enum cuda_result {
	CUDA_OK = 0,
	CUDA_INVALID_VALUE = 1,
	CUDA_OUT_OF_MEMORY = 2,
	CUDA_NOT_INITIALIZED = 3,
	CUDA_DEINITIALIZED = 4,
	CUDA_STUB_LIBRARY = 34,
	CUDA_DEVICE_UNAVAILABLE = 46,
	CUDA_NO_DEVICE = 100,
	CUDA_INVALID_DEVICE = 101,
	CUDA_INVALID_IMAGE = 200,
	CUDA_INVALID_CONTEXT = 201,
	CUDA_NO_BINARY_FOR_GPU = 209,
	CUDA_PEER_ACCESS_UNSUPPORTED = 217,
	CUDA_INVALID_PTX = 218,
	CUDA_UNSUPPORTED_PTX_VERSION = 222,
	CUDA_OPERATING_SYSTEM = 304,
	CUDA_INVALID_HANDLE = 400,
	CUDA_NOT_FOUND = 500,
	CUDA_NOT_READY = 600,
	CUDA_PEER_ACCESS_ALREADY_ENABLED = 704,
	CUDA_CONTEXT_IS_DESTROYED = 709,
	CUDA_HOST_MEMORY_ALREADY_REGISTERED = 712,
	CUDA_NOT_PERMITTED = 800,
	CUDA_NOT_SUPPORTED = 801,
	CUDA_SYSTEM_NOT_READY = 802,
	CUDA_SYSTEM_DRIVER_MISMATCH = 803,
	CUDA_COMPAT_NOT_SUPPORTED = 804,
	CUDA_STREAM_CAPTURE_UNSUPPORTED = 900,
	CUDA_STREAM_CAPTURE_IMPLICIT = 906,
};

enum cuda_device_attribute {
	CUDA_DEVICE_MULTIPROCESSORS = 16,
	CUDA_DEVICE_UNIFIED_ADDRESSING = 41,
	CUDA_DEVICE_CAPABILITY_MAJOR = 75,
	CUDA_DEVICE_CAPABILITY_MINOR = 76,
	CUDA_DEVICE_USES_HOST_POINTERS = 91,
	CUDA_DEVICE_RDMA_ORDERING = 118,
	CUDA_DEVICE_DMA_BUF = 124,
};

enum cuda_pointer_attribute {
	CUDA_POINTER_MEMORY_TYPE = 2,
	CUDA_POINTER_SYNC_MEMOPS = 6,
	CUDA_POINTER_BUFFER_ID = 7,
	CUDA_POINTER_IS_MANAGED = 8,
	CUDA_POINTER_DEVICE = 9,
	CUDA_POINTER_RANGE_START = 11,
	CUDA_POINTER_RANGE_SIZE = 12,
};

enum cuda_number {
	CUDA_MEMORY_HOST = 1,
	CUDA_MEMORY_DEVICE = 2,
	CUDA_HOST_PORTABLE = 1,
	CUDA_HOST_MAPPED = 2,
	CUDA_STREAM_NON_BLOCKING = 1,
	CUDA_CAPTURE_NONE = 0,
	CUDA_CAPTURE_RELAXED = 2,
	CUDA_IPC_LAZY_PEERS = 1,
	CUDA_HANDLE_DMA_BUF = 1,
	/* The owner's kernels see what devices wrote, in order. */
	CUDA_ORDERING_OWNER = 100,
};

#define CUDA_ST struct CUstream_st *stream

/* CUDA's own names are those of the rows in cuda_load.c. */
struct cuda_api {
	int (*init)(unsigned int flags);
	int (*driver_version)(int *version);
	int (*error_name)(int result, const char **out);
	int (*error_string)(int result, const char **out);

	int (*device_count)(int *out);
	int (*device_get)(int *out, int gpu);
	int (*device_name)(char *out, int bytes, int device);
	int (*device_uuid)(struct cuda_uuid *out, int device);
	int (*device_bytes)(size_t *out, int device);
	int (*device_attribute)(int *out, int attribute, int device);
	int (*device_pci)(char *out, int bytes, int device);
	int (*device_reaches)(int *out, int device, int peer);

	int (*ctx_retain)(struct CUctx_st **out, int device);
	int (*ctx_release)(int device);
	int (*ctx_state)(int device, unsigned int *flags, int *is_active);
	int (*ctx_push)(struct CUctx_st *ctx);
	int (*ctx_pop)(struct CUctx_st **out);
	int (*ctx_current)(struct CUctx_st **out);
	int (*ctx_device)(int *out);
	int (*ctx_priorities)(int *least, int *greatest);
	int (*ctx_enable_peer)(struct CUctx_st *peer, unsigned int flags);
	int (*capture_mode)(int *mode);

	int (*stream_new)(struct CUstream_st **out, unsigned int flags,
			  int priority);
	int (*stream_free)(CUDA_ST);
	int (*stream_query)(CUDA_ST);
	int (*stream_ctx)(CUDA_ST, struct CUctx_st **out);
	int (*stream_capturing)(CUDA_ST, int *out);
	int (*stream_write)(CUDA_ST, uint64_t at, uint32_t value,
			    unsigned int flags);
	int (*stream_wait)(CUDA_ST, uint64_t at, uint32_t value,
			   unsigned int flags);

	int (*mem_new)(uint64_t *out, size_t bytes);
	int (*mem_free)(uint64_t ptr);
	int (*mem_host_new)(void **out, size_t bytes, unsigned int flags);
	int (*mem_host_free)(void *ptr);
	int (*mem_host_register)(void *ptr, size_t bytes, unsigned int flags);
	int (*mem_host_unregister)(void *ptr);
	int (*mem_copy)(uint64_t dst, uint64_t src, size_t bytes, CUDA_ST);
	int (*mem_dmabuf)(void *out, uint64_t ptr, size_t bytes, int type,
			  unsigned long long flags);
	int (*pointer_get)(unsigned int n, int *attributes, void **out,
			   uint64_t ptr);
	int (*pointer_set)(const void *value, int attribute, uint64_t ptr);

	int (*ipc_export)(struct cuda_ipc *out, uint64_t ptr);
	int (*ipc_open)(uint64_t *out, struct cuda_ipc handle,
			unsigned int flags);
	int (*ipc_close)(uint64_t ptr);

	int (*module_load)(struct CUmod_st **out, const void *image);
	int (*module_unload)(struct CUmod_st *module);
	int (*module_function)(struct CUfunc_st **out, struct CUmod_st *module,
			       const char *name);
	int (*function_load)(struct CUfunc_st *function);
	int (*launch)(struct CUfunc_st *function, unsigned int grid_x,
		      unsigned int grid_y, unsigned int grid_z,
		      unsigned int block_x, unsigned int block_y,
		      unsigned int block_z, unsigned int shared_bytes, CUDA_ST,
		      void **arguments, void **extra);
};

#undef CUDA_ST

/* ---- cuda_load.c ---- */

/* Valid after mem_cuda_is_here() or mem_cuda_load(). */
extern struct cuda_api cuda;

/* 0, or why it cannot be used although it is here, reported. */
int cuda_usable(void);
/* WREATH_GPU=off, or WREATH_GPU_IPC=off, when the driver was found. */
bool cuda_is_off(void);
bool cuda_ipc_is_off(void);

/* ---- cuda_error.c ---- */

/*
 * Convert a failure of the driver and report it: "@operation, what, CUDA_ERROR_
 * NAME (its text); what to do".
 */
int cuda_error(int result, const char *operation, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), cold));
const char *cuda_name(int result);
/* "CUDA_ERROR_X (number: text)". */
void cuda_describe(int result, char out[128]);

/* ---- devices.c ---- */

#define CUDA_GPUS_MAX 64

/* A GPU as this process uses it, from first use to the process's end: others
 * in the process hold its primary context as well, and a module takes
 * milliseconds to load. */
struct cuda_gpu {
	int number, device;
	struct CUctx_st *ctx;
	/* Always empty: asking for it tells whether the context is broken. */
	struct CUstream_st *probe;
	int n_multiprocessors, priority, is_unified;
	bool uses_host_pointers; /* of memory that is registered, too */
	_Atomic bool is_retained;
	struct mem_gpu_info info;
	/* Of kernels.c. */
	bool has_module;
	struct CUmod_st *module;
	struct CUfunc_st *fold[WREATH_N_TYPES][WREATH_AVG];
};

/* WREATH_EINVAL for a number that does not exist; starts the driver. */
int cuda_gpu_get(int number, struct cuda_gpu **out);
/* One whose context is held already, or NULL. */
struct cuda_gpu *cuda_gpu_any(void);
/* The GPU of CUDA's uuid, or -1. */
int cuda_gpu_find(const unsigned char uuid[16]);

/* Make its context the calling thread's, and take that back. */
int cuda_enter(const struct cuda_gpu *gpu);
void cuda_leave(void);
/*
 * The same around calls that may not be made while some other thread captures
 * a graph, unless the calling thread says that it has no part in it.
 */
struct cuda_visit {
	int capture_mode;
	bool is_relaxed;
};
int cuda_visit(const struct cuda_gpu *gpu, struct cuda_visit *visit);
void cuda_visit_end(struct cuda_visit *visit);
/* CUDA_OK, or what broke the context. */
int cuda_gpu_health(const struct cuda_gpu *gpu);

/* ---- kernels.c ---- */

/*
 * Load the kernels; milliseconds, once.  *@out is what is known of the GPU and
 * says whether they are used, or why not.  WREATH_EINVAL, WREATH_EUNSUP where
 * the user asked for what cannot be had.
 */
int cuda_kernels_load(struct cuda_gpu *gpu, struct mem_gpu_info *out);

/* ---- pin.c ---- */

/*
 * Two words of pinned memory, each in a line of its own, for what a stream
 * writes and reads.  They go back only when no stream can use them any more,
 * and keep the number they were left with.
 */
struct cuda_words {
	_Atomic uint32_t *from_gpu, *to_gpu;
	int i_page, i_slot;
};
int cuda_words_get(const struct cuda_gpu *gpu, struct cuda_words *out);
void cuda_words_put(struct cuda_words *words);

/* ---- memory.c ---- */

/* Memory of a GPU that is best for registration; cuda_free() waits until the
 * GPU is idle, and any error is the device's. */
int cuda_alloc(int number, size_t bytes, void **out);
int cuda_free(int number, void *ptr);

/* ---- where.c ---- */

/* What CUDA knows of a pointer.  CUDA_OK, and MEM_HOST for what it does not
 * know. */
int cuda_where(const void *ptr, struct mem_where *out);

/* ---- stream.c ---- */

/*
 * Calls that wait for a GPU to be idle must not be made while one of its
 * streams waits for us.  True: none does, and none will until the gate is
 * opened; false: it is not shut.
 */
bool cuda_gate_shut(void);
void cuda_gate_open(void);

#endif
