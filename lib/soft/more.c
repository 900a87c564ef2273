/* SPDX-License-Identifier: MIT */
/*
 * Completions that have more to them than others: those of datagrams, and of
 * receives that are shared.  Not in poll.c, where the usual ones are to be
 * quick.
 */
#define _GNU_SOURCE
#include "soft/poll.h"

static void fill_more(const struct soft_source *s,
		      const struct soft_shared_more *more, struct ibv_wc *wc)
{
	uint32_t flags = atomic_load(&more->flags);

	if (s->qp->ibv.qp_type != IBV_QPT_UD || wc->status != IBV_WC_SUCCESS)
		return;
	wc->src_qp = atomic_load(&more->src_qp);
	wc->slid = (uint16_t)atomic_load(&more->slid);
	wc->sl = (uint8_t)(flags >> 8 & 15);
	if (flags & SOFT_MORE_GRH)
		wc->wc_flags |= IBV_WC_GRH;
}

int soft_drain_more(struct soft_source *s, int max, struct ibv_wc *wc)
{
	uint32_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
	const uint32_t end = head + s->slots;
	struct soft_srq *srq = s->qp->srq;
	int n = 0;

	while (n < max && head != end) {
		struct soft_cqe *e = &s->cqes[head & s->mask];
		const uint32_t at = head & s->mask;
		const struct soft_shared_more *more = &s->qp->rq_more[at];
		uint64_t wr_id = s->tags[srq ? 0 : at].wr_id;

		/* Pairs with the release in soft_deliver_at(). */
		if (atomic_load_explicit(&e->seq, memory_order_acquire) !=
		    head + 1)
			break;
		head++;
		/* A receive that nobody took is a peer's nonsense. */
		if (srq && !soft_srq_release(srq, atomic_load(&more->wqe),
					     s->qp->ibv.qp_num, &wr_id))
			continue;
		soft_wc_fill(s, wr_id, e, wc + n);
		fill_more(s, more, wc + n++);
		if (!srq)
			atomic_store_explicit(&s->freed, s->tags[at].freed,
					      memory_order_release);
	}
	atomic_store_explicit(&s->head, head, memory_order_relaxed);
	atomic_store_explicit(&s->next, &s->cqes[head & s->mask],
			      memory_order_relaxed);
	if (srq)
		soft_srq_check_limit(srq);
	return n;
}
