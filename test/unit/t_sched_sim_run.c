/* SPDX-License-Identifier: MIT */
/*
 * Goal: what holds of every schedule on every fabric.
 * Method: fabrics and schedules drawn by chance; folded against plain runs.
 */
#include "sched_trial.h"

/* A fabric of small numbers, with all of its parts. */
static void draw(uint64_t *seed, char *text, size_t size, int *n_channels)
{
	static const int leaves[] = {2, 4};
	int nodes = 4 << kit_below(seed, 3);
	int ranks = 1 + (int)kit_below(seed, 3);
	int rails = 1 + (int)kit_below(seed, 2);
	size_t n;
	int i;

	n = (size_t)snprintf(text, size, "nodes %d\nranks_per_node %d\n"
			     "ports %s\noverhead %uns\n", nodes, ranks,
			     kit_below(seed, 2) ? "per_node" : "per_rank",
			     kit_below(seed, 1000));
	for (i = 0; i < rails; i++)
		n += (size_t)snprintf(text + n, size - n, "rail %uG %uns\n",
				      1 + kit_below(seed, 400),
				      kit_below(seed, 20000));
	if (kit_below(seed, 2))
		n += (size_t)snprintf(text + n, size - n,
				      "nvlink %uGB/s 700ns\n",
				      1 + kit_below(seed, 400));
	if (kit_below(seed, 3))
		n += (size_t)snprintf(text + n, size - n,
				      "topology spine-leaf leaf %d "
				      "oversubscription %u\nswitch %uns\n",
				      leaves[kit_below(seed, 2)],
				      1 + kit_below(seed, 2),
				      kit_below(seed, 900));
	snprintf(text + n, size - n, "slot_bytes %uK\nslots %u\n",
		 1 + kit_below(seed, 64), 2 + kit_below(seed, 7));
	*n_channels = 1 + (int)kit_below(seed, (uint32_t)rails + 1);
}

/* Any form of any collective; false: there is none. */
static bool draw_trial(uint64_t *seed, struct trial *trial, char *text,
		       size_t size)
{
	int n_channels;
	enum sched_collective collective = (enum sched_collective)kit_below(
		seed, SCHED_N_COLLECTIVES);
	enum sched_algo algo =
		(enum sched_algo)kit_below(seed, SCHED_N_ALGOS);

	draw(seed, text, size, &n_channels);
	describe(trial, text, collective, algo,
		 kit_random(seed) >> (44 + kit_below(seed, 20)));
	trial->shape.n_channels = n_channels;
	if (sched_is_rooted(collective))
		trial->shape.root = (int)kit_below(
			seed, (uint32_t)trial->shape.n_ranks);
	return sched_has_form(collective, algo);
}

static void every_form_ends_and_not_before_its_bound(void **state)
{
	uint64_t seed = kit_seed();
	char text[512];
	int i, n = 0;

	(void)state;
	for (i = 0; n < (KIT_IS_SLOW ? 100 : 600); i++) {
		struct trial trial;
		double us;

		if (!draw_trial(&seed, &trial, text, sizeof(text)))
			continue;
		n++;
		us = run(&trial);
		if (!(us > 0) && trial.shape.n_ranks > 1)
			fail_msg("no time at all:\n%s", text);
		/* What every rank gets is more than it must, by a line. */
		if (us * 1e6 * 1.001 < (double)trial.sim.bound_ps)
			fail_msg("%s %s of %llu bytes: %g us, before its bound "
				 "of %g:\n%s",
				 sched_algo_name(trial.shape.algo),
				 sched_collective_name(trial.shape.collective),
				 (unsigned long long)trial.args.bytes, us,
				 (double)trial.sim.bound_ps / 1e6, text);
		if (trial.sim.utilisation > 1.0001)
			fail_msg("%s %s of %llu bytes: %s is busy for %g of the "
				 "time:\n%s",
				 sched_algo_name(trial.shape.algo),
				 sched_collective_name(trial.shape.collective),
				 (unsigned long long)trial.args.bytes,
				 trial.sim.busiest, trial.sim.utilisation,
				 text);
	}
}

static void equal_arguments_give_equal_bits(void **state)
{
	uint64_t seed = kit_seed();
	char text[512];
	int n = 0;

	(void)state;
	while (n < 100) {
		struct trial trial, again;

		if (!draw_trial(&seed, &trial, text, sizeof(text)))
			continue;
		n++;
		again = trial;
		run(&trial);
		run(&again);
		assert_int_equal(trial.sim.time_ps, again.sim.time_ps);
		assert_int_equal(trial.sim.n_messages, again.sim.n_messages);
		assert_string_equal(trial.sim.busiest, again.sim.busiest);
	}
}

static void the_path_accounts_for_all_of_the_time(void **state)
{
	uint64_t seed = kit_seed();
	char text[512];
	int n = 0;

	(void)state;
	while (n < 200) {
		struct trial trial;
		uint64_t sum = 0, at = 0;
		uint32_t i;

		if (!draw_trial(&seed, &trial, text, sizeof(text)))
			continue;
		n++;
		trial.args.shape = &trial.shape;
		trial.args.fabric = &trial.fabric;
		trial.args.trace_max = 1 << 20;
		if (sched_simulate(&trial.args, &trial.sim))
			fail_msg("%s", base_error_text());
		assert_true(trial.sim.n_hops > 0);
		for (i = 0; i < trial.sim.n_hops; i++) {
			assert_in_range(trial.sim.hops[i].rank, 0,
					trial.shape.n_ranks - 1);
			assert_true(trial.sim.hops[i].start_ps >= at);
			at = trial.sim.hops[i].start_ps;
		}
		assert_int_equal(trial.sim.hops[i - 1].end_ps,
				 trial.sim.time_ps);
		for (i = 0; i < SCHED_SIM_N_PARTS; i++)
			sum += trial.sim.part_ps[i];
		assert_int_equal(sum, trial.sim.time_ps);
		sched_sim_release(&trial.sim);
	}
}

static void folded_is_as_plain_where_chunks_are_equal(void **state)
{
	uint64_t seed = kit_seed();
	char text[512];
	int n_folded = 0, n_equal = 0, i;

	(void)state;
	for (i = 0; i < 4000 && n_folded < 150; i++) {
		struct trial folded, plain;
		double a, b;

		if (!draw_trial(&seed, &folded, text, sizeof(text)))
			continue;
		/* Whole lines for each piece of each block in each pass. */
		folded.args.bytes = (uint64_t)folded.shape.n_ranks *
				    folded.shape.n_ranks * 64 * 6 *
				    (1 + kit_below(&seed, 4));
		plain = folded;
		plain.args.is_plain = true;
		a = run(&folded);
		b = run(&plain);
		if (folded.sim.n_simulated == plain.sim.n_simulated ||
		    !plain.sim.is_even)
			continue;
		n_folded++;
		n_equal += fabs(a - b) <= 1e-9 * b;
		/* What comes at the same instant is served in any order. */
		if (fabs(a - b) > 0.2 * b)
			fail_msg("%s %s of %llu bytes: %g us folded, %g "
				 "plain:\n%s",
				 sched_algo_name(folded.shape.algo),
				 sched_collective_name(folded.shape.collective),
				 (unsigned long long)folded.args.bytes, a, b,
				 text);
	}
	print_message("%d of %d to the bit\n", n_equal, n_folded);
	assert_true(n_folded > 50);
	assert_true(n_equal * 10 > n_folded * 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_ends_and_not_before_its_bound),
		cmocka_unit_test(equal_arguments_give_equal_bits),
		cmocka_unit_test(the_path_accounts_for_all_of_the_time),
		cmocka_unit_test(folded_is_as_plain_where_chunks_are_equal),
	};

	alarm(100);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
