/* SPDX-License-Identifier: MIT */
/*
 * Goal: whatever may be overwritten too early, or read too late, in some order
 * of execution is refused, even where the order at hand is harmless.
 * Method: right schedules, each with one access that nothing orders; and the
 * same with the order put in, which must be proved.  The judge confirms that
 * there is an order in which the former go wrong, where it can see it.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_orders.h"

static void run_after(struct kit *kit, int rank, uint32_t lane, uint32_t at,
		      int after_lane, int after_step)
{
	struct sched_step *step = kit_step(kit, rank, lane, at);

	step->after_lane = after_lane;
	step->after_step = after_step;
}

static void a_store_that_does_not_wait_for_the_send_is_refused(void **state)
{
	struct kit kit;
	int rank;

	(void)state;
	for (rank = 0; rank < 3; rank++) {
		kit_make(&kit, SCHED_ONESHOT, 3, 1);
		run_after(&kit, rank, 1, 0, -1, -1);
		kit_proved(&kit, 2, false);
		assert_int_equal(kit_verify(&kit, 2, true), WREATH_EINVAL);
		assert_true(orders_can_fail(&kit, true));
		assert_false(orders_can_fail(&kit, false));
		kit_release(&kit);
	}
}

static void an_input_read_after_its_overwriting_is_refused(void **state)
{
	struct kit kit;

	(void)state;
	/* The sum is stored, and then the input sent. */
	kit_blank(&kit, 2, 1, 1);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0);
	kit_add(&kit, 1, 0, 0, 0, SCHED_INPUT, -1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 1, 0, 0, -1, SCHED_INPUT, 0, 0);
	kit_add(&kit, 0, 0, 0, 1, SCHED_INPUT, -1, 0)->flags = SCHED_STORE;
	kit_step(&kit, 0, 0, 1)->local_at = 0;
	kit_proved(&kit, 2, false);
	kit_refused(&kit, 2, true,
		    "rank 1 lane 0 step 1: reads input chunk 0, which in place "
		    "lane 0 step 0 may have overwritten");
	assert_true(orders_can_fail(&kit, true));
	kit_release(&kit);
}

/*
 * Rank 0's second lane reads its input once more, for a copy that nobody
 * needs; the result of rank 1 may be written over it meanwhile.
 */
static void build_late_reader(struct kit *kit)
{
	kit_blank(kit, 2, 3, 1);
	kit_add(kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0);
	kit_add(kit, 1, 0, 0, 0, SCHED_INPUT, 0, 1)->flags =
		SCHED_STORE | SCHED_SEND_FINAL;
	kit_add(kit, 0, 1, 0, 1, SCHED_NONE, -1, 0)->flags =
		SCHED_STORE | SCHED_RECV_FINAL;
	kit_add(kit, 0, 2, 0, -1, SCHED_INPUT, -1, 0);
}

static void a_final_chunk_sent_too_early_is_refused(void **state)
{
	struct kit kit;

	(void)state;
	build_late_reader(&kit);
	kit_proved(&kit, 2, false);
	assert_int_equal(kit_verify(&kit, 2, true), WREATH_EINVAL);
	/* Before the step that takes it is not enough: it has landed then. */
	run_after(&kit, 0, 1, 0, 2, 0);
	kit_refused(&kit, 2, true, "its sender may write final chunk 0");
	/* Before the step that the sender waits for is. */
	run_after(&kit, 0, 1, 0, -1, -1);
	run_after(&kit, 0, 0, 0, 2, 0);
	kit_proved(&kit, 2, true);
	kit_release(&kit);
}

/* Rank 0 stores a first guess in its output, where the final chunk lands. */
static void a_store_over_a_landed_final_chunk_is_refused(void **state)
{
	struct kit kit;

	(void)state;
	build_late_reader(&kit);
	kit_step(&kit, 0, 2, 0)->flags = SCHED_STORE;
	assert_int_equal(kit_verify(&kit, 2, false), WREATH_EINVAL);
	assert_true(orders_can_fail(&kit, false));
	run_after(&kit, 0, 1, 0, 2, 0);
	kit_refused(&kit, 2, false, "its sender may write final chunk 0");
	assert_true(orders_can_fail(&kit, false));
	run_after(&kit, 0, 1, 0, -1, -1);
	run_after(&kit, 0, 0, 0, 2, 0);
	kit_proved(&kit, 2, false);
	assert_false(orders_can_fail(&kit, false));
	kit_release(&kit);
}

static void two_lanes_that_store_one_chunk_are_refused(void **state)
{
	struct sched_step *step;
	struct kit kit;

	(void)state;
	kit_blank(&kit, 2, 3, 1);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 1);
	kit_add(&kit, 1, 0, 0, -1, SCHED_INPUT, 0, 1);
	kit_add(&kit, 0, 1, 0, 1, SCHED_INPUT, -1, 0)->flags = SCHED_STORE;
	step = kit_add(&kit, 1, 1, 0, 0, SCHED_INPUT, -1, 0);
	step->flags = SCHED_STORE;
	step->local_at = 1;
	kit_step(&kit, 0, 1, 0)->local_at = 0;
	/* A first guess, stored at any time. */
	kit_add(&kit, 1, 2, 0, -1, SCHED_INPUT, -1, 0)->flags = SCHED_STORE;
	assert_int_equal(kit_verify(&kit, 2, false), WREATH_EINVAL);
	assert_true(orders_can_fail(&kit, false));
	run_after(&kit, 1, 1, 0, 2, 0);
	kit_proved(&kit, 2, false);
	assert_false(orders_can_fail(&kit, false));
	kit_release(&kit);
}

static void an_output_read_while_it_may_be_stored_is_refused(void **state)
{
	struct kit kit;

	(void)state;
	/* Rank 1 sends what lane 0 stores, from a lane of its own. */
	kit_blank(&kit, 2, 2, 1);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0);
	kit_add(&kit, 1, 0, 0, 0, SCHED_INPUT, -1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 1, 1, 0, -1, SCHED_OUTPUT, 0, 1)->flags =
		SCHED_SEND_FINAL;
	kit_add(&kit, 0, 1, 0, 1, SCHED_NONE, -1, 0)->flags =
		SCHED_STORE | SCHED_RECV_FINAL;
	assert_int_equal(kit_verify(&kit, 2, false), WREATH_EINVAL);
	assert_true(orders_can_fail(&kit, false));
	run_after(&kit, 1, 1, 0, 0, 0);
	kit_proved(&kit, 2, false);
	kit_proved(&kit, 2, true);
	assert_false(orders_can_fail(&kit, true));
	kit_release(&kit);
}

/* A reader of the old value must be done before the next is stored. */
static void an_output_overwritten_while_it_is_read_is_refused(void **state)
{
	struct kit kit;

	(void)state;
	kit_blank(&kit, 2, 2, 1);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, -1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 0, 1, 0, -1, SCHED_OUTPUT, 1, 0);
	run_after(&kit, 0, 1, 0, 0, 0);
	kit_add(&kit, 1, 0, 0, -1, SCHED_INPUT, 0, 0);
	kit_add(&kit, 1, 0, 0, 0, SCHED_INPUT, -1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 0, 0, 0, 1, SCHED_OUTPUT, -1, 0)->flags = SCHED_STORE;
	kit_step(&kit, 0, 0, 1)->local_at = 0;
	assert_int_equal(kit_verify(&kit, 2, false), WREATH_EINVAL);
	assert_true(orders_can_fail(&kit, false));
	run_after(&kit, 0, 0, 1, 1, 0);
	kit_proved(&kit, 2, false);
	assert_false(orders_can_fail(&kit, false));
	kit_release(&kit);
}

/*
 * Rank 2 sends rank 0 a guess, and its part to rank 1, which adds its own and
 * then rank 0's, and tells both.  Rank 0 stores the guess as soon as its own
 * input is sent: that is early enough unless rank 1 reads it where it is.
 */
static void an_input_overwritten_while_a_peer_reads_it_is_refused(void **state)
{
	struct kit kit;

	(void)state;
	kit_blank(&kit, 3, 3, 1);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0);
	kit_add(&kit, 2, 0, 0, -1, SCHED_INPUT, 0, 2);
	kit_add(&kit, 2, 0, 0, -1, SCHED_INPUT, 1, 0);
	kit_add(&kit, 1, 0, 0, 2, SCHED_INPUT, -1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 1, 0, 0, 0, SCHED_OUTPUT, 0, 1)->flags = SCHED_STORE;
	kit_add(&kit, 1, 0, 0, -1, SCHED_OUTPUT, 2, 1);
	kit_add(&kit, 0, 1, 0, 1, SCHED_NONE, -1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 2, 1, 0, 1, SCHED_NONE, -1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 0, 2, 0, 2, SCHED_NONE, -1, 0)->flags = SCHED_STORE;
	run_after(&kit, 0, 2, 0, 0, 0);
	run_after(&kit, 0, 1, 0, 2, 0);
	kit_proved(&kit, 2, true);
	assert_false(orders_can_fail(&kit, true));
	kit_step(&kit, 0, 0, 0)->flags |= SCHED_SEND_INPUT;
	kit_step(&kit, 1, 0, 1)->flags |= SCHED_RECV_INPUT;
	kit_proved(&kit, 2, false);
	assert_false(orders_can_fail(&kit, false));
	kit_refused(&kit, 2, true,
		    "rank 0 lane 2 step 0: may overwrite input chunk 0, which "
		    "rank 1 lane 0 step 1 reads in place");
	assert_true(orders_can_fail(&kit, true));
	kit_release(&kit);
}

/* Rank 1's guess comes from the step before the one that reads. */
static void an_input_overwritten_just_before_it_is_read_is_refused(void **state)
{
	struct kit kit;

	(void)state;
	kit_blank(&kit, 2, 3, 1);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0)->flags =
		SCHED_SEND_INPUT;
	kit_add(&kit, 1, 0, 0, -1, SCHED_INPUT, 0, 2);
	kit_add(&kit, 1, 0, 0, 0, SCHED_INPUT, 0, 1)->flags =
		SCHED_RECV_INPUT | SCHED_STORE;
	kit_add(&kit, 0, 2, 0, 1, SCHED_NONE, -1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 0, 1, 0, 1, SCHED_NONE, -1, 0)->flags = SCHED_STORE;
	run_after(&kit, 0, 2, 0, 0, 0);
	run_after(&kit, 0, 1, 0, 2, 0);
	kit_refused(&kit, 2, true,
		    "rank 0 lane 2 step 0: may overwrite input chunk 0, which "
		    "rank 1 lane 0 step 1 reads in place");
	assert_true(orders_can_fail(&kit, true));
	kit_release(&kit);
}

/*
 * Rank 2's guess is final, and sent when rank 0 has sent its input: rank 0
 * takes it when rank 1 has read, but it may have landed long before.
 */
static void a_final_chunk_over_an_input_being_read_is_refused(void **state)
{
	struct kit kit;

	(void)state;
	kit_blank(&kit, 3, 3, 1);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0)->flags =
		SCHED_SEND_INPUT;
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 2, 0);
	kit_add(&kit, 2, 0, 0, 0, SCHED_INPUT, 0, 2)->flags =
		SCHED_SEND_FINAL;
	kit_add(&kit, 2, 0, 0, -1, SCHED_INPUT, 1, 0);
	kit_add(&kit, 1, 0, 0, 2, SCHED_INPUT, -1, 0)->flags = SCHED_STORE;
	kit_add(&kit, 1, 0, 0, 0, SCHED_OUTPUT, 0, 1)->flags =
		SCHED_RECV_INPUT | SCHED_STORE;
	kit_add(&kit, 1, 0, 0, -1, SCHED_OUTPUT, 2, 1);
	kit_add(&kit, 2, 1, 0, 1, SCHED_NONE, 0, 1)->flags = SCHED_STORE;
	kit_add(&kit, 0, 1, 0, 1, SCHED_NONE, -1, 0);
	kit_add(&kit, 0, 2, 0, 2, SCHED_NONE, -1, 0)->flags =
		SCHED_STORE | SCHED_RECV_FINAL;
	kit_add(&kit, 0, 1, 0, 2, SCHED_NONE, -1, 0)->flags = SCHED_STORE;
	run_after(&kit, 0, 2, 0, 1, 0);
	run_after(&kit, 0, 1, 1, 2, 0);
	kit_refused(&kit, 2, true,
		    "rank 0 lane 2 step 0: may overwrite input chunk 0, which "
		    "rank 1 lane 0 step 1 reads in place");
	assert_true(orders_can_fail(&kit, true));
	kit_release(&kit);
}

/* In a oneshot nothing tells the sender that its input has been read. */
static void an_input_read_after_its_owner_has_left_is_refused(void **state)
{
	struct kit kit;
	int rank;

	(void)state;
	kit_make(&kit, SCHED_ONESHOT, 3, 1);
	for (rank = 0; rank < 3; rank++) {
		kit_step(&kit, rank, 0, 0)->flags |= SCHED_SEND_INPUT;
		kit_step(&kit, rank, 1, 0)->flags |= SCHED_RECV_INPUT;
	}
	kit_refused(&kit, 2, false,
		    "rank 0 lane 1 step 0: may read the input of rank 1 in "
		    "place, and no step of that rank is certain to come after "
		    "it");
	assert_true(orders_can_fail(&kit, false));
	kit_release(&kit);
}

/* Rank 2 tells rank 0 that rank 1 has read: who tells does not matter. */
static void an_answer_by_way_of_another_rank_is_proved(void **state)
{
	struct kit kit;

	(void)state;
	kit_blank(&kit, 3, 2, 1);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0)->flags =
		SCHED_SEND_INPUT;
	kit_add(&kit, 1, 0, 0, 0, SCHED_INPUT, 2, 0)->flags = SCHED_RECV_INPUT;
	kit_add(&kit, 2, 0, 0, 1, SCHED_INPUT, 0, 1)->flags =
		SCHED_STORE | SCHED_SEND_FINAL;
	kit_add(&kit, 0, 1, 0, 2, SCHED_NONE, 1, 1)->flags =
		SCHED_STORE | SCHED_SEND_FINAL | SCHED_RECV_FINAL;
	kit_add(&kit, 1, 1, 0, 0, SCHED_NONE, -1, 0)->flags =
		SCHED_STORE | SCHED_RECV_FINAL;
	kit_proved(&kit, 2, false);
	kit_proved(&kit, 2, true);
	assert_false(orders_can_fail(&kit, false));
	assert_false(orders_can_fail(&kit, true));
	kit_release(&kit);
}

/* The result may be written over the input by the very step that read it. */
static void a_final_chunk_written_by_the_reader_is_proved(void **state)
{
	struct kit kit;

	(void)state;
	kit_make(&kit, SCHED_RING, 2, 1);
	kit_step(&kit, 0, 0, 0)->flags |= SCHED_SEND_INPUT;
	kit_step(&kit, 1, 0, 0)->flags |= SCHED_SEND_INPUT;
	kit_step(&kit, 0, 0, 1)->flags |= SCHED_RECV_INPUT;
	kit_step(&kit, 1, 0, 1)->flags |= SCHED_RECV_INPUT;
	kit_proved(&kit, 2, true);
	assert_false(orders_can_fail(&kit, true));
	kit_release(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_store_that_does_not_wait_for_the_send_is_refused),
		cmocka_unit_test(
			an_input_read_after_its_overwriting_is_refused),
		cmocka_unit_test(a_final_chunk_sent_too_early_is_refused),
		cmocka_unit_test(
			a_store_over_a_landed_final_chunk_is_refused),
		cmocka_unit_test(two_lanes_that_store_one_chunk_are_refused),
		cmocka_unit_test(
			an_output_read_while_it_may_be_stored_is_refused),
		cmocka_unit_test(
			an_output_overwritten_while_it_is_read_is_refused),
		cmocka_unit_test(
			an_input_overwritten_while_a_peer_reads_it_is_refused),
		cmocka_unit_test(
			an_input_overwritten_just_before_it_is_read_is_refused),
		cmocka_unit_test(
			a_final_chunk_over_an_input_being_read_is_refused),
		cmocka_unit_test(
			an_input_read_after_its_owner_has_left_is_refused),
		cmocka_unit_test(an_answer_by_way_of_another_rank_is_proved),
		cmocka_unit_test(a_final_chunk_written_by_the_reader_is_proved),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
