/* SPDX-License-Identifier: MIT */
/*
 * Goal: a program that was written for NCCL runs, unmodified, as it would on
 * NCCL, but on memory of the host.  Method: it is compiled with our header and
 * with NCCL's own, linked with a library called libnccl.so.2, and run with ours
 * in its place; every result is compared with what it must be.
 *
 * abi TEST, where TEST is one of those below.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi.h"

/* ---- one process, one thread, several communicators ---- */

static void test_all(void)
{
	const int devices[3] = {0, 0, 0};
	int ranks[3] = {0, 1, 2};
	ncclComm_t comms[3];
	int i, value;

	OK(ncclCommInitAll(comms, 3, devices));
	for (i = 0; i < 3; i++) {
		OK(ncclCommCount(comms[i], &value));
		CHECK(value == 3);
		OK(ncclCommUserRank(comms[i], &value));
		CHECK(value == i);
		OK(ncclCommCuDevice(comms[i], &value));
		CHECK(value == 0);
	}
	test_collectives(comms, ranks, 3, 3);
	test_premul(comms, ranks, 3, 3);
	/* One after the other, as programs do. */
	for (i = 0; i < 3; i++)
		OK(ncclCommDestroy(comms[i]));
}

/* ---- threads, and processes ---- */

static void one_rank(struct abi_rank *rank)
{
	ncclComm_t comm;

	OK(ncclCommInitRank(&comm, rank->n_ranks, rank->id, rank->rank));
	test_collectives(&comm, &rank->rank, 1, rank->n_ranks);
	test_premul(&comm, &rank->rank, 1, rank->n_ranks);
	OK(ncclCommFinalize(comm));
	OK(ncclCommDestroy(comm));
}

static void test_threads(void)
{
	abi_threads(4, one_rank, NULL);
	abi_threads(1, one_rank, NULL);
}

static void test_processes(void)
{
	abi_processes(3, false);
}

/* The last rank goes without a word; the others are told, and end. */
static void death_rank(struct abi_rank *rank)
{
	int value = 1, sum = 0;
	ncclResult_t result;
	ncclComm_t comm;

	OK(ncclCommInitRank(&comm, rank->n_ranks, rank->id, rank->rank));
	OK(ncclAllReduce(&value, &sum, 1, ncclInt32, ncclSum, comm, NULL));
	CHECK(sum == rank->n_ranks);
	if (rank->rank == rank->n_ranks - 1)
		raise(SIGKILL);
	result = ncclAllReduce(&value, &sum, 1, ncclInt32, ncclSum, comm, NULL);
	CHECK(result == ncclRemoteError);
	CHECK(abi_await_error(comm) == ncclRemoteError);
	CHECK(strstr(ncclGetLastError(comm), "rank"));
	OK(ncclCommAbort(comm));
}

static void test_death(void)
{
	CHECK(!setenv("ABI_DEATH", "1", 1));
	abi_processes(3, true);
}

static void test_version(void)
{
	int version = 0;

	OK(ncclGetVersion(&version));
	printf("%d\n", version);
	CHECK(version == NCCL_VERSION_CODE || version == 22809);
	REFUSED(ncclGetVersion(NULL), ncclInvalidArgument, "version is NULL");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{"version", test_version},
		{"all", test_all},
		{"threads", test_threads},
		{"processes", test_processes},
		{"death", test_death},
		{"groups", test_groups},
		{"nonblocking", test_nonblocking},
		{"children", test_children},
		{"shrink", test_shrink},
		{"abort", test_abort},
		{"ends", test_ends},
		{"memory", test_memory},
		{"configs", test_configs},
		{"bad-input", test_bad_input},
		{"refusals", test_refusals},
	};
	size_t i;

	alarm(60);
	if (argc == 4) {
		abi_be_process(argv, getenv("ABI_DEATH") ? death_rank
							 : one_rank);
		return 0;
	}
	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (argc == 2 && !strcmp(argv[1], tests[i].name)) {
			tests[i].run();
			return 0;
		}
		if (argc == 1)
			puts(tests[i].name);
	}
	return argc != 1;
}
