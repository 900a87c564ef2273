/* SPDX-License-Identifier: MIT */
/*
 * reduce: combine vectors of every type by every operation.
 *
 * It must never know where the vectors come from or go to.  Any thread may
 * call; nothing is allocated, nothing is kept, nothing blocks.
 *
 * Rules, the same bits from every kernel:
 * - Sources are folded from the first to the last.
 * - float16, bfloat16 and the 8-bit floats are converted to float32, folded
 *   in float32 over all sources of the call, and rounded once, to nearest
 *   even.  E4M3 has no infinity: what overflows becomes NaN.
 * - A NaN result is always the canonical quiet NaN of the type (sign clear),
 *   for SUM, PROD, AVG, MIN and MAX; MIN and MAX of a NaN and a number is NaN.
 * - MIN(-0, +0) is -0 and MAX(-0, +0) is +0, whatever the order.
 * - Integers wrap modulo 2^n.  AVG divides the wrapped sum, truncating toward
 *   zero.
 * - On x86 the caller's rounding mode, and whether it flushes denormals, change
 *   nothing.
 */
#ifndef REDUCE_H
#define REDUCE_H

#include "base/base.h"

/* Sources and destinations of one call at most. */
#define REDUCE_MAX 64

enum reduce_flags {
	/*
	 * Write around the cache (non-temporal stores), for outputs that are
	 * larger than it; a store fence is included.
	 */
	REDUCE_STREAM = 1,
};

struct reduce_args {
	/*
	 * [n_dst] outputs, each of @count elements: all get the same bits.  An
	 * output may be equal to any source (in place), or apart from it, but
	 * must not overlap it otherwise.  Any alignment.
	 */
	void *const *dst;
	int n_dst; /* 1..REDUCE_MAX */
	/*
	 * [n_src] inputs; n_src == 1 copies, the bits of a NaN as well, and
	 * still applies @divisor.
	 */
	const void *const *src;
	int n_src; /* 1..REDUCE_MAX */
	size_t count;
	unsigned int divisor; /* 0 or 1: none; else WREATH_AVG's last step */
	unsigned int flags;   /* enum reduce_flags */
};

typedef void reduce_fn(const struct reduce_args *args);

/*
 * The best kernel for this processor, or the scalar reference where
 * @reference.  NULL only for a type or op that does not exist (WREATH_AVG is
 * WREATH_SUM with a divisor).
 */
reduce_fn *reduce_get(enum wreath_type type, enum wreath_op op,
		      bool reference);

/* "avx512", "avx2" or "portable": what reduce_get() chooses from. */
const char *reduce_isa(void);

#endif
