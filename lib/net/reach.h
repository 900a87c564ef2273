/* SPDX-License-Identifier: MIT */
/* net's own: memory of users and of GPUs, as ports and peers reach it. */
#ifndef NET_REACH_H
#define NET_REACH_H

#include "net/inner.h"

/* Registrations of GPUs' memory that a port keeps.  Who allocates anew for each
 * operation leaves them behind, and each keeps its memory from being freed. */
#define NET_GPU_MRS 64

/* How a port reaches a GPU's memory. */
enum net_direct {
	NET_DIRECT_UNKNOWN, /* nothing was to be registered yet */
	NET_DIRECT_DMABUF,
	NET_DIRECT_PEERMEM,
	NET_DIRECT_NONE,
};

struct net_gpu_way {
	struct net_port *port;
	int gpu;
	enum net_direct how;
	int n_failed; /* allocations, before one could be registered */
	bool needs_flush;
	struct net_flusher *flusher; /* NULL: nothing was to be flushed yet */
	struct net_gpu_way *next;
};

/* ---- direct.c: registration ---- */

/* Why both ways fail, in one sentence. */
#define NET_DIRECT_WHY 900

struct net_direct_try {
	struct verbs_device *device;
	struct ibv_pd *pd;
	const struct base_env *env;
	char *base;
	size_t bytes;
	enum net_direct how; /* filled in where it is unknown; NONE: off */
	char why[NET_DIRECT_WHY];
};
/*
 * Register memory of a GPU by the one way that is known, or the first that
 * works of those that the setting allows.  Else WREATH_EUNSUP, and @why.
 */
int net_direct_register(struct net_direct_try *with, struct ibv_mr **out);
/* "DMA-BUF", ... */
const char *net_direct_name(enum net_direct how);

/* ---- gpu.c: registrations that are kept ---- */

/*
 * As net_mr_key(), of memory of a GPU; the caller holds net->mr_lock.
 * WREATH_EUNSUP, without a text, where it cannot be registered.
 */
int net_gpu_key(struct net *net, struct net_port *port,
		const struct mem_region *region, uint32_t *rkey);
void net_gpu_release(struct net *net);

/* ---- mr.c ---- */

#define NET_MR_ACCESS                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                    \
	 IBV_ACCESS_REMOTE_READ)

/* A user's region, registered with a port. */
struct net_mr {
	uint64_t region;
	struct net_port *port;
	struct ibv_mr *mr; /* NULL: of a GPU, and cannot be registered */
	struct net_mr *next;
	int gpu; /* -1: memory of the host, and the rest is not used */
	bool is_granted; /* in the operation under way */
	uint64_t used; /* when last, by net->n_granted */
	char *base;
	size_t bytes;
};

int net_mrs_init(struct net *net);
void net_mrs_release(struct net *net);
/* The remote key for @region on @port; registers at first use.  Memory of a
 * GPU that cannot be is WREATH_EUNSUP, without a text. */
int net_mr_key(struct net *net, struct net_port *port,
	       const struct mem_region *region, uint32_t *rkey);

/* Take it out of the list and free it. */
void net_mr_drop(struct net_mr **at);

/* ---- flush.c ---- */

/* NULL is allowed. */
void net_flusher_free(struct net_flusher *f);

/* ---- pin.c ---- */

/* Before any of it is unmapped. */
void net_conn_unpin(struct net_conn *conn);

/* ---- ipc.c: between ranks of a host ---- */

/* What this rank offers. */
void net_ipc_offer(const struct base_env *env, struct net_ipc_offer *out);
/* Do all ranks of this host reach each other's GPUs?  Sets net->has_ipc. */
int net_ipc_agree(struct net *net);
/* Export [@ptr, + @bytes), which lies @where, to @conn's peer: false where that
 * cannot be. */
bool net_ipc_grant(struct net_conn *conn, const struct mem_where *where,
		   const void *ptr, size_t bytes, uint32_t *key);
/* Where the peer's memory is, for net->gpu; NULL, and net->failed is set. */
void *net_ipc_map(struct net_conn *conn, uint32_t key, uint64_t address,
		  uint64_t bytes);

#endif
