/* SPDX-License-Identifier: MIT */
/*
 * AVX2 with F16C: the vectors that fold.inc makes kernels of.
 */
#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "number.h"
#include "table.h"

#define RAW __m256i
#define RAW_BYTES ((size_t)32)
#define HALF __m128i
#define HALF_BYTES ((size_t)16)
#define F32 __m256
#define F64 __m256d
#define F32_OF _mm256_castsi256_ps
#define F64_OF _mm256_castsi256_pd

REDUCE_INLINE __m256i raw_load(const void *p)
{
	return _mm256_loadu_si256(p);
}

REDUCE_INLINE void raw_store(void *p, __m256i v)
{
	_mm256_storeu_si256(p, v);
}

/* @p is aligned. */
REDUCE_INLINE void raw_stream(void *p, __m256i v)
{
	_mm256_stream_si256(p, v);
}

/*
 * Parts of a register: two loads (stores) that overlap in the middle, so that
 * no byte outside is touched and none goes through a buffer, whose reading back
 * would stall.
 */
REDUCE_INLINE uint64_t load_word(const void *p, size_t bytes)
{
	const unsigned char *at = p;
	uint64_t low = 0, high = 0;
	uint32_t low4, high4;

	if (bytes >= 8) {
		memcpy(&low, at, 8);
		return low;
	}
	if (bytes >= 4) {
		memcpy(&low4, at, 4);
		memcpy(&high4, at + bytes - 4, 4);
		high = high4;
		return low4 | high << (8 * (bytes - 4));
	}
	if (bytes) {
		low = at[0];
		low |= (uint64_t)at[bytes / 2] << (8 * (bytes / 2));
		low |= (uint64_t)at[bytes - 1] << (8 * (bytes - 1));
	}
	return low;
}

REDUCE_INLINE void store_word(void *p, uint64_t v, size_t bytes)
{
	unsigned char *at = p;
	uint32_t low4 = (uint32_t)v;
	uint32_t high4;

	if (bytes >= 8) {
		memcpy(at, &v, 8);
	} else if (bytes >= 4) {
		high4 = (uint32_t)(v >> (8 * (bytes - 4)));
		memcpy(at, &low4, 4);
		memcpy(at + bytes - 4, &high4, 4);
	} else if (bytes) {
		at[0] = (unsigned char)v;
		at[bytes / 2] = (unsigned char)(v >> (8 * (bytes / 2)));
		at[bytes - 1] = (unsigned char)(v >> (8 * (bytes - 1)));
	}
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
	const char *at = p;
	uint64_t high = 0;

	if (bytes >= 16)
		return _mm_loadu_si128(p);
	if (bytes > 8)
		high = load_word(at + 8, bytes - 8);
	return _mm_set_epi64x((int64_t)high, (int64_t)load_word(at, bytes));
}

REDUCE_INLINE void half_store_part(void *p, __m128i v, size_t bytes)
{
	char *at = p;

	if (bytes >= 16) {
		_mm_storeu_si128(p, v);
		return;
	}
	store_word(at, (uint64_t)_mm_cvtsi128_si64(v), bytes);
	if (bytes > 8)
		store_word(at + 8, (uint64_t)_mm_extract_epi64(v, 1),
			   bytes - 8);
}

static __attribute__((noinline)) __m256i load_part(const void *p, size_t bytes)
{
	__m128i high = _mm_setzero_si128();

	if (bytes > 16)
		high = half_load_part((const char *)p + 16, bytes - 16);
	return _mm256_set_m128i(high, half_load_part(p, bytes));
}

static __attribute__((noinline)) void store_part(void *p, __m256i v,
						 size_t bytes)
{
	half_store_part(p, _mm256_castsi256_si128(v), bytes);
	if (bytes > 16)
		half_store_part((char *)p + 16, _mm256_extracti128_si256(v, 1),
				bytes - 16);
}

/* The smallest usual size is worth a path of its own. */
REDUCE_INLINE __m256i raw_load_part(const void *p, size_t bytes)
{
	if (bytes == 8)
		return _mm256_zextsi128_si256(_mm_loadl_epi64(p));
	return load_part(p, bytes);
}

REDUCE_INLINE void raw_store_part(void *p, __m256i v, size_t bytes)
{
	if (bytes == 8)
		_mm_storel_epi64(p, _mm256_castsi256_si128(v));
	else
		store_part(p, v, bytes);
}

/* ---- integers ---- */

/* There is no product of bytes: the even and the odd ones as 16 bits. */
REDUCE_INLINE __m256i mul8(__m256i a, __m256i b)
{
	__m256i even = _mm256_mullo_epi16(a, b);
	__m256i odd = _mm256_mullo_epi16(_mm256_srli_epi16(a, 8),
					 _mm256_srli_epi16(b, 8));

	return _mm256_or_si256(_mm256_and_si256(even, _mm256_set1_epi16(0xff)),
			       _mm256_slli_epi16(odd, 8));
}

/* The low halves' product, and both mixed products 32 bits up. */
REDUCE_INLINE __m256i mul64(__m256i a, __m256i b)
{
	__m256i low = _mm256_mul_epu32(a, b);
	__m256i mixed =
		_mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(a, 32), b),
				 _mm256_mul_epu32(a, _mm256_srli_epi64(b, 32)));

	return _mm256_add_epi64(low, _mm256_slli_epi64(mixed, 32));
}

/* @a where it is greater (@greater) or where it is not. */
REDUCE_INLINE __m256i choose64(__m256i a, __m256i b, __m256i flip, bool greater)
{
	__m256i is_greater = _mm256_cmpgt_epi64(_mm256_xor_si256(a, flip),
						_mm256_xor_si256(b, flip));

	return greater ? _mm256_blendv_epi8(b, a, is_greater)
		       : _mm256_blendv_epi8(a, b, is_greater);
}

REDUCE_INLINE __m256i i8_fold(enum wreath_op op, __m256i a, __m256i b)
{
	return REDUCE_PICK(op, _mm256_add_epi8(a, b), mul8(a, b),
			   _mm256_min_epi8(a, b), _mm256_max_epi8(a, b));
}

REDUCE_INLINE __m256i u8_fold(enum wreath_op op, __m256i a, __m256i b)
{
	return REDUCE_PICK(op, _mm256_add_epi8(a, b), mul8(a, b),
			   _mm256_min_epu8(a, b), _mm256_max_epu8(a, b));
}

REDUCE_INLINE __m256i i16_fold(enum wreath_op op, __m256i a, __m256i b)
{
	return REDUCE_PICK(op, _mm256_add_epi16(a, b), _mm256_mullo_epi16(a, b),
			   _mm256_min_epi16(a, b), _mm256_max_epi16(a, b));
}

REDUCE_INLINE __m256i u16_fold(enum wreath_op op, __m256i a, __m256i b)
{
	return REDUCE_PICK(op, _mm256_add_epi16(a, b), _mm256_mullo_epi16(a, b),
			   _mm256_min_epu16(a, b), _mm256_max_epu16(a, b));
}

REDUCE_INLINE __m256i i32_fold(enum wreath_op op, __m256i a, __m256i b)
{
	return REDUCE_PICK(op, _mm256_add_epi32(a, b), _mm256_mullo_epi32(a, b),
			   _mm256_min_epi32(a, b), _mm256_max_epi32(a, b));
}

REDUCE_INLINE __m256i u32_fold(enum wreath_op op, __m256i a, __m256i b)
{
	return REDUCE_PICK(op, _mm256_add_epi32(a, b), _mm256_mullo_epi32(a, b),
			   _mm256_min_epu32(a, b), _mm256_max_epu32(a, b));
}

REDUCE_INLINE __m256i i64_fold(enum wreath_op op, __m256i a, __m256i b)
{
	__m256i zero = _mm256_setzero_si256();

	return REDUCE_PICK(op, _mm256_add_epi64(a, b), mul64(a, b),
			   choose64(a, b, zero, false),
			   choose64(a, b, zero, true));
}

/* There is no unsigned comparison: the sign bits are flipped. */
REDUCE_INLINE __m256i u64_fold(enum wreath_op op, __m256i a, __m256i b)
{
	__m256i sign = _mm256_set1_epi64x(INT64_MIN);

	return REDUCE_PICK(op, _mm256_add_epi64(a, b), mul64(a, b),
			   choose64(a, b, sign, false),
			   choose64(a, b, sign, true));
}

/* ---- float32 and float64 ---- */

REDUCE_INLINE __m256 f32_canonical(__m256 a)
{
	__m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(NUMBER_F32_NAN));

	return _mm256_blendv_ps(a, nan, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}

/*
 * MINPS gives its second operand when the operands are equal (-0 and +0) or one
 * is a NaN.  Taken both ways round and joined by OR, the minimum keeps the sign
 * of a zero, and a NaN stays one: it has every bit of its exponent.
 */
REDUCE_INLINE __m256 f32_lesser(__m256 a, __m256 b)
{
	return _mm256_or_ps(_mm256_min_ps(a, b), _mm256_min_ps(b, a));
}

/* AND drops the sign of a zero, but could make a number of a NaN. */
REDUCE_INLINE __m256 f32_greater(__m256 a, __m256 b)
{
	__m256 max = _mm256_and_ps(_mm256_max_ps(a, b), _mm256_max_ps(b, a));

	return _mm256_or_ps(max, _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
}

REDUCE_INLINE __m256d f64_canonical(__m256d a)
{
	__m256d nan = _mm256_castsi256_pd(_mm256_set1_epi64x(NUMBER_F64_NAN));

	return _mm256_blendv_pd(a, nan, _mm256_cmp_pd(a, a, _CMP_UNORD_Q));
}

REDUCE_INLINE __m256d f64_lesser(__m256d a, __m256d b)
{
	return _mm256_or_pd(_mm256_min_pd(a, b), _mm256_min_pd(b, a));
}

REDUCE_INLINE __m256d f64_greater(__m256d a, __m256d b)
{
	__m256d max = _mm256_and_pd(_mm256_max_pd(a, b), _mm256_max_pd(b, a));

	return _mm256_or_pd(max, _mm256_cmp_pd(a, b, _CMP_UNORD_Q));
}

REDUCE_INLINE __m256 f32_fold(enum wreath_op op, __m256 a, __m256 b)
{
	return REDUCE_PICK(op, _mm256_add_ps(a, b), _mm256_mul_ps(a, b),
			   f32_lesser(a, b), f32_greater(a, b));
}

REDUCE_INLINE __m256d f64_fold(enum wreath_op op, __m256d a, __m256d b)
{
	return REDUCE_PICK(op, _mm256_add_pd(a, b), _mm256_mul_pd(a, b),
			   f64_lesser(a, b), f64_greater(a, b));
}

REDUCE_INLINE __m256 f32_divide(__m256 a, unsigned int divisor)
{
	return _mm256_div_ps(a, _mm256_set1_ps((float)divisor));
}

REDUCE_INLINE __m256i f32_close(enum wreath_op op, __m256 a)
{
	(void)op;
	return _mm256_castps_si256(f32_canonical(a));
}

REDUCE_INLINE __m256d f64_divide(__m256d a, unsigned int divisor)
{
	return _mm256_div_pd(a, _mm256_set1_pd((double)divisor));
}

REDUCE_INLINE __m256i f64_close(enum wreath_op op, __m256d a)
{
	(void)op;
	return _mm256_castpd_si256(f64_canonical(a));
}

#include "narrow.inc"
#include "avx2_narrow.inc"
#include "types.inc"

const struct reduce_table reduce_avx2 = {{
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
