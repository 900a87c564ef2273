/* SPDX-License-Identifier: MIT */
/* Numbers of NCCL and their meaning, here and in words. */
#include "nccl/inner.h"

bool nccl_type_get(ncclDataType_t type, enum wreath_type *out)
{
	static const enum wreath_type types[ncclNumTypes] = {
		[ncclInt8] = WREATH_INT8,
		[ncclUint8] = WREATH_UINT8,
		[ncclInt32] = WREATH_INT32,
		[ncclUint32] = WREATH_UINT32,
		[ncclInt64] = WREATH_INT64,
		[ncclUint64] = WREATH_UINT64,
		[ncclFloat16] = WREATH_FLOAT16,
		[ncclFloat32] = WREATH_FLOAT32,
		[ncclFloat64] = WREATH_FLOAT64,
		[ncclBfloat16] = WREATH_BFLOAT16,
		[ncclFloat8e4m3] = WREATH_FLOAT8E4M3,
		[ncclFloat8e5m2] = WREATH_FLOAT8E5M2,
	};

	if ((unsigned int)type >= ncclNumTypes)
		return false;
	*out = types[type];
	return true;
}

/*
 * The version whose functions are all here.  A program takes it for a promise
 * of what it may call: less would keep all-to-all and windows from those that
 * ask first, more would promise functions that are refused.
 */
ncclResult_t ncclGetVersion(int *version)
{
	if (!version)
		return nccl_fail(ncclInvalidArgument,
				 "ncclGetVersion: version is NULL");
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}
NCCL_ALIAS(ncclGetVersion);

const char *ncclGetErrorString(ncclResult_t result)
{
	switch (result) {
	case ncclSuccess:
		return "no error";
	case ncclUnhandledCudaError:
		return "a call of CUDA failed (ncclGetLastError has more)";
	case ncclSystemError:
		return "the system, its memory or a network device failed "
		       "(ncclGetLastError has more)";
	case ncclInternalError:
		return "internal error of libwreath-nccl";
	case ncclInvalidArgument:
		return "an argument is not valid (ncclGetLastError has more)";
	case ncclInvalidUsage:
		return "the call is not possible here "
		       "(ncclGetLastError has more)";
	case ncclRemoteError:
		return "another rank failed, left or does not answer "
		       "(ncclGetLastError has more)";
	case ncclInProgress:
		return "still in progress";
	default:
		return "not a result of NCCL";
	}
}
NCCL_ALIAS(ncclGetErrorString);
