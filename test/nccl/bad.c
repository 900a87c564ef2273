/* SPDX-License-Identifier: MIT */
/*
 * Goal: what is wrong is refused with NCCL's code, and a sentence that names
 * the value; what is only unusual is taken.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"

/* ---- memory ---- */

void test_memory(void)
{
	void *handle = NULL, *again = NULL, *inner = NULL, *mine;
	ncclWindow_t window = NULL;
	ncclComm_t comms[2];
	char *memory = NULL;
	int i;

	OK(ncclCommInitAll(comms, 2, NULL));
	mine = &memory;
	OK(ncclMemAlloc(mine, 1 << 20));
	CHECK(memory && (uintptr_t)memory % NCCL_WIN_REQUIRED_ALIGNMENT == 0);
	memset(memory, 1, 1 << 20);
	/* The same range twice, by another, and a part of it. */
	OK(ncclCommRegister(comms[0], memory, 1 << 20, &handle));
	OK(ncclCommRegister(comms[1], memory, 1 << 20, &again));
	OK(ncclCommRegister(comms[1], memory + 4096, 4096, &inner));
	OK(ncclCommWindowRegister(comms[0], memory, 1 << 20, &window,
				  NCCL_WIN_COLL_SYMMETRIC));
	CHECK(handle && again && inner && window);
	OK(ncclGroupStart());
	for (i = 0; i < 2; i++)
		OK(ncclAllReduce(memory + 8 * i, memory + 16 + 8 * i, 8,
				 ncclUint8, ncclSum, comms[i], NULL));
	OK(ncclGroupEnd());
	CHECK(memory[16] == 2 && memory[31] == 2 && memory[32] == 1);

	REFUSED(ncclCommDeregister(comms[1], handle), ncclInvalidArgument,
		"not registered with this");
	REFUSED(ncclCommDeregister(comms[0], window), ncclInvalidArgument,
		"not registered with this");
	OK(ncclCommDeregister(comms[0], handle));
	OK(ncclCommDeregister(comms[1], inner));
	OK(ncclCommWindowDeregister(comms[0], window));
	REFUSED(ncclCommDeregister(comms[0], handle), ncclInvalidArgument,
		"not registered with this");
	OK(ncclCommDeregister(comms[0], NULL));
	REFUSED(ncclCommRegister(comms[0], memory, 0, &handle),
		ncclInvalidArgument, "size is 0");
	REFUSED(ncclCommRegister(comms[0], NULL, 8, &handle),
		ncclInvalidArgument, "buff is NULL");
	REFUSED(ncclCommWindowRegister(comms[0], memory, 8, &window, 0x40),
		ncclInvalidArgument, "0x40");
	/* What is left goes with its communicator. */
	for (i = 0; i < 2; i++)
		OK(ncclCommDestroy(comms[i]));
	OK(ncclMemFree(memory));
	OK(ncclMemFree(NULL));
	REFUSED(ncclMemAlloc(NULL, 8), ncclInvalidArgument, "ptr is NULL");
	OK(ncclMemAlloc(mine, 0));
	CHECK(!memory);
}

/* ---- settings ---- */

static ncclResult_t init(ncclConfig_t *config)
{
	ncclComm_t comm = NULL;
	ncclResult_t result;
	ncclUniqueId id;

	OK(ncclGetUniqueId(&id));
	result = ncclCommInitRankConfig(&comm, 1, id, 0, config);
	if (!result)
		OK(ncclCommDestroy(comm));
	return result;
}

void test_configs(void)
{
	const ncclConfig_t good = NCCL_CONFIG_INITIALIZER;
	ncclConfig_t config = good;
	/* Of a later version, with more at its end. */
	struct {
		ncclConfig_t known;
		int more[40];
	} longer;

	OK(init(NULL));
	OK(init(&config));
	memset(&longer, 0x7f, sizeof(longer));
	longer.known = good;
	longer.known.size = sizeof(longer);
	longer.known.version = 30000;
	OK(init(&longer.known));
	/* What is behind its end means nothing. */
	config.size = offsetof(ncclConfig_t, cgaClusterSize);
	config.cgaClusterSize = -5;
	OK(init(&config));

	config = good;
	config.size = 8;
	REFUSED(init(&config), ncclInvalidArgument, "size is 8");
	config.size = (size_t)1 << 40;
	REFUSED(init(&config), ncclInvalidArgument, "size is 1099511627776");
	config = good;
	config.magic = 0x1234;
	REFUSED(init(&config), ncclInvalidArgument, "magic is 0x1234");
	config = good;
	config.blocking = 2;
	REFUSED(init(&config), ncclInvalidArgument, "blocking is 2");
	config = good;
	config.minCTAs = 8;
	config.maxCTAs = 4;
	REFUSED(init(&config), ncclInvalidArgument, "maxCTAs 4");
	config = good;
	config.splitShare = 1;
	config.commName = "name";
	config.netName = "IB";
	config.trafficClass = 3;
	OK(init(&config));
}

/* ---- arguments ---- */

static void bad_inits(void)
{
	ncclComm_t comm = NULL;
	const int devices[1] = {-3};
	ncclUniqueId id;

	REFUSED(ncclGetUniqueId(NULL), ncclInvalidArgument, "is NULL");
	OK(ncclGetUniqueId(&id));
	REFUSED(ncclCommInitRank(NULL, 1, id, 0), ncclInvalidArgument,
		"comm is NULL");
	REFUSED(ncclCommInitRank(&comm, 0, id, 0), ncclInvalidArgument,
		"nranks is 0");
	REFUSED(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument,
		"rank 2 is not in 0..1");
	REFUSED(ncclCommInitAll(&comm, 0, NULL), ncclInvalidArgument,
		"less than 1");
	REFUSED(ncclCommInitAll(&comm, 1, devices), ncclInvalidArgument,
		"devlist[0] is -3");
	REFUSED(ncclCommInitRankScalable(&comm, 1, 0, 2, &id, NULL),
		ncclInvalidArgument, "nId is 2");
	memset(&id, 0x5a, sizeof(id));
	IS(ncclCommInitRank(&comm, 2, id, 1), ncclInvalidArgument);
	CHECK(!comm && *ncclGetLastError(NULL));
}

static void bad_calls(ncclComm_t comm)
{
	int in = 1, out = 0;
	ncclRedOp_t op;
	ncclComm_t child;
	int exclude[1] = {9};
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;

	REFUSED(ncclAllReduce(&in, &out, 1, (ncclDataType_t)12, ncclSum, comm,
			      NULL), ncclInvalidArgument, "datatype 12");
	REFUSED(ncclAllReduce(&in, &out, 1, ncclInt32, (ncclRedOp_t)77, comm,
			      NULL), ncclInvalidArgument, "op 77");
	REFUSED(ncclAllReduce(NULL, &out, 1, ncclInt32, ncclSum, comm, NULL),
		ncclInvalidArgument, "NULL");
	REFUSED(ncclReduce(&in, &out, 1, ncclInt32, ncclSum, 1, comm, NULL),
		ncclInvalidArgument, "root 1 is not in 0..0");
	REFUSED(ncclSend(&in, 1, ncclInt32, -1, comm, NULL),
		ncclInvalidArgument, "peer -1");
	REFUSED(ncclAllReduce(&in, &out, SIZE_MAX / 2, ncclInt32, ncclSum,
			      comm, NULL), ncclInvalidArgument, "does not fit");
	REFUSED(ncclCommSplit(comm, -2, 0, &child, NULL), ncclInvalidArgument,
		"color -2");
	REFUSED(ncclCommSplit(comm, 0, 0, NULL, NULL), ncclInvalidArgument,
		"newcomm is NULL");
	REFUSED(ncclCommShrink(comm, exclude, 1, &child, NULL, 4),
		ncclInvalidArgument, "0x4");
	REFUSED(ncclCommShrink(comm, NULL, 1, &child, NULL, 0),
		ncclInvalidArgument, "excludeRanksCount is 1");
	REFUSED(ncclCommRevoke(comm, 1), ncclInvalidArgument, "0x1");
	REFUSED(ncclRedOpCreatePreMulSum(&op, NULL, ncclInt32,
					 ncclScalarHostImmediate, comm),
		ncclInvalidArgument, "scalar is NULL");
	REFUSED(ncclRedOpCreatePreMulSum(&op, &in, ncclInt32,
					 (ncclScalarResidence_t)4, comm),
		ncclInvalidArgument, "residence 4");
	OK(ncclRedOpCreatePreMulSum(&op, &in, ncclInt32,
				    ncclScalarHostImmediate, comm));
	REFUSED(ncclAllReduce(&in, &out, 1, ncclFloat32, op, comm, NULL),
		ncclInvalidArgument, "made for datatype 2");
	OK(ncclRedOpDestroy(op, comm));
	REFUSED(ncclRedOpDestroy(op, comm), ncclInvalidArgument, "op 5");
	info.magic = 1;
	OK(ncclGroupStart());
	REFUSED(ncclGroupSimulateEnd(&info), ncclInvalidArgument, "magic 0x1");
	REFUSED(ncclCommCount(comm, NULL), ncclInvalidArgument,
		"count is NULL");
	/* Nothing of that did any harm. */
	OK(ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comm, NULL));
	CHECK(out == 1);
	OK(ncclAllReduce(NULL, NULL, 0, ncclInt32, ncclSum, comm, NULL));
}

void test_bad_input(void)
{
	ncclResult_t state = ncclSuccess;
	ncclComm_t comm;
	int value;

	bad_inits();
	OK(ncclCommInitAll(&comm, 1, NULL));
	bad_calls(comm);
	REFUSED(ncclCommCount(NULL, &value), ncclInvalidArgument,
		"comm is NULL");
	REFUSED(ncclCommCount((ncclComm_t)&value, &value), ncclInvalidArgument,
		"not a communicator");
	REFUSED(ncclCommGetAsyncError(comm, NULL), ncclInvalidArgument,
		"asyncError is NULL");
	OK(ncclCommGetAsyncError(comm, &state));
	CHECK(state == ncclSuccess);
	OK(ncclCommDestroy(comm));
	REFUSED(ncclCommDestroy(comm), ncclInvalidArgument,
		"destroyed already");
	REFUSED(ncclCommCount(comm, &value), ncclInvalidArgument,
		"destroyed already");
	REFUSED(ncclSend(&value, 1, ncclInt32, 0, comm, NULL),
		ncclInvalidArgument, "destroyed already");
	CHECK(*ncclGetLastError(comm));
	for (value = -1; value < 20; value++)
		CHECK(*ncclGetErrorString((ncclResult_t)value));
}

/* ---- what is not there ---- */

ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *requirements,
			       void *out);
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);

void test_refusals(void)
{
	ncclComm_t comm;

	OK(ncclCommInitAll(&comm, 1, NULL));
	REFUSED(ncclDevCommCreate(comm, NULL, NULL), ncclInvalidUsage,
		"ncclDevCommCreate");
	abi_says("device interface", __FILE__, __LINE__);
	REFUSED(ncclCommSuspend(comm, 1), ncclInvalidUsage,
		"ncclCommSuspend");
	/* By its other name. */
	OK(pncclCommDestroy(comm));
}
