/* SPDX-License-Identifier: MIT */
/*
 * The control segment of an opened device: what a peer maps of it.
 *
 * It is a sealed memfd, sparse and never larger than its struct, so that a
 * peer cannot make us fault and nothing is left when the process dies.  Each
 * word has one writer, the owner or the connected peer, named below.  A
 * reader masks and bounds all that it takes from a segment, its own included:
 * every peer can write there.
 */
#ifndef SOFT_SHARED_H
#define SOFT_SHARED_H

#include <stdatomic.h>

#include "base/base.h"

#define SOFT_MAGIC 0x7772656174683031ull
#define SOFT_VERSION 4u

#define SOFT_N_MR 16384u
#define SOFT_N_QP 4096u
#define SOFT_N_CQ 1024u
#define SOFT_N_SRQ 1024u
#define SOFT_N_REGIONS 4096u
#define SOFT_HINTS (2 * SOFT_N_QP)
#define SOFT_RING_BYTES (64u << 20)
#define SOFT_MAX_WR 16384u
#define SOFT_MAX_SGE 16u

/* A key is its slot in the table and 18 random bits. */
#define SOFT_KEY_SHIFT 18

/*
 * A registered region.  @word is (generation << 32 | key) while it is valid
 * and 0 otherwise; it changes with each registration, so that who holds the
 * word's value holds the fields' too.  Written by the owner.
 */
struct soft_shared_mr {
	_Alignas(BASE_LINE) _Atomic uint64_t word;
	_Atomic uint64_t addr;
	_Atomic uint64_t length;
	_Atomic uint64_t region; /* memfd that holds it, 0: private memory */
	/* Of @addr in the memfd; of private memory, where it is in the owner's
	 * process. */
	_Atomic uint64_t offset;
	_Atomic uint32_t pd;
	_Atomic uint32_t access;
};

/* A completion.  Valid once @seq is its index + 1, which is stored last. */
struct soft_cqe {
	_Atomic uint32_t seq;
	_Atomic uint32_t byte_len;
	_Atomic uint32_t imm;
	_Atomic uint32_t info; /* status, opcode << 8, flags << 16 */
};

#define SOFT_INFO_IMM 1u
#define SOFT_INFO_SOLICITED 2u

struct soft_shared_sge {
	_Atomic uint64_t addr;
	_Atomic uint32_t length;
	_Atomic uint32_t lkey;
};

/* What a completion of some queues has besides; valid with it. */
struct soft_shared_more {
	_Atomic uint32_t wqe; /* the slot of a shared receive queue */
	_Atomic uint32_t src_qp, slid, flags;
};

#define SOFT_MORE_GRH 1u /* in @flags: it came with one; the SL << 8 */

/*
 * A shared receive queue: from @base in the rings a word for each slot, the
 * ring of slots in the order posted, and the slots' pieces of memory.
 *
 * A slot's word is (number of its post << 32 | who took it), the queue pair
 * whose receive it became, or 0.  Taking a receive is one exchange of that
 * word, so that whoever dies with one in hand has left its name on it.
 * @head may then lag behind: it is moved by whoever comes next.
 */
struct soft_shared_srq {
	/* Written by the owner when it is made. */
	_Alignas(BASE_LINE) _Atomic uint32_t base;
	_Atomic uint32_t slots; /* a power of two */
	_Atomic uint32_t sges;	/* of each receive */
	_Atomic uint32_t pd;
	/* Whoever leaves fewer than that tells the owner, once an arming:
	 * (arming << 16 | limit). */
	_Atomic uint32_t limit;

	/* Written by the owner at each receive posted. */
	_Alignas(BASE_LINE) _Atomic uint32_t tail;

	/* Written by whoever takes a receive. */
	_Alignas(BASE_LINE) _Atomic uint32_t head;
};

#define SOFT_SRQ_FREE 0xffffffffu /* in a slot's word: not posted */

/*
 * The bits of the word @accept: a peer may write while SOFT_ACCEPT_READY is
 * set and the fields below it name the peer.  The epoch in its upper half
 * changes whenever the queue pair becomes ready to receive.
 */
#define SOFT_ACCEPT_READY 0x100u
#define SOFT_ACCEPT_RTR 0x200u /* nothing has come yet: tell the owner */
#define SOFT_ACCEPT_ACCESS 0xffu

#define SOFT_CQ_CHANNEL 0x80000000u /* it has a channel: look if armed */

struct soft_shared_qp {
	/* Written by the owner, read by the peer at each post. */
	_Alignas(BASE_LINE) _Atomic uint64_t accept;
	_Atomic uint64_t dest_id; /* the context that may write */
	_Atomic uint32_t qpn;
	_Atomic uint32_t dest_qpn;
	_Atomic uint32_t rq_psn;
	_Atomic uint32_t pd;
	_Atomic uint32_t rnr_timer;
	_Atomic uint32_t rd_atomic;
	_Atomic uint32_t rq_cqes;  /* offset of struct soft_cqe in rings */
	_Atomic uint32_t rq_wqes;  /* offset of struct soft_shared_sge */
	_Atomic uint32_t rq_slots; /* a power of two, or 0 */
	_Atomic uint32_t rq_sges;  /* of each receive */
	_Atomic uint32_t rq_start; /* index of the first receive to take */
	_Atomic uint32_t cq;	   /* slot << 16 | hint, SOFT_CQ_CHANNEL */

	/* Written by the owner at each receive posted. */
	_Alignas(BASE_LINE) _Atomic uint32_t rq_tail;
	/* Written with the first line. */
	_Atomic uint32_t srq;	  /* its receives' queue + 1, or 0 */
	_Atomic uint32_t rq_more; /* offset of struct soft_shared_more */
	_Atomic uint32_t type;	  /* enum ibv_qp_type */

	/*
	 * The lock of the owner's send queue: odd while a thread of the owner
	 * may be writing to the peer, who waits for it to change before memory
	 * is given back.
	 */
	_Alignas(BASE_LINE) _Atomic uint32_t send_lock;
};

struct soft_shared_cq {
	/*
	 * (arming << 2 | what fires): written by the owner.  A peer that has
	 * seen it sends one note per arming.
	 */
	_Alignas(BASE_LINE) _Atomic uint32_t armed;
	/*
	 * A byte per queue of the CQ, set after each completion and cleared by
	 * whoever polls: a hint only, completions themselves are in the rings.
	 */
	_Alignas(BASE_LINE) _Atomic uint64_t hints[SOFT_HINTS / 8];
};

#define SOFT_ARMED_ANY 1u
#define SOFT_ARMED_SOLICITED 2u

struct soft_segment {
	/* The header never changes once a peer can see it. */
	uint64_t magic;
	uint32_t version;
	uint32_t pid;
	uint64_t id;
	uint64_t bits; /* the port's rate, a second; 0: none */

	/*
	 * Until when its links are taken, each way, in nanoseconds of
	 * CLOCK_MONOTONIC: written by the owner and by whoever sends to it.
	 */
	_Alignas(BASE_LINE) _Atomic uint64_t out_ns;
	_Alignas(BASE_LINE) _Atomic uint64_t in_ns;

	_Alignas(4096) _Atomic uint64_t regions[SOFT_N_REGIONS];
	_Alignas(4096) struct soft_shared_mr mrs[SOFT_N_MR];
	_Alignas(4096) struct soft_shared_qp qps[SOFT_N_QP];
	_Alignas(4096) struct soft_shared_cq cqs[SOFT_N_CQ];
	_Alignas(4096) struct soft_shared_srq srqs[SOFT_N_SRQ];
	_Alignas(4096) unsigned char rings[SOFT_RING_BYTES];
};

_Static_assert(sizeof(struct soft_shared_mr) == 64, "one line");
_Static_assert(sizeof(struct soft_cqe) == 16, "four to a line");
_Static_assert(sizeof(struct soft_shared_sge) == 16, "four to a line");
_Static_assert(sizeof(struct soft_shared_more) == 16, "four to a line");
_Static_assert(sizeof(struct soft_shared_srq) == 192, "three lines");
_Static_assert(SOFT_MAX_WR < 1 << 16, "the limit's word");
_Static_assert(sizeof(struct soft_shared_qp) == 192, "three lines");
_Static_assert(SOFT_N_QP <= 1 << 12 && SOFT_HINTS <= 1 << 16, "cq word");

#endif
