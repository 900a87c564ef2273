/* SPDX-License-Identifier: MIT */
/*
 * Goal: where librdmacm, or the kernel's part of it, cannot be used, the text
 * says which, why, and what to do; and nothing else happens.
 * Method: this program runs itself where the library's name leads to a file
 * that is none; and it opens a channel on this machine, whatever that has.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "verbs/verbs.h"

static char *self;

static void expect_in(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("'%s' is not in: %s", what, text);
}

/* The other life of this program: open, and print what came of it. */
static int tell_open(void)
{
	struct rdma_event_channel *channel;
	int err = verbs_cm_open(&channel);

	if (!err)
		verbs_cm_close(channel);
	printf("%d %s\n", err, err ? wreath_error_text() : "opened");
	return 0;
}

static void run_self(const char *folder, char *text, size_t size)
{
	size_t n = 0;
	ssize_t got;
	int pipes[2];
	int status;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		char *const args[] = {self, (char *)(uintptr_t)"tell", NULL};

		alarm(20);
		dup2(pipes[1], STDOUT_FILENO);
		setenv("LD_LIBRARY_PATH", folder, 1);
		execv(self, args);
		_exit(127);
	}
	close(pipes[1]);
	while ((got = read(pipes[0], text + n, size - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = 0;
	close(pipes[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void library_that_cannot_be_loaded_is_named(void **state)
{
	char folder[] = "/tmp/wreath-t-cm-XXXXXX";
	char file[64], text[2048], code[16];
	int fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/librdmacm.so.1", folder);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	run_self(folder, text, sizeof(text));
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(folder), 0);
	snprintf(code, sizeof(code), "%d ", WREATH_EUNSUP);
	assert_memory_equal(text, code, strlen(code));
	expect_in(text, "librdmacm.so.1");
	expect_in(text, "librdmacm1");
	expect_in(text, "WREATH_CONNECT");
}

static void channel_opens_or_the_missing_part_is_named(void **state)
{
	struct rdma_event_channel *channel = NULL;
	struct verbs_cm_event event;
	struct pollfd fd = {.events = POLLIN};
	int err = verbs_cm_open(&channel);

	(void)state;
	if (err) {
		expect_in(wreath_error_text(), "rdma");
		assert_true(err == WREATH_EUNSUP || err == WREATH_EDEVICE);
		assert_null(channel);
		if (!access("/usr/lib/x86_64-linux-gnu/librdmacm.so.1", F_OK) &&
		    access("/dev/infiniband/rdma_cm", F_OK))
			expect_in(wreath_error_text(), "modprobe rdma_ucm");
		return;
	}
	fd.fd = verbs_cm_fd(channel);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(verbs_cm_event(channel, &event), WREATH_EAGAIN);
	verbs_cm_close(channel);
}

static void freeing_nothing_is_allowed(void **state)
{
	(void)state;
	verbs_cm_free(NULL);
	verbs_cm_close(NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(library_that_cannot_be_loaded_is_named),
		cmocka_unit_test(channel_opens_or_the_missing_part_is_named),
		cmocka_unit_test(freeing_nothing_is_allowed),
	};

	alarm(60);
	self = argv[0];
	if (argc > 1)
		return tell_open();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
