/* SPDX-License-Identifier: MIT */
/*
 * Goal and method: those of t_other_calls.c, with many more pairs.
 */
#define RANKS_LONG 1
#include "test/loop/t_other_calls.c"
