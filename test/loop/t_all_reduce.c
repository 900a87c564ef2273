/* SPDX-License-Identifier: MIT */
/*
 * Goal: an all-reduce is right for every type and operation, at every size at
 * which the library changes its way, in place and not, for 1 to 16 ranks.
 * Method: each result is compared with a model that shares no code with the
 * library; buffers of all kinds lie between pages that fault; all ranks, and
 * two runs with the same inputs, must come to the same bits.
 */
#include <stdio.h>

#include "test/loop/trial.h"

/*
 * Vectors around which something changes, in bytes: one word; one line of 56,
 * eight of them, the same for a quarter; two pages, oneshot's ends; where
 * places are granted; a slot of both sizes, times 2 and 4 ranks.
 */
static const size_t edges[] = {
	8,	 56,	 112,	 224,	  448,	  896,	  1792,	    8192,
	16384,	 65536,	 131072, 262144,  524288, 1048576,
};
#define N_EDGES (sizeof(edges) / sizeof(edges[0]))
#define N_SMALL 7 /* all types and ops up to here */

static int run_counts(struct rank *rank, struct trials *trials,
		      const size_t *counts, size_t n, int type, int op)
{
	size_t i;

	for (i = 0; i < n; i++) {
		struct trial trial;
		int err;

		trial_draw(trials, rank, counts[i], &trial);
		trial.model.type = (enum wreath_type)type;
		trial.model.op = (enum wreath_op)op;
		err = trial_run(rank, trials, &trial);
		if (err)
			return err;
	}
	return 0;
}

static int all_types(struct rank *rank)
{
	static const size_t least[] = {0, 1, 2, 3, 5, 7, 13};
	const struct trials_plan *plan = rank->arg;
	struct trials trials;
	int err = 0;
	int type, op;
	size_t e;

	trials_init(&trials, rank, plan->seed);
	for (type = 0; type < WREATH_N_TYPES && !err; type++) {
		size_t size = wreath_type_size((enum wreath_type)type);

		for (op = 0; op < WREATH_N_OPS && !err; op++) {
			err = run_counts(rank, &trials, least,
					 sizeof(least) / sizeof(least[0]),
					 type, op);
			for (e = 0; e < N_SMALL && !err; e++) {
				size_t at = edges[e] / size;
				size_t counts[] = {at - 1, at, at + 1};

				err = run_counts(rank, &trials, counts, 3,
						 type, op);
			}
		}
	}
	trials_tell(&trials, rank);
	return err;
}

/* One element more or less than an edge, of types as they come. */
static int all_edges(struct rank *rank)
{
	const struct trials_plan *plan = rank->arg;
	struct trials trials;
	int err = 0;
	size_t e;
	int i;

	trials_init(&trials, rank, plan->seed);
	for (e = 0; e < N_EDGES && edges[e] <= plan->bytes && !err; e++) {
		for (i = 0; i < plan->n_trials && !err; i++) {
			struct trial trial;

			trial_draw(&trials, rank, 0, &trial);
			trial.count = edges[e] /
				      wreath_type_size(trial.model.type);
			trial.count += ranks_random(&trials.state) % 7;
			trial.count -= trial.count > 3 ? 3 : 0;
			err = trial_run(rank, &trials, &trial);
		}
	}
	trials_tell(&trials, rank);
	return err;
}

static uint64_t run_plan(rank_body *body, const struct trials_plan *plan, int n,
			 enum ranks_mode mode)
{
	struct ranks run = {
		.n = n, .mode = mode, .body = body, .arg = plan,
		.seconds = RANKS_SLOW ? 200 : 60};
	uint64_t hash;

	ranks_start(&run);
	ranks_join(&run);
	ranks_expect_ok(&run);
	hash = trials_expect_same(&run);
	ranks_end(&run);
	return hash;
}

static void every_type_and_operation_is_right(void **state)
{
	const struct trials_plan plan = {.seed = ranks_seed()};

	(void)state;
	run_plan(all_types, &plan, 2, RANKS_PROCESSES);
	run_plan(all_types, &plan, 3, RANKS_THREADS);
}

static void every_edge_of_size_is_right(void **state)
{
	const struct trials_plan plan = {
		.seed = ranks_seed(),
		.bytes = RANKS_TIMES(262144, 1048576, 1048576),
		.n_trials = RANKS_TIMES(3, 4, 20),
	};

	(void)state;
	run_plan(all_edges, &plan, 2, RANKS_PROCESSES);
	run_plan(all_edges, &plan, 4, RANKS_PROCESSES);
}

static void one_to_sixteen_ranks_are_right(void **state)
{
	const struct trials_plan plan = {
		.seed = ranks_seed(),
		.bytes = 256 << 10,
		/* 16 ranks take turns on a few emulated processors. */
		.n_trials = ranks_have_device() ? 4 : RANKS_TIMES(10, 30, 300),
	};
	int step = ranks_have_device() ? 5 : 1;
	int n;

	(void)state;
	for (n = 1; n <= 16; n += step)
		run_plan(trials_body, &plan, n, RANKS_THREADS);
	n = ranks_have_device() ? 8 : 16;
	run_plan(trials_body, &plan, n, RANKS_PROCESSES);
}

static void the_bits_are_the_same_from_run_to_run(void **state)
{
	const struct trials_plan plan = {
		.seed = ranks_seed(),
		.bytes = 1 << 20,
		.n_trials = RANKS_TIMES(20, 60, 500),
	};
	uint64_t first = run_plan(trials_body, &plan, 4, RANKS_PROCESSES);

	(void)state;
	assert_int_equal(run_plan(trials_body, &plan, 4, RANKS_PROCESSES),
			 first);
	assert_int_equal(run_plan(trials_body, &plan, 4, RANKS_THREADS), first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_type_and_operation_is_right,
					  ranks_clean),
		cmocka_unit_test_teardown(every_edge_of_size_is_right,
					  ranks_clean),
		cmocka_unit_test_teardown(one_to_sixteen_ranks_are_right,
					  ranks_clean),
		cmocka_unit_test_teardown(
			the_bits_are_the_same_from_run_to_run, ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
