/* SPDX-License-Identifier: MIT */
#include "sched.h"

/*
 * Where one algorithm takes over from the other, in bytes of the vector: up to
 * @oneshot_max everyone sends everything, from @ring_min on the ring runs, and
 * between them each rank reduces a share.
 *
 * Oneshot has one wait where twoshot has two, but sends n/2 times as much.
 * The ring has 2(n - 1) waits, but each rank talks to one peer only; where
 * ranks outnumber cores each wait costs a yield (about 5 us on a 2-core
 * machine), which the ring never earns back there.  Oneshot's numbers are
 * measured (`wreath perf --algo all`) with 2, 4 and 8 ranks on 2 cores, and
 * carried on from there; the ring's are estimates.
 */
static const struct row {
	int n_ranks_max;
	size_t oneshot_max;
	size_t ring_min;
} rows[] = {
	{2, 1 << 10, SIZE_MAX}, /* a ring of two is twoshot in one lane */
	{4, 4 << 10, SIZE_MAX},
	{8, 2 << 10, SIZE_MAX},
	{16, 1 << 10, 256 << 20},
	{SCHED_RANKS_MAX, 1 << 10, 64 << 20},
};

/*
 * Two ranks with a network between them: a message costs much more than its
 * bytes, and one of several lanes gains nothing (measured on soft-RoCE: oneshot
 * 0.7 of the ring's time at 8 KB and the same at 64 KB, twoshot 1.15 at 4 MB).
 */
#define APART_ONESHOT_MAX (32 << 10)

enum sched_algo sched_choose(enum sched_collective collective, int n_ranks,
			     size_t bytes, unsigned int settings)
{
	bool crowded = settings & SCHED_CROWDED;
	const struct row *row = rows;

	(void)collective;
	if (n_ranks <= 1)
		return SCHED_ONESHOT;
	if (n_ranks == 2 && (settings & SCHED_APART))
		return bytes <= APART_ONESHOT_MAX ? SCHED_ONESHOT : SCHED_RING;
	/* One fold takes no more sources. */
	if (n_ranks > SCHED_DIRECT_RANKS_MAX)
		return SCHED_RING;
	while (n_ranks > row->n_ranks_max &&
	       row < &rows[base_countof(rows) - 1])
		row++;
	if (bytes <= row->oneshot_max)
		return SCHED_ONESHOT;
	if (!crowded && bytes >= row->ring_min)
		return SCHED_RING;
	return SCHED_TWOSHOT;
}
