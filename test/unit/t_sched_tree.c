/* SPDX-License-Identifier: MIT */
/*
 * Goal: the trees are two, of which no rank is inner in both; they are as deep
 * as a logarithm, cross from node to node as seldom as they can, and reduce.
 * Method: the schedules of all ranks, for every number of ranks and for shapes
 * with nodes, are looked at, proved by the verifier, and run by the judge.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_judge.h"

#define N_RANKS 64

static int log2_of(int n)
{
	int log = 0;

	while (n >> (log + 1))
		log++;
	return log;
}

/* Schedules of a shape with nodes. */
static void make(struct kit *kit, const struct sched_shape *shape)
{
	kit->n_ranks = shape->n_ranks;
	for (int i = 0; i < shape->n_ranks; i++)
		assert_int_equal(sched_make(shape, i, &kit->scheds[i]), 0);
}

static struct sched_proof prove(const struct kit *kit, int n_slots,
				bool in_place)
{
	struct sched_proof proof;

	if (sched_verify(kit->scheds, kit->n_ranks, n_slots, in_place, &proof))
		fail_msg("%d ranks: %s", kit->n_ranks, base_error_text());
	return proof;
}

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
		make(&kit, &shape);
		proof = prove(&kit, 1, n % 2);
		assert_true(proof.depth <= (uint32_t)(2 * log2_of(n)));
		assert_int_equal(proof.chunks_sent_max,
				 proof.chunks_sent_bound);
		proof = prove(&kit, 2, !(n % 2));
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

static void draw_nodes(uint64_t *seed, int n_ranks, int n_nodes,
		       uint32_t *nodes)
{
	int i;

	for (i = 0; i < n_ranks; i++)
		nodes[i] = i < n_nodes ? (uint32_t)i
				       : kit_below(seed, (uint32_t)n_nodes);
	for (i = n_ranks - 1; i > 0; i--) {
		uint32_t j = kit_below(seed, (uint32_t)i + 1);
		uint32_t node = nodes[i];

		nodes[i] = nodes[j];
		nodes[j] = node;
	}
}

static int largest(const uint32_t *nodes, int n_ranks, int n_nodes)
{
	int sizes[N_RANKS] = {0};
	int max = 0;
	int i;

	for (i = 0; i < n_ranks; i++)
		sizes[nodes[i]]++;
	for (i = 0; i < n_nodes; i++)
		max = sizes[i] > max ? sizes[i] : max;
	return max;
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

		shape.n_ranks = 2 + (int)kit_below(&seed, 40);
		shape.n_nodes =
			1 + (int)kit_below(&seed, (uint32_t)shape.n_ranks);
		shape.n_channels = 1 + round % 4;
		shape.nodes = nodes;
		draw_nodes(&seed, shape.n_ranks, shape.n_nodes, nodes);
		make(&kit, &shape);
		proof = prove(&kit, 1 + round % 3, round & 1);
		i = log2_of(shape.n_nodes) +
		    log2_of(largest(nodes, shape.n_ranks, shape.n_nodes));
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
	uint64_t seed = kit_seed();
	struct kit kit;
	int n, i;

	(void)state;
	for (n = 1; n <= JUDGE_RANKS; n++) {
		kit_make(&kit, SCHED_TREE, n, 1 + n % 4);
		for (i = 0; i < 8; i++) {
			const char *wrong =
				judge_run(&kit, 1 + (uint32_t)i % 4, i % 2,
					  kit_random(&seed));

			if (wrong)
				fail_msg("%d ranks: %s", n, wrong);
		}
		kit_release(&kit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			tree_of_all_ranks_is_proved_and_as_deep_as_a_logarithm),
		cmocka_unit_test(tree_over_nodes_has_one_link_up_and_two_down),
		cmocka_unit_test(tree_has_no_rank_that_is_inner_twice),
		cmocka_unit_test(tree_reduces_every_chunk_once_in_any_order),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
