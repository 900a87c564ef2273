/* SPDX-License-Identifier: MIT */
/*
 * Every form of every algorithm, proved for all shapes up to a number of ranks:
 * what the short and the long test of them share.
 */
#ifndef SCHED_ALL_H
#define SCHED_ALL_H

#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include "sched_judge.h"

#define ALL_RANKS_MAX 64

/* Layouts of nodes; the last three are lists. */
enum all_nodes {
	ALL_ONE,
	ALL_TWO,
	ALL_THREE,
	ALL_FIVE,
	ALL_UNEVEN,	 /* of 1, 2, 3, ... ranks, the last with the rest */
	ALL_INTERLEAVED, /* rank i in node i % 3 */
	ALL_ALONE,	 /* each rank a node of its own */
	ALL_N_NODES,
};

/* False: there is no such layout for that many ranks. */
static inline bool all_set_nodes(struct sched_shape *shape, int layout,
				 uint32_t *nodes)
{
	static const int n_nodes[] = {[ALL_ONE] = 1, [ALL_TWO] = 2,
				      [ALL_THREE] = 3, [ALL_FIVE] = 5};
	uint32_t n = (uint32_t)shape->n_ranks;
	uint32_t node = 0;
	uint32_t in_node = 0;
	uint32_t i;

	shape->nodes = NULL;
	if (layout <= ALL_FIVE) {
		shape->n_nodes = n_nodes[layout];
		return shape->n_nodes <= shape->n_ranks;
	}
	if (n < 3)
		return false;
	for (i = 0; i < n; i++) {
		if (layout == ALL_UNEVEN) {
			if (in_node > node && node < 4) {
				node++;
				in_node = 0;
			}
			nodes[i] = node;
			in_node++;
		} else {
			nodes[i] = layout == ALL_ALONE ? i : i % 3;
		}
	}
	shape->nodes = nodes;
	shape->n_nodes = layout == ALL_UNEVEN	     ? (int)node + 1
			 : layout == ALL_INTERLEAVED ? 3
						     : (int)n;
	return true;
}

/* Whether two schedules have the same steps, whatever their shapes say. */
static inline bool all_is_same(const struct sched *a, const struct sched *b)
{
	return a->n_steps == b->n_steps && a->n_peers == b->n_peers &&
	       a->n_lanes == b->n_lanes && a->n_pieces == b->n_pieces &&
	       !memcmp(a->lanes, b->lanes, a->n_lanes * sizeof(*a->lanes)) &&
	       !memcmp(a->steps, b->steps, a->n_steps * sizeof(*a->steps)) &&
	       !memcmp(a->peers, b->peers, a->n_peers * sizeof(*a->peers));
}

static inline bool all_are_same(const struct kit *a, const struct kit *b)
{
	int i;

	for (i = 0; i < a->n_ranks; i++) {
		if (!all_is_same(a->scheds[i], b->scheds[i]))
			return false;
	}
	return true;
}

static inline void all_fail(const struct sched_shape *shape, const char *why)
{
	fail_msg("%s %s, %d ranks, %d channels, root %d, %d nodes%s: %s",
		 sched_algo_name(shape->algo),
		 sched_collective_name(shape->collective), shape->n_ranks,
		 shape->n_channels, shape->root, shape->n_nodes,
		 shape->nodes ? " by a list" : "", why);
}

/*
 * Where the busiest rank sends all that the bound allows, which is stated for
 * the worst of all layouts of nodes where the form looks at them.
 */
static inline bool all_is_exact(const struct sched_shape *shape)
{
	switch (shape->algo) {
	case SCHED_RING:
	case SCHED_ONESHOT:
	case SCHED_TWOSHOT:
	case SCHED_DIRECT:
		return true;
	case SCHED_TREE:
		return shape->n_nodes == 1 && shape->n_ranks > 1;
	default:
		return false;
	}
}

/* Out of place and in place; how many proofs. */
static inline int all_prove_kit(const struct kit *kit,
				const struct sched_shape *shape)
{
	int n_proofs = 1 + kit_has_in_place(shape->collective);
	struct sched_proof proof;
	int i;

	for (i = 0; i < n_proofs; i++) {
		if (sched_verify(kit->scheds, kit->n_ranks, 2, i, &proof))
			all_fail(shape, base_error_text());
		if (all_is_exact(shape) &&
		    proof.chunks_sent_max != proof.chunks_sent_bound)
			all_fail(shape, "it sends less than its bound");
	}
	return n_proofs;
}

/* Where nodes change nothing there is nothing to prove again. */
static inline int all_prove_nodes(struct sched_shape *shape)
{
	uint32_t nodes[ALL_RANKS_MAX];
	struct kit first, kit;
	int n_proofs = 0;
	int layout;

	for (layout = 0; layout < ALL_N_NODES; layout++) {
		if (!all_set_nodes(shape, layout, nodes))
			continue;
		if (layout) {
			assert_true(kit_make_shape(&kit, shape));
			if (!all_are_same(&kit, &first))
				n_proofs += all_prove_kit(&kit, shape);
			kit_release(&kit);
			continue;
		}
		if (!kit_make_shape(&first, shape))
			return 0;
		n_proofs += all_prove_kit(&first, shape);
	}
	kit_release(&first);
	return n_proofs;
}

static inline int all_prove_form(enum sched_collective collective,
				 enum sched_algo algo, int n_ranks_max)
{
	struct sched_shape shape = {.collective = collective, .algo = algo};
	int n_proofs = 0;

	for (shape.n_ranks = 1; shape.n_ranks <= n_ranks_max;
	     shape.n_ranks++) {
		int n_roots = sched_is_rooted(collective) ? shape.n_ranks : 1;

		for (shape.root = 0; shape.root < n_roots; shape.root++) {
			for (shape.n_channels = 1; shape.n_channels <= 2;
			     shape.n_channels++)
				n_proofs += all_prove_nodes(&shape);
		}
	}
	return n_proofs;
}

/* Any form there is, of @n_min to @n_max ranks. */
static inline void all_draw(struct kit *kit, struct sched_shape *shape,
			    uint32_t *nodes, uint32_t n_min, uint32_t n_max,
			    uint64_t *random)
{
	do {
		*shape = (struct sched_shape){
			.collective = (enum sched_collective)kit_below(
				random, SCHED_N_COLLECTIVES),
			.algo = (enum sched_algo)kit_below(random,
							   SCHED_N_ALGOS),
			.n_ranks = (int)(n_min +
					 kit_below(random, n_max - n_min + 1)),
			.n_channels = 1 + (int)kit_below(random,
							 SCHED_CHANNELS_MAX),
		};
		if (sched_is_rooted(shape->collective))
			shape->root = (int)kit_below(
				random, (uint32_t)shape->n_ranks);
		kit_draw_layout(shape, nodes, random);
	} while (!kit_make_shape(kit, shape));
}

static inline double all_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Returns the seconds of CPU that it took. */
static inline double all_prove(int n_ranks_max)
{
	double start = all_seconds();
	int collective, algo;
	int n_proofs = 0;

	for (algo = 0; algo < SCHED_N_ALGOS; algo++) {
		for (collective = 0; collective < SCHED_N_COLLECTIVES;
		     collective++) {
			double before = all_seconds();
			int n = all_prove_form(
				(enum sched_collective)collective,
				(enum sched_algo)algo, n_ranks_max);

			if (n)
				print_message("%-10s %-14s %7d proofs, "
					      "%6.2f s\n",
					      sched_algo_name(
						      (enum sched_algo)algo),
					      sched_collective_name(
						      (enum sched_collective)
							      collective),
					      n, all_seconds() - before);
			n_proofs += n;
		}
	}
	print_message("%d proofs in %.1f s\n", n_proofs,
		      all_seconds() - start);
	return all_seconds() - start;
}

#endif
