/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the generators share: the schedules of all ranks of one
 * shape, with nodes laid out in several ways.
 */
#ifndef SCHED_FORMS_H
#define SCHED_FORMS_H

#include <stdarg.h>
#include <stddef.h>

#include "sched_kit.h"

#define FORMS_RANKS 32
#define FORMS_CHUNKS (FORMS_RANKS * SCHED_CHANNELS_MAX)
#define FORMS_LANES (3 * SCHED_CHANNELS_MAX)
#define FORMS_SLOTS 4
#define FORMS_PASSES 3

struct forms_message {
	uint64_t value;
	uint32_t chunk, depth;
	uint8_t flags;
};

struct forms_queue {
	struct forms_message slots[FORMS_SLOTS];
	uint32_t n_sent, n_taken;
};

struct forms {
	struct sched_shape shape;
	uint32_t nodes[FORMS_RANKS];
	uint32_t order[FORMS_RANKS]; /* the ranks by node, then by rank */
	struct sched *scheds[FORMS_RANKS];
	uint32_t n_lanes, n_pieces, n_chunks;

	/* How to run. */
	uint32_t n_slots, n_passes;
	uint64_t absent; /* draws the empty blocks of later passes; or 0 */
	/* The rank that is @i-th in the fold of @chunk. */
	uint32_t (*nth)(const struct forms *forms, uint32_t chunk, uint32_t i);

	/* What was found in the first pass. */
	uint64_t n_messages;
	uint32_t n_sent[FORMS_RANKS];
	uint32_t depth;
	/* By from, to, chunk of the sender: how often it crossed. */
	uint8_t crossed[FORMS_RANKS][FORMS_RANKS][FORMS_CHUNKS];

	/* Where the run is. */
	uint32_t done[FORMS_RANKS][FORMS_LANES];
	uint32_t reached[FORMS_RANKS][FORMS_LANES]; /* depth, of the pass */
	uint64_t output[FORMS_PASSES][FORMS_RANKS][FORMS_CHUNKS];
	struct forms_queue queues[FORMS_RANKS][FORMS_RANKS][FORMS_LANES];
};

static inline uint64_t forms_leaf(uint32_t rank, uint32_t chunk)
{
	return kit_mix(((uint64_t)rank << 32 | chunk) + 1);
}

static inline uint64_t forms_fold(uint64_t a, uint64_t b)
{
	return kit_mix(3 * a + kit_mix(b));
}

/* Nodes in blocks, dealt out like cards, or by chance. */
enum forms_layout { FORMS_PLAIN, FORMS_DEALT, FORMS_DRAWN, FORMS_N_LAYOUTS };

static inline void forms_lay_out(struct forms *forms, enum forms_layout layout,
				 uint32_t n_nodes, uint64_t *seed)
{
	uint32_t n = (uint32_t)forms->shape.n_ranks;
	uint32_t i, node;
	uint32_t at = 0;

	forms->shape.n_nodes = (int)n_nodes;
	forms->shape.nodes = layout == FORMS_PLAIN ? NULL : forms->nodes;
	for (i = 0; i < n; i++)
		forms->nodes[i] = i % n_nodes;
	if (layout == FORMS_DRAWN)
		kit_draw_nodes(seed, n, n_nodes, forms->nodes);
	for (node = 0; node < n_nodes; node++) {
		for (i = 0; i < n; i++) {
			if ((uint32_t)sched_node_of(&forms->shape, (int)i) ==
			    node)
				forms->order[at++] = i;
		}
	}
	assert_int_equal(at, n);
}

/* No two lanes that receive from one peer are in one box. */
static inline void forms_check_boxes(const struct forms *forms,
				     const struct sched *sched)
{
	bool from[SCHED_CHANNELS_MAX][SCHED_BOXES][FORMS_RANKS] = {{{false}}};
	uint32_t i, j, k;

	for (i = 0; i < sched->n_lanes; i++) {
		const struct sched_lane *lane = &sched->lanes[i];
		bool here[FORMS_RANKS] = {false};

		assert_int_equal(lane->channel,
				 forms->scheds[0]->lanes[i].channel);
		assert_int_equal(lane->box, forms->scheds[0]->lanes[i].box);
		assert_true(lane->box < SCHED_BOXES);
		for (j = 0; j < lane->n_steps; j++) {
			const struct sched_step *step =
				&sched->steps[lane->step + j];

			assert_int_equal(step->chunk % forms->n_pieces /
						 (forms->n_pieces /
						  (uint32_t)forms->shape
							  .n_channels),
					 lane->channel);
			for (k = 0; k < step->n_recv; k++)
				here[sched->peers[step->recv + k]] = true;
		}
		for (k = 0; k < FORMS_RANKS; k++) {
			assert_false(here[k] &&
				     from[lane->channel][lane->box][k]);
			from[lane->channel][lane->box][k] |= here[k];
		}
	}
}

/* The shape is there but for its nodes: one, or as forms_lay_out() says. */
static inline void forms_make(struct forms *forms)
{
	int i;

	for (i = 0; i < forms->shape.n_ranks; i++)
		if (sched_make(&forms->shape, i, &forms->scheds[i]))
			fail_msg("%s", base_error_text());
	forms->n_lanes = forms->scheds[0]->n_lanes;
	forms->n_pieces = forms->scheds[0]->n_pieces;
	forms->n_chunks = forms->scheds[0]->n_chunks;
	assert_true(forms->n_lanes <= FORMS_LANES);
	assert_true(forms->n_chunks <= FORMS_CHUNKS);
	for (i = 0; i < forms->shape.n_ranks; i++) {
		assert_int_equal(forms->scheds[i]->n_lanes, forms->n_lanes);
		assert_int_equal(forms->scheds[i]->n_pieces, forms->n_pieces);
		forms_check_boxes(forms, forms->scheds[i]);
	}
}

static inline void forms_release(struct forms *forms)
{
	int i;

	for (i = 0; i < forms->shape.n_ranks; i++)
		sched_free(forms->scheds[i]);
}

#endif
