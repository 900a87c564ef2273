/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "soft/exec.h"
#include "soft/peer.h"

/* The local memory of a request.  IBV_WC_LOC_PROT_ERR: not all of it is. */
static enum ibv_wc_status find_local(struct soft_qp *qp,
				     const struct soft_wqe *wqe,
				     const struct ibv_sge *sges,
				     const void *inlined,
				     struct soft_piece *pieces)
{
	const uint32_t need = wqe->opcode == IBV_WR_RDMA_READ ||
					      soft_is_atomic(wqe->opcode)
				      ? IBV_ACCESS_LOCAL_WRITE
				      : 0;
	uint32_t i;

	if (wqe->flags & IBV_SEND_INLINE) {
		pieces[0].at = (char *)(uintptr_t)inlined;
		pieces[0].length = wqe->length;
		return IBV_WC_SUCCESS;
	}
	for (i = 0; i < wqe->n_sge; i++) {
		struct soft_view *view;
		uint64_t at;

		pieces[i].length = sges[i].length;
		/* Of an empty piece neither address nor key count. */
		if (!sges[i].length) {
			pieces[i].at = (char *)pieces;
			continue;
		}
		view = soft_view_own(qp, sges[i].lkey);
		if (!view || view->pd != qp->pd->id ||
		    (view->access & need) != need)
			return IBV_WC_LOC_PROT_ERR;
		at = sges[i].addr - view->addr;
		if (at > view->length || sges[i].length > view->length - at)
			return IBV_WC_LOC_PROT_ERR;
		pieces[i].at = view->base + at;
	}
	return IBV_WC_SUCCESS;
}

bool soft_find_piece(const struct soft_view *view, uint32_t pd, uint64_t addr,
		     uint64_t length, uint32_t need, struct soft_piece *piece)
{
	uint64_t at = addr - view->addr;

	/* @at is huge when @addr is below: both ends are checked. */
	if (view->pd != pd || !(view->access & need) ||
	    at > view->length || length > view->length - at)
		return false;
	piece->at = view->base ? view->base + at : NULL;
	piece->far = view->far + at;
	piece->addr = addr;
	piece->key = view->key;
	piece->need = need;
	piece->length = length;
	return true;
}

static uint32_t recv_flags(const struct soft_wqe *wqe)
{
	uint32_t flags = 0;

	if (wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
	    wqe->opcode == IBV_WR_SEND_WITH_IMM)
		flags |= SOFT_INFO_IMM;
	if (wqe->flags & IBV_SEND_SOLICITED)
		flags |= SOFT_INFO_SOLICITED;
	return flags << 16;
}

enum soft_result soft_refuse(struct soft_qp *qp, enum ibv_wc_status status,
			     uint8_t note, enum ibv_wc_status *out)
{
	if (qp->ibv.qp_type == IBV_QPT_RC) {
		qp->note |= SOFT_NOTE_ERROR | note;
		qp->after |= SOFT_AFTER_NOTE;
	}
	*out = status;
	return SOFT_DONE;
}

/* Is there a receive for us?  A shared one is ours from then on. */
static bool has_recv(struct soft_qp *qp)
{
	return qp->taker.shared
		       ? soft_taker_take(&qp->taker, qp->attr.dest_qp_num)
		       : soft_peer_has_recv(qp);
}

static void deliver(struct soft_qp *qp, uint32_t info, uint32_t length,
		    uint32_t imm)
{
	if (qp->taker.shared)
		soft_taker_deliver(qp, info, length, imm);
	else
		soft_deliver(qp, info, length, imm);
}

static enum soft_result execute_rdma(struct soft_qp *qp,
				     const struct soft_wqe *wqe,
				     struct soft_piece *local,
				     enum ibv_wc_status *status)
{
	const bool is_read = wqe->opcode == IBV_WR_RDMA_READ;
	const uint32_t need = is_read ? IBV_ACCESS_REMOTE_READ
				      : IBV_ACCESS_REMOTE_WRITE;
	struct soft_piece target = {.at = (char *)local};
	struct soft_view *view;
	enum soft_result result;

	if (!(qp->accept & need) || (is_read && !qp->peer_reads))
		return soft_refuse(qp, IBV_WC_REM_INV_REQ_ERR,
				   SOFT_NOTE_REQUEST, status);
	/* An empty request may name any key (IBTA 9.7.4.1.5). */
	if (wqe->length) {
		qp->is_asked = false;
		view = soft_view_remote(qp, wqe->rkey);
		if (!view && qp->is_asked)
			return SOFT_HELP;
		if (!view || !soft_find_piece(view, qp->peer_pd,
					      wqe->remote_addr, wqe->length,
					      need, &target))
			return soft_refuse(qp, IBV_WC_REM_ACCESS_ERR,
					   SOFT_NOTE_ACCESS, status);
	}
	if (wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && !has_recv(qp))
		return SOFT_RNR;
	result = soft_move(qp, is_read ? local : &target,
			   is_read ? &target : local, wqe->length, status);
	if (result == SOFT_DONE && !*status &&
	    wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		deliver(qp, IBV_WC_RECV_RDMA_WITH_IMM << 8 | recv_flags(wqe),
			wqe->length, wqe->imm);
	return result;
}

/* The memory of the peer's next receive.  SOFT_DONE with a status. */
static enum soft_result find_recv(struct soft_qp *qp, uint32_t length,
				  struct soft_piece *pieces,
				  enum ibv_wc_status *status)
{
	const bool is_shared = qp->taker.shared;
	const uint32_t n = is_shared ? qp->taker.sges : qp->peer_sges;
	const uint32_t pd = is_shared ? qp->taker.pd : qp->peer_pd;
	const uint32_t slot = is_shared
				      ? qp->taker.taken - 1
				      : qp->peer_next & (qp->peer_slots - 1);
	const struct soft_shared_sge *sge =
		&(is_shared ? qp->taker.wqes : qp->peer_wqes)[slot * n];
	uint32_t i;

	for (i = 0; i < n && length; i++) {
		uint32_t bytes = atomic_load(&sge[i].length);
		uint64_t addr = atomic_load(&sge[i].addr);
		struct soft_view *view;

		if (bytes > length)
			bytes = length;
		pieces[i].at = (char *)pieces;
		pieces[i].length = bytes;
		if (!bytes)
			continue;
		qp->is_asked = false;
		view = soft_view_remote(qp, atomic_load(&sge[i].lkey));
		if (!view && qp->is_asked)
			return SOFT_HELP;
		if (!view || !soft_find_piece(view, pd, addr, bytes,
					      IBV_ACCESS_LOCAL_WRITE,
					      &pieces[i])) {
			*status = IBV_WC_LOC_PROT_ERR;
			return SOFT_DONE;
		}
		length -= bytes;
	}
	*status = length ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
	return SOFT_DONE;
}

static enum soft_result execute_send(struct soft_qp *qp,
				     const struct soft_wqe *wqe,
				     const struct soft_piece *local,
				     enum ibv_wc_status *status)
{
	struct soft_piece to[SOFT_MAX_SGE + 1] = {{.at = (char *)to}};
	enum soft_result result;

	if (!has_recv(qp))
		return SOFT_RNR;
	result = find_recv(qp, wqe->length, to, status);
	if (result != SOFT_DONE)
		return result;
	if (*status && qp->ibv.qp_type == IBV_QPT_RC) {
		bool is_long = *status == IBV_WC_LOC_LEN_ERR;

		deliver(qp, *status, 0, 0);
		return soft_refuse(qp, is_long ? IBV_WC_REM_INV_REQ_ERR
					       : IBV_WC_REM_OP_ERR, 0, status);
	}
	if (*status)
		return SOFT_DONE;
	result = soft_move(qp, to, local, wqe->length, status);
	if (result == SOFT_DONE && !*status)
		deliver(qp, IBV_WC_RECV << 8 | recv_flags(wqe), wqe->length,
			wqe->imm);
	return result;
}

static enum soft_result execute_connected(struct soft_qp *qp,
					  const struct soft_wqe *wqe,
					  struct soft_piece *local,
					  enum ibv_wc_status *status)
{
	if (!soft_link(qp))
		return SOFT_WAIT;
	if (soft_is_atomic(wqe->opcode))
		return soft_execute_atomic(qp, wqe, local, status);
	if (wqe->opcode == IBV_WR_SEND || wqe->opcode == IBV_WR_SEND_WITH_IMM)
		return execute_send(qp, wqe, local, status);
	return execute_rdma(qp, wqe, local, status);
}

enum soft_result soft_execute(struct soft_qp *qp, const struct soft_wqe *wqe,
			      const struct ibv_sge *sges, const void *inlined,
			      enum ibv_wc_status *status)
{
	struct soft_piece local[SOFT_MAX_SGE + 1] = {{.at = (char *)local}};
	enum soft_result result;

	if (base_unlikely(wqe->forced)) {
		*status = (enum ibv_wc_status)wqe->forced;
		return SOFT_DONE;
	}
	*status = find_local(qp, wqe, sges, inlined, local);
	/* IBTA 9.4.5: what an atomic returns is 8 bytes. */
	if (!*status && soft_is_atomic(wqe->opcode) && wqe->length != 8)
		*status = IBV_WC_LOC_LEN_ERR;
	if (*status)
		return SOFT_DONE;
	switch (qp->ibv.qp_type) {
	case IBV_QPT_UC:
		/* Nobody answers, so what the peer does not take is lost, and
		 * nobody tells.  Help is no matter of the wire. */
		result = execute_connected(qp, wqe, local, status);
		*status = IBV_WC_SUCCESS;
		return result == SOFT_HELP ? SOFT_HELP : SOFT_DONE;
	case IBV_QPT_UD:
		return soft_execute_datagram(qp, wqe, local, status);
	default:
		return execute_connected(qp, wqe, local, status);
	}
}
