/* SPDX-License-Identifier: MIT */
/* A kernel that was launched. */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include "base/base.h"
#include "reduce/gpu.h"
#include "reduce/reduce.h"
#include "test/cuda/fake.h"

struct fake_kernel {
	enum wreath_type type;
	enum wreath_op op;
	unsigned int grid, block;
	struct reduce_gpu_batch batch;
};

/* START, then TYPE_OP. */
void fake_join(char *out, size_t bytes, const char *start, const char *type,
	       const char *op);

#endif
