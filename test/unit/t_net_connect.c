/* SPDX-License-Identifier: MIT */
/*
 * Goal: two ranks are connected by librdmacm whoever comes first, talk, and
 * leave nothing behind; who does not come is named within the deadline, and a
 * failure elsewhere ends the wait.
 * Method: two ranks over a real device, each in its own thread, at the same
 * time, late, and never.  Without a device, skipped.
 */
#define _GNU_SOURCE
#include "net_sides.h"

static int n_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void ranks_are_connected_and_nothing_is_left(void **state)
{
	int before = 0;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		connect_both();
		talk();
		close_both();
		/* The first time leaves what the libraries keep. */
		if (i)
			assert_int_equal(n_files(), before);
		before = n_files();
	}
}

static void silent_peer_is_named_within_the_deadline(void **state)
{
	uint64_t start_ns;
	int i;

	(void)state;
	/* Who asks a rank that does not answer, and who is not asked. */
	for (i = 0; i < 2; i++) {
		open_both();
		sides[i].timeout_ms = 700;
		start_ns = base_now_ns();
		start(&sides[i]);
		finish(&sides[i]);
		assert_true(base_now_ns() - start_ns < 3000000000ull);
		assert_int_equal(sides[i].err, WREATH_ENET);
		assert_non_null(strstr(sides[i].text, names[!i]));
		close_both();
	}
}

static void who_begins_late_is_connected_all_the_same(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		open_both();
		start(&sides[i]);
		base_sleep_ms(800);
		start(&sides[!i]);
		finish(&sides[0]);
		finish(&sides[1]);
		expect_connected();
		talk();
		close_both();
	}
}

static int stop_at_once(void *arg)
{
	int *n = arg;

	return ++*n > 3 ? WREATH_EABORTED : 0;
}

static void wait_ends_when_it_is_stopped(void **state)
{
	uint64_t start_ns = base_now_ns();
	int n = 0;

	(void)state;
	open_both();
	assert_int_equal(net_connect(sides[0].net, 20000, stop_at_once, &n),
			 WREATH_EABORTED);
	assert_true(base_now_ns() - start_ns < 5000000000ull);
	close_both();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_are_connected_and_nothing_is_left),
		cmocka_unit_test(silent_peer_is_named_within_the_deadline),
		cmocka_unit_test(who_begins_late_is_connected_all_the_same),
		cmocka_unit_test(wait_ends_when_it_is_stopped),
	};
	int status = sides_init();

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
