/* SPDX-License-Identifier: MIT */
/*
 * soft: an RDMA device in software, between the processes and threads of one
 * host, with the object model of libibverbs.
 *
 * It is the transport inside a host, and the embedded default on a machine
 * without an RDMA device; it follows the InfiniBand specification where real
 * devices are lax.  It must never know what a rank is.  Thread safety is that
 * of libibverbs: any verb from any thread.
 *
 * It has RC, UC and UD queue pairs, shared receive queues and atomics.  It
 * has no memory windows, XRC, multicast, invalidation, or paging on demand:
 * EOPNOTSUPP.  What the library itself uses, RC and WRITEs first of all, is
 * quick; the rest is there so that programs written elsewhere can judge it.
 */
#ifndef SOFT_H
#define SOFT_H

#include "verbs/verbs.h"

/*
 * The device's table.  WREATH_SOFT says which devices there are (default one
 * Ethernet device, soft0), WREATH_SOFT_FAULTS what shall go wrong; both are
 * read at every open.  WREATH_EINVAL for a value that cannot be read,
 * WREATH_EUNSUP for "off".
 *
 * An item may give its ports a rate and a latency, "roce:1@10G+100us": what
 * is then modelled is told in pace.c.
 */
int soft_table(const struct verbs_table **out);

/*
 * Behind each ibv_qp and ibv_cq there is room for the extended struct that
 * begins with it, and 64 bytes more: zero when created, and the caller's.
 */

/*
 * Verbs beyond the table, with libibverbs' signatures and error habits: what
 * the library itself has no use for.  ibv_post_srq_recv() goes by
 * context->ops.
 */

/* At most 1024 queues; ENOMEM when those or their memory are used up. */
struct ibv_srq *soft_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr);
/* IBV_SRQ_LIMIT; a queue cannot be resized (EOPNOTSUPP). */
int soft_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int soft_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
/* EBUSY while a queue pair uses it; waits for its events to be acked. */
int soft_destroy_srq(struct ibv_srq *srq);

/*
 * Other memory, access or domain for the same keys.  0, or what libibverbs
 * says of a failure, enum ibv_rereg_mr_err_code, with errno; the region is
 * then as before.  Requests under way end before the change.
 */
int soft_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		  size_t length, int access);

/* EINVAL when more than that many completions are waiting. */
int soft_resize_cq(struct ibv_cq *cq, int cqe);

/*
 * A domain whose objects go with those of @attr->pd.  Allocators are not
 * asked, since no memory of a queue is the caller's; thread domains, of which
 * there are none, are EINVAL.  Freed as any domain.
 */
struct ibv_pd *
soft_alloc_parent_domain(struct ibv_context *context,
			 struct ibv_parent_domain_init_attr *attr);

/* The remaining functions are for tests: faults at run time. */

/*
 * Apply one fault clause now, as in WREATH_SOFT_FAULTS, such as "port_down=1"
 * or "fail_reg=3".  WREATH_EINVAL with the clause named.
 */
int soft_fault(struct ibv_context *context, const char *clause);

/*
 * The clauses there are, for manuals: how the @i-th is written, such as
 * "fail_post=N", and what it does; NULL past the last.
 */
const char *soft_fault_clause(int i, const char **help);

/* Move a queue pair to the error state as hardware would, with its event. */
void soft_qp_fail(struct ibv_qp *qp);

#endif
