/* SPDX-License-Identifier: MIT */
/*
 * Goal: every collective is right, whatever the type, the operation, the root,
 * the counts, in place and not, one after another in any order, together with
 * groups of messages in random patterns.
 * Method: all ranks draw the same calls from one seed; what each must get is
 * worked out without any code of the library; buffers end at pages that fault.
 */
#include "test/loop/calls.h"

static void run_all(int only, int most, size_t bytes, int n_calls)
{
	/* One rank alone needs no device. */
	int n = ranks_have_device() ? 2 : 1;

	for (; n <= most; n++) {
		const struct calls_plan plan = {
			.seed = ranks_seed(), .bytes = bytes,
			.n_calls = n_calls, .only = only};
		struct ranks run = {.n = n, .body = calls_body, .arg = &plan,
				    .mode = n % 3 ? RANKS_PROCESSES
						  : RANKS_THREADS,
				    .seconds = RANKS_SLOW ? 200 : 60};

		ranks_run(&run);
	}
}

static void each_collective_is_right(void **state)
{
	int call;

	(void)state;
	for (call = 0; call < N_CALLS; call++)
		run_all(call, 4, 1 << 16, RANKS_TIMES(3, 20, 60));
}

static void all_in_any_order_are_right(void **state)
{
	(void)state;
	run_all(-1, RANKS_TIMES(4, 8, CALLS_RANKS), 1 << 20,
		RANKS_TIMES(10, 60, 120));
}

static void by_completions_as_well(void **state)
{
	(void)state;
	ranks_set("WREATH_ARRIVAL", "completion");
	run_all(-1, RANKS_TIMES(3, 5, 9), 1 << 18, RANKS_TIMES(8, 30, 60));
}

/* Those that have the form; the others are chosen for it. */
static void by_every_algorithm(void **state)
{
	static const char *const algos[] = {"ring", "oneshot", "twoshot",
					    "tree", "split-ring", "halving",
					    "direct"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(algos) / sizeof(algos[0]); i++) {
		ranks_set("WREATH_ALGO", algos[i]);
		ranks_set("WREATH_CHANNELS", i % 2 ? "2" : "1");
		run_all(-1, RANKS_TIMES(3, 5, CALLS_RANKS), 1 << 19,
			RANKS_TIMES(6, 30, 60));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(each_collective_is_right,
					  ranks_clean),
		cmocka_unit_test_teardown(all_in_any_order_are_right,
					  ranks_clean),
		cmocka_unit_test_teardown(by_completions_as_well, ranks_clean),
		cmocka_unit_test_teardown(by_every_algorithm, ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
