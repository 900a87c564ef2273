/* SPDX-License-Identifier: MIT */
/*
 * A GPU as the workbench uses it beside the library: as a program does that
 * has buffers there, and a stream.  CUDA's driver is found by dlopen; where
 * there is none the library says so, in its words.
 *
 * Errors are the library's, and told by wreath_error_text().
 */
#ifndef BENCH_CUDA_H
#define BENCH_CUDA_H

#include "base/base.h"

struct bench_gpu {
	int number;    /* CUDA's */
	void *ctx;    /* the device's primary context */
	void *stream; /* a CUstream that waits for no other */
};

/*
 * Whether there are GPUs here, found out in a process of its own: a process
 * that has started CUDA cannot fork others that use it.  0, or an error, and
 * the reason is told.
 */
int bench_gpu_probe(int *n_gpus);

/* Its context becomes the calling thread's. */
int bench_gpu_open(int number, struct bench_gpu *out);
/* What was put on its stream must be done. */
void bench_gpu_close(struct bench_gpu *gpu);

/* As programs allocate: by cuMemAlloc(), or cuMemAllocManaged(). */
int bench_gpu_new(size_t bytes, bool is_managed, void **out);
void bench_gpu_free(void *ptr);

/* Between any two places; returns when it is done. */
int bench_gpu_copy(struct bench_gpu *gpu, void *dst, const void *src,
		   size_t bytes);
/* Only put on the stream. */
int bench_gpu_put_copy(struct bench_gpu *gpu, void *dst, const void *src,
		       size_t bytes);
int bench_gpu_put_fill(struct bench_gpu *gpu, void *dst, unsigned char byte,
		       size_t bytes);
/* The stream goes no further until *@word is @value, or more. */
int bench_gpu_put_wait(struct bench_gpu *gpu, const uint32_t *word,
		       uint32_t value);
/* Wait until the stream has done all. */
int bench_gpu_wait(struct bench_gpu *gpu);

#endif
