/* SPDX-License-Identifier: MIT */
/*
 * Goal and method of t_split.c, many more times:
 * more colors and keys.
 */
#define RANKS_LONG 1
#include "test/loop/t_split.c"
