/* SPDX-License-Identifier: MIT */
/* The extended polling interface, over ibv_poll_cq(). */
#include <errno.h>
#include <stdlib.h>

#include "dropin.h"

#define SUPPORTED                                                              \
	(IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |                        \
	 IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | \
	 IBV_WC_EX_WITH_SL | IBV_WC_EX_WITH_DLID_PATH_BITS)

/* From start_poll() to end_poll() the lock is held, unless one thread polls. */
struct dropin_poller {
	pthread_mutex_t lock;
	bool is_single;
	struct ibv_wc wc;
};

static struct dropin_poller *poller_of(struct ibv_cq_ex *cq)
{
	return ((struct dropin_cq *)cq)->poller;
}

static const struct ibv_wc *wc_of(struct ibv_cq_ex *cq)
{
	return &poller_of(cq)->wc;
}

static int next_poll(struct ibv_cq_ex *cq)
{
	struct ibv_wc *wc = &poller_of(cq)->wc;
	int n = ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, wc);

	if (n < 1)
		return n ? EIO : ENOENT;
	cq->status = wc->status;
	cq->wr_id = wc->wr_id;
	return 0;
}

static void end_poll(struct ibv_cq_ex *cq)
{
	struct dropin_poller *poller = poller_of(cq);

	if (!poller->is_single)
		pthread_mutex_unlock(&poller->lock);
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct dropin_poller *poller = poller_of(cq);
	int err;

	if (attr->comp_mask)
		return EINVAL;
	if (!poller->is_single)
		pthread_mutex_lock(&poller->lock);
	err = next_poll(cq);
	if (err)
		end_poll(cq);
	return err;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->slid;
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->dlid_path_bits;
}

/* A completion of an error has no opcode; the fields are there all the same. */
static void fill(struct ibv_cq_ex *cq)
{
	cq->comp_mask = 0;
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_byte_len = read_byte_len;
	cq->read_imm_data = read_imm_data;
	cq->read_qp_num = read_qp_num;
	cq->read_src_qp = read_src_qp;
	cq->read_wc_flags = read_wc_flags;
	cq->read_slid = read_slid;
	cq->read_sl = read_sl;
	cq->read_dlid_path_bits = read_dlid_path_bits;
}

static struct dropin_poller *poller_new(bool is_single)
{
	struct dropin_poller *poller = calloc(1, sizeof(*poller));

	if (!poller)
		return NULL;
	pthread_mutex_init(&poller->lock, NULL);
	poller->is_single = is_single;
	return poller;
}

void dropin_poller_free(struct dropin_poller *poller)
{
	if (!poller)
		return;
	pthread_mutex_destroy(&poller->lock);
	free(poller);
}

struct ibv_cq_ex *dropin_create_cq_ex(struct ibv_context *context,
				      struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS
				       ? attr->flags
				       : 0;
	struct dropin_poller *poller;
	struct dropin_cq *cq;

	if (attr->wc_flags & ~(uint64_t)SUPPORTED ||
	    attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS ||
	    flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->cqe > INT32_MAX || attr->comp_vector > INT32_MAX) {
		errno = EINVAL;
		return NULL;
	}
	poller = poller_new(flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	if (!poller)
		return NULL;
	cq = (struct dropin_cq *)(void *)ibv_create_cq(
		context, (int)attr->cqe, attr->cq_context, attr->channel,
		(int)attr->comp_vector);
	if (!cq) {
		dropin_poller_free(poller);
		return NULL;
	}
	cq->poller = poller;
	fill(&cq->ex);
	return &cq->ex;
}
