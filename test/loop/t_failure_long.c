/* SPDX-License-Identifier: MIT */
/*
 * Goal and method of t_failure.c, many more times:
 * ranks that die, stop and leave.
 */
#define RANKS_LONG 1
#include "test/loop/t_failure.c"
