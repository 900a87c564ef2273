/* SPDX-License-Identifier: MIT */
/* What a queue pair may know of its peer, read with suspicion. */
#define _GNU_SOURCE
#include <string.h>

#include "soft/peer.h"
#include "soft/qp.h"

#define LOAD(p) atomic_load_explicit((p), memory_order_relaxed)

/* Where the peer's receive queue is; false: nonsense. */
static bool link_rings(struct soft_qp *qp, const struct soft_shared_qp *s)
{
	struct soft_segment *seg = qp->peer->seg;
	uint64_t cqes = LOAD(&s->rq_cqes);
	uint64_t wqes = LOAD(&s->rq_wqes);
	uint64_t slots = LOAD(&s->rq_slots);
	uint64_t sges = LOAD(&s->rq_sges);
	uint64_t more = LOAD(&s->rq_more);
	uint32_t srq = LOAD(&s->srq);
	uint32_t cq = LOAD(&s->cq);
	struct soft_shared_cq *peer_cq =
		&seg->cqs[(cq >> 16 & 0x7fff) % SOFT_N_CQ];

	if (slots > SOFT_MAX_WR || (slots & (slots - 1)) ||
	    sges > SOFT_MAX_SGE || cqes % BASE_LINE || wqes % BASE_LINE ||
	    cqes + slots * sizeof(struct soft_cqe) > SOFT_RING_BYTES ||
	    wqes + slots * sges * sizeof(struct soft_shared_sge) >
		    SOFT_RING_BYTES)
		return false;
	qp->peer_cqes = (struct soft_cqe *)(void *)(seg->rings + cqes);
	qp->peer_wqes = (struct soft_shared_sge *)(void *)(seg->rings + wqes);
	/* Whose receives are shared has no count of its own. */
	qp->taker.shared = NULL;
	if (srq) {
		if (!slots || more % BASE_LINE ||
		    more + slots * sizeof(struct soft_shared_more) >
			    SOFT_RING_BYTES ||
		    !soft_taker_link(&qp->taker, seg, srq - 1))
			return false;
		qp->taker.more = (struct soft_shared_more *)(void *)(
			seg->rings + more);
		qp->taker.cqe_slots = (uint32_t)slots;
		slots = 0;
	}
	qp->peer_slots = (uint32_t)slots;
	qp->peer_sges = (uint32_t)sges;
	qp->peer_cq = cq & SOFT_CQ_CHANNEL ? peer_cq : NULL;
	qp->peer_hint = (_Atomic uint8_t *)peer_cq->hints +
			(cq & 0xffff) % SOFT_HINTS;
	return true;
}

bool soft_link(struct soft_qp *qp)
{
	const struct soft_shared_qp *s = qp->peer_qp;
	struct soft_context *c = qp->context;
	/* Unreliable packets are taken from any number on. */
	const bool is_reliable = qp->ibv.qp_type == IBV_QPT_RC;
	uint64_t accept;

	if (!qp->peer || atomic_load(&qp->peer->is_dead) ||
	    atomic_load(&c->is_down))
		return false;
	/* Pairs with soft_qp_publish(). */
	accept = atomic_load_explicit(&s->accept, memory_order_acquire);
	if (!(accept & SOFT_ACCEPT_READY))
		return false;
	if (accept == qp->accept && qp->accept_at)
		return true;
	/* A queue pair answers to its own peer and packet number only. */
	if (LOAD(&s->dest_id) != c->id ||
	    LOAD(&s->qpn) != qp->attr.dest_qp_num ||
	    LOAD(&s->dest_qpn) != qp->ibv.qp_num ||
	    LOAD(&s->type) != qp->ibv.qp_type ||
	    (is_reliable && LOAD(&s->rq_psn) != qp->attr.sq_psn) ||
	    !link_rings(qp, s))
		return false;
	qp->peer_pd = LOAD(&s->pd);
	qp->peer_rnr = LOAD(&s->rnr_timer) & 31;
	qp->peer_reads = LOAD(&s->rd_atomic) != 0;
	if (qp->link_epoch != (uint32_t)(accept >> 32) || !qp->epoch_known ||
	    qp->link_qpn != qp->attr.dest_qp_num ||
	    qp->link_id != qp->peer->id) {
		qp->link_epoch = (uint32_t)(accept >> 32);
		qp->link_qpn = qp->attr.dest_qp_num;
		qp->link_id = qp->peer->id;
		qp->epoch_known = true;
		qp->link_used = false;
		qp->peer_next = LOAD(&s->rq_start);
		qp->peer_tail = qp->peer_next;
		qp->taker.taken = 0;
		qp->taker.told = 0;
	} else if (is_reliable && !qp->accept_at && qp->link_used) {
		/* We were reset and the peer was not: it expects later
		 * packets than ours. */
		return false;
	}
	if (atomic_load_explicit(&s->accept, memory_order_acquire) != accept)
		return false;
	memset(qp->remote, 0, sizeof(qp->remote));
	qp->accept = accept;
	qp->accept_at = &s->accept;
	if (accept & SOFT_ACCEPT_RTR) {
		qp->note |= SOFT_NOTE_COMM_EST;
		qp->after |= SOFT_AFTER_NOTE;
	}
	return true;
}

bool soft_peer_has_recv(struct soft_qp *qp)
{
	uint32_t tail;

	if (qp->peer_next != qp->peer_tail)
		return true;
	/* Pairs with soft_post_recv(). */
	tail = atomic_load_explicit(&qp->peer_qp->rq_tail,
				    memory_order_acquire);
	if (tail - qp->peer_next > qp->peer_slots)
		return false;
	qp->peer_tail = tail;
	return qp->peer_next != tail;
}

/* A key of a context in another process. */
static bool view_far(struct soft_qp *qp, uint32_t key, struct soft_view *view)
{
	const struct soft_shared_mr *s =
		&qp->peer->seg->mrs[key >> SOFT_KEY_SHIFT];
	uint64_t word = atomic_load_explicit(&s->word, memory_order_acquire);
	uint64_t region, offset;
	size_t bytes = 0;

	if (!word || (uint32_t)word != key)
		return false;
	view->addr = LOAD(&s->addr);
	view->length = LOAD(&s->length);
	view->pd = LOAD(&s->pd);
	view->access = LOAD(&s->access);
	region = LOAD(&s->region);
	offset = atomic_load_explicit(&s->offset, memory_order_acquire);
	if (LOAD(&s->word) != word)
		return false;
	view->base = NULL;
	view->far = offset;
	if (region) {
		view->base = soft_mapping_find(qp->peer, region, &bytes);
		if (!view->base) {
			qp->is_asked = true;
			qp->asked_region = region;
			soft_mapping_ask(qp->peer, region);
			return false;
		}
		if (offset > bytes || view->length > bytes - offset)
			return false;
		view->base += offset;
	}
	view->key = key;
	view->word = word;
	view->at = &s->word;
	return true;
}

struct soft_view *soft_view_remote(struct soft_qp *qp, uint32_t key)
{
	struct soft_view *view =
		&qp->remote[key >> SOFT_KEY_SHIFT & (SOFT_VIEWS - 1)];
	struct soft_held *held = qp->peer->held;
	bool is_there;

	if (view->at && view->key == key &&
	    atomic_load_explicit(view->at, memory_order_relaxed) == view->word)
		return view;
	view->at = NULL;
	is_there = held ? soft_view_keys(held->keys, key, view)
			: view_far(qp, key, view);
	return is_there ? view : NULL;
}

struct soft_view *soft_view_own(struct soft_qp *qp, uint32_t key)
{
	struct soft_view *view =
		&qp->local[key >> SOFT_KEY_SHIFT & (SOFT_VIEWS - 1)];

	if (view->at && view->key == key &&
	    atomic_load_explicit(view->at, memory_order_relaxed) == view->word)
		return view;
	view->at = NULL;
	return soft_view_keys(qp->context->keys, key, view) ? view : NULL;
}
