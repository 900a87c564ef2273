/* SPDX-License-Identifier: MIT */
/*
 * Goal: with blocking set to 0 no call waits for other ranks, and what it began
 * is done, or has failed, when it says so.
 */
#include <string.h>

#include "abi.h"

static void begin(ncclResult_t result)
{
	CHECK(result == ncclInProgress || result == ncclSuccess);
}

static void nonblocking_rank(struct abi_rank *rank)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm = NULL, child = NULL;
	ncclResult_t state = ncclSuccess;
	int mine = rank->rank, value = 0;

	config.blocking = 0;
	if (!rank->rank)
		abi_nap();
	begin(ncclCommInitRankConfig(&comm, rank->n_ranks, rank->id,
				     rank->rank, &config));
	CHECK(comm);
	OK(ncclCommGetAsyncError(comm, &state));
	if (state == ncclInProgress && rank->n_ranks > 1 &&
	    ncclAllReduce(&mine, &value, 1, ncclInt32, ncclSum, comm, NULL) ==
		    ncclInvalidArgument)
		abi_says("not ready", __FILE__, __LINE__);
	OK(abi_await(comm));
	abi_sum(comm, 1, rank->n_ranks);
	begin(ncclCommSplit(comm, rank->rank % 2, 0, &child, NULL));
	CHECK(child);
	OK(abi_await(comm));
	OK(abi_await(child));
	OK(ncclCommCount(child, &value));
	CHECK(value == (rank->n_ranks + 1 - rank->rank % 2) / 2);
	abi_sum(child, 1, value);
	begin(ncclCommFinalize(child));
	OK(abi_await(child));
	OK(ncclCommDestroy(child));
	begin(ncclCommFinalize(comm));
	OK(abi_await(comm));
	REFUSED(ncclCommFinalize(comm), ncclInvalidArgument,
		"finalized already");
	OK(ncclCommDestroy(comm));
}

/* All in groups of one thread, which returns at once. */
static void nonblocking_group(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comms[2], children[2];
	ncclUniqueId id;
	int i;

	config.blocking = 0;
	OK(ncclGetUniqueId(&id));
	OK(ncclGroupStart());
	for (i = 0; i < 2; i++)
		begin(ncclCommInitRankConfig(&comms[i], 2, id, i, &config));
	begin(ncclGroupEnd());
	for (i = 0; i < 2; i++)
		OK(abi_await(comms[i]));
	abi_sum_of_ones(comms, 2);
	OK(ncclGroupStart());
	for (i = 0; i < 2; i++)
		begin(ncclCommSplit(comms[i], 3, i, &children[i], NULL));
	begin(ncclGroupEnd());
	for (i = 0; i < 2; i++) {
		OK(abi_await(comms[i]));
		OK(abi_await(children[i]));
	}
	abi_sum_of_ones(children, 2);
	for (i = 0; i < 2; i++) {
		OK(ncclCommDestroy(children[i]));
		begin(ncclCommFinalize(comms[i]));
	}
	for (i = 0; i < 2; i++) {
		OK(abi_await(comms[i]));
		OK(ncclCommDestroy(comms[i]));
	}
}

/* Alone, where the others never come: it can be given up. */
static void never_made(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm = NULL;
	ncclResult_t state;
	ncclUniqueId id;

	config.blocking = 0;
	OK(ncclGetUniqueId(&id));
	IS(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
	OK(ncclCommGetAsyncError(comm, &state));
	CHECK(state == ncclInProgress);
	OK(ncclCommAbort(comm));
	REFUSED(ncclCommGetAsyncError(comm, &state), ncclInvalidArgument,
		"destroyed already");
}

/* An id that nobody made: it fails, in its time. */
static void fails_later(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm = NULL;
	ncclUniqueId id;
	ncclResult_t state;

	config.blocking = 0;
	memset(&id, 0x5a, sizeof(id));
	IS(ncclCommInitRankConfig(&comm, 2, id, 1, &config), ncclInProgress);
	state = abi_await(comm);
	CHECK(state != ncclSuccess && state != ncclInProgress);
	CHECK(*ncclGetLastError(comm));
	IS(ncclCommCount(comm, NULL), ncclInvalidArgument);
	OK(ncclCommAbort(comm));
}

void test_nonblocking(void)
{
	fails_later();
	nonblocking_group();
	abi_threads(3, nonblocking_rank, NULL);
	never_made();
}
