/* SPDX-License-Identifier: MIT */
/* Queue pairs. */
#ifndef SOFT_QP_H
#define SOFT_QP_H

#include "soft/device.h"
#include "soft/queue.h"
#include "soft/srq.h"

/* What a queue pair remembers of a remote or local key. */
struct soft_view {
	uint32_t key, access;
	uint64_t word;
	const _Atomic uint64_t *at;
	uint64_t addr, length;
	char *base; /* NULL: not by load and store */
	uint64_t far; /* then where it is in the owner's process */
	uint32_t pd;
};

#define SOFT_VIEWS 8u

/* A send that has been posted and not executed. */
struct soft_wqe {
	uint64_t wr_id, remote_addr;
	union {
		struct {
			uint64_t compare_add, swap; /* of an atomic */
		};
		struct {
			struct soft_ah *ah; /* of a datagram */
			uint32_t remote_qpn, remote_qkey;
		};
	};
	uint32_t rkey, imm, length;
	uint32_t n_sge;
	uint16_t flags;
	uint8_t opcode;
	uint8_t forced; /* by a fault: enum ibv_wc_status */
	/* On a paced port: when its first byte leaves, and when it is carried
	 * out; 0: not known yet. */
	uint64_t start_ns, due_ns;
};

static inline bool soft_is_atomic(int opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* What is to be done for a queue pair once its lock is let go. */
enum soft_after {
	SOFT_AFTER_FIRE = 1,	   /* the send CQ may be armed */
	SOFT_AFTER_FIRE_ERROR = 2, /* the same, and it counts as solicited */
	SOFT_AFTER_FAIL = 4,	   /* we are in error: finish the flush */
	SOFT_AFTER_NOTE = 8,	   /* @note holds something for the peer */
	SOFT_AFTER_WAKE = 16,	   /* something waits: tell the thread */
	SOFT_AFTER_FATAL = 32,	   /* a fault: the queue pair fails */
	SOFT_AFTER_GONE = 64,	   /* a fault: the device fails */
	SOFT_AFTER_OVERRUN = 128,  /* the send CQ is too small */
};

/* A piece of far memory that the peer's thread moves for us. */
enum soft_bounce {
	SOFT_BOUNCE_NONE,
	SOFT_BOUNCE_ASKED,
	SOFT_BOUNCE_DONE,
	SOFT_BOUNCE_FAILED,
};

/* What a peer is told about its queue pair. */
enum soft_note {
	SOFT_NOTE_WAKE = 1, /* its CQ is armed and has a completion */
	SOFT_NOTE_SOLICITED = 2,
	SOFT_NOTE_COMM_EST = 4,
	SOFT_NOTE_ERROR = 8,	/* go to the error state ... */
	SOFT_NOTE_ACCESS = 16,	/* ... with QP_ACCESS_ERR */
	SOFT_NOTE_REQUEST = 32, /* ... with QP_REQ_ERR */
	SOFT_NOTE_LIMIT = 64,	/* its shared receive queue runs low */
};

struct soft_qp {
	union {
		struct ibv_qp ibv;
		unsigned char spare[sizeof(struct ibv_qp_ex) + SOFT_SPARE];
	};

	/* Fixed for the slot, as long as the context lives. */
	_Alignas(BASE_LINE) _Atomic uint32_t *lock; /* the send lock */
	struct soft_shared_qp *shared;
	struct soft_context *context;
	uint32_t slot;
	uint32_t generation;
	bool is_taken; /* the context's lock */
	_Atomic uint32_t rq_lock;
	_Atomic bool is_pending; /* has sends or notes that wait */

	/* Zeroed from here on for each new queue pair.  The send path comes
	 * first, all under the send lock. */
	/* Under the send lock; ibv.state is what the caller was told. */
	_Atomic(enum ibv_qp_state) state;
	bool is_live;
	bool is_fast; /* linked, nothing waits, no faults */
	bool signal_all;
	uint8_t after; /* enum soft_after */
	uint8_t note;  /* enum soft_note */
	uint32_t sq_tail, sq_slots;
	uint32_t max_inline, max_sge;
	uint64_t accept; /* the peer's word when all was checked */
	const _Atomic uint64_t *accept_at;
	struct soft_view remote[SOFT_VIEWS];
	struct soft_view local[SOFT_VIEWS];

	/* The peer's receive queue. */
	struct soft_shared_qp *peer_qp;
	struct soft_cqe *peer_cqes;
	struct soft_shared_sge *peer_wqes;
	struct soft_shared_cq *peer_cq; /* NULL: it has no channel */
	_Atomic uint8_t *peer_hint;
	uint32_t peer_slots, peer_sges, peer_next, peer_tail;
	uint32_t peer_pd, peer_armed, peer_rnr;
	bool peer_reads; /* it takes READs */

	/* Sends that wait. */
	uint32_t sq_exec; /* == sq_tail when there are none */
	struct soft_wqe *wqes;
	struct ibv_sge *wqe_sges;
	unsigned char *wqe_inline;
	struct soft_taker taker; /* of the peer's shared receive queue */
	bool is_asked; /* the peer was asked for a region, this one */
	uint64_t asked_region;
	bool in_rnr;
	uint64_t blocked_ns, rnr_ns;
	uint64_t moved; /* bytes of the head */
	_Atomic uint8_t bounce; /* enum soft_bounce */
	uint32_t bounce_bytes, bounce_token;
	unsigned char *bounced; /* SOFT_PAYLOAD, made when first used */

	/* On a paced port. */
	uint32_t sq_timed; /* the first whose due time is not known */
	uint64_t left_ns, due_ns; /* of the last with either */
	_Atomic uint64_t next_ns; /* when to look at the queue; 0: always */
	_Atomic uint64_t ring_ns; /* when the thread shall; 0: not for this */

	/* Faults. */
	uint64_t chaos; /* the generator's state */
	uint64_t hold_ns;
	uint8_t turns;
	bool is_drawn, is_late;

	/* Completions. */
	uint32_t sq_pushed;
	struct soft_cq *send_cq, *recv_cq;
	struct soft_block *sq_block, *rq_block, *wqe_block, *more_block;

	/* The receive queue, under @rq_lock. */
	uint32_t rq_tail, rq_slots;
	bool rq_is_open;    /* not in RESET */
	bool rq_is_flushed; /* in error: a receive completes when posted */
	struct soft_shared_sge *rq_wqes;
	struct soft_shared_more *rq_more; /* beside its completions, or NULL */

	/* Everything else, under the context's lock. */
	struct soft_pd *pd;
	uint32_t next_datagram; /* the receive that it will take */
	bool is_served;		/* the last one found a receive */
	struct soft_srq *srq; /* NULL: it has receives of its own */
	struct soft_peer *peer;
	struct ibv_qp_attr attr;
	struct ibv_qp_cap cap;
	bool is_established; /* COMM_EST was told */
	uint32_t epoch;
	uint32_t link_epoch; /* of the peer, when we last linked ... */
	uint32_t link_qpn;   /* ... to this queue pair */
	uint64_t link_id;    /* ... of this context */
	bool epoch_known;
	bool link_used;	     /* something was executed since */
	uint32_t n_events;

	/* Not zeroed: a poll may be looking. */
	_Alignas(BASE_LINE) struct soft_source sq;
	struct soft_source rq;
};

/* Nothing of @qp waits for its time any more.  Send lock held. */
static inline void soft_pace_forget(struct soft_qp *qp)
{
	atomic_store(&qp->next_ns, 0);
	atomic_store(&qp->ring_ns, 0);
}

/* ---- qp.c, state.c ---- */

/* Is the change allowed, and is each value?  0 or EINVAL.  attr.c */
int soft_attr_check(struct soft_qp *qp, const struct ibv_qp_attr *attr,
		    int mask);
/* Take over what @mask names. */
void soft_attr_take(struct soft_qp *qp, const struct ibv_qp_attr *attr,
		    int mask);
/*
 * Publish what a peer may do to @qp in its present state, or withdraw it.
 * Caller holds the context's lock.
 */
void soft_qp_publish(struct soft_qp *qp);
void soft_qp_withdraw(struct soft_qp *qp);
/* The receiving half of the error state.  Caller holds the context's lock. */
void soft_qp_flush_recv(struct soft_qp *qp);
/* To the error state.  Caller holds the context's lock. */
void soft_qp_error(struct soft_qp *qp);
/* The same, with IBV_EVENT_QP_FATAL, unless it is there. */
void soft_qp_fatal(struct soft_qp *qp);

/* ---- post.c, run.c, remote.c, after.c ---- */

/* Those below are called with the send lock held. */

/* The completion of a send, which frees slots up to @freed. */
void soft_push(struct soft_qp *qp, const struct soft_tag *tag, uint32_t info,
	       uint32_t length);
/* The completion of the peer's next receive. */
void soft_deliver(struct soft_qp *qp, uint32_t info, uint32_t length,
		  uint32_t imm);
/* The same, into completion @e, the @next-th. */
void soft_deliver_at(struct soft_qp *qp, struct soft_cqe *e, uint32_t next,
		     uint32_t info, uint32_t length, uint32_t imm);
/* Put a request behind what waits, and run. */
int soft_post_slow(struct soft_qp *qp, const struct ibv_send_wr *wr);
/* Execute what waits, as far as it goes. */
void soft_run(struct soft_qp *qp);
/* The sending half of the error state. */
void soft_fail(struct soft_qp *qp);
/* Check the peer's queue pair and remember what it accepts. */
bool soft_link(struct soft_qp *qp);
/* Is there a receive at the peer? */
bool soft_peer_has_recv(struct soft_qp *qp);
/* What we know of a remote key; NULL: no such key, or @is_asked is set. */
struct soft_view *soft_view_remote(struct soft_qp *qp, uint32_t key);
struct soft_view *soft_view_own(struct soft_qp *qp, uint32_t key);
/* Fill @view for a key of a context in this process; false: none such. */
bool soft_view_keys(const struct soft_key *keys, uint32_t key,
		    struct soft_view *view);

/* Take @qp->after to do it later, when the lock is let go. */
static inline uint32_t soft_after_take(struct soft_qp *qp)
{
	uint32_t after = qp->after;

	qp->after = 0;
	return after;
}

/* Do it.  No locks held; or only the context's. */
void soft_after(struct soft_qp *qp, uint32_t after);
void soft_after_locked(struct soft_qp *qp, uint32_t after);
/*
 * Try again everything that waits in @c; who polls leaves out what waits for
 * our thread (@is_thread).  No locks held.
 */
void soft_run_all(struct soft_context *c, bool is_thread);

/* ---- copy.c ---- */

/* Copy so that each aligned line's last 8 bytes land last. */
void soft_copy_lines(void *to, const void *from, size_t bytes);

#endif
