/* SPDX-License-Identifier: MIT */
/*
 * Goal: the choice is total, alike everywhere and without surprises.
 * Method: every number of ranks with sizes from 0 to the largest; the chooser
 * against the predictions and the table that it stands on.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_kit.h"

/* All of enum sched_setting, or'd in every way. */
#define N_SETTINGS ((SCHED_CROWDED | SCHED_APART) + 1u)

static void one_rank_or_none_is_oneshot(void **state)
{
	size_t bytes;

	(void)state;
	for (bytes = 1; bytes; bytes *= 2) {
		assert_int_equal(
			sched_choose(1, bytes, 0),
			SCHED_ONESHOT);
		assert_int_equal(
			sched_choose(0, bytes,
				     SCHED_CROWDED),
			SCHED_ONESHOT);
	}
}

/* What fits a cache line is one wait, whatever else is so. */
static void small_is_oneshot_and_large_is_not(void **state)
{
	int n;

	(void)state;
	for (n = 2; n <= SCHED_DIRECT_RANKS_MAX; n++) {
		unsigned int settings;

		for (settings = 0; settings < N_SETTINGS; settings++) {
			assert_int_equal(sched_choose(n, 0,
						      settings),
					 SCHED_ONESHOT);
			assert_int_equal(sched_choose(n, 64,
						      settings),
					 SCHED_ONESHOT);
			assert_int_not_equal(sched_choose(n,
							  SIZE_MAX, settings),
					     SCHED_ONESHOT);
		}
	}
}

/* oneshot, then twoshot, then ring: each takes over once. */
static void a_larger_message_never_goes_back(void **state)
{
	static const int order[] = {[SCHED_ONESHOT] = 0,
				    [SCHED_TWOSHOT] = 1,
				    [SCHED_RING] = 2};
	int n;

	(void)state;
	for (n = 2; n <= SCHED_RANKS_MAX; n++) {
		unsigned int settings;

		for (settings = 0; settings < N_SETTINGS; settings++) {
			int last = 0;
			size_t bytes;

			for (bytes = 1; bytes; bytes *= 2) {
				int at = order[sched_choose(n,
							    bytes, settings)];

				assert_true(at >= last);
				last = at;
			}
		}
	}
}

static void a_crowd_never_runs_a_ring(void **state)
{
	int n;

	(void)state;
	for (n = 2; n <= SCHED_DIRECT_RANKS_MAX; n++) {
		size_t bytes;

		for (bytes = 1; bytes; bytes *= 2)
			assert_int_not_equal(sched_choose(n,
							  bytes, SCHED_CROWDED),
					     SCHED_RING);
	}
}

static void more_ranks_than_a_fold_takes_run_a_ring(void **state)
{
	int n;

	(void)state;
	for (n = SCHED_DIRECT_RANKS_MAX + 1; n <= SCHED_RANKS_MAX; n++) {
		size_t bytes;

		for (bytes = 1; bytes; bytes *= 2) {
			assert_int_equal(
				sched_choose(n, bytes,
					     SCHED_CROWDED),
				SCHED_RING);
			assert_int_equal(
				sched_choose(n, bytes, 0),
				SCHED_RING);
		}
	}
}

static void two_ranks_apart_have_one_lane_for_what_is_large(void **state)
{
	unsigned int crowded;

	(void)state;
	for (crowded = 0; crowded <= SCHED_CROWDED; crowded++) {
		unsigned int settings = SCHED_APART | crowded;

		assert_int_equal(
			sched_choose(2, 8 << 10, settings),
			SCHED_ONESHOT);
		assert_int_equal(
			sched_choose(2, 1 << 20, settings),
			SCHED_RING);
	}
}

/* ---- the chooser ---- */

static struct sched_shape shape_of(int n_ranks, int n_nodes)
{
	return (struct sched_shape){.collective = SCHED_ALL_REDUCE,
				    .n_ranks = n_ranks,
				    .n_channels = n_nodes > 1 ? 2 : 1,
				    .n_nodes = n_nodes};
}

/* Two unequal rails, and slots. */
static struct sched_cost two_rails(int n_ranks, int n_cores)
{
	struct sched_cost cost;

	sched_cost_default(&cost, n_ranks, n_cores);
	cost.n_rails = 2;
	cost.tiers[1].bandwidth = 2e9;
	cost.tiers[2].bandwidth = 1e9;
	cost.tiers[2].latency = 20e-6;
	return cost;
}

static void chosen(struct sched_chooser *chooser,
		   const struct sched_shape *shape,
		   const struct sched_cost *cost)
{
	if (sched_chooser_init(chooser, shape, cost, NULL, 0))
		fail_msg("%s", base_error_text());
}

/* Or one near it: between two sizes that choose alike nobody looks. */
static void the_least_prediction_is_chosen(void **state)
{
	static const int n_ranks[] = {2, 4, 5, 8, 16, 64};
	size_t i, bytes;

	(void)state;
	for (i = 0; i < base_countof(n_ranks); i++) {
		struct sched_shape shape = shape_of(n_ranks[i], 2);
		struct sched_cost cost = two_rails(n_ranks[i], 4);
		struct sched_chooser chooser;

		chosen(&chooser, &shape, &cost);
		for (bytes = 1; bytes <= 1u << 30; bytes *= 2) {
			enum sched_algo algo =
				sched_chooser_find(&chooser, bytes)->algo;
			double own = sched_chooser_seconds(&chooser, algo,
							   bytes);
			int a;

			assert_true(own > 0);
			for (a = 0; a < SCHED_N_ALGOS; a++) {
				double other = sched_chooser_seconds(
					&chooser, (enum sched_algo)a, bytes);

				assert_true(other < 0 || own <= 1.03 * other);
			}
		}
	}
}

/* Each rank makes its own; the order of ranks on nodes is no matter. */
static void equal_parameters_choose_alike(void **state)
{
	struct sched_shape shape = shape_of(8, 2);
	struct sched_cost cost = two_rails(8, 2);
	struct sched_chooser a, b;

	(void)state;
	memset(&a, 0x55, sizeof(a));
	memset(&b, 0xaa, sizeof(b));
	chosen(&a, &shape, &cost);
	chosen(&b, &shape, &cost);
	assert_memory_equal(&a, &b, sizeof(a));
}

static void every_size_has_a_span(void **state)
{
	int n;

	(void)state;
	for (n = 1; n <= 80; n += n < 16 ? 1 : 7) {
		struct sched_shape shape = shape_of(n, n > 1 ? 2 : 1);
		struct sched_cost cost = two_rails(n, 2);
		struct sched_chooser chooser;
		uint32_t i;

		chosen(&chooser, &shape, &cost);
		assert_in_range(chooser.n_spans, 1, SCHED_SPANS_MAX);
		for (i = 1; i < chooser.n_spans; i++)
			assert_true(chooser.spans[i].bytes_max >
				    chooser.spans[i - 1].bytes_max);
		assert_true(chooser.spans[chooser.n_spans - 1].bytes_max ==
			    SIZE_MAX);
		assert_true(chooser.has_form[sched_chooser_find(
			&chooser, SIZE_MAX)->algo]);
	}
}

/* What was measured stands above the model. */
static void plain_ports_keep_their_table(void **state)
{
	static const int n_ranks[] = {2, 4, 8, 16};
	size_t i, bytes;
	unsigned int crowded;

	(void)state;
	for (i = 0; i < base_countof(n_ranks); i++)
		for (crowded = 0; crowded <= SCHED_CROWDED; crowded++) {
			struct sched_shape shape = shape_of(n_ranks[i], 1);
			struct sched_chooser chooser;
			struct sched_cost cost;

			sched_cost_default(&cost, n_ranks[i], 2);
			cost.is_plain = true;
			assert_int_equal(sched_chooser_init(&chooser, &shape,
							    &cost, NULL,
							    crowded), 0);
			for (bytes = 1; bytes <= 1u << 30; bytes *= 2)
				assert_int_equal(
					sched_chooser_find(&chooser, bytes)
						->algo,
					sched_choose(n_ranks[i], bytes,
						     crowded));
		}
}

static void two_ranks_apart_keep_theirs(void **state)
{
	struct sched_shape shape = shape_of(2, 2);
	struct sched_cost cost = two_rails(2, 4);
	struct sched_chooser chooser;

	(void)state;
	cost.n_rails = 1;
	assert_int_equal(sched_chooser_init(&chooser, &shape, &cost, NULL,
					    SCHED_APART), 0);
	assert_int_equal(sched_chooser_find(&chooser, 32 << 10)->algo,
			 SCHED_ONESHOT);
	assert_int_equal(sched_chooser_find(&chooser, 33 << 10)->algo,
			 SCHED_RING);
}

/* The model alone comes near it: it was fitted to the same measurements. */
static void the_model_agrees_with_the_table(void **state)
{
	static const int n_ranks[] = {2, 4, 8};
	size_t i, bytes;

	(void)state;
	for (i = 0; i < base_countof(n_ranks); i++) {
		struct sched_shape shape = shape_of(n_ranks[i], 1);
		struct sched_chooser chooser;
		struct sched_cost cost;

		sched_cost_default(&cost, n_ranks[i], 2);
		chosen(&chooser, &shape, &cost);
		/* The borders are apart by a factor of 8 at most. */
		for (bytes = 1; bytes <= 128; bytes *= 2)
			assert_int_equal(sched_chooser_find(&chooser, bytes)
						 ->algo, SCHED_ONESHOT);
		for (bytes = 32 << 10; bytes <= 1u << 28; bytes *= 2)
			assert_int_equal(sched_chooser_find(&chooser, bytes)
						 ->algo, SCHED_TWOSHOT);
	}
}

/* Nor is what the last failed call said lost by it. */
static void forms_that_fold_too_few_are_passed_by_silently(void **state)
{
	struct sched_shape shape = shape_of(SCHED_DIRECT_RANKS_MAX + 1, 1);
	struct sched_chooser chooser;
	struct sched_cost cost;

	(void)state;
	sched_cost_default(&cost, shape.n_ranks, 2);
	base_error(WREATH_EINVAL, "before");
	chosen(&chooser, &shape, &cost);
	assert_string_equal(base_error_text(), "before");
	assert_false(chooser.has_form[SCHED_TWOSHOT]);
	assert_false(chooser.has_form[SCHED_SPLIT_RING]);
	shape.collective = SCHED_REDUCE;
	chosen(&chooser, &shape, &cost);
	assert_string_equal(base_error_text(), "before");
	assert_false(chooser.has_form[SCHED_DIRECT]);
	assert_true(chooser.has_form[SCHED_RING]);
}

static void no_memory_and_no_speed_are_told(void **state)
{
	struct sched_shape shape = shape_of(4, 1);
	struct sched_chooser chooser;
	struct sched_cost cost;

	(void)state;
	sched_cost_default(&cost, 4, 4);
	base_alloc_fail_at(3);
	assert_int_equal(sched_chooser_init(&chooser, &shape, &cost, NULL, 0),
			 WREATH_ENOMEM);
	base_alloc_fail_at(0);
	cost.copy = 0;
	assert_int_equal(sched_chooser_init(&chooser, &shape, &cost, NULL, 0),
			 WREATH_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_rank_or_none_is_oneshot),
		cmocka_unit_test(small_is_oneshot_and_large_is_not),
		cmocka_unit_test(a_larger_message_never_goes_back),
		cmocka_unit_test(a_crowd_never_runs_a_ring),
		cmocka_unit_test(more_ranks_than_a_fold_takes_run_a_ring),
		cmocka_unit_test(
			two_ranks_apart_have_one_lane_for_what_is_large),
		cmocka_unit_test(the_least_prediction_is_chosen),
		cmocka_unit_test(equal_parameters_choose_alike),
		cmocka_unit_test(every_size_has_a_span),
		cmocka_unit_test(plain_ports_keep_their_table),
		cmocka_unit_test(two_ranks_apart_keep_theirs),
		cmocka_unit_test(the_model_agrees_with_the_table),
		cmocka_unit_test(
			forms_that_fold_too_few_are_passed_by_silently),
		cmocka_unit_test(no_memory_and_no_speed_are_told),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
