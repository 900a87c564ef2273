/* SPDX-License-Identifier: MIT */
/* What this process has mapped, as the kernel lists it. */
#ifndef SOFT_MAPS_H
#define SOFT_MAPS_H

#include "base/base.h"

struct soft_maps_file {
	uint64_t dev, ino, offset; /* of the first byte asked about */
};

/*
 * Is all of [@addr, @addr + @bytes) mapped, readable, and writable if
 * @must_write?  True also when the list cannot be read.
 */
bool soft_maps_check(uint64_t addr, uint64_t bytes, bool must_write);

/*
 * Is all of it one shared mapping of the file in @file, from its offset on?
 */
bool soft_maps_is_file(uint64_t addr, uint64_t bytes,
		       const struct soft_maps_file *file);

#endif
