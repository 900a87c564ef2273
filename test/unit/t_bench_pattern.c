/* SPDX-License-Identifier: MIT */
/*
 * Goal: what `wreath perf` calls right is right, and nothing else is.
 * Method: its expected results are compared with the reference kernels, folded
 * in several orders; every kind of damage to a result must be seen.  The
 * sources of the workbench are included, since no library has them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/perf_number.c"
#include "bench/perf_pattern.c"
#include "reduce/reduce.h"

/* Not a multiple of the period, and more than two of it. */
#define COUNT 2500
#define RANKS_MAX 64

static unsigned char inputs[RANKS_MAX][COUNT * 8];
static unsigned char result[COUNT * 8];

static void fill_all(enum wreath_type type, enum wreath_op op, int n)
{
	int r;

	for (r = 0; r < n; r++) {
		struct perf_pattern *pattern = perf_pattern_new(type, op, r, n);

		assert_non_null(pattern);
		perf_pattern_fill(pattern, inputs[r], COUNT);
		perf_pattern_free(pattern);
	}
}

/* Compare all of result with the reduction, or with the input of a rank. */
static void check_whole(struct perf_pattern *pattern, int source,
			struct perf_check *check)
{
	const struct perf_piece piece = {.source = source, .count = COUNT};

	memset(check, 0, sizeof(*check));
	perf_pattern_check(pattern, &piece, result,
			   source == PERF_REDUCED ? PERF_WRONG : PERF_CHANGED,
			   check);
}

/*
 * One rank after another from @first on, rounded at each step: what a ring
 * does, and the worst that rounding can be.
 */
static void fold(enum wreath_type type, enum wreath_op op, int n, int first)
{
	enum wreath_op fold_op = op == WREATH_AVG ? WREATH_SUM : op;
	reduce_fn *reduce = reduce_get(type, fold_op, true);
	void *dst = result;
	int i;

	memcpy(result, inputs[first], COUNT * wreath_type_size(type));
	for (i = 1; i <= n; i++) {
		const void *src[] = {result, inputs[(first + i) % n]};
		struct reduce_args args = {.dst = &dst, .n_dst = 1,
					   .src = src, .n_src = 2,
					   .count = COUNT};

		if (i == n) {
			args.n_src = 1;
			args.divisor = op == WREATH_AVG ? (unsigned int)n : 0;
		}
		reduce(&args);
	}
}

static void expected_results_are_those_of_the_kernels_in_any_order(void **s)
{
	static const int sizes[] = {1, 2, 3, 5, 8, 16, 64};
	int type, op;
	size_t i;

	(void)s;
	for (type = 0; type < WREATH_N_TYPES; type++) {
		for (op = 0; op < WREATH_N_OPS; op++) {
			for (i = 0; i < base_countof(sizes); i++) {
				int n = sizes[i];
				struct perf_pattern *pattern = perf_pattern_new(
					(enum wreath_type)type,
					(enum wreath_op)op, n / 2, n);
				struct perf_check check;
				int first;

				fill_all((enum wreath_type)type,
					 (enum wreath_op)op, n);
				for (first = 0; first < n;
				     first += 1 + n / 3) {
					fold((enum wreath_type)type,
					     (enum wreath_op)op, n, first);
					check_whole(pattern, PERF_REDUCED,
						    &check);
					assert_int_equal(check.wrong, 0);
				}
				perf_pattern_free(pattern);
			}
		}
	}
}

static void every_changed_element_is_seen_and_counted(void **s)
{
	struct perf_pattern *pattern = perf_pattern_new(
		WREATH_FLOAT32, WREATH_SUM, 1, 4);
	struct perf_check check;
	float *values = (float *)(void *)result;
	int i;

	(void)s;
	fill_all(WREATH_FLOAT32, WREATH_SUM, 4);
	fold(WREATH_FLOAT32, WREATH_SUM, 4, 0);
	for (i = 0; i < COUNT; i++) {
		float was = values[i];

		values[i] = nextafterf(was, 1e9f);
		check_whole(pattern, PERF_REDUCED, &check);
		assert_int_equal(check.wrong, 1);
		assert_int_equal(check.first, i);
		assert_true(fabs(check.want - (double)was) < 1e-9);
		assert_true(fabs(check.got - (double)values[i]) < 1e-9);
		values[i] = was;
	}
	values[7] = NAN;
	values[COUNT - 1] += 1;
	check_whole(pattern, PERF_REDUCED, &check);
	assert_int_equal(check.wrong, 2);
	assert_int_equal(check.first, 7);
	assert_true(isnan(check.got));
	perf_pattern_free(pattern);
}

/* A piece in another's place, a rank's share left out or put in twice. */
static void misplaced_and_missing_pieces_are_seen(void **s)
{
	static const size_t pieces[] = {1, 16, 64, 100, 256, 625, PERIOD};
	struct perf_pattern *pattern = perf_pattern_new(
		WREATH_INT32, WREATH_SUM, 0, 4);
	struct perf_check check;
	size_t i;

	(void)s;
	fill_all(WREATH_INT32, WREATH_SUM, 4);
	for (i = 0; i < base_countof(pieces); i++) {
		size_t bytes = pieces[i] * 4;

		fold(WREATH_INT32, WREATH_SUM, 4, 0);
		memmove(result, result + bytes, bytes);
		check_whole(pattern, PERF_REDUCED, &check);
		assert_true(check.wrong > 0);
	}
	memcpy(inputs[2], inputs[1], sizeof(inputs[2]));
	fold(WREATH_INT32, WREATH_SUM, 4, 0);
	check_whole(pattern, PERF_REDUCED, &check);
	assert_true(check.wrong > COUNT / 2);
	memset(inputs[2], 0, sizeof(inputs[2]));
	fold(WREATH_INT32, WREATH_SUM, 4, 0);
	check_whole(pattern, PERF_REDUCED, &check);
	assert_true(check.wrong > COUNT / 2);
	perf_pattern_free(pattern);
}

static void a_changed_input_is_seen(void **s)
{
	struct perf_pattern *pattern = perf_pattern_new(
		WREATH_FLOAT16, WREATH_MAX, 2, 3);
	struct perf_check check;

	(void)s;
	perf_pattern_fill(pattern, result, COUNT);
	check_whole(pattern, 2, &check);
	assert_int_equal(check.wrong, 0);
	result[2 * 1500] ^= 1;
	check_whole(pattern, 2, &check);
	assert_int_equal(check.wrong, 1);
	assert_int_equal(check.first, 1500);
	assert_int_equal(check.fault, PERF_CHANGED);
	perf_pattern_free(pattern);
}

/* Every rank has its own, and any piece of it is known in any place. */
static void moved_pieces_are_known_wherever_they_are(void **s)
{
	static const enum wreath_type types[] = {WREATH_INT8, WREATH_FLOAT16,
						 WREATH_FLOAT32, WREATH_INT64};
	uint64_t state = 1;
	int t, r, i;

	(void)s;
	for (t = 0; t < (int)base_countof(types); t++) {
		size_t size = wreath_type_size(types[t]);
		struct perf_pattern *reader = perf_pattern_new(
			types[t], PERF_NO_OP, 0, 4);

		for (r = 0; r < 4; r++) {
			struct perf_pattern *pattern = perf_pattern_new(
				types[t], PERF_NO_OP, r, 4);

			perf_pattern_fill(pattern, inputs[r], COUNT);
			perf_pattern_free(pattern);
		}
		for (i = 0; i < 400; i++) {
			struct perf_check check = {0};
			struct perf_piece piece = {.source = i % 4};

			state = state * 6364136223846793005ull + 1;
			piece.from = (state >> 33) % COUNT;
			piece.count = (state >> 20) % (COUNT - piece.from) + 1;
			piece.at = (state >> 40) % (COUNT - piece.count + 1);
			memcpy(result + piece.at * size,
			       inputs[i % 4] + piece.from * size,
			       piece.count * size);
			perf_pattern_check(reader, &piece, result, PERF_WRONG,
					   &check);
			assert_int_equal(check.wrong, 0);
			/* The last element, and where it is. */
			result[(piece.at + piece.count) * size - 1] ^= 1;
			perf_pattern_check(reader, &piece, result, PERF_WRONG,
					   &check);
			assert_int_equal(check.wrong, 1);
			assert_int_equal(check.first,
					 piece.at + piece.count - 1);
			/* Of another rank, and from another place. */
			piece.source = (i + 1) % 4;
			memset(&check, 0, sizeof(check));
			perf_pattern_check(reader, &piece, result, PERF_WRONG,
					   &check);
			assert_true(check.wrong >= (int64_t)piece.count / 2);
		}
		perf_pattern_free(reader);
	}
}

static void what_was_never_written_is_known(void **s)
{
	struct perf_pattern *pattern = perf_pattern_new(
		WREATH_FLOAT32, PERF_NO_OP, 1, 4);
	const struct perf_piece piece = {.source = PERF_UNTOUCHED, .at = 10,
					 .count = COUNT - 10};
	struct perf_check check = {0};

	(void)s;
	perf_pattern_blank(result, sizeof(result));
	memset(result, 0, 40);
	perf_pattern_check(pattern, &piece, result, PERF_WRITTEN, &check);
	assert_int_equal(check.wrong, 0);
	result[4 * 20 + 3] = 0;
	perf_pattern_check(pattern, &piece, result, PERF_WRITTEN, &check);
	assert_int_equal(check.wrong, 1);
	assert_int_equal(check.first, 20);
	assert_int_equal(check.fault, PERF_WRITTEN);
	perf_pattern_free(pattern);
}

static void numbers_survive_decoding_and_encoding(void **s)
{
	static const enum wreath_type types[] = {
		WREATH_FLOAT16, WREATH_BFLOAT16, WREATH_FLOAT8E4M3,
		WREATH_FLOAT8E5M2};
	size_t i;

	(void)s;
	for (i = 0; i < base_countof(types); i++) {
		size_t size = wreath_type_size(types[i]);
		uint32_t bits;

		for (bits = 0; bits < 1u << 8 * size; bits++) {
			uint16_t again = 0;
			double value = perf_decode(types[i], &bits);

			if (isnan(value) || isinf(value))
				continue;
			perf_encode(types[i], value, &again);
			assert_int_equal(again, bits);
		}
	}
}

static void known_numbers_are_read_right(void **s)
{
	static const uint8_t greatest = 0x7e, nan8 = 0x7f, least = 0x01;
	static const uint8_t inf52 = 0x7c;
	static const uint16_t half_max = 0x7bff, bf_one = 0x3f80;
	const int64_t negative = -5;

	(void)s;
	assert_true(perf_decode(WREATH_FLOAT8E4M3, &greatest) > 447.9);
	assert_true(perf_decode(WREATH_FLOAT8E4M3, &greatest) < 448.1);
	assert_true(isnan(perf_decode(WREATH_FLOAT8E4M3, &nan8)));
	assert_true(isnan(perf_decode(WREATH_FLOAT8E5M2, &nan8)));
	assert_true(isinf(perf_decode(WREATH_FLOAT8E5M2, &inf52)));
	assert_true(fabs(perf_decode(WREATH_FLOAT8E5M2, &least) - 0x1p-16) <
		    1e-12);
	assert_true(fabs(perf_decode(WREATH_FLOAT8E4M3, &least) - 0x1p-9) <
		    1e-12);
	assert_true(fabs(perf_decode(WREATH_FLOAT16, &half_max) - 65504) < 1);
	assert_true(fabs(perf_decode(WREATH_BFLOAT16, &bf_one) - 1) < 1e-9);
	assert_true(fabs(perf_decode(WREATH_INT64, &negative) + 5) < 1e-9);
}

static void distance_counts_representable_values(void **s)
{
	const float one = 1, zero = 0, minus_zero = -0.0f, not_one = NAN;
	const float next = nextafterf(1, 2);
	const float tiny = nextafterf(0, 1), minus_tiny = nextafterf(0, -1);

	(void)s;
	assert_int_equal(perf_distance(WREATH_FLOAT32, &one, &one), 0);
	assert_int_equal(perf_distance(WREATH_FLOAT32, &one, &next), 1);
	assert_int_equal(perf_distance(WREATH_FLOAT32, &zero, &minus_zero), 0);
	assert_int_equal(perf_distance(WREATH_FLOAT32, &tiny, &minus_tiny), 2);
	assert_true(perf_distance(WREATH_FLOAT32, &one, &not_one) > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			expected_results_are_those_of_the_kernels_in_any_order),
		cmocka_unit_test(every_changed_element_is_seen_and_counted),
		cmocka_unit_test(misplaced_and_missing_pieces_are_seen),
		cmocka_unit_test(a_changed_input_is_seen),
		cmocka_unit_test(moved_pieces_are_known_wherever_they_are),
		cmocka_unit_test(what_was_never_written_is_known),
		cmocka_unit_test(numbers_survive_decoding_and_encoding),
		cmocka_unit_test(known_numbers_are_read_right),
		cmocka_unit_test(distance_counts_representable_values),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
