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
#include "tree.h"

#define N_TREES 2

/* ---- the lanes ---- */

static uint32_t chunk_of(const struct tree *tree)
{
	return tree->channel * N_TREES + tree->which;
}

static void send_down(struct draft *draft, struct sched_step *step,
		      const struct tree_links *links, uint32_t lane)
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
	return tree->nodes.shape->collective == SCHED_REDUCE
		       ? SCHED_SEND_INPUT | SCHED_SEND_AWAIT
		       : SCHED_SEND_INPUT;
}

/* What is below and the own chunk, to the parent; at the top, the result. */
static void generate_up(struct draft *draft, const struct tree *tree,
			const struct tree_links *links, uint32_t rank,
			uint32_t lane)
{
	struct sched_step *step = draft_step(draft, chunk_of(tree));
	uint32_t i;

	if (tree_reads_input(tree, rank))
		step->flags |= SCHED_RECV_INPUT;
	if (!links->n_children && tree_reads_input(tree, links->parent))
		step->flags |= input_flags(tree);
	for (i = 0; i < links->n_children; i++)
		draft_recv(draft, step, links->children[i]);
	step->local = SCHED_INPUT;
	step->local_at = step->n_recv;
	if (links->parent != TREE_NOBODY) {
		step->send_lane = lane;
		draft_send(draft, step, links->parent);
		return;
	}
	step->flags |= SCHED_STORE;
	if (tree->nodes.shape->collective != SCHED_REDUCE)
		send_down(draft, step, links, lane + 1);
}

/* The result; at the top it is the input, or went down from the lane up. */
static void generate_down(struct draft *draft, const struct tree *tree,
			  const struct tree_links *links, uint32_t lane)
{
	struct sched_step *step;

	if (links->parent == TREE_NOBODY && tree->root == TREE_NOBODY)
		return;
	step = draft_step(draft, chunk_of(tree));
	if (links->parent == TREE_NOBODY) {
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
	enum sched_collective collective = tree->nodes.shape->collective;
	struct tree_links links;
	uint32_t lane;

	tree_find_links(tree, rank, &links);
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
	struct tree tree = {.nodes = {shape, draft->order},
			    .root = TREE_NOBODY};
	uint32_t n_channels = (uint32_t)shape->n_channels;

	if (sched_is_rooted(shape->collective)) {
		tree.root = (uint32_t)shape->root;
		tree.root_node = (uint32_t)sched_node_of(shape, shape->root);
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

/*
 * In the tree where it is inner, a rank sends to all its children, and in the
 * other, where it is a leaf, to its parent alone.  It has a parent in both but
 * at the top, which has less than two children where the tree is of less than
 * four: so of two or three ranks nobody sends 4.
 */
static uint64_t all_reduce_bound(const struct sched_shape *shape,
				 uint64_t n_pieces)
{
	struct nodes nodes = {shape, NULL};
	uint64_t n_nodes = nodes_count(&nodes);
	uint64_t in_node = nodes_sizes(&nodes).most;
	uint64_t sent = 2 + children_max(n_nodes) + children_max(in_node);

	if (n_nodes == 1 && in_node < 4)
		sent--;
	return sent * n_pieces / N_TREES;
}

/* The root, above both trees, or an inner rank in its one. */
static uint64_t broadcast_bound(const struct sched_shape *shape,
				uint64_t n_pieces)
{
	return (shape->n_nodes > 1 ? 4 : 2) * n_pieces / N_TREES;
}

const struct generator sched_tree_all_reduce = {generate, all_reduce_bound};
const struct generator sched_tree_broadcast = {generate, broadcast_bound};
/* Everyone but the root sends everything once. */
const struct generator sched_tree_reduce = {generate, sched_bound_once};
