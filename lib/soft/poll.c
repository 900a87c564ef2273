/* SPDX-License-Identifier: MIT */
/*
 * Polling.  A CQ of few queues looks at each; a CQ of many goes by hint
 * bytes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "soft/entry.h"
#include "soft/qp.h"

/*
 * Every this many empty polls the hints are not believed: a producer may have
 * died between completion and hint.  At 5 ns a poll this is some 5 us.
 */
#define FULL_SCAN 1024u

static void fill(const struct soft_source *s, uint64_t wr_id,
		 const struct soft_cqe *e, struct ibv_wc *wc)
{
	uint32_t info = atomic_load_explicit(&e->info, memory_order_relaxed);

	if ((info & 0xff) != IBV_WC_SUCCESS) {
		/* What an error leaves undefined must not look plausible. */
		memset(wc, 0xa5, sizeof(*wc));
		wc->wr_id = wr_id;
		wc->status = (enum ibv_wc_status)(info & 0xff);
		wc->vendor_err = info >> 24;
		wc->qp_num = s->qp->ibv.qp_num;
		return;
	}
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = wr_id;
	wc->opcode = (enum ibv_wc_opcode)(info >> 8 & 0xff);
	wc->byte_len = atomic_load_explicit(&e->byte_len,
					    memory_order_relaxed);
	wc->qp_num = s->qp->ibv.qp_num;
	if (!s->is_recv)
		return;
	wc->src_qp = s->qp->attr.dest_qp_num;
	wc->slid = s->qp->attr.ah_attr.dlid;
	if (info >> 16 & SOFT_INFO_IMM) {
		wc->wc_flags = IBV_WC_WITH_IMM;
		wc->imm_data = atomic_load_explicit(&e->imm,
						    memory_order_relaxed);
	}
}

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

/* drain() where completions have more to them. */
static int drain_more(struct soft_source *s, int max, struct ibv_wc *wc)
{
	uint32_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
	const uint32_t end = head + s->slots;
	int n = 0;

	while (n < max && head != end) {
		struct soft_cqe *e = &s->cqes[head & s->mask];
		const uint32_t at = head & s->mask;
		const struct soft_shared_more *more = &s->more[at];
		uint64_t wr_id = s->tags[s->srq ? 0 : at].wr_id;

		/* Pairs with the release in soft_deliver_at(). */
		if (atomic_load_explicit(&e->seq, memory_order_acquire) !=
		    head + 1)
			break;
		head++;
		/* A receive that nobody took is a peer's nonsense. */
		if (s->srq && !soft_srq_release(s->srq,
						atomic_load(&more->wqe),
						s->qp->ibv.qp_num, &wr_id))
			continue;
		fill(s, wr_id, e, wc + n);
		fill_more(s, more, wc + n++);
		if (!s->srq)
			atomic_store_explicit(&s->freed, s->tags[at].freed,
					      memory_order_release);
	}
	atomic_store_explicit(&s->head, head, memory_order_relaxed);
	atomic_store_explicit(&s->next, &s->cqes[head & s->mask],
			      memory_order_relaxed);
	if (s->srq)
		soft_srq_check_limit(s->srq);
	return n;
}

/* Caller holds the CQ's lock. */
static int drain(struct soft_source *s, int max, struct ibv_wc *wc)
{
	uint32_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
	int n = 0;

	if (base_unlikely(s->more != NULL))
		return drain_more(s, max, wc);
	while (n < max) {
		struct soft_cqe *e = &s->cqes[head & s->mask];
		struct soft_tag *tag = &s->tags[head & s->mask];

		/* Pairs with the release in soft_push(), soft_deliver(). */
		if (atomic_load_explicit(&e->seq, memory_order_acquire) !=
		    head + 1)
			break;
		fill(s, tag->wr_id, e, wc + n++);
		atomic_store_explicit(&s->freed, tag->freed,
				      memory_order_release);
		head++;
	}
	if (!n)
		return 0;
	atomic_store_explicit(&s->head, head, memory_order_relaxed);
	atomic_store_explicit(&s->next, &s->cqes[head & s->mask],
			      memory_order_relaxed);
	return n;
}

/* Sources whose hint bytes are set.  Caller holds the CQ's lock. */
static int poll_hinted(struct soft_cq *cq, int max, struct ibv_wc *wc)
{
	_Atomic uint8_t *bytes = (_Atomic uint8_t *)cq->shared->hints;
	uint32_t i, n_sources = atomic_load(&cq->n_sources);
	int n = 0;

	for (i = 0; i < n_sources && n < max; i++) {
		struct soft_source *s;
		int more;

		if (!(i & 7) && !atomic_load_explicit(
					&cq->shared->hints[i / 8],
					memory_order_relaxed)) {
			i += 7;
			continue;
		}
		if (!atomic_load_explicit(&bytes[i], memory_order_relaxed))
			continue;
		/* Cleared before looking: who publishes later sets it anew. */
		atomic_exchange(&bytes[i], 0);
		s = atomic_load(soft_source_at(cq, i));
		if (!s)
			continue;
		more = drain(s, max - n, wc + n);
		n += more;
		if (n == max)
			atomic_store(&bytes[i], 1);
	}
	return n;
}

static int poll_all(struct soft_cq *cq, int max, struct ibv_wc *wc)
{
	uint32_t i, n_sources = atomic_load(&cq->n_sources);
	int n = 0;

	/* In turn, so that a busy queue does not starve the others. */
	for (i = 0; i < n_sources && n < max; i++) {
		uint32_t at = (cq->turn + i) % n_sources;
		struct soft_source *s = atomic_load(soft_source_at(cq, at));

		if (s)
			n += drain(s, max - n, wc + n);
	}
	cq->turn = n_sources ? (cq->turn + 1) % n_sources : 0;
	return n;
}

/* More completions than the CQ has entries? */
static bool is_overrun(struct soft_context *c, struct soft_cq *cq)
{
	uint32_t n_max = atomic_load_explicit(&cq->n_max, memory_order_relaxed);
	uint32_t n;

	if (base_likely(atomic_load_explicit(&cq->n_slots,
					     memory_order_relaxed) <= n_max))
		return false;
	soft_lock(&cq->lock);
	n_max = atomic_load(&cq->n_max);
	n = soft_cq_count(cq, n_max + 1);
	soft_unlock(&cq->lock);
	if (n <= n_max)
		return false;
	pthread_mutex_lock(&c->lock);
	soft_cq_overrun(cq);
	pthread_mutex_unlock(&c->lock);
	return true;
}

/* Without a lock: may there be something? */
static bool may_have(struct soft_cq *cq, bool *must_scan)
{
	uint32_t i, n = atomic_load_explicit(&cq->n_sources,
					     memory_order_acquire);
	uint32_t n_empty;

	if (n <= SOFT_FEW) {
		*must_scan = true;
		for (i = 0; i < n; i++) {
			struct soft_source *s = atomic_load_explicit(
				&cq->few[i], memory_order_acquire);

			if (s && soft_has_next(s))
				return true;
		}
		return false;
	}
	for (i = 0; i < n; i += 8) {
		if (atomic_load_explicit(&cq->shared->hints[i / 8],
					 memory_order_relaxed))
			return true;
	}
	n_empty = atomic_load_explicit(&cq->n_empty, memory_order_relaxed);
	atomic_store_explicit(&cq->n_empty, n_empty + 1, memory_order_relaxed);
	*must_scan = n_empty % FULL_SCAN == FULL_SCAN - 1;
	return *must_scan;
}

int soft_poll_cq(struct ibv_cq *ibcq, int max, struct ibv_wc *wc)
{
	struct soft_cq *cq = (struct soft_cq *)(void *)ibcq;
	struct soft_context *c = soft_context_of(ibcq->context);
	bool must_scan = false;
	int n;

	if (base_unlikely(soft_is_foreign(c)) ||
	    base_unlikely(atomic_load_explicit(&cq->is_broken,
					       memory_order_relaxed)))
		return -EIO;
	if (base_unlikely(atomic_load_explicit(&c->n_pending,
					       memory_order_relaxed)))
		soft_run_all(c, false);
	if (!may_have(cq, &must_scan))
		return 0;
	if (base_unlikely(is_overrun(c, cq)))
		return -EIO;
	soft_lock(&cq->lock);
	n = must_scan ? poll_all(cq, max, wc) : poll_hinted(cq, max, wc);
	soft_unlock(&cq->lock);
	return n;
}
