/* SPDX-License-Identifier: MIT */
/*
 * Goal: a program that was written for NCCL runs, unmodified, as it would on
 * NCCL, but on memory of the host.  Method: it is compiled with our header and
 * with NCCL's own, linked with a library called libnccl.so.2, and run with ours
 * in its place; every result is compared with what it must be.
 *
 * abi TEST, where TEST is one of those below; abi RANK N ID is a rank that
 * "processes" starts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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
	char hex[2 * sizeof(ncclUniqueId) + 1];
	const unsigned char *bytes;
	pid_t pids[3];
	ncclUniqueId id;
	int i, status;
	size_t at;

	OK(ncclGetUniqueId(&id));
	bytes = (const unsigned char *)&id;
	for (at = 0; at < sizeof(id); at++)
		snprintf(hex + 2 * at, 3, "%02x", bytes[at]);
	for (i = 0; i < 3; i++) {
		char rank[8];

		snprintf(rank, sizeof(rank), "%d", i);
		pids[i] = fork();
		if (!pids[i])
			execl("/proc/self/exe", "abi", rank, "3", hex, NULL);
		CHECK(pids[i] > 0);
	}
	for (i = 0; i < 3; i++) {
		CHECK(waitpid(pids[i], &status, 0) == pids[i]);
		CHECK(!status);
	}
}

static void be_rank(char **argv)
{
	struct abi_rank rank;
	size_t at;

	rank.rank = (int)strtol(argv[1], NULL, 10);
	rank.n_ranks = (int)strtol(argv[2], NULL, 10);
	for (at = 0; at < sizeof(rank.id); at++) {
		char byte[3] = {argv[3][2 * at], argv[3][2 * at + 1], 0};

		rank.id.internal[at] = (char)strtol(byte, NULL, 16);
	}
	one_rank(&rank);
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
		be_rank(argv);
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
