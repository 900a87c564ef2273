/* SPDX-License-Identifier: MIT */
#include "base.h"

static const struct {
	const char *name;
	size_t bytes;
} types[WREATH_N_TYPES] = {
	[WREATH_INT8] = {"int8", 1},
	[WREATH_UINT8] = {"uint8", 1},
	[WREATH_INT16] = {"int16", 2},
	[WREATH_UINT16] = {"uint16", 2},
	[WREATH_INT32] = {"int32", 4},
	[WREATH_UINT32] = {"uint32", 4},
	[WREATH_INT64] = {"int64", 8},
	[WREATH_UINT64] = {"uint64", 8},
	[WREATH_FLOAT16] = {"float16", 2},
	[WREATH_BFLOAT16] = {"bfloat16", 2},
	[WREATH_FLOAT32] = {"float32", 4},
	[WREATH_FLOAT64] = {"float64", 8},
	[WREATH_FLOAT8E4M3] = {"float8e4m3", 1},
	[WREATH_FLOAT8E5M2] = {"float8e5m2", 1},
};

static const char *const ops[WREATH_N_OPS] = {
	[WREATH_SUM] = "sum", [WREATH_PROD] = "prod", [WREATH_MIN] = "min",
	[WREATH_MAX] = "max", [WREATH_AVG] = "avg",
};

const char *base_type_name(unsigned int type)
{
	return type < WREATH_N_TYPES ? types[type].name : "no such type";
}

const char *base_op_name(unsigned int op)
{
	return op < WREATH_N_OPS ? ops[op] : "no such operation";
}

size_t wreath_type_size(enum wreath_type type)
{
	unsigned int at = (unsigned int)type;

	return at < WREATH_N_TYPES ? types[at].bytes : 0;
}
