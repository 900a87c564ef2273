/* SPDX-License-Identifier: MIT */
/*
 * Prints every value, size and offset of nccl.h.  Compiled with our header and
 * with NCCL's own, it prints the same.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <nccl.h>

#define VALUE(name) printf("%s %lld\n", #name, (long long)(name))
#define SIZE(type) printf("sizeof(%s) %zu\n", #type, sizeof(type))
#define OFFSET(type, member)                                                   \
	printf("%s.%s %zu, %zu\n", #type, #member, offsetof(type, member),     \
	       sizeof(((type *)0)->member))

static void values(void)
{
	VALUE(NCCL_VERSION_CODE);
	VALUE(NCCL_VERSION(2, 8, 4));
	VALUE(NCCL_VERSION(2, 18, 3));
	VALUE(NCCL_UNIQUE_ID_BYTES);
	VALUE(NCCL_CONFIG_UNDEF_INT);
	VALUE(NCCL_SPLIT_NOCOLOR);
	VALUE(NCCL_UNDEF_FLOAT);
	VALUE(NCCL_WIN_DEFAULT);
	VALUE(NCCL_WIN_COLL_SYMMETRIC);
	VALUE(NCCL_WIN_REQUIRED_ALIGNMENT);
	VALUE(NCCL_CTA_POLICY_DEFAULT);
	VALUE(NCCL_CTA_POLICY_EFFICIENCY);
	VALUE(NCCL_CTA_POLICY_ZERO);
	VALUE(NCCL_SHRINK_DEFAULT);
	VALUE(NCCL_SHRINK_ABORT);
	VALUE(NCCL_REVOKE_DEFAULT);
	VALUE(ncclSuccess);
	VALUE(ncclUnhandledCudaError);
	VALUE(ncclSystemError);
	VALUE(ncclInternalError);
	VALUE(ncclInvalidArgument);
	VALUE(ncclInvalidUsage);
	VALUE(ncclRemoteError);
	VALUE(ncclInProgress);
	VALUE(ncclNumResults);
	VALUE(ncclSum);
	VALUE(ncclProd);
	VALUE(ncclMax);
	VALUE(ncclMin);
	VALUE(ncclAvg);
	VALUE(ncclNumOps);
	VALUE(ncclMaxRedOp);
	VALUE(ncclScalarDevice);
	VALUE(ncclScalarHostImmediate);
}

static void types(void)
{
	VALUE(ncclInt8);
	VALUE(ncclChar);
	VALUE(ncclUint8);
	VALUE(ncclInt32);
	VALUE(ncclInt);
	VALUE(ncclUint32);
	VALUE(ncclInt64);
	VALUE(ncclUint64);
	VALUE(ncclFloat16);
	VALUE(ncclHalf);
	VALUE(ncclFloat32);
	VALUE(ncclFloat);
	VALUE(ncclFloat64);
	VALUE(ncclDouble);
	VALUE(ncclBfloat16);
	VALUE(ncclFloat8e4m3);
	VALUE(ncclFloat8e5m2);
	VALUE(ncclNumTypes);
}

static void layouts(void)
{
	SIZE(ncclComm_t);
	SIZE(ncclWindow_t);
	SIZE(cudaStream_t);
	SIZE(ncclResult_t);
	SIZE(ncclRedOp_t);
	SIZE(ncclDataType_t);
	SIZE(ncclScalarResidence_t);
	SIZE(ncclUniqueId);
	OFFSET(ncclUniqueId, internal);
	SIZE(ncclConfig_t);
	OFFSET(ncclConfig_t, size);
	OFFSET(ncclConfig_t, magic);
	OFFSET(ncclConfig_t, version);
	OFFSET(ncclConfig_t, blocking);
	OFFSET(ncclConfig_t, cgaClusterSize);
	OFFSET(ncclConfig_t, minCTAs);
	OFFSET(ncclConfig_t, maxCTAs);
	OFFSET(ncclConfig_t, netName);
	OFFSET(ncclConfig_t, splitShare);
	OFFSET(ncclConfig_t, trafficClass);
	OFFSET(ncclConfig_t, commName);
	OFFSET(ncclConfig_t, collnetEnable);
	OFFSET(ncclConfig_t, CTAPolicy);
	OFFSET(ncclConfig_t, shrinkShare);
	OFFSET(ncclConfig_t, nvlsCTAs);
	OFFSET(ncclConfig_t, nChannelsPerNetPeer);
	OFFSET(ncclConfig_t, nvlinkCentricSched);
	SIZE(ncclSimInfo_t);
	OFFSET(ncclSimInfo_t, size);
	OFFSET(ncclSimInfo_t, magic);
	OFFSET(ncclSimInfo_t, version);
	OFFSET(ncclSimInfo_t, estimatedTime);
}

/* What the initializers say, byte by byte. */
static void initializers(void)
{
	static const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	static const ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
	const unsigned char *bytes = (const unsigned char *)&config;
	size_t i;

	for (i = 0; i < sizeof(config); i++)
		printf("%02x", bytes[i]);
	bytes = (const unsigned char *)&info;
	for (i = 0; i < sizeof(info); i++)
		printf("%02x", bytes[i]);
	putchar('\n');
}

int main(void)
{
	values();
	types();
	layouts();
	initializers();
	return 0;
}
