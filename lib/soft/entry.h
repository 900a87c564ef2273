/* SPDX-License-Identifier: MIT */
/* The device's verbs, as its table has them. */
#ifndef SOFT_ENTRY_H
#define SOFT_ENTRY_H

#include "verbs/verbs.h"

struct ibv_context *soft_open_device(struct ibv_device *device);
int soft_close_device(struct ibv_context *context);
int soft_query_device(struct ibv_context *context,
		      struct ibv_device_attr *attr);
int soft_query_port(struct ibv_context *context, uint8_t port,
		    struct ibv_port_attr *attr);
int soft_query_gid(struct ibv_context *context, uint8_t port, int index,
		   union ibv_gid *gid);
int soft_query_gid_ex(struct ibv_context *context, uint32_t port,
		      uint32_t index, struct ibv_gid_entry *entry,
		      uint32_t flags, size_t entry_size);
int soft_query_pkey(struct ibv_context *context, uint8_t port, int index,
		    __be16 *pkey);
struct ibv_pd *soft_alloc_pd(struct ibv_context *context);
int soft_dealloc_pd(struct ibv_pd *pd);
struct ibv_ah *soft_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int soft_destroy_ah(struct ibv_ah *ah);
struct ibv_mr *soft_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   int access);
struct ibv_mr *soft_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				  size_t length, uint64_t iova, int fd,
				  int access);
int soft_dereg_mr(struct ibv_mr *mr);
struct ibv_cq *soft_create_cq(struct ibv_context *context, int cqe,
			      void *cq_context,
			      struct ibv_comp_channel *channel,
			      int comp_vector);
int soft_destroy_cq(struct ibv_cq *cq);
int soft_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int soft_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_comp_channel *soft_create_comp_channel(struct ibv_context *context);
int soft_destroy_comp_channel(struct ibv_comp_channel *channel);
int soft_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		      void **cq_context);
void soft_ack_cq_events(struct ibv_cq *cq, unsigned int n);
int soft_get_async_event(struct ibv_context *context,
			 struct ibv_async_event *event);
void soft_ack_async_event(struct ibv_async_event *event);
struct ibv_qp *soft_create_qp(struct ibv_pd *pd,
			      struct ibv_qp_init_attr *attr);
int soft_destroy_qp(struct ibv_qp *qp);
int soft_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);
int soft_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int soft_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad);
int soft_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad);
int soft_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad);
void *soft_map(struct ibv_qp *qp, uint32_t rkey, uint64_t addr, size_t bytes);
void soft_pace_query(struct ibv_context *context, struct verbs_pace *out);
void soft_unmap(struct ibv_qp *qp, const void *mapped);

#endif
