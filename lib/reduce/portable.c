/* SPDX-License-Identifier: MIT */
/*
 * The scalar kernels: the reference for the others, and what runs on a
 * processor that has none of its own.
 */
#include "number.h"
#include "table.h"

/*
 * Elements folded at a time: the accumulators (2 KB at most) and the same
 * stretch of a few sources stay in the first-level cache.
 */
#define PORTABLE_BLOCK ((size_t)256)

static inline bool is_mine(const struct reduce_args *args)
{
	return !reduce_is_copy(args) && reduce_fp_is_default();
}

#include "scalar.inc"

const struct reduce_table reduce_portable = {{
	[WREATH_INT8] = REDUCE_ROW(i8),
	[WREATH_UINT8] = REDUCE_ROW(u8),
	[WREATH_INT16] = REDUCE_ROW(i16),
	[WREATH_UINT16] = REDUCE_ROW(u16),
	[WREATH_INT32] = REDUCE_ROW(i32),
	[WREATH_UINT32] = REDUCE_ROW(u32),
	[WREATH_INT64] = REDUCE_ROW(i64),
	[WREATH_UINT64] = REDUCE_ROW(u64),
	[WREATH_FLOAT16] = REDUCE_ROW(f16),
	[WREATH_BFLOAT16] = REDUCE_ROW(bf16),
	[WREATH_FLOAT32] = REDUCE_ROW(f32),
	[WREATH_FLOAT64] = REDUCE_ROW(f64),
	[WREATH_FLOAT8E4M3] = REDUCE_ROW(e4m3),
	[WREATH_FLOAT8E5M2] = REDUCE_ROW(e5m2),
}};
