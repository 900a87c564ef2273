/* SPDX-License-Identifier: MIT */
/*
 * Goal: a group, a stream or a message that is left in the middle is told of,
 * and leaves nothing behind: no memory, no thread that still writes, no error
 * for a later call.
 * Method: each way of leaving by itself, most of them on two communicators.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "test/loop/ranks.h"

#define MANY 200000

static void run_body(rank_body *body, int least, int most)
{
	int n;

	for (n = least; n <= most; n++) {
		struct ranks run = {.n = n, .body = body,
				    .seconds = RANKS_SLOW ? 200 : 60,
				    .mode = n % 2 ? RANKS_PROCESSES
						  : RANKS_THREADS};

		ranks_run(&run);
	}
}

/* The group outlives one of its communicators. */
static int destroy_in_group(struct rank *rank)
{
	size_t counts[RANKS_MAX];
	struct wreath_comm *other;
	int *in = calloc(RANKS_MAX, sizeof(*in));
	int *out = calloc(RANKS_MAX, sizeof(*out));
	int i;
	int err = rank_join(rank, &other);

	if (err)
		return err;
	for (i = 0; i < RANKS_MAX; i++)
		counts[i] = 1;
	wreath_group_start();
	err = wreath_all_gather_v(in, out, counts, NULL, WREATH_INT32, other,
				  NULL);
	if (!err)
		err = wreath_send(in, 1, WREATH_INT32, rank->rank, other, NULL);
	if (!err)
		err = wreath_barrier(rank->comm, NULL);
	if (!err)
		err = wreath_comm_destroy(other);
	if (err != WREATH_EINVAL || !strstr(wreath_error_text(), "group"))
		return rank_broken(rank, "destroy: %d %s", err,
				   wreath_error_text());
	err = wreath_group_end();
	if (err != WREATH_EINVAL || !strstr(wreath_error_text(), "group"))
		return rank_broken(rank, "end: %d %s", err,
				   wreath_error_text());
	/* Nothing of the group was done, and the other one works. */
	free(in);
	free(out);
	return wreath_barrier(rank->comm, NULL);
}

static void a_group_that_outlives_its_communicator_is_refused(void **state)
{
	(void)state;
	run_body(destroy_in_group, 1, 3);
}

static int finalize_in_group(struct rank *rank)
{
	float one = 1, sum = 0;
	int err;

	wreath_group_start();
	err = wreath_all_reduce(&one, &sum, 1, WREATH_FLOAT32, WREATH_SUM,
				rank->comm, NULL);
	if (!err)
		err = wreath_comm_finalize(rank->comm);
	if (err != WREATH_EINVAL || !strstr(wreath_error_text(), "group"))
		return rank_broken(rank, "finalize: %d %s", err,
				   wreath_error_text());
	err = wreath_group_end();
	if (!err && sum != (float)rank->n_ranks)
		return rank_broken(rank, "%f", (double)sum);
	return err;
}

static void a_communicator_does_not_end_in_an_open_group(void **state)
{
	(void)state;
	run_body(finalize_in_group, 1, 3);
}

/* One of two communicators fails: the other's call is waited for. */
static int one_fails(struct rank *rank)
{
	struct wreath_comm *other;
	float *in = calloc(MANY, sizeof(*in));
	float *out = calloc(MANY, sizeof(*out));
	float *sum = calloc(MANY, sizeof(*sum));
	int turn, i;
	int err = rank_join(rank, &other);

	for (turn = 0; turn < 2 && !err; turn++) {
		for (i = 0; i < MANY; i++) {
			in[i] = (float)(rank->rank + turn);
			sum[i] = 0;
		}
		wreath_group_start();
		wreath_all_reduce(in, out, MANY, WREATH_FLOAT32, WREATH_SUM,
				  rank->comm, NULL);
		wreath_all_reduce(in, sum, MANY, WREATH_FLOAT32, WREATH_SUM,
				  other, NULL);
		/* No call is refused: all are noted before. */
		if (turn && !rank_barrier(rank))
			return rank_broken(rank, "no barrier");
		if (turn)
			wreath_comm_abort(rank->comm);
		err = wreath_group_end();
		if (turn && err == WREATH_EABORTED)
			err = 0;
		else if (turn && !err)
			return rank_broken(rank, "no error in turn %d", turn);
		/* It may be written to no longer. */
		memset(out, 0, MANY * sizeof(*out));
		for (i = 0; i < MANY && !err; i++)
			if (sum[i] != (float)(rank->n_ranks * turn +
					      rank->n_ranks *
						      (rank->n_ranks - 1) / 2))
				return rank_broken(rank, "turn %d: sum[%d] is "
							 "%f", turn, i,
						   (double)sum[i]);
	}
	free(in);
	free(out);
	free(sum);
	if (!err)
		err = wreath_comm_destroy(other);
	wreath_comm_destroy(rank->comm);
	rank->comm = NULL;
	return err;
}

static void who_fails_in_a_group_does_not_take_others_along(void **state)
{
	(void)state;
	run_body(one_fails, 2, 3);
}

/* Lists may go, and operations be made, while a stream is at work. */
static int stream_at_work(struct rank *rank)
{
	struct wreath_stream *stream;
	float *in = calloc(MANY, sizeof(*in));
	float *out = calloc(MANY, sizeof(*out));
	float *sum = calloc(MANY, sizeof(*sum));
	float two = 2;
	int n = rank->n_ranks;
	int i, turn;
	int err = wreath_stream_create(&stream);

	for (i = 0; i < MANY; i++)
		in[i] = (float)(i % 1000 + rank->rank);
	for (turn = 0; turn < 20 && !err; turn++) {
		size_t *counts = calloc((size_t)n, sizeof(*counts));
		enum wreath_op op;

		for (i = 0; i < n; i++)
			counts[i] = (size_t)(MANY / n);
		err = wreath_all_gather_v(in, out, counts, NULL,
					  WREATH_FLOAT32, rank->comm, stream);
		memset(counts, 0xff, (size_t)n * sizeof(*counts));
		free(counts);
		if (!err)
			err = wreath_op_create_scaled_sum(
				&two, WREATH_FLOAT32, rank->comm, &op);
		if (!err)
			err = wreath_all_reduce(in, sum, 1000, WREATH_FLOAT32,
						op, rank->comm, stream);
		if (!err)
			err = wreath_stream_wait(stream);
		if (!err)
			err = wreath_op_destroy(op, rank->comm);
		for (i = 0; i < MANY / n * n && !err; i++)
			if (out[i] != (float)(i % (MANY / n) % 1000 +
					      i / (MANY / n)))
				return rank_broken(rank, "out[%d] is %f", i,
						   (double)out[i]);
		for (i = 0; i < 1000 && !err; i++)
			if (sum[i] != (float)(2 * n * i + n * (n - 1)))
				return rank_broken(rank, "sum[%d] is %f", i,
						   (double)sum[i]);
	}
	free(in);
	free(out);
	free(sum);
	if (!err)
		err = wreath_stream_destroy(stream);
	return err;
}

static void lists_and_operations_come_and_go_beside_a_stream(void **state)
{
	(void)state;
	run_body(stream_at_work, 1, 3);
}

/* ---- what nobody receives ---- */

static int send_for_nobody(struct rank *rank)
{
	int number = rank->rank;
	int err = wreath_barrier(rank->comm, NULL);

	if (!err && rank->rank == 1)
		err = wreath_send(&number, 1, WREATH_INT32, 0, rank->comm,
				  NULL);
	if (!err)
		err = wreath_comm_finalize(rank->comm);
	if (!err)
		return rank_broken(rank, "nobody has missed it");
	if (!strstr(wreath_error_text(), "rank 0") ||
	    !strstr(wreath_error_text(), "rank 1"))
		return rank_broken(rank, "%s", wreath_error_text());
	wreath_comm_destroy(rank->comm);
	rank->comm = NULL;
	return 0;
}

static void a_message_that_nobody_takes_is_told_of_at_the_end(void **state)
{
	(void)state;
	ranks_set("WREATH_TIMEOUT", "5s");
	run_body(send_for_nobody, 2, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_group_that_outlives_its_communicator_is_refused),
		cmocka_unit_test(a_communicator_does_not_end_in_an_open_group),
		cmocka_unit_test(
			who_fails_in_a_group_does_not_take_others_along),
		cmocka_unit_test(
			lists_and_operations_come_and_go_beside_a_stream),
		cmocka_unit_test_teardown(
			a_message_that_nobody_takes_is_told_of_at_the_end,
			ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
