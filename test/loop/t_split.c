/* SPDX-License-Identifier: MIT */
/*
 * Goal: a split makes exactly the communicators that colors and keys ask for,
 * which work beside their parent, or fails on all ranks with a reason.
 * Method: every rank knows the colors and keys of all from a seed, computes
 * what it must become, and sums something that only the right group sums so.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/loop/ranks.h"

#define DEPTH 3 /* of splits of splits */
#define FEW 100 /* descriptors */

struct plan {
	uint64_t seed;
	int n_rounds;
};

/* What the members of a communicator are in the first one. */
struct members {
	int n;
	int of[RANKS_MAX];
};

static int sum_is_right(struct rank *rank, struct wreath_comm *comm,
			const struct members *members)
{
	int64_t words[17];
	int64_t want = 0;
	int err, i;

	for (i = 0; i < members->n; i++)
		want += INT64_C(1) << members->of[i];
	for (i = 0; i < 17; i++)
		words[i] = (INT64_C(1) << rank->rank) * (i + 1);
	err = wreath_all_reduce(words, words, 17, WREATH_INT64, WREATH_SUM,
				comm, NULL);
	for (i = 0; i < 17 && !err; i++)
		if (words[i] != want * (i + 1))
			err = rank_broken(rank, "word %d is %lld, not %lld", i,
					  (long long)words[i],
					  (long long)want * (i + 1));
	return err;
}

static bool comes_before(const int *keys, int a, int b)
{
	return keys[a] < keys[b] || (keys[a] == keys[b] && a < b);
}

/* The group of member @me, in its order; none where its color is none. */
static void expect(const struct members *from, const int *colors,
		   const int *keys, int me, struct members *group)
{
	int order[RANKS_MAX];
	int i, j;

	group->n = 0;
	for (i = 0; i < from->n; i++)
		if (colors[me] >= 0 && colors[i] == colors[me])
			order[group->n++] = i;
	for (i = 0; i < group->n; i++)
		for (j = i + 1; j < group->n; j++)
			if (comes_before(keys, order[j], order[i])) {
				int other = order[i];

				order[i] = order[j];
				order[j] = other;
			}
	for (i = 0; i < group->n; i++)
		group->of[i] = from->of[order[i]];
}

static int check_child(struct rank *rank, struct wreath_comm *child,
		       const struct members *group)
{
	int mine;

	if (!group->n)
		return child ? rank_broken(rank, "a child of no color") : 0;
	if (!child || wreath_comm_size(child) != group->n)
		return rank_broken(rank, "the child has %d ranks, not %d",
				   wreath_comm_size(child), group->n);
	mine = wreath_comm_rank(child);
	if (group->of[mine] != rank->rank)
		return rank_broken(rank, "child's rank %d should be %d", mine,
				   group->of[mine]);
	return sum_is_right(rank, child, group);
}

static int split_on(struct rank *rank, struct wreath_comm *comm,
		    const struct members *members, uint64_t seed, int depth)
{
	struct wreath_comm *child = (struct wreath_comm *)rank;
	struct members group;
	int colors[RANKS_MAX], keys[RANKS_MAX];
	int me = wreath_comm_rank(comm);
	int most = (int)ranks_between(&seed, 0, (uint64_t)members->n - 1);
	int err, later, i;

	for (i = 0; i < members->n; i++) {
		colors[i] = (int)ranks_between(&seed, 0,
					       (uint64_t)most + 1) - 1;
		keys[i] = (int)ranks_between(&seed, 0, 4) - 2;
	}
	expect(members, colors, keys, me, &group);
	err = wreath_comm_split(comm, colors[me], keys[me], &child);
	if (err)
		return err;
	err = check_child(rank, child, &group);
	if (!err && depth > 1 && child)
		err = split_on(rank, child, &group, seed, depth - 1);
	if (!err)
		err = sum_is_right(rank, comm, members);
	if (!err && child)
		err = sum_is_right(rank, child, &group);
	later = wreath_comm_destroy(child);
	return err ? err : later;
}

static int split_at_random(struct rank *rank)
{
	const struct plan *plan = rank->arg;
	struct members all = {.n = rank->n_ranks};
	int err = 0;
	int i;

	for (i = 0; i < all.n; i++)
		all.of[i] = i;
	for (i = 0; i < plan->n_rounds && !err; i++)
		err = split_on(rank, rank->comm, &all,
			       plan->seed + (uint64_t)i, DEPTH);
	return err;
}

static void a_split_is_what_colors_and_keys_ask_for(void **state)
{
	struct plan plan = {.seed = ranks_seed(),
			    .n_rounds = RANKS_TIMES(2, 3, 12)};
	int n;

	(void)state;
	for (n = 1; n <= 8; n++) {
		struct ranks run = {.n = n,
				    .body = split_at_random,
				    .arg = &plan};

		run.mode = n % 2 ? RANKS_THREADS : RANKS_PROCESSES;
		ranks_run(&run);
		plan.seed += 1000;
	}
}

/* ---- odd moments ---- */

static int split_or_sum(struct rank *rank)
{
	const int *warm = rank->arg;
	struct wreath_comm *child = NULL;
	int word = 1;
	int err = 0;

	if (*warm)
		err = wreath_all_reduce(&word, &word, 1, WREATH_INT32,
					WREATH_SUM, rank->comm, NULL);
	if (err)
		return err;
	if (rank->rank == 1)
		return wreath_comm_split(rank->comm, 0, 0, &child);
	return wreath_all_reduce(&word, &word, 1, WREATH_INT32, WREATH_SUM,
				 rank->comm, NULL);
}

static void a_split_that_meets_a_sum_is_a_mismatch(void **state)
{
	int warm;
	int i;

	(void)state;
	for (warm = 0; warm < 2; warm++) {
		struct ranks run = {
			.n = 3, .body = split_or_sum, .arg = &warm};

		ranks_start(&run);
		ranks_join(&run);
		for (i = 0; i < run.n; i++)
			ranks_expect(&run, i, WREATH_EMISMATCH, "a split");
		ranks_end(&run);
	}
}

static int expect_einval(struct rank *rank, int err, const char *word)
{
	if (err == WREATH_EINVAL && strstr(wreath_error_text(), word))
		return 0;
	return rank_broken(rank, "code %d, '%s' instead of '%s'", err,
			   wreath_error_text(), word);
}

static int split_badly(struct rank *rank)
{
	struct wreath_comm *out = NULL;
	int err = expect_einval(
		rank, wreath_comm_split(rank->comm, -2, 0, &out), "color -2");

	if (!err)
		err = expect_einval(rank,
				    wreath_comm_split(rank->comm, 0, 0, NULL),
				    "out is NULL");
	if (!err)
		err = expect_einval(rank, wreath_comm_split(NULL, 0, 0, &out),
				    "NULL");
	if (!err)
		err = expect_einval(rank,
				    wreath_comm_duplicate(rank->comm, NULL),
				    "out is NULL");
	if (!err)
		err = wreath_comm_finalize(rank->comm);
	if (!err)
		err = expect_einval(rank,
				    wreath_comm_duplicate(rank->comm, &out),
				    "finalized");
	if (!err && out)
		err = rank_broken(rank, "out was written");
	return err;
}

static void bad_arguments_are_refused(void **state)
{
	struct ranks run = {.n = 2, .body = split_badly};

	(void)state;
	ranks_run(&run);
}

/* Ranks whose settings differ by then would refuse each other. */
static int split_in_another_environment(struct rank *rank)
{
	struct wreath_comm *child;
	int err;

	setenv("WREATH_ALGO", rank->rank % 4 < 2 ? "ring" : "twoshot", 1);
	err = wreath_comm_split(rank->comm, rank->rank % 2, 0, &child);
	if (!err)
		err = wreath_comm_destroy(child);
	return err;
}

static void settings_are_those_of_the_parent(void **state)
{
	struct ranks run = {.n = 4, .body = split_in_another_environment};

	(void)state;
	ranks_run(&run);
}

/* A rank without a descriptor fails its group, and no more than that. */
static int split_without_descriptors(struct rank *rank)
{
	struct members all = {.n = rank->n_ranks};
	struct wreath_comm *child = NULL;
	struct rlimit limit, none;
	int fds[FEW];
	int err, i;

	for (i = 0; i < all.n; i++)
		all.of[i] = i;
	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	/* So many at least: poll() refuses to look at more than the limit. */
	none.rlim_cur = FEW;
	for (i = 0; i < FEW && rank->rank == 2; i++)
		fds[i] = dup(0);
	if (rank->rank == 2)
		setrlimit(RLIMIT_NOFILE, &none);
	err = wreath_comm_split(rank->comm, rank->rank / 2, 0, &child);
	setrlimit(RLIMIT_NOFILE, &limit);
	for (i = 0; i < FEW && rank->rank == 2; i++)
		close(fds[i]);
	if (rank->rank / 2 == 1 && !err)
		return rank_broken(rank, "joined without a descriptor");
	if (rank->rank / 2 != 1 && err)
		return err;
	wreath_comm_destroy(child);
	return sum_is_right(rank, rank->comm, &all);
}

static void a_child_that_fails_spares_its_parent(void **state)
{
	struct ranks run = {.n = 6, .body = split_without_descriptors};

	(void)state;
	ranks_set("WREATH_JOIN_TIMEOUT", "1s");
	ranks_run(&run);
}

/* All but the last split; that one is killed meanwhile. */
static int split_without_one(struct rank *rank)
{
	struct wreath_comm *child;
	int err;

	rank_reach(rank);
	if (rank->rank == rank->n_ranks - 1)
		ranks_sleep_ms(20000);
	err = wreath_comm_split(rank->comm, 0, 0, &child);
	return err ? err : rank_broken(rank, "split without the last");
}

static void a_rank_that_dies_in_a_split_is_named(void **state)
{
	struct ranks run = {.n = 4, .body = split_without_one};
	int i;

	(void)state;
	ranks_start(&run);
	ranks_await(&run, 4);
	ranks_sleep_ms(50);
	ranks_signal(&run, 3, SIGKILL);
	ranks_join(&run);
	for (i = 0; i < 3; i++) {
		ranks_expect(&run, i, WREATH_EPEER, "rank 3");
		assert_true(run.shared->results[i].seconds < 10);
	}
	ranks_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_split_is_what_colors_and_keys_ask_for),
		cmocka_unit_test(a_split_that_meets_a_sum_is_a_mismatch),
		cmocka_unit_test(bad_arguments_are_refused),
		cmocka_unit_test_teardown(settings_are_those_of_the_parent,
					  ranks_clean),
		cmocka_unit_test_teardown(a_child_that_fails_spares_its_parent,
					  ranks_clean),
		cmocka_unit_test(a_rank_that_dies_in_a_split_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
