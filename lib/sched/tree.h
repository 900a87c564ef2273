/* SPDX-License-Identifier: MIT */
/* A rank's place in a tree: tree_links.c; tree.c tells what the trees are. */
#ifndef SCHED_TREE_H
#define SCHED_TREE_H

#include "draft.h"

#define TREE_NOBODY UINT32_MAX
#define TREE_CHILDREN_MAX 4 /* two in the node, two heads of other nodes */

/* One tree of one channel. */
struct tree {
	struct nodes nodes;
	uint32_t channel;
	uint32_t which; /* 0 or 1 */
	uint32_t root;  /* above all others, or TREE_NOBODY */
	uint32_t root_node;
};

struct tree_links {
	uint32_t parent; /* or TREE_NOBODY */
	uint32_t n_children;
	uint32_t children[TREE_CHILDREN_MAX];
};

void tree_find_links(const struct tree *tree, uint32_t rank,
		     struct tree_links *links);

/* May @rank read what its children send to it in their inputs? */
bool tree_reads_input(const struct tree *tree, uint32_t rank);

#endif
