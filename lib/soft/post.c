/* SPDX-License-Identifier: MIT */
/*
 * Posting.  A WRITE that nothing stands in the way of is executed here and
 * now, by the caller; everything else goes by run.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "soft/entry.h"
#include "soft/qp.h"

void soft_push(struct soft_qp *qp, const struct soft_tag *tag, uint32_t info,
	       uint32_t length)
{
	struct soft_source *sq = &qp->sq;
	uint32_t at = qp->sq_pushed++ & sq->mask;
	struct soft_cqe *e = &sq->cqes[at];

	sq->tags[at] = *tag;
	atomic_store_explicit(&e->byte_len, length, memory_order_relaxed);
	atomic_store_explicit(&e->info, info, memory_order_relaxed);
	/* Pairs with the acquire in poll.c. */
	atomic_store_explicit(&e->seq, qp->sq_pushed, memory_order_release);
	soft_cq_hint(qp->send_cq, sq);
	if (base_unlikely(atomic_load_explicit(&qp->send_cq->n_slots,
					       memory_order_relaxed) >
			  atomic_load_explicit(&qp->send_cq->n_max,
					       memory_order_relaxed)) &&
	    qp->sq_pushed - atomic_load(&sq->head) >
		    atomic_load(&qp->send_cq->n_max))
		qp->after |= SOFT_AFTER_OVERRUN;
	if (!qp->send_cq->ibv.channel)
		return;
	/* Pairs with soft_req_notify_cq(): it polls, or we see it armed. */
	soft_fence();
	if (atomic_load_explicit(&qp->send_cq->shared->armed,
				 memory_order_relaxed) & 3)
		qp->after |= info & 0xff ? SOFT_AFTER_FIRE_ERROR
					 : SOFT_AFTER_FIRE;
}

static inline void deliver(struct soft_qp *qp, struct soft_cqe *e,
			   uint32_t next, uint32_t info, uint32_t length,
			   uint32_t imm)
{
	uint32_t armed;

	atomic_store_explicit(&e->byte_len, length, memory_order_relaxed);
	atomic_store_explicit(&e->imm, imm, memory_order_relaxed);
	atomic_store_explicit(&e->info, info, memory_order_relaxed);
	/* Pairs with the acquire in poll.c: data and fields come before. */
	atomic_store_explicit(&e->seq, next + 1, memory_order_release);
	atomic_store_explicit(qp->peer_hint, 1, memory_order_release);
	if (!qp->peer_cq)
		return;
	/* Pairs with soft_req_notify_cq(): it polls, or we see it armed. */
	soft_fence();
	armed = atomic_load_explicit(&qp->peer_cq->armed, memory_order_relaxed);
	if (!(armed & 3) || armed == qp->peer_armed)
		return;
	if ((armed & 3) == SOFT_ARMED_SOLICITED && !(info & 0xff) &&
	    !(info >> 16 & SOFT_INFO_SOLICITED))
		return;
	qp->peer_armed = armed;
	qp->note |= SOFT_NOTE_WAKE;
	if ((info & 0xff) || (info >> 16 & SOFT_INFO_SOLICITED))
		qp->note |= SOFT_NOTE_SOLICITED;
	qp->after |= SOFT_AFTER_NOTE;
}

void soft_deliver(struct soft_qp *qp, uint32_t info, uint32_t length,
		  uint32_t imm)
{
	uint32_t next = qp->peer_next++;

	deliver(qp, &qp->peer_cqes[next & (qp->peer_slots - 1)], next, info,
		length, imm);
}

void soft_deliver_at(struct soft_qp *qp, struct soft_cqe *e, uint32_t next,
		     uint32_t info, uint32_t length, uint32_t imm)
{
	deliver(qp, e, next, info, length, imm);
}

/* Where a piece of local memory is; NULL: not ours to read. */
static const void *source_of(struct soft_qp *qp, const struct ibv_sge *sge)
{
	struct soft_view *view = soft_view_own(qp, sge->lkey);
	uint64_t at;

	if (!view || view->pd != qp->pd->id)
		return NULL;
	at = sge->addr - view->addr;
	if (at > view->length || sge->length > view->length - at)
		return NULL;
	return view->base + at;
}

/* True when all of it is done; false: soft_post_slow() shall see to it. */
static inline bool post_fast(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	const bool has_imm = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	const uint32_t rkey = wr->wr.rdma.rkey;
	struct soft_view *view =
		&qp->remote[rkey >> SOFT_KEY_SHIFT & (SOFT_VIEWS - 1)];
	const struct ibv_sge *sge = wr->sg_list;
	const uint32_t length = wr->num_sge == 1 ? sge->length : 0;
	const void *from;
	uint64_t at;

	if ((wr->opcode != IBV_WR_RDMA_WRITE && !has_imm) ||
	    base_unlikely(wr->num_sge & ~1) || qp->max_sge < 1)
		return false;
	if (qp->sq_tail - atomic_load_explicit(&qp->sq.freed,
					       memory_order_acquire) >=
	    qp->sq_slots)
		return false;
	/* Pairs with soft_qp_withdraw() and soft_dereg_mr(), which wait for
	 * our lock after they have taken these words away. */
	if (atomic_load_explicit(qp->accept_at, memory_order_acquire) !=
	    qp->accept)
		return false;
	if (!(qp->accept & IBV_ACCESS_REMOTE_WRITE) ||
	    (has_imm && !soft_peer_has_recv(qp)))
		return false;
	if (length) {
		if (view->key != rkey || !view->at || !view->base ||
		    atomic_load_explicit(view->at, memory_order_acquire) !=
			    view->word)
			return false;
		at = wr->wr.rdma.remote_addr - view->addr;
		if (at > view->length || length > view->length - at ||
		    !(view->access & IBV_ACCESS_REMOTE_WRITE) ||
		    view->pd != qp->peer_pd)
			return false;
		if (wr->send_flags & IBV_SEND_INLINE) {
			if (length > qp->max_inline)
				return false;
			from = (const void *)(uintptr_t)sge->addr;
		} else {
			from = source_of(qp, sge);
			if (!from)
				return false;
		}
		soft_copy_lines(view->base + at, from, length);
	}
	if (has_imm)
		soft_deliver(qp, IBV_WC_RECV_RDMA_WITH_IMM << 8 |
					 SOFT_INFO_IMM << 16 |
					 (wr->send_flags & IBV_SEND_SOLICITED
						  ? SOFT_INFO_SOLICITED << 16
						  : 0),
			     length, wr->imm_data);
	qp->sq_exec = ++qp->sq_tail;
	if (wr->send_flags & IBV_SEND_SIGNALED || qp->signal_all) {
		struct soft_tag tag = {wr->wr_id, qp->sq_tail};

		soft_push(qp, &tag, IBV_WC_RDMA_WRITE << 8, length);
	}
	return true;
}

int soft_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad)
{
	struct soft_qp *qp = (struct soft_qp *)(void *)ibqp;
	uint32_t after;
	int err = 0;

	if (base_unlikely(qp->context->fork_gen != soft_fork_gen)) {
		*bad = wr;
		return EIO;
	}
	soft_lock(qp->lock);
	for (; wr; wr = wr->next) {
		if (base_likely(qp->is_fast) && base_likely(post_fast(qp, wr)))
			continue;
		err = soft_post_slow(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	after = soft_after_take(qp);
	soft_unlock(qp->lock);
	if (base_unlikely(after))
		soft_after(qp, after);
	return err;
}

/* 0 or what the caller is told.  Caller holds @rq_lock. */
static int post_recv_one(struct soft_qp *qp, const struct ibv_recv_wr *wr)
{
	struct soft_source *rq = &qp->rq;
	uint32_t tail = qp->rq_tail;
	uint32_t at = tail & rq->mask;
	struct soft_shared_sge *to = &qp->rq_wqes[at * qp->cap.max_recv_sge];

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_recv_sge)
		return EINVAL;
	if (tail - atomic_load_explicit(&rq->freed, memory_order_acquire) >=
	    qp->rq_slots)
		return ENOMEM;
	soft_sges_store(to, qp->cap.max_recv_sge, wr);
	rq->tags[at].wr_id = wr->wr_id;
	rq->tags[at].freed = tail + 1;
	qp->rq_tail = tail + 1;
	if (base_unlikely(qp->rq_is_flushed)) {
		struct soft_cqe *e = &rq->cqes[at];

		atomic_store_explicit(&e->info, IBV_WC_WR_FLUSH_ERR,
				      memory_order_relaxed);
		atomic_store_explicit(&e->seq, tail + 1, memory_order_release);
		soft_cq_hint(qp->recv_cq, rq);
		return 0;
	}
	/* Pairs with soft_peer_has_recv(). */
	atomic_store_explicit(&qp->shared->rq_tail, tail + 1,
			      memory_order_release);
	return 0;
}

int soft_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad)
{
	struct soft_qp *qp = (struct soft_qp *)(void *)ibqp;
	bool is_flushed;
	int err = 0;

	if (base_unlikely(qp->context->fork_gen != soft_fork_gen)) {
		*bad = wr;
		return EIO;
	}
	soft_lock(&qp->rq_lock);
	if (!qp->rq_is_open)
		err = EINVAL;
	for (; wr && !err; wr = wr->next) {
		err = atomic_load_explicit(&qp->context->is_slow,
					   memory_order_relaxed) &&
				      soft_fault_hits(
					      &qp->context->faults.fail_recv)
			      ? ENOMEM
			      : post_recv_one(qp, wr);
		if (err)
			break;
	}
	if (err)
		*bad = wr;
	is_flushed = qp->rq_is_flushed;
	soft_unlock(&qp->rq_lock);
	if (base_unlikely(is_flushed) && qp->recv_cq->ibv.channel)
		soft_cq_fire(qp->recv_cq, true);
	return err;
}
