/* SPDX-License-Identifier: MIT */
/*
 * Goal: predicted times follow from the schedule and the fabric, and from
 * nothing else.
 * Method: fabrics simple enough for a formula.
 */
#include "sched_trial.h"

/* Hosts that take 1 us a message, and no time else; 1 GB/s and 10 us. */
#define SIMPLE "rail 1GB/s 10us\noverhead 1us\nreduce free\ncopy free\n"

static void a_ring_takes_two_rounds_of_its_hops(void **state)
{
	static const int ranks[] = {2, 3, 4, 7, 16, 64};
	char text[256];
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(ranks); i++) {
		int n = ranks[i];
		/* A hop is a latency, a chunk's time, and both overheads. */
		double hop = 10 + 64 * 1.024 + 2;

		snprintf(text, sizeof(text), "nodes %d\n" SIMPLE, n);
		is_near(predict(text, SCHED_ALL_REDUCE, SCHED_RING,
				(uint64_t)n * 65536),
			2 * (n - 1) * hop, 1e-6);
		is_near(predict(text, SCHED_ALL_GATHER, SCHED_RING,
				(uint64_t)n * 512),
			(n - 1) * (10 + 0.512 + 2), 1e-6);
		/* Larger blocks wait for the grant of a place at first. */
		is_near(predict(text, SCHED_ALL_GATHER, SCHED_RING,
				(uint64_t)n * 2048),
			11 + (n - 1) * (10 + 2.048 + 2), 1e-6);
	}
}

static void folding_and_copying_take_their_time(void **state)
{
	(void)state;
	/* A chunk is copied by both, folded by both, and copied on. */
	is_near(predict("nodes 2\nrail 1GB/s 10us\noverhead 1us\n"
			"reduce 2GB/s\ncopy 4GB/s\n", SCHED_ALL_REDUCE,
			SCHED_RING, 2 * 100 * 64),
		2 * (10 + 6.4 + 2) + 6.4 / 4 + 6.4 / 2, 1e-6);
}

static void a_tree_grows_with_the_logarithm(void **state)
{
	double before = 0, us, first = 0;
	char text[256];
	int n;

	(void)state;
	for (n = 4; n <= 1024; n *= 2) {
		snprintf(text, sizeof(text), "nodes %d\n" SIMPLE, n);
		us = predict(text, SCHED_ALL_REDUCE, SCHED_TREE, 8);
		/* Up and down one level more: two hops, and what they cost. */
		if (before > 0) {
			if (!first)
				first = us - before;
			assert_true(us - before > 0);
			is_near(us - before, first, 0.5);
		}
		before = us;
	}
}

static void split_ring_takes_half_the_hops_of_a_ring(void **state)
{
	char text[256];
	int n;

	(void)state;
	for (n = 8; n <= 64; n *= 2) {
		double ring, split;

		snprintf(text, sizeof(text), "nodes %d\nrail 1GB/s 100us\n"
			 "overhead 0us\nreduce free\ncopy free\n", n);
		ring = predict(text, SCHED_ALL_REDUCE, SCHED_RING, 8);
		split = predict(text, SCHED_ALL_REDUCE, SCHED_SPLIT_RING, 8);
		is_near(split / ring, 0.5, 0.25);
	}
}

static void slots_under_way_fill_the_wire(void **state)
{
	double two, eight;

	(void)state;
	/* Two ranks, 64 passes; a slot's time is a tenth of the latency. */
	two = predict("nodes 2\n" SIMPLE "slot_bytes 1024\nslots 2\n",
		      SCHED_BROADCAST, SCHED_RING, 65536);
	eight = predict("nodes 2\n" SIMPLE "slot_bytes 1024\nslots 8\n",
			SCHED_BROADCAST, SCHED_RING, 65536);
	/* With two, each waits for the credit of the one before the last. */
	is_near(two, 32 * (1 + 1.024 + 10 + 1 + 0.064 + 10), 0.1);
	is_near(eight, two / 4, 0.3);
}

static void an_oversubscribed_leaf_takes_its_time(void **state)
{
	static const int by[] = {1, 2, 4};
	char text[256];
	double full = 0;
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(by); i++) {
		double us;

		snprintf(text, sizeof(text), "nodes 16\n" SIMPLE
			 "topology spine-leaf leaf 8 oversubscription %d\n"
			 "slots 8\n", by[i]);
		us = predict(text, SCHED_ALL_TO_ALL, SCHED_DIRECT, 64 << 20);
		/* A leaf's 8 nodes send 8 blocks each over 8 / by ways. */
		if (by[i] == 1)
			full = us;
		else
			assert_true(us > full);
		assert_true(us >= 4 * 8 * 1.048576e3 * by[i]);
		assert_true(us <= 1.5 * 4 * 15 * 1.048576e3 * by[i]);
	}
}

static void a_slow_port_slows_both_of_its_ways(void **state)
{
	double fast, slow;

	(void)state;
	fast = predict("nodes 4\n" SIMPLE, SCHED_ALL_REDUCE, SCHED_RING,
		       4 << 20);
	slow = predict("nodes 4\n" SIMPLE
		       "slow link node 2 rail 0 rate 0.25GB/s\n",
		       SCHED_ALL_REDUCE, SCHED_RING, 4 << 20);
	assert_true(slow > 3 * fast && slow < 5 * fast);
}

static void further_passes_take_what_the_last_ones_took(void **state)
{
	static const enum sched_algo algos[] = {SCHED_RING, SCHED_TREE,
						SCHED_SPLIT_RING};
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(algos); i++) {
		struct trial some, all;

		describe(&some, "nodes 8\nranks_per_node 2\nrail 10GB/s 5us\n"
			 "slot_bytes 1K\n", SCHED_ALL_REDUCE, algos[i],
			 16 << 20);
		all = some;
		some.args.messages_enough = 1;
		is_near(run(&some), run(&all), 0.01);
		assert_int_equal(all.sim.n_passes_run, all.sim.n_passes);
		assert_true(some.sim.n_passes_run < some.sim.n_passes);
	}
}

static void a_faster_rail_is_never_slower_in_a_ring(void **state)
{
	double before = INFINITY;
	char text[256];
	int rate;

	(void)state;
	for (rate = 1; rate <= 800; rate *= 2) {
		double us;

		snprintf(text, sizeof(text), "nodes 8\nranks_per_node 2\n"
			 "rail %dG 2us\n", rate);
		us = predict(text, SCHED_ALL_REDUCE, SCHED_RING, 16 << 20);
		assert_true(us <= before);
		before = us;
	}
}

static void what_cannot_be_simulated_is_refused(void **state)
{
	struct trial trial;

	(void)state;
	describe(&trial, "nodes 4\nrail 1G 1us\n", SCHED_ALL_REDUCE,
		 SCHED_DIRECT, 64);
	trial.args.shape = &trial.shape;
	trial.args.fabric = &trial.fabric;
	assert_int_equal(sched_simulate(&trial.args, &trial.sim),
			 WREATH_EUNSUP);
	trial.shape.algo = SCHED_RING;
	trial.shape.n_ranks = 5;
	assert_int_equal(sched_simulate(&trial.args, &trial.sim),
			 WREATH_EINVAL);
	trial.shape.n_ranks = 4;
	trial.args.is_plain = true;
	trial.args.messages_max = 23;
	assert_int_equal(sched_simulate(&trial.args, &trial.sim),
			 WREATH_EUNSUP);
	trial.args.messages_max = 24;
	assert_int_equal(sched_simulate(&trial.args, &trial.sim), 0);
	sched_sim_release(&trial.sim);
}

static void no_memory_is_an_error_and_leaves_nothing(void **state)
{
	struct trial trial;
	uint64_t n;
	int err;

	(void)state;
	describe(&trial, "nodes 4\nranks_per_node 2\nrail 1G 1us\n"
		 "topology spine-leaf leaf 2\n", SCHED_ALL_REDUCE, SCHED_TREE,
		 1 << 20);
	trial.args.shape = &trial.shape;
	trial.args.fabric = &trial.fabric;
	trial.args.trace_max = 1 << 20;
	for (n = 1; n < 2000; n++) {
		base_alloc_fail_at(n);
		err = sched_simulate(&trial.args, &trial.sim);
		base_alloc_fail_at(0);
		if (!err)
			break;
		assert_int_equal(err, WREATH_ENOMEM);
	}
	assert_int_equal(err, 0);
	sched_sim_release(&trial.sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_takes_two_rounds_of_its_hops),
		cmocka_unit_test(folding_and_copying_take_their_time),
		cmocka_unit_test(a_tree_grows_with_the_logarithm),
		cmocka_unit_test(split_ring_takes_half_the_hops_of_a_ring),
		cmocka_unit_test(slots_under_way_fill_the_wire),
		cmocka_unit_test(an_oversubscribed_leaf_takes_its_time),
		cmocka_unit_test(a_slow_port_slows_both_of_its_ways),
		cmocka_unit_test(further_passes_take_what_the_last_ones_took),
		cmocka_unit_test(a_faster_rail_is_never_slower_in_a_ring),
		cmocka_unit_test(what_cannot_be_simulated_is_refused),
		cmocka_unit_test(no_memory_is_an_error_and_leaves_nothing),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
