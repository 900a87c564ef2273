/* SPDX-License-Identifier: MIT */
/*
 * Goal: groups do what their calls ask for, whatever the order, the number of
 * communicators and the pattern of messages; what is wrong with one is told.
 * Method: patterns that would deadlock without a group, with results that are
 * known; then each mistake by itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/loop/ranks.h"

#define MANY 300 /* messages of a pair in one group */
#define LONG 200000 /* elements of a message of many slots */

static int both_send_first(struct rank *rank)
{
	int *out = calloc(LONG, sizeof(*out));
	int *in = calloc(LONG, sizeof(*in));
	int n = rank->n_ranks;
	int right = (rank->rank + 1) % n;
	int left = (rank->rank + n - 1) % n;
	size_t i;
	int err;

	for (i = 0; i < LONG; i++)
		out[i] = rank->rank * 7 + (int)i;
	err = wreath_group_start();
	if (!err)
		err = wreath_send(out, LONG, WREATH_INT32, right, rank->comm,
				  NULL);
	if (!err)
		err = wreath_recv(in, LONG, WREATH_INT32, left, rank->comm,
				  NULL);
	if (!err)
		err = wreath_group_end();
	for (i = 0; i < LONG && !err; i++)
		if (in[i] != left * 7 + (int)i)
			return rank_broken(rank, "element %zu is %d", i, in[i]);
	free(out);
	free(in);
	return err;
}

/* Messages of a pair keep their order, of any lengths; empty ones as well. */
static int many_keep_their_order(struct rank *rank)
{
	int *out = calloc(MANY * 64, sizeof(*out));
	int *in = calloc(MANY * 64, sizeof(*in));
	int n = rank->n_ranks;
	int to = (rank->rank + 1) % n;
	int from = (rank->rank + n - 1) % n;
	int err = wreath_group_start();
	int i;

	for (i = 0; i < MANY && !err; i++) {
		size_t count = (size_t)(i * 13 % 64);

		out[i * 64] = i + rank->rank * 1000;
		err = wreath_send(out + i * 64, count, WREATH_INT32, to,
				  rank->comm, NULL);
		if (!err)
			err = wreath_recv(in + i * 64, count, WREATH_INT32,
					  from, rank->comm, NULL);
	}
	if (!err)
		err = wreath_group_end();
	for (i = 0; i < MANY && !err; i++)
		if (i * 13 % 64 && in[i * 64] != i + from * 1000)
			err = rank_broken(rank, "message %d is %d", i,
					  in[i * 64]);
	free(out);
	free(in);
	return err;
}

/* Collectives and messages, nested, on two communicators, one by a stream. */
static int mixed(struct rank *rank)
{
	struct wreath_comm *other;
	struct wreath_stream *stream;
	float one = 1, sum = 0, other_sum = 0, got = -1, mine;
	int n = rank->n_ranks;
	int err = rank_join(rank, &other);

	mine = (float)rank->rank;
	if (!err)
		err = wreath_stream_create(&stream);
	if (err)
		return err;
	wreath_group_start();
	wreath_send(&mine, 1, WREATH_FLOAT32, (rank->rank + 1) % n, other,
		    NULL);
	wreath_group_start();
	wreath_all_reduce(&one, &sum, 1, WREATH_FLOAT32, WREATH_SUM,
			  rank->comm, NULL);
	err = wreath_group_end();
	if (err || sum != 0)
		return rank_broken(rank, "the inner end ran it: %d %f", err,
				   (double)sum);
	wreath_all_reduce(&one, &other_sum, 1, WREATH_FLOAT32, WREATH_SUM,
			  other, stream);
	wreath_recv(&got, 1, WREATH_FLOAT32, (rank->rank + n - 1) % n, other,
		    NULL);
	err = wreath_group_end();
	if (!err)
		err = wreath_stream_wait(stream);
	if (!err && (sum != (float)n || other_sum != (float)n ||
		     got != (float)((rank->rank + n - 1) % n)))
		return rank_broken(rank, "%f %f %f", (double)sum,
				   (double)other_sum, (double)got);
	if (!err)
		err = wreath_stream_destroy(stream);
	return err ? err : wreath_comm_destroy(other);
}

static int to_itself(struct rank *rank)
{
	int out[2] = {rank->rank, 5};
	int in[2] = {-1, -1};
	int err = wreath_group_start();

	err |= wreath_send(&out[0], 1, WREATH_INT32, rank->rank, rank->comm,
			   NULL);
	err |= wreath_send(&out[1], 1, WREATH_INT32, rank->rank, rank->comm,
			   NULL);
	err |= wreath_recv(&in[0], 1, WREATH_INT32, rank->rank, rank->comm,
			   NULL);
	err |= wreath_recv(&in[1], 1, WREATH_INT32, rank->rank, rank->comm,
			   NULL);
	err |= wreath_group_end();
	if (!err && (in[0] != rank->rank || in[1] != 5))
		return rank_broken(rank, "%d %d", in[0], in[1]);
	return err;
}

/* Each rank's own factor, with every form that folds. */
static int scaled(struct rank *rank)
{
	float *in = calloc(70000, sizeof(*in));
	float *out = calloc(70000, sizeof(*out));
	float scalar = (float)(rank->rank + 1) / 2;
	int n = rank->n_ranks;
	float want = 0;
	enum wreath_op op;
	size_t i;
	int err, r;

	for (r = 0; r < n; r++)
		want += 4 * (float)(r + 1) / 2;
	for (i = 0; i < 70000; i++)
		in[i] = 4;
	err = wreath_op_create_scaled_sum(&scalar, WREATH_FLOAT32, rank->comm,
					  &op);
	for (i = 1; i <= 65536 && !err; i *= 16) {
		err = wreath_all_reduce(in, out, i, WREATH_FLOAT32, op,
					rank->comm, NULL);
		if (!err && (out[0] != want || out[i - 1] != want))
			return rank_broken(rank, "%zu: %f is not %f", i,
					   (double)out[0], (double)want);
		if (!err)
			err = wreath_reduce_scatter(in, out, i / (size_t)n,
						    WREATH_FLOAT32, op,
						    rank->comm, NULL);
		if (!err && i >= (size_t)n && out[0] != want)
			return rank_broken(rank, "scattered %f is not %f",
					   (double)out[0], (double)want);
		if (!err)
			err = wreath_reduce(in, out, i, WREATH_FLOAT32, op, 0,
					    rank->comm, NULL);
		if (!err && !rank->rank && out[i - 1] != want)
			return rank_broken(rank, "reduced %f is not %f",
					   (double)out[i - 1], (double)want);
	}
	if (!err && wreath_all_reduce(in, out, 1, WREATH_FLOAT64, op,
				      rank->comm, NULL) != WREATH_EINVAL)
		return rank_broken(rank, "another type was taken");
	if (!err)
		err = wreath_op_destroy(op, rank->comm);
	if (!err && wreath_all_reduce(in, out, 1, WREATH_FLOAT32, op,
				      rank->comm, NULL) != WREATH_EINVAL)
		return rank_broken(rank, "an operation that is gone was taken");
	free(in);
	free(out);
	return err;
}

static void run_body(rank_body *body, int least, int most)
{
	int n;

	for (n = least; n <= most; n++) {
		struct ranks run = {.n = n, .body = body, .seconds = 60,
				    .mode = n % 2 ? RANKS_PROCESSES
						  : RANKS_THREADS};

		ranks_run(&run);
	}
}

static void a_circle_of_sends_does_not_lock(void **state)
{
	(void)state;
	run_body(both_send_first, 1, RANKS_TIMES(3, 6, 9));
}

static void messages_keep_their_order(void **state)
{
	(void)state;
	run_body(many_keep_their_order, 1, RANKS_TIMES(3, 5, 8));
}

static void groups_nest_and_span_communicators(void **state)
{
	(void)state;
	run_body(mixed, 1, RANKS_TIMES(3, 5, 8));
}

static void a_rank_can_send_to_itself(void **state)
{
	(void)state;
	run_body(to_itself, 1, 3);
}

static void a_scaled_sum_is_right_in_every_form(void **state)
{
	(void)state;
	run_body(scaled, 1, RANKS_TIMES(3, 6, 9));
}

/* ---- mistakes ---- */

static int no_receive(struct rank *rank)
{
	int number = 1;

	if (rank->rank == 1)
		return wreath_recv(&number, 1, WREATH_INT32, 2, rank->comm,
				   NULL);
	if (rank->rank == 0)
		return wreath_barrier(rank->comm, NULL);
	rank_await(rank, 1);
	return 0;
}

static void a_receive_without_its_send_names_both(void **state)
{
	struct ranks run = {.n = 3, .body = no_receive, .seconds = 60};

	(void)state;
	ranks_set("WREATH_TIMEOUT", "1s");
	ranks_start(&run);
	ranks_sleep_ms(1500);
	ranks_allow(&run, 1);
	ranks_join(&run);
	assert_true(run.shared->results[1].code < 0);
	ranks_expect(&run, 1, run.shared->results[1].code, "rank 1");
	ranks_expect(&run, 1, run.shared->results[1].code, "rank 2");
	ranks_end(&run);
}

static int other_length(struct rank *rank)
{
	static char bytes[1000000];
	size_t count = *(const size_t *)rank->arg + (size_t)rank->rank;
	int err;

	/* Connected, so that the lengths are what there is to disagree on. */
	err = wreath_barrier(rank->comm, NULL);
	if (err)
		return err;
	if (rank->rank)
		return wreath_recv(bytes, count, WREATH_UINT8, 0, rank->comm,
				   NULL);
	err = wreath_send(bytes, count, WREATH_UINT8, 1, rank->comm, NULL);
	return err ? err : wreath_barrier(rank->comm, NULL);
}

static void other_lengths_are_a_mismatch(void **state)
{
	static const size_t counts[] = {0, 1, 63, 1000, 65535, 500000};
	size_t i;

	(void)state;
	ranks_set("WREATH_TIMEOUT", "5s");
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct ranks run = {.n = 2, .body = other_length,
				    .arg = &counts[i], .seconds = 60};
		char word[32];

		ranks_start(&run);
		ranks_join(&run);
		snprintf(word, sizeof(word), "%zu bytes", counts[i] + 1);
		ranks_expect(&run, 0, WREATH_EMISMATCH, word);
		ranks_expect(&run, 1, WREATH_EMISMATCH, word);
		assert_true(run.shared->results[1].seconds < 4);
		ranks_end(&run);
	}
}

static int bad_calls(struct rank *rank)
{
	int a = 0, b = 0;
	int err;

	if (wreath_group_end() != WREATH_EINVAL)
		return rank_broken(rank, "an end without a start");
	wreath_group_start();
	if (wreath_send(&a, 1, WREATH_INT32, rank->n_ranks, rank->comm, NULL) !=
	    WREATH_EINVAL)
		return rank_broken(rank, "a peer that is not there");
	wreath_all_reduce(&a, &b, 1, WREATH_INT32, WREATH_SUM, rank->comm,
			  NULL);
	err = wreath_group_end();
	if (err != WREATH_EINVAL || !strstr(wreath_error_text(), "peer"))
		return rank_broken(rank, "the group hid it: %d %s", err,
				   wreath_error_text());
	/* Nothing of it was done, on any rank; so this is the first call. */
	a = 1;
	err = wreath_all_reduce(&a, &b, 1, WREATH_INT32, WREATH_SUM, rank->comm,
				NULL);
	return err || b == rank->n_ranks ? err : rank_broken(rank, "%d", b);
}

static void what_is_refused_ends_the_group(void **state)
{
	(void)state;
	run_body(bad_calls, 1, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_circle_of_sends_does_not_lock,
					  ranks_clean),
		cmocka_unit_test_teardown(messages_keep_their_order,
					  ranks_clean),
		cmocka_unit_test_teardown(groups_nest_and_span_communicators,
					  ranks_clean),
		cmocka_unit_test_teardown(a_rank_can_send_to_itself,
					  ranks_clean),
		cmocka_unit_test_teardown(a_scaled_sum_is_right_in_every_form,
					  ranks_clean),
		cmocka_unit_test_teardown(a_receive_without_its_send_names_both,
					  ranks_clean),
		cmocka_unit_test_teardown(other_lengths_are_a_mismatch,
					  ranks_clean),
		cmocka_unit_test_teardown(what_is_refused_ends_the_group,
					  ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
