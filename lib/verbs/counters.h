/* SPDX-License-Identifier: MIT */
/*
 * The counters of a port that tell of trouble, as the kernel shows them below
 * /sys/class/infiniband.  Part of verbs' door.  Any thread may call.
 */
#ifndef VERBS_COUNTERS_H
#define VERBS_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#define VERBS_COUNTERS_MAX 64

struct verbs_counters {
	int n;
	struct {
		char name[40];
		uint64_t value;
	} rows[VERBS_COUNTERS_MAX];
};

/*
 * Read those below @folder, "/sys/class/infiniband/mlx5_0/ports/1"; what is
 * not there, or cannot be read, is left out.
 */
void verbs_counters_read(const char *folder, struct verbs_counters *out);
/* The same of a device's port. */
void verbs_counters(const char *device, int port, struct verbs_counters *out);

/*
 * "out_of_sequence 3, local_ack_timeout_err 7": what has grown from @before to
 * @after; "" where nothing has.
 */
void verbs_counters_text(const struct verbs_counters *before,
			 const struct verbs_counters *after, char *out,
			 size_t size);

#endif
