/* SPDX-License-Identifier: MIT */
/*
 * Goal: communicators made of one another work beside each other, and come
 * and go without a trace.
 * Method: duplicates are used by as many streams, in another order on each
 * rank; splits are made and destroyed while descriptors and resident memory of
 * the process are watched.
 */
#include <stdio.h>
#include <unistd.h>

#include "test/loop/ranks.h"

#define N_BESIDE 3
#define N_QUEUED 40

static int run_beside(struct rank *rank)
{
	struct wreath_comm *comms[N_BESIDE] = {NULL};
	struct wreath_stream *streams[N_BESIDE] = {NULL};
	static _Thread_local int words[N_BESIDE][N_QUEUED];
	int err = 0;
	int i, j, later;

	for (i = 0; i < N_BESIDE && !err; i++) {
		err = wreath_comm_duplicate(rank->comm, &comms[i]);
		if (!err && (wreath_comm_rank(comms[i]) != rank->rank ||
			     wreath_comm_size(comms[i]) != rank->n_ranks))
			err = rank_broken(rank, "a duplicate is another");
		if (!err)
			err = wreath_stream_create(&streams[i]);
	}
	/* Each rank begins with another one: nothing orders them. */
	for (j = 0; j < N_QUEUED && !err; j++) {
		for (i = 0; i < N_BESIDE && !err; i++) {
			int at = (i + rank->rank) % N_BESIDE;

			words[at][j] = at + 1;
			err = wreath_all_reduce(&words[at][j], &words[at][j],
						1, WREATH_INT32, WREATH_SUM,
						comms[at], streams[at]);
		}
	}
	for (i = 0; i < N_BESIDE; i++) {
		later = wreath_stream_destroy(streams[i]);
		err = err ? err : later;
		later = wreath_comm_destroy(comms[i]);
		err = err ? err : later;
		for (j = 0; j < N_QUEUED && !err; j++)
			if (words[i][j] != (i + 1) * rank->n_ranks)
				err = rank_broken(rank, "a wrong sum");
	}
	return err;
}

static void duplicates_work_beside_each_other(void **state)
{
	struct ranks run = {.n = 3, .body = run_beside};

	(void)state;
	ranks_run(&run);
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

/* ---- without a trace ---- */

static int split_over_and_over(struct rank *rank)
{
	const int n = RANKS_SLOW ? 30 : 120;
	int fds = 0;
	long kb = 0;
	int err = 0;
	int i;

	for (i = 0; i < n && !err; i++) {
		struct wreath_comm *child;
		int word = 1;

		if (i == 20) {
			if (!rank_barrier(rank))
				return rank_broken(rank, "alone");
			ranks_sleep_ms(100);
			fds = ranks_n_fds();
			kb = ranks_resident_kb();
			if (!rank_barrier(rank))
				return rank_broken(rank, "alone");
		}
		err = wreath_comm_split(rank->comm, 0, -rank->rank, &child);
		if (!err && i % 2)
			err = wreath_all_reduce(&word, &word, 1, WREATH_INT32,
						WREATH_SUM, child, NULL);
		if (!err)
			err = wreath_comm_destroy(child);
	}
	if (err || !rank_barrier(rank))
		return err ? err : rank_broken(rank, "alone");
	if (ranks_settled_fds(fds) > fds)
		return rank_broken(rank, "%d descriptors became %d", fds,
				   ranks_n_fds());
	if (!RANKS_SLOW && ranks_resident_kb() > kb + 6000)
		return rank_broken(rank, "%ld kB became %ld", kb,
				   ranks_resident_kb());
	return 0;
}

static void children_leave_no_trace(void **state)
{
	struct ranks run = {.n = 3, .body = split_over_and_over};

	(void)state;
	ranks_run(&run);
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(duplicates_work_beside_each_other),
		cmocka_unit_test(children_leave_no_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
