/* SPDX-License-Identifier: MIT */
/*
 * Goal: a stream runs its operations in order and without its caller, says
 * when it is full and when it is done, and tells the first error once.
 * Method: chains in which each operation's result is the next one's input, so
 * that any other order gives another number; ranks that hold others up on
 * purpose, to see a stream while it cannot go on.
 */
#include <stdio.h>
#include <string.h>

#include "test/loop/trial.h"

#define QUEUE 1024 /* operations that a stream takes */

static uint64_t power(uint64_t base, int exponent)
{
	uint64_t all = 1;

	while (exponent--)
		all *= base;
	return all;
}

/* Wait where the queue is full. */
static int put(struct rank *rank, const void *send, void *recv, size_t count,
	       enum wreath_op op, struct wreath_stream *stream)
{
	int err;

	for (;;) {
		err = wreath_all_reduce(send, recv, count, WREATH_UINT64, op,
					rank->comm, stream);
		if (err != WREATH_EAGAIN)
			return err;
		ranks_sleep_ms(1);
	}
}

static int run_chain(struct rank *rank)
{
	const uint64_t *seed = rank->arg;
	uint64_t state = *seed;
	uint64_t want = 3;
	uint64_t word = want;
	struct wreath_stream *stream;
	int err = wreath_stream_create(&stream);
	int i;

	for (i = 0; i < (RANKS_SLOW ? 1000 : 5000) && !err; i++) {
		uint64_t dice = ranks_random(&state) % 8;

		if (!dice) {
			/* A blocking call waits for those before it. */
			err = put(rank, &word, &word, 1, WREATH_SUM, NULL);
			want *= (uint64_t)rank->n_ranks;
			if (!err && word != want)
				err = rank_broken(rank, "a blocking call "
							"overtook");
		} else if (dice == 1) {
			err = put(rank, NULL, NULL, 0, WREATH_MAX, stream);
		} else if (dice < 5) {
			err = put(rank, &word, &word, 1, WREATH_PROD, stream);
			want = power(want, rank->n_ranks);
		} else {
			err = put(rank, &word, &word, 1, WREATH_SUM, stream);
			want *= (uint64_t)rank->n_ranks;
		}
	}
	if (!err)
		err = wreath_stream_wait(stream);
	if (!err && word != want)
		err = rank_broken(rank, "the chain of %d ended in another "
					"number", i);
	wreath_stream_destroy(stream);
	return err;
}

static void operations_run_in_the_order_of_the_stream(void **state)
{
	const uint64_t seed = ranks_seed();
	struct ranks run = {.n = 3, .body = run_chain, .arg = &seed};

	(void)state;
	run.mode = RANKS_THREADS;
	ranks_run(&run);
	run.mode = RANKS_PROCESSES;
	ranks_run(&run);
}

/* Rank 1 does not come before rank 0 has filled its queue. */
static int fill_queue(struct rank *rank)
{
	uint64_t word = 1;
	struct wreath_stream *stream;
	int err = wreath_stream_create(&stream);
	int n = 0;

	if (err)
		return err;
	if (rank->rank && !rank_await(rank, 1))
		return rank_broken(rank, "rank 0 did not fill its queue");
	while (n < QUEUE && !err) {
		err = wreath_all_reduce(&word, &word, 1, WREATH_UINT64,
					WREATH_MAX, rank->comm, stream);
		n += !err;
	}
	if (!rank->rank) {
		/* One is under way, or was not yet begun: both are right. */
		int more = wreath_all_reduce(&word, &word, 1, WREATH_UINT64,
					     WREATH_MAX, rank->comm, stream);

		if (more != WREATH_EAGAIN ||
		    !strstr(wreath_error_text(), "1024"))
			return rank_broken(rank, "the %dth call gave %d: %s",
					   n + 1, more, wreath_error_text());
		if (wreath_stream_query(stream) != WREATH_EAGAIN)
			return rank_broken(rank, "a full stream is done");
		ranks_allow(rank->run, 1);
	}
	if (!err)
		err = wreath_stream_wait(stream);
	if (!err)
		err = wreath_stream_query(stream);
	wreath_stream_destroy(stream);
	return err;
}

static void a_full_stream_says_so_and_goes_on(void **state)
{
	struct ranks run = {.n = 2, .body = fill_queue};

	(void)state;
	ranks_run(&run);
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

/* A failed operation: all after it fail as well, and the wait tells once. */
static int fail_in_stream(struct rank *rank)
{
	uint64_t words[3] = {1, 2, 3}; /* one for each rank */
	struct wreath_stream *stream;
	int err = wreath_stream_create(&stream);
	int again;
	int i;

	for (i = 0; i < 20 && !err; i++)
		err = wreath_all_reduce(words, words,
					i == 10 ? (size_t)rank->rank + 1 : 1,
					WREATH_UINT64, WREATH_MAX, rank->comm,
					stream);
	/* The queue may see the failure before the last is put. */
	if (err && err != WREATH_EMISMATCH)
		return err;
	err = wreath_stream_wait(stream);
	if (err != WREATH_EMISMATCH)
		return rank_broken(rank, "the wait gave %d: %s", err,
				   wreath_error_text());
	if (!strstr(wreath_error_text(), "count"))
		return rank_broken(rank, "the text lacks the count: %s",
				   wreath_error_text());
	again = wreath_stream_wait(stream);
	if (again)
		return rank_broken(rank, "the error was told twice");
	again = wreath_all_reduce(words, words, 1, WREATH_UINT64, WREATH_MAX,
				  rank->comm, stream);
	if (again != WREATH_EMISMATCH)
		return rank_broken(rank, "a broken communicator took a call");
	again = wreath_stream_destroy(stream);
	if (again)
		return rank_broken(rank, "the destroy told it again");
	again = wreath_comm_destroy(rank->comm);
	rank->comm = NULL;
	return 0;
}

static void a_failure_in_a_stream_is_told_once(void **state)
{
	struct ranks run = {.n = 3, .body = fail_in_stream};

	(void)state;
	ranks_run(&run);
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

/* A communicator may go while the stream still has its operations. */
static int destroy_early(struct rank *rank)
{
	uint64_t words[100];
	struct wreath_stream *stream;
	int err = wreath_stream_create(&stream);
	int i;

	for (i = 0; i < 100; i++)
		words[i] = (uint64_t)(rank->rank + i);
	for (i = 0; i < 100 && !err; i++)
		err = wreath_all_reduce(&words[i], &words[i], 1, WREATH_UINT64,
					WREATH_MAX, rank->comm, stream);
	if (!err)
		err = wreath_comm_destroy(rank->comm);
	rank->comm = NULL;
	for (i = 0; i < 100 && !err; i++)
		if (words[i] != (uint64_t)(rank->n_ranks - 1 + i))
			err = rank_broken(rank, "operation %d was not done",
					  i);
	if (!err)
		err = wreath_stream_destroy(stream);
	return err;
}

static void destroying_waits_for_what_is_queued(void **state)
{
	struct ranks run = {.n = 3, .body = destroy_early};

	(void)state;
	ranks_run(&run);
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

static int misuse(struct rank *rank)
{
	struct wreath_stream *stream;
	int err = wreath_stream_create(&stream);

	if (err)
		return err;
	if (wreath_stream_create(NULL) != WREATH_EINVAL ||
	    wreath_stream_wait(NULL) != WREATH_EINVAL ||
	    wreath_stream_query(NULL) != WREATH_EINVAL ||
	    wreath_stream_destroy(NULL))
		return rank_broken(rank, "NULL was taken for a stream");
	/* An idle stream is done. */
	if (wreath_stream_query(stream) || wreath_stream_wait(stream))
		return rank_broken(rank, "an empty stream is not done: %s",
				   wreath_error_text());
	return wreath_stream_destroy(stream);
}

static void an_empty_stream_is_done(void **state)
{
	struct ranks run = {.n = 1, .body = misuse};

	(void)state;
	ranks_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_run_in_the_order_of_the_stream),
		cmocka_unit_test(a_full_stream_says_so_and_goes_on),
		cmocka_unit_test(a_failure_in_a_stream_is_told_once),
		cmocka_unit_test(destroying_waits_for_what_is_queued),
		cmocka_unit_test(an_empty_stream_is_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
