/* SPDX-License-Identifier: MIT */
/*
 * verbs: the table of the verbs that we use, and libibverbs behind it; and
 * librdmacm.
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

/* What a port that is told its speed keeps to; zeros: as fast as it can. */
struct verbs_pace {
	uint64_t bits; /* of payload a second, each way; 0: no limit */
	uint64_t latency_ns;
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
	/*
	 * The pace of @context's ports.  Where it is not zeros nothing can be
	 * mapped, and requests are carried out late: by whoever polls a CQ of
	 * the context, or by a thread of the device.
	 */
	void (*pace)(struct ibv_context *context, struct verbs_pace *out);
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
	struct verbs_pace pace;
};

static inline bool verbs_is_paced(const struct verbs_device *device)
{
	return device->pace.bits || device->pace.latency_ns;
}

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
/* The same, by the device's pace where it has one: at least 1 then. */
uint32_t verbs_mbps(const struct verbs_device *device,
		    const struct ibv_port_attr *attr);
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
/*
 * Register [@offset, @offset + @bytes) of a DMA-BUF, for requests at addresses
 * from @iova on; the descriptor may be closed afterwards.  WREATH_EUNSUP where
 * the device, its driver or the kernel has no such thing.
 */
int verbs_mr_dmabuf(struct verbs_device *device, struct ibv_pd *pd, int fd,
		    uint64_t offset, size_t bytes, uint64_t iova, int access,
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

/*
 * ---- connections by librdmacm: cm.c, cm_id.c ----
 *
 * librdmacm is found by dlopen, as libibverbs is.  It resolves addresses and
 * routes, and carries the first words of two ends to each other; queue pairs
 * stay ours, on contexts of our own, and are told apart by their number.
 *
 * Identifiers belong to a channel, and what becomes of them is read from it,
 * one event after the other.  One thread at a time uses a channel and its
 * identifiers.  No call here waits for a peer.
 */
struct rdma_event_channel;
struct rdma_cm_id;

/* An address of a port, or of a peer's. */
struct verbs_cm_address {
	union ibv_gid gid; /* an IP address in a GID's form, or IB's own */
	uint32_t scope;	   /* a link-local one's interface, on this host */
	uint16_t number;   /* of the listener behind it; 0: any */
	uint16_t pkey;	   /* IB's: the partition */
	bool is_ib;	   /* AF_IB: GIDs and service ids, no IP address */
};

/* What one end tells the other with its request or reply. */
struct verbs_cm_param {
	uint32_t qpn;
	uint8_t retries, rnr_retries;
	uint8_t n_reads; /* RDMA READs under way, each way */
	const void *data;
	uint8_t bytes;
};

/* Private data of a request over any transport: 92 bytes of InfiniBand's,
 * less the 36 in which the IP addresses travel (kernel's cma.c). */
#define VERBS_CM_REQUEST_MAX 56

enum verbs_cm_what {
	VERBS_CM_NOTHING, /* nothing that needs an answer */
	VERBS_CM_ADDRESS, /* resolved; the id has a device */
	VERBS_CM_ROUTE,	  /* resolved */
	VERBS_CM_REQUEST, /* at a listener; the id is a new one, the reader's */
	VERBS_CM_REPLY,	  /* to be followed by verbs_cm_establish() */
	VERBS_CM_ESTABLISHED,
	VERBS_CM_REJECTED,
	VERBS_CM_FAILED,
	VERBS_CM_DISCONNECTED,
	VERBS_CM_GONE, /* the device is */
};

struct verbs_cm_event {
	enum verbs_cm_what what;
	struct rdma_cm_id *id;
	void *context; /* of the id */
	uint32_t qpn;
	uint32_t bytes; /* of @data: may be more than the peer gave, zeros */
	unsigned char data[256];
	char text[96]; /* librdmacm's name and its status */
};

/*
 * Open a channel; its descriptor, for poll().  WREATH_EUNSUP: librdmacm is not
 * installed, or the kernel has no rdma_ucm.
 */
int verbs_cm_open(struct rdma_event_channel **out);
int verbs_cm_fd(const struct rdma_event_channel *channel);
/* After all of its identifiers; NULL is allowed. */
void verbs_cm_close(struct rdma_event_channel *channel);

/* The next event; WREATH_EAGAIN, without a text, while there is none. */
int verbs_cm_event(struct rdma_event_channel *channel,
		   struct verbs_cm_event *event);

/*
 * Listen at an address of @device's @port; address->number is filled in.
 * Events of a listener, requests too, have no context.
 */
int verbs_cm_listen(struct rdma_event_channel *channel,
		    const struct verbs_device *device, int port,
		    struct verbs_cm_address *address, struct rdma_cm_id **out);

/* The way from here to there: VERBS_CM_ADDRESS or VERBS_CM_FAILED follows. */
struct verbs_cm_way {
	struct verbs_cm_address from, to;
	int traffic_class; /* -1: the kernel's own */
	uint8_t ack_timeout; /* 4.096 us * 2^so much */
	int timeout_ms;
};
int verbs_cm_resolve(struct rdma_event_channel *channel,
		     const struct verbs_cm_way *way, void *context,
		     struct rdma_cm_id **out);
/* VERBS_CM_ROUTE or VERBS_CM_FAILED follows. */
int verbs_cm_route(struct rdma_cm_id *id, int timeout_ms);
/* Is the resolved or requested @id on @device's @port? */
bool verbs_cm_is_on(const struct rdma_cm_id *id,
		    const struct verbs_device *device, int port);

int verbs_cm_connect(struct rdma_cm_id *id, const struct verbs_cm_param *param);
int verbs_cm_establish(struct rdma_cm_id *id);
/* @context comes with the events of @id from now on. */
int verbs_cm_accept(struct rdma_cm_id *id, const struct verbs_cm_param *param,
		    void *context);
/* Refuse a request, with up to 8 bytes of reason, and free @id. */
void verbs_cm_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes);

/*
 * What the queue pair of @id needs to get into @state: what only the transport
 * knows.  A state that it does not need has no IBV_QP_STATE in *mask.
 */
int verbs_cm_qp_attr(struct rdma_cm_id *id, enum ibv_qp_state state,
		     struct ibv_qp_attr *attr, int *mask);

/*
 * Disconnect, if it is connected, and free; NULL is allowed.  Waits for the
 * kernel, not for the peer.
 */
void verbs_cm_free(struct rdma_cm_id *id);

/* "IBV_WC_RETRY_EXC_ERR", ...; never NULL. */
const char *verbs_wc_name(enum ibv_wc_status status);
/* "IBV_EVENT_PORT_ERR", ...; never NULL. */
const char *verbs_event_name(enum ibv_event_type type);

#endif
