/* SPDX-License-Identifier: MIT */
/* librdmacm's functions, for the files that call them. */
#ifndef CM_TABLE_H
#define CM_TABLE_H

#include <rdma/rdma_cma.h>

#include "verbs/verbs.h"

struct cm_table {
	struct rdma_event_channel *(*create_event_channel)(void);
	void (*destroy_event_channel)(struct rdma_event_channel *channel);
	int (*create_id)(struct rdma_event_channel *channel,
			 struct rdma_cm_id **id, void *context,
			 enum rdma_port_space space);
	int (*destroy_id)(struct rdma_cm_id *id);
	int (*bind_addr)(struct rdma_cm_id *id, struct sockaddr *addr);
	int (*listen)(struct rdma_cm_id *id, int backlog);
	int (*resolve_addr)(struct rdma_cm_id *id, struct sockaddr *from,
			    struct sockaddr *to, int timeout_ms);
	int (*resolve_route)(struct rdma_cm_id *id, int timeout_ms);
	int (*connect)(struct rdma_cm_id *id, struct rdma_conn_param *param);
	int (*establish)(struct rdma_cm_id *id);
	int (*accept)(struct rdma_cm_id *id, struct rdma_conn_param *param);
	int (*reject)(struct rdma_cm_id *id, const void *data, uint8_t bytes);
	int (*disconnect)(struct rdma_cm_id *id);
	int (*init_qp_attr)(struct rdma_cm_id *id, struct ibv_qp_attr *attr,
			    int *mask);
	int (*set_option)(struct rdma_cm_id *id, int level, int name,
			  void *value, size_t bytes);
	int (*get_cm_event)(struct rdma_event_channel *channel,
			    struct rdma_cm_event **event);
	int (*ack_cm_event)(struct rdma_cm_event *event);
	const char *(*event_str)(enum rdma_cm_event_type type);
	__be16 (*get_src_port)(struct rdma_cm_id *id);
};

/* Filled by the first verbs_cm_open(), before which there is no identifier. */
extern struct cm_table verbs_cm_table;

/* Report errno: librdmacm cannot @what. */
int verbs_cm_fail(const char *what);

#endif
