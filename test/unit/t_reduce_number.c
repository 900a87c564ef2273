/* SPDX-License-Identifier: MIT */
/*
 * Goal: narrow floats are widened exactly and rounded to nearest even.
 * Method: the value of every code is computed in double from its definition;
 * rounding is checked at every code, at the middle between every two
 * neighbours and next to it, and on random numbers against a search for the
 * nearest code.
 */
#include <float.h>
#include <math.h>

#include "reduce/number.h"
#include "reduce_test.h"

/* A format by its definition, and the functions under test. */
struct format {
	const char *name;
	int bits, mant, bias;
	bool has_infinity;
	unsigned int n_finite; /* non-negative finite codes, from 0 */
	unsigned int nan;      /* canonical */
	float (*open)(unsigned int code);
	unsigned int (*close)(float x);
};

static float open_f16(unsigned int code)
{
	return number_f16_open((uint16_t)code);
}

static unsigned int close_f16(float x)
{
	return number_f16_close(x);
}

static float open_bf16(unsigned int code)
{
	return number_bf16_open((uint16_t)code);
}

static unsigned int close_bf16(float x)
{
	return number_bf16_close(x);
}

static float open_e4m3(unsigned int code)
{
	return number_e4m3_open((uint8_t)code);
}

static unsigned int close_e4m3(float x)
{
	return number_e4m3_close(x);
}

static float open_e5m2(unsigned int code)
{
	return number_e5m2_open((uint8_t)code);
}

static unsigned int close_e5m2(float x)
{
	return number_e5m2_close(x);
}

static const struct format formats[] = {
	{"float16", 16, 10, 15, true, 0x7c00, 0x7e00, open_f16, close_f16},
	{"bfloat16", 16, 7, 127, true, 0x7f80, 0x7fc0, open_bf16, close_bf16},
	{"e4m3", 8, 3, 7, false, 0x7f, 0x7f, open_e4m3, close_e4m3},
	{"e5m2", 8, 2, 15, true, 0x7c, 0x7e, open_e5m2, close_e5m2},
};

/*
 * Of a non-negative code as if the exponents went on for ever, so that the
 * code behind the largest finite one has the value at which it would be.
 */
static double value_of(const struct format *f, unsigned int code)
{
	int exponent = (int)(code >> f->mant);
	int mantissa = (int)(code & ((1u << f->mant) - 1));

	if (!exponent)
		return ldexp(mantissa, 1 - f->bias - f->mant);
	return ldexp(mantissa + (1 << f->mant), exponent - f->bias - f->mant);
}

static unsigned int overflow_of(const struct format *f)
{
	return f->has_infinity ? f->n_finite : f->nan;
}

/* @x and -@x give @code, but a NaN has no sign. */
static void expect_code(const struct format *f, float x, unsigned int code)
{
	unsigned int sign = 1u << (f->bits - 1);
	unsigned int negative = code == f->nan ? code : code | sign;

	if (f->close(x) != code || f->close(-x) != negative)
		print_message("%s: %a\n", f->name, (double)x);
	assert_int_equal(f->close(x), code);
	assert_int_equal(f->close(-x), negative);
}

static void every_code_has_its_value(void **state)
{
	unsigned int i, code, sign;

	(void)state;
	for (i = 0; i < base_countof(formats); i++) {
		const struct format *f = &formats[i];

		sign = 1u << (f->bits - 1);
		for (code = 0; code < f->n_finite; code++) {
			assert_true((double)f->open(code) == value_of(f, code));
			assert_true((double)f->open(code | sign) ==
				    -value_of(f, code));
			assert_true(signbit(f->open(code | sign)));
			expect_code(f, f->open(code), code);
		}
		if (f->has_infinity)
			assert_true(isinf(f->open(code)) &&
				    isinf(f->open(code++ | sign)));
		for (; code < sign; code++) {
			assert_true(isnan(f->open(code)));
			assert_true(isnan(f->open(code | sign)));
			assert_int_equal(f->close(f->open(code)), f->nan);
			assert_int_equal(f->close(f->open(code | sign)),
					 f->nan);
		}
	}
}

static void the_middle_goes_to_the_even_neighbour(void **state)
{
	unsigned int i, code;

	(void)state;
	for (i = 0; i < base_countof(formats); i++) {
		const struct format *f = &formats[i];

		for (code = 0; code < f->n_finite; code++) {
			double middle =
				(value_of(f, code) + value_of(f, code + 1)) / 2;
			float x = (float)middle;
			unsigned int up = code + 1 < f->n_finite
						  ? code + 1
						  : overflow_of(f);

			/* Every middle is a float32. */
			assert_true((double)x == middle);
			expect_code(f, nextafterf(x, 0), code);
			expect_code(f, x, code & 1 ? up : code);
			expect_code(f, nextafterf(x, INFINITY), up);
		}
		expect_code(f, FLT_MAX, overflow_of(f));
		expect_code(f, INFINITY, overflow_of(f));
		expect_code(f, FLT_TRUE_MIN, 0);
	}
}

/* By bisection over the values of the codes. */
static unsigned int nearest(const struct format *f, double x)
{
	unsigned int low = 0, high = f->n_finite;
	double below, above;

	while (high - low > 1) {
		unsigned int middle = (low + high) / 2;

		if (value_of(f, middle) <= x)
			low = middle;
		else
			high = middle;
	}
	below = x - value_of(f, low);
	above = value_of(f, low + 1) - x;
	if (below > above || (below == above && (low & 1)))
		low++;
	return low < f->n_finite ? low : overflow_of(f);
}

static void random_numbers_go_to_the_nearest_code(void **state)
{
	uint64_t seed = test_seed();
	unsigned int i;
	int k;

	(void)state;
	for (k = 0; k < 200000; k++) {
		uint32_t bits = (uint32_t)test_random(&seed) & 0x7fffffff;

		/* Half of them where the narrowest formats have codes. */
		if (k & 1)
			bits = (bits & 0x07ffffff) + ((127 - 18) << 23);
		if (bits > 0x7f800000)
			continue;
		for (i = 0; i < base_countof(formats); i++)
			expect_code(
				&formats[i], number_f32(bits),
				nearest(&formats[i], (double)number_f32(bits)));
	}
}

static void nan_is_canonical_from_every_payload(void **state)
{
	uint64_t seed = test_seed();
	unsigned int i;
	int k;

	(void)state;
	for (k = 0; k < 100000; k++) {
		uint64_t bits = test_random(&seed);
		uint32_t single = (uint32_t)bits | 0x7f800001;

		for (i = 0; i < base_countof(formats); i++)
			assert_int_equal(formats[i].close(number_f32(single)),
					 formats[i].nan);
		assert_int_equal(
			number_bits32(number_f32_close(number_f32(single))),
			0x7fc00000);
		bits |= UINT64_C(0x7ff0000000000001);
		assert_true(number_bits64(number_f64_close(number_f64(bits))) ==
			    UINT64_C(0x7ff8000000000000));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_its_value),
		cmocka_unit_test(the_middle_goes_to_the_even_neighbour),
		cmocka_unit_test(random_numbers_go_to_the_nearest_code),
		cmocka_unit_test(nan_is_canonical_from_every_payload),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
