/* SPDX-License-Identifier: MIT */
#include "sim_cut.h"

/*
 * A channel's share of a block is its weight: the rate of its rail, by the
 * channels that the rail has.  In a node that needs no rail all are equal.
 */
static void share_out(struct sim_cut *cut, const struct sched_fabric *fabric,
		      int n_channels, uint64_t bytes)
{
	double weight[SCHED_CHANNELS_MAX], sum = 0;
	uint64_t left = bytes;
	int k;

	for (k = 0; k < n_channels; k++) {
		int rail, n_here;

		weight[k] = 1;
		if (fabric->n_rails && (fabric->n_nodes > 1 ||
					!fabric->in_node.rate)) {
			rail = k % fabric->n_rails;
			n_here = (n_channels - rail + fabric->n_rails - 1) /
				 fabric->n_rails;
			weight[k] = (double)fabric->rails[rail].rate / n_here;
		}
		sum += weight[k];
	}
	for (k = 0; k < n_channels; k++) {
		uint64_t n = (uint64_t)((double)bytes * (weight[k] / sum) /
					BASE_LINE) * BASE_LINE;

		if (k == n_channels - 1 || n > left)
			n = left;
		cut->share[k] = n;
		left -= n;
	}
}

void sim_cut_make(struct sim_cut *cut, const struct sched_fabric *fabric,
		  int n_channels, uint64_t bytes, uint32_t n_pieces)
{
	uint64_t line = BASE_LINE;
	uint64_t longest = 0;
	int k;

	*cut = (struct sim_cut){
		.n_each = n_pieces / (uint32_t)n_channels,
		.n_passes = 1,
	};
	share_out(cut, fabric, n_channels, bytes);
	for (k = 0; k < n_channels; k++) {
		uint64_t most = cut->n_each * fabric->slot_bytes;
		uint64_t n = (cut->share[k] + most - 1) / most;

		if (n > cut->n_passes)
			cut->n_passes = n;
	}
	line *= cut->n_each;
	for (k = 0; k < n_channels; k++) {
		uint64_t even = (cut->share[k] + cut->n_passes - 1) /
				cut->n_passes;

		cut->pass_bytes[k] = (even + line - 1) / line * line;
		cut->chunk_bytes[k] = cut->pass_bytes[k] / cut->n_each;
		if (cut->pass_bytes[k])
			cut->n_full[k] = cut->share[k] / cut->pass_bytes[k];
		if (cut->chunk_bytes[k] > longest)
			longest = cut->chunk_bytes[k];
	}
	cut->window = (uint32_t)fabric->n_slots;
	if (cut->n_passes == 1 && longest <= SIM_LINES_BYTES)
		cut->window = SIM_LINES_WINDOW;
}

bool sim_cut_is_even(const struct sim_cut *cut, int n_channels)
{
	int k;

	for (k = 0; k < n_channels; k++)
		if (cut->n_full[k] * cut->pass_bytes[k] != cut->share[k])
			return false;
	return true;
}

double sim_cut_passes(const struct sim_cut *cut)
{
	double most = 0;
	int k;

	for (k = 0; k < SCHED_CHANNELS_MAX; k++) {
		double n = cut->pass_bytes[k] ? (double)cut->share[k] /
						(double)cut->pass_bytes[k] : 0;

		if (n > most)
			most = n;
	}
	return most;
}

uint64_t sim_cut_rest(const struct sim_cut *cut, uint32_t channel,
		      uint64_t pass, uint32_t at)
{
	uint64_t start = pass * cut->pass_bytes[channel];
	uint64_t line = BASE_LINE;
	uint64_t bytes, chunk;

	if (start >= cut->share[channel])
		return 0;
	bytes = cut->share[channel] - start;
	if (bytes > cut->pass_bytes[channel])
		bytes = cut->pass_bytes[channel];
	chunk = (bytes + cut->n_each - 1) / cut->n_each;
	chunk = (chunk + line - 1) / line * line;
	if (cut->is_even)
		return chunk;
	if (at * chunk >= bytes)
		return 0;
	return bytes - at * chunk < chunk ? bytes - at * chunk : chunk;
}
