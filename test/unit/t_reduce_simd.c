/* SPDX-License-Identifier: MIT */
/*
 * Goal: the SIMD kernels give the bits of the scalar reference.
 * Method: all pairs of 8-bit elements, every 16-bit element with a spread of
 * others, random vectors of all types with many special values, up to four
 * sources and several divisors, so that narrow floats round everywhere; every
 * operation.
 */
#include "reduce_test.h"

#define N_VALUES 65536

#define MAX_SRC 4

static const unsigned int divisors[] = {0, 3, 7, 1000, 0xfffffff1};

static unsigned char src[MAX_SRC][N_VALUES * 8], want[N_VALUES * 8],
	got[N_VALUES * 8];

/* Fold by every table, and compare with the first one. */
static void compare(enum wreath_type type, enum wreath_op op, int n_src,
		    unsigned int divisor)
{
	const void *from[MAX_SRC] = {src[0], src[1], src[2], src[3]};
	void *to[1] = {want};
	struct reduce_args args = {
		.dst = to,
		.n_dst = 1,
		.src = from,
		.n_src = n_src,
		.count = N_VALUES,
		.divisor = divisor,
	};
	struct test_table tables[3];
	size_t elem = wreath_type_size(type), i;
	int n = test_tables(tables), t;

	tables[0].table->fn[type][op](&args);
	to[0] = got;
	for (t = 1; t < n; t++) {
		memset(got, 0xaa, N_VALUES * elem);
		tables[t].table->fn[type][op](&args);
		if (!memcmp(want, got, N_VALUES * elem))
			continue;
		for (i = 0; !memcmp(want + i, got + i, elem); i += elem)
			;
		print_message("%s: type %d, op %d, divisor %u, element %zu\n",
			      tables[t].name, type, op, divisor, i / elem);
		assert_memory_equal(want + i, got + i, elem);
	}
}

static void compare_ops(enum wreath_type type, int n_src, size_t n_divisors)
{
	size_t d;
	int op;

	for (op = 0; op < REDUCE_N_OPS; op++) {
		for (d = 0; d < n_divisors; d++)
			compare(type, op, n_src, divisors[d]);
	}
}

static void all_pairs_of_bytes_agree(void **state)
{
	size_t i;
	int type;

	(void)state;
	for (type = 0; type < WREATH_N_TYPES; type++) {
		if (wreath_type_size(type) != 1)
			continue;
		for (i = 0; i < N_VALUES; i++) {
			src[0][i] = (unsigned char)i;
			src[1][i] = (unsigned char)(i >> 8);
		}
		compare_ops(type, 2, base_countof(divisors));
	}
}

/*
 * The others: zero, denormals, powers of two and their neighbours, NaN and
 * infinities of both 16-bit floats, and random ones.
 */
static void every_16_bit_value_agrees_with_a_spread_of_others(void **state)
{
	uint64_t seed = test_seed();
	uint16_t a, b;
	size_t i;
	int type, k;

	(void)state;
	for (k = 0; k < 32; k++) {
		b = (uint16_t)test_random(&seed);
		if (k < 26)
			test_fill(&b, 1, 2, &seed);
		if (k < 16)
			b = (uint16_t)((b & 0x8001) | (unsigned int)k << 11);
		for (i = 0; i < N_VALUES; i++) {
			a = (uint16_t)i;
			memcpy(src[0] + 2 * i, &a, 2);
			memcpy(src[1] + 2 * i, &b, 2);
		}
		for (type = 0; type < WREATH_N_TYPES; type++) {
			if (wreath_type_size(type) == 2)
				compare_ops(type, 2, 2);
		}
	}
}

static void all_types_agree_on_random_values(void **state)
{
	uint64_t seed = test_seed();
	int type, k;

	(void)state;
	for (type = 0; type < WREATH_N_TYPES; type++) {
		for (k = 0; k < MAX_SRC; k++)
			test_fill(src[k], N_VALUES, wreath_type_size(type),
				  &seed);
		for (k = 2; k <= MAX_SRC; k++)
			compare_ops(type, k, base_countof(divisors));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_pairs_of_bytes_agree),
		cmocka_unit_test(
			every_16_bit_value_agrees_with_a_spread_of_others),
		cmocka_unit_test(all_types_agree_on_random_values),
	};
	struct test_table tables[3];

	alarm(120);
	if (test_tables(tables) == 1) {
		printf("this processor has no SIMD kernels\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
