/* SPDX-License-Identifier: MIT */
/*
 * Elements of every type as doubles and back, written from the definition of
 * the formats and not from the library, which is what they check.
 */
#include <math.h>
#include <string.h>

#include "bench/perf.h"

const struct perf_type perf_types[WREATH_N_TYPES] = {
	[WREATH_INT8] = {"int8", "char", false, true, 0, 0, 0},
	[WREATH_UINT8] = {"uint8", NULL, false, false, 0, 0, 0},
	[WREATH_INT16] = {"int16", NULL, false, true, 0, 0, 0},
	[WREATH_UINT16] = {"uint16", NULL, false, false, 0, 0, 0},
	[WREATH_INT32] = {"int32", "int", false, true, 0, 0, 0},
	[WREATH_UINT32] = {"uint32", NULL, false, false, 0, 0, 0},
	[WREATH_INT64] = {"int64", NULL, false, true, 0, 0, 0},
	[WREATH_UINT64] = {"uint64", NULL, false, false, 0, 0, 0},
	[WREATH_FLOAT16] = {"half", "float16", true, true, 5, 10, 15},
	[WREATH_BFLOAT16] = {"bfloat16", "bf16", true, true, 8, 7, 127},
	[WREATH_FLOAT32] = {"float", "float32", true, true, 8, 23, 127},
	[WREATH_FLOAT64] = {"double", "float64", true, true, 11, 52, 1023},
	[WREATH_FLOAT8E4M3] = {"f8e4m3", "float8e4m3", true, true, 4, 3, 7},
	[WREATH_FLOAT8E5M2] = {"f8e5m2", "float8e5m2", true, true, 5, 2, 15},
};

static uint64_t load(enum wreath_type type, const void *element)
{
	uint64_t bits = 0;

	/* The machines we run on are little-endian: the low bytes first. */
	memcpy(&bits, element, wreath_type_size(type));
	return bits;
}

static int n_bits(enum wreath_type type)
{
	return 8 * (int)wreath_type_size(type);
}

void perf_encode(enum wreath_type type, double value, void *element)
{
	const struct perf_type *format = &perf_types[type];
	uint64_t sign = signbit(value) != 0;
	uint64_t bits = 0;
	int exponent;

	value = fabs(value);
	if (value > 0) {
		uint64_t quanta;

		frexp(value, &exponent);
		/* From [0.5, 1) to [1, 2), and never below a normal number. */
		exponent--;
		if (exponent < 1 - format->bias)
			exponent = 1 - format->bias;
		quanta = (uint64_t)nearbyint(
			ldexp(value, format->mantissa - exponent));
		/*
		 * The leading one of a normal number adds one to the exponent
		 * field; so does a carry from rounding, and a subnormal number
		 * has neither.
		 */
		bits = ((uint64_t)(exponent + format->bias - 1)
			<< format->mantissa) + quanta;
	}
	bits |= sign << (n_bits(type) - 1);
	memcpy(element, &bits, wreath_type_size(type));
}

static bool is_nan(const struct perf_type *format, uint64_t magnitude)
{
	uint64_t infinity = ((1ull << format->exponent) - 1)
			    << format->mantissa;

	/* E4M3 gives the exponent of the infinities to numbers, but one. */
	if (format->exponent == 4)
		return magnitude == 0x7f;
	return magnitude > infinity;
}

double perf_decode(enum wreath_type type, const void *element)
{
	const struct perf_type *format = &perf_types[type];
	uint64_t bits = load(type, element);
	int unused = 64 - n_bits(type);
	uint64_t magnitude, field, fraction;
	double value;

	if (!format->is_float)
		return format->is_signed
			       ? (double)((int64_t)(bits << unused) >> unused)
			       : (double)bits;
	magnitude = bits & ~(1ull << (n_bits(type) - 1));
	field = magnitude >> format->mantissa;
	fraction = magnitude & ((1ull << format->mantissa) - 1);
	if (is_nan(format, magnitude))
		return (double)NAN;
	if (format->exponent != 4 && field == (1ull << format->exponent) - 1)
		value = (double)INFINITY;
	else if (!field)
		value = ldexp((double)fraction,
			      1 - format->bias - format->mantissa);
	else
		value = ldexp((double)(fraction | 1ull << format->mantissa),
			      (int)field - format->bias - format->mantissa);
	return bits == magnitude ? value : -value;
}

uint64_t perf_distance(enum wreath_type type, const void *a, const void *b)
{
	uint64_t sign = 1ull << (n_bits(type) - 1);
	uint64_t x = load(type, a);
	uint64_t y = load(type, b);

	if (is_nan(&perf_types[type], x & ~sign) ||
	    is_nan(&perf_types[type], y & ~sign))
		return x == y ? 0 : UINT64_MAX;
	/* Sign and magnitude, to a scale on which both zeros are at @sign. */
	x = x & sign ? sign - (x & ~sign) : sign + x;
	y = y & sign ? sign - (y & ~sign) : sign + y;
	return x > y ? x - y : y - x;
}
