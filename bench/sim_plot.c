/* SPDX-License-Identifier: MIT */
#include "bench/sim.h"

bool sim_plot(const struct sim_report *report, const char *path)
{
	(void)report;
	fprintf(stderr, "wreath sim: --plot %s: not drawn\n", path);
	return false;
}
