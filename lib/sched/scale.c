/* SPDX-License-Identifier: MIT */
/*
 * The counts of a large shape, from those of a small one of the same kind: each
 * algorithm's counts have a closed form, up to a factor that both shapes have
 * in common.  Made in full, 1,024 ranks would take a second and a gigabyte.
 */
#include <math.h>

#include "draft.h"
#include "stats.h"

enum place {
	IN,  /* a node */
	NET, /* between nodes */
	N_PLACES,
};

/* Of the longest chain, and of the busiest rank. */
struct form {
	double chain[N_PLACES], chain_moved;
	double busy[N_PLACES], busy_moved[N_PLACES];
	double slots; /* pieces of a pass */
};

/* Ranks, nodes, and ranks of a node. */
struct size {
	double n, nodes, each;
};

static double doublings(double n)
{
	return n > 1 ? ceil(log2(n)) : 0;
}

static double levels(double n)
{
	return n > 1 ? floor(log2(n)) : 0;
}

/* Of n links n_nodes are the network's; a node's ends have one of these. */
static void ring(const struct size *size, struct form *form)
{
	double hops = 2 * (size->n - 1);
	double out = size->nodes > 1 ? size->nodes / size->n : 0;

	form->chain[NET] = hops * out;
	form->chain[IN] = hops - form->chain[NET];
	form->chain_moved = hops / size->n;
	form->busy[IN] = 2 * hops;
	form->busy[NET] = size->each > 1 ? hops : 2 * hops;
	form->busy_moved[IN] = form->busy_moved[NET] = hops / size->n;
	form->slots = size->n;
}

/* A message to each other rank, of @part of the vector. */
static void direct(const struct size *size, double part, struct form *form)
{
	double inside = size->each - 1;
	double outside = size->n - size->each;

	form->chain[IN] = form->chain[NET] = 1;
	form->chain_moved = part;
	form->busy[IN] = inside;
	form->busy[NET] = outside;
	form->busy_moved[IN] = inside * part;
	form->busy_moved[NET] = outside * part;
	form->slots = 1 / part;
}

/* A tree of nodes, and one in each; two halves of the vector. */
static void tree(const struct size *size, struct form *form)
{
	form->chain[IN] = levels(size->each);
	form->chain[NET] = levels(size->nodes);
	form->chain_moved = form->chain[IN] + form->chain[NET];
	form->busy[IN] = form->busy[NET] = 1;
	form->busy_moved[IN] = form->busy_moved[NET] = 1;
	form->slots = 1;
}

/* Shards of a node, and two arcs over the nodes for each. */
static void split_ring(const struct size *size, struct form *form)
{
	form->chain[IN] = 1;
	form->chain[NET] = floor(size->nodes / 2);
	form->chain_moved = (1 + form->chain[NET]) / size->n;
	form->busy[IN] = (size->each - 1) * size->nodes;
	form->busy[NET] = size->nodes - 1;
	form->busy_moved[IN] = 1 - 1 / size->each;
	form->busy_moved[NET] = (1 - 1 / size->nodes) / size->each;
	form->slots = size->n;
}

/* The last doublings are to neighbours, so in the node, and longest. */
static void halving(const struct size *size, struct form *form)
{
	form->chain[IN] = doublings(size->nodes > 1 ? size->each : size->n);
	form->chain[NET] = doublings(size->n) - doublings(size->each);
	form->chain_moved = doublings(size->n) / size->n;
	form->busy[IN] = size->each - 1;
	form->busy[NET] = size->n - size->each;
	form->busy_moved[IN] = form->busy[IN] / size->n;
	form->busy_moved[NET] = form->busy[NET] / size->n;
	form->slots = size->n;
}

static struct form form_of(const struct sched_shape *shape)
{
	double nodes = fmax(shape->n_nodes, 1);
	struct size size = {shape->n_ranks, nodes, shape->n_ranks / nodes};
	struct form form = {.slots = 1};

	switch (shape->algo) {
	case SCHED_RING:
		ring(&size, &form);
		break;
	case SCHED_ONESHOT:
		direct(&size, 1, &form);
		break;
	case SCHED_TWOSHOT:
	case SCHED_DIRECT:
		direct(&size, 1 / size.n, &form);
		break;
	case SCHED_TREE:
		tree(&size, &form);
		break;
	case SCHED_SPLIT_RING:
		split_ring(&size, &form);
		break;
	case SCHED_HALVING:
		halving(&size, &form);
		break;
	case SCHED_N_ALGOS:
		break;
	}
	return form;
}

/* Where one of them has nothing there is nothing to compare. */
static double ratio(double large, double small)
{
	return large > 0 && small > 0 ? large / small : 1;
}

static void scale(struct sched_work *work, const double *messages,
		  const double *moved, double worked)
{
	int t;

	for (t = 0; t < SCHED_TIERS; t++) {
		work->messages[t] *= messages[t ? NET : IN];
		work->moved[t] *= moved[t ? NET : IN];
	}
	work->folded *= worked;
	work->copied *= worked;
}

static void scale_all(struct sched_stats *stats, const struct form *large,
		      const struct form *small)
{
	double chain[N_PLACES], chain_moved[N_PLACES];
	double busy[N_PLACES], busy_moved[N_PLACES];
	double moved = ratio(large->busy_moved[IN] + large->busy_moved[NET],
			     small->busy_moved[IN] + small->busy_moved[NET]);
	int i;

	for (i = 0; i < N_PLACES; i++) {
		chain[i] = ratio(large->chain[i], small->chain[i]);
		chain_moved[i] = ratio(large->chain_moved, small->chain_moved);
		busy[i] = ratio(large->busy[i], small->busy[i]);
		busy_moved[i] = ratio(large->busy_moved[i],
				      small->busy_moved[i]);
	}
	for (i = 0; i < 2; i++) {
		scale(&stats->first[i], chain, chain_moved, chain_moved[0]);
		scale(&stats->again[i], chain, chain_moved, chain_moved[0]);
	}
	scale(&stats->busy, busy, busy_moved, moved);
	stats->pass_slots *= ratio(large->slots, small->slots);
}

/*
 * A shape of the same kind with no more than @n_ranks_max ranks.  Two and three
 * nodes are special cases of many algorithms; an odd number is one of the split
 * ring's, and what is no power of two of others.
 */
static struct sched_shape smaller(const struct sched_shape *shape,
				  int n_ranks_max)
{
	struct sched_shape small = *shape;
	int n_nodes = shape->n_nodes > 1 ? shape->n_nodes : 1;
	int each = (shape->n_ranks + n_nodes - 1) / n_nodes;
	int few = 4;

	if (n_nodes > 4 && n_nodes > n_ranks_max / each) {
		while (2 * few <= n_ranks_max / each)
			few *= 2;
		n_nodes = few;
	}
	if (each > n_ranks_max / n_nodes)
		each = n_ranks_max / n_nodes;
	small.nodes = NULL;
	small.n_nodes = n_nodes;
	small.n_ranks = each * n_nodes;
	small.root = 0;
	return small;
}

int sched_stats_scaled(const struct sched_shape *shape,
		       const struct sched_cost *cost, int n_ranks_max,
		       struct sched_stats *stats)
{
	struct sched_shape plain = *shape;
	struct sched_shape small;
	struct form large_form, small_form;
	int err = sched_check_shape(shape, 0);

	if (err)
		return err;
	if (shape->n_ranks <= n_ranks_max)
		return sched_stats_trace(shape, cost, stats);
	/* Without rails all nodes are one tier. */
	if (!cost->n_rails)
		plain.n_nodes = 1;
	small = smaller(&plain, n_ranks_max);
	err = sched_stats_trace(&small, cost, stats);
	if (err)
		return err;
	large_form = form_of(&plain);
	small_form = form_of(&small);
	scale_all(stats, &large_form, &small_form);
	return 0;
}
