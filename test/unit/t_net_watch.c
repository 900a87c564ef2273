/* SPDX-License-Identifier: MIT */
/*
 * Goal: what ranks ask and tell each other beside their queue pairs is checked,
 * and a queue pair that has gone silent is noticed.
 * Method: a pair of nets, see net_pair.h.
 */
#define _GNU_SOURCE
#include "net_pair.h"

static void what_others_write_is_checked(void **unused)
{
	struct net_note note = {.magic = NET_NOTE_MAGIC + 1,
				.kind = NET_NOTE_OFFER, .epoch = 1};
	char ask_text[sizeof(note)];
	char reply[128];

	(void)unused;
	put(0, &note, sizeof(note));
	assert_int_equal(net_mend(nets[0]), WREATH_ENET);
	note.magic = NET_NOTE_MAGIC;
	put(0, &note, sizeof(note) - 1);
	assert_int_equal(net_mend(nets[0]), WREATH_ENET);
	note.channel = NET_CHANNELS_MAX;
	put(0, &note, sizeof(note));
	assert_int_equal(net_mend(nets[0]), WREATH_ENET);
	note.channel = 0;
	note.epoch = 2;
	put(0, &note, sizeof(note));
	assert_int_equal(net_mend(nets[0]), WREATH_ENET);
	contains("out of step");
	note.epoch = 1;
	note.kind = NET_NOTE_READY;
	put(0, &note, sizeof(note));
	assert_int_equal(net_mend(nets[0]), WREATH_ENET);
	/* More has arrived than was sent. */
	note.kind = NET_NOTE_OFFER;
	note.arrived[1] = 1;
	put(0, &note, sizeof(note));
	assert_int_equal(poll_to_the_end(), WREATH_ENET);
	contains("has arrived");
	memcpy(ask_text, &note, sizeof(note));
	assert_int_equal(net_answer(nets[0], ask_text, sizeof(note), reply), 0);
	assert_int_equal(net_answer(nets[0], ask_text, 3, reply), 0);
}

static void a_peer_is_asked_by_a_note(void **unused)
{
	const struct net_sign mine = {.seq = 5, .count = 3, .type = 10};
	struct net_sign got;

	(void)unused;
	net_sign_post(nets[1], &mine);
	assert_int_equal(net_sign_read(conns[0], 5, 1000, &got), 0);
	assert_memory_equal(&got, &mine, sizeof(mine));
	assert_int_equal(net_sign_read(conns[0], 6, 20, &got), WREATH_EAGAIN);
	break_qp(0);
	assert_int_equal(net_sign_read(conns[0], 5, 1000, &got), 0);
	poll_until_mended();
}

static void silence_is_noticed(void **unused)
{
	uint64_t end = base_now_ns() + SECONDS * 1000000000ull;

	(void)unused;
	/* A port that came up again: whoever watches puts it to the test. */
	conns[0]->port->n_flaps++;
	nets[0]->watch_ns = 0;
	assert_int_equal(net_watch(nets[0]), 0);
	assert_true(conns[0]->mend->probe_until_ns);
	while (conns[0]->mend->probe_until_ns) {
		assert_true(base_now_ns() < end);
		poll_both();
		assert_int_equal(net_watch(nets[0]), 0);
	}
	assert_false(conns[0]->is_mending);
	/* One that is never answered. */
	conns[0]->mend->probe = conns[0]->n_posted + 1;
	conns[0]->mend->probe_until_ns = base_now_ns();
	nets[0]->watch_ns = 0;
	assert_int_equal(net_watch(nets[0]), 0);
	assert_true(conns[0]->is_mending);
	poll_until_mended();
	assert_int_equal(conns[0]->mend->epoch, 1);
}

static void ranks_of_a_host_tell_each_other(void **unused)
{
	struct net_failure *failure;
	char long_text[4000];
	int err;

	(void)unused;
	memset(long_text, 'x', sizeof(long_text));
	long_text[sizeof(long_text) - 1] = 0;
	net_fail_tell(nets[0], WREATH_EPEER, "rank 0 knows\033 why");
	/* Not mapped here: nothing is told. */
	assert_int_equal(net_fail_heard(nets[1]), 0);
	conns[0]->mailbox_map = conns[1]->mailbox;
	net_fail_tell(nets[0], WREATH_EPEER, "told once");
	assert_int_equal(net_fail_heard(nets[1]), 0);
	nets[0]->has_told = false;
	net_fail_tell(nets[0], WREATH_EPEER, "rank 0 knows\033 why");
	/* What boot says is better. */
	assert_int_equal(net_fail_heard(nets[1]), 0);
	nets[1]->heard_ns -= 1000000000u;
	assert_int_equal(net_fail_heard(nets[1]), WREATH_EPEER);
	assert_string_equal(wreath_error_text(), "rank 0 knows? why");
	nets[0]->has_told = false;
	net_fail_tell(nets[0], WREATH_EPEER, long_text);
	assert_int_equal(net_fail_heard(nets[1]), WREATH_EPEER);
	/* It is memory that others write. */
	failure = (void *)(conns[1]->mailbox + NET_BOX_FAILURE);
	memset(failure->text, 'y', sizeof(failure->text));
	failure->error = UINT64_MAX;
	err = net_fail_heard(nets[1]);
	assert_int_equal(err, WREATH_ENET);
	assert_int_equal(strlen(wreath_error_text()),
			 sizeof(failure->text) - 1);
	conns[0]->mailbox_map = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_others_write_is_checked,
						open_pair, close_pair),
		cmocka_unit_test_setup_teardown(a_peer_is_asked_by_a_note,
						open_pair, close_pair),
		cmocka_unit_test_setup_teardown(silence_is_noticed, open_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(ranks_of_a_host_tell_each_other,
						open_pair, close_pair),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
