/* SPDX-License-Identifier: MIT */
/*
 * Goal: wreath_comm_abort() ends every call on every rank within a second,
 * wherever the ranks are, and the error stays.
 * Method: some ranks wait in calls that can never end, while another thread of
 * one of them, or a rank that is not in a call, aborts.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/loop/ranks.h"

#define DELAY_MS 100
#define BOUND 1.0 /* seconds from the abort, as wreath.h promises */

enum way {
	IN_A_SMALL_CALL,
	IN_A_BIG_CALL,
	IN_THE_FIRST_CALL,
	IN_A_STREAM,
	IN_FINALIZE,
};

static const char *const way_names[] = {
	"in a small call", "in a big call", "in the first call", "in a stream",
	"in finalize"};

static void *abort_soon(void *arg)
{
	struct rank *rank = arg;

	ranks_sleep_ms(DELAY_MS);
	wreath_comm_abort(rank->comm);
	return NULL;
}

static int wait_in_stream(struct rank *rank, float *words)
{
	struct wreath_stream *stream = NULL;
	int err = wreath_stream_create(&stream);
	int i;

	for (i = 0; i < 50 && !err; i++)
		err = wreath_all_reduce(words, words, 10, WREATH_FLOAT32,
					WREATH_SUM, rank->comm, stream);
	if (!err)
		err = wreath_stream_wait(stream);
	wreath_stream_destroy(stream);
	return err;
}

/* A call that ends by the abort alone: the last rank does not take part. */
static int wait_forever(struct rank *rank, enum way way)
{
	size_t count = way == IN_A_BIG_CALL ? 300000 : 10;
	float *words = calloc(count, sizeof(*words));
	int err;

	if (way == IN_A_STREAM)
		err = wait_in_stream(rank, words);
	else if (way == IN_FINALIZE)
		err = wreath_comm_finalize(rank->comm);
	else
		err = wreath_all_reduce(words, words, count, WREATH_FLOAT32,
					WREATH_SUM, rank->comm, NULL);
	free(words);
	return err;
}

static int watch(struct rank *rank)
{
	double end = ranks_now() + 5;
	int err = 0;

	while (!err && ranks_now() < end) {
		err = wreath_comm_async_error(rank->comm);
		ranks_sleep_ms(5);
	}
	return err;
}

static int check_aborted(struct rank *rank, int err, double start)
{
	double took = ranks_now() - start;
	float word = 0;
	char text[512];

	if (err != WREATH_EABORTED)
		return rank_broken(rank, "the call returned %s: %s",
				   wreath_error_name(err), wreath_error_text());
	if (!strstr(wreath_error_text(), "rank 0") ||
	    !strstr(wreath_error_text(), "abort"))
		return rank_broken(rank, "who aborted? '%s'",
				   wreath_error_text());
	if (took > DELAY_MS / 1000.0 + BOUND * (RANKS_SLOW ? 5 : 1))
		return rank_broken(rank, "it took %.2f s", took);
	snprintf(text, sizeof(text), "%s", wreath_error_text());
	start = ranks_now();
	err = wreath_all_reduce(&word, &word, 1, WREATH_FLOAT32, WREATH_SUM,
				rank->comm, NULL);
	if (err != WREATH_EABORTED || strcmp(text, wreath_error_text()))
		return rank_broken(rank, "the next call returned %s: %s",
				   wreath_error_name(err), wreath_error_text());
	if (wreath_comm_async_error(rank->comm) != WREATH_EABORTED)
		return rank_broken(rank, "the error did not stay");
	if (wreath_comm_finalize(rank->comm) != WREATH_EABORTED)
		return rank_broken(rank, "finalize succeeded");
	if (wreath_comm_abort(rank->comm) || wreath_comm_abort(rank->comm))
		return rank_broken(rank, "a second abort failed");
	err = wreath_comm_destroy(rank->comm);
	rank->comm = NULL;
	if (err && err != WREATH_EABORTED)
		return rank_broken(rank, "destroy returned %s",
				   wreath_error_name(err));
	if (ranks_now() - start > 2)
		return rank_broken(rank, "an aborted communicator took %.2f s "
					 "to end", ranks_now() - start);
	return 0;
}

static int abort_body(struct rank *rank)
{
	const enum way *way = rank->arg;
	bool takes_part = rank->rank < rank->n_ranks - 1;
	float word = 1;
	pthread_t thread;
	double start;
	int err = 0;

	if (*way != IN_THE_FIRST_CALL)
		err = wreath_all_reduce(&word, &word, 1, WREATH_FLOAT32,
					WREATH_SUM, rank->comm, NULL);
	if (err)
		return err;
	if (!rank_barrier(rank))
		return rank_broken(rank, "alone");
	start = ranks_now();
	if (!rank->rank &&
	    pthread_create(&thread, NULL, abort_soon, rank))
		return rank_broken(rank, "no thread");
	err = takes_part ? wait_forever(rank, *way) : watch(rank);
	if (!rank->rank)
		pthread_join(thread, NULL);
	return check_aborted(rank, err, start);
}

static void an_abort_ends_every_call_within_a_second(void **state)
{
	enum way way;
	int n;

	(void)state;
	for (way = IN_A_SMALL_CALL; way <= IN_FINALIZE; way++) {
		for (n = 2; n <= 4; n++) {
			struct ranks run = {
				.n = n, .body = abort_body, .arg = &way};

			run.mode = n % 2 ? RANKS_THREADS : RANKS_PROCESSES;
			printf("%s, %d ranks\n", way_names[way], n);
			ranks_run(&run);
		}
	}
}

/* Nobody is in a call: the abort is seen by asking, and by the next call. */
static int abort_idle(struct rank *rank)
{
	double start;

	if (!rank_barrier(rank))
		return rank_broken(rank, "alone");
	start = ranks_now() - DELAY_MS / 1000.0;
	if (!rank->rank && wreath_comm_abort(rank->comm))
		return rank_broken(rank, "the abort failed");
	return check_aborted(rank, watch(rank), start);
}

static void an_abort_reaches_idle_ranks(void **state)
{
	struct ranks run = {.n = 5, .body = abort_idle};

	(void)state;
	ranks_run(&run);
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

static void *fail_alone(void *arg)
{
	struct rank *rank = arg;

	/* This thread has not failed yet. */
	if (*wreath_error_text())
		return arg;
	if (wreath_mem_alloc(0, NULL) != WREATH_EINVAL ||
	    !strstr(wreath_error_text(), "wreath_mem_alloc"))
		return arg;
	if (wreath_comm_rank(rank->comm) != rank->rank)
		return arg;
	return NULL;
}

static int two_texts(struct rank *rank)
{
	char text[512];
	pthread_t thread;
	void *failed;

	if (wreath_stream_wait(NULL) != WREATH_EINVAL)
		return rank_broken(rank, "NULL is a stream");
	snprintf(text, sizeof(text), "%s", wreath_error_text());
	if (pthread_create(&thread, NULL, fail_alone, rank))
		return rank_broken(rank, "no thread");
	pthread_join(thread, &failed);
	if (failed)
		return rank_broken(rank, "the thread's text was not its own");
	if (strcmp(text, wreath_error_text()))
		return rank_broken(rank, "the thread changed our text");
	return 0;
}

static void every_thread_has_its_own_text(void **state)
{
	struct ranks run = {.n = 2, .body = two_texts};

	(void)state;
	ranks_run(&run);
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_abort_ends_every_call_within_a_second),
		cmocka_unit_test(an_abort_reaches_idle_ranks),
		cmocka_unit_test(every_thread_has_its_own_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
