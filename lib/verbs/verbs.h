/* SPDX-License-Identifier: MIT */
/*
 * verbs: the table of the verbs that we use, and libibverbs behind it.
 *
 * A provider fills the table: libibverbs (ibv.c; found by dlopen, so that one
 * binary runs with and without rdma-core) or the soft device.  The entries
 * have libibverbs' own signatures and its own three error habits; the
 * functions below convert them and report, and nobody else calls the table's
 * control path.  The data path (ibv_post_send, ibv_post_recv, ibv_poll_cq,
 * ibv_req_notify_cq) goes through context->ops with every provider.
 *
 * This room must never know what a rank or a connection is.  Any thread may
 * call, as with libibverbs.
 */
#ifndef VERBS_H
#define VERBS_H

#include <infiniband/verbs.h>

#include "base/base.h"
#include "verbs/counters.h"

/* verbs.h makes macros of these; the table needs the names. */
#undef ibv_query_port
#undef ibv_reg_mr

enum verbs_promise {
	/*
	 * An aligned 64-byte line of a WRITE becomes visible with its last 8
	 * bytes last, and messages of one queue pair become visible in order,
	 * so that arrival may be seen by polling memory.
	 */
	VERBS_LINE_ORDER = 1,
};

struct verbs_table {
	const char *name; /* "libibverbs" or "soft" */
	struct ibv_device **(*get_device_list)(int *n);
	void (*free_device_list)(struct ibv_device **list);
	const char *(*get_device_name)(struct ibv_device *device);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*query_device)(struct ibv_context *context,
			    struct ibv_device_attr *attr);
	int (*query_port)(struct ibv_context *context, uint8_t port,
			  struct ibv_port_attr *attr);
	int (*query_gid)(struct ibv_context *context, uint8_t port, int index,
			 union ibv_gid *gid);
	int (*query_gid_ex)(struct ibv_context *context, uint32_t port,
			    uint32_t index, struct ibv_gid_entry *entry,
			    uint32_t flags, size_t entry_size);
	int (*query_pkey)(struct ibv_context *context, uint8_t port, int index,
			  __be16 *pkey);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length,
				 int access);
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset,
					size_t length, uint64_t iova, int fd,
					int access);
	int (*dereg_mr)(struct ibv_mr *mr);
	struct ibv_comp_channel *(*create_comp_channel)(
		struct ibv_context *context);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe,
				    void *cq_context,
				    struct ibv_comp_channel *channel,
				    int comp_vector);
	int (*destroy_cq)(struct ibv_cq *cq);
	int (*get_cq_event)(struct ibv_comp_channel *channel,
			    struct ibv_cq **cq, void **cq_context);
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned int n);
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd,
				    struct ibv_qp_init_attr *attr);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init_attr);
	int (*destroy_qp)(struct ibv_qp *qp);
	struct ibv_ah *(*create_ah)(struct ibv_pd *pd,
				    struct ibv_ah_attr *attr);
	int (*destroy_ah)(struct ibv_ah *ah);
	int (*get_async_event)(struct ibv_context *context,
			       struct ibv_async_event *event);
	void (*ack_async_event)(struct ibv_async_event *event);

	/* Beyond libibverbs; 0 and NULL there. */
	unsigned int promises; /* enum verbs_promise; may change at open */
	/*
	 * An address at which this process can load and store the @bytes at
	 * @addr of the region that @rkey names at @qp's peer, or NULL.  Valid
	 * until unmap(), which must come before @qp is destroyed, whatever the
	 * peer does meanwhile: frees, deregisters, or dies.
	 */
	void *(*map)(struct ibv_qp *qp, uint32_t rkey, uint64_t addr,
		     size_t bytes);
	void (*unmap)(struct ibv_qp *qp, const void *mapped);
};

/*
 * libibverbs' table.  WREATH_EUNSUP, with the loader's reason, where the
 * library is not installed or has no RC verbs.  Loaded once per process.
 */
int verbs_ibv(const struct verbs_table **out);

/* An opened device: what every other function here starts from. */
struct verbs_device {
	const struct verbs_table *verbs;
	struct ibv_context *context;
	char name[64];
	struct ibv_device_attr attr;
};

/* The names of the devices of a table, for messages and `wreath info`. */
struct verbs_name {
	char name[64];
};

/* Up to @max names into @names; the number there are into @n. */
int verbs_list(const struct verbs_table *verbs, struct verbs_name *names,
	       int max, int *n);

/* A refusal names the file that this user may not open. */
int verbs_device_open(const struct verbs_table *verbs, const char *name,
		      struct verbs_device **out);
void verbs_device_close(struct verbs_device *device);

int verbs_port(struct verbs_device *device, int port,
	       struct ibv_port_attr *attr);
/* Megabits a second of an active port; 0: unknown. */
uint32_t verbs_port_mbps(const struct ibv_port_attr *attr);
int verbs_gid(struct verbs_device *device, int port, int index,
	      struct ibv_gid_entry *entry);
/* Is there an entry?  Tables are long and mostly empty: nothing is reported. */
bool verbs_gid_try(struct verbs_device *device, int port, int index,
		   struct ibv_gid_entry *entry);
int verbs_pkey(struct verbs_device *device, int port, int index,
	       uint16_t *pkey);
int verbs_pd_new(struct verbs_device *device, struct ibv_pd **out);
void verbs_pd_free(struct verbs_device *device, struct ibv_pd *pd);

/*
 * Register memory; @fd is the memfd behind it or -1.  A device that can map
 * the descriptor is given it.  The text of a failure names RLIMIT_MEMLOCK
 * where that may be the cause, here and of queues.
 */
int verbs_mr_new(struct verbs_device *device, struct ibv_pd *pd, void *addr,
		 size_t bytes, int fd, uint64_t fd_offset, int access,
		 struct ibv_mr **out);
void verbs_mr_free(struct verbs_device *device, struct ibv_mr *mr);
int verbs_channel_new(struct verbs_device *device,
		      struct ibv_comp_channel **out);
void verbs_channel_free(struct verbs_device *device,
			struct ibv_comp_channel *channel);
int verbs_cq_new(struct verbs_device *device, int n_cqe,
		 struct ibv_comp_channel *channel, struct ibv_cq **out);
void verbs_cq_free(struct verbs_device *device, struct ibv_cq *cq);
int verbs_qp_new(struct verbs_device *device, struct ibv_pd *pd,
		 struct ibv_qp_init_attr *attr, struct ibv_qp **out);
void verbs_qp_free(struct verbs_device *device, struct ibv_qp *qp);
/* WREATH_ENET where the peer's address cannot be reached. */
int verbs_qp_modify(struct verbs_device *device, struct ibv_qp *qp,
		    struct ibv_qp_attr *attr, int mask);
/*
 * Create and destroy an address handle: does the port accept @attr?  On
 * Ethernet the kernel looks for a route and a neighbour, up to some seconds.
 */
int verbs_ah_try(struct verbs_device *device, struct ibv_pd *pd,
		 struct ibv_ah_attr *attr);

/* "IBV_WC_RETRY_EXC_ERR", ...; never NULL. */
const char *verbs_wc_name(enum ibv_wc_status status);
/* "IBV_EVENT_PORT_ERR", ...; never NULL. */
const char *verbs_event_name(enum ibv_event_type type);

#endif
