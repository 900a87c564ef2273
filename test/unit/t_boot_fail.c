/* SPDX-License-Identifier: MIT */
/*
 * Goal: a failure, and the death of any rank, is known to every other rank,
 * with the culprit named, within 2 s; the first one stays.  Method: each rank
 * in turn fails, is killed, or exits without a goodbye, in trees of one to
 * three levels.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "boot_ranks.h"

/* What a rank saw, where the parent can read it. */
struct seen {
	_Atomic int n_ready;
	_Atomic int go;
	struct {
		struct boot_failure failure;
		uint64_t at_ns;
		int host_pid;
		_Atomic int n_calls;
	} rank[MAX_RANKS];
};

static struct seen *seen;

static void count_call(void *arg)
{
	struct a_rank *rank = arg;

	atomic_fetch_add(&seen->rank[rank->rank].n_calls, 1);
}

/* Until the failure: true when one came within 10 s. */
static bool see_failure(struct a_rank *rank)
{
	struct boot_failure failure;
	int i;

	for (i = 0; i < 10000; i++) {
		if (boot_failure(rank->boot, &failure)) {
			seen->rank[rank->rank].at_ns = base_now_ns();
			seen->rank[rank->rank].failure = failure;
			return true;
		}
		ms_sleep(1);
	}
	return false;
}

static int watch(struct a_rank *rank)
{
	int i;

	atomic_fetch_add(&seen->n_ready, 1);
	if (!see_failure(rank))
		return 1;
	for (i = 0; i < 1000 && !atomic_load(&seen->rank[rank->rank].n_calls);
	     i++)
		ms_sleep(1);
	return 0;
}

static int fail_or_watch(struct a_rank *rank)
{
	const int *who = rank->ranks->arg;

	if (rank->rank == *who) {
		ms_sleep(20);
		boot_fail(rank->boot, WREATH_ENET, 0, "the cat has the cable");
	}
	if (watch(rank))
		return 1;
	/* Later ones change nothing, and waiting calls return it. */
	boot_fail(rank->boot, WREATH_EDEVICE, 0, "another");
	if (boot_all_gather(rank->boot, NULL, 0, NULL) != WREATH_ENET ||
	    strcmp(wreath_error_text(), "the cat has the cable"))
		return 2;
	if (boot_recv(rank->boot, 0, NULL, 0) != WREATH_ENET ||
	    boot_send(rank->boot, 0, NULL, 0) != WREATH_ENET)
		return 3;
	return see_failure(rank) ? 0 : 4;
}

static void a_failure_reaches_all_and_stays(void **state)
{
	static const int numbers[] = {1, 2, 5, 22};
	static struct ranks ranks;
	size_t n;
	int who, i;

	(void)state;
	for (n = 0; n < base_countof(numbers); n++) {
		for (who = 0; who < numbers[n]; who += 1 + numbers[n] / 8) {
			memset(seen, 0, sizeof(*seen));
			ranks_init(&ranks, numbers[n], fail_or_watch);
			ranks.arg = &who;
			for (i = 0; i < numbers[n]; i++)
				ranks.rank[i].on_failure = count_call;
			assert_int_equal(boot_root_start("lo", 1, &ranks.id),
					 0);
			run_threads(&ranks, 0, numbers[n]);
			all_were_good(&ranks);
			for (i = 0; i < numbers[n]; i++) {
				assert_int_equal(seen->rank[i].failure.culprit,
						 0);
				assert_int_equal(seen->rank[i].n_calls, 1);
			}
		}
	}
}

static int blocked_in_gather(struct a_rank *rank)
{
	char byte = 0;
	char all[MAX_RANKS];

	if (rank->rank == 1) {
		ms_sleep(50);
		boot_fail(rank->boot, WREATH_EABORTED, 1, "stop");
		return 0;
	}
	if (rank->rank == 2)
		return boot_recv(rank->boot, 3, &byte, 1) != WREATH_EABORTED;
	return boot_all_gather(rank->boot, &byte, 1, all) != WREATH_EABORTED;
}

static void waiting_calls_return_at_a_failure(void **state)
{
	static struct ranks ranks;
	uint64_t start_ns = base_now_ns();

	(void)state;
	ranks_init(&ranks, 9, blocked_in_gather);
	assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
	run_threads(&ranks, 0, 9);
	all_were_good(&ranks);
	assert_true(ms_since(start_ns) < 3000);
}

static int wait_ready(int n)
{
	int i;

	for (i = 0; i < 20000 && atomic_load(&seen->n_ready) < n; i++)
		ms_sleep(1);
	return atomic_load(&seen->n_ready);
}

static void kill_one(int n, int victim, int signal)
{
	static struct ranks ranks;
	struct a_root root;
	pid_t pids[MAX_RANKS];
	char want[64];
	uint64_t killed_ns;
	int i;

	memset(seen, 0, sizeof(*seen));
	ranks_init(&ranks, n, watch);
	root = fork_root(1, &ranks.id);
	for (i = 0; i < n; i++) {
		ranks.rank[i].on_failure = count_call;
		pids[i] = fork_rank(&ranks.rank[i]);
	}
	assert_int_equal(wait_ready(n), n);
	killed_ns = base_now_ns();
	kill(pids[victim], signal);
	snprintf(want, sizeof(want), "rank %d (host ", victim);
	for (i = 0; i < n; i++) {
		const struct boot_failure *failure = &seen->rank[i].failure;
		int status = wait_rank(pids[i]);

		if (i == victim) {
			assert_int_equal(status, 256 + signal);
			continue;
		}
		assert_int_equal(status, 0);
		if (failure->culprit != victim)
			print_error("rank %d: %s\n", i, failure->text);
		assert_int_equal(failure->error, WREATH_EPEER);
		assert_int_equal(failure->culprit, victim);
		assert_has(failure->text, want);
		assert_has(failure->text, "died");
		assert_int_equal(seen->rank[i].n_calls, 1);
		assert_true(seen->rank[i].at_ns - killed_ns < 2000000000u);
	}
	snprintf(want, sizeof(want), "pid %d)", (int)pids[victim]);
	assert_has(seen->rank[!victim].failure.text, want);
	end_root(root);
}

static void the_death_of_any_rank_is_known_to_all(void **state)
{
	int victim;

	(void)state;
	for (victim = 0; victim < 2; victim++)
		kill_one(2, victim, SIGKILL);
	for (victim = 0; victim < 7; victim++)
		kill_one(7, victim, SIGKILL);
	/* 24 ranks: 1 and 7 are inner, 23 a leaf of the third level. */
	kill_one(24, 1, SIGKILL);
	kill_one(24, 7, SIGKILL);
	kill_one(24, 23, SIGTERM);
}

/* A parent's child must not keep the parent's connections alive. */
static int fork_and_watch(struct a_rank *rank)
{
	if (rank->rank == 1 && !fork()) {
		int i;

		for (i = 0; i < 5000 && !atomic_load(&seen->go); i++)
			ms_sleep(1);
		_exit(0);
	}
	return watch(rank);
}

static void a_forked_child_does_not_hide_a_death(void **state)
{
	static struct ranks ranks;
	struct a_root root;
	pid_t pids[3];
	uint64_t killed_ns;
	int i;

	(void)state;
	memset(seen, 0, sizeof(*seen));
	ranks_init(&ranks, 3, fork_and_watch);
	root = fork_root(1, &ranks.id);
	for (i = 0; i < 3; i++) {
		ranks.rank[i].on_failure = count_call;
		pids[i] = fork_rank(&ranks.rank[i]);
	}
	assert_int_equal(wait_ready(3), 3);
	killed_ns = base_now_ns();
	kill(pids[1], SIGKILL);
	for (i = 0; i < 3; i++)
		wait_rank(pids[i]);
	atomic_store(&seen->go, 1);
	for (i = 0; i < 3; i += 2) {
		assert_int_equal(seen->rank[i].failure.culprit, 1);
		assert_true(seen->rank[i].at_ns - killed_ns < 2000000000u);
	}
	end_root(root);
}

static int exit_early(struct a_rank *rank)
{
	if (rank->rank == 1)
		_exit(0);
	return watch(rank);
}

static void exit_without_goodbye_is_a_death(void **state)
{
	static struct ranks ranks;
	struct a_root root;
	pid_t pids[6];
	int i;

	(void)state;
	memset(seen, 0, sizeof(*seen));
	ranks_init(&ranks, 6, exit_early);
	root = fork_root(1, &ranks.id);
	for (i = 0; i < 6; i++) {
		ranks.rank[i].on_failure = count_call;
		pids[i] = fork_rank(&ranks.rank[i]);
	}
	for (i = 0; i < 6; i++)
		assert_int_equal(wait_rank(pids[i]), 0);
	for (i = 0; i < 6; i++)
		if (i != 1)
			assert_int_equal(seen->rank[i].failure.culprit, 1);
	end_root(root);
}

/* SIGSTOP is no death: what was sent arrives when the rank goes on. */
static int gather_slowly(struct a_rank *rank)
{
	int value = rank->rank;
	int all[MAX_RANKS];

	atomic_fetch_add(&seen->n_ready, 1);
	while (!atomic_load(&seen->go))
		ms_sleep(1);
	return boot_all_gather(rank->boot, &value, sizeof(value), all);
}

static void a_stopped_rank_is_waited_for(void **state)
{
	static struct ranks ranks;
	struct a_root root;
	pid_t pids[6];
	int i;

	(void)state;
	memset(seen, 0, sizeof(*seen));
	ranks_init(&ranks, 6, gather_slowly);
	root = fork_root(1, &ranks.id);
	for (i = 0; i < 6; i++)
		pids[i] = fork_rank(&ranks.rank[i]);
	assert_int_equal(wait_ready(6), 6);
	kill(pids[1], SIGSTOP);
	atomic_store(&seen->go, 1);
	ms_sleep(700);
	kill(pids[1], SIGCONT);
	for (i = 0; i < 6; i++)
		assert_int_equal(wait_rank(pids[i]), 0);
	end_root(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_death_of_any_rank_is_known_to_all),
		cmocka_unit_test(a_forked_child_does_not_hide_a_death),
		cmocka_unit_test(exit_without_goodbye_is_a_death),
		cmocka_unit_test(a_stopped_rank_is_waited_for),
		cmocka_unit_test(waiting_calls_return_at_a_failure),
		cmocka_unit_test(a_failure_reaches_all_and_stays),
	};

	alarm(60);
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests_name("boot/fail", tests, NULL, NULL);
}
