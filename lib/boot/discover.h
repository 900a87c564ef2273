/* SPDX-License-Identifier: MIT */
/*
 * The ways to find id, rank and number of ranks.  Each is a function that
 * looks whether its launcher is there.
 */
#ifndef BOOT_DISCOVER_H
#define BOOT_DISCOVER_H

#include "boot.h"

/* 1: not this launcher.  0: *place is filled.  Negative: reported. */
#define BOOT_NOT_THIS 1

int boot_discover_wreath(const struct base_env *env, struct boot_place *place);
int boot_discover_torchrun(const struct base_env *env,
			   struct boot_place *place);
int boot_discover_pmi(const struct base_env *env, struct boot_place *place);
int boot_discover_open_mpi(const struct base_env *env,
			   struct boot_place *place);

/*
 * A whole number from the foreign variable @name, which must be set: else, or
 * when it is out of range, WREATH_EINVAL with @launcher's name in the text.
 */
int boot_foreign_int(const char *launcher, const char *name, int64_t min,
		     int64_t max, int *out);

#endif
