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
	static const uint32_t too_large[] = {0, 2}, missing[] = {1, 1};
	const struct {
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
		 "root 1 is not 0, and all_reduce has no root"},
		{{SCHED_BROADCAST, 0, 2, 1, 2, 0, NULL}, 0,
		 "root 2 is not in [0, 2)"},
		{{0, 0, 2, 1, 0, -1, NULL}, 0,
		 "n_nodes -1"},
		{{0, 0, 2, 1, 0, 3, NULL}, 0,
		 "n_nodes 3 is not in [0, 2], the ranks"},
		{{0, 0, 2, 1, 0, 2, too_large}, 0,
		 "rank 1 is in node 2, which is not in [0, 2)"},
		{{0, 0, 2, 1, 0, 2, missing}, 0,
		 "node 0 of 2 has no rank"},
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
	for (i = 0; i < a->n_lanes; i++) {
		assert_int_equal(a->lanes[i].channel, b->lanes[i].channel);
		assert_int_equal(a->lanes[i].box, b->lanes[i].box);
	}
}

/* Calls @check with each form there is of @n ranks, in two nodes if it can. */
static int check_forms(int n, int n_channels, void (*check)(struct kit *kit))
{
	struct sched_shape shape = {.n_ranks = n, .n_channels = n_channels,
				    .n_nodes = n > 1 ? 2 : 1};
	int n_forms = 0;
	int collective, algo;
	struct kit kit;

	for (algo = 0; algo < SCHED_N_ALGOS; algo++) {
		for (collective = 0; collective < SCHED_N_COLLECTIVES;
		     collective++) {
			shape.algo = (enum sched_algo)algo;
			shape.collective = (enum sched_collective)collective;
			shape.root = sched_is_rooted(shape.collective) ? n / 2
								       : 0;
			if (!kit_make_shape(&kit, &shape))
				continue;
			check(&kit);
			kit_release(&kit);
			n_forms++;
		}
	}
	return n_forms;
}

static void check_agreement(struct kit *kit)
{
	int rank;

	for (rank = 0; rank < kit->n_ranks; rank++)
		check_alike(kit->scheds[rank], kit->scheds[0]);
}

static void ranks_agree_about_lanes_and_chunks(void **state)
{
	int n, k;

	(void)state;
	for (n = 1; n <= 9; n++) {
		for (k = 1; k <= SCHED_CHANNELS_MAX; k++)
			assert_true(check_forms(n, k, check_agreement) >= 30);
	}
}

static void check_copy(struct kit *kit)
{
	const struct sched *sched = kit->scheds[0];

	assert_int_equal(sched->n_steps, sched->shape.n_channels);
	assert_int_equal(sched->n_peers, 0);
	assert_null(judge_run(kit, 1, false, 1));
}

static void one_rank_copies_its_input_in_one_step_a_channel(void **state)
{
	int k;

	(void)state;
	for (k = 1; k <= SCHED_CHANNELS_MAX; k++)
		check_forms(1, k, check_copy);
}

/* Whether the last of as many ranks as there can be has a schedule. */
static bool fits(enum sched_collective collective, enum sched_algo algo)
{
	struct sched_shape shape = {.collective = collective, .algo = algo,
				    .n_ranks = SCHED_RANKS_MAX,
				    .n_channels = SCHED_CHANNELS_MAX,
				    .n_nodes = SCHED_RANKS_MAX / 8};
	struct sched *sched;
	int err = sched_make(&shape, SCHED_RANKS_MAX - 1, &sched);

	if (err) {
		assert_int_equal(err, WREATH_EUNSUP);
		return false;
	}
	sched_free(sched);
	return true;
}

static void the_largest_shape_fits_or_is_said_to_be_too_large(void **state)
{
	int collective, algo;

	(void)state;
	for (algo = 0; algo < SCHED_N_ALGOS; algo++) {
		for (collective = 0; collective < SCHED_N_COLLECTIVES;
		     collective++)
			fits((enum sched_collective)collective,
			     (enum sched_algo)algo);
	}
	/* Each collective has one that is not limited. */
	assert_true(fits(SCHED_ALL_REDUCE, SCHED_RING));
	assert_true(fits(SCHED_BARRIER, SCHED_TREE));
	assert_true(fits(SCHED_BROADCAST, SCHED_RING));
	assert_true(fits(SCHED_REDUCE, SCHED_TREE));
	assert_true(fits(SCHED_REDUCE_SCATTER, SCHED_RING));
	assert_true(fits(SCHED_ALL_GATHER, SCHED_RING));
	assert_true(fits(SCHED_GATHER, SCHED_DIRECT));
	assert_true(fits(SCHED_SCATTER, SCHED_DIRECT));
	assert_true(fits(SCHED_ALL_TO_ALL, SCHED_DIRECT));
	assert_true(fits(SCHED_EXCHANGE, SCHED_DIRECT));
	assert_false(fits(SCHED_ALL_REDUCE, SCHED_TWOSHOT));
	assert_non_null(strstr(base_error_text(),
			       "twoshot all_reduce takes at most 64 ranks; "
			       "there are 16384"));
}

/* The n-th allocation fails, for n = 1, 2, ... until all succeed. */
static void without_memory_nothing_is_made(void **state)
{
	static const uint32_t nodes[] = {0, 1, 1, 0};
	struct sched_shape shape = {.algo = SCHED_RING, .n_ranks = 4,
				    .n_channels = 2, .n_nodes = 2,
				    .nodes = nodes};
	struct sched *sched = NULL;
	int n = 0;
	int err;

	(void)state;
	do {
		base_alloc_fail_at((uint64_t)++n);
		err = sched_make(&shape, 0, &sched);
		if (err) {
			assert_int_equal(err, WREATH_ENOMEM);
			assert_null(sched);
		}
	} while (err);
	base_alloc_fail_at(0);
	assert_true(n > 2);
	sched_free(sched);
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
		cmocka_unit_test(
			the_largest_shape_fits_or_is_said_to_be_too_large),
		cmocka_unit_test(without_memory_nothing_is_made),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
