/* SPDX-License-Identifier: MIT */
/*
 * Goal: every form of every algorithm is proved, whatever the shape.
 * Method: all shapes of a few ranks; then shapes by chance, with nodes of any
 * sizes and in any order, up to four channels, and as few slots as go.  What is
 * proved is run by the judge in several orders as well, and must come out
 * right: an error of the verifier would have to be one of the judge too.
 * t_sched_all_long.c does all shapes of many ranks.
 */
#include "sched_all.h"

#define N_RANKS (KIT_IS_SLOW ? 6 : 11)
#define N_SHAPES (KIT_IS_SLOW ? 100 : 1000)
#define N_ORDERS 4

static void every_form_is_proved_for_few_ranks(void **state)
{
	(void)state;
	all_prove(N_RANKS);
}

/* Ring and pairwise forms alike: two slots are enough, for some one is. */
static int fewest_slots(const struct kit *kit, const struct sched_shape *shape)
{
	if (!kit_verify(kit, 1, false))
		return 1;
	if (kit_verify(kit, 2, false))
		all_fail(shape, base_error_text());
	return 2;
}

static void judge(const struct kit *kit, const struct sched_shape *shape,
		  int n_slots, bool in_place, uint64_t *random)
{
	int i;

	if (kit->n_ranks > JUDGE_RANKS ||
	    kit->scheds[0]->n_chunks > JUDGE_CHUNKS)
		return;
	for (i = 0; i < N_ORDERS; i++) {
		uint32_t slots = (uint32_t)n_slots + kit_below(random, 2);
		const char *wrong = judge_run(kit, slots, in_place,
					      kit_random(random));

		if (wrong)
			all_fail(shape, wrong);
	}
}

static void any_shape_is_proved_and_runs_right(void **state)
{
	uint64_t random = kit_seed();
	uint32_t nodes[ALL_RANKS_MAX];
	struct sched_shape shape;
	struct kit kit;
	int i, in_place;

	(void)state;
	for (i = 0; i < N_SHAPES; i++) {
		/* Most are small enough for the judge. */
		uint32_t n_max = kit_below(&random, 4) ? JUDGE_RANKS
						       : ALL_RANKS_MAX;
		int n_slots;

		all_draw(&kit, &shape, nodes, 1, n_max, &random);
		n_slots = fewest_slots(&kit, &shape);
		for (in_place = 0;
		     in_place <= kit_has_in_place(shape.collective);
		     in_place++) {
			if (kit_verify(&kit, n_slots, in_place))
				all_fail(&shape, base_error_text());
			judge(&kit, &shape, n_slots, in_place, &random);
		}
		kit_release(&kit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_is_proved_for_few_ranks),
		cmocka_unit_test(any_shape_is_proved_and_runs_right),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
