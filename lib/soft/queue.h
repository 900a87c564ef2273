/* SPDX-License-Identifier: MIT */
/* Completion queues and channels, and asynchronous events. */
#ifndef SOFT_QUEUE_H
#define SOFT_QUEUE_H

#include "soft/device.h"

struct soft_channel {
	struct ibv_comp_channel ibv;
	int write_fd;
};

/*
 * Where a CQ finds completions: one queue of a queue pair.  Memory of a
 * source is never freed before its context, so that an empty poll may look
 * without a lock.
 */
struct soft_source {
	_Atomic(struct soft_cqe *) next; /* the entry at @head */
	_Atomic uint32_t head;		 /* under the CQ's lock */
	uint32_t mask, slots;
	struct soft_cqe *cqes;
	struct soft_tag *tags;
	struct soft_qp *qp;
	_Atomic uint32_t freed; /* slots of the queue given back, absolute */
	bool is_recv;
	bool has_more; /* in the queue pair's @rq_more */
	uint32_t hint; /* its number in the CQ */
};

_Static_assert(sizeof(struct soft_source) == BASE_LINE, "one line");

/* What only the owner needs of a completion. */
struct soft_tag {
	uint64_t wr_id;
	uint32_t freed; /* value for the source's @freed */
};

#define SOFT_FEW 8u
#define SOFT_MAX_CQE (1 << 20)

struct soft_many {
	_Atomic(struct soft_source *) at[SOFT_HINTS]; /* from SOFT_FEW on */
};

struct soft_cq {
	union {
		struct ibv_cq ibv;
		unsigned char spare[sizeof(struct ibv_cq_ex) + SOFT_SPARE];
	};
	uint32_t slot, generation;
	struct soft_shared_cq *shared;
	_Atomic uint32_t lock;
	_Atomic uint32_t n_sources; /* highest hint in use + 1 */
	_Atomic uint32_t n_empty;   /* empty polls, roughly */
	_Atomic uint32_t n_armings;
	_Atomic bool is_broken; /* overrun */
	uint32_t n_events, n_async; /* read; destruction waits for the acks */
	uint32_t n_attached;
	_Atomic uint32_t n_slots; /* completions that its queues can hold */
	_Atomic uint32_t n_max;	  /* as in ibv.cqe */
	uint32_t turn;
	_Atomic(struct soft_source *) few[SOFT_FEW];
	struct soft_many *many; /* NULL while they are few */
};

static inline _Atomic(struct soft_source *) *
soft_source_at(struct soft_cq *cq, uint32_t i)
{
	return i < SOFT_FEW ? &cq->few[i] : &cq->many->at[i];
}

/* Is the next completion there? */
static inline bool soft_has_next(const struct soft_source *s)
{
	struct soft_cqe *e;

	e = atomic_load_explicit(&s->next, memory_order_relaxed);
	return e && atomic_load_explicit(&e->seq, memory_order_relaxed) ==
			    atomic_load_explicit(&s->head,
						 memory_order_relaxed) + 1;
}

/* ---- cq.c, channel.c ---- */

bool soft_cq_attach(struct soft_cq *cq, struct soft_source *source);
void soft_cq_detach(struct soft_cq *cq, struct soft_source *source);
/* Completions that nobody has polled, up to @limit.  Caller holds @cq->lock. */
uint32_t soft_cq_count(struct soft_cq *cq, uint32_t limit);
/* Is there a completion?  Any context's thread; looks at every queue. */
bool soft_cq_has(struct soft_cq *cq);
/* A completion of @source is there.  For any thread. */
void soft_cq_hint(struct soft_cq *cq, const struct soft_source *source);
/* It has too many completions, and is of no use any more.  Caller holds the
 * context's lock. */
void soft_cq_overrun(struct soft_cq *cq);
/* Write the channel's event if armed for this. */
void soft_cq_fire(struct soft_cq *cq, bool is_solicited);

/* Queue an event about the port, the device, or the QP or CQ given. */
void soft_async(struct soft_context *c, enum ibv_event_type type,
		struct soft_qp *qp, struct soft_cq *cq);
void soft_async_srq(struct soft_context *c, enum ibv_event_type type,
		    struct soft_srq *srq);

/*
 * The pieces of a receive into its @n places of shared memory; those left over
 * are empty.  Visible with the word that the caller stores behind them.
 */
static inline void soft_sges_store(struct soft_shared_sge *to, uint32_t n,
				   const struct ibv_recv_wr *wr)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const bool is_used = i < (uint32_t)wr->num_sge;
		const struct ibv_sge *sge = wr->sg_list + (is_used ? i : 0);

		atomic_store_explicit(&to[i].addr, is_used ? sge->addr : 0,
				      memory_order_relaxed);
		atomic_store_explicit(&to[i].length, is_used ? sge->length : 0,
				      memory_order_relaxed);
		atomic_store_explicit(&to[i].lkey, is_used ? sge->lkey : 0,
				      memory_order_relaxed);
	}
}

#endif
