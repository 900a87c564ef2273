/* SPDX-License-Identifier: MIT */
/*
 * Goal: ranks that disagree, repeat themselves or stay away are named to all
 * who came.  Method: make each mistake, read every rank's message.
 */
#include <endian.h>

#include "boot/auth.h"
#include "boot/sock.h"
#include "boot_ranks.h"

static struct ranks ranks;

static void start(int n, int n_rounds)
{
	ranks_init(&ranks, n, NULL);
	assert_int_equal(boot_root_start("lo", n_rounds, &ranks.id), 0);
}

static void missing_ranks_are_named_at_the_deadline(void **state)
{
	uint64_t start_ns = base_now_ns();
	int i;

	(void)state;
	start(4, 1);
	for (i = 0; i < 4; i++)
		ranks.rank[i].join_ms = 300;
	/* Seats 1 and 3 stay empty. */
	ranks.rank[1].says_rank = 2;
	run_threads(&ranks, 0, 2);
	for (i = 0; i < 2; i++) {
		assert_int_equal(ranks.rank[i].result, WREATH_ETIMEOUT);
		assert_has(ranks.rank[i].text, "2 of 4 ranks came within");
		assert_has(ranks.rank[i].text, "; missing: 1, 3");
	}
	assert_true(ms_since(start_ns) < 1500);
}

static void long_lists_of_missing_ranks_are_ranges(void **state)
{
	(void)state;
	start(4, 1);
	ranks.rank[0].says_n_ranks = 2000;
	ranks.rank[0].says_rank = 7;
	ranks.rank[0].join_ms = 100;
	run_threads(&ranks, 0, 1);
	assert_has(ranks.rank[0].text, "missing: 0-6, 8-1999");
}

static void a_rank_claimed_twice_is_told_to_all(void **state)
{
	int i;

	(void)state;
	start(5, 1);
	ranks.rank[4].says_rank = 3;
	run_threads(&ranks, 0, 5);
	for (i = 0; i < 5; i++) {
		assert_int_equal(ranks.rank[i].result, WREATH_EINVAL);
		assert_has(ranks.rank[i].text,
			   "rank 3 was claimed twice: by host ");
	}
}

static void latecomers_hear_what_has_failed(void **state)
{
	(void)state;
	start(5, 1);
	ranks.rank[4].says_rank = 3;
	run_threads(&ranks, 3, 2);
	run_threads(&ranks, 0, 1);
	assert_int_equal(ranks.rank[0].result, WREATH_EINVAL);
	assert_has(ranks.rank[0].text, "rank 3 was claimed twice");
}

static void different_numbers_of_ranks_are_told_to_all(void **state)
{
	int i;

	(void)state;
	start(4, 1);
	ranks.rank[2].says_n_ranks = 5;
	run_threads(&ranks, 0, 4);
	for (i = 0; i < 4; i++) {
		assert_int_equal(ranks.rank[i].result, WREATH_EINVAL);
		assert_has(ranks.rank[i].text, "disagree about their number");
		assert_has(ranks.rank[i].text, "rank 2 (host ");
		assert_has(ranks.rank[i].text, "says 5");
		assert_has(ranks.rank[i].text, "says 4");
	}
}

static void different_settings_are_told_to_all(void **state)
{
	int i;

	(void)state;
	start(3, 1);
	for (i = 0; i < 3; i++)
		ranks.rank[i].config = i == 1 ? "slots=8" : "slots=4";
	run_threads(&ranks, 0, 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(ranks.rank[i].result, WREATH_EMISMATCH);
		assert_has(ranks.rank[i].text, "'slots=4'");
		assert_has(ranks.rank[i].text, "'slots=8'");
	}
}

static void another_secret_is_no_way_in(void **state)
{
	struct boot_id id;
	uint64_t start_ns = base_now_ns();

	(void)state;
	start(2, 1);
	assert_int_equal(boot_id_decode(&ranks.id, &id), 0);
	id.secret[31] ^= 1;
	boot_id_encode(&id, &ranks.id);
	run_threads(&ranks, 0, 1);
	assert_int_equal(ranks.rank[0].result, WREATH_EINVAL);
	assert_has(ranks.rank[0].text, "another secret");
	assert_true(ms_since(start_ns) < 1000);
	/* The real ones are not disturbed. */
	id.secret[31] ^= 1;
	boot_id_encode(&id, &ranks.id);
	run_threads(&ranks, 0, 2);
	all_were_good(&ranks);
}

static void a_root_that_is_not_there_is_named(void **state)
{
	struct boot_id id = {.n_addrs = 1, .n_ports = 1};
	struct boot_addr bound;
	int fd;

	(void)state;
	ranks_init(&ranks, 2, NULL);
	id.addrs[0] = (struct boot_addr){.family = 4, .ip = {127, 0, 0, 1}};
	/* A port that was free a moment ago. */
	fd = boot_sock_listen(&id.addrs[0], 1, &bound);
	boot_sock_close(&fd);
	id.addrs[0] = bound;
	boot_id_encode(&id, &ranks.id);
	ranks.rank[1].join_ms = 200;
	run_threads(&ranks, 1, 1);
	assert_int_equal(ranks.rank[1].result, WREATH_ETIMEOUT);
	assert_has(ranks.rank[1].text,
		   "rank 1 got no connection to the root at 127.0.0.1:");
	assert_has(ranks.rank[1].text, "within 200 ms (Connection refused)");
}

static void a_round_after_a_failed_one_is_made(void **state)
{
	(void)state;
	start(3, 0);
	ranks.rank[1].says_rank = 0;
	run_threads(&ranks, 0, 2);
	assert_int_equal(ranks.rank[1].result, WREATH_EINVAL);
	ranks.rank[1].says_rank = 1;
	/* Ranks 1 and 2 have not heard of the failure yet. */
	run_threads(&ranks, 1, 2);
	assert_int_equal(ranks.rank[1].result, WREATH_EINVAL);
	assert_int_equal(ranks.rank[2].result, WREATH_EINVAL);
	run_threads(&ranks, 0, 3);
	all_were_good(&ranks);
}

/* ---- a member by hand ---- */

/* An authenticated connection to the root, and what it answers to @join. */
static int say(const struct boot_join_wire *join, char *text, size_t bytes)
{
	static const unsigned char no_token[BOOT_TOKEN_BYTES];
	unsigned char out[BOOT_HEAD_BYTES + sizeof(*join)];
	struct boot_head head = {.type = BOOT_JOIN, .bytes = sizeof(*join)};
	unsigned char in[BOOT_HEAD_BYTES + BOOT_TEXT_BYTES] = {0};
	uint64_t deadline_ns = base_now_ns() + 3000000000u;
	struct boot_auth auth;
	struct boot_id id;
	size_t have = 0;
	ssize_t n = 0;
	int fd;

	assert_int_equal(boot_id_decode(&ranks.id, &id), 0);
	fd = boot_sock_connect(&id.addrs[0]);
	assert_true(fd >= 0);
	assert_true(boot_sock_wait(fd, POLLOUT, deadline_ns));
	boot_auth_client(&auth, fd, BOOT_TO_ROOT, 0, no_token);
	while (boot_auth_step(&auth, id.secret) != BOOT_AUTH_DONE)
		assert_true(boot_sock_wait(fd, boot_auth_events(&auth),
					   deadline_ns));
	boot_head_encode(&head, out);
	memcpy(out + BOOT_HEAD_BYTES, join, sizeof(*join));
	assert_int_equal(boot_sock_send(fd, out, sizeof(out)), sizeof(out));
	while (n >= 0 && have < sizeof(in) &&
	       boot_sock_wait(fd, POLLIN, deadline_ns)) {
		n = boot_sock_recv(fd, in + have, sizeof(in) - have);
		have += n > 0 ? (size_t)n : 0;
	}
	boot_sock_close(&fd);
	if (!boot_head_decode(in, &head) || head.type != BOOT_REFUSED)
		return 0;
	snprintf(text, bytes, "%s", (char *)in + BOOT_HEAD_BYTES);
	return -(int)head.value;
}

static void impossible_claims_are_refused(void **state)
{
	static const struct {
		uint32_t version, rank, n_ranks;
		int error;
		const char *text;
	} rows[] = {
		{WREATH_VERSION, 4, 4, WREATH_EINVAL, "rank 4 of 4 ranks"},
		{WREATH_VERSION, 0, 0, WREATH_EINVAL, "rank 0 of 0 ranks"},
		{WREATH_VERSION, UINT32_MAX, UINT32_MAX, WREATH_EINVAL,
		 "out of range"},
		{WREATH_VERSION, 0, UINT32_MAX, WREATH_EINVAL, "out of range"},
		{WREATH_VERSION + 20000, 1, 4, WREATH_EMISMATCH,
		 "use one version on every rank"},
	};
	char text[BOOT_TEXT_BYTES];
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(rows); i++) {
		struct boot_join_wire join = {
			.version = htole32(rows[i].version),
			.rank = htole32(rows[i].rank),
			.n_ranks = htole32(rows[i].n_ranks),
			.timeout_ms = htole32(1000),
		};

		start(2, 1);
		/* No end of a string, and a terminal's escape. */
		memset(join.host, 'x', sizeof(join.host));
		join.host[0] = '\033';
		assert_int_equal(say(&join, text, sizeof(text)), rows[i].error);
		assert_has(text, rows[i].text);
		assert_null(strchr(text, '\033'));
	}
}

/* ---- deaths while joining ---- */

static void a_death_while_joining_is_told_at_once(void **state)
{
	struct a_root root;
	pid_t pid;
	pid_t others[2];
	uint64_t start_ns;
	int i;

	(void)state;
	ranks_init(&ranks, 4, NULL);
	root = fork_root(1, &ranks.id);
	pid = fork_rank(&ranks.rank[2]);
	for (i = 0; i < 2; i++)
		others[i] = fork_rank(&ranks.rank[i]);
	ms_sleep(300);
	start_ns = base_now_ns();
	kill(pid, SIGKILL);
	wait_rank(pid);
	for (i = 0; i < 2; i++)
		assert_int_equal(wait_rank(others[i]), 1);
	assert_true(ms_since(start_ns) < 2000);
	/* Rank 3 comes later and hears it too. */
	ranks.rank[3].result = rank_open(&ranks.rank[3]);
	assert_int_equal(ranks.rank[3].result, WREATH_EPEER);
	assert_has(ranks.rank[3].text, "rank 2 (host ");
	assert_has(ranks.rank[3].text, "died or gave up while 3 of 4");
	end_root(root);
}

static void the_death_of_the_root_is_told_at_once(void **state)
{
	struct a_root root;
	pid_t killer;
	uint64_t start_ns = base_now_ns();

	(void)state;
	ranks_init(&ranks, 4, NULL);
	root = fork_root(1, &ranks.id);
	killer = fork();
	if (!killer) {
		ms_sleep(200);
		kill(root.pid, SIGKILL);
		_exit(0);
	}
	ranks.rank[3].result = rank_open(&ranks.rank[3]);
	assert_int_equal(ranks.rank[3].result, WREATH_EPEER);
	assert_has(ranks.rank[3].text, "when the root at 127.0.0.1:");
	assert_true(ms_since(start_ns) < 3000);
	waitpid(killer, NULL, 0);
	end_root(root);
}

static int outlive_the_root(struct a_rank *rank)
{
	struct boot_failure failure;

	ms_sleep(300);
	if (boot_failure(rank->boot, &failure))
		return 1;
	return boot_all_gather(rank->boot, NULL, 0, NULL);
}

static void the_death_of_the_root_after_joining_is_nothing(void **state)
{
	struct a_root root;
	pid_t pids[4];
	int i;

	(void)state;
	ranks_init(&ranks, 4, outlive_the_root);
	root = fork_root(0, &ranks.id);
	for (i = 0; i < 4; i++)
		pids[i] = fork_rank(&ranks.rank[i]);
	ms_sleep(200);
	kill(root.pid, SIGKILL);
	for (i = 0; i < 4; i++)
		assert_int_equal(wait_rank(pids[i]), 0);
	end_root(root);
}

static void an_unknown_interface_is_named(void **state)
{
	struct wreath_unique_id id;

	(void)state;
	assert_int_equal(boot_root_start("nosuch0", 1, &id), WREATH_EINVAL);
	assert_has(wreath_error_text(), "'nosuch0'");
	assert_has(wreath_error_text(), "lo");
	assert_int_equal(boot_root_start("lo", -1, &id), WREATH_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_death_while_joining_is_told_at_once),
		cmocka_unit_test(the_death_of_the_root_is_told_at_once),
		cmocka_unit_test(
			the_death_of_the_root_after_joining_is_nothing),
		cmocka_unit_test(missing_ranks_are_named_at_the_deadline),
		cmocka_unit_test(long_lists_of_missing_ranks_are_ranges),
		cmocka_unit_test(a_rank_claimed_twice_is_told_to_all),
		cmocka_unit_test(latecomers_hear_what_has_failed),
		cmocka_unit_test(different_numbers_of_ranks_are_told_to_all),
		cmocka_unit_test(different_settings_are_told_to_all),
		cmocka_unit_test(another_secret_is_no_way_in),
		cmocka_unit_test(a_root_that_is_not_there_is_named),
		cmocka_unit_test(a_round_after_a_failed_one_is_made),
		cmocka_unit_test(impossible_claims_are_refused),
		cmocka_unit_test(an_unknown_interface_is_named),
	};

	alarm(60);
	return cmocka_run_group_tests_name("boot/root", tests, NULL, NULL);
}
