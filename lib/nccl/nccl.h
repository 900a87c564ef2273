/* SPDX-License-Identifier: MIT */
/*
 * The binary interface of NCCL 2.28, as libwreath-nccl offers it: what a
 * program needs that was written for NCCL and is built where NCCL is not
 * installed.  wreath_nccl(7) says what each call means here.
 *
 * Names, values and layouts are those that such programs were built with, and
 * therefore do not follow the conventions of wreath.h.  A function returns
 * ncclSuccess or what went wrong, and ncclGetLastError() has the sentence.
 * Every function has a second name with a p before it, so that a profiler may
 * take the place of the first.
 */
#ifndef NCCL_H_
#define NCCL_H_

#include <limits.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX ""
#define NCCL_VERSION_CODE 22809
/* Up to 2.8 a minor version had one digit. */
#define NCCL_VERSION(x, y, z)                                                  \
	((x) <= 2 && (y) <= 8 ? (x) * 1000 + (y) * 100 + (z)                   \
			      : (x) * 10000 + (y) * 100 + (z))

/* As the headers of CUDA declare it; repeating that is allowed. */
typedef struct CUstream_st *cudaStream_t;

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
#define NCCL_COMM_NULL NULL

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7,
	ncclNumResults = 8
} ncclResult_t;

typedef enum {
	ncclInt8 = 0,
	ncclChar = 0,
	ncclUint8 = 1,
	ncclInt32 = 2,
	ncclInt = 2,
	ncclUint32 = 3,
	ncclInt64 = 4,
	ncclUint64 = 5,
	ncclFloat16 = 6,
	ncclHalf = 6,
	ncclFloat32 = 7,
	ncclFloat = 7,
	ncclFloat64 = 8,
	ncclDouble = 8,
	ncclBfloat16 = 9,
	ncclFloat8e4m3 = 10,
	ncclFloat8e5m2 = 11,
	ncclNumTypes = 12
} ncclDataType_t;

typedef enum {
	ncclNumOps_dummy = 5
} ncclRedOp_dummy_t;

/* Values from ncclNumOps on are of ncclRedOpCreatePreMulSum(). */
typedef enum {
	ncclSum = 0,
	ncclProd = 1,
	ncclMax = 2,
	ncclMin = 3,
	ncclAvg = 4,
	ncclNumOps = 5,
	ncclMaxRedOp = 0x7fffffff >> (32 - 8 * sizeof(ncclRedOp_dummy_t))
} ncclRedOp_t;

/* When a scalar is read: while the collective runs, or in the call. */
typedef enum {
	ncclScalarDevice = 0,
	ncclScalarHostImmediate = 1
} ncclScalarResidence_t;

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

/* What was not set in a configuration or in a simulation's answer. */
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT -1.0f

#define NCCL_SPLIT_NOCOLOR -1
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01 /* end what is under way on the parent */
#define NCCL_REVOKE_DEFAULT 0x00
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096
#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

/* Begins as NCCL_CONFIG_INITIALIZER; later versions only append. */
typedef struct ncclConfig_v22800 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int blocking;
	int cgaClusterSize;
	int minCTAs;
	int maxCTAs;
	const char *netName;
	int splitShare;
	int trafficClass;
	const char *commName;
	int collnetEnable;
	int CTAPolicy;
	int shrinkShare;
	int nvlsCTAs;
	int nChannelsPerNetPeer;
	int nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                                \
	{                                                                      \
		sizeof(ncclConfig_t), 0xcafebeefu, NCCL_VERSION_CODE,          \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,          \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,          \
			NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT,          \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR,          \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,          \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,          \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT           \
	}

typedef struct ncclSimInfo_v22200 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	float estimatedTime; /* NCCL_UNDEF_FLOAT: nothing is known */
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER                                              \
	{                                                                      \
		sizeof(ncclSimInfo_t), 0x74685283u, NCCL_VERSION_CODE,         \
			NCCL_UNDEF_FLOAT                                       \
	}

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Declares a function by both of its names. */
#define NCCL_BOTH(type, name, arguments)                                       \
	type name arguments;                                                   \
	type p##name arguments

/* ---- the library, and what went wrong ---- */

NCCL_BOTH(ncclResult_t, ncclGetVersion, (int *version));
NCCL_BOTH(const char *, ncclGetErrorString, (ncclResult_t result));
/* The last sentence of @comm, or of the process where it is NULL. */
NCCL_BOTH(const char *, ncclGetLastError, (ncclComm_t comm));
NCCL_BOTH(ncclResult_t, ncclCommGetAsyncError,
	  (ncclComm_t comm, ncclResult_t *asyncError));
NCCL_BOTH(void, ncclResetDebugInit, (void));

/* ---- communicators ---- */

NCCL_BOTH(ncclResult_t, ncclGetUniqueId, (ncclUniqueId *uniqueId));
NCCL_BOTH(ncclResult_t, ncclCommInitRank,
	  (ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank));
NCCL_BOTH(ncclResult_t, ncclCommInitRankConfig,
	  (ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank,
	   ncclConfig_t *config));
NCCL_BOTH(ncclResult_t, ncclCommInitRankScalable,
	  (ncclComm_t *newcomm, int nranks, int myrank, int nId,
	   ncclUniqueId *commIds, ncclConfig_t *config));
NCCL_BOTH(ncclResult_t, ncclCommInitAll,
	  (ncclComm_t *comm, int ndev, const int *devlist));
NCCL_BOTH(ncclResult_t, ncclCommSplit,
	  (ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
	   ncclConfig_t *config));
NCCL_BOTH(ncclResult_t, ncclCommShrink,
	  (ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
	   ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags));
NCCL_BOTH(ncclResult_t, ncclCommRevoke, (ncclComm_t comm, int revokeFlags));
NCCL_BOTH(ncclResult_t, ncclCommFinalize, (ncclComm_t comm));
NCCL_BOTH(ncclResult_t, ncclCommDestroy, (ncclComm_t comm));
NCCL_BOTH(ncclResult_t, ncclCommAbort, (ncclComm_t comm));
NCCL_BOTH(ncclResult_t, ncclCommCount, (const ncclComm_t comm, int *count));
NCCL_BOTH(ncclResult_t, ncclCommUserRank, (const ncclComm_t comm, int *rank));
NCCL_BOTH(ncclResult_t, ncclCommCuDevice,
	  (const ncclComm_t comm, int *device));

/* ---- groups ---- */

NCCL_BOTH(ncclResult_t, ncclGroupStart, (void));
NCCL_BOTH(ncclResult_t, ncclGroupEnd, (void));
NCCL_BOTH(ncclResult_t, ncclGroupSimulateEnd, (ncclSimInfo_t *simInfo));

/* ---- operations: counts are of elements, as in wreath.h ---- */

NCCL_BOTH(ncclResult_t, ncclAllReduce,
	  (const void *sendbuff, void *recvbuff, size_t count,
	   ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
	   cudaStream_t stream));
NCCL_BOTH(ncclResult_t, ncclReduce,
	  (const void *sendbuff, void *recvbuff, size_t count,
	   ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
	   cudaStream_t stream));
NCCL_BOTH(ncclResult_t, ncclReduceScatter,
	  (const void *sendbuff, void *recvbuff, size_t recvcount,
	   ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
	   cudaStream_t stream));
NCCL_BOTH(ncclResult_t, ncclBroadcast,
	  (const void *sendbuff, void *recvbuff, size_t count,
	   ncclDataType_t datatype, int root, ncclComm_t comm,
	   cudaStream_t stream));
NCCL_BOTH(ncclResult_t, ncclBcast,
	  (void *buff, size_t count, ncclDataType_t datatype, int root,
	   ncclComm_t comm, cudaStream_t stream));
NCCL_BOTH(ncclResult_t, ncclAllGather,
	  (const void *sendbuff, void *recvbuff, size_t sendcount,
	   ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream));
NCCL_BOTH(ncclResult_t, ncclGather,
	  (const void *sendbuff, void *recvbuff, size_t count,
	   ncclDataType_t datatype, int root, ncclComm_t comm,
	   cudaStream_t stream));
NCCL_BOTH(ncclResult_t, ncclScatter,
	  (const void *sendbuff, void *recvbuff, size_t count,
	   ncclDataType_t datatype, int root, ncclComm_t comm,
	   cudaStream_t stream));
NCCL_BOTH(ncclResult_t, ncclAlltoAll,
	  (const void *sendbuff, void *recvbuff, size_t count,
	   ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream));
NCCL_BOTH(ncclResult_t, ncclSend,
	  (const void *sendbuff, size_t count, ncclDataType_t datatype,
	   int peer, ncclComm_t comm, cudaStream_t stream));
NCCL_BOTH(ncclResult_t, ncclRecv,
	  (void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
	   ncclComm_t comm, cudaStream_t stream));
NCCL_BOTH(ncclResult_t, ncclRedOpCreatePreMulSum,
	  (ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
	   ncclScalarResidence_t residence, ncclComm_t comm));
NCCL_BOTH(ncclResult_t, ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm));

/* ---- memory ---- */

NCCL_BOTH(ncclResult_t, ncclMemAlloc, (void **ptr, size_t size));
NCCL_BOTH(ncclResult_t, ncclMemFree, (void *ptr));
NCCL_BOTH(ncclResult_t, ncclCommRegister,
	  (const ncclComm_t comm, void *buff, size_t size, void **handle));
NCCL_BOTH(ncclResult_t, ncclCommDeregister,
	  (const ncclComm_t comm, void *handle));
NCCL_BOTH(ncclResult_t, ncclCommWindowRegister,
	  (ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
	   int winFlags));
NCCL_BOTH(ncclResult_t, ncclCommWindowDeregister,
	  (ncclComm_t comm, ncclWindow_t win));

#undef NCCL_BOTH

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
