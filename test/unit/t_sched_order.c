/* SPDX-License-Identifier: MIT */
/*
 * Goal: the order that rings follow has every rank once, nodes together.
 * Method: nodes laid out in every way, sorted here by looking at all pairs.
 */
#include "sched_forms.h"

#include "sched/draft.h"

static void ranks_stand_by_node_and_then_by_rank(void **state)
{
	uint64_t seed = kit_seed();
	struct forms forms = {.shape.n_channels = 1};
	uint32_t *order;
	int n, n_nodes, layout;
	uint32_t i;

	(void)state;
	for (n = 1; n <= FORMS_RANKS; n++) {
		for (n_nodes = 1; n_nodes <= n; n_nodes++) {
			struct nodes nodes = {.shape = &forms.shape};

			layout = (n + n_nodes) % 2 ? FORMS_DEALT : FORMS_DRAWN;
			forms.shape.n_ranks = n;
			forms_lay_out(&forms, (enum forms_layout)layout,
				      (uint32_t)n_nodes, &seed);
			assert_int_equal(sched_order_new(&forms.shape, &order),
					 0);
			nodes.order = order;
			for (i = 0; i < (uint32_t)n; i++) {
				assert_int_equal(order ? order[i] : i,
						 forms.order[i]);
				assert_int_equal(
					nodes_place(&nodes, forms.order[i]), i);
			}
			base_free(order);
		}
	}
}

static void ranks_whose_nodes_are_in_order_need_no_list(void **state)
{
	uint32_t nodes[8] = {0};
	struct sched_shape shape = {.n_ranks = 8, .n_nodes = 3};
	uint32_t *order = nodes;

	(void)state;
	assert_int_equal(sched_order_new(&shape, &order), 0);
	assert_null(order);
	shape.n_nodes = 0;
	shape.nodes = nodes;
	assert_int_equal(sched_order_new(&shape, &order), 0);
	assert_null(order);
}

static void without_memory_no_order_and_no_schedule_is_made(void **state)
{
	static const uint32_t nodes[4] = {0, 1, 0, 1};
	struct sched_shape shape = {.algo = SCHED_RING, .n_ranks = 4,
				    .n_channels = 1, .n_nodes = 2,
				    .nodes = nodes};
	struct sched *sched = NULL;
	uint64_t n;

	(void)state;
	/* The order, then the schedule. */
	for (n = 1; n <= 2; n++) {
		base_alloc_fail_at(n);
		assert_int_equal(sched_make(&shape, 0, &sched), WREATH_ENOMEM);
		assert_null(sched);
	}
	base_alloc_fail_at(0);
	assert_int_equal(sched_make(&shape, 0, &sched), 0);
	sched_free(sched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_stand_by_node_and_then_by_rank),
		cmocka_unit_test(ranks_whose_nodes_are_in_order_need_no_list),
		cmocka_unit_test(
			without_memory_no_order_and_no_schedule_is_made),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
