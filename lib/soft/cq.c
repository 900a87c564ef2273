/* SPDX-License-Identifier: MIT */
/*
 * Completion queues.  A completion lies in the ring of its queue pair, where
 * whoever executed the request has put it; polling (poll.c) collects.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "soft/entry.h"
#include "soft/qp.h"
#include "soft/soft.h"

struct ibv_cq *soft_create_cq(struct ibv_context *context, int cqe,
			      void *cq_context,
			      struct ibv_comp_channel *channel,
			      int comp_vector)
{
	struct soft_context *c = soft_context_of(context);
	struct soft_cq *cq;
	uint32_t slot;

	if (soft_is_foreign(c) || c->is_gone) {
		errno = EIO;
		return NULL;
	}
	if (cqe < 1 || cqe > SOFT_MAX_CQE || comp_vector < 0 ||
	    comp_vector >= context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	cq = soft_fault_hits(&c->faults.fail_cq)
		     ? NULL
		     : base_alloc(1, sizeof(*cq));
	if (!cq) {
		errno = ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&c->lock);
	for (slot = 0; slot < SOFT_N_CQ && c->cqs[slot]; slot++)
		;
	if (slot == SOFT_N_CQ) {
		pthread_mutex_unlock(&c->lock);
		base_free(cq);
		errno = ENOMEM;
		return NULL;
	}
	c->cqs[slot] = cq;
	c->n_cq++;
	cq->generation = ++c->cq_gen;
	if (channel)
		channel->refcnt++;
	pthread_mutex_unlock(&c->lock);

	cq->slot = slot;
	cq->shared = &c->seg->cqs[slot];
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.handle = slot;
	cq->ibv.cqe = cqe;
	atomic_store(&cq->n_max, (uint32_t)cqe);
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	return &cq->ibv;
}

int soft_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct soft_cq *cq = (struct soft_cq *)(void *)ibcq;
	struct soft_context *c = soft_context_of(ibcq->context);
	uint32_t n;

	if (soft_is_foreign(c) || c->is_gone)
		return EIO;
	if (cqe < 1 || cqe > SOFT_MAX_CQE || atomic_load(&cq->is_broken))
		return EINVAL;
	soft_lock(&cq->lock);
	n = soft_cq_count(cq, (uint32_t)cqe + 1);
	if (n <= (uint32_t)cqe) {
		atomic_store(&cq->n_max, (uint32_t)cqe);
		ibcq->cqe = cqe;
	}
	soft_unlock(&cq->lock);
	return n <= (uint32_t)cqe ? 0 : EINVAL;
}

int soft_destroy_cq(struct ibv_cq *ibcq)
{
	struct soft_cq *cq = (struct soft_cq *)(void *)ibcq;
	struct soft_context *c = soft_context_of(ibcq->context);

	if (soft_is_foreign(c))
		return EIO;
	pthread_mutex_lock(&c->lock);
	if (cq->n_attached) {
		pthread_mutex_unlock(&c->lock);
		return EBUSY;
	}
	atomic_store(&cq->shared->armed, 0);
	/* From here on get_cq_event() and fire find no such CQ. */
	c->cqs[cq->slot] = NULL;
	c->n_cq--;
	if (ibcq->channel)
		ibcq->channel->refcnt--;
	pthread_mutex_unlock(&c->lock);

	pthread_mutex_lock(&ibcq->mutex);
	while (ibcq->comp_events_completed != cq->n_events ||
	       ibcq->async_events_completed != cq->n_async)
		pthread_cond_wait(&ibcq->cond, &ibcq->mutex);
	pthread_mutex_unlock(&ibcq->mutex);
	pthread_cond_destroy(&ibcq->cond);
	pthread_mutex_destroy(&ibcq->mutex);
	base_free(cq->many);
	base_free(cq);
	return 0;
}

/* Caller holds the context's lock. */
bool soft_cq_attach(struct soft_cq *cq, struct soft_source *source)
{
	uint32_t i, n = atomic_load(&cq->n_sources);

	for (i = 0; i < n && atomic_load(soft_source_at(cq, i)); i++)
		;
	if (i >= SOFT_FEW && !cq->many) {
		cq->many = base_alloc(1, sizeof(*cq->many));
		if (!cq->many)
			return false;
	}
	if (i == SOFT_HINTS)
		return false;
	source->hint = i;
	soft_lock(&cq->lock);
	atomic_store(soft_source_at(cq, i), source);
	/* Pairs with the load in poll: the array is there before the count. */
	if (i == n)
		atomic_store(&cq->n_sources, n + 1);
	soft_unlock(&cq->lock);
	cq->n_attached++;
	atomic_fetch_add(&cq->n_slots, source->slots);
	return true;
}

/* Caller holds the context's lock.  The source's completions are gone. */
void soft_cq_detach(struct soft_cq *cq, struct soft_source *source)
{
	soft_lock(&cq->lock);
	atomic_store(soft_source_at(cq, source->hint), NULL);
	soft_unlock(&cq->lock);
	cq->n_attached--;
	atomic_fetch_sub(&cq->n_slots, source->slots);
}

void soft_cq_hint(struct soft_cq *cq, const struct soft_source *source)
{
	_Atomic uint8_t *bytes = (_Atomic uint8_t *)cq->shared->hints;

	/* Pairs with the exchange in poll_hinted(). */
	atomic_store_explicit(&bytes[source->hint], 1, memory_order_release);
}

uint32_t soft_cq_count(struct soft_cq *cq, uint32_t limit)
{
	uint32_t i, n_sources = atomic_load(&cq->n_sources), n = 0;

	for (i = 0; i < n_sources; i++) {
		struct soft_source *s = atomic_load(soft_source_at(cq, i));
		uint32_t at = s ? atomic_load(&s->head) : 0;

		while (s && n < limit &&
		       atomic_load(&s->cqes[at & s->mask].seq) == at + 1) {
			at++;
			n++;
		}
	}
	return n;
}

bool soft_cq_has(struct soft_cq *cq)
{
	uint32_t i, n = atomic_load(&cq->n_sources);

	for (i = 0; i < n; i++) {
		struct soft_source *s = atomic_load(soft_source_at(cq, i));

		if (s && soft_has_next(s))
			return true;
	}
	return false;
}

void soft_cq_overrun(struct soft_cq *cq)
{
	struct soft_context *c = soft_context_of(cq->ibv.context);
	uint32_t i;

	if (atomic_exchange(&cq->is_broken, true))
		return;
	soft_async(c, IBV_EVENT_CQ_ERR, NULL, cq);
	for (i = 0; i < atomic_load(&c->qps_high); i++) {
		struct soft_qp *qp = atomic_load(&c->qps[i]);

		if (qp && qp->is_live &&
		    (qp->send_cq == cq || qp->recv_cq == cq))
			soft_qp_fatal(qp);
	}
}
