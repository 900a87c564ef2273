/* SPDX-License-Identifier: MIT */
/*
 * Chaos: all that the specification leaves open, done in the worst way.  The
 * decisions are a function of the seed, the queue pair's number in its
 * context and the request's number; only when they take effect is up to the
 * machine.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>

#include "soft/qp.h"

/* splitmix64: any seed is good, 0 too. */
static uint64_t draw(struct soft_qp *qp)
{
	uint64_t x = qp->chaos += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

bool soft_chaos_holds(struct soft_qp *qp, bool wants_recv, bool *is_rnr)
{
	uint64_t r;

	if (!qp->is_drawn) {
		r = draw(qp);
		qp->is_drawn = true;
		/* Mostly a few turns, now and then many. */
		qp->turns = (uint8_t)(r & 7 ? r >> 8 & 3 : r >> 8 & 63);
		/* A receiver may always be late, so who gave its peer
		 * no patience without end is spared. */
		qp->is_late = wants_recv && qp->attr.rnr_retry == 7 &&
			      !(r >> 16 & 7);
		if (qp->is_late)
			qp->turns++;
	}
	*is_rnr = qp->is_late;
	if (!qp->turns)
		return false;
	qp->turns--;
	return true;
}

/* Aligned words at once, since a reader may poll any of them. */
static void copy_words(unsigned char *to, const unsigned char *from, size_t n)
{
	while (n) {
		if (n >= 8 && !((uintptr_t)to & 7)) {
			uint64_t v;

			memcpy(&v, from, sizeof(v));
			atomic_store_explicit((_Atomic uint64_t *)(void *)to,
					      v, memory_order_release);
			to += 8;
			from += 8;
			n -= 8;
		} else {
			*to++ = *from++;
			n--;
		}
	}
}

static void copy_line(unsigned char *to, const unsigned char *from, size_t at,
		      size_t n)
{
	/* The end first: who polls for it finds the rest missing. */
	size_t tail = n < 8 ? n : 8;

	copy_words(to + at + n - tail, from + at + n - tail, tail);
	copy_words(to + at, from + at, n - tail);
}

void soft_chaos_copy(struct soft_qp *qp, void *to, const void *from,
		     size_t bytes)
{
	/* Lines of the target, the first of which may be a part. */
	size_t skew = (uintptr_t)to & (BASE_LINE - 1);
	size_t n = (skew + bytes + BASE_LINE - 1) / BASE_LINE;
	size_t room = 1, i;
	uint64_t r = draw(qp);

	while (room < n)
		room *= 2;
	for (i = 0; i < room; i++) {
		/* An odd factor makes a permutation of [0, room). */
		size_t line = (i * (r | 1) + (r >> 32)) & (room - 1);
		size_t start = line * BASE_LINE;
		size_t end = start + BASE_LINE;

		if (line >= n)
			continue;
		start = start < skew ? 0 : start - skew;
		end = base_min_size(end - skew, bytes);
		copy_line(to, from, start, end - start);
		if (i == room / 2 && r >> 60 < 4)
			sched_yield();
	}
}
