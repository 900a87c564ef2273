/* SPDX-License-Identifier: MIT */
/*
 * Goal: an output that misses a rank, has one twice, or is folded in another
 * order than elsewhere is refused.
 * Method: small schedules written by hand that move every message as it should
 * be, and compute something else.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_judge.h"

static void a_contribution_twice_is_refused(void **state)
{
	struct sched_step *step;
	struct kit kit;

	(void)state;
	/* What rank 1 sends back has rank 0 in it already. */
	kit_blank(&kit, 2, 1, 1);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0);
	kit_add(&kit, 1, 0, 0, 0, SCHED_INPUT, 0, 0)->flags = SCHED_STORE;
	step = kit_add(&kit, 0, 0, 0, 1, SCHED_INPUT, -1, 0);
	step->flags = SCHED_STORE;
	kit_refused(&kit, 2, false,
		    "rank 0 lane 0 step 1: stores chunk 0 with the "
		    "contribution of rank 0 2 times");
	assert_non_null(judge_run(&kit, 2, false, 1));
	step->local = SCHED_NONE;
	step->local_at = 0;
	kit_proved(&kit, 2, false);
	kit_release(&kit);
}

/* Doubled nine times, a chunk has 512 contributions; 39 times, too many. */
static void any_number_of_contributions_is_counted(void **state)
{
	static const struct {
		uint32_t n_steps;
		const char *text;
	} rows[] = {
		{3, "with the contribution of rank 0 2 times"},
		{4, "with 8 contributions of 2 ranks"},
		{10, "with 512 contributions of 2 ranks"},
		{40, "with 4294967295 contributions of 2 ranks"},
	};
	struct sched_shape shape = {.algo = SCHED_TWOSHOT, .n_ranks = 32,
				    .n_channels = 1};
	struct kit kit = {.n_ranks = 2};
	size_t row;
	uint32_t i;
	int rank;

	(void)state;
	for (row = 0; row < base_countof(rows); row++) {
		for (rank = 0; rank < 2; rank++) {
			struct sched *sched;

			/* Made for its size, and written anew. */
			assert_int_equal(sched_make(&shape, rank, &sched), 0);
			kit.scheds[rank] = sched;
			sched->shape.n_ranks = 2;
			sched->n_pieces = 1;
			sched->n_chunks = 1;
			sched->n_lanes = 1;
			sched->n_steps = rows[row].n_steps;
			sched->lanes[0].n_steps = sched->n_steps;
			for (i = 0; i < sched->n_steps; i++)
				sched->steps[i] = (struct sched_step){
					.local = i ? SCHED_OUTPUT : SCHED_INPUT,
					.flags = SCHED_STORE,
					.n_recv = i > 0,
					.n_send = i + 1 < sched->n_steps,
					.after_lane = -1,
					.after_step = -1,
				};
			sched->peers[0] = (uint32_t)(1 - rank);
		}
		/* Each adds what the other has to what it has itself. */
		kit_refused(&kit, 2, false, rows[row].text);
		sched_free(kit.scheds[0]);
		sched_free(kit.scheds[1]);
	}
}

static void a_missing_contribution_is_refused(void **state)
{
	struct kit kit;
	int rank;

	(void)state;
	for (rank = 0; rank < 4; rank++) {
		kit_make(&kit, SCHED_ONESHOT, 4, 1);
		kit_step(&kit, rank, 1, 0)->local = SCHED_NONE;
		kit_refused(&kit, 2, false, "times");
		assert_non_null(strstr(base_error_text(), " 0 times"));
		kit_release(&kit);
	}
}

static void a_chunk_that_is_not_stored_is_refused(void **state)
{
	struct kit kit;

	(void)state;
	kit_make(&kit, SCHED_ONESHOT, 4, 2);
	kit_step(&kit, 2, 3, 0)->flags = 0;
	kit_refused(&kit, 2, false, "rank 2: no step stores chunk 1");
	kit_release(&kit);
}

static void another_order_on_one_rank_is_refused(void **state)
{
	struct kit kit;
	uint32_t peer, at;
	int n, rank;

	(void)state;
	for (n = 2; n <= 4; n++) {
		for (rank = 0; rank < n; rank++) {
			kit_make(&kit, SCHED_ONESHOT, n, 1);
			for (at = 0; at < (uint32_t)n; at++) {
				kit_step(&kit, rank, 1, 0)->local_at = at;
				if ((int)at == rank)
					kit_proved(&kit, 2, true);
				else
					kit_refused(&kit, 2, true,
						    "folded in another order");
			}
			kit_release(&kit);
		}
	}
	kit_make(&kit, SCHED_ONESHOT, 4, 1);
	at = kit_step(&kit, 1, 1, 0)->recv;
	peer = kit.scheds[1]->peers[at + 1];
	kit.scheds[1]->peers[at + 1] = kit.scheds[1]->peers[at + 2];
	kit.scheds[1]->peers[at + 2] = peer;
	kit_refused(&kit, 2, true,
		    "rank 1 lane 1 step 0: stores chunk 0 folded in another "
		    "order than on rank 0");
	kit_release(&kit);
}

static void any_other_order_is_refused(void **state)
{
	uint64_t seed = kit_seed();
	struct kit kit;
	int i;

	(void)state;
	kit_make(&kit, SCHED_ONESHOT, 7, 1);
	for (i = 0; i < 2000; i++) {
		uint32_t order[6] = {0, 1, 2, 4, 5, 6};
		struct sched_step *step = kit_step(&kit, 3, 1, 0);
		uint32_t *peers = &kit.scheds[3]->peers[step->recv];
		bool same = true;
		uint32_t at;

		for (at = 0; at < 6; at++) {
			uint32_t other = kit_below(&seed, 6);
			uint32_t peer = peers[at];

			peers[at] = peers[other];
			peers[other] = peer;
		}
		for (at = 0; at < 6; at++)
			same &= peers[at] == order[at];
		if (same)
			kit_proved(&kit, 2, true);
		else
			kit_refused(&kit, 2, true, "folded in another order");
	}
	kit_release(&kit);
}

/* (0 + 1) + 2 and 0 + (1 + 2) have the same order and other bits. */
static void another_grouping_on_one_rank_is_refused(void **state)
{
	struct kit kit;

	(void)state;
	kit_blank(&kit, 3, 2, 1);
	/* Rank 1 has 0 + 1 + 2, and sends it to 0. */
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0);
	kit_add(&kit, 1, 0, 0, 0, SCHED_INPUT, -1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 2, 0, 0, -1, SCHED_INPUT, 1, 0);
	kit_add(&kit, 1, 0, 0, 2, SCHED_OUTPUT, 0, 1);
	kit_step(&kit, 1, 0, 1)->local_at = 0;
	kit_step(&kit, 1, 0, 1)->flags = SCHED_STORE;
	kit_add(&kit, 0, 1, 0, 1, SCHED_NONE, -1, 0)->flags = SCHED_STORE;
	/* Rank 2 has 1 + 2 in its output, and puts 0 before it. */
	kit_add(&kit, 1, 1, 0, -1, SCHED_INPUT, 2, 1);
	kit_add(&kit, 2, 1, 0, 1, SCHED_INPUT, -1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 2, 1);
	kit_add(&kit, 2, 1, 0, 0, SCHED_OUTPUT, -1, 0)->flags = SCHED_STORE;
	kit_refused(&kit, 2, false,
		    "rank 2 lane 1 step 1: stores chunk 0 folded in another "
		    "order than on rank 0");
	assert_string_equal(judge_run(&kit, 2, false, 1), "ranks differ");
	/* With the fold of 0 and 1 sent to it, all is right. */
	kit_step(&kit, 2, 1, 1)->local = SCHED_NONE;
	kit_step(&kit, 2, 1, 1)->local_at = 0;
	kit_refused(&kit, 2, false, "of rank 1 0 times");
	kit_release(&kit);
}

static void an_output_read_before_it_is_stored_is_refused(void **state)
{
	struct kit kit;

	(void)state;
	kit_make(&kit, SCHED_ONESHOT, 3, 1);
	kit_step(&kit, 2, 0, 0)->local = SCHED_OUTPUT;
	kit_refused(&kit, 2, false,
		    "rank 2 lane 0 step 0: reads output chunk 0, which no "
		    "step has stored by then");
	kit_release(&kit);
}

/* Partial sums may rest in the output: a chain there and back. */
static void a_partial_sum_in_the_output_is_proved(void **state)
{
	struct kit kit;
	uint64_t seed = kit_seed();
	int i;

	(void)state;
	kit_blank(&kit, 3, 2, 1);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0);
	kit_add(&kit, 1, 0, 0, 0, SCHED_INPUT, -1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 1, 0, 0, -1, SCHED_OUTPUT, 2, 0);
	kit_add(&kit, 2, 0, 0, 1, SCHED_INPUT, 1, 1)->flags =
		SCHED_STORE | SCHED_SEND_FINAL;
	kit_add(&kit, 1, 1, 0, 2, SCHED_NONE, 0, 1)->flags =
		SCHED_STORE | SCHED_RECV_FINAL | SCHED_SEND_FINAL;
	kit_add(&kit, 0, 1, 0, 1, SCHED_NONE, -1, 0)->flags =
		SCHED_STORE | SCHED_RECV_FINAL;
	for (i = 0; i < 20; i++) {
		kit_proved(&kit, 1 + i % 3, i % 2);
		assert_null(judge_run(&kit, 1 + (uint32_t)i % 3, i % 2,
				      kit_random(&seed)));
	}
	kit_release(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_contribution_twice_is_refused),
		cmocka_unit_test(any_number_of_contributions_is_counted),
		cmocka_unit_test(a_missing_contribution_is_refused),
		cmocka_unit_test(a_chunk_that_is_not_stored_is_refused),
		cmocka_unit_test(another_order_on_one_rank_is_refused),
		cmocka_unit_test(any_other_order_is_refused),
		cmocka_unit_test(another_grouping_on_one_rank_is_refused),
		cmocka_unit_test(an_output_read_before_it_is_stored_is_refused),
		cmocka_unit_test(a_partial_sum_in_the_output_is_proved),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
