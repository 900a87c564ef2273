/* SPDX-License-Identifier: MIT */
/*
 * Goal: ranks that do not make the same call learn it, all of them, by a
 * sentence with both calls in it; nobody hangs, nobody gets a wrong result.
 * Method: one rank differs in count, type, operation or number of calls, at
 * the first call and after many good ones, also where the difference makes the
 * ranks choose different algorithms.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/loop/ranks.h"

#define MANY (1 << 20)
#define BOUND (RANKS_SLOW ? 10.0 : 3.0)

struct call {
	size_t count;
	enum wreath_type type;
	enum wreath_op op;
};

struct quarrel {
	const char *what;
	struct call most, one;
	/*
	 * Of both, in every rank's text.  Who has nothing to do goes on to the
	 * next call, which then is the one that all may hear of.
	 */
	const char *words[2];
};

static const struct quarrel quarrels[] = {
	{"one element more", {1, WREATH_FLOAT32, WREATH_SUM},
	 {2, WREATH_FLOAT32, WREATH_SUM}, {"count 1,", "count 2,"}},
	{"a few elements less", {1000, WREATH_FLOAT32, WREATH_SUM},
	 {998, WREATH_FLOAT32, WREATH_SUM}, {"count 1000,", "count 998,"}},
	{"other bytes, as many elements", {100, WREATH_FLOAT32, WREATH_SUM},
	 {100, WREATH_FLOAT64, WREATH_SUM}, {"float32", "float64"}},
	{"another type of one size", {5000, WREATH_FLOAT32, WREATH_SUM},
	 {5000, WREATH_INT32, WREATH_SUM}, {"float32", "int32"}},
	{"another operation", {3, WREATH_FLOAT32, WREATH_SUM},
	 {3, WREATH_FLOAT32, WREATH_AVG}, {"sum", "avg"}},
	{"another operation on much", {MANY / 2, WREATH_INT8, WREATH_MIN},
	 {MANY / 2, WREATH_INT8, WREATH_MAX}, {"min", "max"}},
	{"little and much", {2, WREATH_FLOAT32, WREATH_SUM},
	 {MANY, WREATH_FLOAT32, WREATH_SUM}, {"count 2,", "count 1048576,"}},
	{"much and little", {MANY, WREATH_FLOAT32, WREATH_SUM},
	 {2, WREATH_FLOAT32, WREATH_SUM}, {"count 1048576,", "count 2,"}},
	{"much and less", {MANY, WREATH_FLOAT32, WREATH_SUM},
	 {MANY - 1, WREATH_FLOAT32, WREATH_SUM},
	 {"count 1048576,", "count 1048575,"}},
	{"something and nothing", {10, WREATH_FLOAT32, WREATH_SUM},
	 {0, WREATH_FLOAT32, WREATH_SUM}, {"operation", "rank"}},
	{"nothing and something", {0, WREATH_FLOAT32, WREATH_SUM},
	 {10, WREATH_FLOAT32, WREATH_SUM}, {"operation", "rank"}},
};
#define N_QUARRELS (sizeof(quarrels) / sizeof(quarrels[0]))

struct plan {
	const struct quarrel *quarrel;
	int n_good; /* calls before */
	int odd;    /* the rank that differs */
};

static int good_calls(struct rank *rank, int n, char *data)
{
	int err = 0;
	int i;

	for (i = 0; i < n && !err; i++)
		err = wreath_all_reduce(data, data, (size_t)i % 7 * 100,
					WREATH_INT32, WREATH_SUM, rank->comm,
					NULL);
	return err;
}

static int expect_the_same_again(struct rank *rank)
{
	char text[1024];
	int word = 0;
	int err;

	snprintf(text, sizeof(text), "%s", wreath_error_text());
	err = wreath_all_reduce(&word, &word, 1, WREATH_INT32, WREATH_SUM,
				rank->comm, NULL);
	if (err != WREATH_EMISMATCH || strcmp(text, wreath_error_text()))
		return rank_broken(rank, "the next call: %s: %s",
				   wreath_error_name(err), wreath_error_text());
	err = wreath_comm_async_error(rank->comm);
	if (err != WREATH_EMISMATCH || strcmp(text, wreath_error_text()))
		return rank_broken(rank, "the query: %s: %s",
				   wreath_error_name(err), wreath_error_text());
	return 0;
}

/*
 * Whoever is through, since it had nothing to do, learns it by the next call.
 */
static int quarrel(struct rank *rank)
{
	const struct plan *plan = rank->arg;
	const struct call *call = rank->rank == plan->odd
					  ? &plan->quarrel->one
					  : &plan->quarrel->most;
	char *data = calloc(MANY, 8);
	double start;
	int err = good_calls(rank, plan->n_good, data);
	int i;

	start = ranks_now();
	if (!err)
		err = wreath_all_reduce(data, data, call->count, call->type,
					call->op, rank->comm, NULL);
	if (!err && !call->count)
		err = good_calls(rank, 1 + 2, data);
	free(data);
	if (ranks_now() - start > BOUND)
		return rank_broken(rank, "it took %.1f s: %s",
				   ranks_now() - start, wreath_error_text());
	if (err != WREATH_EMISMATCH)
		return rank_broken(rank, "%s: %s", wreath_error_name(err),
				   wreath_error_text());
	for (i = 0; i < 2; i++)
		if (!strstr(wreath_error_text(), plan->quarrel->words[i]))
			return rank_broken(rank, "'%s' is not in: %s",
					   plan->quarrel->words[i],
					   wreath_error_text());
	if (!strstr(wreath_error_text(), "rank "))
		return rank_broken(rank, "no rank in: %s",
				   wreath_error_text());
	err = expect_the_same_again(rank);
	wreath_comm_destroy(rank->comm);
	rank->comm = NULL;
	return err;
}

static void run_quarrels(int n_good)
{
	size_t i;

	for (i = 0; i < N_QUARRELS; i++) {
		int n = 2 + (int)(i % 3);
		struct plan plan = {.quarrel = &quarrels[i],
				    .n_good = n_good,
				    .odd = n - 1 - (int)(i % 2)};
		struct ranks run = {.n = n, .body = quarrel, .arg = &plan};

		printf("%s, with %d ranks after %d calls\n", quarrels[i].what,
		       n, n_good);
		run.mode = i % 2 ? RANKS_THREADS : RANKS_PROCESSES;
		ranks_run(&run);
	}
}

static void ranks_that_differ_at_first_all_learn_it(void **state)
{
	(void)state;
	run_quarrels(0);
}

static void ranks_that_differ_after_many_calls_all_learn_it(void **state)
{
	(void)state;
	run_quarrels(100);
}

static void no_algorithm_misses_a_difference(void **state)
{
	static const char *const settings[][2] = {
		{"WREATH_ARRIVAL", "completion"},
		{"WREATH_ALGO", "ring"},
		{"WREATH_ALGO", "oneshot"},
		{"WREATH_ALGO", "twoshot"},
		{"WREATH_CHANNELS", "3"},
		{"WREATH_SOFT_FAULTS", "chaos=7"},
	};
	int n = RANKS_TIMES(0, 1, 6);
	int i;

	(void)state;
	for (i = 0; i < n; i++) {
		ranks_set(settings[i][0], settings[i][1]);
		run_quarrels(i);
		ranks_clean(NULL);
	}
}

/* The others make a call that the last rank does not make: it leaves. */
static int leave_early(struct rank *rank)
{
	int word = 1;
	int err = wreath_all_reduce(&word, &word, 1, WREATH_INT32, WREATH_SUM,
				    rank->comm, NULL);

	if (err || rank->rank == rank->n_ranks - 1)
		return err;
	return wreath_all_reduce(&word, &word, 1, WREATH_INT32, WREATH_SUM,
				 rank->comm, NULL);
}

static void a_rank_that_leaves_early_is_named(void **state)
{
	int n;

	(void)state;
	for (n = 2; n <= 4; n++) {
		struct ranks run = {.n = n, .body = leave_early};
		char name[16];
		int i;

		run.mode = n % 2 ? RANKS_THREADS : RANKS_PROCESSES;
		snprintf(name, sizeof(name), "rank %d", n - 1);
		ranks_start(&run);
		ranks_join(&run);
		for (i = 0; i < n - 1; i++) {
			printf("%s\n", run.shared->results[i].text);
			ranks_expect(&run, i, WREATH_EMISMATCH, name);
			ranks_expect(&run, i, WREATH_EMISMATCH, "the end");
			assert_true(run.shared->results[i].seconds < 4);
		}
		ranks_end(&run);
	}
}

/* Two communicators, called in another order by one rank: nobody can go on. */
static int cross(struct rank *rank)
{
	struct wreath_comm *comms[2] = {NULL, NULL};
	int first = rank->rank == 1;
	int word = 1;
	int err = rank_join(rank, &comms[0]);

	if (!err)
		err = rank_join(rank, &comms[1]);
	if (!err)
		err = wreath_all_reduce(&word, &word, 1, WREATH_INT32,
					WREATH_SUM, comms[first], NULL);
	if (err != WREATH_ETIMEOUT)
		err = rank_broken(rank, "%s: %s", wreath_error_name(err),
				  wreath_error_text());
	else if (!strstr(wreath_error_text(), "rank "))
		err = rank_broken(rank, "no rank in: %s",
				  wreath_error_text());
	else
		err = 0;
	/* All keep both until all have failed. */
	rank_barrier(rank);
	wreath_comm_destroy(comms[0]);
	wreath_comm_destroy(comms[1]);
	return err;
}

static void another_order_on_two_communicators_ends_in_time(void **state)
{
	struct ranks run = {.n = 2, .body = cross, .no_comm = true};

	(void)state;
	ranks_set("WREATH_TIMEOUT", "1s");
	ranks_start(&run);
	ranks_join(&run);
	ranks_expect_ok(&run);
	assert_true(run.shared->results[0].seconds < 6);
	ranks_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_that_differ_at_first_all_learn_it),
		cmocka_unit_test(
			ranks_that_differ_after_many_calls_all_learn_it),
		cmocka_unit_test_teardown(no_algorithm_misses_a_difference,
					  ranks_clean),
		cmocka_unit_test(a_rank_that_leaves_early_is_named),
		cmocka_unit_test_teardown(
			another_order_on_two_communicators_ends_in_time,
			ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
