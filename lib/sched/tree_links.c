/* SPDX-License-Identifier: MIT */
/* Who is above and below a rank in one of the trees. */
#include "tree.h"

/* ---- places 1..n of a tree over n ---- */

/* 0 is the place above the top. */
static uint32_t parent_of(uint32_t place, uint32_t n)
{
	uint32_t low = place & -place;
	uint32_t above = (place ^ low) | low << 1;

	return above <= n ? above : place ^ low;
}

static uint32_t top_of(uint32_t n)
{
	uint32_t place = 1;

	while (place * 2 <= n)
		place *= 2;
	return place;
}

/* 0: there is none. */
static uint32_t lower_child(uint32_t place)
{
	uint32_t low = place & -place;

	return low > 1 ? place - low / 2 : 0;
}

static uint32_t upper_child(uint32_t place, uint32_t n)
{
	uint32_t by = (place & -place) / 2;

	while (by && place + by > n)
		by /= 2;
	return by ? place + by : 0;
}

/* The place of the @index-th in tree @which, and back. */
static uint32_t place_of(uint32_t which, uint32_t index, uint32_t n)
{
	if (!which)
		return index + 1;
	return n % 2 ? (index + n - 1) % n + 1 : n - index;
}

static uint32_t index_of(uint32_t which, uint32_t place, uint32_t n)
{
	if (!which)
		return place - 1;
	return n % 2 ? place % n : n - place;
}

/* ---- the tree inside a node ---- */

static bool has_root(const struct tree *tree, uint32_t node)
{
	return tree->root != TREE_NOBODY && node == tree->root_node;
}

/* The root is in no tree. */
static uint32_t node_size(const struct tree *tree, uint32_t node)
{
	return nodes_size(&tree->nodes, node) - has_root(tree, node);
}

/*
 * By how much a channel turns the ranks of a node, for other heads; evenly, so
 * that what is inner stays so where their number is even.
 */
static uint32_t turn_of(const struct tree *tree, uint32_t size)
{
	return nodes_count(&tree->nodes) > 1 ? 2 * tree->channel % size : 0;
}

static uint32_t place_in_node(const struct tree *tree, uint32_t node,
			      uint32_t rank)
{
	uint32_t size = node_size(tree, node);
	uint32_t index = nodes_index(&tree->nodes, rank);

	if (has_root(tree, node))
		index -= rank > tree->root;
	return place_of(tree->which, (index + turn_of(tree, size)) % size,
			size);
}

static uint32_t rank_at(const struct tree *tree, uint32_t node, uint32_t place)
{
	uint32_t size = node_size(tree, node);
	uint32_t index = index_of(tree->which, place, size);

	index = (index + size - turn_of(tree, size)) % size;
	if (has_root(tree, node))
		index += index >= nodes_index(&tree->nodes, tree->root);
	return nodes_member(&tree->nodes, node, index);
}

static uint32_t head_of(const struct tree *tree, uint32_t node)
{
	return rank_at(tree, node, top_of(node_size(tree, node)));
}

/* ---- the tree over the nodes ---- */

static uint32_t n_nodes(const struct tree *tree)
{
	return nodes_count(&tree->nodes) - (tree->root != TREE_NOBODY);
}

static uint32_t place_of_node(const struct tree *tree, uint32_t node)
{
	if (tree->root != TREE_NOBODY)
		node -= node > tree->root_node;
	return place_of(tree->which, node, n_nodes(tree));
}

static uint32_t head_at(const struct tree *tree, uint32_t place)
{
	uint32_t node = index_of(tree->which, place, n_nodes(tree));

	if (tree->root != TREE_NOBODY)
		node += node >= tree->root_node;
	return head_of(tree, node);
}

/* ---- both together ---- */

static void add_child(struct tree_links *links, uint32_t child)
{
	wreath_assert(links->n_children < TREE_CHILDREN_MAX);
	links->children[links->n_children++] = child;
}

static void find_links_of_root(const struct tree *tree,
			       struct tree_links *links)
{
	links->parent = TREE_NOBODY;
	if (n_nodes(tree))
		add_child(links, head_at(tree, top_of(n_nodes(tree))));
	if (node_size(tree, tree->root_node))
		add_child(links, head_of(tree, tree->root_node));
}

static void find_links_of_head(const struct tree *tree, uint32_t node,
			       struct tree_links *links)
{
	uint32_t place, other;

	links->parent = tree->root;
	if (has_root(tree, node))
		return;
	place = place_of_node(tree, node);
	other = parent_of(place, n_nodes(tree));
	if (other)
		links->parent = head_at(tree, other);
	other = lower_child(place);
	if (other)
		add_child(links, head_at(tree, other));
	other = upper_child(place, n_nodes(tree));
	if (other)
		add_child(links, head_at(tree, other));
}

void tree_find_links(const struct tree *tree, uint32_t rank,
		     struct tree_links *links)
{
	uint32_t node = nodes_of(&tree->nodes, rank);
	uint32_t place, size, other;

	links->n_children = 0;
	if (rank == tree->root) {
		find_links_of_root(tree, links);
		return;
	}
	size = node_size(tree, node);
	place = place_in_node(tree, node, rank);
	other = parent_of(place, size);
	if (other)
		links->parent = rank_at(tree, node, other);
	else
		find_links_of_head(tree, node, links);
	other = lower_child(place);
	if (other)
		add_child(links, rank_at(tree, node, other));
	other = upper_child(place, size);
	if (other)
		add_child(links, rank_at(tree, node, other));
}

/* It may if all of it is nothing but input: if all children are leaves. */
bool tree_reads_input(const struct tree *tree, uint32_t parent)
{
	struct tree_links links, below;
	uint32_t i;

	tree_find_links(tree, parent, &links);
	for (i = 0; i < links.n_children; i++) {
		tree_find_links(tree, links.children[i], &below);
		if (below.n_children)
			return false;
	}
	return links.n_children > 0;
}
