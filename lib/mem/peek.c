/* SPDX-License-Identifier: MIT */
#include "mem/mem.h"

/* For a copy of some bytes; a GPU that is busy for longer is stuck. */
#define PEEK_TIMEOUT_MS 10000

int mem_gpu_peek(const void *from, size_t bytes, void *to)
{
	const void *src[1] = {from};
	void *dst[1] = {to};
	struct mem_job job = {
		.fold = {.dst = dst, .n_dst = 1, .src = src, .n_src = 1,
			 .count = bytes},
		.type = WREATH_UINT8,
		.op = WREATH_SUM,
		.gpu_src = 1,
	};
	struct mem_where where;
	struct mem_gpu *gpu;
	uint64_t number;
	int err = mem_where(from, &where);

	if (err)
		return err;
	/* A stream of its own: that of a communicator has its own user. */
	err = mem_gpu_open(where.gpu, bytes, &gpu);
	if (err)
		return err;
	err = mem_gpu_fold(gpu, &job, &number);
	if (!err)
		err = mem_gpu_drain(gpu, PEEK_TIMEOUT_MS);
	mem_gpu_close(gpu);
	return err;
}
