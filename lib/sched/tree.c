/* SPDX-License-Identifier: MIT */
/*
 * Tree: two complementary binary trees, each with half of the vector.
 *
 * After "Two-tree algorithms for full bandwidth broadcast, reduction and scan"
 * by Peter Sanders, Jochen Speck and Jesper Larsson Traff (Parallel Computing,
 * 2009).  One binary tree loads its inner ranks twice and its leaves hardly;
 * of two, in which each rank is a leaf at least once, every rank has the same
 * to do, and the depth stays logarithmic.
 *
 * A tree stands over its ranks in their order: of the places 1, 2, ... n the
 * odd ones are leaves, and place q with the lowest bit h has its children in
 * q - h .. q + h.  The second tree has the ranks in reverse where n is even,
 * and one place further where it is odd; either way what is inner in the one
 * is a leaf in the other, for every n.
 *
 * Nodes have a tree of this kind among them, and each node one inside, whose
 * root is the node's head: a node has one link up and two at most down.  The
 * heads differ from tree to tree and channel to channel, as far as there are
 * ranks, to spread what they have to do.  Still no rank is inner twice: a head
 * is a leaf of its node's other tree, and a rank alone in its node is inner
 * where the node is.
 *
 * Broadcast and reduce have the root above both trees, which are of the other
 * ranks then, and of the other nodes: so it sends, or takes, each half once
 * per node tree and once inside its own node.
 *
 * A tree has a lane up and a lane down, which share a box: a peer is a child
 * or the parent.  So passes follow each other up while others go down.
 */
#include "draft.h"

#define NOBODY UINT32_MAX
#define CHILDREN_MAX 4 /* two in the node, two heads of other nodes */
#define N_TREES 2

/* One tree of one channel. */
struct tree {
	const struct sched_shape *shape;
	uint32_t channel;
	uint32_t which;	   /* 0 or 1 */
	uint32_t root;	   /* above all others, or NOBODY */
	uint32_t root_node;
};

struct links {
	uint32_t parent; /* or NOBODY */
	uint32_t n_children;
	uint32_t children[CHILDREN_MAX];
};

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
	return tree->root != NOBODY && node == tree->root_node;
}

/* The root is in no tree. */
static uint32_t node_size(const struct tree *tree, uint32_t node)
{
	return sched_node_size(tree->shape, node) - has_root(tree, node);
}

/*
 * By how much a channel turns the ranks of a node, for other heads; evenly, so
 * that what is inner stays so where their number is even.
 */
static uint32_t turn_of(const struct tree *tree, uint32_t size)
{
	return sched_nodes(tree->shape) > 1 ? 2 * tree->channel % size : 0;
}

static uint32_t place_in_node(const struct tree *tree, uint32_t node,
			      uint32_t rank)
{
	uint32_t size = node_size(tree, node);
	uint32_t index = sched_node_index(tree->shape, rank);

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
		index += index >= sched_node_index(tree->shape, tree->root);
	return sched_node_member(tree->shape, node, index);
}

static uint32_t head_of(const struct tree *tree, uint32_t node)
{
	return rank_at(tree, node, top_of(node_size(tree, node)));
}

/* ---- the tree over the nodes ---- */

static uint32_t n_nodes(const struct tree *tree)
{
	return sched_nodes(tree->shape) - (tree->root != NOBODY);
}

static uint32_t place_of_node(const struct tree *tree, uint32_t node)
{
	if (tree->root != NOBODY)
		node -= node > tree->root_node;
	return place_of(tree->which, node, n_nodes(tree));
}

static uint32_t head_at(const struct tree *tree, uint32_t place)
{
	uint32_t node = index_of(tree->which, place, n_nodes(tree));

	if (tree->root != NOBODY)
		node += node >= tree->root_node;
	return head_of(tree, node);
}

/* ---- both together ---- */

static void add_child(struct links *links, uint32_t child)
{
	wreath_assert(links->n_children < CHILDREN_MAX);
	links->children[links->n_children++] = child;
}

static void find_links_of_root(const struct tree *tree, struct links *links)
{
	links->parent = NOBODY;
	if (n_nodes(tree))
		add_child(links, head_at(tree, top_of(n_nodes(tree))));
	if (node_size(tree, tree->root_node))
		add_child(links, head_of(tree, tree->root_node));
}

static void find_links_of_head(const struct tree *tree, uint32_t node,
			       struct links *links)
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

static void find_links(const struct tree *tree, uint32_t rank,
		       struct links *links)
{
	uint32_t node = (uint32_t)sched_node_of(tree->shape, (int)rank);
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

/*
 * May @parent read what its children send in their inputs?  Only if all of it
 * is nothing but input: if they are all leaves.
 */
static bool reads_input(const struct tree *tree, uint32_t parent)
{
	struct links links, below;
	uint32_t i;

	find_links(tree, parent, &links);
	for (i = 0; i < links.n_children; i++) {
		find_links(tree, links.children[i], &below);
		if (below.n_children)
			return false;
	}
	return links.n_children > 0;
}

/* ---- the lanes ---- */

static uint32_t chunk_of(const struct tree *tree)
{
	return tree->channel * N_TREES + tree->which;
}

static void send_down(struct draft *draft, struct sched_step *step,
		      const struct links *links, uint32_t lane)
{
	uint32_t i;

	if (!links->n_children)
		return;
	step->flags |= SCHED_SEND_FINAL;
	step->send_lane = lane;
	for (i = 0; i < links->n_children; i++)
		draft_send(draft, step, links->children[i]);
}

/* Where a result comes back, it tells that the input has been read. */
static uint8_t input_flags(const struct tree *tree)
{
	return tree->shape->collective == SCHED_REDUCE
		       ? SCHED_SEND_INPUT | SCHED_SEND_AWAIT
		       : SCHED_SEND_INPUT;
}

/* What is below and the own chunk, to the parent; at the top, the result. */
static void generate_up(struct draft *draft, const struct tree *tree,
			const struct links *links, uint32_t rank, uint32_t lane)
{
	struct sched_step *step = draft_step(draft, chunk_of(tree));
	uint32_t i;

	if (reads_input(tree, rank))
		step->flags |= SCHED_RECV_INPUT;
	if (!links->n_children && reads_input(tree, links->parent))
		step->flags |= input_flags(tree);
	for (i = 0; i < links->n_children; i++)
		draft_recv(draft, step, links->children[i]);
	step->local = SCHED_INPUT;
	step->local_at = step->n_recv;
	if (links->parent != NOBODY) {
		step->send_lane = lane;
		draft_send(draft, step, links->parent);
		return;
	}
	step->flags |= SCHED_STORE;
	if (tree->shape->collective != SCHED_REDUCE)
		send_down(draft, step, links, lane + 1);
}

/* The result; at the top it is the input, or went down from the lane up. */
static void generate_down(struct draft *draft, const struct tree *tree,
			  const struct links *links, uint32_t lane)
{
	struct sched_step *step;

	if (links->parent == NOBODY && tree->root == NOBODY)
		return;
	step = draft_step(draft, chunk_of(tree));
	if (links->parent == NOBODY) {
		step->local = SCHED_INPUT;
	} else {
		step->flags |= SCHED_RECV_FINAL;
		draft_recv(draft, step, links->parent);
	}
	step->flags |= SCHED_STORE;
	send_down(draft, step, links, lane);
}

static void generate_tree(struct draft *draft, const struct tree *tree,
			  uint32_t rank)
{
	enum sched_collective collective = tree->shape->collective;
	struct links links;
	uint32_t lane;

	find_links(tree, rank, &links);
	if (collective != SCHED_BROADCAST) {
		lane = draft_lane(draft, tree->channel, tree->which);
		generate_up(draft, tree, &links, rank, lane);
	}
	if (collective != SCHED_REDUCE) {
		lane = draft_lane(draft, tree->channel, tree->which);
		generate_down(draft, tree, &links, lane);
	}
}

static void generate(struct draft *draft, const struct sched_shape *shape,
		     uint32_t rank)
{
	struct tree tree = {.shape = shape, .root = NOBODY};
	uint32_t n_channels = (uint32_t)shape->n_channels;

	if (sched_is_rooted(shape->collective)) {
		tree.root = (uint32_t)shape->root;
		tree.root_node =
			(uint32_t)sched_node_of(shape, shape->root);
	}
	draft->n_pieces = n_channels * N_TREES;
	for (; tree.channel < n_channels; tree.channel++)
		for (tree.which = 0; tree.which < N_TREES; tree.which++)
			generate_tree(draft, &tree, rank);
}

/* ---- bounds ---- */

/* Children that a place of a tree over @n has at most. */
static uint64_t children_max(uint64_t n)
{
	return n < 3 ? n - 1 : 2;
}

static uint64_t largest_node(const struct sched_shape *shape)
{
	uint32_t n = sched_nodes(shape);
	uint32_t largest = 0;
	uint32_t i;

	/* Of listed nodes, one has all ranks but one for each of the others. */
	if (shape->nodes)
		return (uint64_t)shape->n_ranks - n + 1;
	for (i = 0; i < n; i++) {
		if (sched_node_size(shape, i) > largest)
			largest = sched_node_size(shape, i);
	}
	return largest;
}

/*
 * In the tree where it is inner, a rank sends to all its children, and in the
 * other, where it is a leaf, to its parent alone.  It has a parent in both but
 * at the top, which has less than two children where the tree is of less than
 * four: so of two or three ranks nobody sends 4.
 */
static uint64_t all_reduce_bound(const struct sched_shape *shape,
				 uint64_t n_pieces)
{
	uint64_t n_nodes = sched_nodes(shape);
	uint64_t in_node = largest_node(shape);
	uint64_t sent = 2 + children_max(n_nodes) + children_max(in_node);

	if (n_nodes == 1 && in_node < 4)
		sent--;
	return sent * n_pieces / N_TREES;
}

/* The root, above both trees, or an inner rank in its one. */
static uint64_t broadcast_bound(const struct sched_shape *shape,
				uint64_t n_pieces)
{
	uint64_t n_nodes = sched_nodes(shape);

	return (n_nodes > 1 ? 4 : 2) * n_pieces / N_TREES;
}

/* Everyone but the root sends everything once. */
static uint64_t reduce_bound(const struct sched_shape *shape, uint64_t n_pieces)
{
	(void)shape;
	return n_pieces;
}

const struct generator sched_tree_all_reduce = {generate, all_reduce_bound};
const struct generator sched_tree_broadcast = {generate, broadcast_bound};
const struct generator sched_tree_reduce = {generate, reduce_bound};
