/* SPDX-License-Identifier: MIT */
/*
 * Goal: the trees are two, of which no rank is inner in both; they are as deep
 * as a logarithm, cross from node to node as seldom as they can, and reduce.
 * Method: the schedules of all ranks, for every number of ranks and for shapes
 * with nodes, are looked at, proved by the verifier, and run by the judge.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_nodes.h"
#include "sched_orders.h"

#define N_RANKS NODES_RANKS

static void tree_of_all_ranks_is_proved_and_as_deep_as_a_logarithm(void **state)
{
	struct sched_shape shape = {.algo = SCHED_TREE};
	struct sched_proof proof;
	struct kit kit;
	int n;

	(void)state;
	for (n = 2; n <= N_RANKS; n++) {
		shape.n_ranks = n;
		shape.n_channels = 1 + n % 3;
		assert_true(kit_make_shape(&kit, &shape));
		proof = nodes_prove(&kit, 1, n % 2);
		assert_true(proof.depth <= (uint32_t)(2 * nodes_log2(n)));
		assert_int_equal(proof.chunks_sent_max,
				 proof.chunks_sent_bound);
		proof = nodes_prove(&kit, 2, !(n % 2));
		kit_release(&kit);
	}
}

/* Does a rank take anything from below in the tree? */
static bool is_inner(const struct sched *sched, uint32_t tree)
{
	const struct sched_lane *up = &sched->lanes[2 * tree];

	assert_int_equal(up->n_steps, 1);
	return sched->steps[up->step].n_recv > 0;
}

/* How many peers of other nodes a rank's node has in one tree. */
static void check_crossings(const struct kit *kit, const uint32_t *nodes,
			    uint32_t tree)
{
	int up[N_RANKS] = {0};
	int down[N_RANKS] = {0};
	int i;
	uint32_t j;

	for (i = 0; i < kit->n_ranks; i++) {
		const struct sched *sched = kit->scheds[i];
		const struct sched_step *step =
			&sched->steps[sched->lanes[2 * tree].step];

		for (j = 0; j < step->n_recv; j++)
			down[nodes[i]] += nodes[sched->peers[step->recv + j]] !=
					  nodes[i];
		if (step->n_send == 1 && !(step->flags & SCHED_SEND_FINAL))
			up[nodes[i]] +=
				nodes[sched->peers[step->send]] != nodes[i];
	}
	for (i = 0; i < N_RANKS; i++) {
		assert_true(up[i] <= 1);
		assert_true(down[i] <= 2);
	}
}

static void tree_over_nodes_has_one_link_up_and_two_down(void **state)
{
	struct sched_shape shape = {.algo = SCHED_TREE};
	uint64_t seed = kit_seed();
	uint32_t nodes[N_RANKS];
	struct kit kit;
	int round, i;

	(void)state;
	for (round = 0; round < 60; round++) {
		struct sched_proof proof;
		uint32_t tree;

		shape.n_channels = 1 + round % 4;
		nodes_draw_shape(&shape, 41, nodes, &seed);
		assert_true(kit_make_shape(&kit, &shape));
		proof = nodes_prove(&kit, 1 + round % 3, round & 1);
		i = nodes_log2(shape.n_nodes) +
		    nodes_log2(nodes_largest(&shape));
		assert_true(proof.depth <= (uint32_t)(2 * i));
		for (tree = 0; tree < 2 * (uint32_t)shape.n_channels; tree++)
			check_crossings(&kit, nodes, tree);
		for (i = 0; i < shape.n_ranks; i++)
			for (tree = 0; tree < 2 * (uint32_t)shape.n_channels;
			     tree += 2)
				assert_false(is_inner(kit.scheds[i], tree) &&
					     is_inner(kit.scheds[i], tree + 1));
		kit_release(&kit);
	}
}

static void tree_of_any_root_is_one_deeper_at_most(void **state)
{
	static const enum sched_collective rooted[] = {SCHED_BROADCAST,
						       SCHED_REDUCE};
	uint64_t seed = kit_seed();
	uint32_t nodes[N_RANKS];
	struct kit kit;
	int round;

	(void)state;
	for (round = 0; round < 200; round++) {
		uint32_t n = 2 + kit_below(&seed, N_RANKS - 1);
		uint32_t n_nodes = 1 + kit_below(&seed, round % 2 ? n : 1);
		struct sched_shape shape = {
			.collective = rooted[round / 2 % 2],
			.algo = SCHED_TREE,
			.n_ranks = (int)n,
			.n_channels = 1 + round % 4,
			.root = (int)kit_below(&seed, n),
			.n_nodes = (int)n_nodes,
			.nodes = nodes,
		};
		struct sched_proof proof;
		int depth;

		kit_draw_nodes(&seed, n, n_nodes, nodes);
		assert_true(kit_make_shape(&kit, &shape));
		proof = nodes_prove(&kit, 1 + round % 3, round % 2);
		depth = 1 + nodes_log2(shape.n_nodes) +
			nodes_log2(nodes_largest(&shape));
		assert_true(proof.depth <= (uint32_t)depth);
		kit_release(&kit);
	}
}

static void tree_has_no_rank_that_is_inner_twice(void **state)
{
	struct kit kit;
	int n, i;

	(void)state;
	for (n = 2; n <= N_RANKS; n++) {
		kit_make(&kit, SCHED_TREE, n, 2);
		for (i = 0; i < n; i++) {
			assert_false(is_inner(kit.scheds[i], 0) &&
				     is_inner(kit.scheds[i], 1));
			assert_false(is_inner(kit.scheds[i], 2) &&
				     is_inner(kit.scheds[i], 3));
		}
		kit_release(&kit);
	}
}

static void tree_reduces_every_chunk_once_in_any_order(void **state)
{
	(void)state;
	orders_reduce(SCHED_TREE, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			tree_of_all_ranks_is_proved_and_as_deep_as_a_logarithm),
		cmocka_unit_test(tree_over_nodes_has_one_link_up_and_two_down),
		cmocka_unit_test(tree_of_any_root_is_one_deeper_at_most),
		cmocka_unit_test(tree_has_no_rank_that_is_inner_twice),
		cmocka_unit_test(tree_reduces_every_chunk_once_in_any_order),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
