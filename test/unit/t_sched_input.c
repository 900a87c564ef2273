/* SPDX-License-Identifier: MIT */
/*
 * Goal: raw input may be read in place only where its owner cannot end its
 * operation, or overwrite it, before the reader is done.
 * Method: two-shot, which may, and the same with one thing wrong; one-shot,
 * which may not; a schedule by hand that overwrites between send and answer.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_kit.h"

static void twoshot_may_read_inputs_in_place(void **state)
{
	struct kit kit;
	int n;

	(void)state;
	for (n = 2; n <= 8; n++) {
		kit_make(&kit, SCHED_TWOSHOT, n, 2);
		assert_true(kit_step(&kit, 0, 0, 0)->flags & SCHED_SEND_INPUT);
		assert_true(kit_step(&kit, 0, 1, 0)->flags & SCHED_RECV_INPUT);
		kit_proved(&kit, 2, true);
		kit_proved(&kit, 2, false);
		kit_release(&kit);
	}
}

static void both_ends_must_say_so(void **state)
{
	struct kit kit;

	(void)state;
	kit_make(&kit, SCHED_TWOSHOT, 3, 1);
	kit_step(&kit, 1, 1, 0)->flags &= ~SCHED_RECV_INPUT;
	kit_refused(&kit, 2, false, "sends it as raw input");
	kit_release(&kit);
	kit_make(&kit, SCHED_TWOSHOT, 3, 1);
	kit_step(&kit, 2, 0, 1)->flags = 0;
	kit_refused(&kit, 2, false, "as raw input, rank 2 lane 0 step 1 sends");
	kit_release(&kit);
}

static void what_is_not_raw_input_is_refused(void **state)
{
	struct kit kit;

	(void)state;
	kit_make(&kit, SCHED_RING, 3, 1);
	/* A partial sum. */
	kit_step(&kit, 0, 0, 1)->flags |= SCHED_SEND_INPUT;
	kit_refused(&kit, 2, false, "it is to send raw input");
	kit_release(&kit);
	kit_make(&kit, SCHED_RING, 3, 1);
	kit_step(&kit, 0, 0, 0)->flags |= SCHED_RECV_INPUT;
	kit_refused(&kit, 2, false, "it is to take raw input from nobody");
	kit_release(&kit);
}

static void a_reader_that_does_not_answer_is_refused(void **state)
{
	struct kit kit;
	int rank;

	(void)state;
	kit_make(&kit, SCHED_ONESHOT, 3, 1);
	for (rank = 0; rank < 3; rank++) {
		kit_step(&kit, rank, 0, 0)->flags |= SCHED_SEND_INPUT;
		kit_step(&kit, rank, 1, 0)->flags |= SCHED_RECV_INPUT;
	}
	kit_refused(&kit, 2, false, "sends it nothing by which it could tell");
	kit_release(&kit);
}

static void input_overwritten_before_the_answer_is_refused(void **state)
{
	struct kit kit;
	struct sched_step *send, *fold, *guess, *take;

	(void)state;
	/* Rank 0 stores a first guess once its input is sent. */
	kit_blank(&kit, 2, 2, 1);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, -1, 0);
	kit_add(&kit, 1, 0, 0, 0, SCHED_INPUT, 0, 1);
	kit_add(&kit, 0, 1, 0, 1, SCHED_NONE, -1, 0);
	send = kit_step(&kit, 0, 0, 0);
	guess = kit_step(&kit, 0, 0, 1);
	fold = kit_step(&kit, 1, 0, 0);
	take = kit_step(&kit, 0, 1, 0);
	guess->flags = SCHED_STORE;
	fold->flags = SCHED_STORE;
	take->flags = SCHED_STORE;
	take->after_lane = 0;
	take->after_step = 1;
	kit_proved(&kit, 2, true);
	/* As long as it is a copy that was sent. */
	send->flags = SCHED_SEND_INPUT;
	fold->flags |= SCHED_RECV_INPUT;
	kit_proved(&kit, 2, false);
	kit_refused(&kit, 2, true, "takes the answer of a rank that read input "
				   "chunk 0 in place");
	kit_release(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(twoshot_may_read_inputs_in_place),
		cmocka_unit_test(both_ends_must_say_so),
		cmocka_unit_test(what_is_not_raw_input_is_refused),
		cmocka_unit_test(a_reader_that_does_not_answer_is_refused),
		cmocka_unit_test(input_overwritten_before_the_answer_is_refused),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
