/* SPDX-License-Identifier: MIT */
/* What is created and destroyed: straight to the device. */
#include <errno.h>

#include "dropin.h"

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	return dropin_soft()->alloc_pd(context);
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return dropin_soft()->dealloc_pd(pd);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			  int access)
{
	return dropin_soft()->reg_mr(pd, addr, length, dropin_access(access));
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	if (iova != (uintptr_t)addr) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return ibv_reg_mr(pd, addr, length, (int)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
			       uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				 size_t length, uint64_t iova, int fd,
				 int access)
{
	return dropin_soft()->reg_dmabuf_mr(pd, offset, length, iova, fd,
					    dropin_access(access));
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		 size_t length, int access)
{
	return soft_rereg_mr(mr, flags, pd, addr, length,
			     dropin_access(access));
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	return dropin_soft()->dereg_mr(mr);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	return dropin_soft()->create_comp_channel(context);
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return dropin_soft()->destroy_comp_channel(channel);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
			     void *cq_context,
			     struct ibv_comp_channel *channel,
			     int comp_vector)
{
	return dropin_soft()->create_cq(context, cqe, cq_context, channel,
					comp_vector);
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	return soft_resize_cq(cq, cqe);
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct dropin_poller *poller = ((struct dropin_cq *)(void *)cq)->poller;
	int err = dropin_soft()->destroy_cq(cq);

	if (!err)
		dropin_poller_free(poller);
	return err;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		     void **cq_context)
{
	return dropin_soft()->get_cq_event(channel, cq, cq_context);
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	dropin_soft()->ack_cq_events(cq, n);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return dropin_soft()->create_qp(pd, attr);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return dropin_soft()->modify_qp(qp, attr, mask);
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init_attr)
{
	return dropin_soft()->query_qp(qp, attr, mask, init_attr);
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct dropin_poster *poster = ((struct dropin_qp *)(void *)qp)->poster;
	int err = dropin_soft()->destroy_qp(qp);

	if (!err)
		dropin_poster_free(poster);
	return err;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
			       struct ibv_srq_init_attr *attr)
{
	return soft_create_srq(pd, attr);
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	return soft_modify_srq(srq, attr, mask);
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	return soft_query_srq(srq, attr);
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	return soft_destroy_srq(srq);
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	return dropin_soft()->create_ah(pd, attr);
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	return dropin_soft()->destroy_ah(ah);
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return EOPNOTSUPP;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return EOPNOTSUPP;
}

int ibv_get_async_event(struct ibv_context *context,
			struct ibv_async_event *event)
{
	return dropin_soft()->get_async_event(context, event);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	dropin_soft()->ack_async_event(event);
}
