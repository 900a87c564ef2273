/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/loop/ranks.h"

extern char **environ;

double ranks_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void ranks_sleep_ms(unsigned int ms)
{
	struct timespec ts = {.tv_sec = ms / 1000,
			      .tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		continue;
}

static int n_entries(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

int ranks_n_fds(void)
{
	return n_entries("/proc/self/fd");
}

/* ---- chance and settings ---- */

uint64_t ranks_random(uint64_t *state)
{
	uint64_t x;

	*state += UINT64_C(0x9e3779b97f4a7c15);
	x = *state;
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t ranks_between(uint64_t *state, uint64_t low, uint64_t high)
{
	return low + ranks_random(state) % (high - low + 1);
}

uint64_t ranks_seed(void)
{
	const char *text = getenv("SEED");
	uint64_t seed = (uint64_t)(ranks_now() * 1e9) ^ (uint64_t)getpid();

	if (text)
		seed = strtoull(text, NULL, 0);
	printf("SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

void ranks_set(const char *name, const char *value)
{
	assert_int_equal(setenv(name, value, 1), 0);
}

int ranks_clean(void **state)
{
	char name[128];
	size_t i = 0;

	(void)state;
	while (environ[i]) {
		size_t n = strcspn(environ[i], "=");

		if (strncmp(environ[i], "WREATH_", 7) || n >= sizeof(name)) {
			i++;
			continue;
		}
		memcpy(name, environ[i], n);
		name[n] = 0;
		unsetenv(name);
	}
	return 0;
}

bool ranks_have_device(void)
{
	return getenv("RANKS_ENV") != NULL;
}

static void set_defaults(void)
{
	char *save = NULL;
	char *text = getenv("RANKS_ENV");
	char *word;

	if (!text || getenv("WREATH_SOFT") || getenv("WREATH_SOFT_FAULTS"))
		return;
	text = strdup(text);
	for (word = strtok_r(text, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');

		if (!value)
			exit(2);
		*value = 0;
		setenv(word, value + 1, 0);
	}
	free(text);
}

static void *run_thread(void *arg)
{
	rank_run(arg);
	return NULL;
}

/* All ranks as threads of this process; its descriptors must come back. */
static void run_threads(struct ranks *run)
{
	pthread_t threads[RANKS_MAX];
	int i;

	for (i = 0; i < run->n; i++)
		if (pthread_create(&threads[i], NULL, run_thread,
				   &run->ranks[i]))
			exit(2);
	for (i = 0; i < run->n; i++)
		pthread_join(threads[i], NULL);
}

/* ---- in the test ---- */

/*
 * cmocka takes a crash for a failed assertion and goes on: in a child that
 * would run the rest of the tests.  What was there before it comes back.
 */
static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT,
			      SIGSYS};
#define N_CRASHES (sizeof(crashes) / sizeof(crashes[0]))
static struct sigaction on_crash[N_CRASHES];

static void __attribute__((constructor)) keep_handlers(void)
{
	size_t i;

	for (i = 0; i < N_CRASHES; i++)
		sigaction(crashes[i], NULL, &on_crash[i]);
}

static void bring_handlers_back(void)
{
	size_t i;

	for (i = 0; i < N_CRASHES; i++)
		sigaction(crashes[i], &on_crash[i], NULL);
}

static _Noreturn void be_child(struct ranks *run, int rank, pid_t parent)
{
	const char *left;

	bring_handlers_back();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(2);
	alarm(run->seconds);
	set_defaults();
	gpu_load();
	if (run->mode == RANKS_THREADS)
		run_threads(run);
	else
		rank_run(&run->ranks[rank]);
	left = gpu_unload();
	if (left) {
		print_error("%s\n", left);
		_exit(2);
	}
	/* Not _exit(): a sanitizer looks for leaks at the end. */
	exit(0);
}

static void share(struct ranks *run)
{
	void *at = mmap(NULL, sizeof(*run->shared), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	run->shared = at;
}

void ranks_start(struct ranks *run)
{
	int n_children = run->mode == RANKS_THREADS ? 1 : run->n;
	pid_t parent = getpid();
	int i;

	assert_in_range(run->n, 1, RANKS_MAX);
	if (!run->seconds)
		run->seconds = 60;
	run->n_fds = ranks_n_fds();
	gpu_prepare();
	share(run);
	memset(run->pids, 0, sizeof(run->pids));
	for (i = 0; i < run->n; i++)
		run->ranks[i] = (struct rank){.run = run,
					      .rank = i,
					      .n_ranks = run->n,
					      .arg = run->arg};
	fflush(NULL);
	for (i = 0; i < n_children; i++) {
		run->pids[i] = fork();
		if (!run->pids[i])
			be_child(run, i, parent);
		assert_true(run->pids[i] > 0);
	}
}

void ranks_signal(struct ranks *run, int rank, int signal)
{
	assert_int_equal(run->mode, RANKS_PROCESSES);
	assert_int_equal(kill(run->pids[rank], signal), 0);
}

void ranks_await(struct ranks *run, unsigned int n)
{
	if (!ranks_wait_for(&run->shared->n_reached, n)) {
		print_error("only %u of %u have come so far\n",
			    atomic_load(&run->shared->n_reached), n);
		ranks_join(run);
		ranks_expect_ok(run);
		fail();
	}
}

void ranks_allow(struct ranks *run, unsigned int n)
{
	atomic_store(&run->shared->n_allowed, n);
}

void ranks_join(struct ranks *run)
{
	int n_children = run->mode == RANKS_THREADS ? 1 : run->n;
	int i;

	for (i = 0; i < n_children; i++) {
		int status = -1;

		while (waitpid(run->pids[i], &status, 0) < 0 && errno == EINTR)
			continue;
		run->shared->results[i].wait_status = status;
	}
	if (run->mode == RANKS_THREADS)
		for (i = 1; i < run->n; i++)
			run->shared->results[i].wait_status =
				run->shared->results[0].wait_status;
	/* ECHILD: no child of a child was left to us, none of ours remains. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(ranks_n_fds(), run->n_fds);
}

/* Everything that a rank told, for the log of a failed test. */
static void tell(const struct ranks *run)
{
	int i;

	for (i = 0; i < run->n; i++) {
		const struct rank_result *result = &run->shared->results[i];
		int status = result->wait_status;

		print_error("rank %d: code %d (%s), %.2f s%s%s: %s\n", i,
			    result->code, wreath_error_name(result->code),
			    result->seconds,
			    result->has_ended ? "" : ", not ended",
			    WIFSIGNALED(status) ? ", killed" : "",
			    result->text);
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
			print_error("rank %d hung\n", i);
		else if (status)
			print_error("rank %d: wait status 0x%x\n", i,
				    (unsigned int)status);
	}
}

void ranks_expect_ok(const struct ranks *run)
{
	int i;

	for (i = 0; i < run->n; i++) {
		const struct rank_result *result = &run->shared->results[i];

		if (result->has_ended && !result->code && !result->wait_status)
			continue;
		tell(run);
		fail_msg("rank %d of %d failed", i, run->n);
	}
}

void ranks_expect(const struct ranks *run, int rank, int code,
		  const char *word)
{
	const struct rank_result *result = &run->shared->results[rank];

	if (result->has_ended && result->code == code &&
	    !result->wait_status && strstr(result->text, word))
		return;
	tell(run);
	fail_msg("rank %d was to return %s with '%s'", rank,
		 wreath_error_name(code), word);
}

void ranks_end(struct ranks *run)
{
	munmap(run->shared, sizeof(*run->shared));
	run->shared = NULL;
}

void ranks_run(struct ranks *run)
{
	ranks_start(run);
	ranks_join(run);
	ranks_expect_ok(run);
	ranks_end(run);
}

int ranks_settled_fds(int most)
{
	int n = ranks_n_fds();
	int i;

	for (i = 0; i < 300 && n > most; i++) {
		ranks_sleep_ms(10);
		n = ranks_n_fds();
	}
	return n;
}

long ranks_resident_kb(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file)
		return 0;
	if (fscanf(file, "%*d %ld", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}
