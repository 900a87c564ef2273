/* SPDX-License-Identifier: MIT */
/*
 * Goal and method of t_mix.c, many more times:
 * operations of all kinds together.
 */
#define RANKS_LONG 1
#include "test/loop/t_mix.c"
