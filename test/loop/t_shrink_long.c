/* SPDX-License-Identifier: MIT */
/*
 * Goal and method of t_shrink.c, many more times:
 * more ranks die, at more moments.
 */
#define RANKS_LONG 1
#include "test/loop/t_shrink.c"
