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

#define T i8
#define TYPE WREATH_INT8
#define ELEM int8_t
#define ACC int8_t
#define OPEN(x) (x)
#define FOLD(op, a, b) ((int8_t)number_int_fold(op, a, b))
#define DIVIDE(a, n) ((int8_t)((a) / (int64_t)(n)))
#define CLOSE(a) (a)
#include "portable.inc"

#define T u8
#define TYPE WREATH_UINT8
#define ELEM uint8_t
#define ACC uint8_t
#define OPEN(x) (x)
#define FOLD(op, a, b) ((uint8_t)number_uint_fold(op, a, b))
#define DIVIDE(a, n) ((uint8_t)((a) / (uint64_t)(n)))
#define CLOSE(a) (a)
#include "portable.inc"

#define T i16
#define TYPE WREATH_INT16
#define ELEM int16_t
#define ACC int16_t
#define OPEN(x) (x)
#define FOLD(op, a, b) ((int16_t)number_int_fold(op, a, b))
#define DIVIDE(a, n) ((int16_t)((a) / (int64_t)(n)))
#define CLOSE(a) (a)
#include "portable.inc"

#define T u16
#define TYPE WREATH_UINT16
#define ELEM uint16_t
#define ACC uint16_t
#define OPEN(x) (x)
#define FOLD(op, a, b) ((uint16_t)number_uint_fold(op, a, b))
#define DIVIDE(a, n) ((uint16_t)((a) / (uint64_t)(n)))
#define CLOSE(a) (a)
#include "portable.inc"

#define T i32
#define TYPE WREATH_INT32
#define ELEM int32_t
#define ACC int32_t
#define OPEN(x) (x)
#define FOLD(op, a, b) ((int32_t)number_int_fold(op, a, b))
#define DIVIDE(a, n) ((int32_t)((a) / (int64_t)(n)))
#define CLOSE(a) (a)
#include "portable.inc"

#define T u32
#define TYPE WREATH_UINT32
#define ELEM uint32_t
#define ACC uint32_t
#define OPEN(x) (x)
#define FOLD(op, a, b) ((uint32_t)number_uint_fold(op, a, b))
#define DIVIDE(a, n) ((uint32_t)((a) / (uint64_t)(n)))
#define CLOSE(a) (a)
#include "portable.inc"

#define T i64
#define TYPE WREATH_INT64
#define ELEM int64_t
#define ACC int64_t
#define OPEN(x) (x)
#define FOLD(op, a, b) ((int64_t)number_int_fold(op, a, b))
#define DIVIDE(a, n) ((int64_t)((a) / (int64_t)(n)))
#define CLOSE(a) (a)
#include "portable.inc"

#define T u64
#define TYPE WREATH_UINT64
#define ELEM uint64_t
#define ACC uint64_t
#define OPEN(x) (x)
#define FOLD(op, a, b) ((uint64_t)number_uint_fold(op, a, b))
#define DIVIDE(a, n) ((uint64_t)((a) / (uint64_t)(n)))
#define CLOSE(a) (a)
#include "portable.inc"

#define T f16
#define TYPE WREATH_FLOAT16
#define ELEM uint16_t
#define ACC float
#define OPEN(x) number_f16_open(x)
#define FOLD(op, a, b) number_f32_fold(op, a, b)
#define DIVIDE(a, n) ((a) / (float)(n))
#define CLOSE(a) number_f16_close(a)
#include "portable.inc"

#define T bf16
#define TYPE WREATH_BFLOAT16
#define ELEM uint16_t
#define ACC float
#define OPEN(x) number_bf16_open(x)
#define FOLD(op, a, b) number_f32_fold(op, a, b)
#define DIVIDE(a, n) ((a) / (float)(n))
#define CLOSE(a) number_bf16_close(a)
#include "portable.inc"

#define T f32
#define TYPE WREATH_FLOAT32
#define ELEM float
#define ACC float
#define OPEN(x) (x)
#define FOLD(op, a, b) number_f32_fold(op, a, b)
#define DIVIDE(a, n) ((a) / (float)(n))
#define CLOSE(a) number_f32_close(a)
#include "portable.inc"

#define T f64
#define TYPE WREATH_FLOAT64
#define ELEM double
#define ACC double
#define OPEN(x) (x)
#define FOLD(op, a, b) number_f64_fold(op, a, b)
#define DIVIDE(a, n) ((a) / (double)(n))
#define CLOSE(a) number_f64_close(a)
#include "portable.inc"

#define T e4m3
#define TYPE WREATH_FLOAT8E4M3
#define ELEM uint8_t
#define ACC float
#define OPEN(x) number_e4m3_open(x)
#define FOLD(op, a, b) number_f32_fold(op, a, b)
#define DIVIDE(a, n) ((a) / (float)(n))
#define CLOSE(a) number_e4m3_close(a)
#include "portable.inc"

#define T e5m2
#define TYPE WREATH_FLOAT8E5M2
#define ELEM uint8_t
#define ACC float
#define OPEN(x) number_e5m2_open(x)
#define FOLD(op, a, b) number_f32_fold(op, a, b)
#define DIVIDE(a, n) ((a) / (float)(n))
#define CLOSE(a) number_e5m2_close(a)
#include "portable.inc"

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
