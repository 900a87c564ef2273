/* SPDX-License-Identifier: MIT */
#include "wire.h"

void boot_shape_of(int rank, int n_ranks, struct boot_shape *shape)
{
	int first = 0;
	int end = n_ranks;
	int parent = -1;
	int depth = 0;
	int i, at;

	/* From the top down: the head is the lowest, the rest is cut evenly. */
	for (;;) {
		int rest = end - first - 1;
		int n = rest < BOOT_FAN_OUT ? rest : BOOT_FAN_OUT;

		shape->n_children = n;
		at = first + 1;
		for (i = 0; i < n; i++) {
			shape->child[i].first = at;
			at += rest / n + (i < rest % n);
			shape->child[i].end = at;
		}
		if (first == rank)
			break;
		for (i = 0; rank >= shape->child[i].end; i++)
			;
		parent = first;
		first = shape->child[i].first;
		end = shape->child[i].end;
		depth++;
	}
	shape->first = first;
	shape->end = end;
	shape->parent = parent;
	shape->depth = depth;
}
