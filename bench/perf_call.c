/* SPDX-License-Identifier: MIT */
/* The calls that are measured: where what goes in, and what comes out. */
#include <stdlib.h>
#include <string.h>

#include "bench/perf_measure.h"

/* Uneven blocks are drawn from 0 to this, and then made to fill the vector. */
#define WEIGHT_MAX 15

static bool open_blocks(struct perf_blocks *blocks, int n)
{
	blocks->counts = calloc((size_t)n, sizeof(*blocks->counts));
	blocks->displs = calloc((size_t)n, sizeof(*blocks->displs));
	return blocks->counts && blocks->displs;
}

bool perf_call_open(struct perf_cell *cell, int n)
{
	return open_blocks(&cell->sent, n) && open_blocks(&cell->received, n);
}

void perf_call_close(struct perf_cell *cell)
{
	free(cell->sent.counts);
	free(cell->sent.displs);
	free(cell->received.counts);
	free(cell->received.displs);
	memset(&cell->sent, 0, sizeof(cell->sent));
	memset(&cell->received, 0, sizeof(cell->received));
}

/* ---- blocks of uneven lengths ---- */

/*
 * Lengths that all ranks draw alike, of @total elements together.  What the
 * division leaves goes to the last one.
 */
static void draw(size_t *counts, int n, uint64_t total)
{
	uint64_t state = total * 0x9e3779b97f4a7c15ull + (uint64_t)n;
	uint64_t sum = 0;
	uint64_t left = total;
	int i;

	for (i = 0; i < n; i++) {
		/* Knuth's linear congruential generator: MMIX. */
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		counts[i] = (state >> 33) % (WEIGHT_MAX + 1);
		sum += counts[i];
	}
	for (i = 0; i < n - 1; i++) {
		counts[i] = sum ? total / sum * counts[i] +
					  total % sum * counts[i] / sum
				: 0;
		left -= counts[i];
	}
	counts[n - 1] = left;
}

/* One block after the other. */
static void place_in_order(struct perf_blocks *blocks, int n)
{
	size_t at = 0;
	int i;

	for (i = 0; i < n; i++) {
		blocks->displs[i] = at;
		at += blocks->counts[i];
	}
}

/* The last rank's first, since any order is allowed. */
static void place_backwards(struct perf_blocks *blocks, int n)
{
	size_t at = 0;
	int i;

	for (i = n - 1; i >= 0; i--) {
		blocks->displs[i] = at;
		at += blocks->counts[i];
	}
}

/* What rank @from sends to rank @to, of lengths drawn for one of them. */
static size_t uneven(const struct perf_cell *cell, int from, int to)
{
	int n = cell->team->n_ranks;

	return cell->sent.counts[(to - from + n) % n];
}

/*
 * Every rank sends the same lengths, each to the ranks after it: what all send
 * is then as much as what all get, and both as much as the vector.
 */
static void plan_pairs(struct perf_cell *cell)
{
	int n = cell->team->n_ranks;
	int rank = cell->team->rank;
	size_t *drawn = cell->sent.counts;
	int i;

	draw(drawn, n, cell->n_sent);
	for (i = 0; i < n; i++)
		cell->received.counts[i] = uneven(cell, i, rank);
	/* From the order of distance to that of ranks. */
	for (i = 0; i < n; i++)
		cell->sent.displs[i] = uneven(cell, rank, i);
	memcpy(drawn, cell->sent.displs, (size_t)n * sizeof(*drawn));
	place_in_order(&cell->sent, n);
	place_backwards(&cell->received, n);
}

/* Where rank @from's block for this rank begins in its input. */
static uint64_t pair_from(const struct perf_cell *cell, int from)
{
	int n = cell->team->n_ranks;
	int rank = cell->team->rank;
	uint64_t at = 0;
	int i;

	/* What it sends to rank i is what we send to the one as far away. */
	for (i = 0; i < rank; i++)
		at += cell->sent.counts[((i - from + n) % n + rank) % n];
	return at;
}

static void plan_lists(struct perf_cell *cell)
{
	int n = cell->team->n_ranks;
	int rank = cell->team->rank;

	if (cell->kind == PERF_ALL_TO_ALL_V) {
		plan_pairs(cell);
		return;
	}
	draw(cell->received.counts, n, cell->count * (uint64_t)n);
	place_backwards(&cell->received, n);
	if (cell->kind == PERF_ALL_GATHER_V)
		cell->n_sent = cell->received.counts[rank];
	else
		cell->n_received = cell->received.counts[rank];
}

/* ---- where everything is ---- */

/* Where this rank's block is in a buffer of all blocks. */
static uint64_t own_place(const struct perf_cell *cell)
{
	int rank = cell->team->rank;

	if (perf_collectives[cell->kind].has_lists)
		return cell->received.displs[rank];
	return (uint64_t)rank * cell->count;
}

static void place(struct perf_cell *cell)
{
	const struct perf_collective *what = &perf_collectives[cell->kind];
	size_t own = own_place(cell) * wreath_type_size(cell->type);

	if (!cell->in_place) {
		cell->from = cell->send;
		cell->to = cell->recv;
		return;
	}
	cell->from = (char *)cell->recv + (what->recvs_blocks ? own : 0);
	cell->to = (char *)cell->recv + (what->sends_blocks ? own : 0);
}

void perf_call_plan(struct perf_cell *cell)
{
	const struct perf_collective *what = &perf_collectives[cell->kind];
	uint64_t n = (uint64_t)cell->team->n_ranks;
	bool is_root = cell->team->rank == cell->root;

	cell->n_whole = cell->count * (perf_has_blocks(cell->kind) ? n : 1);
	cell->n_sent = cell->count * (what->sends_blocks ? n : 1);
	cell->n_received = cell->count * (what->recvs_blocks ? n : 1);
	cell->n_pieces = what->recvs_blocks ? (int)n : 1;
	if (what->has_lists)
		plan_lists(cell);
	place(cell);
	if (cell->root < 0 || is_root)
		return;
	if (cell->kind == PERF_BROADCAST || cell->kind == PERF_SCATTER)
		cell->n_sent = 0;
	if (cell->kind == PERF_REDUCE || cell->kind == PERF_GATHER) {
		/* One piece, which must be left as it is. */
		cell->n_pieces = 1;
	}
}

static void block_piece(const struct perf_cell *cell, int i,
			struct perf_piece *piece)
{
	bool has_lists = perf_collectives[cell->kind].has_lists;

	piece->source = i;
	piece->count = has_lists ? cell->received.counts[i] : cell->count;
	piece->at = has_lists ? cell->received.displs[i]
			      : (uint64_t)i * cell->count;
	if (cell->kind == PERF_ALL_TO_ALL)
		piece->from = (uint64_t)cell->team->rank * cell->count;
	else if (cell->kind == PERF_ALL_TO_ALL_V)
		piece->from = pair_from(cell, i);
}

void perf_call_piece(const struct perf_cell *cell, int i,
		     struct perf_piece *piece)
{
	const struct perf_collective *what = &perf_collectives[cell->kind];
	int n = cell->team->n_ranks;

	*piece = (struct perf_piece){.count = cell->n_received};
	if (cell->root >= 0 && cell->team->rank != cell->root &&
	    (cell->kind == PERF_REDUCE || cell->kind == PERF_GATHER)) {
		piece->source = PERF_UNTOUCHED;
		return;
	}
	if (what->recvs_blocks) {
		block_piece(cell, i, piece);
		return;
	}
	if (what->sends_blocks)
		piece->from = own_place(cell);
	if (perf_is_reducing(cell->kind))
		piece->source = PERF_REDUCED;
	else if (cell->kind == PERF_SENDRECV)
		piece->source = (cell->team->rank + n - 1) % n;
	else
		piece->source = cell->root;
}

/* ---- calls ---- */

static int call_pair(struct perf_cell *cell)
{
	int rank = cell->team->rank;
	int n = cell->team->n_ranks;
	int error = wreath_group_start();
	int other;

	if (!error)
		error = wreath_send(cell->from, cell->count, cell->type,
				    (rank + 1) % n, cell->comm, cell->stream);
	if (!error)
		error = wreath_recv(cell->to, cell->count, cell->type,
				    (rank + n - 1) % n, cell->comm,
				    cell->stream);
	/* A refused call is told again by the end of its group. */
	other = wreath_group_end();
	return error ? error : other;
}

static int call_lists(struct perf_cell *cell)
{
	if (cell->kind == PERF_ALL_GATHER_V)
		return wreath_all_gather_v(cell->from, cell->to,
					   cell->received.counts,
					   cell->received.displs, cell->type,
					   cell->comm, cell->stream);
	if (cell->kind == PERF_REDUCE_SCATTER_V)
		return wreath_reduce_scatter_v(
			cell->from, cell->to, cell->received.counts,
			cell->received.displs, cell->type,
			(enum wreath_op)cell->op, cell->comm, cell->stream);
	return wreath_all_to_all_v(cell->from, cell->sent.counts,
				   cell->sent.displs, cell->to,
				   cell->received.counts,
				   cell->received.displs, cell->type,
				   cell->comm, cell->stream);
}

static int call_rooted(struct perf_cell *cell)
{
	const void *from = cell->from;
	void *to = cell->to;

	if (cell->kind == PERF_REDUCE)
		return wreath_reduce(from, to, cell->count, cell->type,
				     (enum wreath_op)cell->op, cell->root,
				     cell->comm, cell->stream);
	if (cell->kind == PERF_BROADCAST)
		return wreath_broadcast(from, to, cell->count, cell->type,
					cell->root, cell->comm, cell->stream);
	if (cell->kind == PERF_GATHER)
		return wreath_gather(from, to, cell->count, cell->type,
				     cell->root, cell->comm, cell->stream);
	return wreath_scatter(from, to, cell->count, cell->type, cell->root,
			      cell->comm, cell->stream);
}

static int call(struct perf_cell *cell)
{
	const void *from = cell->from;
	void *to = cell->to;

	switch (cell->kind) {
	case PERF_ALL_REDUCE:
	case PERF_OVERLAP:
		return wreath_all_reduce(from, to, cell->count, cell->type,
					 (enum wreath_op)cell->op, cell->comm,
					 cell->stream);
	case PERF_REDUCE_SCATTER:
		return wreath_reduce_scatter(from, to, cell->count, cell->type,
					     (enum wreath_op)cell->op,
					     cell->comm, cell->stream);
	case PERF_ALL_GATHER:
		return wreath_all_gather(from, to, cell->count, cell->type,
					 cell->comm, cell->stream);
	case PERF_ALL_TO_ALL:
		return wreath_all_to_all(from, to, cell->count, cell->type,
					 cell->comm, cell->stream);
	case PERF_SENDRECV:
		return call_pair(cell);
	case PERF_BARRIER:
		return wreath_barrier(cell->comm, cell->stream);
	default:
		return cell->root >= 0 ? call_rooted(cell) : call_lists(cell);
	}
}

int perf_call(struct perf_cell *cell)
{
	int error = call(cell);

	while (error == WREATH_EAGAIN && cell->stream) {
		error = wreath_stream_wait(cell->stream);
		if (!error)
			error = call(cell);
	}
	return error;
}
