/* SPDX-License-Identifier: MIT */
/* The judge in many orders: what can go wrong, and what does not. */
#ifndef SCHED_ORDERS_H
#define SCHED_ORDERS_H

#include "sched_judge.h"

/* What can go wrong does in one order of a hundred at least. */
#define N_ORDERS (KIT_IS_SLOW ? 1000 : 5000)

/* Whether some order, of many, makes a wrong result. */
static inline bool orders_can_fail(const struct kit *kit, bool in_place)
{
	uint64_t seed = kit_seed();
	int i;

	for (i = 0; i < N_ORDERS; i++) {
		if (judge_run(kit, 2, in_place, kit_random(&seed)))
			return true;
	}
	return false;
}

/* An all_reduce by @algo is right for few ranks, from so many slots on. */
static inline void orders_reduce(enum sched_algo algo, uint32_t n_slots_min)
{
	uint64_t seed = kit_seed();
	struct kit kit;
	uint32_t i;
	int n;

	for (n = 1; n <= JUDGE_RANKS; n++) {
		kit_make(&kit, algo, n, 1 + n % 4);
		for (i = 0; i < 8; i++) {
			uint32_t n_slots = n_slots_min +
					   i % (JUDGE_SLOTS + 1 - n_slots_min);
			const char *wrong = judge_run(&kit, n_slots, i % 2,
						      kit_random(&seed));

			if (wrong)
				fail_msg("%s, %d ranks: %s",
					 sched_algo_name(algo), n, wrong);
		}
		kit_release(&kit);
	}
}

#endif
