/* SPDX-License-Identifier: MIT */
/*
 * Goal and method: those of t_storm.c, with many more settings.
 */
#define RANKS_LONG 1
#include "test/loop/t_storm.c"
