/* SPDX-License-Identifier: MIT */
/*
 * AVX-512 (F, BW, DQ, VL): the vectors that fold.inc makes kernels of.
 *
 * AVX512_BF16 and AVX512_FP16 are left alone: the former flushes denormals.
 */
#if defined(__x86_64__)

#include <immintrin.h>

#include "number.h"
#include "table.h"

#define RAW __m512i
#define RAW_BYTES ((size_t)64)
#define HALF __m128i
#define HALF_BYTES ((size_t)16)
#define F32 __m512
#define F64 __m512d
#define F32_OF _mm512_castsi512_ps
#define F64_OF _mm512_castsi512_pd

REDUCE_INLINE __m512i raw_load(const void *p)
{
	return _mm512_loadu_si512(p);
}

REDUCE_INLINE void raw_store(void *p, __m512i v)
{
	_mm512_storeu_si512(p, v);
}

/* @p is aligned. */
REDUCE_INLINE void raw_stream(void *p, __m512i v)
{
	_mm512_stream_si512(p, v);
}

REDUCE_INLINE __mmask64 first_bytes(size_t bytes)
{
	return (UINT64_C(1) << bytes) - 1;
}

/*
 * Less than RAW_BYTES; the bytes behind them are not touched.  The usual small
 * sizes are not masked: what a masked store wrote, or a masked load reads, is
 * not forwarded between them, and a chain of reductions takes 3 ns longer a
 * step (Zen 4).
 */
REDUCE_INLINE __m512i raw_load_part(const void *p, size_t bytes)
{
	if (bytes == 8)
		return _mm512_zextsi128_si512(_mm_loadl_epi64(p));
	if (bytes == 16)
		return _mm512_zextsi128_si512(_mm_loadu_si128(p));
	return _mm512_maskz_loadu_epi8(first_bytes(bytes), p);
}

REDUCE_INLINE void raw_store_part(void *p, __m512i v, size_t bytes)
{
	if (bytes == 8)
		_mm_storel_epi64(p, _mm512_castsi512_si128(v));
	else if (bytes == 16)
		_mm_storeu_si128(p, _mm512_castsi512_si128(v));
	else
		_mm512_mask_storeu_epi8(p, first_bytes(bytes), v);
}

REDUCE_INLINE __m128i half_load(const void *p)
{
	return _mm_loadu_si128(p);
}

REDUCE_INLINE void half_store(void *p, __m128i v)
{
	_mm_storeu_si128(p, v);
}

REDUCE_INLINE void half_stream(void *p, __m128i v)
{
	_mm_stream_si128(p, v);
}

REDUCE_INLINE __m128i half_load_part(const void *p, size_t bytes)
{
	if (bytes == 8)
		return _mm_loadl_epi64(p);
	return _mm_maskz_loadu_epi8((__mmask16)first_bytes(bytes), p);
}

REDUCE_INLINE void half_store_part(void *p, __m128i v, size_t bytes)
{
	if (bytes == 8)
		_mm_storel_epi64(p, v);
	else
		_mm_mask_storeu_epi8(p, (__mmask16)first_bytes(bytes), v);
}

/* ---- integers ---- */

/* There is no product of bytes: the even and the odd ones as 16 bits. */
REDUCE_INLINE __m512i mul8(__m512i a, __m512i b)
{
	__m512i even = _mm512_mullo_epi16(a, b);
	__m512i odd = _mm512_mullo_epi16(_mm512_srli_epi16(a, 8),
					 _mm512_srli_epi16(b, 8));

	return _mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaa, even,
				      _mm512_slli_epi16(odd, 8));
}

REDUCE_INLINE __m512i i8_fold(enum wreath_op op, __m512i a, __m512i b)
{
	return REDUCE_PICK(op, _mm512_add_epi8(a, b), mul8(a, b),
			   _mm512_min_epi8(a, b), _mm512_max_epi8(a, b));
}

REDUCE_INLINE __m512i u8_fold(enum wreath_op op, __m512i a, __m512i b)
{
	return REDUCE_PICK(op, _mm512_add_epi8(a, b), mul8(a, b),
			   _mm512_min_epu8(a, b), _mm512_max_epu8(a, b));
}

REDUCE_INLINE __m512i i16_fold(enum wreath_op op, __m512i a, __m512i b)
{
	return REDUCE_PICK(op, _mm512_add_epi16(a, b), _mm512_mullo_epi16(a, b),
			   _mm512_min_epi16(a, b), _mm512_max_epi16(a, b));
}

REDUCE_INLINE __m512i u16_fold(enum wreath_op op, __m512i a, __m512i b)
{
	return REDUCE_PICK(op, _mm512_add_epi16(a, b), _mm512_mullo_epi16(a, b),
			   _mm512_min_epu16(a, b), _mm512_max_epu16(a, b));
}

REDUCE_INLINE __m512i i32_fold(enum wreath_op op, __m512i a, __m512i b)
{
	return REDUCE_PICK(op, _mm512_add_epi32(a, b), _mm512_mullo_epi32(a, b),
			   _mm512_min_epi32(a, b), _mm512_max_epi32(a, b));
}

REDUCE_INLINE __m512i u32_fold(enum wreath_op op, __m512i a, __m512i b)
{
	return REDUCE_PICK(op, _mm512_add_epi32(a, b), _mm512_mullo_epi32(a, b),
			   _mm512_min_epu32(a, b), _mm512_max_epu32(a, b));
}

REDUCE_INLINE __m512i i64_fold(enum wreath_op op, __m512i a, __m512i b)
{
	return REDUCE_PICK(op, _mm512_add_epi64(a, b), _mm512_mullo_epi64(a, b),
			   _mm512_min_epi64(a, b), _mm512_max_epi64(a, b));
}

REDUCE_INLINE __m512i u64_fold(enum wreath_op op, __m512i a, __m512i b)
{
	return REDUCE_PICK(op, _mm512_add_epi64(a, b), _mm512_mullo_epi64(a, b),
			   _mm512_min_epu64(a, b), _mm512_max_epu64(a, b));
}

/* ---- float32 and float64 ---- */

REDUCE_INLINE __m512 f32_nan(void)
{
	return _mm512_castsi512_ps(_mm512_set1_epi32(NUMBER_F32_NAN));
}

REDUCE_INLINE __m512d f64_nan(void)
{
	return _mm512_castsi512_pd(_mm512_set1_epi64(NUMBER_F64_NAN));
}

/*
 * VFIXUPIMM looks up the class of each element: the two kinds of NaN (the low
 * digits) keep the first operand, the others take the second.
 */
#define FIXUP_NAN 0x11111100

/* The folds of MIN and MAX are canonical by themselves. */
REDUCE_INLINE bool is_canonical(enum wreath_op op)
{
	return op == WREATH_MIN || op == WREATH_MAX;
}

REDUCE_INLINE __m512 f32_canonical(enum wreath_op op, __m512 a)
{
	return is_canonical(op)
		       ? a
		       : _mm512_fixupimm_ps(f32_nan(), a,
					    _mm512_set1_epi32(FIXUP_NAN), 0);
}

REDUCE_INLINE __m512d f64_canonical(enum wreath_op op, __m512d a)
{
	return is_canonical(op)
		       ? a
		       : _mm512_fixupimm_pd(f64_nan(), a,
					    _mm512_set1_epi64(FIXUP_NAN), 0);
}

/* VRANGE orders -0 before +0, but prefers a number to a quiet NaN. */
#define RANGE_MIN 4
#define RANGE_MAX 5

/* The canonical NaN where an operand is one, else @ranged. */
REDUCE_INLINE __m512 f32_or_nan(__m512 ranged, __m512 a, __m512 b)
{
	__mmask16 is_nan = _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);

	return _mm512_mask_mov_ps(ranged, is_nan, f32_nan());
}

REDUCE_INLINE __m512d f64_or_nan(__m512d ranged, __m512d a, __m512d b)
{
	__mmask8 is_nan = _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q);

	return _mm512_mask_mov_pd(ranged, is_nan, f64_nan());
}

REDUCE_INLINE __m512 f32_fold(enum wreath_op op, __m512 a, __m512 b)
{
	return REDUCE_PICK(op, _mm512_add_ps(a, b), _mm512_mul_ps(a, b),
			   f32_or_nan(_mm512_range_ps(a, b, RANGE_MIN), a, b),
			   f32_or_nan(_mm512_range_ps(a, b, RANGE_MAX), a, b));
}

REDUCE_INLINE __m512d f64_fold(enum wreath_op op, __m512d a, __m512d b)
{
	return REDUCE_PICK(op, _mm512_add_pd(a, b), _mm512_mul_pd(a, b),
			   f64_or_nan(_mm512_range_pd(a, b, RANGE_MIN), a, b),
			   f64_or_nan(_mm512_range_pd(a, b, RANGE_MAX), a, b));
}

REDUCE_INLINE __m512 f32_divide(__m512 a, unsigned int divisor)
{
	return _mm512_div_ps(a, _mm512_set1_ps((float)divisor));
}

REDUCE_INLINE __m512d f64_divide(__m512d a, unsigned int divisor)
{
	return _mm512_div_pd(a, _mm512_set1_pd((double)divisor));
}

REDUCE_INLINE __m512i f32_close(enum wreath_op op, __m512 a)
{
	return _mm512_castps_si512(f32_canonical(op, a));
}

REDUCE_INLINE __m512i f64_close(enum wreath_op op, __m512d a)
{
	return _mm512_castpd_si512(f64_canonical(op, a));
}

#include "narrow.inc"
#include "avx512_narrow.inc"
#include "types.inc"

const struct reduce_table reduce_avx512 = {{
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

#endif
