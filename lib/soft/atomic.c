/* SPDX-License-Identifier: MIT */
/*
 * Atomic requests.  Where the target is mapped here they are the processor's
 * own; in another process's private memory its thread does them, since no
 * call reads and writes there in one step.  Either way the step is one
 * instruction of a processor, so that requests by both ways count right.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "soft/exec.h"
#include "soft/peer.h"

/* IBTA 9.4.5: operands are of 8 bytes, and so is what they work on. */
#define WIDTH 8u

/* What the owner's thread is sent with SOFT_SWAP and SOFT_ADD. */
struct operands {
	uint64_t compare_add, swap;
};

static bool is_aligned(const void *at)
{
	return !((uintptr_t)at % WIDTH);
}

/* The value that was there. */
static uint64_t apply(char *at, bool is_swap, const struct operands *o)
{
	_Atomic uint64_t *word = (_Atomic uint64_t *)(void *)at;
	uint64_t old = o->compare_add;

	if (!is_swap)
		return atomic_fetch_add(word, o->compare_add);
	atomic_compare_exchange_strong(word, &old, o->swap);
	return old;
}

/* By the peer's thread, once. */
static enum soft_result ask(struct soft_qp *qp, bool is_swap,
			    const struct operands *o,
			    const struct soft_piece *target, uint64_t *old,
			    enum ibv_wc_status *status)
{
	struct soft_message m = {
		.type = is_swap ? SOFT_SWAP : SOFT_ADD,
		.a = target->addr,
		.key = target->key,
		.need = target->need,
		.bytes = WIDTH,
		.slot = qp->slot,
	};

	if (qp->bounce == SOFT_BOUNCE_DONE ||
	    qp->bounce == SOFT_BOUNCE_FAILED) {
		if (qp->bounce == SOFT_BOUNCE_FAILED)
			*status = IBV_WC_REM_OP_ERR;
		memcpy(old, qp->bounced, sizeof(*old));
		qp->bounce = SOFT_BOUNCE_NONE;
		return SOFT_DONE;
	}
	if (qp->bounce == SOFT_BOUNCE_ASKED)
		return SOFT_HELP;
	if (!qp->bounced)
		qp->bounced = base_alloc(1, SOFT_PAYLOAD);
	if (!qp->bounced)
		return SOFT_HELP;
	qp->bounce_bytes = WIDTH;
	m.token = ++qp->bounce_token;
	if (!soft_payload_send(qp->peer->fd, &m, o, sizeof(*o)))
		qp->bounce = SOFT_BOUNCE_ASKED;
	return SOFT_HELP;
}

enum soft_result soft_execute_atomic(struct soft_qp *qp,
				     const struct soft_wqe *wqe,
				     const struct soft_piece *local,
				     enum ibv_wc_status *status)
{
	const bool is_swap = wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	const struct operands o = {wqe->compare_add, wqe->swap};
	struct soft_piece target = {.at = NULL};
	struct soft_piece from = {.length = WIDTH};
	enum soft_result result = SOFT_DONE;
	struct soft_view *view;
	uint64_t old = 0;

	*status = IBV_WC_SUCCESS;
	if (!(qp->accept & IBV_ACCESS_REMOTE_ATOMIC) || !qp->peer_reads ||
	    wqe->remote_addr % WIDTH)
		return soft_refuse(qp, IBV_WC_REM_INV_REQ_ERR,
				   SOFT_NOTE_REQUEST, status);
	qp->is_asked = false;
	view = soft_view_remote(qp, wqe->rkey);
	if (!view && qp->is_asked)
		return SOFT_HELP;
	if (!view || !soft_find_piece(view, qp->peer_pd, wqe->remote_addr,
				      WIDTH, IBV_ACCESS_REMOTE_ATOMIC,
				      &target))
		return soft_refuse(qp, IBV_WC_REM_ACCESS_ERR,
				   SOFT_NOTE_ACCESS, status);
	/* A region whose address was chosen may lie askew in memory. */
	if (!target.at)
		result = ask(qp, is_swap, &o, &target, &old, status);
	else if (is_aligned(target.at))
		old = apply(target.at, is_swap, &o);
	else
		*status = IBV_WC_REM_OP_ERR;
	if (result != SOFT_DONE || *status)
		return result;
	from.at = (char *)&old;
	return soft_move(qp, local, &from, WIDTH, status);
}

int soft_atomic_serve(struct soft_context *c, int socket,
		      struct soft_message *m, const void *payload,
		      size_t bytes)
{
	struct operands o;
	uint64_t old = 0;
	char *at;

	if (bytes != sizeof(o) || m->bytes != WIDTH ||
	    m->need != IBV_ACCESS_REMOTE_ATOMIC)
		return EPROTO;
	memcpy(&o, payload, sizeof(o));
	pthread_mutex_lock(&c->lock);
	at = soft_payload_find(c, m);
	if (!at)
		m->b = EACCES;
	else if (!is_aligned(at))
		m->b = EINVAL;
	else
		/* Reading it tells whether it is still mapped. */
		m->b = (uint64_t)soft_copy_own(at, &old, WIDTH, false);
	if (!m->b)
		old = apply(at, m->type == SOFT_SWAP, &o);
	pthread_mutex_unlock(&c->lock);
	return soft_payload_send(socket, m, &old, m->b ? 0 : WIDTH);
}
