/* SPDX-License-Identifier: MIT */
/*
 * For tests of what takes a given time.  Too early is wrong at once; a busy
 * machine may be late, so that of some tries one has to be in time, and under
 * a tool that slows everything down none has.
 */
#ifndef SOFT_CLOCK_H
#define SOFT_CLOCK_H

#include "soft_pair.h"

#define CLOCK_MS 1000000ull
#define CLOCK_TRIES 20

/* @measure returns how long it took, in nanoseconds. */
static inline void clock_expect(uint64_t (*measure)(void *arg), void *arg,
				uint64_t ns, uint64_t late)
{
	const char *under = getenv("TEST_UNDER");
	uint64_t took = UINT64_MAX;
	int i;

	for (i = 0; i < CLOCK_TRIES && took > ns + late; i++) {
		took = measure(arg);
		if (took < ns || (under && *under))
			break;
	}
	if (took < ns || (took > ns + late && !(under && *under)))
		fail_msg("%.3f ms instead of %.3f", (double)took / 1e6,
			 (double)ns / 1e6);
}

#endif
