/* SPDX-License-Identifier: MIT */
/*
 * Goal: leaving in peace is no death, is known to the others, and takes no way
 * from them.  Method: ranks of every place in the tree leave early, at once,
 * or one by one from a single thread; the rest go on talking.
 */
#include <stdatomic.h>

#include "boot_ranks.h"

/* The one that leaves, and how many have said that they saw it. */
static _Atomic int leaver;
static _Atomic int n_saw;

static int talk_past_the_leaver(struct a_rank *rank)
{
	struct boot_failure failure;
	int n = rank->ranks->n;
	int gone = atomic_load(&leaver);
	int value = rank->rank;
	int i, peer;

	if (rank->rank == gone)
		return 0;
	for (i = 0; i < 5000 && !boot_has_left(rank->boot, gone); i++)
		ms_sleep(1);
	if (!boot_has_left(rank->boot, gone))
		return 1;
	for (peer = 0; peer < n; peer++)
		if (peer != gone &&
		    boot_send(rank->boot, peer, &value, sizeof(value)))
			return 2;
	for (peer = 0; peer < n; peer++)
		if (peer != gone &&
		    (boot_recv(rank->boot, peer, &value, sizeof(value)) ||
		     value != peer))
			return 3;
	/* Who needs the one that left is told so, at once. */
	if (boot_send(rank->boot, gone, &value, sizeof(value)) !=
		    WREATH_EPEER ||
	    boot_recv(rank->boot, gone, &value, sizeof(value)) !=
		    WREATH_EPEER ||
	    !strstr(wreath_error_text(), "has left") ||
	    boot_all_gather(rank->boot, NULL, 0, NULL) != WREATH_EPEER)
		return 4;
	/* Nobody goes before all have seen that it is no failure. */
	atomic_fetch_add(&n_saw, 1);
	for (i = 0; i < 5000 && atomic_load(&n_saw) < n - 1; i++)
		ms_sleep(1);
	return boot_failure(rank->boot, &failure) ? 5 : 0;
}

static void others_talk_on_when_one_has_left(void **state)
{
	static struct ranks ranks;
	int gone;

	(void)state;
	for (gone = 0; gone < 8; gone++) {
		atomic_store(&leaver, gone);
		atomic_store(&n_saw, 0);
		ranks_init(&ranks, 8, talk_past_the_leaver);
		assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
		run_threads(&ranks, 0, 8);
		all_were_good(&ranks);
	}
}

static int leave_and_exit(struct a_rank *rank)
{
	struct boot_failure failure;
	int i;

	if (rank->rank == 1) {
		boot_close(rank->boot);
		exit(0);
	}
	for (i = 0; i < 5000 && !boot_has_left(rank->boot, 1); i++)
		ms_sleep(1);
	if (!boot_has_left(rank->boot, 1))
		return 1;
	/* Beyond the two seconds that the process of rank 1 lingers. */
	ms_sleep(2500);
	return boot_failure(rank->boot, &failure) ? 2 : 0;
}

static void a_process_that_left_and_ended_has_not_died(void **state)
{
	static struct ranks ranks;
	struct a_root root;
	uint64_t start_ns = base_now_ns();
	pid_t pids[7];
	int i;

	(void)state;
	ranks_init(&ranks, 7, leave_and_exit);
	root = fork_root(1, &ranks.id);
	for (i = 0; i < 7; i++)
		pids[i] = fork_rank(&ranks.rank[i]);
	assert_int_equal(wait_rank(pids[1]), 0);
	assert_true(ms_since(start_ns) < 8000);
	for (i = 0; i < 7; i++)
		if (i != 1)
			assert_int_equal(wait_rank(pids[i]), 0);
	end_root(root);
}

static int only_join(struct a_rank *rank)
{
	(void)rank;
	return 0;
}

static void all_leave_at_once_quickly(void **state)
{
	static struct ranks ranks;
	uint64_t start_ns = base_now_ns();
	int round;

	(void)state;
	for (round = 0; round < 20; round++) {
		ranks_init(&ranks, 16, only_join);
		assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
		run_threads(&ranks, 0, 16);
		all_were_good(&ranks);
	}
	print_message("20 times 16 ranks in %d ms\n", ms_since(start_ns));
	/* What slows a test down slows this down, too. */
	assert_true(getenv("TEST_UNDER") || ms_since(start_ns) < 10000);
}

static int keep_open(struct a_rank *rank)
{
	/* The main thread closes it. */
	rank->ranks->rank[rank->rank + 32].boot = rank->boot;
	rank->boot = NULL;
	return 0;
}

static void one_thread_closes_all_ranks(void **state)
{
	static struct ranks ranks;
	uint64_t start_ns;
	int n_fds, i;

	(void)state;
	ms_sleep(100);
	n_fds = count_fds();
	ranks_init(&ranks, 8, keep_open);
	assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
	run_threads(&ranks, 0, 8);
	all_were_good(&ranks);
	start_ns = base_now_ns();
	for (i = 0; i < 8; i++)
		boot_close(ranks.rank[i + 32].boot);
	assert_true(ms_since(start_ns) < 2000);
	assert_true(count_fds_until(n_fds) <= n_fds);
}

static int fork_and_close(struct a_rank *rank)
{
	pid_t pid;

	if (rank->rank)
		return boot_all_gather(rank->boot, NULL, 0, NULL);
	pid = fork();
	if (!pid) {
		/* A child's close is nobody's goodbye. */
		boot_close(rank->boot);
		_exit(0);
	}
	wait_rank(pid);
	return boot_all_gather(rank->boot, NULL, 0, NULL);
}

static void a_forked_child_may_close_without_harm(void **state)
{
	static struct ranks ranks;

	(void)state;
	ranks_init(&ranks, 3, fork_and_close);
	assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
	run_threads(&ranks, 0, 3);
	all_were_good(&ranks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_left_and_ended_has_not_died),
		cmocka_unit_test(others_talk_on_when_one_has_left),
		cmocka_unit_test(all_leave_at_once_quickly),
		cmocka_unit_test(one_thread_closes_all_ranks),
		cmocka_unit_test(a_forked_child_may_close_without_harm),
	};

	alarm(60);
	return cmocka_run_group_tests_name("boot/close", tests, NULL, NULL);
}
