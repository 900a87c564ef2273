/* SPDX-License-Identifier: MIT */
/*
 * The objects of the soft device in this process.  Each begins with
 * libibverbs' own, padded to what its private structs have, so that code that
 * looks behind the public part finds zeroes.
 *
 * Locks, outermost first: the registry's (peer.c), a context's @lock, a CQ's
 * @lock, a queue pair's send lock, its @rq_lock, and a struct soft_held's.
 * Nothing blocks with one held, but for the bounded wait until a peer's copy
 * into memory is done, and who copies waits for nobody.
 */
#ifndef SOFT_DEVICE_H
#define SOFT_DEVICE_H

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "soft/shared.h"
#include "soft/soft.h"

enum soft_kind {
	SOFT_ETHERNET,
	SOFT_INFINIBAND,
	SOFT_N_KINDS,
};

/* The private struct of providers, which some read behind ibv_device. */
#define SOFT_SPARE 64

struct soft_device {
	union {
		struct ibv_device ibv;
		unsigned char spare[sizeof(struct ibv_device) + SOFT_SPARE];
	};
	enum soft_kind kind;
	int index;
};

/* An address that a peer is found by, and the name of its socket. */
struct soft_address {
	enum soft_kind kind; /* Ethernet: by GID; InfiniBand: by LID */
	uint16_t lid;
	union ibv_gid gid;
};

/* A memfd that regions are registered in. */
struct soft_region {
	uint64_t id;
	uint64_t bytes;
	uint64_t dev, ino;
	int fd;
	unsigned int n_refs;
};

/* What a key stands for, as the owner keeps it for itself. */
struct soft_key {
	_Atomic uint64_t word; /* as in struct soft_shared_mr */
	_Atomic uint64_t addr;
	_Atomic uint64_t length;
	_Atomic uintptr_t base; /* where @addr is in this process */
	_Atomic uint32_t pd;
	_Atomic uint32_t access;
};

struct soft_pd {
	struct ibv_pd ibv;
	uint32_t id;
	_Atomic unsigned int n_refs;
};

struct soft_mr {
	union {
		struct ibv_mr ibv;
		unsigned char spare[sizeof(struct ibv_mr) + SOFT_SPARE];
	};
	uint32_t slot;
	struct soft_region *region;
	void *mapped; /* ours, to be unmapped; NULL: the caller's mapping */
	size_t mapped_bytes;
};

/* A piece of the segment's ring space; sizes are powers of two. */
struct soft_block {
	struct soft_block *next;
	uint32_t offset, bytes;
};

struct soft_channel {
	struct ibv_comp_channel ibv;
	int write_fd;
};

/*
 * Where a CQ finds completions: one queue of a queue pair.  Memory of a
 * source is never freed before its context, so that an empty poll may look
 * without a lock.
 */
struct soft_source {
	_Atomic(struct soft_cqe *) next; /* the entry at @head */
	_Atomic uint32_t head;		 /* under the CQ's lock */
	uint32_t mask;
	struct soft_cqe *cqes;
	struct soft_tag *tags;
	struct soft_qp *qp;
	_Atomic uint32_t freed; /* slots of the queue given back, absolute */
	bool is_recv;
	uint32_t hint; /* its number in the CQ */
};

/* What only the owner needs of a completion. */
struct soft_tag {
	uint64_t wr_id;
	uint32_t freed; /* value for the source's @freed */
};

#define SOFT_FEW 8u
#define SOFT_MAX_CQE (1 << 20)

struct soft_many {
	_Atomic(struct soft_source *) at[SOFT_HINTS]; /* from SOFT_FEW on */
};

struct soft_cq {
	union {
		struct ibv_cq ibv;
		unsigned char spare[sizeof(struct ibv_cq_ex) + SOFT_SPARE];
	};
	uint32_t slot, generation;
	struct soft_shared_cq *shared;
	_Atomic uint32_t lock;
	_Atomic uint32_t n_sources; /* highest hint in use + 1 */
	_Atomic uint32_t n_empty;   /* empty polls, roughly */
	_Atomic uint32_t n_armings;
	_Atomic bool is_broken; /* overrun */
	uint32_t n_events, n_async; /* read; destruction waits for the acks */
	uint32_t n_attached;
	uint32_t turn;
	_Atomic(struct soft_source *) few[SOFT_FEW];
	struct soft_many *many; /* NULL while they are few */
};

/* What a queue pair remembers of a remote or local key. */
struct soft_view {
	uint32_t key, access;
	uint64_t word;
	const _Atomic uint64_t *at;
	uint64_t addr, length;
	char *base; /* NULL: not by load and store */
	uint32_t pd;
};

#define SOFT_VIEWS 8u

/* A send that has been posted and not executed. */
struct soft_wqe {
	uint64_t wr_id, remote_addr;
	uint32_t rkey, imm, length;
	uint32_t n_sge;
	uint16_t flags;
	uint8_t opcode;
};

/* What is to be done for a queue pair once its lock is let go. */
enum soft_after {
	SOFT_AFTER_FIRE = 1,	   /* the send CQ may be armed */
	SOFT_AFTER_FIRE_ERROR = 2, /* the same, and it counts as solicited */
	SOFT_AFTER_FAIL = 4,	   /* we are in error: finish the flush */
	SOFT_AFTER_NOTE = 8,	   /* @note holds something for the peer */
	SOFT_AFTER_WAKE = 16,	   /* something waits: tell the thread */
};

/* What a peer is told about its queue pair. */
enum soft_note {
	SOFT_NOTE_WAKE = 1, /* its CQ is armed and has a completion */
	SOFT_NOTE_SOLICITED = 2,
	SOFT_NOTE_COMM_EST = 4,
	SOFT_NOTE_ERROR = 8,	/* go to the error state ... */
	SOFT_NOTE_ACCESS = 16,	/* ... with QP_ACCESS_ERR */
	SOFT_NOTE_REQUEST = 32, /* ... with QP_REQ_ERR */
};

struct soft_qp {
	union {
		struct ibv_qp ibv;
		unsigned char spare[sizeof(struct ibv_qp_ex) + SOFT_SPARE];
	};

	/* Fixed for the slot, as long as the context lives. */
	_Alignas(BASE_LINE) _Atomic uint32_t *lock; /* the send lock */
	struct soft_shared_qp *shared;
	struct soft_context *context;
	uint32_t slot;
	uint32_t generation;
	bool is_taken; /* the context's lock */
	_Atomic uint32_t rq_lock;
	_Atomic bool is_pending; /* has sends or notes that wait */

	/* Zeroed from here on for each new queue pair.  The send path comes
	 * first, all under the send lock. */
	bool is_live;
	bool is_fast; /* linked, nothing waits, no faults */
	bool signal_all;
	uint8_t after; /* enum soft_after */
	uint8_t note;  /* enum soft_note */
	uint32_t sq_tail, sq_slots;
	uint32_t max_inline;
	uint64_t accept; /* the peer's word when all was checked */
	const _Atomic uint64_t *accept_at;
	struct soft_view remote[SOFT_VIEWS];
	struct soft_view local[SOFT_VIEWS];

	/* The peer's receive queue. */
	struct soft_shared_qp *peer_qp;
	struct soft_cqe *peer_cqes;
	struct soft_shared_sge *peer_wqes;
	struct soft_shared_cq *peer_cq; /* NULL: it has no channel */
	_Atomic uint8_t *peer_hint;
	uint32_t peer_slots, peer_sges, peer_next, peer_tail;
	uint32_t peer_pd, peer_armed, peer_rnr;
	bool peer_reads; /* it takes READs */

	/* Sends that wait. */
	uint32_t sq_exec; /* == sq_tail when there are none */
	struct soft_wqe *wqes;
	struct ibv_sge *wqe_sges;
	unsigned char *wqe_inline;
	bool is_asked; /* the peer was asked for a region, this one */
	uint64_t asked_region;
	bool in_rnr;
	uint64_t blocked_ns, rnr_ns;

	/* Completions. */
	uint32_t sq_pushed;
	struct soft_cq *send_cq, *recv_cq;
	struct soft_block *sq_block, *rq_block, *wqe_block;

	/* The receive queue, under @rq_lock. */
	uint32_t rq_tail, rq_slots;
	bool rq_is_open;    /* not in RESET */
	bool rq_is_flushed; /* in error: a receive completes when posted */
	struct soft_shared_sge *rq_wqes;

	/* Everything else, under the context's lock. */
	struct soft_pd *pd;
	struct soft_peer *peer;
	struct ibv_qp_attr attr;
	struct ibv_qp_cap cap;
	bool is_established; /* COMM_EST was told */
	uint32_t epoch;
	uint32_t link_epoch; /* of the peer, when we last linked */
	bool epoch_known;
	bool link_used;	     /* something was executed since */
	uint32_t n_events;

	/* Not zeroed: a poll may be looking. */
	struct soft_source sq, rq;
};

/* A region of a peer in another process, as mapped here. */
struct soft_mapping {
	struct soft_mapping *next;
	uint64_t id;
	uint64_t asked_ns;
	size_t bytes;
	char *base; /* NULL: asked for */
};

/* Another context, of this process or not. */
struct soft_peer {
	struct soft_peer *next;
	struct soft_address address;
	uint64_t id;
	struct soft_segment *seg;
	struct soft_held *held; /* of a peer in this process, else NULL */
	int fd;			   /* to a far one's control thread, or -1 */
	int pid;
	_Atomic bool is_dead;
	unsigned int n_refs; /* queue pairs */
	pthread_mutex_t map_lock;
	pthread_cond_t map_cond; /* a mapping has come */
	struct soft_mapping *mappings;
};

/*
 * What contexts of one process need of each other, kept until the last of
 * them is done with it.
 */
struct soft_held {
	struct soft_segment *seg;
	struct soft_key *keys; /* SOFT_N_MR of them */
	_Atomic unsigned int n_refs;
	pthread_mutex_t lock;
	/* Under @lock; NULL once it is closed. */
	struct soft_context *context;
};

/* A connection that another context made to us. */
struct soft_guest {
	struct soft_guest *next;
	int fd;
	uint64_t id; /* 0: it has not said hello */
};

struct soft_context {
	struct verbs_context verbs; /* ends with the ibv_context */
	struct soft_device *device;
	struct soft_context *next; /* in the registry */
	uint32_t fork_gen;

	uint64_t id;
	struct soft_segment *seg;
	struct soft_held *held;
	int seg_fd;
	struct soft_key *keys; /* the held ones */

	pthread_mutex_t lock;
	uint64_t random;
	uint32_t n_pd, n_mr, n_cq, n_qp, next_pd;
	struct soft_region *regions[SOFT_N_REGIONS];
	uint32_t n_regions; /* highest slot used + 1 */
	uint32_t region_gen, cq_gen;
	bool mr_taken[SOFT_N_MR];
	uint32_t key_gen;
	struct soft_cq *cqs[SOFT_N_CQ];
	/* Kept until the context goes. */
	_Atomic(struct soft_qp *) qps[SOFT_N_QP];
	_Atomic uint32_t qps_high; /* highest slot used + 1 */
	uint32_t ring_used;
	struct soft_block *blocks[32]; /* free, by log2 of their size */
	struct soft_peer *peers;

	/* The port. */
	struct soft_address address;
	uint64_t guid;
	_Atomic int gid_index; /* where the table has the GID */
	_Atomic bool is_down;
	_Atomic bool is_gone;

	/* The control thread. */
	pthread_t thread;
	_Atomic bool must_stop;
	int wake_fd, listen_fd, async_write_fd;
	_Atomic int n_pending; /* queue pairs with @is_pending */
	/* Notes of peers in this process: epoch << 32 | enum soft_note. */
	_Atomic uint64_t inbox[SOFT_N_QP];
	_Atomic bool has_mail;
	struct soft_guest *guests;
	unsigned int n_guests;
};

/* Bumped in a child process: what it inherited is the parent's. */
extern uint32_t soft_fork_gen;

static inline struct soft_context *soft_context_of(struct ibv_context *context)
{
	return (struct soft_context *)(void *)((char *)context -
					       offsetof(struct soft_context,
							verbs.context));
}

static inline bool soft_is_foreign(const struct soft_context *c)
{
	return c->fork_gen != soft_fork_gen;
}

/* Full barrier: orders our store before our next load of a peer's word. */
static inline void soft_fence(void)
{
	__sync_synchronize();
}

/* ---- locks that may live in a segment: segment.c ---- */

void soft_lock_wait(_Atomic uint32_t *lock);

/* Odd while held; each holding changes it, which is what drains wait for. */
static inline void soft_lock(_Atomic uint32_t *lock)
{
	uint32_t v = atomic_load_explicit(lock, memory_order_relaxed);

	while (base_unlikely(v & 1) ||
	       base_unlikely(!atomic_compare_exchange_strong_explicit(
		       lock, &v, v + 1, memory_order_seq_cst,
		       memory_order_relaxed))) {
		soft_lock_wait(lock);
		v = atomic_load_explicit(lock, memory_order_relaxed);
	}
#if !defined(__x86_64__) && !defined(__i386__)
	/* The exchange alone does not keep later loads behind its store. */
	soft_fence();
#endif
}

static inline void soft_unlock(_Atomic uint32_t *lock)
{
	uint32_t v = atomic_load_explicit(lock, memory_order_relaxed);

	atomic_store_explicit(lock, v + 1, memory_order_release);
}

/*
 * Wait until whoever holds @lock at this moment has let go, at most
 * @timeout_ms; false when that passed.
 */
bool soft_lock_drain(const _Atomic uint32_t *lock, int timeout_ms);

/* ---- segment.c ---- */

int soft_segment_new(struct soft_context *c);
void soft_held_put(struct soft_held *held);
/* Map @fd as a peer's segment if it is one. */
struct soft_segment *soft_segment_map(int fd);
/* Zeroed space for a ring; NULL: none left.  Caller holds the context's lock. */
struct soft_block *soft_block_new(struct soft_context *c, size_t bytes);
void soft_block_free(struct soft_context *c, struct soft_block *block);
uint64_t soft_random(struct soft_context *c);

/* ---- context.c, pd and queries ---- */

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
/* May @attr be used to reach a peer from here? */
bool soft_is_address(struct soft_context *c, const struct ibv_ah_attr *attr);

/* ---- mr.c ---- */

struct ibv_mr *soft_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   int access);
struct ibv_mr *soft_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				  size_t length, uint64_t iova, int fd,
				  int access);
int soft_dereg_mr(struct ibv_mr *mr);
/* Fill @view for a key of a context in this process; false: none such. */
bool soft_view_keys(const struct soft_key *keys, uint32_t key,
		    struct soft_view *view);
/* Wait until no post that began before can be using our memory. */
void soft_drain(struct soft_context *c);

/* ---- cq.c, channel.c ---- */

struct ibv_cq *soft_create_cq(struct ibv_context *context, int cqe,
			      void *cq_context,
			      struct ibv_comp_channel *channel,
			      int comp_vector);
int soft_destroy_cq(struct ibv_cq *cq);
int soft_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int soft_req_notify_cq(struct ibv_cq *cq, int solicited_only);
bool soft_cq_attach(struct soft_cq *cq, struct soft_source *source);
void soft_cq_detach(struct soft_cq *cq, struct soft_source *source);
/* Is there a completion?  Any context's thread; looks at every queue. */
bool soft_cq_has(struct soft_cq *cq);
/* A completion of @source is there.  For any thread. */
void soft_cq_hint(struct soft_cq *cq, const struct soft_source *source);
/* Write the channel's event if armed for this. */
void soft_cq_fire(struct soft_cq *cq, bool is_solicited);

struct ibv_comp_channel *soft_create_comp_channel(struct ibv_context *context);
int soft_destroy_comp_channel(struct ibv_comp_channel *channel);
int soft_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		      void **cq_context);
void soft_ack_cq_events(struct ibv_cq *cq, unsigned int n);
int soft_get_async_event(struct ibv_context *context,
			 struct ibv_async_event *event);
void soft_ack_async_event(struct ibv_async_event *event);
/* Queue an event about the port, the device, or the QP or CQ given. */
void soft_async(struct soft_context *c, enum ibv_event_type type,
		struct soft_qp *qp, struct soft_cq *cq);

/* ---- qp.c, state.c ---- */

struct ibv_qp *soft_create_qp(struct ibv_pd *pd,
			      struct ibv_qp_init_attr *attr);
int soft_destroy_qp(struct ibv_qp *qp);
int soft_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);
int soft_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
/* Is the change allowed, and is each value?  0 or EINVAL.  attr.c */
int soft_attr_check(struct soft_qp *qp, const struct ibv_qp_attr *attr,
		    int mask);
/* Take over what @mask names. */
void soft_attr_take(struct soft_qp *qp, const struct ibv_qp_attr *attr,
		    int mask);
/*
 * Publish what a peer may do to @qp in its present state, or withdraw it.
 * Caller holds the context's lock.
 */
void soft_qp_publish(struct soft_qp *qp);
void soft_qp_withdraw(struct soft_qp *qp);
/* The receiving half of the error state.  Caller holds the context's lock. */
void soft_qp_flush_recv(struct soft_qp *qp);
/* To the error state.  Caller holds the context's lock. */
void soft_qp_error(struct soft_qp *qp);

/* ---- post.c, run.c, remote.c, after.c ---- */

int soft_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad);
int soft_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad);

/* Those below are called with the send lock held. */

/* The completion of a send, which frees slots up to @freed. */
void soft_push(struct soft_qp *qp, const struct soft_tag *tag, uint32_t info,
	       uint32_t length);
/* The completion of the peer's next receive. */
void soft_deliver(struct soft_qp *qp, uint32_t info, uint32_t length,
		  uint32_t imm);
/* Put a request behind what waits, and run. */
int soft_post_slow(struct soft_qp *qp, const struct ibv_send_wr *wr);
/* Execute what waits, as far as it goes. */
void soft_run(struct soft_qp *qp);
/* The sending half of the error state. */
void soft_fail(struct soft_qp *qp);
/* Check the peer's queue pair and remember what it accepts. */
bool soft_link(struct soft_qp *qp);
/* Is there a receive at the peer? */
bool soft_peer_has_recv(struct soft_qp *qp);
/* What we know of a remote key; NULL: no such key, or @is_asked is set. */
struct soft_view *soft_view_remote(struct soft_qp *qp, uint32_t key);
struct soft_view *soft_view_own(struct soft_qp *qp, uint32_t key);

/* Take @qp->after to do it later, when the lock is let go. */
static inline uint32_t soft_after_take(struct soft_qp *qp)
{
	uint32_t after = qp->after;

	qp->after = 0;
	return after;
}

/* Do it.  No locks held; or only the context's. */
void soft_after(struct soft_qp *qp, uint32_t after);
void soft_after_locked(struct soft_qp *qp, uint32_t after);
/* Try again everything that waits in @c.  No locks held. */
void soft_run_all(struct soft_context *c);

void *soft_map(struct ibv_qp *qp, uint32_t rkey, uint64_t addr, size_t bytes);

/* ---- copy.c ---- */

/* Copy so that each aligned line's last 8 bytes land last. */
void soft_copy_lines(void *to, const void *from, size_t bytes);

/* ---- peer.c, mapping.c ---- */

void soft_registry_add(struct soft_context *c);
void soft_registry_remove(struct soft_context *c);
/* Find and hold the peer at @address, or NULL; may block about 2 s. */
struct soft_peer *soft_peer_get(struct soft_context *c,
				const struct soft_address *address);
/* Caller holds the context's lock. */
void soft_peer_put(struct soft_context *c, struct soft_peer *peer);
/* A peer is silent from now on.  Caller holds the context's lock. */
void soft_peer_died(struct soft_context *c, struct soft_peer *peer);
void soft_peers_free(struct soft_context *c);
bool soft_address_is(const struct soft_address *a,
		     const struct soft_address *b);
/* The socket's name of an address, and its length. */
socklen_t soft_address_name(const struct soft_address *address,
			    struct sockaddr_un *name);

/* Where region @id of a far peer is mapped here; NULL: not yet. */
char *soft_mapping_find(struct soft_peer *peer, uint64_t id, size_t *bytes);
/* Ask for it, unless that was done; it comes by the control thread. */
void soft_mapping_ask(struct soft_peer *peer, uint64_t id);
/* Wait for what was asked for, at most @timeout_ms. */
bool soft_mapping_wait(struct soft_peer *peer, uint64_t id, int timeout_ms);
/* The answer: @fd is taken over; -1: there is no such region. */
void soft_mapping_add(struct soft_peer *peer, uint64_t id, int fd);
/* Unmap what the peer has given up.  Caller holds the context's lock. */
void soft_mappings_trim(struct soft_context *c, struct soft_peer *peer);
void soft_mappings_free(struct soft_peer *peer);

/* ---- message.c, control.c ---- */

enum soft_message_type {
	SOFT_HELLO,  /* @a: the sender's id; answered with the segment */
	SOFT_REGION, /* @a: a region's id; answered with its memfd, if any */
	SOFT_NOTE,   /* @a: slot << 32 | epoch, @b: enum soft_note */
	SOFT_GONE,   /* regions of the sender are no more */
};

struct soft_message {
	uint32_t magic, type;
	uint64_t a, b;
};

/* Send, with @fd unless it is -1.  0 or errno. */
int soft_message_send(int socket, enum soft_message_type type, uint64_t a,
		      uint64_t b, int fd);
/* Receive; *fd is -1 if none came.  0 or errno; EPIPE: the end, or rubbish. */
int soft_message_recv(int socket, struct soft_message *message, int *fd);

/* Bring notes to the peer's owner; false: try again later. */
bool soft_note_send(struct soft_qp *qp, uint32_t notes);
/* Act on notes for queue pair @slot at @epoch.  No locks held. */
void soft_note_take(struct soft_context *c, uint32_t slot, uint32_t epoch,
		    uint32_t notes);
int soft_control_start(struct soft_context *c);
void soft_control_stop(struct soft_context *c);
void soft_control_wake(struct soft_context *c);

#endif
