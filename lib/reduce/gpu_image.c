/* SPDX-License-Identifier: MIT */
/*
 * The kernels for GPUs as nvcc made them, within the library: the Makefile
 * gives the file's name as REDUCE_GPU_FATBIN where there is one.
 */
#include "gpu.h"

#ifdef REDUCE_GPU_FATBIN

/* Words of 8 bytes are what the driver wants to find it aligned to. */
__asm__(".pushsection .rodata.reduce_gpu, \"a\"\n"
	".balign 64\n"
	".hidden reduce_gpu_fatbin\n"
	".globl reduce_gpu_fatbin\n"
	"reduce_gpu_fatbin:\n"
	".incbin \"" REDUCE_GPU_FATBIN "\"\n"
	".hidden reduce_gpu_fatbin_end\n"
	".globl reduce_gpu_fatbin_end\n"
	"reduce_gpu_fatbin_end:\n"
	".popsection\n");

extern const char reduce_gpu_fatbin[], reduce_gpu_fatbin_end[];

const void *reduce_gpu_image(size_t *bytes)
{
	*bytes = (size_t)(reduce_gpu_fatbin_end - reduce_gpu_fatbin);
	return reduce_gpu_fatbin;
}

#else

const void *reduce_gpu_image(size_t *bytes)
{
	*bytes = 0;
	return NULL;
}

#endif
