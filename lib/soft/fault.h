/* SPDX-License-Identifier: MIT */
/* The faults that a context is to inject, and when. */
#ifndef SOFT_FAULT_H
#define SOFT_FAULT_H

#include <infiniband/verbs.h>

#include "base/base.h"

struct soft_faults {
	bool is_chaos;
	bool no_promise;
};

/* WREATH_EINVAL with the clause named. */
int soft_faults_parse(const char *text, struct soft_faults *faults);

static inline bool soft_faults_keep_order(const struct soft_faults *faults)
{
	return !faults->is_chaos && !faults->no_promise;
}

#endif
