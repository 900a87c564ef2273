/* SPDX-License-Identifier: MIT */
/* What a queue pair owes others once its lock is let go. */
#define _GNU_SOURCE
#include <errno.h>

#include "soft/peer.h"
#include "soft/qp.h"

/* Caller holds the context's lock. */
static void send_notes(struct soft_qp *qp)
{
	uint32_t note;

	soft_lock(qp->lock);
	note = qp->note;
	soft_unlock(qp->lock);
	if (!note)
		return;
	if (soft_note_send(qp, note)) {
		soft_lock(qp->lock);
		qp->note &= (uint8_t)~note;
		soft_unlock(qp->lock);
		return;
	}
	/* Its socket is full: again with what waits in the send queue. */
	atomic_store(&qp->next_ns, 0);
	if (!atomic_exchange(&qp->is_pending, true)) {
		atomic_fetch_add(&qp->context->n_pending, 1);
		soft_control_wake(qp->context);
	}
}

void soft_after_locked(struct soft_qp *qp, uint32_t after)
{
	if (!qp->is_live)
		return;
	if (after & SOFT_AFTER_NOTE)
		send_notes(qp);
	if (after & SOFT_AFTER_FAIL) {
		soft_qp_withdraw(qp);
		soft_qp_flush_recv(qp);
		soft_cq_fire(qp->recv_cq, true);
	}
	if (after & (SOFT_AFTER_FIRE | SOFT_AFTER_FIRE_ERROR))
		soft_cq_fire(qp->send_cq, after & SOFT_AFTER_FIRE_ERROR);
	if (after & SOFT_AFTER_WAKE)
		soft_control_wake(qp->context);
	if (after & SOFT_AFTER_OVERRUN)
		soft_cq_overrun(qp->send_cq);
	if (after & SOFT_AFTER_FATAL)
		soft_qp_fatal(qp);
	if (after & SOFT_AFTER_GONE)
		soft_device_gone(qp->context);
}

void soft_after(struct soft_qp *qp, uint32_t after)
{
	struct soft_context *c = qp->context;

	pthread_mutex_lock(&c->lock);
	soft_after_locked(qp, after);
	pthread_mutex_unlock(&c->lock);
}

void soft_run_all(struct soft_context *c, bool is_thread)
{
	const uint64_t now = soft_is_paced(&c->pace) ? base_now_ns()
						     : UINT64_MAX;
	uint32_t i, n = atomic_load(&c->qps_high);

	if (!is_thread)
		atomic_store_explicit(&c->polled_ns, now, memory_order_relaxed);
	for (i = 0; i < n; i++) {
		struct soft_qp *qp = atomic_load(&c->qps[i]);
		uint32_t after = 0;

		if (!qp || !atomic_load(&qp->is_pending) ||
		    atomic_load(&qp->next_ns) > now)
			continue;
		/* Nothing comes of this before our thread has taken the peer's
		 * answer, for which it needs the lock. */
		if (!is_thread && atomic_load(&qp->bounce) == SOFT_BOUNCE_ASKED)
			continue;
		/* Who has it runs it, or is soon done: a thread that serves
		 * others must not queue for a lock that is not fair. */
		if (!soft_trylock(qp->lock))
			continue;
		if (qp->is_live && atomic_load(&qp->is_pending)) {
			soft_run(qp);
			after = soft_after_take(qp);
			if (qp->note)
				after |= SOFT_AFTER_NOTE;
		}
		soft_unlock(qp->lock);
		if (after)
			soft_after(qp, after);
	}
}
