/* SPDX-License-Identifier: MIT */
/* Memory regions: what mr.c and rereg.c share. */
#ifndef SOFT_MR_H
#define SOFT_MR_H

#include "soft/device.h"

/* What a region's key is to stand for. */
struct soft_new_mr {
	struct soft_context *c;
	struct soft_pd *pd;
	uint64_t addr, length;
	uint64_t offset; /* in @region; of private memory, @base */
	char *base;
	struct soft_region *region;
	int access;
};

bool soft_access_is_valid(int access);
/* NULL with errno. */
struct soft_mr *soft_mr_new(const struct soft_new_mr *args);
/* NULL is allowed. */
void soft_region_put(struct soft_context *c, struct soft_region *region);
/* Make the key valid, with what is in @args. */
void soft_mr_publish(const struct soft_new_mr *args, struct soft_mr *mr,
		     uint64_t word);
/* Take the key back and wait until nobody uses the memory. */
void soft_mr_withdraw(struct soft_mr *mr);
/* May @bytes more be locked?  Caller holds the context's lock. */
bool soft_mr_may_lock(struct soft_context *c, uint64_t bytes);
/* Give up the shared memory that @mr is in, if any. */
void soft_mr_release(struct soft_mr *mr);

#endif
