/* SPDX-License-Identifier: MIT */
/*
 * Goal: messages and blocks of different lengths reach their place whatever
 * was connected before, however long they are, in whatever memory, and in
 * whatever order the calls of different ranks come.
 * Method: patterns that have one right outcome each; the bytes of a message
 * tell who sent it, to whom, and which it is.
 */
#include <stdlib.h>
#include <string.h>

#include "test/loop/ranks.h"

/* Longer than all slots of a lane together, whatever the settings. */
#define LONG ((size_t)3 << 20)

static char byte_of(int from, int to, int which, size_t at)
{
	return (char)(from * 31 + to * 17 + which * 7 + (int)(at % 251));
}

static void fill(char *out, size_t n, int from, int to, int which)
{
	size_t i;

	for (i = 0; i < n; i++)
		out[i] = byte_of(from, to, which, i);
}

static int check(struct rank *rank, const char *got, size_t n, int from,
		 int which)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (got[i] != byte_of(from, rank->rank, which, i))
			return rank_broken(rank, "byte %zu of message %d of "
						 "rank %d is wrong", i, which,
					   from);
	return 0;
}

static void run_body(rank_body *body, const void *arg, int least, int most)
{
	int n;

	for (n = least; n <= most; n++) {
		struct ranks run = {.n = n, .body = body, .arg = arg,
				    .seconds = RANKS_SLOW ? 200 : 60,
				    .mode = n % 2 ? RANKS_PROCESSES
						  : RANKS_THREADS};

		ranks_run(&run);
	}
}

/* ---- blocks of different lengths ---- */

/* Block (from, to), in bytes: all long, or some of them short. */
static size_t block_bytes(const struct rank *rank, int from, int to)
{
	bool some = *(const bool *)rank->arg;

	if (from == to)
		return 100;
	if (some && from + to == 1)
		return 5;
	return LONG / 4 + (size_t)(from * 1000 + to * 77);
}

static int all_to_all(struct rank *rank)
{
	size_t out[RANKS_MAX], in[RANKS_MAX], out_at[RANKS_MAX];
	size_t in_at[RANKS_MAX];
	size_t n_out = 0;
	size_t n_in = 0;
	int n = rank->n_ranks;
	void *send, *recv;
	int i, turn;
	int err = 0;

	for (i = 0; i < n; i++) {
		out[i] = block_bytes(rank, rank->rank, i);
		in[i] = block_bytes(rank, i, rank->rank);
		out_at[i] = n_out;
		in_at[i] = n_in;
		n_out += out[i];
		n_in += in[i];
	}
	if (wreath_mem_alloc(n_out, &send) || wreath_mem_alloc(n_in, &recv))
		return rank_broken(rank, "%s", wreath_error_text());
	for (turn = 0; turn < 3 && !err; turn++) {
		for (i = 0; i < n; i++)
			fill((char *)send + out_at[i], out[i], rank->rank, i,
			     turn);
		err = wreath_all_to_all_v(send, out, out_at, recv, in, in_at,
					  WREATH_UINT8, rank->comm, NULL);
		for (i = 0; i < n && !err; i++)
			err = check(rank, (char *)recv + in_at[i], in[i], i,
				    turn);
	}
	wreath_mem_free(send);
	wreath_mem_free(recv);
	return err;
}

static void long_blocks_come_right_in_shared_memory(void **state)
{
	static const bool some[] = {false, true};

	(void)state;
	run_body(all_to_all, &some[0], 2, 4);
	run_body(all_to_all, &some[1], 2, 4);
}

static int own_block_differs(struct rank *rank)
{
	size_t out[RANKS_MAX] = {0};
	size_t in[RANKS_MAX] = {0};
	char *send = malloc(5000);
	char *recv = malloc(10);
	int err;

	out[rank->rank] = 5000;
	in[rank->rank] = 10;
	memset(send, 1, 5000);
	err = wreath_all_to_all_v(send, out, NULL, recv, in, NULL,
				  WREATH_UINT8, rank->comm, NULL);
	if (err != WREATH_EINVAL || !strstr(wreath_error_text(), "5000"))
		return rank_broken(rank, "%d %s", err, wreath_error_text());
	in[rank->rank] = 0;
	err = wreath_all_to_all_v(send, out, NULL, NULL, in, NULL,
				  WREATH_UINT8, rank->comm, NULL);
	if (err != WREATH_EINVAL)
		return rank_broken(rank, "%d %s", err, wreath_error_text());
	free(send);
	free(recv);
	/* Refused before anything moved. */
	return wreath_barrier(rank->comm, NULL);
}

static void an_own_block_of_two_lengths_is_refused(void **state)
{
	(void)state;
	run_body(own_block_differs, NULL, 1, 3);
}

/* ---- messages ---- */

/* Each to each other, and to itself, all in one group. */
static int each_to_each(struct rank *rank, size_t bytes)
{
	size_t n = (size_t)rank->n_ranks;
	char *out = malloc(n * bytes);
	char *in = calloc(n, bytes);
	int err = wreath_group_start();
	int i;

	for (i = 0; i < rank->n_ranks && !err; i++) {
		fill(out + (size_t)i * bytes, bytes, rank->rank, i, 1);
		err = wreath_send(out + (size_t)i * bytes, bytes, WREATH_UINT8,
				  i, rank->comm, NULL);
		if (!err)
			err = wreath_recv(in + (size_t)i * bytes, bytes,
					  WREATH_UINT8, i, rank->comm, NULL);
	}
	if (!err)
		err = wreath_group_end();
	for (i = 0; i < rank->n_ranks && !err; i++)
		err = check(rank, in + (size_t)i * bytes, bytes, i, 1);
	free(out);
	free(in);
	return err;
}

static int after_a_collective(struct rank *rank)
{
	static const size_t lengths[] = {1, 5000, 400000};
	float one = 1, sum = 0;
	size_t i;
	int err = wreath_all_reduce(&one, &sum, 1, WREATH_FLOAT32, WREATH_SUM,
				    rank->comm, NULL);

	for (i = 0; i < 3 && !err; i++)
		err = each_to_each(rank, lengths[i]);
	return err;
}

/* A collective connects some channels with a peer, and not others. */
static void messages_find_the_channels_that_there_are(void **state)
{
	static const char *const algos[] = {"tree", "split-ring", "halving",
					    "ring"};
	static const char *const channels[] = {"2", "3", "4"};
	size_t a, c;

	(void)state;
	for (a = 0; a < 4; a++) {
		for (c = 0; c < 3; c++) {
			ranks_set("WREATH_ALGO", algos[a]);
			ranks_set("WREATH_CHANNELS", channels[c]);
			run_body(after_a_collective, NULL, 5,
				 RANKS_TIMES(5, 5, 9));
		}
	}
}

/*
 * Rank 0 sends to both others at once; the first of them takes its message
 * when the second has sent on what it got.
 */
static int one_waits_for_the_other(struct rank *rank)
{
	char *a = malloc(LONG);
	char *b = malloc(LONG);
	int err = after_a_collective(rank);

	if (err) {
		free(a);
		free(b);
		return err;
	}
	if (rank->rank == 0) {
		fill(a, LONG, 0, 1, 0);
		fill(b, LONG, 0, 2, 0);
		wreath_group_start();
		wreath_send(a, LONG, WREATH_UINT8, 1, rank->comm, NULL);
		wreath_send(b, LONG, WREATH_UINT8, 2, rank->comm, NULL);
		err = wreath_group_end();
	} else if (rank->rank == 2) {
		err = wreath_recv(b, LONG, WREATH_UINT8, 0, rank->comm, NULL);
		if (!err)
			err = check(rank, b, LONG, 0, 0);
		fill(b, LONG, 2, 1, 0);
		if (!err)
			err = wreath_send(b, LONG, WREATH_UINT8, 1, rank->comm,
					  NULL);
	} else {
		err = wreath_recv(b, LONG, WREATH_UINT8, 2, rank->comm, NULL);
		if (!err)
			err = check(rank, b, LONG, 2, 0);
		if (!err)
			err = wreath_recv(a, LONG, WREATH_UINT8, 0, rank->comm,
					  NULL);
		if (!err)
			err = check(rank, a, LONG, 0, 0);
	}
	free(a);
	free(b);
	return err;
}

static void a_message_does_not_wait_for_another_peer(void **state)
{
	(void)state;
	ranks_set("WREATH_TIMEOUT", "5s");
	run_body(one_waits_for_the_other, NULL, 3, 3);
	ranks_set("WREATH_CHANNELS", "2");
	run_body(one_waits_for_the_other, NULL, 3, 3);
}

/*
 * Small messages leave more credit untold than slots allow; what measures
 * ports, when an algorithm is first to be chosen, begins with slots.
 */
static int small_then_chosen(struct rank *rank)
{
	int n_small = *(const int *)rank->arg;
	float one = 1, sum = 0;
	float all[RANKS_MAX] = {0};
	int err = 0;
	int i;

	for (i = 0; i < n_small && !err; i++)
		err = wreath_all_reduce(&one, &sum, 1, WREATH_FLOAT32,
					WREATH_SUM, rank->comm, NULL);
	if (!err)
		err = wreath_gather(&one, all, 1, WREATH_FLOAT32, 0,
				    rank->comm, NULL);
	if (!err && !rank->rank && all[rank->n_ranks - 1] != one)
		err = rank_broken(rank, "%f", (double)all[rank->n_ranks - 1]);
	return err;
}

static void small_messages_leave_room_for_others(void **state)
{
	int n;

	(void)state;
	ranks_set("WREATH_TIMEOUT", "5s");
	ranks_set("WREATH_SLOTS", "2");
	ranks_set("WREATH_ALGO", "ring");
	ranks_set("WREATH_SOFT", "roce:1@8G");
	for (n = 0; n < 12; n += RANKS_SLOW ? 4 : 1)
		run_body(small_then_chosen, &n, 2, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			long_blocks_come_right_in_shared_memory, ranks_clean),
		cmocka_unit_test_teardown(
			an_own_block_of_two_lengths_is_refused, ranks_clean),
		cmocka_unit_test_teardown(
			messages_find_the_channels_that_there_are,
			ranks_clean),
		cmocka_unit_test_teardown(
			a_message_does_not_wait_for_another_peer,
			ranks_clean),
		cmocka_unit_test_teardown(small_messages_leave_room_for_others,
					  ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
