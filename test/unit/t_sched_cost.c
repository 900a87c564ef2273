/* SPDX-License-Identifier: MIT */
/*
 * Goal: predictions follow from the schedule's own counts.
 * Method: shapes whose time is known by hand, each parameter alone by setting
 * all others to nothing; then properties over many shapes, among them what a
 * small shape says of a large one.
 */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>

#include "sched_kit.h"

#include "sched/stats.h"

#define NEAR(a, b) assert_near(a, b, __LINE__)

static void assert_near(double a, double b, int line)
{
	if (!(fabs(a - b) <= 1e-9 * fabs(b) + 1e-15))
		fail_msg("line %d: %.12g is not %.12g", line, a, b);
}

static const enum sched_algo algos[] = {SCHED_RING, SCHED_ONESHOT,
					SCHED_TWOSHOT};

/* A machine on which nothing takes any time, without slots' limits. */
static struct sched_cost free_of_charge(void)
{
	struct sched_cost cost;
	int i;

	sched_cost_default(&cost, 2, 2);
	for (i = 0; i < SCHED_TIERS; i++)
		cost.tiers[i] = (struct sched_tier){0};
	cost.fold = cost.copy = 1e30;
	cost.wait = cost.call = 0;
	cost.slot_bytes = 1ull << 40;
	cost.is_mapped = false;
	return cost;
}

static struct sched_shape shape_of(enum sched_algo algo, int n_ranks)
{
	return (struct sched_shape){.collective = SCHED_ALL_REDUCE,
				    .algo = algo,
				    .n_ranks = n_ranks,
				    .n_channels = 1};
}

/* Negative: there is no such form. */
static double predict(const struct sched_shape *shape,
		      const struct sched_cost *cost, size_t bytes)
{
	struct sched_stats stats;

	if (sched_stats_make(shape, cost, &stats))
		return -1;
	return sched_seconds(&stats, cost, bytes);
}

static void a_chain_of_messages_costs_its_latencies(void **state)
{
	struct sched_cost cost = free_of_charge();
	int n;

	(void)state;
	cost.tiers[0].latency = 1;
	for (n = 2; n <= 16; n++) {
		struct sched_shape ring = shape_of(SCHED_RING, n);
		struct sched_shape oneshot = shape_of(SCHED_ONESHOT, n);
		struct sched_shape twoshot = shape_of(SCHED_TWOSHOT, n);

		NEAR(predict(&ring, &cost, 8), 2.0 * (n - 1));
		NEAR(predict(&oneshot, &cost, 8), 1.0);
		NEAR(predict(&twoshot, &cost, 8), 2.0);
	}
}

/* 2(n - 1)/n of the vector through each port, oneshot n - 1 times. */
static void the_busiest_port_bounds_a_large_vector(void **state)
{
	struct sched_cost cost = free_of_charge();
	int n;

	(void)state;
	cost.tiers[0].bandwidth = 1e9;
	for (n = 2; n <= 16; n++) {
		struct sched_shape ring = shape_of(SCHED_RING, n);
		struct sched_shape oneshot = shape_of(SCHED_ONESHOT, n);
		struct sched_shape twoshot = shape_of(SCHED_TWOSHOT, n);

		NEAR(predict(&ring, &cost, 1000000),
		     2.0 * (n - 1) / n * 1e-3);
		NEAR(predict(&twoshot, &cost, 1000000),
		     2.0 * (n - 1) / n * 1e-3);
		NEAR(predict(&oneshot, &cost, 1000000),
		     (n - 1) * 1e-3);
	}
}

/* Ranks of a ring over two nodes: two of the n links are the network's. */
static void messages_know_their_tier(void **state)
{
	struct sched_cost cost = free_of_charge();
	struct sched_shape ring = shape_of(SCHED_RING, 8);
	struct sched_stats stats;

	(void)state;
	ring.n_nodes = 2;
	cost.n_rails = 1;
	cost.tiers[1].latency = 1;
	assert_int_equal(sched_stats_make(&ring, &cost, &stats), 0);
	/* 14 hops around a ring of 8: the longest passes four times. */
	NEAR(stats.first[0].messages[1], 4);
	NEAR(stats.first[0].messages[0], 10);
	NEAR(stats.busy.moved[0], 14.0 / 8);
	NEAR(sched_seconds(&stats, &cost, 1000), 4);
}

static void channels_share_by_the_rates_of_their_rails(void **state)
{
	struct sched_cost cost = free_of_charge();
	struct sched_shape ring = shape_of(SCHED_RING, 4);
	struct sched_stats stats;

	(void)state;
	ring.n_nodes = 4;
	ring.n_channels = 2;
	cost.n_rails = 2;
	cost.tiers[1].bandwidth = 2e9;
	cost.tiers[2].bandwidth = 1e9;
	NEAR(sched_channel_share(&ring, &cost, 0), 2.0 / 3);
	NEAR(sched_channel_share(&ring, &cost, 1), 1.0 / 3);
	assert_int_equal(sched_stats_make(&ring, &cost, &stats), 0);
	NEAR(stats.busy.moved[1], 1.5 * 2 / 3);
	NEAR(stats.busy.moved[2], 1.5 / 3);
	/* Both rails together: 3 GB/s. */
	NEAR(sched_seconds(&stats, &cost, 3000000), 1.5e-3);
	ring.n_channels = 3;
	NEAR(sched_channel_share(&ring, &cost, 0), 1.0 / 3);
	NEAR(sched_channel_share(&ring, &cost, 1), 1.0 / 3);
	NEAR(sched_channel_share(&ring, &cost, 2), 1.0 / 3);
}

/* A ring's single lane does one pass after the other. */
static void passes_of_a_ring_follow_each_other(void **state)
{
	struct sched_cost cost = free_of_charge();
	struct sched_shape ring = shape_of(SCHED_RING, 4);
	struct sched_stats stats;

	(void)state;
	cost.tiers[0].latency = 1;
	cost.slot_bytes = 1000;
	assert_int_equal(sched_stats_make(&ring, &cost, &stats), 0);
	NEAR(stats.pass_slots, 4);
	NEAR(sched_passes(&stats, &cost, 4000), 1);
	NEAR(sched_passes(&stats, &cost, 4001), 2);
	NEAR(sched_seconds(&stats, &cost, 4000), 6);
	NEAR(sched_seconds(&stats, &cost, 40000), 60);
}

/* Who only sends and who only folds do not wait for each other's end. */
static void passes_of_oneshot_overlap(void **state)
{
	struct sched_cost cost = free_of_charge();
	struct sched_shape shape = shape_of(SCHED_ONESHOT, 4);

	(void)state;
	cost.tiers[0].latency = 1;
	cost.slot_bytes = 1000;
	cost.n_slots = 4;
	/* The window: a round trip of 2 for each 4 slots. */
	NEAR(predict(&shape, &cost, 1000), 1);
	NEAR(predict(&shape, &cost, 11000), 1 + 10 * 0.5);
}

static void mapped_memory_needs_one_pass(void **state)
{
	struct sched_cost cost = free_of_charge();
	struct sched_shape twoshot = shape_of(SCHED_TWOSHOT, 4);
	struct sched_shape ring = shape_of(SCHED_RING, 4);
	struct sched_stats stats;

	(void)state;
	cost.is_mapped = true;
	cost.slot_bytes = 64;
	assert_int_equal(sched_stats_make(&twoshot, &cost, &stats), 0);
	NEAR(sched_passes(&stats, &cost, 1 << 20), 1);
	assert_int_equal(sched_stats_make(&ring, &cost, &stats), 0);
	NEAR(sched_passes(&stats, &cost, 1 << 20), (1 << 20) / 256.0);
}

static double *parameter(struct sched_cost *cost, int i)
{
	double *all[] = {
		&cost->tiers[0].latency, &cost->tiers[0].overhead,
		&cost->tiers[1].latency, &cost->tiers[1].overhead,
		&cost->wait, &cost->call, &cost->crowd,
	};

	return i < (int)base_countof(all) ? all[i] : NULL;
}

static void more_latency_or_bytes_never_cost_less(void **state)
{
	size_t a;
	int n, i;

	(void)state;
	for (a = 0; a < base_countof(algos); a++)
		for (n = 2; n <= 16; n++) {
			struct sched_shape shape = shape_of(algos[a], n);
			struct sched_cost cost;
			struct sched_stats stats;
			double last = 0;
			size_t bytes;

			shape.n_nodes = n > 3 ? 2 : 1;
			sched_cost_default(&cost, n, 2);
			cost.n_rails = n > 3;
			assert_int_equal(sched_stats_make(&shape, &cost,
							  &stats), 0);
			/* Up to one pass: more of them overlap. */
			for (bytes = 1; sched_passes(&stats, &cost, bytes) <
					1.5 && bytes < 1u << 28; bytes *= 2) {
				double now = sched_seconds(&stats, &cost,
							   bytes);

				assert_true(now >= last);
				last = now;
			}
			for (i = 0; parameter(&cost, i); i++) {
				struct sched_cost more = cost;

				*parameter(&more, i) = *parameter(&more, i) *
						       2 + 1e-6;
				assert_true(sched_seconds(&stats, &more, 4096)
					    >= sched_seconds(&stats, &cost,
							     4096));
			}
		}
}

/* The chains of halving grow where its lanes are shared: from 32 ranks on. */
static void compare_scaled(const struct sched_shape *shape,
			   const struct sched_cost *cost, size_t bytes)
{
	struct sched_stats whole, scaled;
	double a, b;

	assert_int_equal(sched_stats_scaled(shape, cost, 64, &whole), 0);
	assert_int_equal(sched_stats_scaled(shape, cost, 32, &scaled), 0);
	a = sched_seconds(&whole, cost, bytes);
	b = sched_seconds(&scaled, cost, bytes);
	if (fabs(b - a) > (shape->algo == SCHED_HALVING ? 0.25 : 0.15) * a)
		fail_msg("%s of %d ranks, %d nodes, %zu bytes: %g s, scaled "
			 "%g s", sched_algo_name(shape->algo), shape->n_ranks,
			 shape->n_nodes, bytes, a, b);
}

/* Every algorithm that has a form, on one node and on many. */
static void a_large_shape_is_like_a_small_one(void **state)
{
	static const int nodes[] = {1, 8, 64};
	struct sched_cost cost;
	size_t i, bytes;
	int a;

	(void)state;
	sched_cost_default(&cost, 1, 1);
	cost.n_rails = 1;
	cost.tiers[0].bandwidth = 100e9;
	for (a = 0; a < SCHED_N_ALGOS; a++)
		for (i = 0; i < base_countof(nodes); i++)
			for (bytes = 8; bytes <= 64 << 20; bytes *= 64) {
				struct sched_shape shape = shape_of(
					(enum sched_algo)a, 64);

				shape.n_nodes = nodes[i];
				if (!sched_has_form(shape.collective,
						    shape.algo))
					continue;
				compare_scaled(&shape, &cost, bytes);
			}
}

static void what_has_no_form_has_no_time(void **state)
{
	struct sched_shape shape = shape_of(SCHED_RING, 4);
	struct sched_cost cost = free_of_charge();

	(void)state;
	shape.algo = SCHED_DIRECT;
	assert_true(predict(&shape, &cost, 8) < 0);
}

static void a_shape_out_of_range_is_refused(void **state)
{
	static const int n_ranks[] = {-1, 0, SCHED_RANKS_MAX + 1};
	struct sched_cost cost = free_of_charge();
	struct sched_stats stats;
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(n_ranks); i++) {
		struct sched_shape shape = shape_of(SCHED_RING, n_ranks[i]);

		assert_int_equal(sched_stats_make(&shape, &cost, &stats),
				 WREATH_EINVAL);
	}
}

/* The slowest counts; who has not measured says nothing. */
static void what_ranks_measured_becomes_one_cost(void **state)
{
	struct sched_measured all[3] = {
		{.latency = {-1, 2e-6, -1}, .bandwidth = {5, 3e9, 7},
		 .maps_all = 1, .is_plain = 1},
		{.latency = {-1, 1e-6, -1}, .bandwidth = {0, 0, 0},
		 .maps_all = 1, .is_plain = 1},
		{.latency = {-1, NAN, 4e-6}, .bandwidth = {0, 1, 2e9},
		 .maps_all = 1, .is_plain = 1},
	};
	struct sched_cost cost, fallback;
	int i;

	(void)state;
	for (i = 3; i < SCHED_TIERS; i++)
		all[0].latency[i] = all[1].latency[i] = all[2].latency[i] = -1;
	sched_cost_default(&fallback, 4, 4);
	cost = fallback;
	sched_cost_measured(&cost, all, 3);
	NEAR(cost.tiers[0].latency, fallback.tiers[0].latency);
	NEAR(cost.tiers[1].latency, 2e-6);
	NEAR(cost.tiers[1].bandwidth, 3e9);
	NEAR(cost.tiers[2].latency, 4e-6);
	NEAR(cost.tiers[2].bandwidth, 2e9);
	NEAR(cost.tiers[3].bandwidth, fallback.tiers[3].bandwidth);
	assert_true(cost.is_plain);
	assert_true(cost.is_mapped);
	all[1].is_plain = all[2].maps_all = 0;
	sched_cost_measured(&cost, all, 3);
	assert_false(cost.is_plain);
	assert_false(cost.is_mapped);
}

static void a_cost_that_no_machine_has_is_named(void **state)
{
	struct sched_cost cost;

	(void)state;
	sched_cost_default(&cost, 8, 2);
	assert_null(sched_cost_fault(&cost));
	cost.tiers[1].latency = -1;
	assert_non_null(sched_cost_fault(&cost));
	cost.tiers[1].latency = NAN;
	assert_non_null(sched_cost_fault(&cost));
	sched_cost_default(&cost, 8, 2);
	cost.fold = 0;
	assert_non_null(sched_cost_fault(&cost));
	sched_cost_default(&cost, 8, 2);
	cost.n_rails = SCHED_RAILS_MAX + 1;
	assert_non_null(sched_cost_fault(&cost));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chain_of_messages_costs_its_latencies),
		cmocka_unit_test(the_busiest_port_bounds_a_large_vector),
		cmocka_unit_test(messages_know_their_tier),
		cmocka_unit_test(channels_share_by_the_rates_of_their_rails),
		cmocka_unit_test(passes_of_a_ring_follow_each_other),
		cmocka_unit_test(passes_of_oneshot_overlap),
		cmocka_unit_test(mapped_memory_needs_one_pass),
		cmocka_unit_test(more_latency_or_bytes_never_cost_less),
		cmocka_unit_test(a_large_shape_is_like_a_small_one),
		cmocka_unit_test(what_has_no_form_has_no_time),
		cmocka_unit_test(a_shape_out_of_range_is_refused),
		cmocka_unit_test(what_ranks_measured_becomes_one_cost),
		cmocka_unit_test(a_cost_that_no_machine_has_is_named),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
