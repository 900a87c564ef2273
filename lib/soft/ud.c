/* SPDX-License-Identifier: MIT */
/*
 * Datagrams.  A message of the peer's socket carries one, and the control
 * thread of its context puts it into a receive: many may send to one queue
 * pair, and who dies while it sends has sent nothing.
 *
 * A full socket is waited for, as a link's credits are; a datagram for which
 * there is no queue pair, no right key or no receive is lost.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "soft/ah.h"
#include "soft/exec.h"

/* The MTU that query_port() tells of. */
#define MTU 4096u
#define GRH_BYTES 40u

_Static_assert(sizeof(struct ibv_grh) == GRH_BYTES, "IBTA 8.3");

/* In the message's @key. */
enum {
	HAS_IMM = 1,
	IS_SOLICITED = 2,
	HAS_GRH = 4,
};

/*
 * How long a datagram waits for a receive at a queue pair that had one for
 * the last: a thread that takes receives in turn may be without a processor
 * for some slices of 4 ms, while a wire would be slower than it.
 */
#define GRACE_NS 100000000u

struct soft_datagram {
	struct soft_message m;
	uint64_t end_ns;
	unsigned char payload[GRH_BYTES + MTU];
};

static void pack(struct soft_qp *qp, const struct soft_wqe *wqe,
		 struct soft_message *m)
{
	const struct soft_ah *ah = wqe->ah;

	memset(m, 0, sizeof(*m));
	m->magic = SOFT_MESSAGE_MAGIC;
	m->type = SOFT_DATAGRAM;
	m->a = (uint64_t)wqe->remote_qpn << 32 | qp->ibv.qp_num;
	m->b = (uint64_t)wqe->remote_qkey << 32;
	m->need = (uint32_t)(ah->attr.sl & 15) << 16 | ah->slid;
	m->bytes = wqe->length;
	if (wqe->opcode == IBV_WR_SEND_WITH_IMM) {
		m->key |= HAS_IMM;
		m->b |= wqe->imm;
	}
	if (wqe->flags & IBV_SEND_SOLICITED)
		m->key |= IS_SOLICITED;
	if (ah->attr.is_global)
		m->key |= HAS_GRH;
}

enum soft_result soft_execute_datagram(struct soft_qp *qp,
				       const struct soft_wqe *wqe,
				       const struct soft_piece *local,
				       enum ibv_wc_status *status)
{
	struct iovec iov[SOFT_MAX_SGE + 2];
	struct msghdr msg = {.msg_iov = iov};
	struct ibv_grh grh = wqe->ah->grh;
	struct soft_message m;
	uint64_t left = wqe->length;
	int err;

	*status = IBV_WC_SUCCESS;
	/* IBTA C10-93.1.1: one that is too long is not sent, and no error. */
	if (wqe->length > MTU || atomic_load(&qp->context->is_down))
		return SOFT_DONE;
	pack(qp, wqe, &m);
	iov[msg.msg_iovlen++] = (struct iovec){&m, sizeof(m)};
	if (m.key & HAS_GRH) {
		grh.paylen = htons((uint16_t)wqe->length);
		iov[msg.msg_iovlen++] = (struct iovec){&grh, sizeof(grh)};
	}
	for (; left; local++) {
		iov[msg.msg_iovlen++] =
			(struct iovec){local->at, local->length};
		left -= local->length;
	}
	err = soft_courier_send(wqe->ah->courier, &msg);
	if (err == EAGAIN)
		return SOFT_WAIT;
	/* What is registered may be unmapped all the same. */
	if (err == EFAULT)
		*status = IBV_WC_LOC_PROT_ERR;
	return SOFT_DONE;
}

/* The receive that the next datagram goes to.  False: there is none. */
static bool find_recv(struct soft_qp *qp, const struct soft_shared_sge **sges,
		      uint32_t *n, uint32_t *pd)
{
	uint32_t tail;

	if (qp->srq) {
		struct soft_taker *t = &qp->taker;

		if (!t->shared && !soft_taker_link(t, qp->context->seg,
						   qp->srq->slot))
			return false;
		if (!soft_taker_take(t, qp->ibv.qp_num))
			return false;
		*n = t->sges;
		*sges = &t->wqes[(t->taken - 1) * t->sges];
		*pd = t->pd;
		return true;
	}
	soft_lock(&qp->rq_lock);
	tail = qp->rq_tail;
	soft_unlock(&qp->rq_lock);
	if (tail == qp->next_datagram)
		return false;
	*n = qp->cap.max_recv_sge;
	*sges = &qp->rq_wqes[(qp->next_datagram & qp->rq.mask) * *n];
	*pd = qp->pd->id;
	return true;
}

/* The memory of a receive, as one line of bytes. */
struct target {
	struct soft_context *c;
	const struct soft_shared_sge *sges;
	uint32_t n, pd;
	uint32_t used; /* of the first of them */
};

/* Put @bytes there, or pass over them where @from is NULL. */
static enum ibv_wc_status put(struct target *t, const unsigned char *from,
			      uint32_t bytes)
{
	while (bytes) {
		uint32_t length, n;
		struct soft_view view;
		struct soft_piece piece;

		if (!t->n)
			return IBV_WC_LOC_LEN_ERR;
		length = atomic_load(&t->sges->length);
		n = length > t->used ? length - t->used : 0;
		if (n > bytes)
			n = bytes;
		if (n && (!soft_view_keys(t->c->keys,
					  atomic_load(&t->sges->lkey),
					  &view) ||
			  !soft_find_piece(&view, t->pd,
					   atomic_load(&t->sges->addr) +
						   t->used, n,
					   IBV_ACCESS_LOCAL_WRITE, &piece)))
			return IBV_WC_LOC_PROT_ERR;
		/* It reads @from only. */
		if (n && from &&
		    soft_copy_own(piece.at, (void *)(uintptr_t)from, n, true))
			return IBV_WC_LOC_PROT_ERR;
		from = from ? from + n : NULL;
		bytes -= n;
		t->used += n;
		if (t->used >= length) {
			t->sges++;
			t->n--;
			t->used = 0;
		}
	}
	return IBV_WC_SUCCESS;
}

static bool is_large_enough(const struct target *t, uint64_t bytes)
{
	uint64_t room = 0;
	uint32_t i;

	for (i = 0; i < t->n; i++)
		room += atomic_load(&t->sges[i].length);
	return bytes <= room;
}

static void complete(struct soft_qp *qp, const struct soft_message *m,
		     enum ibv_wc_status status)
{
	const uint32_t next = qp->next_datagram++;
	struct soft_cqe *e = &qp->rq.cqes[next & qp->rq.mask];
	struct soft_shared_more *more = &qp->rq_more[next & qp->rq.mask];
	uint32_t flags = m->need >> 8 & 0xf00;

	if (m->key & HAS_GRH)
		flags |= SOFT_MORE_GRH;
	if (qp->srq) {
		atomic_store(&more->wqe, qp->taker.taken - 1);
		qp->taker.taken = 0;
	}
	atomic_store(&more->src_qp, (uint32_t)m->a & 0xffffff);
	atomic_store(&more->slid, m->need & 0xffff);
	atomic_store(&more->flags, flags);
	atomic_store(&e->byte_len, m->bytes + GRH_BYTES);
	atomic_store(&e->imm, (uint32_t)m->b);
	atomic_store(&e->info,
		     status ? status
			    : IBV_WC_RECV << 8 |
				      (m->key & HAS_IMM ? SOFT_INFO_IMM << 16
							: 0));
	/* Pairs with the acquire in poll.c. */
	atomic_store_explicit(&e->seq, next + 1, memory_order_release);
	soft_cq_hint(qp->recv_cq, &qp->rq);
	if (!qp->recv_cq->ibv.channel)
		return;
	/* Pairs with soft_req_notify_cq(): it polls, or we see it armed. */
	soft_fence();
	soft_cq_fire(qp->recv_cq, status || m->key & IS_SOLICITED);
}

/* The queue pair it is for, if that takes it. */
static struct soft_qp *find_qp(struct soft_context *c,
			       const struct soft_message *m)
{
	uint32_t qpn = (uint32_t)(m->a >> 32);
	struct soft_qp *qp = atomic_load(&c->qps[qpn % SOFT_N_QP]);

	if (!qp || !qp->is_live || qp->ibv.qp_num != qpn ||
	    qp->ibv.qp_type != IBV_QPT_UD ||
	    qp->attr.qkey != (uint32_t)(m->b >> 32) ||
	    atomic_load(&c->is_down) || atomic_load(&c->is_gone))
		return NULL;
	switch (atomic_load(&qp->state)) {
	case IBV_QPS_RTR:
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
		return qp;
	default:
		return NULL;
	}
}

/* False: try again soon.  Caller holds the context's lock. */
static bool take(struct soft_context *c, const struct soft_message *m,
		 const unsigned char *payload, bool is_last_try)
{
	const uint32_t grh_bytes = m->key & HAS_GRH ? GRH_BYTES : 0;
	struct soft_qp *qp = find_qp(c, m);
	struct target t = {.c = c};
	enum ibv_wc_status status;

	if (!qp)
		return true;
	if (!find_recv(qp, &t.sges, &t.n, &t.pd)) {
		bool has_hope = qp->is_served && !is_last_try;

		qp->is_served = has_hope;
		return !has_hope;
	}
	/* Too long for it: lost, and the receive is for the next. */
	if (!is_large_enough(&t, m->bytes + GRH_BYTES))
		return true;
	/* The place of a GRH is there without one, too. */
	status = put(&t, grh_bytes ? payload : NULL, GRH_BYTES);
	if (!status)
		status = put(&t, payload + grh_bytes, m->bytes);
	qp->is_served = true;
	complete(qp, m, status);
	if (status)
		soft_qp_error(qp);
	if (qp->srq)
		soft_srq_check_limit(qp->srq);
	return true;
}

static bool take_locked(struct soft_context *c, const struct soft_message *m,
			const unsigned char *payload, bool is_last_try)
{
	bool is_done;

	pthread_mutex_lock(&c->lock);
	is_done = take(c, m, payload, is_last_try);
	pthread_mutex_unlock(&c->lock);
	return is_done;
}

void soft_datagram_take(struct soft_context *c, struct soft_guest *guest,
			const struct soft_message *m,
			const unsigned char *payload, size_t bytes)
{
	const size_t grh_bytes = m->key & HAS_GRH ? GRH_BYTES : 0;
	struct soft_datagram *d;

	if (m->bytes > MTU || bytes != m->bytes + grh_bytes ||
	    take_locked(c, m, payload, false))
		return;
	d = base_alloc(1, sizeof(*d));
	if (!d)
		return;
	d->m = *m;
	memcpy(d->payload, payload, bytes);
	d->end_ns = base_now_ns() + GRACE_NS;
	guest->waiting = d;
	c->n_waiting++;
}

void soft_datagram_retry(struct soft_context *c, struct soft_guest *guest)
{
	struct soft_datagram *d = guest->waiting;

	if (take_locked(c, &d->m, d->payload, base_now_ns() > d->end_ns))
		soft_datagram_drop(c, guest);
}

void soft_datagram_drop(struct soft_context *c, struct soft_guest *guest)
{
	if (!guest->waiting)
		return;
	base_free(guest->waiting);
	guest->waiting = NULL;
	c->n_waiting--;
}
