/* SPDX-License-Identifier: MIT */
/* What programs of NCCL share: complaints, waiting, and ranks in threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi.h"

void abi_check(bool holds, const char *what, const char *file, int line)
{
	if (holds)
		return;
	fprintf(stderr, "%s:%d: not so: %s; the last error is: %s\n", file,
		line, what, ncclGetLastError(NULL));
	_exit(1);
}

void abi_is(ncclResult_t result, ncclResult_t wanted, const char *what,
	    const char *file, int line)
{
	if (result == wanted)
		return;
	fprintf(stderr, "%s:%d: %s is %d (%s), not %d: %s\n", file, line, what,
		(int)result, ncclGetErrorString(result), (int)wanted,
		ncclGetLastError(NULL));
	_exit(1);
}

void abi_says(const char *words, const char *file, int line)
{
	const char *text = ncclGetLastError(NULL);

	if (strstr(text, words))
		return;
	fprintf(stderr, "%s:%d: \"%s\" does not have \"%s\"\n", file, line,
		text, words);
	_exit(1);
}

void abi_nap(void)
{
	const struct timespec millisecond = {.tv_nsec = 1000000};

	nanosleep(&millisecond, NULL);
}

ncclResult_t abi_await(ncclComm_t comm)
{
	ncclResult_t state = ncclInProgress;
	int i;

	for (i = 0; i < 20000 && state == ncclInProgress; i++) {
		OK(ncclCommGetAsyncError(comm, &state));
		if (state == ncclInProgress)
			abi_nap();
	}
	return state;
}

ncclResult_t abi_await_error(ncclComm_t comm)
{
	ncclResult_t state = ncclSuccess;
	int i;

	for (i = 0; i < 20000 && state == ncclSuccess; i++) {
		OK(ncclCommGetAsyncError(comm, &state));
		if (state == ncclSuccess)
			abi_nap();
	}
	return state;
}

void abi_sum(ncclComm_t comm, int mine, int wanted)
{
	int result = -1;

	OK(ncclAllReduce(&mine, &result, 1, ncclInt32, ncclSum, comm, NULL));
	CHECK(result == wanted);
}

/* Of @n communicators by one thread; all ranks give 1. */
void abi_sum_of_ones(ncclComm_t *comms, int n)
{
	int in[MAX_RANKS], out[MAX_RANKS];
	int i;

	OK(ncclGroupStart());
	for (i = 0; i < n; i++) {
		in[i] = 1;
		OK(ncclAllReduce(&in[i], &out[i], 1, ncclInt32, ncclSum,
				 comms[i], NULL));
	}
	OK(ncclGroupEnd());
	for (i = 0; i < n; i++)
		CHECK(out[i] == n);
}

struct thread {
	struct abi_rank rank;
	void (*body)(struct abi_rank *rank);
	pthread_t id;
};

static void *run_thread(void *arg)
{
	struct thread *thread = arg;

	thread->body(&thread->rank);
	return NULL;
}

void abi_threads(int n_ranks, void (*body)(struct abi_rank *rank), void *arg)
{
	struct thread threads[MAX_RANKS];
	ncclUniqueId id;
	int i;

	OK(ncclGetUniqueId(&id));
	for (i = 0; i < n_ranks; i++) {
		threads[i].body = body;
		threads[i].rank.rank = i;
		threads[i].rank.n_ranks = n_ranks;
		threads[i].rank.id = id;
		threads[i].rank.arg = arg;
		CHECK(!pthread_create(&threads[i].id, NULL, run_thread,
				      &threads[i]));
	}
	for (i = 0; i < n_ranks; i++)
		CHECK(!pthread_join(threads[i].id, NULL));
}

void abi_processes(int n_ranks, bool is_last_killed)
{
	char hex[2 * sizeof(ncclUniqueId) + 1];
	const unsigned char *bytes;
	pid_t pids[MAX_RANKS];
	ncclUniqueId id;
	int i, status;
	size_t at;

	OK(ncclGetUniqueId(&id));
	bytes = (const unsigned char *)&id;
	for (at = 0; at < sizeof(id); at++)
		snprintf(hex + 2 * at, 3, "%02x", bytes[at]);
	for (i = 0; i < n_ranks; i++) {
		char rank[12], n[12];

		snprintf(rank, sizeof(rank), "%d", i);
		snprintf(n, sizeof(n), "%d", n_ranks);
		pids[i] = fork();
		if (!pids[i])
			execl("/proc/self/exe", "rank", rank, n, hex, NULL);
		CHECK(pids[i] > 0);
	}
	for (i = 0; i < n_ranks; i++) {
		CHECK(waitpid(pids[i], &status, 0) == pids[i]);
		if (is_last_killed && i == n_ranks - 1)
			CHECK(WIFSIGNALED(status));
		else
			CHECK(!status);
	}
}

void abi_be_process(char **argv, void (*body)(struct abi_rank *rank))
{
	struct abi_rank rank = {.arg = NULL};
	size_t at;

	rank.rank = (int)strtol(argv[1], NULL, 10);
	rank.n_ranks = (int)strtol(argv[2], NULL, 10);
	for (at = 0; at < sizeof(rank.id); at++) {
		char byte[3] = {argv[3][2 * at], argv[3][2 * at + 1], 0};

		rank.id.internal[at] = (char)strtol(byte, NULL, 16);
	}
	body(&rank);
}
