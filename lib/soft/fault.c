/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <string.h>

#include "soft/device.h"
#include "soft/fault.h"

int soft_faults_parse(const char *text, struct soft_faults *faults)
{
	memset(faults, 0, sizeof(*faults));
	if (!*text)
		return 0;
	return base_error(WREATH_EINVAL, "WREATH_SOFT_FAULTS: '%.64s'", text);
}
