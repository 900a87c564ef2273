/* SPDX-License-Identifier: MIT */
/*
 * Goal and method of t_all_reduce.c, many more times:
 * every size, type and number of ranks.
 */
#define RANKS_LONG 1
#include "test/loop/t_all_reduce.c"
