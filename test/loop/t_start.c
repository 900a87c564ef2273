/* SPDX-License-Identifier: MIT */
/*
 * Goal: a communicator that joins in the background is no trouble: calls say
 * that it is not ready, it gets ready or fails for a reason, and can be given
 * up at any moment.
 * Method: ranks come late, never, or give up at seeded moments.
 */
#include <stdio.h>
#include <string.h>

#include "test/loop/ranks.h"

/* abort and destroy end the joining within a second. */
#define BOUND (RANKS_SLOW ? 4.0 : 1.0)

static int start(struct rank *rank, int n_ranks, struct wreath_comm **comm)
{
	const struct wreath_unique_id *id = rank_id(rank);

	if (!id)
		return rank_broken(rank, "there is no id");
	return wreath_comm_init_start(id, rank->rank, n_ranks, comm);
}

static int await_joined(struct wreath_comm *comm)
{
	int err;

	while ((err = wreath_comm_async_error(comm)) == WREATH_EAGAIN)
		ranks_sleep_ms(1);
	return err;
}

static int is_not_ready(struct rank *rank, int code, const char *what)
{
	if (code == WREATH_EAGAIN && strstr(wreath_error_text(), "joining"))
		return 0;
	return rank_broken(rank, "%s returned %d: %s", what, code,
			   wreath_error_text());
}

static int refuse_early_calls(struct rank *rank)
{
	struct wreath_comm *comm = rank->comm;
	struct wreath_comm *child = NULL;
	int word = 0;
	int err = is_not_ready(rank, wreath_comm_async_error(comm), "the query");

	if (!err)
		err = is_not_ready(rank,
				   wreath_all_reduce(&word, &word, 1,
						     WREATH_INT32, WREATH_SUM,
						     comm, NULL), "all_reduce");
	if (!err)
		err = is_not_ready(rank, wreath_comm_split(comm, 0, 0, &child),
				   "split");
	if (!err)
		err = is_not_ready(rank, wreath_comm_finalize(comm),
				   "finalize");
	if (!err && (wreath_comm_rank(comm) != rank->rank ||
		     wreath_comm_size(comm) != rank->n_ranks ||
		     !wreath_comm_device(comm)))
		err = rank_broken(rank, "the queries do not work");
	return err;
}

static int come_late(struct rank *rank)
{
	int word = 1;
	int err;

	if (rank->rank == rank->n_ranks - 1) {
		/* The others were told that they must wait. */
		if (!rank_await(rank, 1))
			return rank_broken(rank, "nobody lets me go on");
		err = rank_join(rank, &rank->comm);
	} else {
		err = start(rank, rank->n_ranks, &rank->comm);
		if (!err)
			err = refuse_early_calls(rank);
		rank_reach(rank);
		if (!err)
			err = await_joined(rank->comm);
	}
	if (!err)
		err = wreath_all_reduce(&word, &word, 1, WREATH_INT32,
					WREATH_SUM, rank->comm, NULL);
	if (!err && word != rank->n_ranks)
		err = rank_broken(rank, "the sum is %d", word);
	return err;
}

static void a_communicator_gets_ready_in_the_background(void **state)
{
	struct ranks run = {.n = 4, .body = come_late, .no_comm = true};
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		run.mode = i ? RANKS_THREADS : RANKS_PROCESSES;
		ranks_start(&run);
		ranks_await(&run, 3);
		ranks_allow(&run, 1);
		ranks_join(&run);
		ranks_expect_ok(&run);
		ranks_end(&run);
	}
}

static int wait_in_vain(struct rank *rank)
{
	int err = start(rank, rank->n_ranks + 1, &rank->comm);

	return err ? err : await_joined(rank->comm);
}

static void a_peer_that_never_comes_is_named(void **state)
{
	struct ranks run = {.n = 3, .body = wait_in_vain, .no_comm = true};
	int i;

	(void)state;
	ranks_set("WREATH_JOIN_TIMEOUT", "2s");
	ranks_start(&run);
	ranks_join(&run);
	for (i = 0; i < run.n; i++)
		ranks_expect(&run, i, WREATH_ETIMEOUT, "missing: 3");
	ranks_end(&run);
}

/* ---- giving up ---- */

struct plan {
	uint64_t seed;
	bool destroys;
	bool all_come;
};

/* Rank 0 gives up at some moment; sooner or later all know. */
static int give_up(struct rank *rank)
{
	const struct plan *plan = rank->arg;
	uint64_t seed = plan->seed;
	double began;
	int err = start(rank, rank->n_ranks + !plan->all_come, &rank->comm);

	if (err)
		return err;
	if (rank->rank) {
		err = await_joined(rank->comm);
		/* It was ready before it was given up. */
		while (!err) {
			err = wreath_comm_async_error(rank->comm);
			ranks_sleep_ms(1);
		}
		return err;
	}
	ranks_sleep_ms((unsigned int)ranks_between(&seed, 0,
						   plan->all_come ? 12 : 40));
	began = ranks_now();
	err = wreath_comm_abort(rank->comm);
	if (!err && !plan->destroys)
		err = await_joined(rank->comm);
	if (plan->destroys) {
		err = wreath_comm_destroy(rank->comm);
		rank->comm = NULL;
		err = err ? err : WREATH_EABORTED;
	}
	if (ranks_now() - began > BOUND)
		return rank_broken(rank, "giving up took %.1f s",
				   ranks_now() - began);
	return err;
}

static void joining_can_be_given_up_at_any_moment(void **state)
{
	struct plan plan = {.seed = ranks_seed()};
	int i, r;

	(void)state;
	for (i = 0; i < RANKS_TIMES(8, 16, 100); i++) {
		struct ranks run = {.n = 3,
				    .body = give_up,
				    .arg = &plan,
				    .no_comm = true};

		plan.seed++;
		plan.destroys = i % 2;
		plan.all_come = i % 4 < 2;
		run.mode = i % 3 ? RANKS_PROCESSES : RANKS_THREADS;
		ranks_start(&run);
		ranks_join(&run);
		ranks_expect(&run, 0, WREATH_EABORTED, "");
		for (r = 1; r < run.n; r++)
			if (run.shared->results[r].code != WREATH_EPEER)
				ranks_expect(&run, r, WREATH_EABORTED, "");
		ranks_end(&run);
	}
}

/* Destroying at once leaves nothing behind but the root, for its time. */
static int start_and_destroy(struct rank *rank)
{
	double began = ranks_now();
	int err = start(rank, 5, &rank->comm);

	if (!err)
		err = wreath_comm_destroy(rank->comm);
	rank->comm = NULL;
	if (!err && ranks_now() - began > BOUND)
		err = rank_broken(rank, "that took %.1f s",
				  ranks_now() - began);
	return err;
}

static void one_that_joins_can_be_destroyed(void **state)
{
	struct ranks run = {.n = 2, .body = start_and_destroy, .no_comm = true};

	(void)state;
	ranks_set("WREATH_JOIN_TIMEOUT", "30s");
	ranks_run(&run);
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

static int start_alone(struct rank *rank)
{
	struct wreath_unique_id id = {{0}};
	struct wreath_comm *comm = NULL;
	int err = wreath_comm_init_start(&id, 0, 1, &rank->comm);

	if (!err)
		err = wreath_comm_async_error(rank->comm);
	if (err)
		return err;
	if (wreath_comm_init_start(NULL, 0, 1, &comm) != WREATH_EINVAL ||
	    wreath_comm_init_start(&id, 0, 1, NULL) != WREATH_EINVAL ||
	    wreath_comm_init_start(&id, 2, 2, &comm) != WREATH_EINVAL || comm)
		return rank_broken(rank, "bad arguments were taken");
	/* What is no id fails in the background. */
	err = wreath_comm_init_start(&id, 0, 2, &comm);
	if (err)
		return err;
	if (await_joined(comm) != WREATH_EINVAL)
		err = rank_broken(rank, "an id of zeros was taken");
	wreath_comm_destroy(comm);
	return err;
}

static void bad_arguments_are_refused_at_once(void **state)
{
	struct ranks run = {.n = 1, .body = start_alone, .no_comm = true};

	(void)state;
	ranks_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_communicator_gets_ready_in_the_background),
		cmocka_unit_test_teardown(a_peer_that_never_comes_is_named,
					  ranks_clean),
		cmocka_unit_test(joining_can_be_given_up_at_any_moment),
		cmocka_unit_test_teardown(one_that_joins_can_be_destroyed,
					  ranks_clean),
		cmocka_unit_test(bad_arguments_are_refused_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
