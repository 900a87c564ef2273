/* SPDX-License-Identifier: MIT */
/*
 * Goal: an id goes to the ranks of one user and to nobody else.  Method: give
 * and take with the right and the wrong words, ranks and users.
 */
#include <sys/socket.h>

#include "boot/local.h"
#include "boot_ranks.h"

static void all_ranks_get_the_id(void **state)
{
	struct boot_local_key key = {.launcher = "test"};
	struct wreath_unique_id id, got;
	int rank, again;

	(void)state;
	snprintf(key.words, sizeof(key.words), "given by %d", (int)getpid());
	base_random(&id, sizeof(id));
	assert_int_equal(boot_local_give(&key, &id, 20, 10000), 0);
	for (rank = 1; rank < 20; rank++) {
		/* A rank that comes twice takes no other's place. */
		for (again = 0; again < (rank < 10 ? 2 : 1); again++) {
			memset(&got, 0, sizeof(got));
			assert_int_equal(
				boot_local_take(&key, rank, 5000, &got), 0);
			assert_memory_equal(&id, &got, sizeof(id));
		}
	}
}

static void other_words_find_nothing(void **state)
{
	struct boot_local_key key = {.launcher = "test"};
	struct boot_local_key other = {.launcher = "test"};
	struct wreath_unique_id id = {{3}};
	uint64_t start_ns = base_now_ns();

	(void)state;
	snprintf(key.words, sizeof(key.words), "%d|1", (int)getpid());
	snprintf(other.words, sizeof(other.words), "%d|2", (int)getpid());
	assert_int_equal(boot_local_give(&key, &id, 2, 5000), 0);
	assert_int_equal(boot_local_take(&other, 1, 150, &id), WREATH_ETIMEOUT);
	assert_has(wreath_error_text(), "got no id from rank 0 within 150 ms");
	assert_in_range(ms_since(start_ns), 149, 3000);
	assert_int_equal(boot_local_take(&key, 1, 5000, &id), 0);
}

static void silent_connections_do_not_block_the_giver(void **state)
{
	struct boot_local_key key = {.launcher = "test"};
	struct wreath_unique_id id = {{4}};
	struct sockaddr_un name;
	socklen_t bytes;
	int fds[3];
	int i;

	(void)state;
	snprintf(key.words, sizeof(key.words), "silence %d", (int)getpid());
	bytes = boot_local_name(&key, &name);
	assert_int_equal(boot_local_give(&key, &id, 2, 10000), 0);
	for (i = 0; i < 3; i++) {
		fds[i] = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		assert_int_equal(
			connect(fds[i], (struct sockaddr *)&name, bytes), 0);
	}
	assert_int_equal(boot_local_take(&key, 1, 8000, &id), 0);
	for (i = 0; i < 3; i++)
		close(fds[i]);
}

static void another_users_socket_is_refused(void **state)
{
	struct boot_local_key key = {.launcher = "Open MPI"};
	struct sockaddr_un name;
	struct wreath_unique_id id;
	socklen_t bytes;
	int ready[2];
	pid_t pid;
	char byte;

	(void)state;
	if (geteuid()) {
		print_message("skipped: only root can be two users\n");
		skip();
	}
	snprintf(key.words, sizeof(key.words), "squatted by %d", (int)getpid());
	bytes = boot_local_name(&key, &name);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

		alarm(10);
		if (setuid(65534) ||
		    bind(fd, (struct sockaddr *)&name, bytes) ||
		    listen(fd, 5) || write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(boot_local_take(&key, 1, 2000, &id), WREATH_EINVAL);
	assert_has(wreath_error_text(), "belongs to user 65534, not to user "
					"0");
	kill(pid, SIGKILL);
	wait_rank(pid);
	close(ready[0]);
	close(ready[1]);
}

static void another_user_gets_no_id(void **state)
{
	struct boot_local_key key = {.launcher = "Open MPI"};
	struct wreath_unique_id id = {{1}};
	struct wreath_unique_id got;
	struct sockaddr_un name;
	socklen_t bytes;
	pid_t pid;

	(void)state;
	if (geteuid()) {
		print_message("skipped: only root can be two users\n");
		skip();
	}
	/* The child's copy of the giver's thread is a leak to valgrind. */
	if (getenv("TEST_UNDER"))
		skip();
	snprintf(key.words, sizeof(key.words), "coveted by %d", (int)getpid());
	bytes = boot_local_name(&key, &name);
	assert_int_equal(boot_local_give(&key, &id, 2, 5000), 0);
	pid = fork();
	if (!pid) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		uint32_t rank = 1;

		alarm(10);
		if (setuid(65534) ||
		    connect(fd, (struct sockaddr *)&name, bytes))
			_exit(2);
		send(fd, &rank, sizeof(rank), MSG_NOSIGNAL);
		_exit(recv(fd, &got, sizeof(got), 0) > 0);
	}
	assert_int_equal(wait_rank(pid), 0);
	/* The real one still does. */
	assert_int_equal(boot_local_take(&key, 1, 2000, &got), 0);
	assert_memory_equal(&id, &got, sizeof(id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranks_get_the_id),
		cmocka_unit_test(other_words_find_nothing),
		cmocka_unit_test(silent_connections_do_not_block_the_giver),
		cmocka_unit_test(another_users_socket_is_refused),
		cmocka_unit_test(another_user_gets_no_id),
	};

	alarm(60);
	return cmocka_run_group_tests_name("boot/local", tests, NULL, NULL);
}
