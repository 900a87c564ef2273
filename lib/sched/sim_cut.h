/* SPDX-License-Identifier: MIT */
/* How the executor cuts a block into channels, passes and chunks. */
#ifndef SCHED_SIM_CUT_H
#define SCHED_SIM_CUT_H

#include "sched.h"

/* The longest message that goes as lines, and how many may be under way: the
 * executor's. */
#define SIM_LINES_BYTES (8 * 56)
#define SIM_LINES_WINDOW 16
/* Final chunks go straight to their place from this vector on. */
#define SIM_PLACE_MIN 1024

struct sim_cut {
	bool is_even; /* all chunks of a pass are as long as the longest */
	uint32_t n_each;   /* pieces of a channel */
	uint64_t n_passes;
	uint32_t window;   /* messages under way of a lane and pair */
	/* Of each channel: its bytes, those of a pass, passes that are full,
	 * and the chunk of these. */
	uint64_t share[SCHED_CHANNELS_MAX], pass_bytes[SCHED_CHANNELS_MAX];
	uint64_t n_full[SCHED_CHANNELS_MAX], chunk_bytes[SCHED_CHANNELS_MAX];
};

/* @bytes of a block, @n_pieces of it in a pass. */
void sim_cut_make(struct sim_cut *cut, const struct sched_fabric *fabric,
		  int n_channels, uint64_t bytes, uint32_t n_pieces);

/* Are all chunks of a pass, and all passes of a channel, equally long? */
bool sim_cut_is_even(const struct sim_cut *cut, int n_channels);

/* Passes, the last of which may be a fraction. */
double sim_cut_passes(const struct sim_cut *cut);

/* A chunk of a pass that is not full. */
uint64_t sim_cut_rest(const struct sim_cut *cut, uint32_t channel,
		      uint64_t pass, uint32_t at);

/* Bytes of the piece @at of a channel. */
static inline uint64_t sim_cut_bytes(const struct sim_cut *cut,
				     uint32_t channel, uint64_t pass,
				     uint32_t at)
{
	if (base_likely(pass < cut->n_full[channel]))
		return cut->chunk_bytes[channel];
	return sim_cut_rest(cut, channel, pass, at);
}

#endif
