/* SPDX-License-Identifier: MIT */
/* What goes into the buffers, and whether the right thing came out of them. */
#include <string.h>

#include "bench/perf_measure.h"

/* This rank's input. */
static int fill(struct perf_cell *cell, void *to)
{
	perf_pattern_fill(cell->pattern, perf_memory_view(cell->memory, to),
			  cell->n_sent);
	return perf_memory_put(cell->memory, to,
			       cell->n_sent * wreath_type_size(cell->type));
}

/*
 * What is reduced again and again in place must not run into infinities and
 * subnormal numbers, which some processors are slow at: zeros stay zeros.
 */
int perf_prepare(struct perf_cell *cell)
{
	size_t bytes = cell->n_whole * wreath_type_size(cell->type);

	if (!cell->in_place)
		return fill(cell, cell->send);
	memset(perf_memory_view(cell->memory, cell->recv), 0, bytes);
	return perf_memory_put(cell->memory, cell->recv, bytes);
}

/* In place, the input is somewhere in the buffer of the output. */
static void *input(const struct perf_cell *cell)
{
	if (!cell->in_place)
		return cell->send;
	return (char *)cell->recv +
	       ((const char *)cell->from - (const char *)cell->recv);
}

int perf_touch(struct perf_cell *cell)
{
	return fill(cell, input(cell));
}

/* A barrier has no result but that everyone has come. */
static int check_barrier(struct perf_cell *cell, struct perf_check *check)
{
	_Atomic uint64_t *n_barriers = &cell->team->page->n_barriers;
	uint64_t want = ++cell->n_barriers * (uint64_t)cell->team->n_ranks;
	uint64_t got;
	int error;

	/* Pairs with the load of each other rank behind its barrier. */
	atomic_fetch_add(n_barriers, 1);
	error = perf_call(cell);
	if (!error)
		error = perf_call_wait(cell);
	got = atomic_load(n_barriers);
	if (got < want) {
		check->wrong = 1;
		check->fault = PERF_EARLY;
		check->want = cell->team->n_ranks;
		check->got = check->want - (double)(want - got);
	}
	return error;
}

/* So that what an earlier operation left there is no right answer. */
static int blank(struct perf_cell *cell, size_t bytes)
{
	perf_pattern_blank(perf_memory_view(cell->memory, cell->recv), bytes);
	return perf_memory_put(cell->memory, cell->recv, bytes);
}

static int check_input(struct perf_cell *cell, struct perf_check *check)
{
	struct perf_piece whole = {.source = cell->team->rank,
				   .count = cell->n_sent};
	int error = perf_memory_get(cell->memory, cell->from,
				    cell->n_sent *
					    wreath_type_size(cell->type));

	if (!error)
		perf_pattern_check(cell->pattern, &whole,
				   perf_memory_view(cell->memory, cell->from),
				   PERF_CHANGED, check);
	return error;
}

static int check_once(struct perf_cell *cell, struct perf_check *check)
{
	size_t bytes = (cell->in_place ? cell->n_whole : cell->n_received) *
		       wreath_type_size(cell->type);
	struct perf_piece piece;
	int error;
	int i;

	memset(check, 0, sizeof(*check));
	if (cell->kind == PERF_BARRIER)
		return check_barrier(cell, check);
	error = blank(cell, bytes);
	if (!error)
		error = perf_touch(cell);
	if (!error)
		error = perf_call(cell);
	if (!error)
		error = perf_call_wait(cell);
	if (!error)
		error = perf_memory_get(cell->memory, cell->recv, bytes);
	if (error)
		return error;
	for (i = 0; i < cell->n_pieces; i++) {
		perf_call_piece(cell, i, &piece);
		/* In place, what is not written is one's own input. */
		if (piece.source == PERF_UNTOUCHED && cell->in_place)
			continue;
		perf_pattern_check(cell->pattern, &piece,
				   perf_memory_view(cell->memory, cell->to),
				   piece.source == PERF_UNTOUCHED
					   ? PERF_WRITTEN : PERF_WRONG,
				   check);
	}
	return cell->in_place ? 0 : check_input(cell, check);
}

static void sum_up(const struct perf_cell *cell, struct perf_result *result)
{
	int r;

	memset(&result->check, 0, sizeof(result->check));
	for (r = 0; r < cell->team->n_ranks; r++) {
		int64_t wrong = result->check.wrong;

		if (!cell->checks[r].wrong)
			continue;
		if (!wrong) {
			result->check = cell->checks[r];
			result->wrong_rank = r;
		}
		result->check.wrong = wrong + cell->checks[r].wrong;
	}
}

enum perf_outcome perf_check_gather(struct perf_cell *cell,
				    const struct perf_check *mine,
				    struct perf_result *result)
{
	if (!perf_team_gather(cell->team, mine, sizeof(*mine), cell->checks))
		return PERF_BROKEN;
	sum_up(cell, result);
	return PERF_DONE;
}

enum perf_outcome perf_check_it(struct perf_cell *cell,
				struct perf_result *result)
{
	struct perf_check mine = {0};
	int64_t i;

	/* Ranks that a launcher started share no memory to count barriers. */
	if (cell->kind == PERF_BARRIER && cell->team->comm)
		return PERF_DONE;
	/* No rank may stop early: the others would wait for it. */
	for (i = 0; i < cell->options->n_checks; i++) {
		struct perf_check check;
		int error = check_once(cell, &check);

		if (error)
			return perf_broken(cell, error);
		if (!mine.wrong)
			mine = check;
	}
	result->is_checked = cell->options->n_checks > 0;
	if (!result->is_checked)
		return PERF_DONE;
	return perf_check_gather(cell, &mine, result);
}
