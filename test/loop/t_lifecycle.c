/* SPDX-License-Identifier: MIT */
/*
 * Goal: communicators come and go without a trace, and every call has its
 * meaning at each point of their life.
 * Method: many are made and destroyed while descriptors and resident memory
 * of the process are watched; then single calls at odd moments.
 */
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

#include "test/loop/ranks.h"

#define WARM_UP 20
#define ROUNDS (RANKS_SLOW ? 30 : 200)
#define GROWTH_KB 6000 /* the allocator's own ups and downs */

static int one_round(struct rank *rank, int i)
{
	struct wreath_comm *comm;
	float words[1000];
	int err = rank_join(rank, &comm);
	int later;

	if (err)
		return err;
	words[0] = 1;
	words[999] = (float)rank->rank;
	/* Every other one is never used. */
	if (i % 2)
		err = wreath_all_reduce(words, words, 1000, WREATH_FLOAT32,
					WREATH_SUM, comm, NULL);
	if (!err && i % 2 && words[0] != (float)rank->n_ranks)
		err = rank_broken(rank, "a wrong sum in round %d", i);
	if (!err && i % 3 == 0)
		err = wreath_comm_finalize(comm);
	later = wreath_comm_destroy(comm);
	return err ? err : later;
}

static int come_and_go(struct rank *rank)
{
	int err = 0;
	int fds = 0;
	long kb = 0;
	int i;

	for (i = 0; i < WARM_UP + ROUNDS && !err; i++) {
		if (i == WARM_UP) {
			if (!rank_barrier(rank))
				return rank_broken(rank, "alone");
			ranks_sleep_ms(100);
			fds = ranks_n_fds();
			kb = ranks_resident_kb();
			if (!rank_barrier(rank))
				return rank_broken(rank, "alone");
		}
		err = one_round(rank, i);
	}
	if (err || !rank_barrier(rank))
		return err ? err : rank_broken(rank, "alone");
	if (ranks_settled_fds(fds) > fds)
		return rank_broken(rank, "%d descriptors became %d", fds,
				   ranks_n_fds());
	if (!RANKS_SLOW && ranks_resident_kb() > kb + GROWTH_KB)
		return rank_broken(rank, "%ld kB became %ld", kb,
				   ranks_resident_kb());
	return 0;
}

static void communicators_come_and_go_without_a_trace(void **state)
{
	struct ranks run = {.n = 2, .body = come_and_go, .no_comm = true};

	(void)state;
	ranks_run(&run);
	run.n = 3;
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

static int finalize_then_call(struct rank *rank)
{
	struct wreath_comm *comm = rank->comm;
	int word = 1;
	int err = wreath_all_reduce(&word, &word, 1, WREATH_INT32, WREATH_SUM,
				    comm, NULL);

	if (!err)
		err = wreath_comm_finalize(comm);
	if (!err)
		err = wreath_comm_finalize(comm);
	if (err)
		return err;
	err = wreath_all_reduce(&word, &word, 1, WREATH_INT32, WREATH_SUM,
				comm, NULL);
	if (err != WREATH_EINVAL || !strstr(wreath_error_text(), "finalized"))
		return rank_broken(rank, "a finalized communicator worked: %s",
				   wreath_error_text());
	if (wreath_comm_rank(comm) != rank->rank ||
	    wreath_comm_size(comm) != rank->n_ranks ||
	    !wreath_comm_device(comm) || wreath_comm_async_error(comm))
		return rank_broken(rank, "the queries do not work any more");
	return 0;
}

static void after_finalize_only_queries_work(void **state)
{
	struct ranks run = {.n = 3, .body = finalize_then_call};

	(void)state;
	ranks_run(&run);
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

static int be_alone(struct rank *rank)
{
	float send[3] = {1, 2, 3};
	float recv[3] = {0};
	int err = wreath_all_reduce(send, recv, 3, WREATH_FLOAT32, WREATH_AVG,
				    rank->comm, NULL);

	if (err)
		return err;
	if (memcmp(send, recv, sizeof(send)))
		return rank_broken(rank, "one rank's average is not its own");
	if (wreath_comm_size(rank->comm) != 1 ||
	    wreath_comm_rank(rank->comm) != 0)
		return rank_broken(rank, "who am I?");
	return 0;
}

static void one_rank_needs_nobody(void **state)
{
	struct ranks run = {.n = 1, .body = be_alone};

	(void)state;
	ranks_run(&run);
}

static int join_by_environment(struct rank *rank)
{
	const struct wreath_unique_id *id = rank_id(rank);
	char hex[2 * sizeof(id->bytes) + 1];
	char text[16];
	int word = rank->rank;
	size_t i;
	int err;

	if (!id)
		return rank_broken(rank, "no id");
	for (i = 0; i < sizeof(id->bytes); i++)
		snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
	ranks_set("WREATH_COMM_ID", hex);
	snprintf(text, sizeof(text), "%d", rank->rank);
	ranks_set("WREATH_RANK", text);
	snprintf(text, sizeof(text), "%d", rank->n_ranks);
	ranks_set("WREATH_N_RANKS", text);
	err = wreath_comm_init_env(&rank->comm);
	if (!err)
		err = wreath_all_reduce(&word, &word, 1, WREATH_INT32,
					WREATH_MAX, rank->comm, NULL);
	if (!err && word != rank->n_ranks - 1)
		err = rank_broken(rank, "the maximum is %d", word);
	return err;
}

static int join_nobody(struct rank *rank)
{
	int err = wreath_comm_init_env(&rank->comm);

	if (!err && wreath_comm_size(rank->comm) != 1)
		err = rank_broken(rank, "somebody is there");
	return err;
}

static void the_environment_says_who_one_is(void **state)
{
	struct ranks run = {
		.n = 3, .body = join_by_environment, .no_comm = true};
	struct ranks alone = {.n = 1, .body = join_nobody, .no_comm = true};

	(void)state;
	ranks_run(&run);
	ranks_run(&alone);
}

/* An id is for one communicator. */
static int join_twice(struct rank *rank)
{
	const struct wreath_unique_id *id = rank_id(rank);
	struct wreath_comm *second;
	double start;
	int err;

	if (!id)
		return rank_broken(rank, "no id");
	err = wreath_comm_init(id, rank->rank, rank->n_ranks, &rank->comm);
	if (err)
		return err;
	start = ranks_now();
	err = wreath_comm_init(id, rank->rank, rank->n_ranks, &second);
	if (!err) {
		wreath_comm_destroy(second);
		return rank_broken(rank, "an id served twice");
	}
	if (!*wreath_error_text() || ranks_now() - start > 5)
		return rank_broken(rank, "the answer took %.1f s: '%s'",
				   ranks_now() - start, wreath_error_text());
	return 0;
}

static void an_id_serves_once(void **state)
{
	struct ranks run = {.n = 2, .body = join_twice, .no_comm = true};

	(void)state;
	ranks_set("WREATH_JOIN_TIMEOUT", "1s");
	ranks_run(&run);
}

/* Many communicators of one process at a time. */
static int keep_many(struct rank *rank)
{
	struct wreath_comm *comms[12] = {NULL};
	int n = (int)(sizeof(comms) / sizeof(comms[0]));
	int word = 1;
	int err = 0;
	int i;

	for (i = 0; i < n && !err; i++)
		err = rank_join(rank, &comms[i]);
	for (i = n - 1; i >= 0 && !err; i--)
		err = wreath_all_reduce(&word, &word, 1, WREATH_INT32,
					WREATH_SUM, comms[i], NULL);
	for (i = 0; i < n && !err; i++)
		err = wreath_comm_destroy(comms[i]);
	if (!err && word != 1 << n)
		err = rank_broken(rank, "%d instead of %d", word, 1 << n);
	return err;
}

static void many_communicators_live_together(void **state)
{
	struct ranks run = {.n = 2, .body = keep_many, .no_comm = true};

	(void)state;
	ranks_run(&run);
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			communicators_come_and_go_without_a_trace,
			ranks_clean),
		cmocka_unit_test_teardown(after_finalize_only_queries_work,
					  ranks_clean),
		cmocka_unit_test_teardown(one_rank_needs_nobody, ranks_clean),
		cmocka_unit_test_teardown(the_environment_says_who_one_is,
					  ranks_clean),
		cmocka_unit_test_teardown(an_id_serves_once, ranks_clean),
		cmocka_unit_test_teardown(many_communicators_live_together,
					  ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
