/* SPDX-License-Identifier: MIT */
#include "base.h"

static const char *const types[WREATH_N_TYPES] = {
	[WREATH_INT8] = "int8",
	[WREATH_UINT8] = "uint8",
	[WREATH_INT16] = "int16",
	[WREATH_UINT16] = "uint16",
	[WREATH_INT32] = "int32",
	[WREATH_UINT32] = "uint32",
	[WREATH_INT64] = "int64",
	[WREATH_UINT64] = "uint64",
	[WREATH_FLOAT16] = "float16",
	[WREATH_BFLOAT16] = "bfloat16",
	[WREATH_FLOAT32] = "float32",
	[WREATH_FLOAT64] = "float64",
	[WREATH_FLOAT8E4M3] = "float8e4m3",
	[WREATH_FLOAT8E5M2] = "float8e5m2",
};

static const char *const ops[WREATH_N_OPS] = {
	[WREATH_SUM] = "sum", [WREATH_PROD] = "prod", [WREATH_MIN] = "min",
	[WREATH_MAX] = "max", [WREATH_AVG] = "avg",
};

const char *base_type_name(unsigned int type)
{
	return type < WREATH_N_TYPES ? types[type] : "no such type";
}

const char *base_op_name(unsigned int op)
{
	if (op == WREATH_OP_USER)
		return "scaled sum";
	return op < WREATH_N_OPS ? ops[op] : "no such operation";
}
