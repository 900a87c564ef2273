/* SPDX-License-Identifier: MIT */
/* Shared receive queues: the owner's half (srq.c), the takers' (take.c). */
#ifndef SOFT_SRQ_H
#define SOFT_SRQ_H

#include "soft/device.h"

struct soft_srq {
	union {
		struct ibv_srq ibv;
		unsigned char spare[sizeof(struct ibv_srq) + SOFT_SPARE];
	};
	uint32_t slot, generation;
	struct soft_pd *pd;
	struct soft_shared_srq *shared;
	struct soft_block *block;
	uint32_t slots, sges;
	_Atomic uint64_t *words, *order;
	struct soft_shared_sge *wqes;
	uint32_t n_qps, n_events; /* under the context's lock */
	uint32_t n_armings;
	_Atomic uint32_t lock;
	/* Under it, and nobody else's to write: what peers write is compared
	 * with these. */
	uint32_t tail, n_free;
	uint32_t *free;
	uint64_t *wr_ids;
	uint8_t *uses; /* of each slot: enum soft_use */
};

enum soft_use {
	SOFT_USE_FREE,
	SOFT_USE_POSTED,
	SOFT_USE_DONE, /* for the length of a flush: it has a completion */
};

/* What a queue pair knows of its peer's shared receive queue. */
struct soft_taker {
	struct soft_shared_srq *shared; /* NULL: the peer has none */
	_Atomic uint64_t *words, *order;
	struct soft_shared_sge *wqes;
	struct soft_shared_more *more;
	uint32_t slots, sges, pd;
	uint32_t cqe_slots;
	uint32_t told;	/* the arming that its owner was told of */
	uint32_t taken; /* 1 + the slot of a receive that is ours, or 0 */
};

/* ---- srq.c ---- */

/* Give back the slot of a completion.  False: it is not @qpn's to give. */
bool soft_srq_release(struct soft_srq *srq, uint32_t slot, uint32_t qpn,
		      uint64_t *wr_id);
/* Tell of the limit, once. */
void soft_srq_check_limit(struct soft_srq *srq);
/*
 * What @qp has taken and not completed is completed, flushed; or given back.
 * Caller holds the context's lock, and peers are shut out.
 */
void soft_srq_flush(struct soft_qp *qp);
void soft_srq_reclaim(struct soft_qp *qp);

/* ---- take.c ---- */

/* Where shared queue @index of @seg is; false: nonsense. */
bool soft_taker_link(struct soft_taker *t, struct soft_segment *seg,
		     uint32_t index);
/* Take the next receive in the name of @qpn; false: there is none. */
bool soft_taker_take(struct soft_taker *t, uint32_t qpn);
/* Is it time to tell the owner of the limit? */
bool soft_taker_is_low(struct soft_taker *t);
/* Complete the receive taken.  Caller holds the send lock. */
void soft_taker_deliver(struct soft_qp *qp, uint32_t info, uint32_t length,
			uint32_t imm);

#endif
