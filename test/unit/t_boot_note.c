/* SPDX-License-Identifier: MIT */
/*
 * Goal: notes come in order and apart from messages; a rank is answered by its
 * peer's thread whatever the peer does; and what must go on while a rank waits
 * goes on.
 * Method: ranks as threads, all pairs at once.
 */
#include <stdatomic.h>

#include "boot_ranks.h"

#define N_NOTES 20

struct word {
	int from, number;
};

static int take_all(struct a_rank *rank, int n_due)
{
	int next[MAX_RANKS] = {0};
	uint64_t start = base_now_ns();

	while (n_due && ms_since(start) < 10000) {
		struct word word;
		size_t bytes;
		int peer;

		if (!boot_note_take(rank->boot, &peer, &word, sizeof(word),
				    &bytes)) {
			ms_sleep(1);
			continue;
		}
		if (bytes != sizeof(word) || word.from != peer ||
		    word.number != next[peer]++)
			return 3;
		n_due--;
	}
	return n_due ? 4 : 0;
}

static int notes_of_all_pairs(struct a_rank *rank)
{
	int n = rank->ranks->n;
	int number, peer;

	for (number = 0; number < N_NOTES; number++) {
		struct word word = {rank->rank, number};

		for (peer = 0; peer < n; peer++) {
			if (peer == rank->rank)
				continue;
			if (boot_note_send(rank->boot, peer, &word,
					   sizeof(word)))
				return 1;
			if (!number && boot_send(rank->boot, peer, "m", 1))
				return 2;
		}
	}
	for (peer = 0; peer < n; peer++) {
		char m = 0;

		if (peer != rank->rank &&
		    (boot_recv(rank->boot, peer, &m, 1) || m != 'm'))
			return 5;
	}
	return take_all(rank, (n - 1) * N_NOTES) ||
	       boot_all_gather(rank->boot, NULL, 0, NULL);
}

static void run(int n, int (*body)(struct a_rank *rank))
{
	static struct ranks ranks;

	ranks_init(&ranks, n, body);
	assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
	run_threads(&ranks, 0, n);
	all_were_good(&ranks);
}

static void any_pair_sends_notes_in_order(void **state)
{
	(void)state;
	run(2, notes_of_all_pairs);
	run(7, notes_of_all_pairs);
}

static size_t answer(void *arg, const void *ask, size_t bytes, void *reply)
{
	struct word word = {*(int *)arg, 0};

	if (bytes != sizeof(word))
		return 0;
	word.number = ((const struct word *)ask)->number + 1;
	memcpy(reply, &word, sizeof(word));
	return sizeof(word);
}

static int ask_all(struct a_rank *rank)
{
	int n = rank->ranks->n;
	struct word ask = {0, -1};
	int peer;

	boot_answer_by(rank->boot, answer, &rank->rank);
	if (boot_all_gather(rank->boot, NULL, 0, NULL))
		return 1;
	/* A rank that looks at nothing answers all the same. */
	if (rank->rank) {
		ms_sleep(200);
	} else {
		for (peer = 1; peer < n; peer++)
			if (boot_ask(rank->boot, peer, &ask, sizeof(ask)) ||
			    boot_ask(rank->boot, peer, "short", 5))
				return 2;
		if (take_all(rank, n - 1))
			return 3;
	}
	/* Who has stopped answering is not called any more. */
	boot_answer_by(rank->boot, NULL, NULL);
	if (boot_all_gather(rank->boot, NULL, 0, NULL))
		return 4;
	if (!rank->rank && boot_ask(rank->boot, 1, &ask, sizeof(ask)))
		return 5;
	return boot_all_gather(rank->boot, NULL, 0, NULL);
}

static void who_is_asked_answers(void **state)
{
	(void)state;
	run(2, ask_all);
	run(6, ask_all);
}

static _Atomic int n_calls;

static int go_on(void *arg)
{
	(void)arg;
	atomic_fetch_add(&n_calls, 1);
	return 0;
}

static int give_up(void *arg)
{
	(void)arg;
	return base_error(WREATH_ENET, "enough");
}

static int wait_with(struct ranks *ranks, int rank,
		     int (*while_waiting)(void *arg), int64_t timeout_ms)
{
	struct boot_args args = {
		.id = &ranks->id,
		.rank = rank,
		.n_ranks = 2,
		.join_timeout_ms = 10000,
		.timeout_ms = timeout_ms,
		.while_waiting = while_waiting,
	};
	struct boot *boot;
	char byte;
	int err = boot_open(&args, &boot);

	if (err)
		return err;
	err = boot_recv(boot, !rank, &byte, 1);
	boot_close(boot);
	return err;
}

static void *silent_rank(void *arg)
{
	struct ranks *ranks = arg;

	/* It closes when the other has: nobody sends. */
	return (void *)(intptr_t)wait_with(ranks, 1, NULL, 3000);
}

static int wait_for_nothing(int (*while_waiting)(void *arg), int64_t ms)
{
	static struct ranks ranks;
	pthread_t thread;
	int err;

	ranks_init(&ranks, 2, NULL);
	assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
	assert_int_equal(pthread_create(&thread, NULL, silent_rank, &ranks),
			 0);
	err = wait_with(&ranks, 0, while_waiting, ms);
	pthread_join(thread, NULL);
	return err;
}

static void other_work_goes_on_while_a_rank_waits(void **state)
{
	(void)state;
	assert_int_equal(wait_for_nothing(go_on, 300), WREATH_ETIMEOUT);
	assert_true(atomic_load(&n_calls) >= 3);
	assert_int_equal(wait_for_nothing(give_up, 20000), WREATH_ENET);
	assert_string_equal(wreath_error_text(), "enough");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_pair_sends_notes_in_order),
		cmocka_unit_test(who_is_asked_answers),
		cmocka_unit_test(other_work_goes_on_while_a_rank_waits),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
