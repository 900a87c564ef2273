/* SPDX-License-Identifier: MIT */
/*
 * Goal: the tree is a tree.  Method: for many numbers of ranks, every rank but
 * 0 is the child of exactly one, and a subtree is its head and its children's
 * subtrees, side by side.
 */
#include "boot/wire.h"
#include "boot_ranks.h"

static void check_rank(int rank, int n)
{
	struct boot_shape shape, parent;
	int at = rank + 1;
	int i;

	boot_shape_of(rank, n, &shape);
	assert_int_equal(shape.first, rank);
	for (i = 0; i < shape.n_children; i++) {
		struct boot_shape child;

		assert_int_equal(shape.child[i].first, at);
		at = shape.child[i].end;
		boot_shape_of(shape.child[i].first, n, &child);
		assert_int_equal(child.parent, rank);
		assert_int_equal(child.end, at);
		assert_int_equal(child.depth, shape.depth + 1);
	}
	assert_int_equal(shape.end, at);
	if (!rank) {
		assert_int_equal(shape.parent, -1);
		assert_int_equal(shape.end, n);
		return;
	}
	boot_shape_of(shape.parent, n, &parent);
	for (i = 0; i < parent.n_children; i++)
		if (parent.child[i].first == rank)
			return;
	fail_msg("rank %d of %d is no child of rank %d", rank, n, shape.parent);
}

static void every_rank_has_its_place(void **state)
{
	int n, rank;

	(void)state;
	for (n = 1; n <= 300; n++)
		for (rank = 0; rank < n; rank++)
			check_rank(rank, n);
}

static void the_deepest_tree_has_eight_levels(void **state)
{
	struct boot_shape shape;
	int rank;

	(void)state;
	for (rank = 0; rank < BOOT_MAX_RANKS; rank++) {
		boot_shape_of(rank, BOOT_MAX_RANKS, &shape);
		assert_in_range(shape.depth, 0, 8);
		assert_in_range(shape.n_children, 0, BOOT_FAN_OUT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rank_has_its_place),
		cmocka_unit_test(the_deepest_tree_has_eight_levels),
	};

	alarm(30);
	return cmocka_run_group_tests_name("boot/shape", tests, NULL, NULL);
}
