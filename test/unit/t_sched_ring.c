/* SPDX-License-Identifier: MIT */
/*
 * Goal: the ring's schedules are rings, and reduce.
 * Method: the schedules of all ranks, for every small number of ranks, are
 * looked at step by step, and run by the judge in orders drawn by chance.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_judge.h"

#define N_RANKS 12

static void check_neighbours(const struct kit *kit, uint32_t channel)
{
	uint32_t n = (uint32_t)kit->n_ranks;
	uint32_t rank, i;

	for (rank = 0; rank < n; rank++) {
		const struct sched *sched = kit->scheds[rank];
		const struct sched_lane *lane = &sched->lanes[channel];
		uint32_t up = (rank + 1) % n;
		uint32_t down = (rank + n - 1) % n;

		assert_int_equal(lane->channel, channel);
		assert_int_equal(lane->n_steps, 2 * n - 1);
		for (i = 0; i < lane->n_steps; i++) {
			const struct sched_step *step =
				&sched->steps[lane->step + i];

			assert_int_equal(step->n_recv, i > 0);
			assert_int_equal(step->n_send, i < 2 * n - 2);
			assert_int_equal(step->send_lane,
					 step->n_send ? channel : 0);
			if (step->n_recv)
				assert_int_equal(sched->peers[step->recv],
						 channel % 2 ? up : down);
			if (step->n_send)
				assert_int_equal(sched->peers[step->send],
						 channel % 2 ? down : up);
		}
	}
}

static void ring_joins_neighbours_and_odd_channels_turn_back(void **state)
{
	struct kit kit;
	int n;
	uint32_t k;

	(void)state;
	for (n = 2; n <= N_RANKS; n++) {
		kit_make(&kit, SCHED_RING, n, SCHED_CHANNELS_MAX);
		for (k = 0; k < SCHED_CHANNELS_MAX; k++)
			check_neighbours(&kit, k);
		kit_release(&kit);
	}
}

static void ring_folds_what_came_before_what_is_here(void **state)
{
	struct kit kit;
	uint32_t i;
	int rank;

	(void)state;
	kit_make(&kit, SCHED_RING, 5, 2);
	for (rank = 0; rank < 5; rank++) {
		for (i = 0; i < kit.scheds[rank]->n_steps; i++) {
			const struct sched_step *step =
				&kit.scheds[rank]->steps[i];

			if (step->local)
				assert_int_equal(step->local_at, step->n_recv);
		}
	}
	kit_release(&kit);
}

static void ring_stores_every_chunk_once_and_sends_results_final(void **state)
{
	struct kit kit;
	int n, rank;

	(void)state;
	for (n = 2; n <= N_RANKS; n++) {
		kit_make(&kit, SCHED_RING, n, 3);
		for (rank = 0; rank < n; rank++) {
			const struct sched *sched = kit.scheds[rank];
			int stored[3 * N_RANKS] = {0};
			uint32_t i;

			assert_int_equal(sched->n_chunks, 3 * n);
			for (i = 0; i < sched->n_steps; i++) {
				const struct sched_step *step =
					&sched->steps[i];
				bool stores = step->flags & SCHED_STORE;
				bool finals = step->flags & SCHED_SEND_FINAL;

				stored[step->chunk] += stores;
				assert_int_equal(finals,
						 stores && step->n_send);
			}
			for (i = 0; i < sched->n_chunks; i++)
				assert_int_equal(stored[i], 1);
		}
		kit_release(&kit);
	}
}

static void ring_reduces_every_chunk_once_in_any_order(void **state)
{
	uint64_t seed = kit_seed();
	struct kit kit;
	int n, i;

	(void)state;
	for (n = 1; n <= N_RANKS; n++) {
		kit_make(&kit, SCHED_RING, n, 1 + n % 4);
		for (i = 0; i < 8; i++) {
			const char *wrong =
				judge_run(&kit, 2 + (uint32_t)i % 3, i % 2,
					  kit_random(&seed));

			if (wrong)
				fail_msg("%d ranks: %s", n, wrong);
		}
		kit_release(&kit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			ring_joins_neighbours_and_odd_channels_turn_back),
		cmocka_unit_test(ring_folds_what_came_before_what_is_here),
		cmocka_unit_test(
			ring_stores_every_chunk_once_and_sends_results_final),
		cmocka_unit_test(ring_reduces_every_chunk_once_in_any_order),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
