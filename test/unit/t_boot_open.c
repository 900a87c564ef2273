/* SPDX-License-Identifier: MIT */
/*
 * Goal: ranks find each other, and nothing of it stays behind.  Method: join
 * for every small number of ranks and for 64, as threads and as processes, and
 * count descriptors.
 */
#include <sys/resource.h>

#include "boot_ranks.h"

static int knows_everybody(struct a_rank *rank)
{
	char host[64] = "";
	int i;

	gethostname(host, sizeof(host) - 1);
	for (i = 0; i < rank->ranks->n; i++)
		if (strcmp(boot_rank(rank->boot, i)->host, host) ||
		    boot_rank(rank->boot, i)->pid < 1)
			return 1;
	return boot_rank(rank->boot, rank->rank)->pid != (int)getpid();
}

static void join(int n)
{
	static struct ranks ranks;

	ranks_init(&ranks, n, knows_everybody);
	assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
	run_threads(&ranks, 0, n);
	all_were_good(&ranks);
}

static void any_number_of_threads_join(void **state)
{
	int n;

	(void)state;
	for (n = 1; n <= 16; n++)
		join(n);
}

static void sixty_four_threads_join_in_a_second(void **state)
{
	uint64_t start_ns = base_now_ns();

	(void)state;
	join(64);
	print_message("64 ranks came and went in %d ms\n", ms_since(start_ns));
	/* Other builders share the machine: far from the usual 100 ms. */
	assert_true(ms_since(start_ns) < 5000);
}

static void processes_join(void **state)
{
	static struct ranks ranks;
	struct a_root root;
	pid_t pids[16];
	int n, i;

	(void)state;
	for (n = 2; n <= 16; n += 7) {
		ranks_init(&ranks, n, knows_everybody);
		root = fork_root(1, &ranks.id);
		for (i = 0; i < n; i++)
			pids[i] = fork_rank(&ranks.rank[i]);
		for (i = 0; i < n; i++)
			assert_int_equal(wait_rank(pids[i]), 0);
		end_root(root);
	}
}

static void one_rank_needs_no_socket(void **state)
{
	static struct ranks ranks;
	unsigned char in[3] = {1, 2, 3};
	unsigned char out[3] = {0};
	struct a_rank *rank = &ranks.rank[0];
	int n_fds;

	(void)state;
	ranks_init(&ranks, 1, NULL);
	n_fds = count_fds();
	assert_int_equal(rank_open(rank), 0);
	assert_int_equal(count_fds(), n_fds);
	assert_int_equal(boot_all_gather(rank->boot, in, 3, out), 0);
	assert_memory_equal(in, out, 3);
	memset(out, 0, 3);
	assert_int_equal(boot_send(rank->boot, 0, in, 3), 0);
	assert_int_equal(boot_recv(rank->boot, 0, out, 3), 0);
	assert_memory_equal(in, out, 3);
	boot_close(rank->boot);
	boot_close(NULL);
}

static void a_root_makes_many_communicators(void **state)
{
	static struct ranks ranks;
	int round;

	(void)state;
	ranks_init(&ranks, 5, knows_everybody);
	assert_int_equal(boot_root_start("lo", 0, &ranks.id), 0);
	for (round = 0; round < 5; round++) {
		run_threads(&ranks, 0, 5);
		all_were_good(&ranks);
	}
}

static void descriptors_do_not_leak(void **state)
{
	int n_fds, round;

	(void)state;
	join(3);
	/* The root without end of an earlier test stays open, and counts. */
	ms_sleep(200);
	n_fds = count_fds();
	for (round = 0; round < 100; round++)
		join(3);
	assert_true(count_fds_until(n_fds) <= n_fds);
}

static int gather_and_talk(struct a_rank *rank)
{
	int n = rank->ranks->n;
	int value = rank->rank;
	int all[MAX_RANKS];
	int err = boot_all_gather(rank->boot, &value, sizeof(value), all);

	if (!err)
		err = boot_send(rank->boot, (rank->rank + 1) % n, &value,
				sizeof(value));
	if (!err)
		err = boot_recv(rank->boot, (rank->rank + n - 1) % n, &value,
				sizeof(value));
	return err;
}

/* In a child: everything, with the @nth allocation failing; any result. */
static void join_without_memory(uint64_t nth)
{
	static struct ranks ranks;
	bool all_good = true;
	int n_fds = count_fds();
	int i;

	ranks_init(&ranks, 3, gather_and_talk);
	for (i = 0; i < 3; i++) {
		ranks.rank[i].join_ms = 500;
		ranks.rank[i].timeout_ms = 500;
	}
	base_alloc_fail_at(nth);
	if (boot_root_start("lo", 1, &ranks.id))
		exit(strstr(wreath_error_text(), "no memory") ? 10 : 3);
	run_threads(&ranks, 0, 3);
	base_alloc_fail_at(0);
	for (i = 0; i < 3; i++)
		all_good &= !ranks.rank[i].result;
	/* A root whose ranks never came ends after its time. */
	if (count_fds_until(n_fds) > n_fds)
		exit(4);
	exit(all_good ? 0 : 10);
}

/* It is too slow for dozens of processes, and has descriptors of its own. */
static bool runs_under_valgrind(void)
{
	const char *under = getenv("TEST_UNDER");

	return under && !strcmp(under, "valgrind");
}

static void every_failed_allocation_is_an_error(void **state)
{
	pid_t pids[24];
	int batch, i;

	(void)state;
	if (runs_under_valgrind())
		skip();
	/* Three ranks, a root and their frames: about 60 allocations. */
	for (batch = 0; batch < 4; batch++) {
		int n_good = 0;

		for (i = 0; i < 24; i++) {
			pids[i] = fork();
			if (!pids[i]) {
				alarm(20);
				setenv("WREATH_JOIN_TIMEOUT", "1s", 1);
				join_without_memory(
					(uint64_t)(batch * 24 + i + 1));
			}
		}
		for (i = 0; i < 24; i++) {
			int status = wait_rank(pids[i]);

			assert_true(status == 0 || status == 10);
			n_good += !status;
		}
		/* Beyond the last one there is nothing left to fail. */
		if (batch == 3)
			assert_int_equal(n_good, 24);
	}
}

/* In a child: a root and two ranks with @n_more descriptors; any result. */
static void join_with_few_descriptors(int n_more)
{
	static struct ranks ranks;
	struct rlimit limit;
	int i;

	ranks_init(&ranks, 2, gather_and_talk);
	for (i = 0; i < 2; i++) {
		ranks.rank[i].join_ms = 400;
		ranks.rank[i].timeout_ms = 400;
	}
	limit.rlim_cur = limit.rlim_max = (rlim_t)(count_fds() - 3 + n_more);
	if (setrlimit(RLIMIT_NOFILE, &limit))
		_exit(2);
	if (boot_root_start("lo", 1, &ranks.id))
		_exit(wreath_error_text()[0] ? 10 : 3);
	run_threads(&ranks, 0, 2);
	for (i = 0; i < 2; i++) {
		if (ranks.rank[i].result)
			_exit(10);
	}
	_exit(0);
}

static void too_few_descriptors_are_an_error(void **state)
{
	pid_t pids[30];
	int n_good = 0;
	int i;

	(void)state;
	if (runs_under_valgrind())
		skip();
	for (i = 0; i < 30; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			alarm(20);
			join_with_few_descriptors(i);
		}
	}
	for (i = 0; i < 30; i++) {
		int status = wait_rank(pids[i]);

		assert_true(status == 0 || status == 10);
		n_good += !status;
	}
	assert_in_range(n_good, 5, 25);
}

static void arguments_out_of_range_are_named(void **state)
{
	static struct ranks ranks;
	static const struct {
		int rank, n_ranks;
		const char *text;
	} rows[] = {
		{-1, 4, "rank -1 is not in [0, 4)"},
		{4, 4, "rank 4 is not in [0, 4)"},
		{0, 0, "0 ranks are asked for"},
		{0, -3, "-3 ranks are asked for"},
		{0, 65537, "65537 ranks are asked for"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(rows); i++) {
		struct a_rank *rank = &ranks.rank[0];

		ranks_init(&ranks, 1, NULL);
		rank->says_rank = rows[i].rank;
		rank->says_n_ranks = rows[i].n_ranks;
		assert_int_equal(rank_open(rank), WREATH_EINVAL);
		assert_has(rank->text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_join),
		cmocka_unit_test(too_few_descriptors_are_an_error),
		cmocka_unit_test(every_failed_allocation_is_an_error),
		cmocka_unit_test(one_rank_needs_no_socket),
		cmocka_unit_test(any_number_of_threads_join),
		cmocka_unit_test(sixty_four_threads_join_in_a_second),
		cmocka_unit_test(a_root_makes_many_communicators),
		cmocka_unit_test(descriptors_do_not_leak),
		cmocka_unit_test(arguments_out_of_range_are_named),
	};

	alarm(60);
	return cmocka_run_group_tests_name("boot/open", tests, NULL, NULL);
}
