/* SPDX-License-Identifier: MIT */
/*
 * Goal: a schedule that can deadlock with the slots given is refused, and one
 * that cannot is not.
 * Method: small schedules with waits in a circle, each closed by another kind
 * of wait; chains that need a known number of slots.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_judge.h"

static void crossed_waits_are_refused(void **state)
{
	struct kit kit;
	int rank;

	(void)state;
	/* Each rank takes the other's chunk before it sends its own. */
	kit_make(&kit, SCHED_RING, 2, 1);
	for (rank = 0; rank < 2; rank++) {
		struct sched_step *steps = kit_step(&kit, rank, 0, 0);
		struct sched_step first = steps[0];

		steps[0] = steps[1];
		steps[1] = first;
	}
	assert_int_equal(kit_verify(&kit, 4, false), WREATH_EINVAL);
	kit_release(&kit);

	kit_blank(&kit, 2, 1, 2);
	for (rank = 0; rank < 2; rank++) {
		uint32_t own = (uint32_t)rank;

		kit_add(&kit, rank, 0, 1 - own, 1 - rank, SCHED_INPUT, -1, 0)
			->flags = SCHED_STORE;
		kit_add(&kit, rank, 0, own, -1, SCHED_INPUT, 1 - rank, 0);
	}
	kit_refused(&kit, 4, false,
		    "rank 0 lane 0 step 0: a deadlock with 4 slots: it waits "
		    "for a message, and rank 1 lane 0 step 0 waits in a "
		    "circle with it");
	assert_string_equal(judge_run(&kit, 4, false, 1), "a lane is stuck");
	kit_release(&kit);
}

static void steps_after_each_other_are_refused(void **state)
{
	struct sched_step *step;
	struct kit kit;

	(void)state;
	kit_make(&kit, SCHED_ONESHOT, 2, 1);
	step = kit_step(&kit, 1, 0, 0);
	step->after_lane = 1;
	step->after_step = 0;
	kit_refused(&kit, 2, false, "it waits for the step that it runs after");
	/* A step after itself, and one after a later one of its lane. */
	step->after_lane = 0;
	kit_refused(&kit, 2, false,
		    "rank 1 lane 0 step 0: a deadlock with 2 slots: it waits "
		    "for the step that it runs after, and rank 1 lane 0 step 0 "
		    "waits in a circle with it");
	kit_release(&kit);
	kit_make(&kit, SCHED_RING, 3, 1);
	step = kit_step(&kit, 1, 0, 1);
	step->after_lane = 0;
	step->after_step = 3;
	kit_refused(&kit, 2, false, "rank 1 lane 0 step 1: a deadlock");
	step->after_step = 0;
	kit_proved(&kit, 2, false);
	kit_release(&kit);
}

/* With one slot each, all ranks of a ring hold one and want another. */
static void a_ring_needs_a_second_slot(void **state)
{
	struct kit kit;
	int n;

	(void)state;
	for (n = 3; n <= 6; n++) {
		kit_make(&kit, SCHED_RING, n, 2);
		kit_refused(&kit, 1, true, "a deadlock with 1 slots: it waits "
					   "for room at a peer");
		kit_proved(&kit, 2, true);
		kit_release(&kit);
	}
}

static void direct_exchanges_need_one_slot_only(void **state)
{
	struct kit kit;
	int n;

	(void)state;
	for (n = 2; n <= 6; n++) {
		kit_make(&kit, SCHED_ONESHOT, n, 2);
		kit_proved(&kit, 1, true);
		kit_release(&kit);
		kit_make(&kit, SCHED_TWOSHOT, n, 2);
		kit_proved(&kit, 1, true);
		kit_release(&kit);
	}
}

/*
 * Rank 0 sends @n chunks before it takes the first of as many, and so does
 * rank 1: it goes through with n slots and not with fewer.
 */
static void as_many_slots_as_are_needed_are_enough(void **state)
{
	struct kit kit;
	uint32_t n, i;
	int rank;

	(void)state;
	for (n = 1; n <= 5; n++) {
		kit_blank(&kit, 2, 1, n);
		for (rank = 0; rank < 2; rank++) {
			for (i = 0; i < n; i++)
				kit_add(&kit, rank, 0, i, -1, SCHED_INPUT,
					1 - rank, 0);
			for (i = 0; i < n; i++) {
				struct sched_step *step =
					kit_add(&kit, rank, 0, i, 1 - rank,
						SCHED_INPUT, -1, 0);

				step->local_at = rank ? 1 : 0;
				step->flags = SCHED_STORE;
			}
		}
		kit_proved(&kit, (int)n, true);
		if (n > 1)
			kit_refused(&kit, (int)n - 1, true,
				    "it waits for room at a peer");
		kit_release(&kit);
	}
}

/*
 * The room of a later pass counts as well: lane 0 of rank 0 may be a pass
 * ahead of lane 1, but no further than the slots let it.
 */
static void lanes_that_run_ahead_do_not_deadlock(void **state)
{
	struct kit kit;
	int n_slots;

	(void)state;
	kit_make(&kit, SCHED_TWOSHOT, 4, 4);
	for (n_slots = 1; n_slots <= 8; n_slots++)
		kit_proved(&kit, n_slots, true);
	kit_proved(&kit, 1 << 30, true);
	kit_release(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crossed_waits_are_refused),
		cmocka_unit_test(steps_after_each_other_are_refused),
		cmocka_unit_test(a_ring_needs_a_second_slot),
		cmocka_unit_test(direct_exchanges_need_one_slot_only),
		cmocka_unit_test(as_many_slots_as_are_needed_are_enough),
		cmocka_unit_test(lanes_that_run_ahead_do_not_deadlock),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
