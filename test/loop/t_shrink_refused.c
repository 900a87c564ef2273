/* SPDX-License-Identifier: MIT */
/*
 * Goal: where ranks cannot shrink to one communicator, every one of them hears
 * why, in time, and a call that was wrong in itself does no harm.
 * Method: ranks that do not come, give other lists than the rest, bad ones, or
 * give up; and one that is alone.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "test/loop/ranks.h"

#define BOUND (RANKS_SLOW ? 8.0 : 2.0)

static int forget_to_call(struct rank *rank)
{
	const int *forgetful = rank->arg;
	struct wreath_comm *child;
	int err = rank_sums_members(rank, rank->comm, 15);

	if (err)
		return err;
	if (rank->rank == *forgetful) {
		/* Long enough for the others to give up. */
		ranks_sleep_ms(3500);
		return 0;
	}
	err = wreath_comm_shrink(rank->comm, NULL, 0, &child);
	return err ? err : rank_broken(rank, "shrunk without one who lives");
}

static void who_lives_and_does_not_call_is_named(void **state)
{
	static const int forgetful[] = {0, 2};
	char name[16];
	int i, k;

	(void)state;
	ranks_set("WREATH_TIMEOUT", "1s");
	for (k = 0; k < 2; k++) {
		struct ranks run = {.n = 4,
				    .body = forget_to_call,
				    .arg = &forgetful[k]};

		snprintf(name, sizeof(name), "rank %d ", forgetful[k]);
		ranks_start(&run);
		ranks_join(&run);
		for (i = 0; i < run.n; i++)
			if (i != forgetful[k])
				ranks_expect(&run, i, WREATH_ETIMEOUT, name);
		ranks_end(&run);
	}
}

static void *abort_soon(void *comm)
{
	ranks_sleep_ms(300);
	wreath_comm_abort(comm);
	return NULL;
}

/* Rank 2 does not come; the others do not wait for it for ever. */
static int be_aborted(struct rank *rank)
{
	struct wreath_comm *child = NULL;
	pthread_t thread;
	double start;
	int err = rank_sums_members(rank, rank->comm, 7);

	if (err)
		return err;
	if (rank->rank == 2)
		return rank_barrier(rank) ? 0 : rank_broken(rank, "alone");
	if (pthread_create(&thread, NULL, abort_soon, rank->comm))
		return rank_broken(rank, "no thread");
	start = ranks_now();
	err = wreath_comm_shrink(rank->comm, NULL, 0, &child);
	pthread_join(thread, NULL);
	if (err != WREATH_EABORTED || ranks_now() - start > BOUND)
		return rank_broken(rank, "code %d after %.1f s", err,
				   ranks_now() - start);
	/* And not later, either. */
	err = wreath_comm_shrink(rank->comm, NULL, 0, &child);
	if (err != WREATH_EABORTED || child)
		return rank_broken(rank, "it shrinks after all: %d", err);
	return rank_barrier(rank) ? 0 : rank_broken(rank, "alone");
}

static void abort_ends_a_shrink(void **state)
{
	struct ranks run = {.n = 3, .body = be_aborted};
	int i;

	(void)state;
	ranks_start(&run);
	ranks_join(&run);
	for (i = 0; i < 2; i++)
		ranks_expect(&run, i, 0, "");
	ranks_end(&run);
}

static int give_other_lists(struct rank *rank)
{
	static const int lists[] = {4, 5};
	struct wreath_comm *child;
	int err = rank_sums_members(rank, rank->comm, 63);

	if (err || rank->rank > 3)
		return err;
	err = wreath_comm_shrink(rank->comm, &lists[rank->rank == 2], 1,
				 &child);
	return err ? err : rank_broken(rank, "shrunk by other lists");
}

static void different_lists_are_a_mismatch(void **state)
{
	struct ranks run = {.n = 6, .body = give_other_lists};
	int i;

	(void)state;
	ranks_start(&run);
	ranks_join(&run);
	for (i = 0; i < 4; i++)
		ranks_expect(&run, i, WREATH_EMISMATCH, "rank 2 ");
	ranks_end(&run);
}

static int give_bad_lists(struct rank *rank)
{
	const int beyond = 2, twice[] = {1 - rank->rank, 1 - rank->rank};
	struct wreath_comm *child = NULL;
	int word = 1;
	int err;

	if (wreath_comm_shrink(rank->comm, &beyond, 1, &child) !=
		    WREATH_EINVAL ||
	    wreath_comm_shrink(rank->comm, &rank->rank, 1, &child) !=
		    WREATH_EINVAL ||
	    wreath_comm_shrink(rank->comm, twice, 2, &child) != WREATH_EINVAL ||
	    wreath_comm_shrink(rank->comm, NULL, 1, &child) != WREATH_EINVAL ||
	    wreath_comm_shrink(rank->comm, twice, -1, &child) !=
		    WREATH_EINVAL ||
	    wreath_comm_shrink(NULL, NULL, 0, &child) != WREATH_EINVAL ||
	    wreath_comm_shrink(rank->comm, NULL, 0, NULL) != WREATH_EINVAL)
		return rank_broken(rank, "a bad list was taken");
	/* And did no harm. */
	err = wreath_all_reduce(&word, &word, 1, WREATH_INT32, WREATH_SUM,
				rank->comm, NULL);
	if (!err && (word != 2 || child))
		err = rank_broken(rank, "harm was done");
	return err;
}

static void bad_lists_are_refused(void **state)
{
	struct ranks run = {.n = 2, .body = give_bad_lists};

	(void)state;
	ranks_run(&run);
}

static int shrink_alone(struct rank *rank)
{
	struct wreath_comm *child;
	int err = wreath_comm_shrink(rank->comm, NULL, 0, &child);

	if (!err)
		err = rank_sums_members(rank, child, 1);
	if (!err)
		err = wreath_comm_destroy(child);
	return err;
}

static void one_rank_alone_stays_alone(void **state)
{
	struct ranks run = {.n = 1, .body = shrink_alone};

	(void)state;
	ranks_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(who_lives_and_does_not_call_is_named,
					  ranks_clean),
		cmocka_unit_test(abort_ends_a_shrink),
		cmocka_unit_test(different_lists_are_a_mismatch),
		cmocka_unit_test(bad_lists_are_refused),
		cmocka_unit_test(one_rank_alone_stays_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
