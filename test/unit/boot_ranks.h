/* SPDX-License-Identifier: MIT */
/*
 * For the tests of boot: ranks as threads of this process, or as processes of
 * their own, each running one function; helpers assert, so tests read as what
 * they prove.
 */
#ifndef BOOT_RANKS_H
#define BOOT_RANKS_H

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "boot/boot.h"

#define MAX_RANKS 64

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
/* Children of a process with threads (a root) have threads of their own. */
WREATH_API const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}
#endif

struct ranks;

struct a_rank {
	struct ranks *ranks;
	int rank;
	struct boot *boot;
	pthread_t thread;
	int result;      /* of boot_open(), or what the body returned */
	char text[1536]; /* wreath_error_text() of a failure */
	int64_t join_ms, timeout_ms; /* may be changed before they run */
	const char *config;
	int says_n_ranks;
	int says_rank;
	void (*on_failure)(void *arg);
};

struct ranks {
	struct wreath_unique_id id;
	int n;
	int (*body)(struct a_rank *rank); /* after joining; 0 is good */
	void *arg;
	struct a_rank rank[MAX_RANKS];
};

__attribute__((unused)) static void ms_sleep(int ms)
{
	poll(NULL, 0, ms);
}

__attribute__((unused)) static int ms_since(uint64_t start_ns)
{
	return (int)((base_now_ns() - start_ns) / 1000000);
}

__attribute__((unused)) static void ranks_init(struct ranks *ranks, int n,
					       int (*body)(struct a_rank *rank))
{
	int i;

	memset(ranks, 0, sizeof(*ranks));
	ranks->n = n;
	ranks->body = body;
	for (i = 0; i < MAX_RANKS; i++) {
		ranks->rank[i] = (struct a_rank){
			.ranks = ranks,
			.rank = i,
			.says_rank = i,
			.says_n_ranks = n,
			.join_ms = 20000,
			.timeout_ms = 20000,
		};
	}
}

static int rank_open(struct a_rank *rank)
{
	struct boot_args args = {
		.id = &rank->ranks->id,
		.rank = rank->says_rank,
		.n_ranks = rank->says_n_ranks,
		.join_timeout_ms = rank->join_ms,
		.timeout_ms = rank->timeout_ms,
		.config = rank->config,
		.on_failure = rank->on_failure,
		.on_failure_arg = rank,
	};
	int err = boot_open(&args, &rank->boot);

	if (err)
		snprintf(rank->text, sizeof(rank->text), "%s",
			 wreath_error_text());
	return err;
}

__attribute__((unused)) static void *rank_run(void *arg)
{
	struct a_rank *rank = arg;

	rank->result = rank_open(rank);
	if (!rank->result && rank->ranks->body)
		rank->result = rank->ranks->body(rank);
	boot_close(rank->boot);
	rank->boot = NULL;
	return NULL;
}

/* Run @n ranks from @first as threads, to their end. */
__attribute__((unused)) static void run_threads(struct ranks *ranks, int first,
						int n)
{
	int i;

	for (i = first; i < first + n; i++)
		assert_int_equal(pthread_create(&ranks->rank[i].thread, NULL,
						rank_run, &ranks->rank[i]),
				 0);
	for (i = first; i < first + n; i++)
		pthread_join(ranks->rank[i].thread, NULL);
}

__attribute__((unused)) static void all_were_good(const struct ranks *ranks)
{
	int i;

	for (i = 0; i < ranks->n; i++) {
		if (ranks->rank[i].result)
			print_error("rank %d: %d %s\n", i,
				    ranks->rank[i].result, ranks->rank[i].text);
		assert_int_equal(ranks->rank[i].result, 0);
	}
}

/*
 * The root in a process of its own, as a launcher would have it; so this
 * process has no threads when it forks ranks, which the thread sanitizer
 * demands.  It ends when end_root() is called.
 */
struct a_root {
	pid_t pid;
	int pipe;
};

__attribute__((unused)) static struct a_root
fork_root(int n_rounds, struct wreath_unique_id *id)
{
	struct a_root root;
	int out[2], in[2];
	char byte;

	assert_int_equal(pipe(out), 0);
	assert_int_equal(pipe(in), 0);
	root.pid = fork();
	assert_true(root.pid >= 0);
	if (!root.pid) {
		close(out[0]);
		close(in[1]);
		alarm(60);
		if (boot_root_start("lo", n_rounds, id) ||
		    write(out[1], id, sizeof(*id)) != sizeof(*id))
			_exit(1);
		/* The end of the pipe is the end of the test. */
		_exit(read(in[0], &byte, 1) != 0);
	}
	close(out[1]);
	close(in[0]);
	assert_int_equal(read(out[0], id, sizeof(*id)), sizeof(*id));
	close(out[0]);
	root.pipe = in[1];
	return root;
}

__attribute__((unused)) static void end_root(struct a_root root)
{
	close(root.pipe);
	waitpid(root.pid, NULL, 0);
}

/* A child process for the rank; it ends by itself. */
__attribute__((unused)) static pid_t fork_rank(struct a_rank *rank)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	alarm(40);
	rank_run(rank);
	if (rank->result)
		fprintf(stderr, "rank %d: %d %s\n", rank->rank, rank->result,
			rank->text);
	exit(rank->result ? 1 : 0);
}

/* The exit status, or 256 + signal. */
__attribute__((unused)) static int wait_rank(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

__attribute__((unused)) static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Wait for threads behind the scene to end: the count, after at most 5 s. */
__attribute__((unused)) static int count_fds_until(int want)
{
	int i;

	for (i = 0; i < 500 && count_fds() > want; i++)
		ms_sleep(10);
	return count_fds();
}

__attribute__((unused)) static void assert_has(const char *text,
					       const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

#endif
