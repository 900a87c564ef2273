/* SPDX-License-Identifier: MIT */
/*
 * The ABI of wreath.h as programs were compiled with it.  A line is never
 * changed, only added; a change here needs another soname.
 */
#include "wreath.h"

#define IS(name, value) _Static_assert((name) == (value), #name)

IS(WREATH_OK, 0);
IS(WREATH_EINVAL, -1);
IS(WREATH_ENOMEM, -2);
IS(WREATH_EAGAIN, -3);
IS(WREATH_EUNSUP, -4);
IS(WREATH_EPEER, -10);
IS(WREATH_ETIMEOUT, -11);
IS(WREATH_EMISMATCH, -12);
IS(WREATH_ENET, -13);
IS(WREATH_EABORTED, -14);
IS(WREATH_EDEVICE, -20);

IS(WREATH_INT8, 0);
IS(WREATH_UINT8, 1);
IS(WREATH_INT16, 2);
IS(WREATH_UINT16, 3);
IS(WREATH_INT32, 4);
IS(WREATH_UINT32, 5);
IS(WREATH_INT64, 6);
IS(WREATH_UINT64, 7);
IS(WREATH_FLOAT16, 8);
IS(WREATH_BFLOAT16, 9);
IS(WREATH_FLOAT32, 10);
IS(WREATH_FLOAT64, 11);
IS(WREATH_FLOAT8E4M3, 12);
IS(WREATH_FLOAT8E5M2, 13);

IS(WREATH_SUM, 0);
IS(WREATH_PROD, 1);
IS(WREATH_MIN, 2);
IS(WREATH_MAX, 3);
IS(WREATH_AVG, 4);

IS(sizeof(enum wreath_error), 4);
IS(sizeof(enum wreath_type), 4);
IS(sizeof(enum wreath_op), 4);
IS(sizeof(struct wreath_unique_id), 128);
IS(_Alignof(struct wreath_unique_id), 1);
