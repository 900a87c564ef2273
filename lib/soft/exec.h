/* SPDX-License-Identifier: MIT */
/* The execution of one request. */
#ifndef SOFT_EXEC_H
#define SOFT_EXEC_H

#include "soft/qp.h"

enum soft_result {
	SOFT_DONE, /* with a status */
	SOFT_WAIT, /* the peer does not answer */
	SOFT_RNR,  /* the peer has no receive posted */
	SOFT_HELP, /* the peer was asked for memory */
	SOFT_HOLD, /* a fault holds it up */
};

/* A piece of memory: mapped at @at, or at @far in the peer's process. */
struct soft_piece {
	char *at;
	uint64_t far;
	uint64_t length;
	uint32_t key, need; /* what gives the right to it, and which */
};

/*
 * Execute @wqe against the peer.  An error that the peer must act on is left
 * in @qp->note.  Caller holds the send lock.
 */
enum soft_result soft_execute(struct soft_qp *qp, const struct soft_wqe *wqe,
			      const struct ibv_sge *sges, const void *inlined,
			      enum ibv_wc_status *status);

/*
 * Copy @bytes from pieces to pieces, which are long enough; goes on where an
 * earlier try for the same request has stopped.
 */
enum soft_result soft_move(struct soft_qp *qp, const struct soft_piece *to,
			   const struct soft_piece *from, uint64_t bytes,
			   enum ibv_wc_status *status);

#endif
