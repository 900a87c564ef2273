/* SPDX-License-Identifier: MIT */
/*
 * Goal: nodes in order and nodes that are listed are told alike.
 * Method: shapes of both kinds are asked for every node and rank, and the
 * answers compared with a count over all ranks.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched/draft.h"
#include "sched_kit.h"
#include "sched_nodes.h"

static void check(const struct sched_shape *shape)
{
	struct nodes nodes = {.shape = shape};
	uint32_t n_before[NODES_RANKS] = {0};
	struct nodes_sizes sizes;
	uint32_t *order;
	uint32_t i, node;

	assert_int_equal(sched_order_new(shape, &order), 0);
	nodes.order = order;
	for (i = 0; i < (uint32_t)shape->n_ranks; i++) {
		node = nodes_of(&nodes, i);
		assert_int_equal(nodes_index(&nodes, i), n_before[node]);
		assert_int_equal(nodes_member(&nodes, node, n_before[node]), i);
		n_before[node]++;
	}
	sizes = nodes_sizes(&nodes);
	for (i = 0; i < nodes_count(&nodes); i++) {
		assert_int_equal(nodes_size(&nodes, i), n_before[i]);
		assert_in_range(n_before[i], sizes.least, sizes.most);
	}
	/* Sizes are known without the order too. */
	nodes.order = NULL;
	for (i = 0; i < nodes_count(&nodes); i++)
		assert_int_equal(nodes_size(&nodes, i), n_before[i]);
	base_free(order);
}

static void nodes_in_order_tell_who_is_where(void **state)
{
	struct sched_shape shape = {.n_ranks = 0};
	int n, m;

	(void)state;
	for (n = 1; n <= NODES_RANKS; n++) {
		for (m = 0; m <= n; m++) {
			shape.n_ranks = n;
			shape.n_nodes = m;
			check(&shape);
		}
	}
}

static void listed_nodes_tell_who_is_where(void **state)
{
	uint64_t seed = kit_seed();
	uint32_t nodes[NODES_RANKS];
	int round;

	(void)state;
	for (round = 0; round < 300; round++) {
		uint32_t n = 1 + kit_below(&seed, NODES_RANKS);
		uint32_t m = 1 + kit_below(&seed, n);
		struct sched_shape shape = {.n_ranks = (int)n,
					    .n_nodes = (int)m,
					    .nodes = nodes};

		kit_draw_nodes(&seed, n, m, nodes);
		check(&shape);
	}
}

static void a_node_without_a_rank_is_refused(void **state)
{
	uint32_t nodes[4] = {0, 2, 2, 0};
	struct sched_shape shape = {.algo = SCHED_TREE, .n_ranks = 4,
				    .n_channels = 1, .n_nodes = 3,
				    .nodes = nodes};
	struct sched *sched;

	(void)state;
	assert_int_equal(sched_make(&shape, 0, &sched), WREATH_EINVAL);
	assert_non_null(strstr(base_error_text(), "node 1 of 3 has no rank"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_in_order_tell_who_is_where),
		cmocka_unit_test(listed_nodes_tell_who_is_where),
		cmocka_unit_test(a_node_without_a_rank_is_refused),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
