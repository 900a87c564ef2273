/* SPDX-License-Identifier: MIT */
/*
 * Goal: a kernel is found for every type and operation; large vectors, many
 * vectors, copies and callers with an odd floating point environment get the
 * same bits.
 * Method: the scalar kernel in the default environment is the reference.
 */
#include "reduce_test.h"

#define N_BYTES 100003
#define N_SMALL 257

static unsigned char src[4][N_BYTES + 64], dst[4][N_BYTES + 64],
	want[N_BYTES + 64];

static void sizes_are_those_of_the_types(void **state)
{
	static const size_t sizes[WREATH_N_TYPES] = {1, 1, 2, 2, 4, 4, 8,
						     8, 2, 2, 4, 8, 1, 1};
	int type;

	(void)state;
	for (type = 0; type < WREATH_N_TYPES; type++)
		assert_int_equal(wreath_type_size(type), sizes[type]);
	assert_int_equal(wreath_type_size(WREATH_N_TYPES), 0);
	assert_int_equal(wreath_type_size((enum wreath_type) - 1), 0);
}

static void every_type_and_operation_has_a_kernel(void **state)
{
	struct test_table tables[3];
	int n = test_tables(tables), type, op;

	(void)state;
	assert_string_equal(reduce_isa(), tables[n - 1].name);
	for (type = 0; type < WREATH_N_TYPES; type++) {
		for (op = 0; op < REDUCE_N_OPS; op++) {
			assert_true(reduce_get(type, op, true) ==
				    tables[0].table->fn[type][op]);
			assert_true(reduce_get(type, op, false) ==
				    tables[n - 1].table->fn[type][op]);
			assert_non_null(reduce_get(type, op, false));
		}
		assert_true(reduce_get(type, WREATH_AVG, false) ==
			    reduce_get(type, WREATH_SUM, false));
		assert_null(reduce_get(type, WREATH_N_OPS, false));
		assert_null(reduce_get(type, (enum wreath_op) - 1, true));
	}
	assert_null(reduce_get(WREATH_N_TYPES, WREATH_SUM, false));
	assert_null(reduce_get((enum wreath_type) - 1, WREATH_SUM, true));
}

/* @n_src sources to @n_dst destinations at the given offsets in memory. */
static void expect_large(enum wreath_type type, enum wreath_op op, int n_src,
			 int n_dst, uint64_t r)
{
	size_t elem = wreath_type_size(type);
	const void *from[4];
	void *to[4] = {want};
	struct reduce_args args = {
		.dst = to,
		.n_dst = 1,
		.src = from,
		.n_src = n_src,
		.count = N_BYTES / elem - (r & 127),
		.divisor = r & 128 ? 5 : 0,
	};
	struct test_table tables[3];
	int n = test_tables(tables), t, k;

	for (k = 0; k < n_src; k++)
		from[k] = src[k] + (r >> (8 + 4 * k)) % 16;
	reduce_get(type, op, true)(&args);
	args.n_dst = n_dst;
	args.flags = r >> 24 & 1 ? REDUCE_STREAM : 0;
	for (k = 0; k < n_dst; k++) {
		to[k] = dst[k] + (r >> (32 + 6 * k)) % 64;
		/* Half of them aligned alike, with whole elements between. */
		if (r >> 25 & 1)
			to[k] = dst[k] + (r >> 32) % 8 * elem;
	}
	for (t = 1; t < n; t++) {
		memset(dst, 0, sizeof(dst));
		tables[t].table->fn[type][op](&args);
		for (k = 0; k < n_dst; k++)
			assert_memory_equal(to[k], want, args.count * elem);
	}
}

static void large_vectors_fold_at_any_alignment(void **state)
{
	uint64_t seed = test_seed(), r;
	int type, op, k, round;

	(void)state;
	for (type = 0; type < WREATH_N_TYPES; type++) {
		size_t elem = wreath_type_size(type);

		for (k = 0; k < 4; k++)
			test_fill(src[k], N_BYTES / elem, elem, &seed);
		for (op = 0; op < REDUCE_N_OPS; op++) {
			for (round = 0; round < 4; round++) {
				r = test_random(&seed);
				expect_large(type, op, 1 + (int)(r >> 56) % 4,
					     1 + (int)(r >> 60) % 4, r);
			}
		}
	}
}

static void the_most_vectors_fold(void **state)
{
	uint64_t seed = test_seed();
	const void *from[REDUCE_MAX];
	void *to[REDUCE_MAX];
	struct reduce_args args = {
		.dst = to,
		.n_dst = REDUCE_MAX,
		.src = from,
		.n_src = REDUCE_MAX,
		.count = N_SMALL,
		.divisor = REDUCE_MAX,
	};
	struct test_table tables[3];
	int n = test_tables(tables), type, k, t;

	(void)state;
	for (type = 0; type < WREATH_N_TYPES; type++) {
		size_t elem = wreath_type_size(type);
		size_t bytes = N_SMALL * elem;
		static unsigned char in[REDUCE_MAX][N_SMALL * 8],
			out[REDUCE_MAX][N_SMALL * 8];

		for (k = 0; k < REDUCE_MAX; k++) {
			test_fill(in[k], N_SMALL, elem, &seed);
			from[k] = in[k];
			to[k] = out[k];
		}
		reduce_get(type, WREATH_AVG, true)(&args);
		memcpy(want, out[0], bytes);
		for (t = 0; t < 2 * n; t++) {
			memset(out, 0, sizeof(out));
			args.flags = t & 1 ? REDUCE_STREAM : 0;
			tables[t / 2].table->fn[type][WREATH_SUM](&args);
			for (k = 0; k < REDUCE_MAX; k++)
				assert_memory_equal(out[k], want, bytes);
		}
	}
}

/* One source is a copy. */
static void copy_bytes(void *to, const void *from, size_t bytes,
		       unsigned int flags)
{
	struct reduce_args args = {
		.dst = &to,
		.n_dst = 1,
		.src = &from,
		.n_src = 1,
		.count = bytes,
		.flags = flags,
	};

	reduce_get(WREATH_UINT8, WREATH_SUM, false)(&args);
}

static void copies_are_exact_at_every_size_and_alignment(void **state)
{
	uint64_t seed = test_seed();
	size_t bytes, from, to;
	int flags;

	(void)state;
	test_fill(src[0], N_BYTES, 1, &seed);
	for (bytes = 0; bytes < 400; bytes++) {
		for (flags = 0; flags <= REDUCE_STREAM; flags++) {
			from = test_random(&seed) % 64;
			to = 1 + test_random(&seed) % 64;
			memset(dst[0], 0, 600);
			copy_bytes(dst[0] + to, src[0] + from, bytes,
				   (unsigned int)flags);
			assert_memory_equal(dst[0] + to, src[0] + from, bytes);
			assert_int_equal(dst[0][to - 1], 0);
			assert_int_equal(dst[0][to + bytes], 0);
		}
	}
	copy_bytes(dst[0] + 5, src[0] + 3, N_BYTES, REDUCE_STREAM);
	assert_memory_equal(dst[0] + 5, src[0] + 3, N_BYTES);
}

#if defined(__x86_64__)

static void expect_same_in(unsigned int csr, enum wreath_type type, int op,
			   struct reduce_args args)
{
	unsigned int was = _mm_getcsr(), before, after;
	size_t bytes = args.count * wreath_type_size(type);
	void *const in_want[1] = {want}, *const in_dst[1] = {dst[0]};
	struct test_table tables[3];
	int n = test_tables(tables), t;

	args.dst = in_want;
	reduce_get(type, op, true)(&args);
	args.dst = in_dst;
	for (t = 0; t < n; t++) {
		memset(dst[0], 0, bytes);
		_mm_setcsr((was & ~REDUCE_FP_CHANGED) | csr);
		/* An emulator may not keep all of it. */
		before = _mm_getcsr();
		tables[t].table->fn[type][op](&args);
		after = _mm_getcsr();
		_mm_setcsr(was);
		assert_int_equal(after & REDUCE_FP_CHANGED,
				 before & REDUCE_FP_CHANGED);
		assert_memory_equal(dst[0], want, bytes);
	}
}

/* MXCSR: three roundings, flush to zero, denormals are zero. */
static void the_callers_rounding_does_not_matter(void **state)
{
	static const unsigned int settings[] = {0x2000, 0x4000, 0x6000, 0x8000,
						0x0040, 0x8040, 0xe040};
	uint64_t seed = test_seed();
	const void *from[2] = {src[0], src[1]};
	struct reduce_args args = {
		.n_dst = 1,
		.src = from,
		.n_src = 2,
		.count = N_SMALL,
	};
	int type, op;
	size_t i;

	(void)state;
	for (type = 0; type < WREATH_N_TYPES; type++) {
		test_fill(src[0], N_SMALL, wreath_type_size(type), &seed);
		test_fill(src[1], N_SMALL, wreath_type_size(type), &seed);
		for (op = 0; op < REDUCE_N_OPS; op++) {
			for (i = 0; i < base_countof(settings); i++) {
				args.divisor = (unsigned int)i & 1 ? 3 : 0;
				args.flags = i & 2 ? REDUCE_STREAM : 0;
				expect_same_in(settings[i], type, op, args);
			}
		}
	}
}

#else

static void the_callers_rounding_does_not_matter(void **state)
{
	(void)state;
	skip();
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_those_of_the_types),
		cmocka_unit_test(every_type_and_operation_has_a_kernel),
		cmocka_unit_test(large_vectors_fold_at_any_alignment),
		cmocka_unit_test(the_most_vectors_fold),
		cmocka_unit_test(copies_are_exact_at_every_size_and_alignment),
		cmocka_unit_test(the_callers_rounding_does_not_matter),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
