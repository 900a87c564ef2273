/* SPDX-License-Identifier: MIT */
/*
 * What the kernels of this room share: their tables, and the cases that are
 * too rare to be in the way of a small reduction.
 */
#ifndef REDUCE_TABLE_H
#define REDUCE_TABLE_H

#include "base/base.h"
#include "reduce.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

/* WREATH_SUM, PROD, MIN and MAX; WREATH_AVG is a sum with a divisor. */
#define REDUCE_N_OPS 4

#define REDUCE_INLINE static inline __attribute__((always_inline))

/* Two steps, so that the arguments are expanded before they are joined. */
#define REDUCE_JOIN_(a, b) a##b
#define REDUCE_JOIN(a, b) REDUCE_JOIN_(a, b)

/* One of four expressions; @op is a constant in every kernel. */
#define REDUCE_PICK(op, sum, prod, min, max) \
	((op) == WREATH_SUM    ? (sum)       \
	 : (op) == WREATH_PROD ? (prod)      \
	 : (op) == WREATH_MIN  ? (min)       \
			       : (max))

struct reduce_table {
	reduce_fn *fn[WREATH_N_TYPES][REDUCE_N_OPS];
};

/* One type's kernels, in the order of enum wreath_op. */
#define REDUCE_ROW(type)                                        \
	{                                                       \
		type##_sum, type##_prod, type##_min, type##_max \
	}

extern const struct reduce_table reduce_portable;
#if defined(__x86_64__)
extern const struct reduce_table reduce_avx2;
extern const struct reduce_table reduce_avx512;
#endif

/* True where this processor can run the kernels of reduce_avx2 (_avx512). */
bool reduce_has_avx2(void);
bool reduce_has_avx512(void);

/*
 * A call of the kernel @fn of @type and @op that it does not compute by
 * itself: a copy; a caller that has changed the rounding mode or flushes
 * denormals to zero; and, for SIMD kernels, a single source with a divisor,
 * integers with a divisor, REDUCE_STREAM to an unaligned destination or of
 * 8-bit floats.
 */
void reduce_rare(const struct reduce_args *args, enum wreath_type type,
		 enum wreath_op op, reduce_fn *fn);

/* Divide @count integers in place by at least 2, truncating toward zero. */
void reduce_divide(void *v, size_t count, enum wreath_type type,
		   unsigned int divisor);

static inline bool reduce_is_copy(const struct reduce_args *args)
{
	return args->n_src == 1 && args->divisor <= 1;
}

/* Whole lines can be streamed to @p. */
static inline bool reduce_is_aligned(const void *p)
{
	return !((uintptr_t)p & (BASE_LINE - 1));
}

/*
 * MXCSR: rounding control (bits 13 and 14), flush to zero (15) and denormals
 * are zero (6).  Programs set them for speed, and then two ranks could get
 * different bits.
 */
#define REDUCE_FP_CHANGED 0xe040u

/*
 * To read MXCSR takes longer than a small reduction (4.4 of 8 ns on a Zen 4),
 * so this looks at what the settings do to four sums: a denormal operand, a
 * denormal result, a sum to be rounded down and one to be rounded up.  Sums of
 * denormals, unlike products, are not slow on any processor.
 */
static inline bool reduce_fp_is_default(void)
{
#if defined(__x86_64__)
	__m128 a = _mm_setr_ps(0x1p-149f, 0x1.8p-126f, 1, 1);
	__m128 b = _mm_setr_ps(0, -0x1p-126f, 0x1p-25f, 0x1.8p-24f);
	__m128 sum = _mm_setr_ps(0x1p-149f, 0x1p-127f, 1, 0x1.000002p0f);

	/* Kept from the compiler, which knows the default's sums. */
	__asm__("" : "+x"(a));
	a = _mm_add_ps(a, b);
	return _mm_movemask_epi8(_mm_cmpeq_epi32(
		       _mm_castps_si128(a), _mm_castps_si128(sum))) == 0xffff;
#else
	return true;
#endif
}

#endif
