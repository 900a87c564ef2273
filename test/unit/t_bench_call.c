/* SPDX-License-Identifier: MIT */
/*
 * Goal: `wreath perf` checks every element that a collective writes, once, and
 * expects there what the collective's definition says.
 * Method: calls are planned for every rank of many shapes; the pieces that are
 * expected must tile the output, and lie where the sender's plan puts them.
 * The sources of the workbench are included, since no library has them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/option.c"
#include "bench/perf_call.c"
#include "bench/perf_collective.c"

#define RANKS_MAX 9

/* Addresses only: nothing is read or written. */
static char send_at[1], recv_at[1];
static struct perf_team teams[RANKS_MAX];
static struct perf_cell cells[RANKS_MAX];

static void plan(enum perf_kind kind, int n, int root, uint64_t count,
		 bool in_place)
{
	int r;

	for (r = 0; r < n; r++) {
		teams[r].rank = r;
		teams[r].n_ranks = n;
		cells[r].team = &teams[r];
		cells[r].kind = kind;
		cells[r].type = WREATH_FLOAT32;
		cells[r].root = root;
		cells[r].count = count;
		cells[r].in_place = in_place;
		cells[r].send = send_at;
		cells[r].recv = recv_at;
		assert_true(perf_call_open(&cells[r], n));
		perf_call_plan(&cells[r]);
	}
}

static void forget(int n)
{
	int r;

	for (r = 0; r < n; r++)
		perf_call_close(&cells[r]);
}

/* All plans of some kinds, with @check for each rank. */
static void for_each_plan(void (*check)(const struct perf_cell *cell))
{
	static const uint64_t counts[] = {0, 1, 2, 7, 100, 4099};
	int kind, n, root, r;
	size_t i;

	for (kind = 0; kind < PERF_N_KINDS; kind++) {
		bool is_rooted = perf_is_rooted((enum perf_kind)kind);

		if (kind == PERF_BARRIER)
			continue;
		for (n = 1; n <= RANKS_MAX; n += n < 4 ? 1 : 2) {
			for (i = 0; i < base_countof(counts); i++) {
				for (root = is_rooted ? 0 : -1;
				     root < (is_rooted ? n : 0); root++) {
					plan((enum perf_kind)kind, n, root,
					     counts[i], i % 2);
					for (r = 0; r < n; r++)
						check(&cells[r]);
					forget(n);
				}
			}
		}
	}
}

static void check_tiles(const struct perf_cell *cell)
{
	unsigned char *seen = calloc(1, cell->n_received + 1);
	struct perf_piece piece;
	uint64_t k;
	int i;

	assert_non_null(seen);
	for (i = 0; i < cell->n_pieces; i++) {
		perf_call_piece(cell, i, &piece);
		assert_true(piece.at + piece.count <= cell->n_received);
		for (k = 0; k < piece.count; k++)
			seen[piece.at + k]++;
	}
	for (k = 0; k < cell->n_received; k++)
		assert_int_equal(seen[k], 1);
	free(seen);
}

static void pieces_tile_the_output(void **s)
{
	(void)s;
	for_each_plan(check_tiles);
}

/* What the definitions in wreath.h say of a piece's origin. */
static void check_origin(const struct perf_cell *cell)
{
	int n = cell->team->n_ranks;
	int rank = cell->team->rank;
	struct perf_piece piece;
	int i;

	for (i = 0; i < cell->n_pieces; i++) {
		const struct perf_cell *from;

		perf_call_piece(cell, i, &piece);
		if (piece.source == PERF_UNTOUCHED) {
			assert_true(rank != cell->root);
			assert_true(cell->kind == PERF_REDUCE ||
				    cell->kind == PERF_GATHER);
			continue;
		}
		assert_int_equal(piece.source == PERF_REDUCED,
				 perf_is_reducing(cell->kind));
		/* A reduction has as many elements as each input. */
		from = &cells[piece.source == PERF_REDUCED ? rank
							   : piece.source];
		assert_true(piece.from + piece.count <= from->n_sent);
		if (cell->kind == PERF_SENDRECV)
			assert_int_equal((piece.source + 1) % n, rank);
		if (cell->kind == PERF_SCATTER ||
		    cell->kind == PERF_ALL_TO_ALL ||
		    cell->kind == PERF_REDUCE_SCATTER)
			assert_int_equal(piece.from,
					 cell->count * (uint64_t)rank);
		if (cell->kind == PERF_REDUCE_SCATTER_V)
			assert_int_equal(piece.from,
					 cell->received.displs[rank]);
		if (cell->kind != PERF_ALL_TO_ALL_V)
			continue;
		assert_int_equal(piece.from, from->sent.displs[rank]);
		assert_int_equal(piece.count, from->sent.counts[rank]);
		assert_int_equal(piece.at, cell->received.displs[i]);
	}
}

static void pieces_come_from_where_they_were_sent(void **s)
{
	(void)s;
	for_each_plan(check_origin);
}

/* In place is where wreath.h says, and nothing is beyond the vector. */
static void check_place(const struct perf_cell *cell)
{
	const struct perf_collective *what = &perf_collectives[cell->kind];
	uint64_t from = (uint64_t)((const char *)cell->from - recv_at) / 4;
	uint64_t to = (uint64_t)((char *)cell->to - recv_at) / 4;
	uint64_t own = (uint64_t)cell->team->rank * cell->count;

	assert_true(cell->n_sent <= cell->n_whole &&
		    cell->n_received <= cell->n_whole);
	if (!cell->in_place || !what->has_in_place)
		return;
	if (what->has_lists)
		own = cell->received.displs[cell->team->rank];
	assert_int_equal(from, what->recvs_blocks ? own : 0);
	assert_int_equal(to, what->sends_blocks ? own : 0);
	assert_true(from + cell->n_sent <= cell->n_whole);
	assert_true(to + cell->n_received <= cell->n_whole);
}

static void buffers_in_place_are_where_the_calls_want_them(void **s)
{
	(void)s;
	for_each_plan(check_place);
}

/* Else the forms with lists would test nothing more. */
static void drawn_blocks_are_uneven_and_complete(void **s)
{
	size_t counts[RANKS_MAX];
	uint64_t total, sum;
	int n, i;
	int n_even = 0, n_drawn = 0;

	(void)s;
	for (n = 2; n <= RANKS_MAX; n++) {
		for (total = 0; total < 5000; total += 97) {
			bool is_even = true;

			draw(counts, n, total);
			for (sum = 0, i = 0; i < n; i++) {
				sum += counts[i];
				is_even &= counts[i] == counts[0];
			}
			assert_int_equal(sum, total);
			n_even += is_even;
			n_drawn++;
		}
	}
	/* Two ranks have the same weight once in 16 times. */
	assert_true(n_even * 8 < n_drawn);
}

static void names_are_found_by_either_word(void **s)
{
	char name[64];
	int kind;

	(void)s;
	for (kind = 0; kind < PERF_N_KINDS; kind++) {
		const struct perf_collective *what = &perf_collectives[kind];

		perf_program((enum perf_kind)kind, name, sizeof(name));
		assert_string_equal(perf_called_as(name), what->name);
		assert_int_equal(perf_kind_read(NULL, what->name), kind);
		if (what->other)
			assert_int_equal(perf_kind_read(NULL, what->other),
					 kind);
	}
	assert_string_equal(perf_called_as("/usr/bin/alltoall_perf"),
			    "all_to_all");
	assert_null(perf_called_as("wreath"));
	assert_null(perf_called_as("_perf"));
	assert_null(perf_called_as("all_reduce_perfs"));
	assert_null(perf_called_as("all_reduce_perf/wreath"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_tile_the_output),
		cmocka_unit_test(pieces_come_from_where_they_were_sent),
		cmocka_unit_test(
			buffers_in_place_are_where_the_calls_want_them),
		cmocka_unit_test(drawn_blocks_are_uneven_and_complete),
		cmocka_unit_test(names_are_found_by_either_word),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
