/* SPDX-License-Identifier: MIT */
/*
 * Goal: messages of a pair arrive whole, in order, and never more than the
 * window wait.  Method: all pairs at once, streams longer than the window,
 * wrong lengths, silent peers.
 */
#include "boot_ranks.h"

struct note {
	int from, to, number;
	unsigned char fill[52];
};

static int all_pairs(struct a_rank *rank)
{
	int n = rank->ranks->n;
	int number, peer;

	for (number = 0; number < 8; number++) {
		for (peer = 0; peer < n; peer++) {
			struct note note = {rank->rank, peer, number, {0}};

			if (boot_send(rank->boot, peer, &note, sizeof(note)))
				return 1;
		}
	}
	for (peer = n - 1; peer >= 0; peer--) {
		for (number = 0; number < 8; number++) {
			struct note note;

			if (boot_recv(rank->boot, peer, &note, sizeof(note)))
				return 2;
			if (note.from != peer || note.to != rank->rank ||
			    note.number != number)
				return 3;
		}
	}
	return 0;
}

static void run(int n, int (*body)(struct a_rank *rank), int64_t timeout_ms)
{
	static struct ranks ranks;
	int i;

	ranks_init(&ranks, n, body);
	for (i = 0; i < n; i++)
		ranks.rank[i].timeout_ms = timeout_ms;
	assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
	run_threads(&ranks, 0, n);
	all_were_good(&ranks);
}

static void any_pair_exchanges_in_order(void **state)
{
	int n;

	(void)state;
	for (n = 1; n <= 24; n = n < 8 ? n + 1 : n * 3)
		run(n, all_pairs, 20000);
}

/* Rank 0 sends faster than rank n-1 takes, and is told so. */
static int stream(struct a_rank *rank)
{
	int last = rank->ranks->n - 1;
	char record[BOOT_RECORD_MAX];
	int n_again = 0;
	int i;

	for (i = 0; rank->rank == 0 && i < 500; i++) {
		int err;

		memset(record, i, sizeof(record));
		while ((err = boot_send(rank->boot, last, record,
					sizeof(record))) == WREATH_EAGAIN) {
			n_again++;
			ms_sleep(1);
		}
		if (err)
			return 1;
	}
	if (rank->rank == last) {
		ms_sleep(100);
		for (i = 0; i < 500; i++) {
			if (boot_recv(rank->boot, 0, record, sizeof(record)))
				return 2;
			if (record[0] != (char)i || record[4095] != (char)i)
				return 3;
		}
	}
	if (rank->rank == 0 && !n_again)
		return 4;
	return boot_all_gather(rank->boot, NULL, 0, NULL);
}

static void a_stream_longer_than_the_window_is_held_back(void **state)
{
	(void)state;
	run(2, stream, 20000);
	run(9, stream, 20000);
}

static int wrong_length(struct a_rank *rank)
{
	int value = 5;
	char big[8];

	if (rank->rank == 0) {
		if (boot_send(rank->boot, 1, &value, sizeof(value)) ||
		    boot_send(rank->boot, 1, &value, sizeof(value)))
			return 1;
	} else {
		if (boot_recv(rank->boot, 0, big, sizeof(big)) !=
		    WREATH_EMISMATCH)
			return 2;
		if (!strstr(wreath_error_text(), "4 bytes"))
			return 3;
		/* The next one is not hurt. */
		value = 0;
		if (boot_recv(rank->boot, 0, &value, sizeof(value)) ||
		    value != 5)
			return 4;
	}
	return boot_all_gather(rank->boot, NULL, 0, NULL);
}

static void a_message_of_another_length_is_a_mismatch(void **state)
{
	(void)state;
	run(2, wrong_length, 20000);
}

static int nothing_comes(struct a_rank *rank)
{
	uint64_t start_ns = base_now_ns();
	int value;

	if (rank->rank == 2) {
		if (boot_recv(rank->boot, 1, &value, sizeof(value)) !=
		    WREATH_ETIMEOUT)
			return 1;
		if (!strstr(wreath_error_text(), "rank 1 (host "))
			return 2;
		if (ms_since(start_ns) < 190 || ms_since(start_ns) > 5000)
			return 3;
	} else {
		ms_sleep(220);
	}
	return boot_all_gather(rank->boot, NULL, 0, NULL);
}

static void a_silent_peer_is_named_at_the_deadline(void **state)
{
	(void)state;
	run(4, nothing_comes, 200);
}

/* Rank 0 is asked for one thing after the other, and never waited for. */
static int look_and_go_on(struct a_rank *rank)
{
	int want, got;

	if (rank->rank == 1) {
		if (boot_recv_now(rank->boot, 0, &got, sizeof(got)) !=
		    WREATH_EAGAIN)
			return 1;
		if (boot_send(rank->boot, 0, NULL, 0))
			return 2;
		for (want = 0; want < 200; want++) {
			int err;

			while ((err = boot_recv_now(rank->boot, 0, &got,
						    sizeof(got))) ==
			       WREATH_EAGAIN)
				ms_sleep(0);
			if (err || got != want)
				return 3;
		}
		if (boot_recv_now(rank->boot, 0, &got, sizeof(got)) !=
		    WREATH_EAGAIN)
			return 4;
	} else if (rank->rank == 0) {
		if (boot_recv(rank->boot, 1, NULL, 0))
			return 5;
		for (want = 0; want < 200; want++) {
			while (boot_send(rank->boot, 1, &want, sizeof(want)) ==
			       WREATH_EAGAIN)
				ms_sleep(1);
		}
	}
	return boot_all_gather(rank->boot, NULL, 0, NULL);
}

static void who_does_not_wait_gets_all_as_it_comes(void **state)
{
	(void)state;
	run(2, look_and_go_on, 20000);
	run(5, look_and_go_on, 20000);
}

static int bad_arguments(struct a_rank *rank)
{
	static char record[BOOT_RECORD_MAX + 1];

	if (boot_send(rank->boot, 3, record, 1) != WREATH_EINVAL ||
	    boot_send(rank->boot, -1, record, 1) != WREATH_EINVAL ||
	    boot_send(rank->boot, 0, record, 4097) != WREATH_EINVAL ||
	    boot_recv(rank->boot, 3, record, 1) != WREATH_EINVAL ||
	    boot_recv(rank->boot, 0, record, 4097) != WREATH_EINVAL ||
	    boot_recv_now(rank->boot, 3, record, 1) != WREATH_EINVAL)
		return 1;
	return 0;
}

static void bad_arguments_are_refused(void **state)
{
	(void)state;
	run(3, bad_arguments, 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_pair_exchanges_in_order),
		cmocka_unit_test(a_stream_longer_than_the_window_is_held_back),
		cmocka_unit_test(a_message_of_another_length_is_a_mismatch),
		cmocka_unit_test(a_silent_peer_is_named_at_the_deadline),
		cmocka_unit_test(who_does_not_wait_gets_all_as_it_comes),
		cmocka_unit_test(bad_arguments_are_refused),
	};

	alarm(60);
	return cmocka_run_group_tests_name("boot/message", tests, NULL, NULL);
}
