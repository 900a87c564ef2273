/* SPDX-License-Identifier: MIT */
/*
 * Goal: every form of every algorithm is proved, for every number of ranks and
 * every root, with several layouts of nodes, in place and out of place, in a
 * time that a developer waits for.
 * Method: the whole table of generators is gone through; a row more is proved
 * without a change here.  The time is printed.
 */
#include "sched_all.h"

static void every_form_is_proved_for_every_rank_and_root(void **state)
{
	(void)state;
	/* Slowed down, a part of it shows what the tool is to see. */
	all_prove(KIT_IS_SLOW ? 12 : 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_is_proved_for_every_rank_and_root),
	};

	alarm(300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
