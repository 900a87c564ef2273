/* SPDX-License-Identifier: MIT */
/*
 * Averages of integers: a division by the same number, many times.  For the
 * SIMD kernels, whose machines are little-endian.
 */
#include <string.h>

#include "table.h"

/*
 * floor(x / d) is the upper half of x * ceil(2^64 / d): the error of the
 * factor, below d, times x stays below 2^64.
 */
REDUCE_INLINE uint32_t quotient(uint32_t x, uint64_t factor)
{
	return (uint32_t)(((unsigned __int128)x * factor) >> 64);
}

/* At most 32 bits wide; @type is a constant of the caller. */
REDUCE_INLINE void divide_narrow(void *v, size_t count, size_t elem,
				 bool is_signed, uint64_t factor)
{
	uint32_t top = UINT32_C(1) << (8 * elem - 1);
	char *at = v;

	for (; count; count--, at += elem) {
		uint32_t x = 0, sign = 0;

		memcpy(&x, at, elem);
		if (is_signed) {
			/* Widen the sign, and take the magnitude. */
			x = (x ^ top) - top;
			sign = -(x >> 31);
			x = (x ^ sign) - sign;
		}
		x = quotient(x, factor);
		x = (x ^ sign) - sign;
		memcpy(at, &x, elem);
	}
}

/* Truncated toward zero by the language. */
static void divide_int64(void *v, size_t count, unsigned int divisor)
{
	char *at = v;
	int64_t x;

	for (; count; count--, at += sizeof(x)) {
		memcpy(&x, at, sizeof(x));
		x /= (int64_t)divisor;
		memcpy(at, &x, sizeof(x));
	}
}

static void divide_uint64(void *v, size_t count, unsigned int divisor)
{
	char *at = v;
	uint64_t x;

	for (; count; count--, at += sizeof(x)) {
		memcpy(&x, at, sizeof(x));
		x /= divisor;
		memcpy(at, &x, sizeof(x));
	}
}

void reduce_divide(void *v, size_t count, enum wreath_type type,
		   unsigned int divisor)
{
	uint64_t factor = UINT64_MAX / divisor + 1;

	if (type == WREATH_INT64)
		divide_int64(v, count, divisor);
	else if (type == WREATH_UINT64)
		divide_uint64(v, count, divisor);
	else if (type == WREATH_INT32)
		divide_narrow(v, count, 4, true, factor);
	else if (type == WREATH_UINT32)
		divide_narrow(v, count, 4, false, factor);
	else if (type == WREATH_INT16)
		divide_narrow(v, count, 2, true, factor);
	else if (type == WREATH_UINT16)
		divide_narrow(v, count, 2, false, factor);
	else if (type == WREATH_INT8)
		divide_narrow(v, count, 1, true, factor);
	else
		divide_narrow(v, count, 1, false, factor);
}
