/* SPDX-License-Identifier: MIT */
/*
 * Goal: when ranks cannot come together every one of them learns why, by name
 * and in time, and who does not belong to them disturbs nobody.
 * Method: ranks with wrong numbers, settings and devices; a missing one; and
 * strangers on the port.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/loop/ranks.h"

struct claim {
	int rank, n_ranks;
};

/* Join as somebody else. */
static int join_as(struct rank *rank)
{
	const struct claim *claim = (const struct claim *)rank->arg +
				    rank->rank;
	const struct wreath_unique_id *id = rank_id(rank);
	int err;

	if (!id)
		return rank_broken(rank, "no id");
	err = wreath_comm_init(id, claim->rank, claim->n_ranks, &rank->comm);
	/* The root's thread may be needed to the end. */
	rank_reach(rank);
	rank_await(rank, 1);
	return err;
}

/* Nobody may get a communicator; all must tell @word. */
static void expect_no_join(const struct claim *claims, int n,
			   enum ranks_mode mode, int code, const char *word)
{
	struct ranks run = {.n = n,
			    .mode = mode,
			    .body = join_as,
			    .arg = claims,
			    .no_comm = true};
	int i;

	ranks_start(&run);
	ranks_await(&run, (unsigned int)n);
	ranks_allow(&run, 1);
	ranks_join(&run);
	for (i = 0; i < n; i++) {
		printf("rank %d: %s\n", i, run.shared->results[i].text);
		ranks_expect(&run, i, code, word);
		assert_true(run.shared->results[i].seconds < 8);
	}
	ranks_end(&run);
}

static void two_ranks_with_one_number_are_named(void **state)
{
	static const struct claim claims[] = {{0, 3}, {1, 3}, {1, 3}};

	(void)state;
	ranks_set("WREATH_JOIN_TIMEOUT", "5s");
	expect_no_join(claims, 3, RANKS_PROCESSES, WREATH_EINVAL, "rank 1");
	expect_no_join(claims, 3, RANKS_THREADS, WREATH_EINVAL, "rank 1");
}

static void different_numbers_of_ranks_are_named(void **state)
{
	static const struct claim claims[] = {{0, 3}, {1, 3}, {2, 4}};

	(void)state;
	ranks_set("WREATH_JOIN_TIMEOUT", "5s");
	expect_no_join(claims, 3, RANKS_PROCESSES, WREATH_EINVAL, "4");
	expect_no_join(claims, 3, RANKS_THREADS, WREATH_EINVAL, "4");
}

static void a_missing_rank_is_named(void **state)
{
	static const struct claim claims[] = {{0, 4}, {3, 4}, {1, 4}};

	(void)state;
	ranks_set("WREATH_JOIN_TIMEOUT", "700ms");
	expect_no_join(claims, 3, RANKS_PROCESSES, WREATH_ETIMEOUT, "2");
	expect_no_join(claims, 3, RANKS_THREADS, WREATH_ETIMEOUT, "2");
}

/* ---- strangers ---- */

/* A port that this process listens on, by the kernel's own account. */
static bool find_port(struct sockaddr_storage *addr, socklen_t *length)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);
		int listens = 0;
		socklen_t size = sizeof(listens);

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size))
			continue;
		*length = sizeof(*addr);
		found = listens &&
			!getsockname(fd, (struct sockaddr *)addr, length) &&
			(addr->ss_family == AF_INET ||
			 addr->ss_family == AF_INET6);
	}
	if (dir)
		closedir(dir);
	return found;
}

static int knock(const struct sockaddr_storage *addr, socklen_t length,
		 const void *data, size_t bytes)
{
	int fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)addr, length) ||
	    (bytes && send(fd, data, bytes, MSG_NOSIGNAL) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

#define N_SILENT 20

/* What port scanners, lost clients and the ill-willed send. */
static int be_strange(struct rank *rank, uint64_t *seed, int *silent)
{
	static unsigned char noise[4096];
	struct sockaddr_storage addr;
	socklen_t length;
	size_t i;
	int n;

	if (!find_port(&addr, &length))
		return rank_broken(rank, "nobody listens");
	for (n = 0; n < N_SILENT; n++)
		silent[n] = knock(&addr, length, "GET / HTTP/1.1\r\n\r\n",
				  n % 2 ? 18 : 0);
	for (n = 0; n < 100; n++) {
		size_t bytes = ranks_between(seed, 0, sizeof(noise));
		int fd;

		for (i = 0; i < bytes; i++)
			noise[i] = (unsigned char)ranks_random(seed);
		fd = knock(&addr, length, noise,
			   n % 3 ? bytes : ranks_between(seed, 0, 8));
		if (fd >= 0)
			close(fd);
	}
	return 0;
}

static int join_among_strangers(struct rank *rank)
{
	const uint64_t *arg = rank->arg;
	uint64_t seed = *arg;
	const struct wreath_unique_id *id = rank_id(rank);
	int silent[N_SILENT];
	int word = 1;
	double start;
	int err = 0;
	int n;

	if (!id)
		return rank_broken(rank, "no id");
	if (!rank->rank)
		err = be_strange(rank, &seed, silent);
	if (err || !rank_barrier(rank))
		return err ? err : rank_broken(rank, "alone");
	start = ranks_now();
	err = wreath_comm_init(id, rank->rank, rank->n_ranks, &rank->comm);
	if (!err)
		err = wreath_all_reduce(&word, &word, 1, WREATH_INT32,
					WREATH_SUM, rank->comm, NULL);
	if (!err && word != rank->n_ranks)
		err = rank_broken(rank, "a wrong sum");
	if (!err && ranks_now() - start > 4)
		err = rank_broken(rank, "the strangers cost %.1f s",
				  ranks_now() - start);
	for (n = 0; n < N_SILENT && !rank->rank; n++)
		if (silent[n] >= 0)
			close(silent[n]);
	return err;
}

static void strangers_on_the_port_disturb_nobody(void **state)
{
	const uint64_t seed = ranks_seed();
	struct ranks run = {.n = 3,
			    .body = join_among_strangers,
			    .arg = &seed,
			    .no_comm = true};

	(void)state;
	ranks_run(&run);
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

/* An id that was cut or mistyped on its way. */
static int join_by_slip(struct rank *rank)
{
	const struct wreath_unique_id *id = rank_id(rank);
	struct wreath_unique_id slip;
	size_t i;

	if (!id)
		return rank_broken(rank, "no id");
	for (i = 0; i < sizeof(slip.bytes); i++) {
		int err;

		slip = *id;
		slip.bytes[i] ^= (unsigned char)(1 << i % 8);
		err = wreath_comm_init(&slip, rank->rank, 2, &rank->comm);
		if (err != WREATH_EINVAL || !strstr(wreath_error_text(), "id"))
			return rank_broken(rank, "byte %zu: %s: %s", i,
					   wreath_error_name(err),
					   wreath_error_text());
	}
	return wreath_comm_init(id, rank->rank, rank->n_ranks, &rank->comm);
}

static void an_id_with_a_slip_is_refused_at_once(void **state)
{
	struct ranks run = {.n = 2, .body = join_by_slip, .no_comm = true};

	(void)state;
	ranks_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(two_ranks_with_one_number_are_named,
					  ranks_clean),
		cmocka_unit_test_teardown(different_numbers_of_ranks_are_named,
					  ranks_clean),
		cmocka_unit_test_teardown(a_missing_rank_is_named,
					  ranks_clean),
		cmocka_unit_test(strangers_on_the_port_disturb_nobody),
		cmocka_unit_test(an_id_with_a_slip_is_refused_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
