/* SPDX-License-Identifier: MIT */
/*
 * Goal: schedules are made for every shape in range and for no other, and
 * agree among the ranks about what the executor takes as common.
 * Method: every algorithm with small and large shapes; shapes with one field
 * out of range; each allocation failing in turn.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_judge.h"

static void every_algorithm_has_a_name_and_none_lies_past_the_end(void **state)
{
	int i, j;

	(void)state;
	for (i = 0; i < SCHED_N_ALGOS; i++) {
		assert_non_null(sched_algo_name((enum sched_algo)i));
		for (j = 0; j < i; j++)
			assert_string_not_equal(
				sched_algo_name((enum sched_algo)i),
				sched_algo_name((enum sched_algo)j));
	}
	assert_null(sched_algo_name(SCHED_N_ALGOS));
	assert_null(sched_algo_name((enum sched_algo)-1));
	assert_string_equal(sched_collective_name(SCHED_ALL_REDUCE),
			    "all_reduce");
	assert_null(sched_collective_name(SCHED_N_COLLECTIVES));
}

static void a_shape_out_of_range_is_refused_by_the_field_name(void **state)
{
	static const struct {
		struct sched_shape shape;
		int rank;
		const char *text;
	} rows[] = {
		{{SCHED_N_COLLECTIVES, 0, 2, 1, 0, 0, NULL}, 0,
		 "collective 10"},
		{{0, SCHED_N_ALGOS, 2, 1, 0, 0, NULL}, 0,
		 "algo 7"},
		{{0, 0, 0, 1, 0, 0, NULL}, 0,
		 "n_ranks 0"},
		{{0, 0, -5, 1, 0, 0, NULL}, 0,
		 "n_ranks -5"},
		{{0, 0, SCHED_RANKS_MAX + 1, 1, 0, 0, NULL}, 0,
		 "n_ranks 16385"},
		{{0, 0, 2, 0, 0, 0, NULL}, 0,
		 "n_channels 0"},
		{{0, 0, 2, SCHED_CHANNELS_MAX + 1, 0, 0, NULL}, 0,
		 "n_channels 5"},
		{{0, 0, 2, 1, 1, 0, NULL}, 0,
		 "root 1"},
		{{0, 0, 2, 1, 0, 0, NULL}, -1,
		 "rank -1"},
		{{0, 0, 2, 1, 0, 0, NULL}, 2,
		 "rank 2"},
	};
	struct sched *sched = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(rows); i++) {
		assert_int_equal(
			sched_make(&rows[i].shape, rows[i].rank, &sched),
			WREATH_EINVAL);
		if (!strstr(base_error_text(), rows[i].text))
			fail_msg("'%s' has no '%s'", base_error_text(),
				 rows[i].text);
		assert_null(sched);
	}
}

static void check_alike(const struct sched *a, const struct sched *b)
{
	uint32_t i;

	assert_in_range(a->n_lanes, 1, SCHED_LANES_MAX);
	assert_int_equal(a->n_lanes, b->n_lanes);
	assert_int_equal(a->n_chunks, b->n_chunks);
	for (i = 0; i < a->n_lanes; i++)
		assert_int_equal(a->lanes[i].channel, b->lanes[i].channel);
}

static void ranks_agree_about_lanes_and_chunks(void **state)
{
	struct kit kit;
	int algo, n, k, rank;

	(void)state;
	for (algo = 0; algo < (int)base_countof(kit_algos); algo++) {
		for (n = 1; n <= 9; n++) {
			for (k = 1; k <= SCHED_CHANNELS_MAX; k++) {
				kit_make(&kit, kit_algos[algo], n, k);
				for (rank = 0; rank < n; rank++)
					check_alike(kit.scheds[rank],
						    kit.scheds[0]);
				kit_release(&kit);
			}
		}
	}
}

static void one_rank_copies_its_input_in_one_step_a_channel(void **state)
{
	struct kit kit;
	int algo, k;

	(void)state;
	for (algo = 0; algo < (int)base_countof(kit_algos); algo++) {
		for (k = 1; k <= SCHED_CHANNELS_MAX; k++) {
			kit_make(&kit, kit_algos[algo], 1, k);
			assert_int_equal(kit.scheds[0]->n_steps, k);
			assert_int_equal(kit.scheds[0]->n_peers, 0);
			assert_null(judge_run(&kit, 1, false, 1));
			kit_release(&kit);
		}
	}
}

/* Or it is refused, where one step would have to fold too many. */
static void the_largest_shape_fits(void **state)
{
	struct sched *sched;
	int i;

	(void)state;
	for (i = 0; i < SCHED_N_ALGOS * SCHED_N_COLLECTIVES; i++) {
		struct sched_shape shape = {
			.collective = (enum sched_collective)(i /
							      SCHED_N_ALGOS),
			.algo = (enum sched_algo)(i % SCHED_N_ALGOS),
			.n_ranks = SCHED_RANKS_MAX,
			.n_channels = SCHED_CHANNELS_MAX};
		int err = sched_make(&shape, SCHED_RANKS_MAX - 1, &sched);

		if (shape.algo == SCHED_ONESHOT || shape.algo == SCHED_TWOSHOT)
			assert_int_equal(err, WREATH_EUNSUP);
		if (err == WREATH_EUNSUP)
			continue;
		assert_int_equal(err, 0);
		sched_free(sched);
	}
}

static void without_memory_nothing_is_made(void **state)
{
	struct sched_shape shape = {SCHED_ALL_REDUCE, SCHED_TWOSHOT, 4, 2, 0, 0,
				    NULL};
	struct sched *sched = NULL;

	(void)state;
	base_alloc_fail_at(1);
	assert_int_equal(sched_make(&shape, 0, &sched), WREATH_ENOMEM);
	assert_null(sched);
	base_alloc_fail_at(0);
	sched_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			every_algorithm_has_a_name_and_none_lies_past_the_end),
		cmocka_unit_test(
			a_shape_out_of_range_is_refused_by_the_field_name),
		cmocka_unit_test(ranks_agree_about_lanes_and_chunks),
		cmocka_unit_test(
			one_rank_copies_its_input_in_one_step_a_channel),
		cmocka_unit_test(the_largest_shape_fits),
		cmocka_unit_test(without_memory_nothing_is_made),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
