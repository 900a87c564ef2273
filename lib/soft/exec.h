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
	uint64_t addr; /* by its key */
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

enum soft_result soft_execute_atomic(struct soft_qp *qp,
				     const struct soft_wqe *wqe,
				     const struct soft_piece *local,
				     enum ibv_wc_status *status);

/* Local pieces of @wqe->length bytes.  ud.c */
enum soft_result soft_execute_datagram(struct soft_qp *qp,
				       const struct soft_wqe *wqe,
				       const struct soft_piece *local,
				       enum ibv_wc_status *status);

/*
 * Does @view, of a region that must be in domain @pd, allow @need for the
 * bytes, and where are they?  False: no.
 */
bool soft_find_piece(const struct soft_view *view, uint32_t pd, uint64_t addr,
		     uint64_t length, uint32_t need, struct soft_piece *piece);

/* The request is not one that the peer takes: its queue pair fails too. */
enum soft_result soft_refuse(struct soft_qp *qp, enum ibv_wc_status status,
			     uint8_t note, enum ibv_wc_status *out);

/*
 * Copy @bytes from pieces to pieces, which are long enough; goes on where an
 * earlier try for the same request has stopped.
 */
enum soft_result soft_move(struct soft_qp *qp, const struct soft_piece *to,
			   const struct soft_piece *from, uint64_t bytes,
			   enum ibv_wc_status *status);

#endif
