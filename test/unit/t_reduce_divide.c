/* SPDX-License-Identifier: MIT */
/*
 * Goal: integers are divided as the language divides them.
 * Method: every 8- and 16-bit value, the edges and random values of the wider
 * types, by small, large, random divisors and powers of two.
 */
#include "reduce_test.h"

#define N_VALUES 65536

static uint64_t values[N_VALUES];

static int64_t signed_of(uint64_t bits, size_t elem)
{
	if (elem == 1)
		return (int8_t)bits;
	if (elem == 2)
		return (int16_t)bits;
	return elem == 4 ? (int32_t)bits : (int64_t)bits;
}

static uint64_t unsigned_of(uint64_t bits, size_t elem)
{
	return elem == 8 ? bits : bits & ((UINT64_C(1) << 8 * elem) - 1);
}

static void expect_quotients(enum wreath_type type, unsigned int divisor)
{
	static unsigned char v[N_VALUES * 8];
	size_t elem = wreath_type_size(type), i;
	bool is_signed = !(type & 1);

	for (i = 0; i < N_VALUES; i++)
		memcpy(v + i * elem, &values[i], elem);
	reduce_divide(v, N_VALUES, type, divisor);
	for (i = 0; i < N_VALUES; i++) {
		uint64_t got = 0, want;

		memcpy(&got, v + i * elem, elem);
		want = is_signed ? (uint64_t)(signed_of(values[i], elem) /
					      (int64_t)divisor)
				 : unsigned_of(values[i], elem) / divisor;
		if (got != unsigned_of(want, elem))
			print_message("type %d: %llx by %u\n", type,
				      (unsigned long long)values[i], divisor);
		assert_true(got == unsigned_of(want, elem));
	}
}

static void integers_are_divided_toward_zero(void **state)
{
	static const unsigned int edges[] = {
		2,          3,          4,          5,          6,
		7,          8,          9,          10,         16,
		64,         100,        127,        128,        255,
		256,        641,        65535,      65536,      65537,
		6700417,    0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe,
		0xffffffff,
	};
	uint64_t seed = test_seed();
	int type;
	size_t i;

	(void)state;
	/* The low 16 bits take every value; above them edges and noise. */
	for (i = 0; i < N_VALUES; i++) {
		uint64_t high = test_random(&seed);

		if ((high & 7) < 2)
			high = high & 1 ? 0 : UINT64_MAX;
		else if ((high & 7) == 2)
			high = UINT64_C(1) << 63 | UINT64_C(1) << 31;
		values[i] = (high & ~UINT64_C(0xffff)) | i;
	}
	for (type = WREATH_INT8; type <= WREATH_UINT64; type++) {
		for (i = 0; i < base_countof(edges); i++)
			expect_quotients(type, edges[i]);
		for (i = 0; i < 10; i++)
			expect_quotients(
				type,
				(unsigned int)(test_random(&seed) >> (32 + i)) |
					2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_are_divided_toward_zero),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
