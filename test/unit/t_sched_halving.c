/* SPDX-License-Identifier: MIT */
/*
 * Goal: halving reduces for any number of ranks, sends the least, and has a
 * message at most under way between two ranks before it must be taken.
 * Method: the schedules of all ranks, for every number of ranks, are proved by
 * the verifier with a single slot, and run by the judge.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_nodes.h"
#include "sched_orders.h"

static void halving_is_proved_and_sends_the_least(void **state)
{
	struct kit kit;
	int n, in_place;

	(void)state;
	for (n = 2; n <= NODES_RANKS; n++) {
		kit_make(&kit, SCHED_HALVING, n, 1 + n % 2);
		for (in_place = 0; in_place < 2; in_place++) {
			struct sched_proof proof =
				nodes_prove(&kit, 1 + n % 3, in_place);

			assert_int_equal(proof.chunks_sent_max,
					 2 * (n - 1) * (1 + n % 2));
			assert_int_equal(proof.chunks_sent_max,
					 proof.chunks_sent_bound);
		}
		kit_release(&kit);
	}
}

static void halving_has_no_more_rounds_than_it_must(void **state)
{
	struct kit kit;
	int n;

	(void)state;
	for (n = 2; n <= 16; n++) {
		struct sched_proof proof;

		kit_make(&kit, SCHED_HALVING, n, 1);
		proof = nodes_prove(&kit, 2, false);
		assert_true(proof.depth <= 2 * (uint32_t)nodes_log2(n));
		kit_release(&kit);
	}
	/* Beyond, a lane of several rounds makes some wait for others. */
	for (; n <= NODES_RANKS; n++) {
		struct sched_proof proof;

		kit_make(&kit, SCHED_HALVING, n, 1);
		proof = nodes_prove(&kit, 2, false);
		assert_true(proof.depth <= 2 * (uint32_t)nodes_log2(n) + 8);
		kit_release(&kit);
	}
}

static void halving_of_blocks_is_half_of_it(void **state)
{
	struct sched_shape shape = {.algo = SCHED_HALVING, .n_channels = 2};
	struct kit kit;
	int n, half;

	(void)state;
	for (n = 2; n <= 32; n++) {
		for (half = 0; half < 2; half++) {
			struct sched_proof proof;

			shape.n_ranks = n;
			shape.collective = half ? SCHED_ALL_GATHER
						: SCHED_REDUCE_SCATTER;
			assert_true(kit_make_shape(&kit, &shape));
			proof = nodes_prove(&kit, 1 + n % 2, n / 2 % 2);
			assert_int_equal(proof.chunks_sent_max, 2 * (n - 1));
			if (n <= 16)
				assert_true(proof.depth <=
					    (uint32_t)nodes_log2(n));
			kit_release(&kit);
		}
	}
}

static void halving_meets_those_a_power_of_two_away(void **state)
{
	struct kit kit;
	uint32_t i, j;
	int rank;

	(void)state;
	kit_make(&kit, SCHED_HALVING, 13, 1);
	for (rank = 0; rank < 13; rank++) {
		const struct sched *sched = kit.scheds[rank];

		for (i = 0; i < sched->n_steps; i++) {
			const struct sched_step *step = &sched->steps[i];

			for (j = 0; j < step->n_send; j++) {
				uint32_t to = sched->peers[step->send + j];
				uint32_t by = (to + 13 - (uint32_t)rank) % 13;

				/* Results go up, all else goes down. */
				if (!(step->flags & SCHED_SEND_FINAL))
					by = 13 - by;
				assert_int_equal(by & (by - 1), 0);
			}
		}
	}
	kit_release(&kit);
}

static void halving_reduces_every_chunk_once_in_any_order(void **state)
{
	(void)state;
	orders_reduce(SCHED_HALVING, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(halving_is_proved_and_sends_the_least),
		cmocka_unit_test(halving_has_no_more_rounds_than_it_must),
		cmocka_unit_test(halving_of_blocks_is_half_of_it),
		cmocka_unit_test(halving_meets_those_a_power_of_two_away),
		cmocka_unit_test(halving_reduces_every_chunk_once_in_any_order),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
