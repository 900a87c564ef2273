/* SPDX-License-Identifier: MIT */
/*
 * Goal and method of t_disagree.c, many more times:
 * ranks that disagree.
 */
#define RANKS_LONG 1
#include "test/loop/t_disagree.c"
