/* SPDX-License-Identifier: MIT */
/*
 * Which bytes a chunk is.  Both ends of a message, and all ranks that have a
 * block, cut it alike, from its length alone.
 */
#include "exec/inner.h"

#define WHOLE 65536u

void exec_cut_shares(struct exec_plan *plan)
{
	uint32_t n = (uint32_t)plan->sched->shape.n_channels;
	uint64_t total = 0;
	uint64_t sum = 0;
	uint32_t k;

	plan->n_pieces = plan->sched->n_pieces / n;
	for (k = 0; k < n; k++)
		total += net_channel_weight(plan->net, (int)k);
	for (k = 0; k < n; k++) {
		sum += net_channel_weight(plan->net, (int)k);
		plan->shares[k + 1] = (uint32_t)(sum * WHOLE / total);
	}
}

/* Where channel @k's share of @bytes begins: at a line. */
static size_t share_at(const struct exec_plan *plan, size_t bytes, uint32_t k)
{
	size_t share = plan->shares[k];
	size_t at = bytes / WHOLE * share + bytes % WHOLE * share / WHOLE;

	return base_min_size(base_round_up(at, BASE_LINE), bytes);
}

/* The longest piece of @bytes of a block. */
static size_t longest_piece(const struct exec_plan *plan, size_t bytes)
{
	uint32_t n = (uint32_t)plan->sched->shape.n_channels;
	size_t longest = 0;
	uint32_t k;

	for (k = 0; k < n; k++) {
		size_t share = share_at(plan, bytes, k + 1) -
			       share_at(plan, bytes, k);

		if (share > longest)
			longest = share;
	}
	return base_round_up((longest + plan->n_pieces - 1) / plan->n_pieces,
			     BASE_LINE);
}

/* As much of a block as a pass can have, with pieces that fit a slot. */
static size_t most_of_block(const struct exec_plan *plan)
{
	uint32_t n = (uint32_t)plan->sched->shape.n_channels;
	size_t share = plan->n_pieces * plan->net->slot_bytes;
	size_t line = (size_t)plan->sched->n_pieces * BASE_LINE;
	uint32_t widest = 0;
	size_t most;
	uint32_t k;

	if (n == 1)
		return share;
	for (k = 0; k < n; k++)
		if (plan->shares[k + 1] - plan->shares[k] > widest)
			widest = plan->shares[k + 1] - plan->shares[k];
	/* Both ends of a share are moved to a line, one of them up. */
	share -= BASE_LINE;
	most = share / widest * WHOLE + share % widest * WHOLE / widest;
	return most > line ? most / line * line : line;
}

/*
 * Passes of about equal size.  Where only pairs of ranks know how long their
 * blocks are, all must take the same step, the longest.
 */
void exec_cut(struct exec_plan *plan)
{
	size_t longest = plan->args->longest;
	size_t line = (size_t)plan->sched->n_pieces * BASE_LINE;
	size_t most = plan->is_in_place ? longest : most_of_block(plan);

	plan->n_passes = longest ? (longest + most - 1) / most : 1;
	plan->pass_bytes = most;
	if (plan->is_private)
		return;
	plan->pass_bytes = base_round_up(
		(longest + plan->n_passes - 1) / plan->n_passes, line);
	if (!longest)
		plan->pass_bytes = line;
	/* Rounding up may have emptied the last pass. */
	plan->n_passes = longest ? (longest + plan->pass_bytes - 1) /
					   plan->pass_bytes : 1;
}

size_t exec_longest_chunk(const struct exec_plan *plan)
{
	size_t bytes = base_min_size(plan->pass_bytes, plan->args->longest);

	return base_min_size(longest_piece(plan, bytes), bytes);
}

size_t exec_chunk(const struct exec_plan *plan, const struct exec_step *step,
		  uint64_t pass, size_t *offset)
{
	size_t bytes = exec_block_bytes(exec_blocks_of(plan, step),
					step->block);
	size_t start, share, end, piece, at;

	*offset = 0;
	if (base_unlikely(bytes == EXEC_ABSENT))
		return EXEC_ABSENT;
	start = pass * plan->pass_bytes;
	if (base_unlikely(start >= bytes))
		return 0;
	bytes = base_min_size(plan->pass_bytes, bytes - start);
	share = 0;
	end = bytes;
	if (plan->n_pieces != plan->sched->n_pieces) {
		share = share_at(plan, bytes, step->channel);
		end = share_at(plan, bytes, step->channel + 1);
	}
	piece = base_round_up((end - share + plan->n_pieces - 1) /
				      plan->n_pieces, BASE_LINE);
	at = base_min_size(step->piece * piece, end - share);
	*offset = start + share + at;
	return base_min_size(piece, end - share - at);
}
