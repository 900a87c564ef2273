/* SPDX-License-Identifier: MIT */
/*
 * Polling.  A CQ of few queues looks at each; a CQ of many goes by hint
 * bytes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "soft/entry.h"
#include "soft/poll.h"

/*
 * Every this many empty polls the hints are not believed: a producer may have
 * died between completion and hint.  At 5 ns a poll this is some 5 us.
 */
#define FULL_SCAN 1024u

/* Caller holds the CQ's lock. */
static int drain(struct soft_source *s, int max, struct ibv_wc *wc)
{
	uint32_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
	int n = 0;

	if (base_unlikely(s->has_more))
		return soft_drain_more(s, max, wc);
	while (n < max) {
		struct soft_cqe *e = &s->cqes[head & s->mask];
		struct soft_tag *tag = &s->tags[head & s->mask];

		/* Pairs with the release in soft_push(), soft_deliver(). */
		if (atomic_load_explicit(&e->seq, memory_order_acquire) !=
		    head + 1)
			break;
		soft_wc_fill(s, tag->wr_id, e, wc + n++);
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

static bool is_flushed_next(const struct soft_source *s)
{
	struct soft_cqe *e = atomic_load_explicit(&s->next,
						  memory_order_relaxed);

	/* Pairs with the release in soft_push(): the cause is there, too. */
	return atomic_load_explicit(&e->seq, memory_order_acquire) ==
		       atomic_load_explicit(&s->head, memory_order_relaxed) +
			       1 &&
	       (atomic_load_explicit(&e->info, memory_order_relaxed) & 0xff) ==
		       IBV_WC_WR_FLUSH_ERR;
}

/*
 * The same, and before anything that was flushed what the queue pair's other
 * queue has: the cause comes first, as in one queue.
 */
static int collect(struct soft_cq *cq, struct soft_source *s, int max,
		   struct ibv_wc *wc)
{
	int n = 0;

	if (base_unlikely(is_flushed_next(s))) {
		struct soft_source *other = s->is_recv ? &s->qp->sq
						       : &s->qp->rq;

		/* It may be another CQ's. */
		if (other->hint < atomic_load(&cq->n_sources) &&
		    atomic_load(soft_source_at(cq, other->hint)) == other)
			n = drain(other, max, wc);
	}
	return n < max ? n + drain(s, max - n, wc + n) : n;
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
		more = collect(cq, s, max - n, wc + n);
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
			n += collect(cq, s, max - n, wc + n);
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
