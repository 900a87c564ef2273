/* SPDX-License-Identifier: MIT */
/* The execution of one request. */
#ifndef SOFT_EXEC_H
#define SOFT_EXEC_H

#include "soft/device.h"

enum soft_result {
	SOFT_DONE, /* with a status */
	SOFT_WAIT, /* the peer does not answer */
	SOFT_RNR,  /* the peer has no receive posted */
	SOFT_HELP, /* the peer was asked for a region */
};

/* A piece of memory: mapped at @at, or at @far in the peer's process. */
struct soft_piece {
	char *at;
	uint64_t far;
	uint64_t length;
};

/*
 * Execute @wqe against the peer.  An error that the peer must act on is left
 * in @qp->note.  Caller holds the send lock.
 */
enum soft_result soft_execute(struct soft_qp *qp, const struct soft_wqe *wqe,
			      const struct ibv_sge *sges, const void *inlined,
			      enum ibv_wc_status *status);

/*
 * Copy @bytes from pieces to pieces, which are long enough.  0, EPERM where
 * this process may not reach into the peer, EFAULT, or ESRCH.
 */
int soft_move(const struct soft_piece *to, const struct soft_piece *from,
	      uint64_t bytes, int pid);

#endif
