/* SPDX-License-Identifier: MIT */
/*
 * The send queue, for what is not done as it is posted: requests that wait
 * for the peer, errors, and all that is not a plain WRITE.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "soft/exec.h"

/* IBTA 9.7.5.2.8, table 45: the RNR timer's codes, in microseconds. */
static const uint32_t rnr_us[32] = {
	655360, 10,    20,    30,    40,    60,	   80,	  120,
	160,	240,   320,   480,   640,   960,   1280,  1920,
	2560,	3840,  5120,  7680,  10240, 15360, 20480, 30720,
	40960,	61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

/*
 * What a wire does not have, fetching the peer's memory, is given a second at
 * least, however short the timeout is.
 */
#define HELP_NS 1000000000u

static void set_pending(struct soft_qp *qp, bool is_pending)
{
	if (atomic_load(&qp->is_pending) == is_pending)
		return;
	atomic_store(&qp->is_pending, is_pending);
	if (is_pending)
		atomic_fetch_add(&qp->context->n_pending, 1);
	else
		atomic_fetch_sub(&qp->context->n_pending, 1);
}

/* Tell who looks after it when the rest of the queue can go on. */
static void leave(struct soft_qp *qp, bool is_early)
{
	const bool is_pending = qp->sq_exec != qp->sq_tail;
	const bool has_ticked = atomic_load(&qp->is_pending) &&
				!atomic_load(&qp->next_ns);

	set_pending(qp, is_pending);
	if (soft_is_paced(&qp->context->pace))
		soft_pace_next(qp, is_early);
	if (is_pending && !is_early && !has_ticked)
		qp->after |= SOFT_AFTER_WAKE;
}

static enum ibv_wc_opcode wc_opcode(uint8_t opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return IBV_WC_SEND;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_RDMA_WRITE;
	}
}

/* The head of the queue is done. */
static void retire(struct soft_qp *qp, enum ibv_wc_status status)
{
	const struct soft_wqe *wqe = &qp->wqes[qp->sq_exec & qp->sq.mask];
	struct soft_tag tag = {wqe->wr_id, qp->sq_exec + 1};

	qp->sq_exec++;
	qp->blocked_ns = 0;
	qp->in_rnr = false;
	qp->moved = 0;
	qp->bounce = SOFT_BOUNCE_NONE;
	qp->is_drawn = false;
	qp->hold_ns = 0;
	/* An error is told of whether it was asked for or not. */
	if (status || wqe->flags & IBV_SEND_SIGNALED || qp->signal_all)
		soft_push(qp, &tag,
			  (uint32_t)status |
				  (uint32_t)wc_opcode(wqe->opcode) << 8,
			  wqe->length);
}

static void flush(struct soft_qp *qp)
{
	soft_pace_forget(qp);
	while (qp->sq_exec != qp->sq_tail)
		retire(qp, IBV_WC_WR_FLUSH_ERR);
	set_pending(qp, false);
}

void soft_fail(struct soft_qp *qp)
{
	if (qp->state != IBV_QPS_ERR)
		qp->after |= SOFT_AFTER_FAIL;
	qp->state = IBV_QPS_ERR;
	qp->is_fast = false;
	flush(qp);
}

/* A request has failed.  Without acknowledgements receiving goes on. */
static void stop(struct soft_qp *qp)
{
	if (qp->ibv.qp_type == IBV_QPT_RC) {
		soft_fail(qp);
		return;
	}
	qp->state = IBV_QPS_SQE;
	qp->is_fast = false;
	flush(qp);
}

/* Has the head waited for as long as its queue pair's attributes say? */
static bool has_expired(struct soft_qp *qp, enum soft_result result,
			enum ibv_wc_status *status)
{
	const struct ibv_qp_attr *attr = &qp->attr;
	uint64_t now = base_now_ns();
	uint64_t limit;

	if (result == SOFT_RNR) {
		/* An answer, so the peer is not silent. */
		qp->blocked_ns = 0;
		if (!qp->in_rnr)
			qp->rnr_ns = now;
		qp->in_rnr = true;
		*status = IBV_WC_RNR_RETRY_EXC_ERR;
		return attr->rnr_retry != 7 &&
		       now - qp->rnr_ns >= (uint64_t)attr->rnr_retry * 1000u *
						   rnr_us[qp->peer_rnr];
	}
	qp->in_rnr = false;
	if (!qp->blocked_ns)
		qp->blocked_ns = now;
	if (qp->ibv.qp_type != IBV_QPT_RC) {
		/* Lost at last, which is no error. */
		*status = IBV_WC_SUCCESS;
		return now - qp->blocked_ns >= HELP_NS;
	}
	*status = IBV_WC_RETRY_EXC_ERR;
	/* 4.096 us * 2^timeout for the first try and each repetition. */
	limit = (4096ull << attr->timeout) * (attr->retry_cnt + 1u);
	if (result == SOFT_HELP && limit < HELP_NS)
		limit = HELP_NS;
	return attr->timeout && now - qp->blocked_ns >= limit;
}

/* SOFT_DONE, or what a fault makes of it for now. */
static enum soft_result hold(struct soft_qp *qp, const struct soft_wqe *wqe)
{
	const struct soft_faults *faults = &qp->context->faults;
	const bool wants_recv = wqe->opcode != IBV_WR_RDMA_WRITE &&
				wqe->opcode != IBV_WR_RDMA_READ &&
				!soft_is_atomic(wqe->opcode);
	bool is_rnr = false;

	if (base_likely(!atomic_load(&qp->context->is_slow)))
		return SOFT_DONE;
	if (faults->delay_us >= 0) {
		if (!qp->hold_ns)
			qp->hold_ns = base_now_ns() +
				      (uint64_t)faults->delay_us * 1000u;
		if (base_now_ns() < qp->hold_ns)
			return SOFT_HOLD;
	}
	/* Once begun it goes on. */
	if (faults->chaos >= 0 && !qp->moved &&
	    soft_chaos_holds(qp, wants_recv, &is_rnr))
		return is_rnr ? SOFT_RNR : SOFT_HOLD;
	return SOFT_DONE;
}

void soft_run(struct soft_qp *qp)
{
	const size_t sge_stride = qp->cap.max_send_sge + 1;
	const size_t inline_stride = qp->cap.max_inline_data + 1;
	const bool is_paced = soft_is_paced(&qp->context->pace);
	bool is_early = false;

	while (qp->sq_exec != qp->sq_tail && qp->state == IBV_QPS_RTS) {
		const size_t at = qp->sq_exec & qp->sq.mask;
		enum ibv_wc_status status;
		enum soft_result result;

		is_early = is_paced && !soft_pace_is_due(qp);
		if (is_early)
			break;
		result = hold(qp, &qp->wqes[at]);
		if (result == SOFT_DONE)
			result = soft_execute(
				qp, &qp->wqes[at],
				&qp->wqe_sges[at * sge_stride],
				&qp->wqe_inline[at * inline_stride], &status);
		if (result == SOFT_HOLD ||
		    (result != SOFT_DONE && !has_expired(qp, result, &status)))
			break;
		retire(qp, status);
		if (status) {
			stop(qp);
			return;
		}
		qp->link_used = true;
	}
	leave(qp, is_early);
	qp->is_fast = !is_paced && qp->sq_exec == qp->sq_tail &&
		      qp->accept_at && qp->link_used &&
		      qp->state == IBV_QPS_RTS &&
		      !atomic_load(&qp->context->is_slow) &&
		      !atomic_load(&qp->context->is_down);
}

/* May a queue pair of its kind post this?  0 or what the caller is told. */
static int check_opcode(const struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		/* These have no acknowledgements to take the answer. */
		if (qp->ibv.qp_type != IBV_QPT_RC)
			return EINVAL;
		return wr->send_flags & IBV_SEND_INLINE ||
				       !qp->attr.max_rd_atomic
			       ? EINVAL
			       : 0;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return qp->ibv.qp_type == IBV_QPT_UD ? EINVAL : 0;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return qp->ibv.qp_type == IBV_QPT_UD &&
				       (!wr->wr.ud.ah ||
					((struct soft_pd *)wr->wr.ud.ah->pd)
							->id != qp->pd->id)
			       ? EINVAL
			       : 0;
	default:
		return EOPNOTSUPP;
	}
}

/* 0 or what the caller is told. */
static int check(const struct soft_qp *qp, const struct ibv_send_wr *wr,
		 uint64_t *length)
{
	int i, err;

	if (atomic_load(&qp->context->is_gone))
		return EIO;
	if (qp->state < IBV_QPS_RTS)
		return EINVAL;
	err = check_opcode(qp, wr);
	if (err)
		return err;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
		return EINVAL;
	for (i = 0, *length = 0; i < wr->num_sge; i++)
		*length += wr->sg_list[i].length;
	if (*length > 1u << 31 ||
	    (wr->send_flags & IBV_SEND_INLINE && *length > qp->max_inline))
		return EINVAL;
	if (qp->sq_tail - atomic_load_explicit(&qp->sq.freed,
					       memory_order_acquire) >=
	    qp->sq_slots)
		return ENOMEM;
	return 0;
}

/* The faults of a post: 0 or what the caller is told. */
static int inject(struct soft_qp *qp, uint8_t *forced)
{
	struct soft_faults *faults = &qp->context->faults;

	*forced = 0;
	if (base_likely(!atomic_load(&qp->context->is_slow)))
		return 0;
	if (soft_fault_hits(&faults->device_gone)) {
		qp->after |= SOFT_AFTER_GONE;
		return EIO;
	}
	if (soft_fault_hits(&faults->fail_post))
		return ENOMEM;
	if (soft_fault_hits(&faults->status_at))
		*forced = (uint8_t)faults->status;
	if (soft_fault_hits(&faults->qp_error))
		qp->after |= SOFT_AFTER_FATAL;
	return 0;
}

/* The three forms of what a request is about share their memory. */
static void take_target(const struct soft_qp *qp, struct soft_wqe *wqe,
			const struct ibv_send_wr *wr)
{
	if (qp->ibv.qp_type == IBV_QPT_UD) {
		wqe->ah = (struct soft_ah *)(void *)wr->wr.ud.ah;
		wqe->remote_qpn = wr->wr.ud.remote_qpn;
		/* IBTA 10.2.5: its uppermost bit asks for our own. */
		wqe->remote_qkey = wr->wr.ud.remote_qkey >> 31
					   ? qp->attr.qkey
					   : wr->wr.ud.remote_qkey;
	} else if (soft_is_atomic(wr->opcode)) {
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
	} else {
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
	}
}

int soft_post_slow(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	const size_t at = qp->sq_tail & qp->sq.mask;
	struct soft_wqe *wqe = &qp->wqes[at];
	uint64_t length;
	unsigned char *to;
	uint8_t forced;
	int i, err;

	err = check(qp, wr, &length);
	if (err)
		return err;
	err = inject(qp, &forced);
	if (err)
		return err;
	wqe->forced = forced;
	wqe->wr_id = wr->wr_id;
	take_target(qp, wqe, wr);
	wqe->imm = wr->imm_data;
	wqe->length = (uint32_t)length;
	wqe->n_sge = (uint32_t)wr->num_sge;
	wqe->flags = (uint16_t)wr->send_flags;
	wqe->opcode = (uint8_t)wr->opcode;
	if (soft_is_paced(&qp->context->pace))
		soft_pace_post(qp, wqe);
	to = &qp->wqe_inline[at * (qp->cap.max_inline_data + 1)];
	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (!(wr->send_flags & IBV_SEND_INLINE)) {
			qp->wqe_sges[at * (qp->cap.max_send_sge + 1) +
				     (size_t)i] = *sge;
			continue;
		}
		memcpy(to, (const void *)(uintptr_t)sge->addr, sge->length);
		to += sge->length;
	}
	qp->sq_tail++;
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE)
		flush(qp);
	else
		soft_run(qp);
	return 0;
}
