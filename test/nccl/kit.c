/* SPDX-License-Identifier: MIT */
/* What programs of NCCL share: complaints, waiting, and ranks in threads. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
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
