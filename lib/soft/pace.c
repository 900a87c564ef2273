/* SPDX-License-Identifier: MIT */
/*
 * A port's rate and latency.
 *
 * Each opened context is a NIC of its own: one link out and one link in, of
 * the same rate, full duplex, shared by all of its queue pairs.  A request
 * gets its time on the link out when it is posted, in the order of the posts,
 * and its time on the peer's link in when its first byte leaves; both links
 * have a word in their owner's segment, the time until which they are taken,
 * which whoever sends moves on.  A request is carried out, all of it at once,
 * when its last byte is through the slower of the two links and the latency
 * is over: nothing is visible before, and its completion comes at the same
 * moment.  Requests of a queue pair stay in order.
 *
 * A READ or an atomic goes there in one latency, without using the link, and
 * its data come back by the peer's link out and ours in, one latency more.
 *
 * What a wire does by cutting messages into packets is done for the short
 * ones only: a message of up to a packet waits for one packet of other queue
 * pairs at most.  Between the links there is a network that is never full;
 * headers, acknowledgements and repetitions cost nothing.  Datagrams do not
 * use the receiver's link.
 *
 * Requests under way are looked at by whoever polls a CQ of their context,
 * and by its control thread, which a timer wakes for them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "soft/pace.h"
#include "soft/peer.h"
#include "soft/qp.h"

/* What query_port() tells of: the largest packet. */
#define PACKET 4096u

/*
 * Who has polled in the last 100 us is likely to do so again when a request
 * is due, and the thread would only take the processor from it: it comes 25 us
 * later then, which is what it takes at most to be woken on an idle machine.
 */
#define POLLS_NS 100000u
#define GRACE_NS 25000u
#define RETRY_NS 20000u

/* A peer can write anything into its words: no wait is longer for it. */
#define BELIEVED_NS 600000000000u

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* 2^31 bytes in bits and nanoseconds are less than 2^64. */
static uint64_t time_of(uint64_t bits, uint32_t bytes)
{
	return bits ? bytes * 8000000000ull / bits : 0;
}

/*
 * Take @bytes' time on a link from @from_ns on; returns when that begins.
 * The word's other writers are those who send there at the same time.
 */
static uint64_t take(_Atomic uint64_t *word, uint64_t bits, uint32_t bytes,
		     uint64_t from_ns)
{
	uint64_t busy = atomic_load_explicit(word, memory_order_relaxed);
	const uint64_t ns = time_of(bits, bytes);
	uint64_t begin, free;

	if (!bits)
		return from_ns;
	do {
		free = busy;
		if (free > from_ns + BELIEVED_NS)
			free = from_ns;
		free = most(free, from_ns);
		begin = free;
		if (bytes <= PACKET)
			begin = least(begin, from_ns + time_of(bits, PACKET));
	} while (!atomic_compare_exchange_weak_explicit(
		word, &busy, free + ns, memory_order_relaxed,
		memory_order_relaxed));
	return begin;
}

static bool is_answered(const struct soft_wqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ || soft_is_atomic(wqe->opcode);
}

void soft_pace_post(struct soft_qp *qp, struct soft_wqe *wqe)
{
	struct soft_context *c = qp->context;
	const uint32_t bytes = is_answered(wqe) ? 0 : wqe->length;
	uint64_t from = most(base_now_ns(), qp->left_ns);

	wqe->start_ns = take(&c->seg->out_ns, c->pace.bits, bytes, from);
	qp->left_ns = wqe->start_ns + time_of(c->pace.bits, bytes);
	wqe->due_ns = 0;
}

/*
 * When is @bytes, whose first leaves a link of @from bits at @start, through
 * the latency and a link of @to bits?
 */
static uint64_t arrive(uint64_t from, uint64_t start, uint64_t latency,
		       _Atomic uint64_t *word, uint64_t to, uint32_t bytes)
{
	uint64_t first = start + latency;
	uint64_t begin = take(word, to, bytes, first);

	return most(first + time_of(from, bytes), begin + time_of(to, bytes));
}

static void set_due(struct soft_qp *qp, struct soft_wqe *wqe)
{
	struct soft_context *c = qp->context;
	struct soft_segment *seg = qp->peer ? qp->peer->seg : NULL;
	const uint64_t bits = c->pace.bits, latency = c->pace.latency_ns;
	/* The peer's word for it: at most as slow as what is believed. */
	uint64_t peer_bits = seg ? seg->bits : 0;
	uint64_t start = wqe->start_ns;
	uint64_t due;

	if (peer_bits && peer_bits < SOFT_PACE_MIN)
		peer_bits = SOFT_PACE_MIN;
	if (!seg) {
		due = start + time_of(bits, wqe->length) + latency;
	} else if (is_answered(wqe)) {
		start = take(&seg->out_ns, peer_bits, wqe->length,
			     start + latency);
		due = arrive(peer_bits, start, latency, &c->seg->in_ns, bits,
			     wqe->length);
	} else {
		due = arrive(bits, start, latency, &seg->in_ns, peer_bits,
			     wqe->length);
	}
	due = least(due, wqe->start_ns + time_of(bits, wqe->length) +
				 2 * latency + BELIEVED_NS);
	/* 0 is none. */
	wqe->due_ns = most(most(due, qp->due_ns), 1);
	qp->due_ns = wqe->due_ns;
}

bool soft_pace_is_due(struct soft_qp *qp)
{
	const uint64_t now = base_now_ns();
	const struct soft_wqe *head = &qp->wqes[qp->sq_exec & qp->sq.mask];

	/* A flush passes over those that have no time yet. */
	if ((int32_t)(qp->sq_timed - qp->sq_exec) < 0)
		qp->sq_timed = qp->sq_exec;
	for (; qp->sq_timed != qp->sq_tail; qp->sq_timed++) {
		struct soft_wqe *wqe = &qp->wqes[qp->sq_timed & qp->sq.mask];

		if (wqe->start_ns > now)
			break;
		set_due(qp, wqe);
	}
	return head->due_ns && head->due_ns <= now;
}

void soft_pace_next(struct soft_qp *qp, bool is_early)
{
	const struct soft_wqe *head = &qp->wqes[qp->sq_exec & qp->sq.mask];
	const struct soft_wqe *timed = &qp->wqes[qp->sq_timed & qp->sq.mask];
	uint64_t next = 0;

	if (is_early)
		next = head->due_ns ? head->due_ns : head->start_ns;
	atomic_store(&qp->ring_ns, next);
	/* Whoever polls gives the others their time too, in its order. */
	if (is_early && qp->sq_timed != qp->sq_tail)
		next = least(next, timed->start_ns);
	atomic_store(&qp->next_ns, next);
	if (is_early)
		soft_pace_wind(qp->context);
}

bool soft_pace_must_tick(struct soft_context *c)
{
	uint32_t i;

	if (!soft_is_paced(&c->pace))
		return atomic_load(&c->n_pending);
	for (i = 0; i < atomic_load(&c->qps_high); i++) {
		struct soft_qp *qp = atomic_load(&c->qps[i]);

		if (qp && atomic_load(&qp->is_pending) &&
		    !atomic_load(&qp->next_ns))
			return true;
	}
	return false;
}

/* When is the first request due?  UINT64_MAX: there is none. */
static uint64_t first_due(struct soft_context *c)
{
	uint64_t first = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < atomic_load(&c->qps_high); i++) {
		struct soft_qp *qp = atomic_load(&c->qps[i]);
		uint64_t ns;

		/* Not whether it is pending: that is said a moment later. */
		ns = qp ? atomic_load(&qp->ring_ns) : 0;
		if (ns && ns < first)
			first = ns;
	}
	return first;
}

void soft_pace_wind(struct soft_context *c)
{
	struct itimerspec spec = {.it_value = {0, 0}};
	uint64_t now = base_now_ns();
	uint64_t ns;

	/* Whoever is last to have the lock has seen what all have stored. */
	soft_lock(&c->alarm_lock);
	ns = first_due(c);
	if (ns != UINT64_MAX && now - atomic_load(&c->polled_ns) < POLLS_NS)
		ns += GRACE_NS;
	/* It is due, and not done: another thread has the queue pair, and must
	 * not be kept from the processor by ours. */
	if (ns <= now)
		ns = now + RETRY_NS;
	if (ns != UINT64_MAX && ns != c->alarm_ns) {
		c->alarm_ns = ns;
		spec.it_value.tv_sec = (time_t)(ns / 1000000000u);
		spec.it_value.tv_nsec = (long)(ns % 1000000000u);
		timerfd_settime(c->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
	}
	soft_unlock(&c->alarm_lock);
}

void soft_pace_rung(struct soft_context *c)
{
	uint64_t count;

	soft_lock(&c->alarm_lock);
	if (read(c->timer_fd, &count, sizeof(count)) == sizeof(count))
		c->alarm_ns = 0;
	soft_unlock(&c->alarm_lock);
}

int soft_pace_open(struct soft_context *c)
{
	c->timer_fd = -1;
	if (!soft_is_paced(&c->pace))
		return 0;
	c->timer_fd = timerfd_create(CLOCK_MONOTONIC,
				     TFD_CLOEXEC | TFD_NONBLOCK);
	if (c->timer_fd >= 0)
		return 0;
	return base_error(WREATH_ENOMEM, "soft device: timerfd: %s",
			  strerror(errno));
}

void soft_pace_close(struct soft_context *c)
{
	if (c->timer_fd >= 0)
		close(c->timer_fd);
}
