/* SPDX-License-Identifier: MIT */
/*
 * Goal: the scalar kernels keep the rules of reduce.h.
 * Method: each rule by cases computed here from its sentence, not by the
 * library's arithmetic.  The SIMD kernels are compared with these.
 */
#include <math.h>

#include "reduce_test.h"

#define MAX_SRC 9

/* Fold one element of @n sources; the bits of the result. */
static uint64_t fold(enum wreath_type type, enum wreath_op op,
		     const uint64_t *in, int n, unsigned int divisor)
{
	const void *src[MAX_SRC];
	uint64_t out = 0;
	void *dst[1] = {&out};
	struct reduce_args args = {
		.dst = dst,
		.n_dst = 1,
		.src = src,
		.n_src = n,
		.count = 1,
		.divisor = divisor,
	};
	int i;

	for (i = 0; i < n; i++)
		src[i] = &in[i];
	reduce_get(type, op, true)(&args);
	return out;
}

static uint64_t fold2(enum wreath_type type, enum wreath_op op, uint64_t a,
		      uint64_t b)
{
	uint64_t in[2] = {a, b};

	return fold(type, op, in, 2, 0);
}

static uint64_t bits_of_float(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static float float_of(uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float x;

	memcpy(&x, &low, sizeof(x));
	return x;
}

/* Cut to the type, sign or zero extended. */
static __int128 cut(enum wreath_type type, __int128 x)
{
	switch (type) {
	case WREATH_INT8:
		return (int8_t)x;
	case WREATH_UINT8:
		return (uint8_t)x;
	case WREATH_INT16:
		return (int16_t)x;
	case WREATH_UINT16:
		return (uint16_t)x;
	case WREATH_INT32:
		return (int32_t)x;
	case WREATH_UINT32:
		return (uint32_t)x;
	case WREATH_INT64:
		return (int64_t)x;
	default:
		return (uint64_t)x;
	}
}

static void expect_integers(enum wreath_type type, uint64_t x, uint64_t y)
{
	__int128 a = cut(type, (__int128)x), b = cut(type, (__int128)y);
	uint64_t mask = UINT64_MAX >> (64 - 8 * wreath_type_size(type));
	uint64_t in[2] = {x & mask, y & mask};
	unsigned __int128 product = (unsigned __int128)a * (uint64_t)b;
	unsigned int n = (unsigned int)(x ^ y) | 2;

	assert_true(fold(type, WREATH_SUM, in, 2, 0) ==
		    ((uint64_t)(a + b) & mask));
	assert_true(fold(type, WREATH_PROD, in, 2, 1) ==
		    ((uint64_t)product & mask));
	assert_true(fold(type, WREATH_MIN, in, 2, 0) ==
		    ((uint64_t)(a < b ? a : b) & mask));
	assert_true(fold(type, WREATH_MAX, in, 2, 0) ==
		    ((uint64_t)(a > b ? a : b) & mask));
	/* The sum wraps before it is divided. */
	assert_true(fold(type, WREATH_AVG, in, 2, n) ==
		    ((uint64_t)(cut(type, a + b) / n) & mask));
	assert_true(fold(type, WREATH_SUM, in, 1, n) ==
		    ((uint64_t)(a / n) & mask));
}

static void integers_wrap_and_averages_truncate(void **state)
{
	uint64_t seed = test_seed(), a, b;
	int type, i;

	(void)state;
	for (i = 0; i < 65536; i++) {
		expect_integers(WREATH_INT8, (uint64_t)i & 255,
				(uint64_t)i >> 8);
		expect_integers(WREATH_UINT8, (uint64_t)i & 255,
				(uint64_t)i >> 8);
		for (type = WREATH_INT16; type <= WREATH_UINT64; type++) {
			a = test_random(&seed);
			b = test_random(&seed);
			/* Edges: 0, 1, -1, the largest, the smallest. */
			if (i & 1)
				a = UINT64_C(1) << (a & 63);
			if (i & 2)
				b = -(UINT64_C(1) << (b & 63));
			expect_integers(type, a - ((i >> 2) & 1),
					b - ((i >> 3) & 1));
		}
	}
}

static void floats_are_folded_in_order_and_divided_last(void **state)
{
	uint64_t seed = test_seed();
	uint64_t in[3], got;
	float x, y, z;
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		x = (float)(int32_t)test_random(&seed) * 0x1p-20f;
		y = (float)(int32_t)test_random(&seed) * 0x1p-24f;
		z = (float)(int32_t)test_random(&seed) * 0x1p-28f;
		in[0] = bits_of_float(x);
		in[1] = bits_of_float(y);
		in[2] = bits_of_float(z);
		got = fold(WREATH_FLOAT32, WREATH_AVG, in, 3, 3);
		assert_true(got ==
			    bits_of_float((float)((float)(x + y) + z) / 3.0f));
		got = fold(WREATH_FLOAT32, WREATH_PROD, in, 3, 0);
		assert_true(got == bits_of_float((float)(x * y) * z));
		got = fold(WREATH_FLOAT32, WREATH_MIN, in, 3, 0);
		assert_true(float_of(got) == fminf(fminf(x, y), z));
		got = fold(WREATH_FLOAT32, WREATH_MAX, in, 3, 0);
		assert_true(float_of(got) == fmaxf(fmaxf(x, y), z));
	}
}

static void narrow_floats_are_rounded_once(void **state)
{
	/* 2048 + 1 + 1, the largest twice and once back, in each format. */
	static const uint64_t f16[] = {0x6800, 0x3c00, 0x3c00};
	static const uint64_t f16_back[] = {0x7bff, 0x7bff, 0xfbff};
	static const uint64_t bf16[] = {0x4380, 0x3f80, 0x3f80};
	static const uint64_t e4m3[] = {0x58, 0x38, 0x38}; /* 16 + 1 + 1 */
	static const uint64_t e4m3_back[] = {0x7e, 0x7e, 0xfe};
	static const uint64_t e5m2[] = {0x48, 0x3c, 0x3c}; /* 8 + 1 + 1 */
	static const uint64_t e5m2_back[] = {0x7b, 0x7b, 0xfb};

	(void)state;
	assert_int_equal(fold(WREATH_FLOAT16, WREATH_SUM, f16, 3, 0), 0x6801);
	assert_int_equal(fold(WREATH_FLOAT16, WREATH_SUM, f16_back, 3, 0),
			 0x7bff);
	assert_int_equal(fold(WREATH_BFLOAT16, WREATH_SUM, bf16, 3, 0), 0x4381);
	assert_int_equal(fold(WREATH_FLOAT8E4M3, WREATH_SUM, e4m3, 3, 0), 0x59);
	assert_int_equal(fold(WREATH_FLOAT8E4M3, WREATH_SUM, e4m3_back, 3, 0),
			 0x7e);
	assert_int_equal(fold(WREATH_FLOAT8E5M2, WREATH_SUM, e5m2, 3, 0), 0x49);
	assert_int_equal(fold(WREATH_FLOAT8E5M2, WREATH_SUM, e5m2_back, 3, 0),
			 0x7b);
	/* Divided in float32: (2048 + 1 + 1) / 2 is 1025. */
	assert_int_equal(fold(WREATH_FLOAT16, WREATH_AVG, f16, 3, 2), 0x6401);
}

static void overflow_is_infinity_or_nan(void **state)
{
	(void)state;
	assert_int_equal(fold2(WREATH_FLOAT16, WREATH_SUM, 0x7bff, 0x7bff),
			 0x7c00);
	assert_int_equal(fold2(WREATH_FLOAT16, WREATH_PROD, 0xfbff, 0x7bff),
			 0xfc00);
	assert_int_equal(fold2(WREATH_BFLOAT16, WREATH_SUM, 0xff7f, 0xff7f),
			 0xff80);
	assert_int_equal(fold2(WREATH_FLOAT8E5M2, WREATH_SUM, 0xfb, 0xfb),
			 0xfc);
	assert_int_equal(fold2(WREATH_FLOAT8E4M3, WREATH_SUM, 0x7e, 0x7e),
			 0x7f);
	assert_int_equal(fold2(WREATH_FLOAT8E4M3, WREATH_PROD, 0x7e, 0xfe),
			 0x7f);
	/* 448 + 16 is the middle to the code of NaN: 448 is even. */
	assert_int_equal(fold2(WREATH_FLOAT8E4M3, WREATH_SUM, 0x7e, 0x58),
			 0x7e);
	assert_int_equal(fold2(WREATH_FLOAT8E4M3, WREATH_SUM, 0xfe, 0xd9),
			 0x7f);
}

/* Zero, one, infinity, a NaN of each sign: by type, infinity 0 for none. */
struct float_codes {
	enum wreath_type type;
	uint64_t minus, one, infinity, nan, canonical;
};

static const struct float_codes float_codes[] = {
	{WREATH_FLOAT16, 0x8000, 0x3c00, 0x7c00, 0xfe01, 0x7e00},
	{WREATH_BFLOAT16, 0x8000, 0x3f80, 0x7f80, 0xff81, 0x7fc0},
	{WREATH_FLOAT32, 0x80000000, 0x3f800000, 0x7f800000, 0xff800001,
	 0x7fc00000},
	{WREATH_FLOAT64, UINT64_C(1) << 63, 0x3ff0000000000000,
	 0x7ff0000000000000, 0xfff0000000000001, 0x7ff8000000000000},
	{WREATH_FLOAT8E4M3, 0x80, 0x38, 0, 0xff, 0x7f},
	{WREATH_FLOAT8E5M2, 0x80, 0x3c, 0x7c, 0xfd, 0x7e},
};

static void nan_is_canonical_and_wins(void **state)
{
	uint64_t in[2];
	size_t i;
	int op;

	(void)state;
	for (i = 0; i < base_countof(float_codes); i++) {
		const struct float_codes *c = &float_codes[i];

		for (op = 0; op < WREATH_N_OPS; op++) {
			in[0] = c->nan;
			in[1] = c->one;
			assert_true(fold(c->type, op, in, 2, 0) ==
				    c->canonical);
			assert_true(fold(c->type, op, in, 2, 5) ==
				    c->canonical);
			assert_true(fold(c->type, op, in, 1, 5) ==
				    c->canonical);
			/* A copy keeps its bits. */
			assert_true(fold(c->type, op, in, 1, 0) == c->nan);
			in[0] = c->one;
			in[1] = c->nan;
			assert_true(fold(c->type, op, in, 2, 0) ==
				    c->canonical);
		}
		if (!c->infinity)
			continue;
		assert_true(fold2(c->type, WREATH_SUM, c->infinity,
				  c->infinity | c->minus) == c->canonical);
		assert_true(fold2(c->type, WREATH_PROD, c->infinity,
				  c->minus) == c->canonical);
		assert_true(fold2(c->type, WREATH_MAX, c->infinity, c->one) ==
			    c->infinity);
	}
}

static void minus_zero_is_less_than_zero(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(float_codes); i++) {
		enum wreath_type t = float_codes[i].type;
		uint64_t m = float_codes[i].minus;

		assert_true(fold2(t, WREATH_MIN, m, 0) == m);
		assert_true(fold2(t, WREATH_MIN, 0, m) == m);
		assert_true(fold2(t, WREATH_MIN, m, m) == m);
		assert_true(fold2(t, WREATH_MAX, m, 0) == 0);
		assert_true(fold2(t, WREATH_MAX, 0, m) == 0);
		assert_true(fold2(t, WREATH_MAX, m, m) == m);
		assert_true(fold2(t, WREATH_SUM, m, m) == m);
		assert_true(fold2(t, WREATH_SUM, m, 0) == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_wrap_and_averages_truncate),
		cmocka_unit_test(floats_are_folded_in_order_and_divided_last),
		cmocka_unit_test(narrow_floats_are_rounded_once),
		cmocka_unit_test(overflow_is_infinity_or_nan),
		cmocka_unit_test(nan_is_canonical_and_wins),
		cmocka_unit_test(minus_zero_is_less_than_zero),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
