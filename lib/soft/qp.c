/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "soft/entry.h"
#include "soft/peer.h"
#include "soft/qp.h"

#define MAX_INLINE 4096u

/* 0, or what errno shall say. */
static int check_init(struct soft_context *c,
		      const struct ibv_qp_init_attr *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if (soft_is_foreign(c) || c->is_gone)
		return EIO;
	if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC &&
	    attr->qp_type != IBV_QPT_UD)
		return EOPNOTSUPP;
	if (attr->srq && attr->srq->context != &c->verbs.context)
		return EINVAL;
	if (!attr->send_cq || !attr->recv_cq ||
	    attr->send_cq->context != &c->verbs.context ||
	    attr->recv_cq->context != &c->verbs.context)
		return EINVAL;
	if (cap->max_send_wr > SOFT_MAX_WR || cap->max_recv_wr > SOFT_MAX_WR ||
	    cap->max_send_sge > SOFT_MAX_SGE ||
	    cap->max_recv_sge > SOFT_MAX_SGE ||
	    cap->max_inline_data > MAX_INLINE)
		return EINVAL;
	return 0;
}

/* A slot for a queue pair.  Caller holds the context's lock. */
static struct soft_qp *slot_get(struct soft_context *c)
{
	uint32_t slot = 0;
	struct soft_qp *qp;

	if (c->n_qp >= SOFT_N_QP)
		return NULL;
	/* A slot whose QP is being destroyed is taken until that is done. */
	while (c->qps[slot] && c->qps[slot]->is_taken)
		slot++;
	qp = c->qps[slot];
	if (!qp) {
		qp = base_alloc(1, sizeof(*qp));
		if (!qp)
			return NULL;
		qp->context = c;
		qp->slot = slot;
		qp->shared = &c->seg->qps[slot];
		qp->lock = &qp->shared->send_lock;
		qp->generation = (uint32_t)soft_random(c);
		atomic_store(&c->qps[slot], qp);
		if (slot >= c->qps_high)
			atomic_store(&c->qps_high, slot + 1);
	}
	qp->is_taken = true;
	/* 12 bits of generation over 12 of slot: numbers 0 and 1 are not
	 * ordinary ones, and a number comes again after 4094 others. */
	do {
		qp->generation = (qp->generation + 1) & 0xfff;
	} while (!qp->generation);
	c->n_qp++;
	return qp;
}

static void source_init(struct soft_source *s, struct soft_qp *qp,
			struct soft_block *block, uint32_t slots)
{
	s->cqes = (struct soft_cqe *)(void *)(qp->context->seg->rings +
					      block->offset);
	s->mask = slots ? slots - 1 : 0;
	s->qp = qp;
	s->is_recv = s == &qp->rq;
	s->has_more = s->is_recv && qp->rq_more;
	atomic_store(&s->head, 0);
	atomic_store(&s->freed, 0);
	atomic_store(&s->next, s->cqes);
}

static void queues_free(struct soft_qp *qp)
{
	struct soft_context *c = qp->context;

	soft_block_free(c, qp->sq_block);
	soft_block_free(c, qp->rq_block);
	soft_block_free(c, qp->wqe_block);
	soft_block_free(c, qp->more_block);
	base_free(qp->sq.tags);
	base_free(qp->rq.tags);
	base_free(qp->wqes);
	base_free(qp->wqe_sges);
	base_free(qp->wqe_inline);
	base_free(qp->bounced);
	qp->sq.tags = NULL;
	qp->rq.tags = NULL;
}

/* What is told of completions beside themselves. */
static bool more_new(struct soft_qp *qp)
{
	struct soft_context *c = qp->context;

	qp->more_block = soft_block_new(c, (qp->rq_slots + 1) *
						   sizeof(*qp->rq_more));
	if (!qp->more_block)
		return false;
	qp->rq_more = (struct soft_shared_more *)(void *)(
		c->seg->rings + qp->more_block->offset);
	return true;
}

/* Memory for both queues.  Caller holds the context's lock. */
static bool queues_new(struct soft_qp *qp, const struct ibv_qp_cap *cap,
		       enum ibv_qp_type type)
{
	struct soft_context *c = qp->context;
	size_t sq = cap->max_send_wr;
	/* One queue pair may come to have all that is shared. */
	size_t rq = qp->srq ? qp->srq->slots : cap->max_recv_wr;

	qp->sq_block = soft_block_new(c, (sq + 1) * sizeof(struct soft_cqe));
	qp->rq_block = soft_block_new(c, (rq + 1) * sizeof(struct soft_cqe));
	qp->wqe_block = soft_block_new(c, (rq * cap->max_recv_sge + 1) *
						  sizeof(*qp->rq_wqes));
	qp->sq.tags = base_alloc(sq + 1, sizeof(*qp->sq.tags));
	qp->rq.tags = base_alloc(rq + 1, sizeof(*qp->rq.tags));
	qp->wqes = base_alloc(sq + 1, sizeof(*qp->wqes));
	qp->wqe_sges = base_alloc(sq + 1, (cap->max_send_sge + 1) *
						  sizeof(*qp->wqe_sges));
	qp->wqe_inline = base_alloc(sq + 1, cap->max_inline_data + 1);
	if (!qp->sq_block || !qp->rq_block || !qp->wqe_block || !qp->sq.tags ||
	    !qp->rq.tags || !qp->wqes || !qp->wqe_sges || !qp->wqe_inline) {
		queues_free(qp);
		return false;
	}
	qp->sq_slots = (uint32_t)sq;
	qp->rq_slots = (uint32_t)rq;
	qp->max_inline = cap->max_inline_data;
	qp->max_sge = cap->max_send_sge;
	qp->sq.slots = qp->sq_slots;
	qp->rq.slots = qp->rq_slots;
	qp->cap = *cap;
	qp->rq_wqes = (struct soft_shared_sge *)(void *)(c->seg->rings +
							 qp->wqe_block->offset);
	if ((qp->srq || type == IBV_QPT_UD) && !more_new(qp)) {
		queues_free(qp);
		return false;
	}
	source_init(&qp->sq, qp, qp->sq_block, qp->sq_slots);
	source_init(&qp->rq, qp, qp->rq_block, qp->rq_slots);
	return true;
}

static void slot_put(struct soft_qp *qp)
{
	qp->is_taken = false;
	qp->context->n_qp--;
}

static void fill_ibv(struct soft_qp *qp, struct ibv_pd *pd,
		     const struct ibv_qp_init_attr *attr)
{
	memset(qp->spare, 0, sizeof(qp->spare));
	qp->ibv.context = &qp->context->verbs.context;
	qp->ibv.qp_context = attr->qp_context;
	qp->ibv.pd = pd;
	qp->ibv.send_cq = attr->send_cq;
	qp->ibv.recv_cq = attr->recv_cq;
	qp->ibv.srq = attr->srq;
	qp->ibv.handle = qp->slot;
	qp->ibv.qp_num = qp->generation << 12 | qp->slot;
	qp->ibv.state = IBV_QPS_RESET;
	qp->ibv.qp_type = attr->qp_type;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
}

/* Caller holds the context's lock. */
static struct soft_qp *qp_new(struct soft_context *c, struct ibv_pd *pd,
			      struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_cap cap = attr->cap;
	struct soft_qp *qp = slot_get(c);

	if (!qp)
		return NULL;
	memset((char *)qp + offsetof(struct soft_qp, state), 0,
	       offsetof(struct soft_qp, sq) - offsetof(struct soft_qp, state));
	qp->srq = (struct soft_srq *)(void *)attr->srq;
	cap.max_send_wr = soft_round_up_pow2(cap.max_send_wr);
	cap.max_recv_wr = soft_round_up_pow2(cap.max_recv_wr);
	if (qp->srq)
		cap.max_recv_wr = cap.max_recv_sge = 0;
	if (!queues_new(qp, &cap, attr->qp_type))
		goto err_slot;
	fill_ibv(qp, pd, attr);
	qp->pd = (struct soft_pd *)pd;
	qp->send_cq = (struct soft_cq *)(void *)attr->send_cq;
	qp->recv_cq = (struct soft_cq *)(void *)attr->recv_cq;
	qp->signal_all = attr->sq_sig_all;
	qp->attr.port_num = 1;
	qp->chaos = (uint64_t)c->faults.chaos + ++c->n_qps_made * 0x9e37u;
	atomic_store(&qp->shared->rq_tail, 0);
	if (!soft_cq_attach(qp->send_cq, &qp->sq))
		goto err_queues;
	if (!soft_cq_attach(qp->recv_cq, &qp->rq))
		goto err_send_cq;
	atomic_fetch_add(&qp->pd->n_refs, 1);
	if (qp->srq)
		qp->srq->n_qps++;
	qp->is_live = true;
	attr->cap = cap;
	return qp;

err_send_cq:
	soft_cq_detach(qp->send_cq, &qp->sq);
err_queues:
	queues_free(qp);
err_slot:
	slot_put(qp);
	return NULL;
}

struct ibv_qp *soft_create_qp(struct ibv_pd *pd,
			      struct ibv_qp_init_attr *attr)
{
	struct soft_context *c = soft_context_of(pd->context);
	struct soft_qp *qp;

	errno = check_init(c, attr);
	if (errno)
		return NULL;
	if (soft_fault_hits(&c->faults.fail_qp)) {
		errno = ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&c->lock);
	qp = qp_new(c, pd, attr);
	pthread_mutex_unlock(&c->lock);
	if (!qp) {
		errno = ENOMEM;
		return NULL;
	}
	return &qp->ibv;
}

int soft_destroy_qp(struct ibv_qp *ibqp)
{
	struct soft_qp *qp = (struct soft_qp *)(void *)ibqp;
	struct soft_context *c = qp->context;

	if (soft_is_foreign(c))
		return EIO;
	pthread_mutex_lock(&c->lock);
	soft_lock(qp->lock);
	qp->is_live = false;
	qp->is_fast = false;
	qp->sq_exec = qp->sq_tail;
	soft_pace_forget(qp);
	if (atomic_exchange(&qp->is_pending, false))
		atomic_fetch_sub(&c->n_pending, 1);
	soft_unlock(qp->lock);
	soft_qp_withdraw(qp);
	/* Completions that nobody has polled go with it. */
	soft_cq_detach(qp->send_cq, &qp->sq);
	soft_cq_detach(qp->recv_cq, &qp->rq);
	if (qp->srq)
		soft_srq_reclaim(qp);
	if (qp->peer)
		soft_peer_put(c, qp->peer);
	qp->peer = NULL;
	pthread_mutex_unlock(&c->lock);

	pthread_mutex_lock(&ibqp->mutex);
	while (ibqp->events_completed != qp->n_events)
		pthread_cond_wait(&ibqp->cond, &ibqp->mutex);
	pthread_mutex_unlock(&ibqp->mutex);
	pthread_cond_destroy(&ibqp->cond);
	pthread_mutex_destroy(&ibqp->mutex);

	pthread_mutex_lock(&c->lock);
	atomic_fetch_sub(&qp->pd->n_refs, 1);
	if (qp->srq)
		qp->srq->n_qps--;
	queues_free(qp);
	slot_put(qp);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

int soft_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct soft_qp *qp = (struct soft_qp *)(void *)ibqp;
	struct soft_context *c = qp->context;

	(void)mask; /* all of it, as devices do */
	if (soft_is_foreign(c) || c->is_gone)
		return EIO;
	pthread_mutex_lock(&c->lock);
	soft_lock(qp->lock);
	*attr = qp->attr;
	attr->qp_state = qp->state;
	ibqp->state = qp->state;
	soft_unlock(qp->lock);
	attr->cur_qp_state = attr->qp_state;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->cap = qp->cap;
	memset(init_attr, 0, sizeof(*init_attr));
	init_attr->qp_context = ibqp->qp_context;
	init_attr->send_cq = ibqp->send_cq;
	init_attr->recv_cq = ibqp->recv_cq;
	init_attr->srq = ibqp->srq;
	init_attr->cap = qp->cap;
	init_attr->qp_type = ibqp->qp_type;
	init_attr->sq_sig_all = qp->signal_all;
	pthread_mutex_unlock(&c->lock);
	return 0;
}
