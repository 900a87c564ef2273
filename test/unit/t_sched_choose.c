/* SPDX-License-Identifier: MIT */
/*
 * Goal: the choice is total, alike everywhere and without surprises.
 * Method: every number of ranks with sizes from 0 to the largest.
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
			sched_choose(SCHED_ALL_REDUCE, 1, bytes, 0),
			SCHED_ONESHOT);
		assert_int_equal(
			sched_choose(SCHED_ALL_REDUCE, 0, bytes,
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
			assert_int_equal(sched_choose(SCHED_ALL_REDUCE, n, 0,
						      settings),
					 SCHED_ONESHOT);
			assert_int_equal(sched_choose(SCHED_ALL_REDUCE, n, 64,
						      settings),
					 SCHED_ONESHOT);
			assert_int_not_equal(sched_choose(SCHED_ALL_REDUCE, n,
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
				int at = order[sched_choose(SCHED_ALL_REDUCE, n,
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
			assert_int_not_equal(sched_choose(SCHED_ALL_REDUCE, n,
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
				sched_choose(SCHED_ALL_REDUCE, n, bytes,
					     SCHED_CROWDED),
				SCHED_RING);
			assert_int_equal(
				sched_choose(SCHED_ALL_REDUCE, n, bytes, 0),
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
			sched_choose(SCHED_ALL_REDUCE, 2, 8 << 10, settings),
			SCHED_ONESHOT);
		assert_int_equal(
			sched_choose(SCHED_ALL_REDUCE, 2, 1 << 20, settings),
			SCHED_RING);
	}
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
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
