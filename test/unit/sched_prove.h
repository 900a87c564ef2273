/* SPDX-License-Identifier: MIT */
/*
 * The proof of one form for every number of ranks up to 64 and every root, in
 * place and not, with nodes drawn by chance and from 1 to 4 channels.
 */
#ifndef SCHED_PROVE_H
#define SCHED_PROVE_H

#include <stdarg.h>
#include <stddef.h>

#include "sched_kit.h"

#define PROVE_RANKS (KIT_IS_SLOW ? 16 : 64)

struct prove_form {
	enum sched_collective collective;
	enum sched_algo algo;
	int n_slots;
	int depth, depth_per_hop; /* @depth + @depth_per_hop * (n_ranks - 1) */
};

static inline void prove_shape(const struct prove_form *form,
			       const struct sched_shape *shape)
{
	static struct kit kit;
	int n = shape->n_ranks;
	int depth = n > 1 ? form->depth + form->depth_per_hop * (n - 1) : 0;
	int in_place;

	assert_true(kit_make_shape(&kit, shape));
	for (in_place = 0; in_place < 2; in_place++) {
		struct sched_proof proof;

		if (in_place && !kit_has_in_place(form->collective))
			continue;
		if (sched_verify(kit.scheds, n, form->n_slots, in_place,
				 &proof))
			fail_msg("%s %s, %d ranks, root %d, %d nodes: %s",
				 sched_algo_name(form->algo),
				 sched_collective_name(form->collective), n,
				 shape->root, shape->n_nodes,
				 base_error_text());
		assert_int_equal(proof.chunks_sent_max,
				 proof.chunks_sent_bound);
		assert_int_equal(proof.depth, depth);
	}
	kit_release(&kit);
}

static inline void prove(const struct prove_form *form, uint64_t *seed)
{
	bool is_rooted = sched_is_rooted(form->collective);
	uint32_t nodes[64];
	int n, root;

	for (n = 1; n <= PROVE_RANKS; n++) {
		for (root = 0; root < (is_rooted ? n : 1); root++) {
			struct sched_shape shape = {
				.collective = form->collective,
				.algo = form->algo, .n_ranks = n,
				/* Beyond two they add nothing of a kind. */
				.n_channels = 1 + (n + root) %
					      (n <= 24 ? SCHED_CHANNELS_MAX
						       : 2),
				.root = root};

			kit_draw_layout(&shape, nodes, seed);
			prove_shape(form, &shape);
		}
	}
}

#endif
