/* SPDX-License-Identifier: MIT */
/* What one end of a connection tells the other, beside the data. */
#define _GNU_SOURCE
#include <errno.h>

#include "soft/peer.h"
#include "soft/qp.h"

/* To a context of this process: into its inbox. */
static void drop_near(struct soft_held *held, uint32_t slot, uint32_t epoch,
		      uint32_t notes)
{
	struct soft_context *c;
	uint64_t mail, more;

	pthread_mutex_lock(&held->lock);
	c = held->context;
	if (c) {
		mail = atomic_load(&c->inbox[slot]);
		do {
			/* Notes of an earlier connection mean nothing. */
			more = (uint64_t)epoch << 32 | notes;
			if (mail >> 32 == epoch)
				more |= (uint32_t)mail;
		} while (!atomic_compare_exchange_weak(&c->inbox[slot], &mail,
						       more));
		atomic_store(&c->has_mail, true);
		soft_control_wake(c);
	}
	pthread_mutex_unlock(&held->lock);
}

bool soft_note_send(struct soft_qp *qp, uint32_t notes)
{
	uint32_t slot = qp->attr.dest_qp_num % SOFT_N_QP;
	int err;

	if (!qp->peer || atomic_load(&qp->peer->is_dead))
		return true;
	if (qp->peer->held) {
		drop_near(qp->peer->held, slot, qp->link_epoch, notes);
		return true;
	}
	err = soft_message_send(qp->peer->fd, SOFT_NOTE,
				(uint64_t)slot << 32 | qp->link_epoch, notes,
				-1);
	return err != EAGAIN;
}

void soft_note_take(struct soft_context *c, uint32_t slot, uint32_t epoch,
		    uint32_t notes)
{
	struct soft_qp *qp;

	pthread_mutex_lock(&c->lock);
	qp = atomic_load(&c->qps[slot % SOFT_N_QP]);
	if (!qp || !qp->is_live || qp->epoch != epoch)
		goto out;
	if (notes & SOFT_NOTE_WAKE)
		soft_cq_fire(qp->recv_cq, notes & SOFT_NOTE_SOLICITED);
	if (notes & SOFT_NOTE_LIMIT && qp->srq)
		soft_srq_check_limit(qp->srq);
	if (notes & SOFT_NOTE_COMM_EST && !qp->is_established) {
		qp->is_established = true;
		soft_async(c, IBV_EVENT_COMM_EST, qp, NULL);
	}
	if (notes & SOFT_NOTE_ERROR && qp->state != IBV_QPS_ERR) {
		if (notes & SOFT_NOTE_ACCESS)
			soft_async(c, IBV_EVENT_QP_ACCESS_ERR, qp, NULL);
		if (notes & SOFT_NOTE_REQUEST)
			soft_async(c, IBV_EVENT_QP_REQ_ERR, qp, NULL);
		soft_qp_error(qp);
	}
out:
	pthread_mutex_unlock(&c->lock);
}
