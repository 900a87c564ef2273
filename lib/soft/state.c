/* SPDX-License-Identifier: MIT */
/* The states of a queue pair, and what a peer sees of them. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "soft/entry.h"
#include "soft/peer.h"
#include "soft/qp.h"

/* How long a change of state waits for a peer's post under way (mr.c). */
#define DRAIN_MS 5000

void soft_qp_withdraw(struct soft_qp *qp)
{
	/* Pairs with soft_lock() of the peer: it sees 0, or we wait for it. */
	atomic_store(&qp->shared->accept, 0);
	soft_fence();
	soft_peer_drain(qp, DRAIN_MS);
}

static bool can_receive(const struct soft_qp *qp)
{
	enum ibv_qp_state state = qp->state;

	return qp->is_live && qp->peer && !atomic_load(&qp->peer->is_dead) &&
	       (state == IBV_QPS_RTR || state == IBV_QPS_RTS ||
		state == IBV_QPS_SQD || state == IBV_QPS_SQE) &&
	       !atomic_load(&qp->context->is_down) &&
	       !atomic_load(&qp->context->is_gone);
}

void soft_qp_publish(struct soft_qp *qp)
{
	struct soft_shared_qp *s = qp->shared;
	uint64_t accept = (uint64_t)qp->epoch << 32 | SOFT_ACCEPT_READY |
			  (qp->attr.qp_access_flags & SOFT_ACCEPT_ACCESS);
	uint32_t cq = qp->recv_cq->slot << 16 | qp->rq.hint;

	soft_qp_withdraw(qp);
	if (!can_receive(qp))
		return;
	if (qp->state == IBV_QPS_RTR)
		accept |= SOFT_ACCEPT_RTR;
	if (qp->recv_cq->ibv.channel)
		cq |= SOFT_CQ_CHANNEL;
	atomic_store_explicit(&s->dest_id, qp->peer->id, memory_order_relaxed);
	atomic_store_explicit(&s->qpn, qp->ibv.qp_num, memory_order_relaxed);
	atomic_store_explicit(&s->dest_qpn, qp->attr.dest_qp_num,
			      memory_order_relaxed);
	atomic_store_explicit(&s->rq_psn, qp->attr.rq_psn,
			      memory_order_relaxed);
	atomic_store_explicit(&s->pd, qp->pd->id, memory_order_relaxed);
	atomic_store_explicit(&s->rnr_timer, qp->attr.min_rnr_timer,
			      memory_order_relaxed);
	atomic_store_explicit(&s->rd_atomic, qp->attr.max_dest_rd_atomic,
			      memory_order_relaxed);
	atomic_store_explicit(&s->rq_cqes, qp->rq_block->offset,
			      memory_order_relaxed);
	atomic_store_explicit(&s->rq_wqes, qp->wqe_block->offset,
			      memory_order_relaxed);
	atomic_store_explicit(&s->rq_slots, qp->rq_slots,
			      memory_order_relaxed);
	atomic_store_explicit(&s->rq_sges, qp->cap.max_recv_sge,
			      memory_order_relaxed);
	atomic_store_explicit(&s->cq, cq, memory_order_relaxed);
	atomic_store_explicit(&s->srq, qp->srq ? qp->srq->slot + 1 : 0,
			      memory_order_relaxed);
	atomic_store_explicit(&s->type, qp->ibv.qp_type, memory_order_relaxed);
	atomic_store_explicit(&s->rq_more,
			      qp->more_block ? qp->more_block->offset : 0,
			      memory_order_relaxed);
	/* Pairs with soft_link(): who sees it sees what is above. */
	atomic_store_explicit(&s->accept, accept, memory_order_release);
}

void soft_qp_flush_recv(struct soft_qp *qp)
{
	struct soft_source *rq = &qp->rq;
	uint32_t i;

	if (qp->srq) {
		soft_srq_flush(qp);
		soft_async(qp->context, IBV_EVENT_QP_LAST_WQE_REACHED, qp,
			   NULL);
		return;
	}
	soft_lock(&qp->rq_lock);
	/* The peer is shut out: what it has not completed, we do. */
	for (i = atomic_load(&rq->head); i != qp->rq_tail; i++) {
		struct soft_cqe *e = &rq->cqes[i & rq->mask];

		if (atomic_load(&e->seq) == i + 1)
			continue;
		atomic_store_explicit(&e->info, IBV_WC_WR_FLUSH_ERR,
				      memory_order_relaxed);
		atomic_store_explicit(&e->seq, i + 1, memory_order_release);
	}
	qp->rq_is_flushed = true;
	soft_unlock(&qp->rq_lock);
	soft_cq_hint(qp->recv_cq, rq);
}

void soft_qp_error(struct soft_qp *qp)
{
	uint32_t after;

	soft_lock(qp->lock);
	if (qp->is_live && qp->state != IBV_QPS_RESET)
		soft_fail(qp);
	after = soft_after_take(qp);
	soft_unlock(qp->lock);
	if (after)
		soft_after_locked(qp, after);
}

void soft_qp_fatal(struct soft_qp *qp)
{
	if (!qp->is_live || qp->state == IBV_QPS_ERR ||
	    qp->state == IBV_QPS_RESET)
		return;
	soft_async(qp->context, IBV_EVENT_QP_FATAL, qp, NULL);
	soft_qp_error(qp);
}

/* Both queues empty, their completions gone.  Caller holds both locks. */
static void reset(struct soft_qp *qp)
{
	struct soft_source *sources[] = {&qp->sq, &qp->rq};
	uint32_t tails[2];
	size_t i;

	soft_lock(&qp->rq_lock);
	tails[0] = qp->sq_pushed;
	/* Of a shared queue any completion there is may not come again. */
	tails[1] = qp->srq ? atomic_load(&qp->rq.head) + qp->rq.slots
			   : qp->rq_tail;
	qp->rq_is_flushed = false;
	qp->rq_is_open = false;
	qp->sq_exec = qp->sq_tail;
	qp->in_rnr = false;
	qp->blocked_ns = 0;
	qp->moved = 0;
	qp->bounce = SOFT_BOUNCE_NONE;
	qp->accept_at = NULL;
	qp->left_ns = 0;
	qp->due_ns = 0;
	soft_pace_forget(qp);
	soft_unlock(&qp->rq_lock);
	for (i = 0; i < 2; i++) {
		struct soft_source *s = sources[i];
		struct soft_cq *cq = i ? qp->recv_cq : qp->send_cq;
		struct soft_cqe *next = &s->cqes[tails[i] & s->mask];

		soft_lock(&cq->lock);
		atomic_store(&s->head, tails[i]);
		atomic_store(&s->next, next);
		atomic_store(&s->freed, i ? tails[1] : qp->sq_tail);
		soft_unlock(&cq->lock);
	}
	if (qp->srq)
		soft_srq_reclaim(qp);
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->attr.port_num = 1;
}

/* Caller holds both locks. */
static void apply(struct soft_qp *qp, enum ibv_qp_state to)
{
	struct soft_shared_qp *s = qp->shared;

	if (to == IBV_QPS_ERR) {
		soft_fail(qp);
		return;
	}
	if (to == IBV_QPS_RESET) {
		reset(qp);
		/* What the peer still says is about what there was. */
		qp->epoch++;
	}
	if (to == IBV_QPS_INIT) {
		soft_lock(&qp->rq_lock);
		qp->rq_is_open = !qp->srq;
		soft_unlock(&qp->rq_lock);
	}
	if (to == IBV_QPS_RTR && qp->state == IBV_QPS_INIT) {
		qp->next_datagram = atomic_load(&qp->rq.head);
		/* Any epoch but those that a peer may remember will do. */
		qp->epoch++;
		atomic_store_explicit(&s->rq_start, atomic_load(&qp->rq.head),
				      memory_order_relaxed);
	}
	qp->state = to;
	qp->is_fast = false;
	if (to == IBV_QPS_RTS)
		soft_run(qp);
}

/* The peer that the attributes name.  May block; no locks held. */
static struct soft_peer *find_peer(struct soft_qp *qp,
				   const struct ibv_qp_attr *attr)
{
	struct soft_context *c = qp->context;
	struct soft_address address = {.kind = c->device->kind};

	if (c->device->kind == SOFT_INFINIBAND)
		address.lid = attr->ah_attr.dlid;
	else
		address.gid = attr->ah_attr.grh.dgid;
	return soft_peer_get(c, &address);
}

static void set_peer(struct soft_qp *qp, struct soft_peer *peer)
{
	if (qp->peer)
		soft_peer_put(qp->context, qp->peer);
	qp->peer = peer;
	qp->peer_qp = NULL;
	memset(qp->remote, 0, sizeof(qp->remote));
	if (!peer)
		return;
	qp->peer_qp = &peer->seg->qps[qp->attr.dest_qp_num % SOFT_N_QP];
}

static int change(struct soft_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct soft_peer *peer)
{
	struct soft_context *c = qp->context;
	enum ibv_qp_state from, to;
	uint32_t after;
	int err;

	soft_lock(qp->lock);
	from = qp->state;
	to = mask & IBV_QP_STATE ? attr->qp_state : from;
	err = soft_attr_check(qp, attr, mask);
	soft_unlock(qp->lock);
	if (err)
		return err;
	/* Nobody else changes @qp: that takes the context's lock, but for an
	 * error, which is looked for again below. */
	if (to == IBV_QPS_RESET)
		soft_qp_withdraw(qp);
	soft_lock(qp->lock);
	if (qp->state != from && to != IBV_QPS_ERR && to != IBV_QPS_RESET) {
		soft_unlock(qp->lock);
		return EINVAL;
	}
	soft_attr_take(qp, attr, mask);
	if (mask & IBV_QP_AV || to == IBV_QPS_RESET)
		set_peer(qp, peer);
	apply(qp, to);
	after = soft_after_take(qp);
	soft_unlock(qp->lock);
	if (after)
		soft_after_locked(qp, after);
	if (to == IBV_QPS_SQD && from == IBV_QPS_RTS &&
	    qp->attr.en_sqd_async_notify)
		soft_async(c, IBV_EVENT_SQ_DRAINED, qp, NULL);
	if (to != IBV_QPS_ERR)
		soft_qp_publish(qp);
	return 0;
}

int soft_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct soft_qp *qp = (struct soft_qp *)(void *)ibqp;
	struct soft_context *c = qp->context;
	struct soft_peer *peer = NULL;
	int err;

	if (soft_is_foreign(c) || atomic_load(&c->is_gone))
		return EIO;
	if (mask & IBV_QP_AV) {
		/* Checked before, so that nonsense does not look for peers. */
		pthread_mutex_lock(&c->lock);
		soft_lock(qp->lock);
		err = soft_attr_check(qp, attr, mask);
		soft_unlock(qp->lock);
		pthread_mutex_unlock(&c->lock);
		if (err)
			return err;
		peer = find_peer(qp, attr);
	}
	pthread_mutex_lock(&c->lock);
	err = change(qp, attr, mask, peer);
	if (!err && mask & IBV_QP_STATE)
		ibqp->state = attr->qp_state;
	if (err && peer)
		soft_peer_put(c, peer);
	pthread_mutex_unlock(&c->lock);
	return err;
}
