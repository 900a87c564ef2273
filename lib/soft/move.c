/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a request from pieces to pieces.  What is mapped is copied;
 * another process's private memory is reached by process_vm_writev() and
 * _readv(); and where the system forbids that, by asking that process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "soft/exec.h"
#include "soft/peer.h"

/* 0 or errno; *n is what was moved. */
static int move_far(const struct soft_piece *to, uint64_t to_at,
		    const struct soft_piece *from, uint64_t from_at,
		    uint64_t *n, int pid)
{
	const bool is_write = !to->at;
	struct iovec near = {.iov_len = *n};
	struct iovec far = {.iov_len = *n};
	ssize_t done;

	near.iov_base = is_write ? from->at + from_at : to->at + to_at;
	far.iov_base = (void *)(uintptr_t)(is_write ? to->far + to_at
						    : from->far + from_at);
	done = is_write ? process_vm_writev(pid, &near, 1, &far, 1, 0)
			: process_vm_readv(pid, &near, 1, &far, 1, 0);
	if (done <= 0)
		return done ? errno : EFAULT;
	*n = (uint64_t)done;
	return 0;
}

/* By the peer's thread, a piece at a time.  EAGAIN: it has been asked. */
static int move_by_peer(struct soft_qp *qp, const struct soft_piece *to,
			uint64_t to_at, const struct soft_piece *from,
			uint64_t from_at, uint64_t *n)
{
	const bool is_write = !to->at;
	const struct soft_piece *far = is_write ? to : from;
	struct soft_message m = {
		.type = is_write ? SOFT_PUT : SOFT_GET,
		.a = far->addr + (is_write ? to_at : from_at),
		.key = far->key,
		.need = far->need,
		.slot = qp->slot,
	};
	int err;

	if (qp->bounce == SOFT_BOUNCE_DONE ||
	    qp->bounce == SOFT_BOUNCE_FAILED) {
		err = qp->bounce == SOFT_BOUNCE_FAILED ? EFAULT : 0;
		qp->bounce = SOFT_BOUNCE_NONE;
		*n = qp->bounce_bytes;
		if (!err && !is_write)
			memcpy(to->at + to_at, qp->bounced, *n);
		return err;
	}
	if (qp->bounce == SOFT_BOUNCE_ASKED)
		return EAGAIN;
	if (!qp->bounced)
		qp->bounced = base_alloc(1, SOFT_PAYLOAD);
	if (!qp->bounced)
		return EAGAIN;
	if (*n > SOFT_PAYLOAD)
		*n = SOFT_PAYLOAD;
	qp->bounce_bytes = (uint32_t)*n;
	m.bytes = (uint32_t)*n;
	m.token = ++qp->bounce_token;
	if (!soft_payload_send(qp->peer->fd, &m,
			       is_write ? from->at + from_at : NULL,
			       is_write ? *n : 0))
		qp->bounce = SOFT_BOUNCE_ASKED;
	return EAGAIN;
}

/* Of two pieces.  0 or errno; *n is what is asked for, and what was done. */
static int move_pieces(struct soft_qp *qp, const struct soft_piece *to,
		       uint64_t to_at, const struct soft_piece *from,
		       uint64_t from_at, uint64_t *n)
{
	int err = EPERM;

	if (to->at && from->at) {
		if (base_unlikely(qp->context->faults.chaos >= 0))
			soft_chaos_copy(qp, to->at + to_at, from->at + from_at,
					*n);
		else
			soft_copy_lines(to->at + to_at, from->at + from_at, *n);
		return 0;
	}
	if (!atomic_load(&qp->peer->is_barred) &&
	    qp->context->faults.bounce < 0)
		err = move_far(to, to_at, from, from_at, n, qp->peer->pid);
	if (err != EPERM && err != ENOSYS)
		return err;
	atomic_store(&qp->peer->is_barred, true);
	return move_by_peer(qp, to, to_at, from, from_at, n);
}

enum soft_result soft_move(struct soft_qp *qp, const struct soft_piece *to,
			   const struct soft_piece *from, uint64_t bytes,
			   enum ibv_wc_status *status)
{
	uint64_t to_at = 0, from_at = 0, at = 0;

	*status = IBV_WC_SUCCESS;
	while (at < bytes) {
		uint64_t n = to->length - to_at;
		int err = 0;

		if (n > from->length - from_at)
			n = from->length - from_at;
		if (n > bytes - at)
			n = bytes - at;
		/* What an earlier try has moved is passed over. */
		if (at < qp->moved) {
			if (n > qp->moved - at)
				n = qp->moved - at;
		} else if (n) {
			err = move_pieces(qp, to, to_at, from, from_at, &n);
			if (err == EAGAIN)
				return SOFT_HELP;
			if (err == ESRCH)
				return SOFT_WAIT; /* dead: its silence tells */
			if (err) {
				*status = IBV_WC_REM_OP_ERR;
				return SOFT_DONE;
			}
			qp->moved = at + n;
			qp->blocked_ns = 0;
		}
		at += n;
		to_at += n;
		from_at += n;
		if (to_at == to->length) {
			to++;
			to_at = 0;
		}
		if (from_at == from->length) {
			from++;
			from_at = 0;
		}
	}
	return SOFT_DONE;
}
