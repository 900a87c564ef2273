/* SPDX-License-Identifier: MIT */
/*
 * Goal: which rank has which block is what sched.h says, and nodes cut the
 * ranks as it says.
 * Method: every collective, root, rank and block of up to five ranks, against
 * the judge's table, which was written apart; nodes against a count by hand.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_meaning.h"

#define N_RANKS 5

static int n_inputs(const struct sched_shape *shape, int block)
{
	int n = 0;
	int rank;

	for (rank = 0; rank < shape->n_ranks; rank++)
		n += sched_has_input(shape, rank, block);
	return n;
}

static void check_shape(const struct sched_shape *shape)
{
	struct judge *judge = calloc(1, sizeof(*judge));
	int n_blocks = sched_n_blocks(shape->collective, shape->n_ranks);
	int rank, block;

	assert_non_null(judge);
	judge->shape = shape;
	for (block = 0; block < n_blocks; block++) {
		for (rank = 0; rank < shape->n_ranks; rank++) {
			uint32_t r = (uint32_t)rank;
			uint32_t b = (uint32_t)block;

			assert_int_equal(sched_has_input(shape, rank, block),
					 judge_has(judge, false, r, b));
			assert_int_equal(sched_has_output(shape, rank, block),
					 judge_has(judge, true, r, b));
		}
		/* What is folded all have, and what is moved but one. */
		if (!judge_is_crossing(judge))
			assert_int_equal(n_inputs(shape, block),
					 judge_folds(judge) ? shape->n_ranks
							    : 1);
	}
	assert_int_equal(sched_is_reducing(shape->collective),
			 judge_folds(judge));
	free(judge);
}

static void blocks_are_where_the_collective_has_them(void **state)
{
	int collective, n, root;

	(void)state;
	for (collective = 0; collective < SCHED_N_COLLECTIVES; collective++) {
		for (n = 1; n <= N_RANKS; n++) {
			for (root = 0; root < n; root++) {
				struct sched_shape shape = {
					.collective = (enum sched_collective)
						collective,
					.n_ranks = n, .root = root};

				check_shape(&shape);
			}
		}
	}
}

static void only_collectives_with_a_root_depend_on_it(void **state)
{
	int collective, rank, block;

	(void)state;
	for (collective = 0; collective < SCHED_N_COLLECTIVES; collective++) {
		struct sched_shape a = {
			.collective = (enum sched_collective)collective,
			.n_ranks = 3, .root = 0};
		struct sched_shape b = a;
		bool differ = false;

		b.root = 2;
		for (rank = 0; rank < 3; rank++) {
			for (block = 0; block < 3; block++) {
				differ |= sched_has_input(&a, rank, block) !=
					  sched_has_input(&b, rank, block);
				differ |= sched_has_output(&a, rank, block) !=
					  sched_has_output(&b, rank, block);
			}
		}
		assert_int_equal(differ, sched_is_rooted(a.collective));
	}
}

static void nodes_are_as_even_as_can_be_and_in_order(void **state)
{
	int n, n_nodes;

	(void)state;
	for (n = 1; n <= 40; n++) {
		for (n_nodes = 1; n_nodes <= n; n_nodes++) {
			struct sched_shape shape = {.n_ranks = n,
						    .n_nodes = n_nodes};
			int rank = 0;
			int node, i;

			for (node = 0; node < n_nodes; node++) {
				int size = n / n_nodes + (node < n % n_nodes);

				for (i = 0; i < size; i++)
					assert_int_equal(
						sched_node_of(&shape, rank++),
						node);
			}
			assert_int_equal(rank, n);
		}
	}
}

static void listed_nodes_and_no_nodes_are_taken_as_they_are(void **state)
{
	static const uint32_t nodes[] = {2, 0, 1, 0};
	struct sched_shape shape = {.n_ranks = 4};
	int rank;

	(void)state;
	for (rank = 0; rank < 4; rank++)
		assert_int_equal(sched_node_of(&shape, rank), 0);
	shape.n_nodes = 3;
	shape.nodes = nodes;
	for (rank = 0; rank < 4; rank++)
		assert_int_equal(sched_node_of(&shape, rank), nodes[rank]);
}

static void names_are_those_of_the_table(void **state)
{
	int i, j;

	(void)state;
	for (i = 0; i < SCHED_N_COLLECTIVES; i++) {
		const char *name =
			sched_collective_name((enum sched_collective)i);

		assert_non_null(name);
		for (j = 0; j < i; j++)
			assert_string_not_equal(
				name, sched_collective_name(
					      (enum sched_collective)j));
	}
	assert_string_equal(sched_collective_name(SCHED_ALL_TO_ALL),
			    "all_to_all");
	assert_null(sched_collective_name(SCHED_N_COLLECTIVES));
	assert_null(sched_collective_name((enum sched_collective)-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_where_the_collective_has_them),
		cmocka_unit_test(only_collectives_with_a_root_depend_on_it),
		cmocka_unit_test(nodes_are_as_even_as_can_be_and_in_order),
		cmocka_unit_test(
			listed_nodes_and_no_nodes_are_taken_as_they_are),
		cmocka_unit_test(names_are_those_of_the_table),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
