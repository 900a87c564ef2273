/* SPDX-License-Identifier: MIT */
/*
 * Scalar arithmetic of the reductions: the rules of reduce.h for one element.
 * The SIMD kernels give the same bits; those of GPUs are compiled from this.
 */
#ifndef REDUCE_NUMBER_H
#define REDUCE_NUMBER_H

#include <stdint.h>
#include <string.h>

#include "wreath.h"

#ifdef __CUDACC__
#define NUMBER_FN static __device__ __forceinline__
#else
#define NUMBER_FN static inline __attribute__((always_inline))
#endif

#define NUMBER_F16_NAN 0x7e00u
#define NUMBER_BF16_NAN 0x7fc0u
#define NUMBER_F32_NAN 0x7fc00000u
#define NUMBER_F64_NAN 0x7ff8000000000000u
#define NUMBER_E4M3_NAN 0x7fu
#define NUMBER_E5M2_NAN 0x7eu

NUMBER_FN uint32_t number_bits32(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

NUMBER_FN float number_f32(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

NUMBER_FN uint64_t number_bits64(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

NUMBER_FN double number_f64(uint64_t bits)
{
	double x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* A float format narrower than float32: sign, exponent, @mant bits. */
struct number_format {
	int mant;      /* bits of the mantissa */
	int bias;      /* of the exponent */
	uint32_t sign; /* the sign bit */
	uint32_t max;  /* the largest finite code */
	uint32_t over; /* what overflows becomes: infinity, or NaN */
	uint32_t nan;  /* canonical */
};

NUMBER_FN struct number_format number_f16_format(void)
{
	struct number_format f16 = {
		10, 15, 0x8000, 0x7bff, 0x7c00, NUMBER_F16_NAN,
	};

	return f16;
}

NUMBER_FN struct number_format number_e4m3_format(void)
{
	struct number_format e4m3 = {
		3, 7, 0x80, 0x7e, NUMBER_E4M3_NAN, NUMBER_E4M3_NAN,
	};

	return e4m3;
}

NUMBER_FN struct number_format number_e5m2_format(void)
{
	struct number_format e5m2 = {
		2, 15, 0x80, 0x7b, 0x7c, NUMBER_E5M2_NAN,
	};

	return e5m2;
}

/* Round to nearest even. */
NUMBER_FN uint32_t number_narrow(float x, struct number_format to)
{
	uint32_t bits = number_bits32(x);
	uint32_t sign = bits >> 31 ? to.sign : 0;
	uint32_t abs = bits & 0x7fffffff;
	int exponent = (int)(abs >> 23) - 127 + to.bias;
	int shift = 23 - to.mant;
	uint32_t kept, code, half;

	if (abs > 0x7f800000)
		return to.nan;
	if (exponent > 0) {
		kept = abs - ((uint32_t)(127 - to.bias) << 23);
	} else {
		kept = (abs & 0x7fffff) | 0x800000;
		shift += 1 - exponent;
		/* Less than half of the smallest denormal. */
		if (shift > 24)
			return sign;
	}
	code = kept >> shift;
	half = UINT32_C(1) << (shift - 1);
	kept &= (half << 1) - 1;
	if (kept > half || (kept == half && (code & 1)))
		code++;
	if (code > to.max)
		return to.over == to.nan ? to.nan : sign | to.over;
	return sign | code;
}

/* Exact.  NaN and infinity of @from are the caller's matter. */
NUMBER_FN float number_widen(uint32_t code, struct number_format from)
{
	uint32_t sign = code & from.sign ? UINT32_C(1) << 31 : 0;
	uint32_t abs = code & (from.sign - 1);
	uint32_t rebias = (uint32_t)(127 - from.bias) << 23;
	int shift = 23 - from.mant;

	if (abs >> from.mant)
		return number_f32(sign | ((abs << shift) + rebias));
	/*
	 * A denormal: with the smallest normal's exponent it is that normal
	 * plus the value, and the subtraction is exact.
	 */
	rebias += UINT32_C(1) << 23;
	return number_f32(sign |
			  number_bits32(number_f32((abs << shift) | rebias) -
					number_f32(rebias)));
}

/*
 * GPUs have instructions that convert narrow floats; they saturate where an
 * 8-bit float overflows, and have NaN codes of their own.
 */
NUMBER_FN float number_f16_open(uint16_t code)
{
#ifdef __CUDA_ARCH__
	float x;

	__asm__("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(code));
	return x;
#else
	if ((code & 0x7c00) == 0x7c00)
		return number_f32((code & 0x8000u) << 16 | 0x7f800000 |
				  (code & 0x3ffu) << 13);
	return number_widen(code, number_f16_format());
#endif
}

NUMBER_FN uint16_t number_f16_close(float x)
{
#ifdef __CUDA_ARCH__
	uint16_t code;

	__asm__("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
	return x != x ? (uint16_t)NUMBER_F16_NAN : code;
#else
	return (uint16_t)number_narrow(x, number_f16_format());
#endif
}

NUMBER_FN float number_bf16_open(uint16_t code)
{
	return number_f32((uint32_t)code << 16);
}

NUMBER_FN uint16_t number_bf16_close(float x)
{
	uint32_t bits = number_bits32(x);

	if (x != x)
		return NUMBER_BF16_NAN;
	return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

NUMBER_FN float number_e4m3_open(uint8_t code)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
	uint32_t pair;

	__asm__("cvt.rn.f16x2.e4m3x2 %0, %1;"
		: "=r"(pair)
		: "h"((uint16_t)code));
	return number_f16_open((uint16_t)pair);
#else
	/* Its finite codes are those of float16 but for a bias less by 8. */
	uint32_t f16 = (code & 0x80u) << 8 | (code & 0x7fu) << 7;

	if ((code & 0x7f) == NUMBER_E4M3_NAN)
		return number_f32(NUMBER_F32_NAN);
	return number_f16_open((uint16_t)f16) * 256;
#endif
}

NUMBER_FN uint8_t number_e4m3_close(float x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
	uint16_t code;

	/* 464 is the middle of 448, which is even, and what would follow. */
	if ((number_bits32(x) & 0x7fffffff) > number_bits32(464))
		return NUMBER_E4M3_NAN;
	__asm__("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
		: "=h"(code)
		: "f"(0.0f), "f"(x));
	return (uint8_t)code;
#else
	return (uint8_t)number_narrow(x, number_e4m3_format());
#endif
}

/* E5M2 is float16 without its eight low bits. */
NUMBER_FN float number_e5m2_open(uint8_t code)
{
	return number_f16_open((uint16_t)(code << 8));
}

NUMBER_FN uint8_t number_e5m2_close(float x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
	uint16_t code;

	if (x != x)
		return NUMBER_E5M2_NAN;
	/* The middle of 57344, which is odd, and what would follow. */
	if ((number_bits32(x) & 0x7fffffff) >= number_bits32(61440))
		return (uint8_t)(number_bits32(x) >> 31 << 7 | 0x7c);
	__asm__("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;"
		: "=h"(code)
		: "f"(0.0f), "f"(x));
	return (uint8_t)code;
#else
	return (uint8_t)number_narrow(x, number_e5m2_format());
#endif
}

NUMBER_FN float number_f32_close(float x)
{
	return x != x ? number_f32(NUMBER_F32_NAN) : x;
}

NUMBER_FN double number_f64_close(double x)
{
	return x != x ? number_f64(NUMBER_F64_NAN) : x;
}

/*
 * MIN and MAX join equal numbers bit by bit, because -0 equals +0: OR keeps
 * the sign for MIN, AND drops it for MAX.  A NaN is passed on through the sum.
 */
NUMBER_FN float number_f32_fold(enum wreath_op op, float a, float b)
{
	uint32_t x = number_bits32(a), y = number_bits32(b);

	if (op == WREATH_SUM)
		return a + b;
	if (op == WREATH_PROD)
		return a * b;
	if (a != a || b != b)
		return a + b;
	if (a == b)
		return number_f32(op == WREATH_MIN ? x | y : x & y);
	return (a < b) == (op == WREATH_MIN) ? a : b;
}

NUMBER_FN double number_f64_fold(enum wreath_op op, double a, double b)
{
	uint64_t x = number_bits64(a), y = number_bits64(b);

	if (op == WREATH_SUM)
		return a + b;
	if (op == WREATH_PROD)
		return a * b;
	if (a != a || b != b)
		return a + b;
	if (a == b)
		return number_f64(op == WREATH_MIN ? x | y : x & y);
	return (a < b) == (op == WREATH_MIN) ? a : b;
}

/*
 * Signed and unsigned integers: sums and products wrap, so they are taken
 * without a sign (64 bits wide, where a product of two uint16_t cannot
 * overflow an int either), and the caller cuts them to the type.
 */
NUMBER_FN int64_t number_int_fold(enum wreath_op op, int64_t a, int64_t b)
{
	if (op == WREATH_SUM)
		return (int64_t)((uint64_t)a + (uint64_t)b);
	if (op == WREATH_PROD)
		return (int64_t)((uint64_t)a * (uint64_t)b);
	return (a < b) == (op == WREATH_MIN) ? a : b;
}

NUMBER_FN uint64_t number_uint_fold(enum wreath_op op, uint64_t a, uint64_t b)
{
	if (op == WREATH_SUM)
		return a + b;
	if (op == WREATH_PROD)
		return a * b;
	return (a < b) == (op == WREATH_MIN) ? a : b;
}

/*
 * Truncated toward zero; by magnitude, because an unsigned @n may be larger
 * than any int32_t and a division of 64 bits is several times as slow.
 */
NUMBER_FN int32_t number_int_divide(int32_t a, uint32_t n)
{
	uint32_t sign = a < 0 ? UINT32_MAX : 0;

	return (int32_t)(((((uint32_t)a ^ sign) - sign) / n ^ sign) - sign);
}

#endif
