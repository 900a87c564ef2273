/* SPDX-License-Identifier: MIT */
/* Which bytes a chunk is: as the executor cuts a block. */
#ifndef SCHED_SIM_CUT_H
#define SCHED_SIM_CUT_H

#include "sched.h"

struct sim_cut {
	uint64_t n_passes;
	uint64_t block_bytes, pass_bytes; /* the last pass may be shorter */
	uint32_t n_each; /* pieces of a channel */
	uint32_t window; /* messages under way of a lane and pair */
	bool is_even;	 /* all chunks are taken for as long as the longest */
	/* Of a full pass, and of the last: a channel's bytes and pieces. */
	uint64_t share[2][SCHED_CHANNELS_MAX], piece[2][SCHED_CHANNELS_MAX];
};

/* @bytes of a block, @n_pieces of it in a pass. */
void sim_cut_make(struct sim_cut *cut, const struct sched_fabric *fabric,
		  int n_channels, uint64_t bytes, uint32_t n_pieces);

/* Are all chunks of a pass equally long anyway? */
bool sim_cut_is_even(const struct sim_cut *cut, int n_channels);

/* Passes, the last of which may be a fraction. */
double sim_cut_passes(const struct sim_cut *cut);

/* Bytes of the piece @at of a channel. */
static inline uint64_t sim_cut_bytes(const struct sim_cut *cut,
				     uint32_t channel, uint64_t pass,
				     uint32_t at)
{
	uint32_t last = pass + 1 == cut->n_passes;
	uint64_t piece = cut->piece[last][channel];
	uint64_t share = cut->share[last][channel];
	uint64_t start = at * piece;

	if (base_likely(cut->is_even || start + piece <= share))
		return piece;
	return start < share ? share - start : 0;
}

#endif
