/* SPDX-License-Identifier: MIT */
/*
 * Completion queues.  A completion lies in the ring of its queue pair, where
 * whoever executed the request has put it; polling collects.  A CQ of few
 * queues looks at each; a CQ of many goes by hint bytes.
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
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	return &cq->ibv;
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

static _Atomic(struct soft_source *) *source_at(struct soft_cq *cq, uint32_t i)
{
	return i < SOFT_FEW ? &cq->few[i] : &cq->many->at[i];
}

/* Caller holds the context's lock. */
bool soft_cq_attach(struct soft_cq *cq, struct soft_source *source)
{
	uint32_t i, n = atomic_load(&cq->n_sources);

	for (i = 0; i < n && atomic_load(source_at(cq, i)); i++)
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
	atomic_store(source_at(cq, i), source);
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
	atomic_store(source_at(cq, source->hint), NULL);
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

static bool has_next(const struct soft_source *s)
{
	struct soft_cqe *e;

	e = atomic_load_explicit(&s->next, memory_order_relaxed);
	return e && atomic_load_explicit(&e->seq, memory_order_relaxed) ==
			    atomic_load_explicit(&s->head,
						 memory_order_relaxed) + 1;
}

bool soft_cq_has(struct soft_cq *cq)
{
	uint32_t i, n = atomic_load(&cq->n_sources);

	for (i = 0; i < n; i++) {
		struct soft_source *s = atomic_load(source_at(cq, i));

		if (s && has_next(s))
			return true;
	}
	return false;
}

static void fill(const struct soft_source *s, const struct soft_tag *tag,
		 const struct soft_cqe *e, struct ibv_wc *wc)
{
	uint32_t info = atomic_load_explicit(&e->info, memory_order_relaxed);

	if ((info & 0xff) != IBV_WC_SUCCESS) {
		/* What an error leaves undefined must not look plausible. */
		memset(wc, 0xa5, sizeof(*wc));
		wc->wr_id = tag->wr_id;
		wc->status = (enum ibv_wc_status)(info & 0xff);
		wc->vendor_err = info >> 24;
		wc->qp_num = s->qp->ibv.qp_num;
		return;
	}
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = tag->wr_id;
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

/* Caller holds the CQ's lock. */
static int drain(struct soft_source *s, int max, struct ibv_wc *wc)
{
	uint32_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
	int n = 0;

	while (n < max) {
		struct soft_cqe *e = &s->cqes[head & s->mask];
		struct soft_tag *tag = &s->tags[head & s->mask];

		/* Pairs with the release in soft_push(), soft_deliver(). */
		if (atomic_load_explicit(&e->seq, memory_order_acquire) !=
		    head + 1)
			break;
		fill(s, tag, e, wc + n++);
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
		s = atomic_load(source_at(cq, i));
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
		struct soft_source *s = atomic_load(source_at(cq, at));

		if (s)
			n += drain(s, max - n, wc + n);
	}
	cq->turn = n_sources ? (cq->turn + 1) % n_sources : 0;
	return n;
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

/* More completions than the CQ has entries? */
static bool is_overrun(struct soft_context *c, struct soft_cq *cq)
{
	uint32_t i, n_sources, n = 0;

	if (base_likely(atomic_load_explicit(&cq->n_slots,
					     memory_order_relaxed) <=
			(uint32_t)cq->ibv.cqe))
		return false;
	soft_lock(&cq->lock);
	n_sources = atomic_load(&cq->n_sources);
	for (i = 0; i < n_sources; i++) {
		struct soft_source *s = atomic_load(source_at(cq, i));
		uint32_t at = s ? atomic_load(&s->head) : 0;

		while (s && n <= (uint32_t)cq->ibv.cqe &&
		       atomic_load(&s->cqes[at & s->mask].seq) == at + 1) {
			at++;
			n++;
		}
	}
	soft_unlock(&cq->lock);
	if (n <= (uint32_t)cq->ibv.cqe)
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

			if (s && has_next(s))
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
		soft_run_all(c);
	if (!may_have(cq, &must_scan))
		return 0;
	if (base_unlikely(is_overrun(c, cq)))
		return -EIO;
	soft_lock(&cq->lock);
	n = must_scan ? poll_all(cq, max, wc) : poll_hinted(cq, max, wc);
	soft_unlock(&cq->lock);
	return n;
}
