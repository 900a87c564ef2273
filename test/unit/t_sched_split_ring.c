/* SPDX-License-Identifier: MIT */
/*
 * Goal: the split ring reduces over any nodes; its arcs are half a ring long;
 * what leaves a node is what has to; every chunk is folded once, at one rank.
 * Method: schedules of every number of ranks and nodes, in order and listed,
 * are proved by the verifier, looked at, and run by the judge.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_judge.h"
#include "sched_nodes.h"

/* Hops between nodes, both ways, and inside them where there is company. */
static uint32_t depth_of(const struct sched_shape *shape, int n_nodes)
{
	return 2 * (uint32_t)(n_nodes / 2) +
	       2 * (nodes_largest(shape) > 1);
}

static void split_ring_of_single_ranks_is_half_as_deep_as_a_ring(void **state)
{
	struct sched_shape shape = {.algo = SCHED_SPLIT_RING};
	struct kit kit;
	int n;

	(void)state;
	for (n = 2; n <= NODES_RANKS; n += 1 + n / 16) {
		struct sched_proof proof;

		shape.n_ranks = n;
		shape.n_nodes = n;
		shape.n_channels = 1 + n % 2;
		assert_true(kit_make_shape(&kit, &shape));
		proof = nodes_prove(&kit, 2, n % 2);
		assert_int_equal(proof.depth, n / 2 * 2);
		assert_int_equal(proof.chunks_sent_max,
				 2 * (n - 1) * shape.n_channels);
		assert_int_equal(proof.chunks_sent_max,
				 proof.chunks_sent_bound);
		kit_release(&kit);
	}
}

static void split_ring_is_proved_over_all_nodes_in_order(void **state)
{
	struct sched_shape shape = {.algo = SCHED_SPLIT_RING};
	int n_max = KIT_IS_SLOW ? 10 : 20;
	struct kit kit;
	int n, m, in_place;

	(void)state;
	for (n = 2; n <= n_max; n++) {
		for (m = 1; m <= n; m++) {
			struct sched_proof proof;

			shape.n_ranks = n;
			shape.n_nodes = m;
			shape.n_channels = 1 + (n + m) % 3;
			assert_true(kit_make_shape(&kit, &shape));
			for (in_place = 0; in_place < 2; in_place++) {
				proof = nodes_prove(&kit, 2, in_place);
				assert_int_equal(proof.depth,
						 depth_of(&shape, m));
				assert_int_equal(proof.chunks_sent_max,
						 proof.chunks_sent_bound);
			}
			kit_release(&kit);
		}
	}
}

/* Messages that a rank sends out of its node, in chunks of one block each. */
static uint32_t count_crossings(const struct kit *kit, int rank)
{
	const struct sched *sched = kit->scheds[rank];
	int node = sched_node_of(&sched->shape, rank);
	uint32_t n = 0;
	uint32_t i, j;

	for (i = 0; i < sched->n_steps; i++) {
		const struct sched_step *step = &sched->steps[i];

		for (j = 0; j < step->n_send; j++) {
			int peer = (int)sched->peers[step->send + j];

			n += sched_node_of(&sched->shape, peer) != node;
		}
	}
	return n;
}

/* With m nodes, 2(m - 1)/m of the vector, shared out among the members. */
static void check_crossings(const struct kit *kit)
{
	const struct sched *first = kit->scheds[0];
	uint32_t n_nodes = (uint32_t)first->shape.n_nodes;
	uint32_t all[NODES_RANKS] = {0};
	uint32_t i;
	int rank;

	for (rank = 0; rank < kit->n_ranks; rank++) {
		int node = sched_node_of(&first->shape, rank);
		uint32_t n = count_crossings(kit, rank);

		/* A member sends this for each of its channels, or nothing. */
		assert_int_equal(n % (n_nodes > 1 ? 2 * (n_nodes - 1) : 1), 0);
		all[node] += n;
	}
	for (i = 0; i < n_nodes; i++)
		assert_int_equal(all[i],
				 2 * (n_nodes - 1) * first->n_pieces / n_nodes);
}

static void split_ring_over_any_nodes_sends_out_what_it_has_to(void **state)
{
	struct sched_shape shape = {.algo = SCHED_SPLIT_RING};
	uint64_t seed = kit_seed();
	uint32_t nodes[NODES_RANKS];
	int n_rounds = KIT_IS_SLOW ? 10 : 60;
	struct kit kit;
	int round;

	(void)state;
	for (round = 0; round < n_rounds; round++) {
		struct sched_proof proof;

		shape.n_channels = 1 + round % 4;
		nodes_draw_shape(&shape, 21, nodes, &seed);
		assert_true(kit_make_shape(&kit, &shape));
		proof = nodes_prove(&kit, 2 + round % 3, round & 1);
		assert_int_equal(proof.depth, depth_of(&shape, shape.n_nodes));
		check_crossings(&kit);
		kit_release(&kit);
	}
}

/* Blocks of ranks: those of small nodes are members of several shards. */
static void split_ring_is_proved_with_blocks_of_all_ranks(void **state)
{
	static const enum sched_collective halves[] = {SCHED_REDUCE_SCATTER,
						       SCHED_ALL_GATHER};
	uint64_t seed = kit_seed();
	uint32_t nodes[NODES_RANKS];
	int n_rounds = KIT_IS_SLOW ? 20 : 100;
	struct kit kit;
	int round;

	(void)state;
	for (round = 0; round < n_rounds; round++) {
		struct sched_shape shape = {
			.collective = halves[round % 2],
			.algo = SCHED_SPLIT_RING,
			.n_channels = 1 + round % 3,
		};

		nodes_draw_shape(&shape, 21, nodes, &seed);
		assert_true(kit_make_shape(&kit, &shape));
		nodes_prove(&kit, 2 + round % 2, round / 2 % 2);
		kit_release(&kit);
	}
}

static void split_ring_with_blocks_is_half_as_deep(void **state)
{
	struct sched_shape shape = {.algo = SCHED_SPLIT_RING, .n_channels = 1};
	struct kit kit;
	int n, size, half;

	(void)state;
	for (size = 1; size <= 3; size++) {
		for (n = 2; n <= 12; n++) {
			for (half = 0; half < 2; half++) {
				struct sched_proof proof;

				shape.collective = half ? SCHED_ALL_GATHER
							: SCHED_REDUCE_SCATTER;
				shape.n_ranks = n * size;
				shape.n_nodes = n;
				assert_true(kit_make_shape(&kit, &shape));
				proof = nodes_prove(&kit, 2, false);
				assert_int_equal(proof.depth,
						 n / 2 + (size > 1));
				assert_int_equal(proof.chunks_sent_max,
						 proof.chunks_sent_bound);
				kit_release(&kit);
			}
		}
	}
}

static void a_node_larger_than_one_fold_is_refused(void **state)
{
	struct sched_shape shape = {.algo = SCHED_SPLIT_RING, .n_channels = 1};
	struct sched *sched;

	(void)state;
	/* The own vector is one of 64; arcs bring one or two more. */
	for (shape.n_nodes = 1; shape.n_nodes <= 3; shape.n_nodes++) {
		int max = 65 - shape.n_nodes;

		shape.n_ranks = max * shape.n_nodes;
		assert_int_equal(sched_make(&shape, 0, &sched), 0);
		sched_free(sched);
		shape.n_ranks++;
		assert_int_equal(sched_make(&shape, 0, &sched), WREATH_EUNSUP);
		assert_non_null(strstr(base_error_text(), "ranks of a node"));
	}
	shape.collective = SCHED_ALL_GATHER;
	assert_int_equal(sched_make(&shape, 0, &sched), 0);
	sched_free(sched);
}

/* A result is what is stored as it was folded; all others store a copy. */
static void split_ring_folds_each_chunk_at_one_rank(void **state)
{
	struct sched_shape shape = {.algo = SCHED_SPLIT_RING,
				    .n_ranks = 11,
				    .n_channels = 2,
				    .n_nodes = 3};
	int owners[256] = {0};
	struct kit kit;
	uint32_t i;
	int rank;

	(void)state;
	assert_true(kit_make_shape(&kit, &shape));
	assert_true(kit.scheds[0]->n_pieces <= base_countof(owners));
	for (rank = 0; rank < shape.n_ranks; rank++) {
		const struct sched *sched = kit.scheds[rank];

		for (i = 0; i < sched->n_steps; i++) {
			const struct sched_step *step = &sched->steps[i];

			if (step->flags & SCHED_STORE &&
			    !(step->flags & SCHED_RECV_FINAL))
				owners[step->chunk]++;
		}
	}
	for (i = 0; i < kit.scheds[0]->n_pieces; i++)
		assert_int_equal(owners[i], 1);
	kit_release(&kit);
}

static void one_node_moves_only_raw_input_and_results(void **state)
{
	struct kit kit;
	uint32_t i;
	int rank;

	(void)state;
	kit_make(&kit, SCHED_SPLIT_RING, 6, 2);
	for (rank = 0; rank < 6; rank++) {
		for (i = 0; i < kit.scheds[rank]->n_steps; i++) {
			const struct sched_step *step =
				&kit.scheds[rank]->steps[i];

			assert_true(!step->n_send ||
				    step->flags & (SCHED_SEND_INPUT |
						   SCHED_SEND_FINAL));
		}
	}
	kit_release(&kit);
}

static void split_ring_reduces_every_chunk_once_in_any_order(void **state)
{
	struct sched_shape shape = {.algo = SCHED_SPLIT_RING};
	uint64_t seed = kit_seed();
	uint32_t nodes[NODES_RANKS];
	struct kit kit;
	int round;

	(void)state;
	for (round = 0; round < 60; round++) {
		const char *wrong;

		shape.n_channels = 1 + round % 2;
		nodes_draw_shape(&shape, 10, nodes, &seed);
		assert_true(kit_make_shape(&kit, &shape));
		wrong = judge_run(&kit, 2 + (uint32_t)round % 3, round % 2,
				  kit_random(&seed));
		if (wrong)
			fail_msg("%d ranks, %d nodes: %s", shape.n_ranks,
				 shape.n_nodes, wrong);
		kit_release(&kit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			split_ring_of_single_ranks_is_half_as_deep_as_a_ring),
		cmocka_unit_test(split_ring_is_proved_over_all_nodes_in_order),
		cmocka_unit_test(
			split_ring_over_any_nodes_sends_out_what_it_has_to),
		cmocka_unit_test(split_ring_is_proved_with_blocks_of_all_ranks),
		cmocka_unit_test(split_ring_with_blocks_is_half_as_deep),
		cmocka_unit_test(a_node_larger_than_one_fold_is_refused),
		cmocka_unit_test(split_ring_folds_each_chunk_at_one_rank),
		cmocka_unit_test(one_node_moves_only_raw_input_and_results),
		cmocka_unit_test(
			split_ring_reduces_every_chunk_once_in_any_order),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
