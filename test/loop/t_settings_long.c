/* SPDX-License-Identifier: MIT */
/*
 * Goal and method of t_settings.c, many more times:
 * all settings, chaos among them.
 */
#define RANKS_LONG 1
#include "test/loop/t_settings.c"
