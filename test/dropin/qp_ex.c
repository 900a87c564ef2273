/* SPDX-License-Identifier: MIT */
/*
 * The extended posting interface: between wr_start() and wr_complete() the
 * requests are gathered, and then posted as one list.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dropin.h"

#define OPS_UD (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_UC                                                                 \
	(OPS_UD | IBV_QP_EX_WITH_RDMA_WRITE |                                  \
	 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define OPS_RC                                                                 \
	(OPS_UC | IBV_QP_EX_WITH_RDMA_READ |                                   \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |                                   \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

struct dropin_poster {
	pthread_mutex_t lock;	 /* from wr_start() to its end */
	struct ibv_send_wr *wrs; /* one more than may be posted */
	struct ibv_sge *sges;
	unsigned char *inlined;
	uint32_t n, max_wr, max_sge, max_inline;
	int error; /* the first since wr_start() */
};

static struct dropin_poster *poster_of(struct ibv_qp_ex *qp)
{
	return ((struct dropin_qp *)qp)->poster;
}

/* The request that the setters are about. */
static struct ibv_send_wr *last_of(struct dropin_poster *p)
{
	return &p->wrs[p->n ? p->n - 1 : 0];
}

static void fail(struct dropin_poster *p, int error)
{
	if (!p->error)
		p->error = error;
}

static struct ibv_send_wr *begin(struct ibv_qp_ex *qp, enum ibv_wr_opcode op)
{
	struct dropin_poster *p = poster_of(qp);
	struct ibv_send_wr *wr;

	/* What is too much goes into the spare entry, again and again. */
	if (p->n > p->max_wr)
		p->n = p->max_wr;
	if (p->n == p->max_wr)
		fail(p, ENOMEM);
	wr = &p->wrs[p->n];
	memset(wr, 0, sizeof(*wr));
	wr->sg_list = &p->sges[(size_t)p->n * p->max_sge];
	wr->wr_id = qp->wr_id;
	wr->send_flags = qp->wr_flags;
	wr->opcode = op;
	if (p->n)
		p->wrs[p->n - 1].next = wr;
	p->n++;
	return wr;
}

static void rdma(struct ibv_qp_ex *qp, enum ibv_wr_opcode op, uint32_t rkey,
		 uint64_t remote_addr, __be32 imm)
{
	struct ibv_send_wr *wr = begin(qp, op);

	wr->imm_data = imm;
	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = remote_addr;
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	rdma(qp, IBV_WR_RDMA_READ, rkey, addr, 0);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	rdma(qp, IBV_WR_RDMA_WRITE, rkey, addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey,
			      uint64_t addr, __be32 imm)
{
	rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
}

static void wr_send(struct ibv_qp_ex *qp)
{
	begin(qp, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	begin(qp, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void atomic(struct ibv_qp_ex *qp, enum ibv_wr_opcode op, uint32_t rkey,
		   uint64_t addr, uint64_t compare, uint64_t value)
{
	struct ibv_send_wr *wr = begin(qp, op);

	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = compare;
	wr->wr.atomic.swap = value;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey,
			      uint64_t addr, uint64_t compare, uint64_t swap)
{
	atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey,
				uint64_t addr, uint64_t add)
{
	atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, add, 0);
}

static void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct ibv_send_wr *wr = last_of(poster_of(qp));

	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = remote_qpn;
	wr->wr.ud.remote_qkey = remote_qkey;
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t n,
			    const struct ibv_sge *list)
{
	struct dropin_poster *p = poster_of(qp);
	struct ibv_send_wr *wr = last_of(p);

	if (n > p->max_sge) {
		fail(p, EINVAL);
		return;
	}
	if (n)
		memcpy(wr->sg_list, list, n * sizeof(*list));
	wr->num_sge = (int)n;
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_sge sge = {addr, length, lkey};

	/* A message of no bytes has no address. */
	wr_set_sge_list(qp, length ? 1 : 0, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t n,
				    const struct ibv_data_buf *list)
{
	struct dropin_poster *p = poster_of(qp);
	struct ibv_send_wr *wr = last_of(p);
	unsigned char *to =
		p->inlined + (size_t)(wr - p->wrs) * p->max_inline;
	size_t i, bytes = 0;

	for (i = 0; i < n; i++) {
		if (list[i].length > p->max_inline - bytes) {
			fail(p, EINVAL);
			return;
		}
		memcpy(to + bytes, list[i].addr, list[i].length);
		bytes += list[i].length;
	}
	wr->sg_list->addr = (uintptr_t)to;
	wr->sg_list->length = (uint32_t)bytes;
	wr->num_sge = 1;
	wr->send_flags |= IBV_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	struct ibv_data_buf buf = {addr, length};

	wr_set_inline_data_list(qp, 1, &buf);
}

static void wr_start(struct ibv_qp_ex *qp)
{
	struct dropin_poster *p = poster_of(qp);

	pthread_mutex_lock(&p->lock);
	p->n = 0;
	p->error = 0;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	struct dropin_poster *p = poster_of(qp);
	struct ibv_send_wr *bad;
	int err = p->error;

	if (!err && p->n)
		err = ibv_post_send(&qp->qp_base, p->wrs, &bad);
	pthread_mutex_unlock(&p->lock);
	return err;
}

static void wr_abort(struct ibv_qp_ex *qp)
{
	pthread_mutex_unlock(&poster_of(qp)->lock);
}

void dropin_poster_free(struct dropin_poster *p)
{
	if (!p)
		return;
	pthread_mutex_destroy(&p->lock);
	free(p->wrs);
	free(p->sges);
	free(p->inlined);
	free(p);
}

static struct dropin_poster *poster_new(const struct ibv_qp_cap *cap)
{
	struct dropin_poster *p = calloc(1, sizeof(*p));
	size_t slots = cap->max_send_wr + 1;

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	p->max_wr = cap->max_send_wr;
	p->max_sge = cap->max_send_sge ? cap->max_send_sge : 1;
	p->max_inline = cap->max_inline_data;
	p->wrs = calloc(slots, sizeof(*p->wrs));
	p->sges = calloc(slots, p->max_sge * sizeof(*p->sges));
	p->inlined = calloc(slots, p->max_inline + 1);
	if (!p->wrs || !p->sges || !p->inlined) {
		dropin_poster_free(p);
		return NULL;
	}
	return p;
}

static void fill(struct ibv_qp_ex *qp)
{
	qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
	qp->wr_rdma_read = wr_rdma_read;
	qp->wr_rdma_write = wr_rdma_write;
	qp->wr_rdma_write_imm = wr_rdma_write_imm;
	qp->wr_send = wr_send;
	qp->wr_send_imm = wr_send_imm;
	qp->wr_set_ud_addr = wr_set_ud_addr;
	qp->wr_set_inline_data = wr_set_inline_data;
	qp->wr_set_inline_data_list = wr_set_inline_data_list;
	qp->wr_set_sge = wr_set_sge;
	qp->wr_set_sge_list = wr_set_sge_list;
	qp->wr_start = wr_start;
	qp->wr_complete = wr_complete;
	qp->wr_abort = wr_abort;
}

static uint64_t ops_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return OPS_RC;
	case IBV_QPT_UC:
		return OPS_UC;
	case IBV_QPT_UD:
		return OPS_UD;
	default:
		return 0;
	}
}

struct ibv_qp *dropin_create_qp_ex(struct ibv_context *context,
				   struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	const bool has_ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct dropin_qp *qp;

	(void)context;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) {
		errno = EINVAL;
		return NULL;
	}
	if (attr->comp_mask & ~known ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	     attr->create_flags) ||
	    (has_ops && attr->send_ops_flags & ~ops_of(attr->qp_type))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	/* The extended attributes begin as the others do. */
	qp = (struct dropin_qp *)(void *)ibv_create_qp(
		attr->pd, (struct ibv_qp_init_attr *)(void *)attr);
	if (!qp || !has_ops)
		return qp ? &qp->ex.qp_base : NULL;
	qp->poster = poster_new(&attr->cap);
	if (!qp->poster) {
		ibv_destroy_qp(&qp->ex.qp_base);
		errno = ENOMEM;
		return NULL;
	}
	fill(&qp->ex);
	return &qp->ex.qp_base;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct dropin_qp *mine = (struct dropin_qp *)(void *)qp;

	return mine->poster ? &mine->ex : NULL;
}
