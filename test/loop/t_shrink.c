/* SPDX-License-Identifier: MIT */
/*
 * Goal: whichever ranks die, the others go on without them: all agree on who
 * is left, soon, and their sums are right.
 * Method: ranks are killed at seeded moments, one or several of every place in
 * the tree, while they work or rest; the survivors shrink until they are as
 * many as must be left.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "test/loop/ranks.h"

/* From knowing of a death to having a communicator without the dead. */
#define BOUND_MS (RANKS_SLOW ? 8000 : 2000)

struct plan {
	uint64_t seed;
	uint64_t victims; /* a bit a rank */
	int n_left;
	size_t count;
	bool rests; /* nobody is in a call when it happens */
};

static int ranks_left(uint64_t victims, int n)
{
	return n - __builtin_popcountll(victims &
					((UINT64_C(1) << n) - 1));
}

/* Until something is wrong with @comm. */
static void live(struct rank *rank, struct wreath_comm *comm)
{
	const struct plan *plan = rank->arg;
	float *data = calloc(plan->count, sizeof(*data));
	int err = 0;

	while (!err && !plan->rests)
		err = wreath_all_reduce(data, data, plan->count,
					WREATH_FLOAT32, WREATH_MAX, comm, NULL);
	while (!err) {
		err = wreath_comm_async_error(comm);
		ranks_sleep_ms(1);
	}
	free(data);
}

static int shrink(struct rank *rank, struct wreath_comm **comm)
{
	double start = ranks_now();
	struct wreath_comm *next = NULL;
	int err = wreath_comm_shrink(*comm, NULL, 0, &next);
	double ms = (ranks_now() - start) * 1000;

	if (err)
		return err;
	if (ms > BOUND_MS)
		return rank_broken(rank, "shrinking took %.0f ms", ms);
	rank_result(rank)->values[0]++;
	wreath_comm_destroy(*comm);
	*comm = next;
	return 0;
}

static int outlive(struct rank *rank)
{
	const struct plan *plan = rank->arg;
	uint64_t all = (UINT64_C(1) << rank->n_ranks) - 1;
	int err = 0;
	int i;

	for (i = 0; i < 3 && !err; i++)
		err = rank_sums_members(rank, rank->comm, all);
	rank_reach(rank);
	while (!err && wreath_comm_size(rank->comm) > plan->n_left) {
		live(rank, rank->comm);
		err = shrink(rank, &rank->comm);
	}
	for (i = 0; i < 5 && !err; i++)
		err = rank_sums_members(rank, rank->comm, all & ~plan->victims);
	return err;
}

static void kill_and_go_on(struct plan *plan, int n)
{
	struct ranks run = {.n = n, .body = outlive, .arg = plan};
	uint64_t state = plan->seed;
	int i;

	plan->n_left = ranks_left(plan->victims, n);
	printf("%d ranks, victims %llx, %zu words\n", n,
	       (unsigned long long)plan->victims, plan->count);
	ranks_start(&run);
	ranks_await(&run, (unsigned int)n);
	ranks_sleep_ms((unsigned int)ranks_between(&state, 0, 20));
	for (i = 0; i < n; i++) {
		if (!(plan->victims >> i & 1))
			continue;
		ranks_signal(&run, i, SIGKILL);
		/* At once, or one while the others mend the first. */
		if (ranks_random(&state) % 2)
			ranks_sleep_ms((unsigned int)ranks_between(&state, 0,
								   25));
	}
	ranks_join(&run);
	for (i = 0; i < n; i++)
		if (!(plan->victims >> i & 1))
			ranks_expect(&run, i, 0, "");
	ranks_end(&run);
}

/* The tree of 8 has rank 0, children 1, 3, 5, 7, of which 1, 3, 5 have one. */
static void survivors_go_on_without_any_one_rank(void **state)
{
	struct plan plan = {.seed = ranks_seed()};
	int victim;

	(void)state;
	for (victim = 0; victim < 8; victim += ranks_have_device() ? 3 : 1) {
		plan.seed++;
		plan.victims = UINT64_C(1) << victim;
		plan.count = victim % 2 ? 3 : 300000;
		plan.rests = victim % 3 == 2;
		kill_and_go_on(&plan, victim < 5 ? 8 : victim + 1);
	}
	for (victim = 0; victim < 2; victim++) {
		plan.victims = UINT64_C(1) << victim;
		kill_and_go_on(&plan, 2);
	}
}

static void survivors_go_on_without_any_ranks(void **state)
{
	struct plan plan = {.seed = ranks_seed()};
	int i;

	(void)state;
	for (i = 0; i < RANKS_TIMES(4, 10, 100); i++) {
		int n = (int)ranks_between(&plan.seed, 3, 8);

		/* At least one lives. */
		plan.victims = ranks_random(&plan.seed) &
			       ranks_random(&plan.seed);
		plan.victims |= UINT64_C(1) << ranks_random(&plan.seed) % 2;
		plan.victims &= (UINT64_C(1) << (n - 1)) - 1;
		plan.count = i % 2 ? 3 : 100000;
		plan.rests = i % 3 == 2;
		kill_and_go_on(&plan, n);
	}
}

/* ---- without those who live ---- */

static int leave_out(struct rank *rank)
{
	static const int list[] = {3, 0};
	uint64_t members = ((UINT64_C(1) << rank->n_ranks) - 1) & ~9ull;
	struct wreath_comm *child;
	int word = 1;
	int err = wreath_all_reduce(&word, &word, 1, WREATH_INT32, WREATH_SUM,
				    rank->comm, NULL);

	if (err)
		return err;
	if (rank->rank == 0 || rank->rank == 3) {
		/* Waits for the others, in vain but not for long. */
		err = wreath_all_reduce(&word, &word, 1, WREATH_INT32,
					WREATH_SUM, rank->comm, NULL);
		if (err != WREATH_EABORTED)
			err = rank_broken(rank, "left out: code %d", err);
		return err == WREATH_EABORTED ? 0 : err;
	}
	err = wreath_comm_shrink(rank->comm, list, 2, &child);
	if (err)
		return err;
	if (wreath_comm_async_error(rank->comm) != WREATH_EABORTED)
		err = rank_broken(rank, "the old one still works");
	if (!err)
		err = rank_sums_members(rank, child, members);
	wreath_comm_destroy(child);
	return err;
}

static void ranks_that_live_can_be_left_out(void **state)
{
	struct ranks run = {.n = 6, .body = leave_out};

	(void)state;
	ranks_run(&run);
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

static int destroy_or_shrink(struct rank *rank)
{
	uint64_t members = (UINT64_C(1) << rank->n_ranks) - 1;
	int err = rank_sums_members(rank, rank->comm, members);

	if (err)
		return err;
	/* An abort may reach those that are still in the sum. */
	if (!rank_barrier(rank))
		return rank_broken(rank, "some did not come");
	if (rank->rank == 1) {
		/* Aborted, it need not wait for anybody. */
		wreath_comm_abort(rank->comm);
		wreath_comm_destroy(rank->comm);
		rank->comm = NULL;
		return 0;
	}
	err = shrink(rank, &rank->comm);
	return err ? err : rank_sums_members(rank, rank->comm, members & ~2ull);
}

static void who_has_destroyed_it_is_gone(void **state)
{
	struct ranks run = {.n = 4, .body = destroy_or_shrink};

	(void)state;
	ranks_run(&run);
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survivors_go_on_without_any_one_rank),
		cmocka_unit_test(survivors_go_on_without_any_ranks),
		cmocka_unit_test(ranks_that_live_can_be_left_out),
		cmocka_unit_test(who_has_destroyed_it_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
