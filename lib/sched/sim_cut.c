/* SPDX-License-Identifier: MIT */
#include "sim_cut.h"

/* Ends of the channels' shares of a block, in so many parts of it. */
#define WHOLE 65536u

struct shares {
	int n_channels;
	uint32_t ends[SCHED_CHANNELS_MAX + 1];
};

/*
 * A channel has the weight of its rail.  In a node that needs no rail all are
 * equal.
 */
static void make_shares(struct shares *shares,
			const struct sched_fabric *fabric, int n_channels)
{
	uint64_t weights[SCHED_CHANNELS_MAX], total = 0, sum = 0;
	int k;

	*shares = (struct shares){.n_channels = n_channels};
	for (k = 0; k < n_channels; k++) {
		weights[k] = 1;
		if (fabric->n_rails &&
		    (fabric->n_nodes > 1 || !fabric->in_node.rate))
			/* Of 1 KB/s or more: no rail is lost by that. */
			weights[k] = fabric->rails[k % fabric->n_rails].rate /
				     1000;
		total += weights[k];
	}
	for (k = 0; k < n_channels; k++) {
		sum += weights[k];
		shares->ends[k + 1] = (uint32_t)(sum * WHOLE / total);
	}
}

static uint64_t share_at(const struct shares *shares, uint64_t bytes, int k)
{
	uint64_t share = shares->ends[k];
	uint64_t at = bytes / WHOLE * share + bytes % WHOLE * share / WHOLE;

	return base_min_size(base_round_up(at, BASE_LINE), bytes);
}

/* As much of a block as a pass can have, with pieces that fit a slot. */
static uint64_t most_of_block(const struct shares *shares,
			      const struct sched_fabric *fabric,
			      uint32_t n_pieces)
{
	uint64_t line = (uint64_t)n_pieces * BASE_LINE;
	uint64_t share = n_pieces / (uint64_t)shares->n_channels *
			 fabric->slot_bytes;
	uint32_t widest = 0;
	uint64_t most;
	int k;

	if (shares->n_channels == 1)
		return share;
	for (k = 0; k < shares->n_channels; k++)
		if (shares->ends[k + 1] - shares->ends[k] > widest)
			widest = shares->ends[k + 1] - shares->ends[k];
	share -= BASE_LINE;
	most = share / widest * WHOLE + share % widest * WHOLE / widest;
	return most > line ? most / line * line : line;
}

/* The channels' parts of so many bytes; the longest piece. */
static uint64_t cut_pass(struct sim_cut *cut, const struct shares *shares,
			 int is_last, uint64_t bytes)
{
	uint64_t longest = 0;
	int k;

	for (k = 0; k < shares->n_channels; k++) {
		uint64_t share = share_at(shares, bytes, k + 1) -
				 share_at(shares, bytes, k);
		uint64_t piece = base_round_up((share + cut->n_each - 1) /
					       cut->n_each, BASE_LINE);

		cut->share[is_last][k] = share;
		cut->piece[is_last][k] = piece;
		if (piece > longest)
			longest = piece;
	}
	return longest;
}

void sim_cut_make(struct sim_cut *cut, const struct sched_fabric *fabric,
		  int n_channels, uint64_t bytes, uint32_t n_pieces)
{
	uint64_t line = (uint64_t)n_pieces * BASE_LINE;
	uint64_t most, longest;
	struct shares shares;

	make_shares(&shares, fabric, n_channels);
	most = most_of_block(&shares, fabric, n_pieces);
	*cut = (struct sim_cut){
		.n_each = n_pieces / (uint32_t)n_channels,
		.n_passes = 1,
		.block_bytes = bytes,
		.pass_bytes = line,
	};
	if (bytes) {
		uint64_t n = (bytes + most - 1) / most;

		cut->pass_bytes = base_round_up((bytes + n - 1) / n, line);
		cut->n_passes = (bytes + cut->pass_bytes - 1) /
				cut->pass_bytes;
	}
	cut_pass(cut, &shares, 0, cut->pass_bytes);
	longest = cut_pass(cut, &shares, 1,
			   bytes - (cut->n_passes - 1) * cut->pass_bytes);
	cut->window = (uint32_t)fabric->n_slots;
	if (cut->n_passes == 1 && longest <= SCHED_SIM_LINES_BYTES)
		cut->window = SCHED_SIM_LINES_WINDOW;
}

bool sim_cut_is_even(const struct sim_cut *cut, int n_channels)
{
	int last, k;

	for (last = cut->n_passes == 1; last < 2; last++)
		for (k = 0; k < n_channels; k++)
			if (cut->piece[last][k] * cut->n_each !=
			    cut->share[last][k])
				return false;
	return true;
}

double sim_cut_passes(const struct sim_cut *cut)
{
	return (double)cut->block_bytes / (double)cut->pass_bytes;
}
