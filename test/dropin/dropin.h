/* SPDX-License-Identifier: MIT */
/*
 * dropin: libibverbs.so.1 over the soft device, so that programs written for
 * real devices judge it.  For tests only: LD_LIBRARY_PATH=$B/soft.
 *
 * What libibverbs does above its providers is here in thin layers; what a
 * device does is in lib/soft.  What the device lacks answers EOPNOTSUPP.
 */
#ifndef DROPIN_H
#define DROPIN_H

#include "soft/soft.h"

#undef ibv_reg_mr_iova

/*
 * The soft device keeps room for the extended structs behind each queue pair
 * and completion queue, and 64 zeroed bytes more; the drop-in's own are there.
 */
struct dropin_poster;
struct dropin_poller;

struct dropin_qp {
	struct ibv_qp_ex ex;
	uint64_t unused[2]; /* where providers look for their own */
	struct dropin_poster *poster;
};

struct dropin_cq {
	struct ibv_cq_ex ex;
	uint64_t unused[2];
	struct dropin_poller *poller;
};

/* The device's table; NULL, with errno, where WREATH_SOFT cannot be read. */
const struct verbs_table *dropin_soft(void);

struct ibv_cq_ex *dropin_create_cq_ex(struct ibv_context *context,
				      struct ibv_cq_init_attr_ex *attr);
void dropin_poller_free(struct dropin_poller *poller);
struct ibv_qp *dropin_create_qp_ex(struct ibv_context *context,
				   struct ibv_qp_init_attr_ex *attr);
void dropin_poster_free(struct dropin_poster *poster);

/* Exported by libibverbs, and in none of its installed headers. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port,
		       unsigned int index, int *type);
int ibv_read_sysfs_file(const char *dir, const char *file, char *text,
			size_t size);
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);
const char *ibv_get_sysfs_path(void);

/* Without the flags that a device may ignore, and that for windows, of which
 * there are none. */
static inline int dropin_access(int access)
{
	return access & ~(int)(IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_MW_BIND);
}

#endif
