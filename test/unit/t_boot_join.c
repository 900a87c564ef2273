/* SPDX-License-Identifier: MIT */
/*
 * Goal: nobody waits for long for a rank that has given up, at whatever step
 * of joining that was, nor for a root that has ended.  Method: give up by
 * args->stopped before, at and after the root; be root, or parent, by hand.
 */
#include <endian.h>

#include "boot/auth.h"
#include "boot/sock.h"
#include "boot_ranks.h"

/* Far below the deadline of joining, which is 20 s, and above any load. */
#define SOON_MS 6000

static struct ranks ranks;
static _Atomic bool gives_up;

static int stopped(void *arg)
{
	const struct a_rank *rank = arg;

	return gives_up ? base_error(WREATH_EABORTED, "rank %d has had enough",
				     rank->rank)
			: 0;
}

static void *run_stoppable(void *arg)
{
	struct a_rank *rank = arg;
	struct boot_args args = {
		.id = &rank->ranks->id,
		.rank = rank->rank,
		.n_ranks = rank->says_n_ranks,
		.join_timeout_ms = rank->join_ms,
		.timeout_ms = rank->timeout_ms,
		.stopped = stopped,
		.stopped_arg = rank,
	};

	rank->result = boot_open(&args, &rank->boot);
	snprintf(rank->text, sizeof(rank->text), "%s", wreath_error_text());
	boot_close(rank->boot);
	return NULL;
}

static void start_stoppable(int rank)
{
	assert_int_equal(pthread_create(&ranks.rank[rank].thread, NULL,
					run_stoppable, &ranks.rank[rank]), 0);
}

static void join_stoppable(int rank)
{
	pthread_join(ranks.rank[rank].thread, NULL);
	assert_int_equal(ranks.rank[rank].result, WREATH_EABORTED);
	assert_has(ranks.rank[rank].text, "has had enough");
}

static void start(int n)
{
	gives_up = false;
	ranks_init(&ranks, n, NULL);
	assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
}

static void a_root_that_has_ended_is_not_waited_for(void **state)
{
	uint64_t start_ns = base_now_ns();
	struct boot_id id = {.n_addrs = 1, .n_ports = 1};
	struct boot_addr bound;
	int fd;

	(void)state;
	ranks_init(&ranks, 2, NULL);
	id.addrs[0] = (struct boot_addr){.family = 4, .ip = {127, 0, 0, 1}};
	fd = boot_sock_listen(&id.addrs[0], 1, &bound);
	boot_sock_close(&fd);
	id.addrs[0] = bound;
	boot_id_encode(&id, &ranks.id);
	run_threads(&ranks, 1, 1);
	assert_int_equal(ranks.rank[1].result, WREATH_EPEER);
	assert_has(ranks.rank[1].text, "rank 1 comes too late");
	assert_true(ms_since(start_ns) < SOON_MS);
}

static void who_gives_up_before_it_comes_is_told_to_all(void **state)
{
	uint64_t start_ns = base_now_ns();
	int i;

	(void)state;
	start(4);
	gives_up = true;
	/* The first, and the last that all have waited for. */
	start_stoppable(0);
	join_stoppable(0);
	run_threads(&ranks, 1, 3);
	for (i = 1; i < 4; i++) {
		assert_int_equal(ranks.rank[i].result, WREATH_EPEER);
		assert_has(ranks.rank[i].text, "rank 0 (host ");
	}
	assert_true(ms_since(start_ns) < SOON_MS);
}

static void who_gives_up_as_the_last_is_told_to_all(void **state)
{
	uint64_t start_ns = base_now_ns();
	int i;

	(void)state;
	/* With 6 ranks, rank 2 has a parent and a child; or rank 5 a parent. */
	for (i = 2; i <= 5; i += 3) {
		int r;

		start(6);
		for (r = 0; r < 6; r++)
			if (r != i)
				assert_int_equal(pthread_create(
					&ranks.rank[r].thread, NULL, rank_run,
					&ranks.rank[r]), 0);
		ms_sleep(100);
		gives_up = true;
		start_stoppable(i);
		join_stoppable(i);
		for (r = 0; r < 6; r++) {
			if (r == i)
				continue;
			pthread_join(ranks.rank[r].thread, NULL);
			/* Or EABORTED, from the rank's own mouth. */
			if (ranks.rank[r].result != WREATH_EABORTED)
				assert_int_equal(ranks.rank[r].result,
						 WREATH_EPEER);
		}
	}
	assert_true(ms_since(start_ns) < SOON_MS);
}

/* ---- a parent by hand ---- */

static void await(int fd, short events)
{
	assert_true(boot_sock_wait(fd, events, base_now_ns() + 5000000000u));
}

static void recv_all(int fd, void *out, size_t bytes)
{
	unsigned char *at = out;

	while (bytes) {
		ssize_t n = boot_sock_recv(fd, at, bytes);

		assert_true(n >= 0);
		if (!n)
			await(fd, POLLIN);
		at += n;
		bytes -= (size_t)n;
	}
}

static struct boot_head recv_head(int fd)
{
	unsigned char in[BOOT_HEAD_BYTES];
	struct boot_head head;

	recv_all(fd, in, sizeof(in));
	assert_true(boot_head_decode(in, &head));
	return head;
}

/* Come to the root as rank 0 of two, which listens at @listens_at. */
static int come(const struct boot_id *id, const struct boot_addr *listens_at)
{
	static const unsigned char no_token[BOOT_TOKEN_BYTES];
	struct boot_join_wire join = {
		.version = htole32(WREATH_VERSION),
		.n_ranks = htole32(2),
		.pid = htole32(1),
		.timeout_ms = htole32(20000),
		.listens_at = *listens_at,
	};
	unsigned char out[BOOT_HEAD_BYTES + sizeof(join)];
	struct boot_head head = {.type = BOOT_JOIN, .bytes = sizeof(join)};
	struct boot_auth auth;
	int fd = boot_sock_connect(&id->addrs[0]);

	assert_true(fd >= 0);
	await(fd, POLLOUT);
	boot_auth_client(&auth, fd, BOOT_TO_ROOT, 0, no_token);
	while (boot_auth_step(&auth, id->secret) != BOOT_AUTH_DONE)
		await(fd, boot_auth_events(&auth));
	boot_head_encode(&head, out);
	memcpy(out + BOOT_HEAD_BYTES, &join, sizeof(join));
	assert_int_equal(boot_sock_send(fd, out, sizeof(out)), sizeof(out));
	return fd;
}

static void a_child_that_gives_up_still_tells_its_parent(void **state)
{
	struct boot_addr any = {.family = 4, .ip = {127, 0, 0, 1}};
	struct boot_addr bound;
	struct boot_place_wire place;
	struct boot_auth auth;
	struct boot_head head;
	struct boot_id id;
	char text[BOOT_TEXT_BYTES] = "";
	int listener = boot_sock_listen(&any, 1, &bound);
	int root, child;

	(void)state;
	assert_true(listener >= 0);
	start(2);
	assert_int_equal(boot_id_decode(&ranks.id, &id), 0);
	start_stoppable(1);
	root = come(&id, &bound);
	assert_int_equal(recv_head(root).type, BOOT_ADMITTED);
	assert_int_equal(recv_head(root).type, BOOT_PLACED);
	recv_all(root, &place, sizeof(place));
	/* It has knocked; it gives up before it is let in. */
	await(listener, POLLIN);
	gives_up = true;
	join_stoppable(1);
	child = boot_sock_accept(listener);
	assert_true(child >= 0);
	boot_auth_server(&auth, child, BOOT_TO_PARENT, place.token);
	while (boot_auth_step(&auth, id.secret) != BOOT_AUTH_DONE) {
		assert_true(auth.state != BOOT_AUTH_STRANGER);
		await(child, boot_auth_events(&auth));
	}
	head = recv_head(child);
	assert_int_equal(head.type, BOOT_FAIL);
	assert_int_equal(-(int)head.value, WREATH_EABORTED);
	assert_true(head.bytes < sizeof(text));
	recv_all(child, text, head.bytes);
	assert_has(text, "rank 1 has had enough");
	boot_sock_close(&child);
	boot_sock_close(&root);
	boot_sock_close(&listener);
}

/* ---- a root that ends with its process ---- */

#define MANY 48

/* In a child: the root, and rank 0, which ends as soon as it is told. */
static void be_root_and_rank(int out)
{
	alarm(40);
	if (boot_root_start("lo", 1, &ranks.id) ||
	    write(out, &ranks.id, sizeof(ranks.id)) != sizeof(ranks.id))
		_exit(1);
	_exit(rank_open(&ranks.rank[0]) != WREATH_ETIMEOUT);
}

static void all_are_told_before_the_roots_process_ends(void **state)
{
	int pipes[2];
	int status, i;
	pid_t pid;

	(void)state;
	ranks_init(&ranks, MANY + 1, NULL);
	ranks.rank[0].join_ms = 1500;
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		be_root_and_rank(pipes[1]);
	assert_int_equal(read(pipes[0], &ranks.id, sizeof(ranks.id)),
			 sizeof(ranks.id));
	run_threads(&ranks, 1, MANY - 1);
	for (i = 1; i < MANY; i++) {
		assert_has(ranks.rank[i].text, "missing: 48");
		assert_int_equal(ranks.rank[i].result, WREATH_ETIMEOUT);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_told_before_the_roots_process_ends),
		cmocka_unit_test(a_root_that_has_ended_is_not_waited_for),
		cmocka_unit_test(who_gives_up_before_it_comes_is_told_to_all),
		cmocka_unit_test(who_gives_up_as_the_last_is_told_to_all),
		cmocka_unit_test(a_child_that_gives_up_still_tells_its_parent),
	};

	alarm(60);
	return cmocka_run_group_tests_name("boot/join", tests, NULL, NULL);
}
