/* SPDX-License-Identifier: MIT */
/*
 * Taking receives from a shared queue, which may be another process's, while
 * others take too.  Nobody waits for anybody: who finds the head taken moves
 * it on.
 */
#define _GNU_SOURCE
#include <string.h>

#include "soft/qp.h"

#define LOAD(p) atomic_load_explicit((p), memory_order_relaxed)

bool soft_taker_link(struct soft_taker *t, struct soft_segment *seg,
		     uint32_t index)
{
	struct soft_shared_srq *s = &seg->srqs[index % SOFT_N_SRQ];
	uint64_t base = LOAD(&s->base);
	uint64_t slots = LOAD(&s->slots);
	uint64_t sges = LOAD(&s->sges);

	if (!slots || slots > SOFT_MAX_WR || (slots & (slots - 1)) ||
	    sges > SOFT_MAX_SGE || base % BASE_LINE ||
	    base + slots * (16 + sges * sizeof(*t->wqes)) > SOFT_RING_BYTES)
		return false;
	t->shared = s;
	t->words = (_Atomic uint64_t *)(void *)(seg->rings + base);
	t->order = t->words + slots;
	t->wqes = (struct soft_shared_sge *)(void *)(seg->rings + base +
						     16 * slots);
	t->slots = (uint32_t)slots;
	t->sges = (uint32_t)sges;
	t->pd = LOAD(&s->pd);
	return true;
}

bool soft_taker_take(struct soft_taker *t, uint32_t qpn)
{
	struct soft_shared_srq *s = t->shared;
	uint32_t tries;

	if (t->taken)
		return true;
	/* Each round somebody gets on; whoever makes nonsense of the words
	 * makes no loop of it. */
	for (tries = 0; tries < 2 * t->slots; tries++) {
		uint32_t head = atomic_load_explicit(&s->head,
						     memory_order_acquire);
		/* Pairs with soft_post_srq_recv(): what is posted is there. */
		uint32_t tail = atomic_load_explicit(&s->tail,
						     memory_order_acquire);
		uint64_t next = atomic_load_explicit(
			&t->order[head & (t->slots - 1)],
			memory_order_acquire);
		uint32_t slot = (uint32_t)next & (t->slots - 1);
		uint64_t word = (uint64_t)head << 32;
		bool is_ours;

		if (tail == head)
			return false;
		/* Old news: others have taken it, and more. */
		if (tail - head > t->slots || next >> 32 != head)
			continue;
		is_ours = atomic_compare_exchange_strong(&t->words[slot],
							 &word, word | qpn);
		atomic_compare_exchange_strong(&s->head, &head, head + 1);
		if (is_ours) {
			t->taken = slot + 1;
			return true;
		}
	}
	return false;
}

bool soft_taker_is_low(struct soft_taker *t)
{
	uint32_t limit = atomic_load(&t->shared->limit);

	if (!(limit & 0xffff) || limit == t->told ||
	    atomic_load(&t->shared->tail) - atomic_load(&t->shared->head) >=
		    (limit & 0xffff))
		return false;
	t->told = limit;
	return true;
}

void soft_taker_deliver(struct soft_qp *qp, uint32_t info, uint32_t length,
			uint32_t imm)
{
	struct soft_taker *t = &qp->taker;
	uint32_t next = qp->peer_next++;
	uint32_t at = next & (t->cqe_slots - 1);

	atomic_store_explicit(&t->more[at].wqe, t->taken - 1,
			      memory_order_relaxed);
	t->taken = 0;
	soft_deliver_at(qp, &qp->peer_cqes[at], next, info, length, imm);
	/* None is there by its count: soft_peer_has_recv() is not asked. */
	qp->peer_tail = qp->peer_next;
	if (soft_taker_is_low(t)) {
		qp->note |= SOFT_NOTE_LIMIT;
		qp->after |= SOFT_AFTER_NOTE;
	}
}
