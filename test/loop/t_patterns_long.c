/* SPDX-License-Identifier: MIT */
/*
 * Goal and method of t_patterns.c, many more times:
 * more random patterns in each setting.
 */
#define RANKS_LONG 1
#include "test/loop/t_patterns.c"
