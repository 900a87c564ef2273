/* SPDX-License-Identifier: MIT */
/*
 * Goal: a message between ranks that have not met before does not hide what
 * happens to one of them, and does not disturb what else they do.
 * Method: one rank waits in its first message while the other dies or stays
 * away; then ranks meet on several communicators at once, beside streams
 * and collectives.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "test/loop/ranks.h"

#define BOUND (RANKS_SLOW ? 20.0 : 6.0)
#define MANY 100000

static int wait_for_last(struct rank *rank)
{
	int last = rank->n_ranks - 1;
	int number = rank->rank;
	int err;

	rank_reach(rank);
	if (rank->rank == last) {
		rank_await(rank, 1);
		return 0;
	}
	wreath_group_start();
	wreath_send(&number, 1, WREATH_INT32, last, rank->comm, NULL);
	wreath_recv(&number, 1, WREATH_INT32, last, rank->comm, NULL);
	err = wreath_group_end();
	return err ? err : rank_broken(rank, "nobody was there");
}

static void expect_last(const struct ranks *run, int code)
{
	int r;

	for (r = 0; r < run->n - 1; r++) {
		char name[16] = "rank 2";

		ranks_expect(run, r, code ? code : run->shared->results[r].code,
			     name);
		assert_true(run->shared->results[r].code < 0);
		assert_true(run->shared->results[r].seconds < BOUND);
	}
}

static void who_dies_before_they_meet_is_named(void **state)
{
	struct ranks run = {.n = 3, .body = wait_for_last};

	(void)state;
	ranks_set("WREATH_TIMEOUT", "60s");
	ranks_start(&run);
	ranks_await(&run, 3);
	ranks_sleep_ms(100);
	ranks_signal(&run, 2, SIGKILL);
	ranks_join(&run);
	expect_last(&run, WREATH_EPEER);
	ranks_end(&run);
}

static void who_stays_away_is_named_at_the_deadline(void **state)
{
	struct ranks run = {.n = 3, .body = wait_for_last};
	int r;

	(void)state;
	ranks_set("WREATH_TIMEOUT", "1s");
	ranks_start(&run);
	ranks_await(&run, 3);
	ranks_sleep_ms(1500);
	ranks_allow(&run, 1);
	ranks_join(&run);
	expect_last(&run, WREATH_ETIMEOUT);
	for (r = 0; r < 2; r++)
		assert_true(strstr(run.shared->results[r].text, "rank 0") ||
			    strstr(run.shared->results[r].text, "rank 1"));
	ranks_end(&run);
}

/* ---- several at once ---- */

static int check_all(struct rank *rank, const int *in, int from, int which)
{
	int i;

	for (i = 0; i < MANY; i++)
		if (in[i] != from * 100 + which + i)
			return rank_broken(rank, "element %d of message %d is "
						 "%d", i, which, in[i]);
	return 0;
}

static int meet_everywhere(struct rank *rank)
{
	struct wreath_comm *comms[3] = {rank->comm, NULL, NULL};
	int n = rank->n_ranks;
	int right = (rank->rank + 1) % n;
	int left = (rank->rank + n - 1) % n;
	int *out[3], *in[3];
	float one = 1, sum = 0;
	int i, c;
	int err = rank_join(rank, &comms[1]);

	if (!err)
		err = rank_join(rank, &comms[2]);
	for (c = 0; c < 3; c++) {
		out[c] = calloc(MANY, sizeof(**out));
		in[c] = calloc(MANY, sizeof(**in));
		for (i = 0; i < MANY; i++)
			out[c][i] = rank->rank * 100 + c + i;
	}
	wreath_group_start();
	for (c = 0; c < 3 && !err; c++) {
		err = wreath_send(out[c], MANY, WREATH_INT32, right, comms[c],
				  NULL);
		if (!err)
			err = wreath_recv(in[c], MANY, WREATH_INT32, left,
					  comms[c], NULL);
	}
	if (!err)
		err = wreath_all_reduce(&one, &sum, 1, WREATH_FLOAT32,
					WREATH_SUM, comms[1], NULL);
	if (!err)
		err = wreath_group_end();
	for (c = 0; c < 3 && !err; c++)
		err = check_all(rank, in[c], left, c);
	if (!err && sum != (float)n)
		err = rank_broken(rank, "%f", (double)sum);
	for (c = 0; c < 3; c++) {
		free(out[c]);
		free(in[c]);
		if (c && !err)
			err = wreath_comm_destroy(comms[c]);
	}
	return err;
}

static void ranks_meet_on_several_communicators_at_once(void **state)
{
	int n;

	(void)state;
	for (n = 2; n <= RANKS_TIMES(3, 5, 8); n++) {
		struct ranks run = {.n = n, .body = meet_everywhere,
				    .seconds = RANKS_SLOW ? 200 : 60,
				    .mode = n % 2 ? RANKS_PROCESSES
						  : RANKS_THREADS};

		ranks_run(&run);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(who_dies_before_they_meet_is_named,
					  ranks_clean),
		cmocka_unit_test_teardown(
			who_stays_away_is_named_at_the_deadline, ranks_clean),
		cmocka_unit_test_teardown(
			ranks_meet_on_several_communicators_at_once,
			ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
