/* SPDX-License-Identifier: MIT */
/*
 * Goal: when a rank dies, stops or goes without a word, every other rank
 * returns from every call within the time promised, with an error that names
 * that rank; a rank that was only slow spoils nothing.
 * Method: ranks are processes, to which signals are sent at seeded moments
 * while they work, wait or rest.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/loop/ranks.h"

#define MOST 300000 /* elements */
/* The death of a rank is known to all within two seconds. */
#define BOUND (RANKS_SLOW ? 8.0 : 2.5)

enum habit {
	WORKS_SMALL,
	WORKS_BIG,
	WORKS_IN_A_STREAM,
	WAITS_FOR_ONE, /* all but the last are in a call */
	RESTS,
};

struct plan {
	enum habit habit;
	int victim;
	uint64_t seed;
};

static int stream_on(struct rank *rank, float *data)
{
	struct wreath_stream *stream;
	int err = wreath_stream_create(&stream);
	int later;

	while (!err) {
		err = wreath_all_reduce(data, data, 100, WREATH_FLOAT32,
					WREATH_MAX, rank->comm, stream);
		if (err == WREATH_EAGAIN)
			err = wreath_stream_wait(stream);
	}
	/* What the stream has to say is what the call said. */
	later = wreath_stream_destroy(stream);
	return err ? err : later;
}

static int rest(struct rank *rank)
{
	int err = 0;

	while (!err) {
		err = wreath_comm_async_error(rank->comm);
		ranks_sleep_ms(2);
	}
	return err;
}

/* Until an error ends it; values[1] is when that was, in ms. */
static int live(struct rank *rank)
{
	const struct plan *plan = rank->arg;
	float *data = calloc(MOST, sizeof(*data));
	bool rests = plan->habit == RESTS ||
		     (plan->habit == WAITS_FOR_ONE &&
		      rank->rank == rank->n_ranks - 1);
	size_t count = plan->habit == WORKS_BIG ? MOST : 3;
	int err = 0;
	int i;

	for (i = 0; i < 5 && !err; i++)
		err = wreath_all_reduce(data, data, count, WREATH_FLOAT32,
					WREATH_MAX, rank->comm, NULL);
	rank_reach(rank);
	if (!err && rests)
		err = rest(rank);
	else if (!err && plan->habit == WORKS_IN_A_STREAM)
		err = stream_on(rank, data);
	while (!err)
		err = wreath_all_reduce(data, data, count, WREATH_FLOAT32,
					WREATH_MAX, rank->comm, NULL);
	rank_result(rank)->values[1] = (uint64_t)(ranks_now() * 1000);
	free(data);
	return err;
}

static void expect_named(struct ranks *run, int victim, double since)
{
	char name[16];
	int i;

	snprintf(name, sizeof(name), "rank %d ", victim);
	for (i = 0; i < run->n; i++) {
		const struct rank_result *result = &run->shared->results[i];
		double took = (double)result->values[1] / 1000 - since;

		if (i == victim)
			continue;
		ranks_expect(run, i, WREATH_EPEER, name);
		if (took > BOUND)
			fail_msg("rank %d took %.2f s", i, took);
	}
}

static void kill_one(const struct plan *plan, int n)
{
	struct ranks run = {.n = n, .body = live, .arg = plan};
	uint64_t state = plan->seed;
	double since;

	ranks_start(&run);
	ranks_await(&run, (unsigned int)n);
	ranks_sleep_ms((unsigned int)ranks_between(&state, 0, 40));
	ranks_signal(&run, plan->victim, SIGKILL);
	since = ranks_now();
	ranks_join(&run);
	assert_true(WIFSIGNALED(run.shared->results[plan->victim]
					.wait_status));
	expect_named(&run, plan->victim, since);
	ranks_end(&run);
}

static void a_killed_rank_is_named_by_all_in_time(void **state)
{
	uint64_t seed = ranks_seed();
	int i;

	(void)state;
	for (i = 0; i < RANKS_TIMES(10, 15, 100); i++) {
		int n = (int)ranks_between(&seed, 2, 6);
		struct plan plan = {
			.habit = (enum habit)(i % (RESTS + 1)),
			.victim = (int)ranks_between(&seed, 0,
						     (uint64_t)n - 1),
			.seed = ranks_random(&seed),
		};

		printf("habit %d, %d ranks, rank %d\n", (int)plan.habit, n,
		       plan.victim);
		kill_one(&plan, n);
	}
}

static void a_killed_rank_is_named_on_every_kind_of_arrival(void **state)
{
	static const char *const settings[][2] = {
		{"WREATH_ARRIVAL", "completion"},
		{"WREATH_SOFT", "ib:1"},
		{"WREATH_ALGO", "ring"},
		{"WREATH_SPIN", "100000"},
	};
	uint64_t seed = ranks_seed();
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		struct plan plan = {.habit = (enum habit)(i % 2),
				    .victim = (int)(i % 3),
				    .seed = ranks_random(&seed)};

		ranks_set(settings[i][0], settings[i][1]);
		kill_one(&plan, 3);
		ranks_clean(NULL);
	}
}

/* Joins, works a little and leaves, over and over. */
static int come_and_go(struct rank *rank)
{
	int word = 1;
	int err = 0;

	while (!err) {
		err = rank_join(rank, &rank->comm);
		if (!err)
			err = wreath_all_reduce(&word, &word, 1, WREATH_INT32,
						WREATH_MAX, rank->comm, NULL);
		if (!err) {
			err = wreath_comm_destroy(rank->comm);
			rank->comm = NULL;
		}
		rank_reach(rank);
	}
	return err;
}

/*
 * A rank may die before anybody has heard of it: then the others say that it
 * is missing.  When rank 0 dies nobody can make or serve an id any more.
 */
static void a_rank_killed_while_it_joins_or_leaves_ends_all(void **state)
{
	uint64_t seed = ranks_seed();
	int i, r;

	(void)state;
	ranks_set("WREATH_JOIN_TIMEOUT", "500ms");
	for (i = 0; i < RANKS_TIMES(2, 2, 40); i++) {
		int n = (int)ranks_between(&seed, 2, 5);
		int victim = (int)ranks_between(&seed, 1, (uint64_t)n - 1);
		struct ranks run = {
			.n = n, .body = come_and_go, .no_comm = true};
		char name[16];

		snprintf(name, sizeof(name), "%d", victim);
		ranks_start(&run);
		ranks_await(&run, (unsigned int)(n * (i % 3)));
		ranks_sleep_ms((unsigned int)ranks_between(&seed, 0, 30));
		ranks_signal(&run, victim, SIGKILL);
		ranks_join(&run);
		for (r = 0; r < n; r++) {
			const struct rank_result *result =
				&run.shared->results[r];

			if (r == victim)
				continue;
			if (result->code != WREATH_EPEER)
				ranks_expect(&run, r, WREATH_ETIMEOUT, name);
			/* Rank 0 gives up, and the root goes with it. */
			if (!strstr(result->text, "root"))
				ranks_expect(&run, r, result->code, name);
			assert_true(result->seconds < 10);
		}
		ranks_end(&run);
	}
}

/* A rank that ends its process without a word to wreath. */
static int walk_out(struct rank *rank)
{
	const struct plan *plan = rank->arg;
	int word = 0;
	int err = wreath_all_reduce(&word, &word, 1, WREATH_INT32, WREATH_SUM,
				    rank->comm, NULL);

	if (err)
		return err;
	rank_result(rank)->values[2] = (uint64_t)(ranks_now() * 1000);
	if (rank->rank == plan->victim)
		_exit(0);
	return live(rank);
}

static void a_rank_that_exits_without_destroy_is_named(void **state)
{
	int victim;

	(void)state;
	for (victim = 0; victim < 3; victim++) {
		struct plan plan = {.habit = victim == 1 ? RESTS : WORKS_SMALL,
				    .victim = victim};
		struct ranks run = {.n = 3, .body = walk_out, .arg = &plan};

		ranks_start(&run);
		ranks_join(&run);
		expect_named(&run, victim,
			     (double)run.shared->results[victim].values[2] /
				     1000);
		ranks_end(&run);
	}
}

/* ---- slow ranks ---- */

/* Sums that go on while one rank stands still for a while. */
static int count_on(struct rank *rank)
{
	const struct plan *plan = rank->arg;
	size_t count = plan->habit == WORKS_BIG ? MOST : 7;
	float *data = calloc(MOST, sizeof(*data));
	double end = ranks_now() + 1.5;
	int go = 1;
	int err = 0;
	int i = 0;

	rank_reach(rank);
	while (!err && go) {
		data[0] = (float)(rank->rank + i % 100);
		data[count - 1] = data[0];
		err = wreath_all_reduce(data, data, count, WREATH_FLOAT32,
					WREATH_SUM, rank->comm, NULL);
		if (!err &&
		    (data[0] != (float)(rank->n_ranks * (i % 100) +
					rank->n_ranks * (rank->n_ranks - 1) /
						2) ||
		     data[0] != data[count - 1]))
			err = rank_broken(rank, "a wrong sum in call %d", i);
		/* Rank 0 says when to end, so that all end alike. */
		go = rank->rank ? 0 : ranks_now() < end;
		if (!err)
			err = wreath_all_reduce(&go, &go, 1, WREATH_INT32,
						WREATH_MAX, rank->comm, NULL);
		i++;
	}
	free(data);
	return err;
}

static void a_short_stop_spoils_nothing(void **state)
{
	uint64_t seed = ranks_seed();
	int i;

	(void)state;
	for (i = 0; i < RANKS_TIMES(2, 2, 8); i++) {
		struct plan plan = {.habit = i % 2 ? WORKS_BIG : WORKS_SMALL,
				    .victim = i % 3};
		struct ranks run = {.n = 3, .body = count_on, .arg = &plan};

		ranks_start(&run);
		ranks_await(&run, 3);
		ranks_sleep_ms((unsigned int)ranks_between(&seed, 50, 300));
		ranks_signal(&run, plan.victim, SIGSTOP);
		ranks_sleep_ms((unsigned int)ranks_between(&seed, 100, 700));
		ranks_signal(&run, plan.victim, SIGCONT);
		ranks_join(&run);
		ranks_expect_ok(&run);
		ranks_end(&run);
	}
}

/*
 * The others give up first; the stopped one, once it goes on, finds itself
 * alone and must end as well.
 */
static void a_long_stop_is_a_timeout_that_names_the_rank(void **state)
{
	int i;

	(void)state;
	ranks_set("WREATH_TIMEOUT", "1s");
	for (i = 0; i < RANKS_TIMES(2, 2, 6); i++) {
		struct plan plan = {.habit = i % 2 ? WORKS_BIG : WORKS_SMALL,
				    .victim = i % 3};
		struct ranks run = {.n = 3, .body = live, .arg = &plan};
		char name[16];
		int r;

		snprintf(name, sizeof(name), "rank %d ", plan.victim);
		ranks_start(&run);
		ranks_await(&run, 3);
		ranks_signal(&run, plan.victim, SIGSTOP);
		for (r = 0; r < 3; r++) {
			double end = ranks_now() + BOUND + 3;

			while (r != plan.victim && ranks_now() < end &&
			       !atomic_load(&run.shared->results[r].has_ended))
				ranks_sleep_ms(10);
		}
		ranks_signal(&run, plan.victim, SIGCONT);
		ranks_join(&run);
		for (r = 0; r < 3; r++) {
			const struct rank_result *result =
				&run.shared->results[r];

			printf("rank %d: %s\n", r, result->text);
			if (r == plan.victim)
				assert_true(result->has_ended &&
					    result->code < 0);
			else if (result->code == WREATH_EPEER)
				ranks_expect(&run, r, WREATH_EPEER, name);
			else
				ranks_expect(&run, r, WREATH_ETIMEOUT, name);
		}
		ranks_end(&run);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_rank_is_named_by_all_in_time),
		cmocka_unit_test_teardown(
			a_killed_rank_is_named_on_every_kind_of_arrival,
			ranks_clean),
		cmocka_unit_test_teardown(
			a_rank_killed_while_it_joins_or_leaves_ends_all,
			ranks_clean),
		cmocka_unit_test(a_rank_that_exits_without_destroy_is_named),
		cmocka_unit_test(a_short_stop_spoils_nothing),
		cmocka_unit_test_teardown(
			a_long_stop_is_a_timeout_that_names_the_rank,
			ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
