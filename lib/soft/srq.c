/* SPDX-License-Identifier: MIT */
/*
 * Shared receive queues, as their owner has them.  Receives are posted into
 * free slots and taken in the order posted; slots come back in any order, as
 * completions are polled, and with the queue pair that took them at last.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "soft/entry.h"
#include "soft/qp.h"
#include "soft/soft.h"

static void queue_free(struct soft_srq *srq)
{
	if (!srq)
		return;
	soft_block_free(soft_context_of(srq->pd->ibv.context), srq->block);
	base_free(srq->free);
	base_free(srq->wr_ids);
	base_free(srq->uses);
	base_free(srq);
}

/* Caller holds the context's lock. */
static struct soft_srq *queue_new(struct soft_context *c, struct soft_pd *pd,
				  uint32_t slots, uint32_t sges)
{
	struct soft_srq *srq = base_alloc(1, sizeof(*srq));
	unsigned char *base;
	uint32_t i;

	if (!srq)
		return NULL;
	srq->pd = pd;
	srq->block = soft_block_new(c, slots * (16 + sges *
						sizeof(*srq->wqes)));
	srq->free = base_alloc(slots, sizeof(*srq->free));
	srq->wr_ids = base_alloc(slots, sizeof(*srq->wr_ids));
	srq->uses = base_alloc(slots, sizeof(*srq->uses));
	if (!srq->block || !srq->free || !srq->wr_ids || !srq->uses) {
		queue_free(srq);
		return NULL;
	}
	base = c->seg->rings + srq->block->offset;
	srq->slots = slots;
	srq->sges = sges;
	srq->words = (_Atomic uint64_t *)(void *)base;
	srq->order = srq->words + slots;
	srq->wqes = (struct soft_shared_sge *)(void *)(base + 16 * slots);
	for (i = 0; i < slots; i++) {
		atomic_store(&srq->words[i], SOFT_SRQ_FREE);
		srq->free[srq->n_free++] = slots - 1 - i;
	}
	return srq;
}

static void publish(struct soft_srq *srq)
{
	struct soft_shared_srq *s = srq->shared;

	/* Queue pairs that use it become ready later: that orders these. */
	atomic_store(&s->base, srq->block->offset);
	atomic_store(&s->slots, srq->slots);
	atomic_store(&s->sges, srq->sges);
	atomic_store(&s->pd, srq->pd->id);
	atomic_store(&s->limit, 0);
	atomic_store(&s->tail, 0);
	atomic_store(&s->head, 0);
}

static struct soft_srq *create(struct soft_context *c, struct ibv_pd *pd,
			       const struct ibv_srq_init_attr *attr)
{
	uint32_t slots = soft_round_up_pow2(attr->attr.max_wr);
	struct soft_srq *srq = NULL;
	uint32_t slot;

	pthread_mutex_lock(&c->lock);
	for (slot = 0; slot < SOFT_N_SRQ && c->srqs[slot]; slot++)
		;
	if (slot < SOFT_N_SRQ)
		srq = queue_new(c, (struct soft_pd *)pd, slots,
				attr->attr.max_sge);
	if (srq) {
		srq->slot = slot;
		srq->generation = ++c->srq_gen;
		srq->shared = &c->seg->srqs[slot];
		srq->ibv.context = &c->verbs.context;
		srq->ibv.srq_context = attr->srq_context;
		srq->ibv.pd = pd;
		srq->ibv.handle = slot;
		pthread_mutex_init(&srq->ibv.mutex, NULL);
		pthread_cond_init(&srq->ibv.cond, NULL);
		publish(srq);
		atomic_fetch_add(&srq->pd->n_refs, 1);
		c->srqs[slot] = srq;
		c->n_srq++;
	}
	pthread_mutex_unlock(&c->lock);
	return srq;
}

struct ibv_srq *soft_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr)
{
	struct soft_context *c = soft_context_of(pd->context);
	struct soft_srq *srq;

	if (soft_is_foreign(c) || c->is_gone) {
		errno = EIO;
		return NULL;
	}
	if (!attr->attr.max_wr || attr->attr.max_wr > SOFT_MAX_WR ||
	    attr->attr.max_sge > SOFT_MAX_SGE) {
		errno = EINVAL;
		return NULL;
	}
	srq = create(c, pd, attr);
	if (!srq) {
		errno = ENOMEM;
		return NULL;
	}
	attr->attr.max_wr = srq->slots;
	return &srq->ibv;
}

int soft_destroy_srq(struct ibv_srq *ibsrq)
{
	struct soft_srq *srq = (struct soft_srq *)(void *)ibsrq;
	struct soft_context *c = soft_context_of(ibsrq->context);

	if (soft_is_foreign(c))
		return EIO;
	pthread_mutex_lock(&c->lock);
	if (srq->n_qps) {
		pthread_mutex_unlock(&c->lock);
		return EBUSY;
	}
	c->srqs[srq->slot] = NULL;
	c->n_srq--;
	pthread_mutex_unlock(&c->lock);

	pthread_mutex_lock(&ibsrq->mutex);
	while (ibsrq->events_completed != srq->n_events)
		pthread_cond_wait(&ibsrq->cond, &ibsrq->mutex);
	pthread_mutex_unlock(&ibsrq->mutex);
	pthread_cond_destroy(&ibsrq->cond);
	pthread_mutex_destroy(&ibsrq->mutex);
	atomic_fetch_sub(&srq->pd->n_refs, 1);
	pthread_mutex_lock(&c->lock);
	queue_free(srq);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

int soft_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct soft_srq *srq = (struct soft_srq *)(void *)ibsrq;
	struct soft_context *c = soft_context_of(ibsrq->context);

	if (soft_is_foreign(c) || c->is_gone)
		return EIO;
	/* IBV_DEVICE_SRQ_RESIZE is not among the device's capabilities. */
	if (mask & ~(int)IBV_SRQ_LIMIT)
		return mask & IBV_SRQ_MAX_WR ? EOPNOTSUPP : EINVAL;
	if (!mask)
		return 0;
	if (attr->srq_limit > srq->slots)
		return EINVAL;
	pthread_mutex_lock(&c->lock);
	srq->n_armings++;
	atomic_store(&srq->shared->limit,
		     srq->n_armings << 16 | attr->srq_limit);
	pthread_mutex_unlock(&c->lock);
	soft_srq_check_limit(srq);
	return 0;
}

int soft_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct soft_srq *srq = (struct soft_srq *)(void *)ibsrq;
	struct soft_context *c = soft_context_of(ibsrq->context);

	if (soft_is_foreign(c) || c->is_gone)
		return EIO;
	attr->max_wr = srq->slots;
	attr->max_sge = srq->sges;
	attr->srq_limit = atomic_load(&srq->shared->limit) & 0xffff;
	return 0;
}

void soft_srq_check_limit(struct soft_srq *srq)
{
	uint32_t limit = atomic_load(&srq->shared->limit);

	if (!(limit & 0xffff) ||
	    atomic_load(&srq->shared->tail) - atomic_load(&srq->shared->head) >=
		    (limit & 0xffff))
		return;
	if (atomic_compare_exchange_strong(&srq->shared->limit, &limit,
					   limit & ~0xffffu))
		soft_async_srq(soft_context_of(srq->ibv.context),
			       IBV_EVENT_SRQ_LIMIT_REACHED, srq);
}

/*
 * A taker that died may have left the head behind; once its slot is posted
 * anew, the ring would seem longer than it is.  Caller holds @srq->lock.
 */
static void settle(struct soft_srq *srq)
{
	uint32_t tries;

	for (tries = 0; tries < srq->slots; tries++) {
		uint32_t head = atomic_load(&srq->shared->head);
		uint64_t next = atomic_load(&srq->order[head &
							(srq->slots - 1)]);
		uint32_t slot = (uint32_t)next & (srq->slots - 1);

		if (head == srq->tail || next >> 32 != head ||
		    atomic_load(&srq->words[slot]) == (uint64_t)head << 32)
			return;
		atomic_compare_exchange_strong(&srq->shared->head, &head,
					       head + 1);
	}
}

/* 0 or what the caller is told.  Caller holds @srq->lock. */
static int post_one(struct soft_srq *srq, const struct ibv_recv_wr *wr)
{
	const uint32_t tail = srq->tail;
	struct soft_shared_sge *to;
	uint32_t slot;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->sges)
		return EINVAL;
	if (!srq->n_free)
		return ENOMEM;
	if (tail - atomic_load(&srq->shared->head) >= srq->slots)
		settle(srq);
	slot = srq->free[--srq->n_free];
	to = &srq->wqes[slot * srq->sges];
	soft_sges_store(to, srq->sges, wr);
	srq->wr_ids[slot] = wr->wr_id;
	srq->uses[slot] = SOFT_USE_POSTED;
	/* Each before the next, as soft_taker_take() reads them backwards. */
	atomic_store_explicit(&srq->words[slot], (uint64_t)tail << 32,
			      memory_order_release);
	atomic_store_explicit(&srq->order[tail & (srq->slots - 1)],
			      (uint64_t)tail << 32 | slot,
			      memory_order_release);
	srq->tail = tail + 1;
	atomic_store_explicit(&srq->shared->tail, tail + 1,
			      memory_order_release);
	return 0;
}

int soft_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad)
{
	struct soft_srq *srq = (struct soft_srq *)(void *)ibsrq;
	struct soft_context *c = soft_context_of(ibsrq->context);
	int err = 0;

	if (soft_is_foreign(c)) {
		*bad = wr;
		return EIO;
	}
	soft_lock(&srq->lock);
	for (; wr; wr = wr->next) {
		err = soft_fault_hits(&c->faults.fail_recv)
			      ? ENOMEM
			      : post_one(srq, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	soft_unlock(&srq->lock);
	return err;
}

/* Caller holds @srq->lock. */
static bool release(struct soft_srq *srq, uint32_t slot, uint32_t qpn)
{
	if (srq->uses[slot] != SOFT_USE_POSTED ||
	    (uint32_t)atomic_load(&srq->words[slot]) != qpn)
		return false;
	atomic_store(&srq->words[slot], SOFT_SRQ_FREE);
	srq->uses[slot] = SOFT_USE_FREE;
	srq->free[srq->n_free++] = slot;
	return true;
}

bool soft_srq_release(struct soft_srq *srq, uint32_t slot, uint32_t qpn,
		      uint64_t *wr_id)
{
	bool is_done;

	slot &= srq->slots - 1;
	soft_lock(&srq->lock);
	*wr_id = srq->wr_ids[slot];
	is_done = release(srq, slot, qpn);
	soft_unlock(&srq->lock);
	return is_done;
}

/* Datagrams are taken by the queue pair's own context. */
static void forget(struct soft_qp *qp)
{
	if (qp->ibv.qp_type == IBV_QPT_UD)
		qp->taker.taken = 0;
}

void soft_srq_reclaim(struct soft_qp *qp)
{
	struct soft_srq *srq = qp->srq;
	uint32_t i;

	soft_lock(&srq->lock);
	for (i = 0; i < srq->slots; i++)
		release(srq, i, qp->ibv.qp_num);
	soft_unlock(&srq->lock);
	forget(qp);
}

/* Caller holds the CQ's lock and @srq->lock. */
static void flush(struct soft_qp *qp)
{
	struct soft_srq *srq = qp->srq;
	struct soft_source *rq = &qp->rq;
	uint32_t at = atomic_load(&rq->head);
	uint32_t i;

	/* What has a completion already is none of ours. */
	for (i = 0; i < rq->slots; i++, at++) {
		uint32_t slot;

		if (atomic_load(&rq->cqes[at & rq->mask].seq) != at + 1)
			break;
		slot = atomic_load(&qp->rq_more[at & rq->mask].wqe) &
		       (srq->slots - 1);
		if (srq->uses[slot] == SOFT_USE_POSTED)
			srq->uses[slot] = SOFT_USE_DONE;
	}
	for (i = 0; i < srq->slots; i++) {
		struct soft_cqe *e = &rq->cqes[at & rq->mask];

		if (srq->uses[i] == SOFT_USE_DONE)
			srq->uses[i] = SOFT_USE_POSTED;
		else if (srq->uses[i] == SOFT_USE_POSTED &&
			 (uint32_t)atomic_load(&srq->words[i]) ==
				 qp->ibv.qp_num &&
			 at - atomic_load(&rq->head) < rq->slots) {
			atomic_store(&qp->rq_more[at & rq->mask].wqe, i);
			atomic_store(&e->info, IBV_WC_WR_FLUSH_ERR);
			atomic_store(&e->seq, ++at);
		}
	}
}

void soft_srq_flush(struct soft_qp *qp)
{
	soft_lock(&qp->recv_cq->lock);
	soft_lock(&qp->srq->lock);
	flush(qp);
	soft_unlock(&qp->srq->lock);
	soft_unlock(&qp->recv_cq->lock);
	forget(qp);
	soft_cq_hint(qp->recv_cq, &qp->rq);
}
