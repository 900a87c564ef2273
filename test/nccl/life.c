/* SPDX-License-Identifier: MIT */
/*
 * Goal: communicators begin and end as NCCL's do: in groups, out of one
 * another, and one after the other in one thread.
 */
#include <pthread.h>
#include <string.h>

#include "abi.h"

static void init_in_group(ncclComm_t *comms, int n)
{
	ncclUniqueId id;
	int i;

	OK(ncclGetUniqueId(&id));
	OK(ncclGroupStart());
	for (i = 0; i < n; i++)
		OK(ncclCommInitRank(&comms[i], n, id, i));
	/* What is not made yet cannot be used. */
	REFUSED(ncclGroupEnd(), ncclSuccess, "");
}

/* What is refused leaves no communicator behind. */
static void groups_that_fail(void)
{
	ncclComm_t comms[2] = {(ncclComm_t)comms, (ncclComm_t)comms};
	ncclUniqueId id;

	OK(ncclGetUniqueId(&id));
	OK(ncclGroupStart());
	OK(ncclCommInitRank(&comms[0], 2, id, 0));
	REFUSED(ncclCommInitRank(&comms[1], 2, id, 5), ncclInvalidArgument,
		"rank 5");
	REFUSED(ncclGroupEnd(), ncclInvalidArgument, "rank 5");
	CHECK(!comms[0]);
	/* Two that say that they are rank 0. */
	OK(ncclGroupStart());
	OK(ncclCommInitRank(&comms[0], 2, id, 0));
	OK(ncclCommInitRank(&comms[1], 2, id, 0));
	IS(ncclGroupEnd(), ncclInvalidArgument);
	CHECK(!comms[0] && !comms[1] && *ncclGetLastError(NULL));
}

void test_groups(void)
{
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
	int in[2] = {1, 2}, out[2] = {0, 0}, again[2] = {0, 0};
	ncclComm_t comms[2];
	int i;

	init_in_group(comms, 2);
	/* Nested, and the inner end does nothing. */
	OK(ncclGroupStart());
	for (i = 0; i < 2; i++) {
		OK(ncclGroupStart());
		OK(ncclAllReduce(&in[i], &out[i], 1, ncclInt32, ncclSum,
				 comms[i], NULL));
		OK(ncclAllReduce(&in[i], &again[i], 1, ncclInt32, ncclMax,
				 comms[i], NULL));
		OK(ncclGroupEnd());
	}
	CHECK(!out[0] && !out[1]);
	OK(ncclGroupEnd());
	CHECK(out[0] == 3 && out[1] == 3 && again[0] == 2 && again[1] == 2);

	/* A call that is refused refuses the group, at its end as well. */
	out[0] = 0;
	OK(ncclGroupStart());
	OK(ncclAllReduce(&in[0], &out[0], 1, ncclInt32, ncclSum, comms[0],
			 NULL));
	REFUSED(ncclAllReduce(&in[1], &out[1], 1, (ncclDataType_t)99, ncclSum,
			      comms[1], NULL), ncclInvalidArgument,
		"datatype 99");
	REFUSED(ncclGroupEnd(), ncclInvalidArgument, "datatype 99");
	CHECK(!out[0]);
	/* And the next is as good as ever. */
	abi_sum_of_ones(comms, 2);

	/* Only simulated: nothing is done. */
	OK(ncclGroupStart());
	OK(ncclAllReduce(&in[0], &out[0], 1, ncclInt32, ncclSum, comms[0],
			 NULL));
	OK(ncclGroupSimulateEnd(&info));
	CHECK(info.estimatedTime == NCCL_UNDEF_FLOAT && !out[0]);
	abi_sum_of_ones(comms, 2);
	REFUSED(ncclGroupEnd(), ncclInvalidUsage, "no group is open");

	groups_that_fail();
	/* Ended in a group, the other way round. */
	OK(ncclGroupStart());
	OK(ncclCommFinalize(comms[1]));
	OK(ncclCommFinalize(comms[0]));
	OK(ncclGroupEnd());
	OK(ncclGroupStart());
	OK(ncclCommDestroy(comms[1]));
	OK(ncclCommDestroy(comms[0]));
	OK(ncclGroupEnd());
}

/* ---- out of one another ---- */

static void split_rank(struct abi_rank *rank)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm, child = (ncclComm_t)rank;
	int value, n = rank->n_ranks;

	OK(ncclCommInitRankScalable(&comm, n, rank->rank, 1, &rank->id, NULL));
	/* All, in the other order. */
	OK(ncclCommSplit(comm, 7, -rank->rank, &child, &config));
	OK(ncclCommUserRank(child, &value));
	CHECK(value == n - 1 - rank->rank);
	abi_sum(child, 1, n);
	OK(ncclCommDestroy(child));
	/* All but one. */
	OK(ncclCommSplit(comm, rank->rank ? 0 : NCCL_SPLIT_NOCOLOR, 0, &child,
			 NULL));
	CHECK(!child == !rank->rank);
	if (child) {
		abi_sum(child, 1, n - 1);
		OK(ncclCommDestroy(child));
	}
	abi_sum(comm, 1, n);
	OK(ncclCommDestroy(comm));
}

void test_children(void)
{
	ncclComm_t comms[4], children[4];
	int i;

	abi_threads(3, split_rank, NULL);
	/* By one thread, two and two. */
	OK(ncclCommInitAll(comms, 4, NULL));
	OK(ncclGroupStart());
	for (i = 0; i < 4; i++)
		OK(ncclCommSplit(comms[i], i / 2, i, &children[i], NULL));
	OK(ncclGroupEnd());
	abi_sum_of_ones(children, 2);
	abi_sum_of_ones(children + 2, 2);
	abi_sum_of_ones(comms, 4);
	for (i = 0; i < 4; i++) {
		OK(ncclCommDestroy(children[3 - i]));
		OK(ncclCommDestroy(comms[i]));
	}
}

static void shrink_rank(struct abi_rank *rank)
{
	int exclude[1] = {1};
	ncclComm_t comm, child = NULL;
	int value;

	OK(ncclCommInitRank(&comm, rank->n_ranks, rank->id, rank->rank));
	abi_sum(comm, 1, rank->n_ranks);
	if (rank->rank == 1) {
		OK(ncclCommAbort(comm));
		return;
	}
	OK(ncclCommShrink(comm, exclude, 1, &child, NULL, NCCL_SHRINK_ABORT));
	OK(ncclCommUserRank(child, &value));
	CHECK(value == (rank->rank > 1 ? rank->rank - 1 : rank->rank));
	abi_sum(child, 1, rank->n_ranks - 1);
	OK(ncclCommDestroy(child));
	OK(ncclCommDestroy(comm));
}

/* A communicator that was revoked takes nothing but its shrinking. */
static void revoke_rank(struct abi_rank *rank)
{
	ncclComm_t comm, child = NULL;
	int value = 0;

	OK(ncclCommInitRank(&comm, rank->n_ranks, rank->id, rank->rank));
	OK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
	REFUSED(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm,
			      NULL), ncclInvalidUsage, "revoked");
	REFUSED(ncclCommSplit(comm, 0, 0, &child, NULL), ncclInvalidUsage,
		"revoked");
	OK(ncclCommShrink(comm, NULL, 0, &child, NULL, NCCL_SHRINK_DEFAULT));
	abi_sum(child, 1, rank->n_ranks);
	OK(ncclCommDestroy(child));
	OK(ncclCommAbort(comm));
}

void test_shrink(void)
{
	abi_threads(3, shrink_rank, NULL);
	abi_threads(2, revoke_rank, NULL);
}

/* ---- ends ---- */

static void *abort_soon(void *arg)
{
	ncclResult_t state;
	int i;

	/* A watchdog: it asks, and gives up. */
	for (i = 0; i < 200; i++) {
		OK(ncclCommGetAsyncError(arg, &state));
		abi_nap();
	}
	OK(ncclCommAbort(arg));
	return NULL;
}

/* Waits for a rank that never comes, until the other thread aborts. */
void test_abort(void)
{
	ncclComm_t comms[2];
	pthread_t watchdog;
	ncclResult_t result;
	int value = 1;

	OK(ncclCommInitAll(comms, 2, NULL));
	CHECK(!pthread_create(&watchdog, NULL, abort_soon, comms[0]));
	result = ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comms[0],
			       NULL);
	CHECK(result == ncclRemoteError);
	CHECK(!pthread_join(watchdog, NULL));
	REFUSED(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comms[0],
			      NULL), ncclInvalidArgument, "destroyed already");
	/* The other rank is told. */
	CHECK(abi_await_error(comms[1]) == ncclRemoteError);
	CHECK(strstr(ncclGetLastError(comms[1]), "abort"));
	OK(ncclCommAbort(comms[1]));
	REFUSED(ncclCommAbort(comms[1]), ncclInvalidArgument,
		"destroyed already");
}

/* Two communicators of two ranks, which destroy them in different orders. */
static void crossed_rank(struct abi_rank *rank)
{
	ncclComm_t first, second;

	OK(ncclCommInitRank(&first, 2, rank->id, rank->rank));
	OK(ncclCommSplit(first, 0, 0, &second, NULL));
	abi_sum(second, 1, 2);
	OK(ncclCommDestroy(rank->rank ? first : second));
	OK(ncclCommDestroy(rank->rank ? second : first));
}

void test_ends(void)
{
	ncclComm_t comms[3];
	int i;

	abi_threads(2, crossed_rank, NULL);
	/* Finalized one after the other, by one thread. */
	OK(ncclCommInitAll(comms, 3, NULL));
	abi_sum_of_ones(comms, 3);
	for (i = 0; i < 3; i++)
		OK(ncclCommFinalize(comms[i]));
	for (i = 0; i < 3; i++)
		OK(ncclCommDestroy(comms[i]));
	/* The last is aborted, and the others need not wait for it. */
	OK(ncclCommInitAll(comms, 3, NULL));
	OK(ncclCommDestroy(comms[0]));
	OK(ncclCommDestroy(comms[1]));
	OK(ncclCommAbort(comms[2]));
	/* Many, so that handles come again. */
	for (i = 0; i < 40; i++) {
		OK(ncclCommInitAll(comms, 1, NULL));
		abi_sum(comms[0], 5, 5);
		OK(ncclCommDestroy(comms[0]));
	}
	OK(ncclCommDestroy(NULL));
}
