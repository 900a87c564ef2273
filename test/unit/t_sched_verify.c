/* SPDX-License-Identifier: MIT */
/*
 * Goal: whatever the generators make is proved, the numbers of the proof are
 * right, and arguments that make no sense are refused.
 * Method: every algorithm with every number of ranks from 1 to 64; the numbers
 * against their formulas; each allocation failing in turn.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_kit.h"

#define N_RANKS (KIT_IS_SLOW ? 16 : 64)

/*
 * In place needs everything that out of place does, and few slots all that
 * many do, so the large shapes are proved in that form only.
 */
static void prove_shape(enum sched_algo algo, int n, int n_channels)
{
	struct kit kit;
	int n_slots;

	kit_make(&kit, algo, n, n_channels);
	kit_proved(&kit, 2, true);
	for (n_slots = 2; n <= 24 && n_slots <= 4; n_slots++) {
		kit_proved(&kit, n_slots, false);
		kit_proved(&kit, n_slots, true);
	}
	kit_release(&kit);
}

static void every_generator_is_proved_for_every_number_of_ranks(void **state)
{
	int algo, n, k;

	(void)state;
	for (algo = 0; algo < (int)base_countof(kit_algos); algo++) {
		for (n = 1; n <= N_RANKS; n++) {
			for (k = 1; k <= SCHED_CHANNELS_MAX; k++) {
				/* Channels beyond two add nothing of a kind. */
				if (k <= 2 || n <= 24 || n % 8 == 0)
					prove_shape(kit_algos[algo], n,
						    k);
			}
		}
	}
}

static void proof_counts_steps_messages_and_depth(void **state)
{
	struct sched_proof proof;
	struct kit kit;
	uint64_t n, k;

	(void)state;
	for (n = 2; n <= 9; n++) {
		for (k = 1; k <= 3; k++) {
			uint64_t share = 2 * (n - 1) * k;

			kit_make(&kit, SCHED_RING, (int)n, (int)k);
			assert_int_equal(sched_verify(kit.scheds, (int)n, 2,
						      true, &proof), 0);
			assert_int_equal(proof.n_steps, n * k * (2 * n - 1));
			assert_int_equal(proof.n_messages, n * share);
			assert_int_equal(proof.chunks_sent_max, share);
			assert_int_equal(proof.chunks_sent_bound, share);
			assert_int_equal(proof.depth, 2 * (n - 1));
			kit_release(&kit);

			kit_make(&kit, SCHED_TWOSHOT, (int)n, (int)k);
			assert_int_equal(sched_verify(kit.scheds, (int)n, 2,
						      true, &proof), 0);
			assert_int_equal(proof.n_steps, n * k * (2 * n - 1));
			assert_int_equal(proof.n_messages, n * share);
			assert_int_equal(proof.chunks_sent_max, share);
			assert_int_equal(proof.chunks_sent_bound, share);
			assert_int_equal(proof.depth, 2);
			kit_release(&kit);

			kit_make(&kit, SCHED_ONESHOT, (int)n, (int)k);
			assert_int_equal(sched_verify(kit.scheds, (int)n, 2,
						      true, &proof), 0);
			assert_int_equal(proof.n_steps, n * k * 2);
			assert_int_equal(proof.n_messages, n * (n - 1) * k);
			assert_int_equal(proof.chunks_sent_max, (n - 1) * k);
			assert_int_equal(proof.chunks_sent_bound, (n - 1) * k);
			assert_int_equal(proof.depth, 1);
			kit_release(&kit);
		}
	}
}

static void more_messages_than_the_bound_are_refused(void **state)
{
	struct sched_step *step;
	struct kit kit;

	(void)state;
	/* A exchange of inputs, and one message that changes nothing. */
	kit_blank(&kit, 2, 3, 1);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 1);
	kit_add(&kit, 1, 0, 0, -1, SCHED_INPUT, 0, 1);
	step = kit_add(&kit, 0, 1, 0, 1, SCHED_INPUT, -1, 0);
	step->local_at = 0;
	step->flags = SCHED_STORE;
	kit_step(&kit, 0, 1, 0)->after_lane = 0;
	kit_step(&kit, 0, 1, 0)->after_step = 0;
	step = kit_add(&kit, 1, 1, 0, 0, SCHED_INPUT, -1, 0);
	step->flags = SCHED_STORE;
	step->after_lane = 0;
	step->after_step = 0;
	kit_proved(&kit, 1, true);
	kit_add(&kit, 1, 0, 0, -1, SCHED_INPUT, 0, 2);
	kit_add(&kit, 0, 2, 0, 1, SCHED_NONE, -1, 0);
	kit_step(&kit, 1, 1, 0)->after_step = 1;
	kit_refused(&kit, 1, true, "rank 1: sends 2 chunks a pass, oneshot "
				   "needs 1");
	kit_release(&kit);
}

static void senseless_arguments_are_refused(void **state)
{
	struct sched_proof proof = {.n_steps = 77};
	struct sched *none[2] = {NULL, NULL};
	struct sched *swap;
	struct kit kit;

	(void)state;
	kit_make(&kit, SCHED_RING, 3, 1);
	assert_int_equal(sched_verify(kit.scheds, 0, 2, true, &proof),
			 WREATH_EINVAL);
	assert_int_equal(sched_verify(kit.scheds, SCHED_RANKS_MAX + 1, 2, true,
				      &proof), WREATH_EINVAL);
	assert_int_equal(sched_verify(none, 2, 2, true, &proof),
			 WREATH_EINVAL);
	assert_int_equal(sched_verify(kit.scheds, 2, 2, true, &proof),
			 WREATH_EINVAL);
	assert_string_equal(base_error_text(),
			    "rank 0: a schedule for 3 ranks, not 2");
	kit_refused(&kit, 0, true, "n_slots 0");
	swap = kit.scheds[1];
	kit.scheds[1] = kit.scheds[2];
	kit.scheds[2] = swap;
	kit_refused(&kit, 2, true, "rank 1: its schedule is that of rank 2");
	swap = kit.scheds[1];
	kit.scheds[1] = kit.scheds[2];
	kit.scheds[2] = swap;
	kit.scheds[1]->shape.n_channels = 2;
	kit_refused(&kit, 2, true, "its shape is not that of rank 0");
	kit.scheds[1]->shape.n_channels = 1;
	kit.scheds[0]->shape.algo = SCHED_N_ALGOS;
	kit_refused(&kit, 2, true, "algo 7");
	assert_int_equal(proof.n_steps, 77);
	kit_release(&kit);
}

/* The n-th allocation fails, for n = 1, 2, ... until all succeed. */
static void without_memory_it_fails_and_leaks_nothing(void **state)
{
	struct sched_proof proof;
	struct kit kit;
	int n = 0;
	int err;

	(void)state;
	kit_make(&kit, SCHED_TWOSHOT, 3, 1);
	do {
		base_alloc_fail_at((uint64_t)++n);
		err = sched_verify(kit.scheds, 3, 2, true, &proof);
		if (err)
			assert_int_equal(err, WREATH_ENOMEM);
	} while (err);
	base_alloc_fail_at(0);
	assert_true(n > 10);
	kit_release(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			every_generator_is_proved_for_every_number_of_ranks),
		cmocka_unit_test(proof_counts_steps_messages_and_depth),
		cmocka_unit_test(more_messages_than_the_bound_are_refused),
		cmocka_unit_test(senseless_arguments_are_refused),
		cmocka_unit_test(without_memory_it_fails_and_leaks_nothing),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
