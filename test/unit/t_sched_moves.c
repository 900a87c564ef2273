/* SPDX-License-Identifier: MIT */
/*
 * Goal: collectives in which not every rank has every block: what is moved to
 * the right place, and held there as long as it is read, is proved, and nothing
 * else is.
 * Method: small schedules written by hand, right ones and the same with one
 * thing wrong.  The judge confirms the former, and that the latter can go wrong
 * where they can be run at all.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_orders.h"

#define FINAL (SCHED_STORE | SCHED_RECV_FINAL)

static void blank(struct kit *kit, enum sched_collective collective,
		  enum sched_algo algo, int n_ranks, int root,
		  uint32_t n_lanes, uint32_t n_pieces)
{
	struct sched_shape shape = {.collective = collective, .algo = algo,
				    .n_ranks = n_ranks, .n_channels = 1,
				    .root = root};

	kit_blank_shape(kit, &shape, n_lanes, n_pieces);
}

static void right(const struct kit *kit, bool in_place)
{
	kit_proved(kit, 1, in_place);
	kit_proved(kit, 2, in_place);
	assert_false(orders_can_fail(kit, in_place));
}

static void drop(struct kit *kit, int rank, uint32_t lane)
{
	kit_drop_step(kit->scheds[rank], lane, 0);
}

/* 0 to 1 to 2. */
static void build_chain(struct kit *kit)
{
	blank(kit, SCHED_BROADCAST, SCHED_RING, 3, 0, 1, 1);
	kit_add(kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0)->flags =
		SCHED_STORE | SCHED_SEND_FINAL;
	kit_add(kit, 1, 0, 0, 0, SCHED_NONE, 2, 0)->flags =
		FINAL | SCHED_SEND_FINAL;
	kit_add(kit, 2, 0, 0, 1, SCHED_NONE, -1, 0)->flags = FINAL;
}

static void a_chain_of_a_broadcast_is_proved(void **state)
{
	struct kit kit;

	(void)state;
	build_chain(&kit);
	right(&kit, false);
	right(&kit, true);
	/* Not stored where it must be: the messages are plain ones then. */
	kit_step(&kit, 0, 0, 0)->flags = SCHED_STORE;
	kit_step(&kit, 1, 0, 0)->flags = SCHED_SEND_FINAL;
	kit_refused(&kit, 2, false, "rank 1: no step stores chunk 0");
	assert_true(orders_can_fail(&kit, false));
	kit_step(&kit, 1, 0, 0)->flags = SCHED_STORE | SCHED_SEND_FINAL;
	right(&kit, false);
	/* The root has it in its output too. */
	kit_step(&kit, 0, 0, 0)->flags = 0;
	kit_refused(&kit, 2, false, "rank 0: no step stores chunk 0");
	kit_release(&kit);
}

static void a_block_that_a_rank_has_not_is_not_read(void **state)
{
	struct sched_step *step;
	struct kit kit;

	(void)state;
	build_chain(&kit);
	step = kit_step(&kit, 2, 0, 0);
	step->local = SCHED_INPUT;
	kit_refused(&kit, 2, false,
		    "rank 2 lane 0 step 0: the rank has no chunk 0 in its "
		    "input");
	kit_release(&kit);
	/* Rank 1 of a gather has block 1 and no output. */
	blank(&kit, SCHED_GATHER, SCHED_DIRECT, 2, 0, 1, 1);
	step = kit_add(&kit, 1, 0, 0, -1, SCHED_INPUT, 0, 0);
	kit_add(&kit, 0, 0, 1, 1, SCHED_NONE, -1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, -1, 0)->flags = SCHED_STORE;
	kit_refused(&kit, 2, false, "the rank has no chunk 0 in its input");
	step->chunk = 1;
	right(&kit, false);
	right(&kit, true);
	step->flags = SCHED_STORE;
	kit_refused(&kit, 2, false, "the rank has no chunk 1 in its output");
	step->flags = 0;
	step->local = SCHED_OUTPUT;
	kit_refused(&kit, 2, false, "the rank has no chunk 1 in its output");
	kit_release(&kit);
}

/* Each gives the other its block of the sum, and keeps its own. */
static void a_block_that_a_rank_is_not_to_have_is_not_stored(void **state)
{
	struct sched_step *step;
	struct kit kit;
	int rank;

	(void)state;
	blank(&kit, SCHED_REDUCE_SCATTER, SCHED_DIRECT, 2, 0, 1, 1);
	for (rank = 0; rank < 2; rank++) {
		uint32_t own = (uint32_t)rank;

		kit_add(&kit, rank, 0, 1 - own, -1, SCHED_INPUT, 1 - rank, 0);
		kit_add(&kit, rank, 0, own, 1 - rank, SCHED_INPUT, -1, 0)
			->flags = SCHED_STORE;
	}
	right(&kit, false);
	right(&kit, true);
	step = kit_step(&kit, 1, 0, 0);
	step->flags = SCHED_STORE;
	kit_refused(&kit, 2, false,
		    "rank 1 lane 0 step 0: the rank has no chunk 0 in its "
		    "output");
	kit_release(&kit);
}

/* What comes from elsewhere a second time, added to what is there. */
static void a_moved_block_is_not_folded(void **state)
{
	struct kit kit;

	(void)state;
	blank(&kit, SCHED_BROADCAST, SCHED_RING, 2, 0, 1, 1);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0);
	kit_add(&kit, 1, 0, 0, 0, SCHED_NONE, -1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 1, 0, 0, 0, SCHED_OUTPUT, -1, 0)->flags = SCHED_STORE;
	kit_refused(&kit, 2, false,
		    "rank 1 lane 0 step 1: stores chunk 0, and it is not that "
		    "of rank 0 alone");
	assert_true(orders_can_fail(&kit, false));
	/* The second alone is one message too many, and right. */
	kit_step(&kit, 1, 0, 1)->local = SCHED_NONE;
	kit_step(&kit, 1, 0, 1)->local_at = 0;
	kit_refused(&kit, 2, false, "sends 2 chunks a pass, ring needs 1");
	kit_release(&kit);
}

/* To both others, who read it where it is. */
static void build_raw(struct kit *kit)
{
	int rank;

	blank(kit, SCHED_BROADCAST, SCHED_DIRECT, 3, 0, 2, 1);
	kit_add(kit, 0, 0, 0, -1, SCHED_INPUT, 1, 1);
	kit_add(kit, 0, 0, 0, -1, SCHED_INPUT, 2, 1);
	kit_step(kit, 0, 0, 1)->flags = SCHED_STORE;
	for (rank = 1; rank < 3; rank++) {
		kit_step(kit, 0, 0, (uint32_t)rank - 1)->flags |=
			SCHED_SEND_INPUT | SCHED_SEND_FINAL | SCHED_SEND_AWAIT;
		kit_add(kit, rank, 1, 0, 0, SCHED_NONE, -1, 0)->flags =
			FINAL | SCHED_RECV_INPUT;
	}
}

static void raw_input_that_nobody_awaits_is_refused(void **state)
{
	struct kit kit;
	uint32_t at;

	(void)state;
	for (at = 0; at < 2; at++) {
		build_raw(&kit);
		right(&kit, false);
		right(&kit, true);
		kit_step(&kit, 0, 0, at)->flags &= (uint8_t)~SCHED_SEND_AWAIT;
		kit_refused(&kit, 2, false,
			    "may read the input of rank 0 in place, and no "
			    "step of that rank is certain to come after it");
		assert_true(orders_can_fail(&kit, false));
		kit_release(&kit);
	}
}

/* The end is late enough, and what the rank itself writes before it is not. */
static void awaited_input_is_not_overwritten(void **state)
{
	struct kit kit;
	int rank;

	(void)state;
	blank(&kit, SCHED_ALL_REDUCE, SCHED_ONESHOT, 2, 0, 2, 1);
	for (rank = 0; rank < 2; rank++) {
		struct sched_step *step;

		kit_add(&kit, rank, 0, 0, -1, SCHED_INPUT, 1 - rank, 1)
			->flags = SCHED_SEND_INPUT | SCHED_SEND_AWAIT;
		step = kit_add(&kit, rank, 1, 0, 1 - rank, SCHED_INPUT, -1, 0);
		step->flags = SCHED_STORE | SCHED_RECV_INPUT;
		step->local_at = (uint32_t)rank;
		step->after_lane = 0;
		step->after_step = 0;
	}
	right(&kit, false);
	kit_refused(&kit, 2, true, "may overwrite input chunk 0, which rank");
	assert_true(orders_can_fail(&kit, true));
	kit_release(&kit);
}

/*
 * Rank 0 hears of chunk 1 when its chunk 0 has been read; but where chunk 1 is
 * empty it hears nothing.
 */
static void an_order_made_by_another_chunk_does_not_count(void **state)
{
	struct sched_step *step;
	struct kit kit;

	(void)state;
	blank(&kit, SCHED_BROADCAST, SCHED_DIRECT, 2, 0, 3, 2);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0)->flags =
		SCHED_STORE | SCHED_SEND_INPUT;
	kit_add(&kit, 1, 0, 0, 0, SCHED_NONE, -1, 0)->flags =
		SCHED_STORE | SCHED_RECV_INPUT;
	kit_add(&kit, 0, 1, 1, -1, SCHED_INPUT, 1, 1)->flags = SCHED_STORE;
	step = kit_add(&kit, 1, 1, 1, 0, SCHED_NONE, 0, 2);
	step->flags = SCHED_STORE;
	step->after_lane = 0;
	step->after_step = 0;
	kit_add(&kit, 0, 2, 1, 1, SCHED_NONE, -1, 0);
	kit_refused(&kit, 2, false,
		    "may read the input of rank 0 in place, and no step of "
		    "that rank is certain to come after it");
	assert_true(orders_can_fail(&kit, false));
	/* An answer of the chunk itself. */
	kit_step(&kit, 0, 2, 0)->chunk = 0;
	step->n_send = 0;
	step = kit_step(&kit, 1, 0, 0);
	step->send = step->recv;
	step->n_send = 1;
	step->send_lane = 2;
	right(&kit, false);
	kit_release(&kit);
}

/* Each sends the other a block, takes one, and keeps one. */
static void build_exchange(struct kit *kit, enum sched_collective collective)
{
	int rank;

	blank(kit, collective, SCHED_DIRECT, 2, 0, 3, 1);
	for (rank = 0; rank < 2; rank++) {
		uint32_t own = (uint32_t)rank;

		kit_add(kit, rank, 0, 1 - own, -1, SCHED_INPUT, 1 - rank, 1);
		kit_add(kit, rank, 1, 1 - own, 1 - rank, SCHED_NONE, -1, 0)
			->flags = SCHED_STORE;
		kit_add(kit, rank, 2, own, -1, SCHED_INPUT, -1, 0)->flags =
			SCHED_STORE;
	}
}

static void exchanged_blocks_go_where_they_belong(void **state)
{
	struct sched_step *step;
	struct kit kit;

	(void)state;
	build_exchange(&kit, SCHED_ALL_TO_ALL);
	right(&kit, false);
	kit_refused(&kit, 2, true, "all_to_all has no form in place");
	kit_step(&kit, 0, 1, 0)->chunk = 0;
	kit_refused(&kit, 2, false,
		    "rank 0 lane 1 step 0: works on chunk 0, but what it takes "
		    "is chunk 0 of rank 1 lane 0 step 0");
	assert_true(orders_can_fail(&kit, false));
	kit_step(&kit, 0, 1, 0)->chunk = 1;
	kit_step(&kit, 1, 0, 0)->chunk = 1;
	kit_refused(&kit, 2, false,
		    "rank 0 lane 1 step 0: works on chunk 1, but what it takes "
		    "is chunk 1 of rank 1 lane 0 step 0");
	kit_step(&kit, 1, 0, 0)->chunk = 0;
	step = kit_step(&kit, 1, 2, 0);
	step->chunk = 0;
	kit_refused(&kit, 2, false,
		    "rank 1 lane 2 step 0: it stores chunk 0 of its input, "
		    "which is for rank 0");
	assert_true(orders_can_fail(&kit, false));
	step->chunk = 1;
	step->flags = 0;
	kit_refused(&kit, 2, false, "rank 1: no step stores chunk 1");
	drop(&kit, 1, 2);
	kit_refused(&kit, 2, false, "rank 1: no step stores chunk 1");
	kit_release(&kit);
	build_exchange(&kit, SCHED_EXCHANGE);
	right(&kit, false);
	kit_release(&kit);
}

/* Of the length of a message for one rank no other knows. */
static void exchanged_blocks_are_not_forwarded_or_folded(void **state)
{
	struct sched_step *step;
	struct kit kit;

	(void)state;
	build_exchange(&kit, SCHED_EXCHANGE);
	step = kit_step(&kit, 1, 1, 0);
	step->local = SCHED_OUTPUT;
	kit_refused(&kit, 2, false,
		    "rank 1 lane 1 step 0: it does something else with a "
		    "message than to store it");
	step->local = SCHED_NONE;
	step->flags = 0;
	kit_refused(&kit, 2, false, "than to store it");
	step->flags = SCHED_STORE;
	step->send = step->recv;
	step->n_send = 1;
	kit_refused(&kit, 2, false,
		    "rank 1 lane 1 step 0: it sends something else than its "
		    "own input, or to more than one rank");
	step->n_send = 0;
	right(&kit, false);
	step = kit_step(&kit, 1, 0, 0);
	step->local = SCHED_OUTPUT;
	kit_refused(&kit, 2, false, "it sends something else than its own");
	kit_release(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chain_of_a_broadcast_is_proved),
		cmocka_unit_test(a_block_that_a_rank_has_not_is_not_read),
		cmocka_unit_test(
			a_block_that_a_rank_is_not_to_have_is_not_stored),
		cmocka_unit_test(a_moved_block_is_not_folded),
		cmocka_unit_test(raw_input_that_nobody_awaits_is_refused),
		cmocka_unit_test(awaited_input_is_not_overwritten),
		cmocka_unit_test(an_order_made_by_another_chunk_does_not_count),
		cmocka_unit_test(exchanged_blocks_go_where_they_belong),
		cmocka_unit_test(exchanged_blocks_are_not_forwarded_or_folded),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
