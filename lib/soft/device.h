/* SPDX-License-Identifier: MIT */
/*
 * The objects of the soft device in this process.  Each begins with
 * libibverbs' own, padded to what its private structs have, so that code that
 * looks behind the public part finds zeroes.
 *
 * Locks, outermost first: the registry's (peer.c), a context's @lock, a CQ's
 * @lock, a queue pair's send lock, its @rq_lock, a shared receive queue's
 * @lock, and a struct soft_held's.
 * Nothing blocks with one held, but for the bounded wait until a peer's copy
 * into memory is done, and who copies waits for nobody.
 */
#ifndef SOFT_DEVICE_H
#define SOFT_DEVICE_H

#include <pthread.h>

#include "soft/fault.h"
#include "soft/lock.h"
#include "soft/pace.h"
#include "soft/shared.h"
#include "verbs/verbs.h"

struct soft_courier;
struct soft_cq;
struct soft_guest;
struct soft_held;
struct soft_peer;
struct soft_qp;
struct soft_srq;

enum soft_kind {
	SOFT_ETHERNET,
	SOFT_INFINIBAND,
	SOFT_N_KINDS,
};

#define SOFT_N_AH 65536u

/* The private struct of providers, which some read behind ibv_device. */
#define SOFT_SPARE 64

struct soft_device {
	union {
		struct ibv_device ibv;
		unsigned char spare[sizeof(struct ibv_device) + SOFT_SPARE];
	};
	enum soft_kind kind;
	struct verbs_pace pace; /* as WREATH_SOFT was last read */
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
	struct soft_pd *parent; /* whose objects are as good as ours, or NULL */
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
	uint64_t offset; /* in it */
	void *mapped; /* ours, to be unmapped; NULL: the caller's mapping */
	size_t mapped_bytes;
};

/* A piece of the segment's ring space; sizes are powers of two. */
struct soft_block {
	struct soft_block *next;
	uint32_t offset, bytes;
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
	uint32_t n_pd, n_mr, n_cq, n_qp, n_srq, n_ah, next_pd;
	struct soft_region *regions[SOFT_N_REGIONS];
	uint32_t n_regions; /* highest slot used + 1 */
	uint32_t region_gen, cq_gen, srq_gen;
	bool mr_taken[SOFT_N_MR];
	uint32_t key_gen;
	struct soft_cq *cqs[SOFT_N_CQ];
	struct soft_srq *srqs[SOFT_N_SRQ];
	/* Kept until the context goes. */
	_Atomic(struct soft_qp *) qps[SOFT_N_QP];
	_Atomic uint32_t qps_high; /* highest slot used + 1 */
	uint32_t ring_used;
	struct soft_block *blocks[32]; /* free, by log2 of their size */
	struct soft_peer *peers;
	struct soft_courier *couriers;

	/* The port. */
	struct soft_address address;
	struct verbs_pace pace;
	int timer_fd;		   /* where it has one, else -1 */
	_Atomic uint32_t alarm_lock;
	uint64_t alarm_ns; /* when the timer rings; under its lock */
	_Atomic uint64_t polled_ns; /* when a CQ was looked at last */
	uint64_t guid;
	struct soft_faults faults;
	_Atomic bool is_slow;		/* some fault may hit a post */
	uint64_t down_ns, up_ns, gid_ns; /* when it happens; 0: it does not */
	uint64_t n_locked;		/* bytes registered */
	uint64_t n_qps_made;
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
	unsigned char *payload; /* SOFT_PAYLOAD, for what it receives */
	struct soft_guest *guests;
	unsigned int n_guests;
	unsigned int n_waiting; /* guests with a datagram that waits */
};

/* Bumped in a child process: what it inherited is the parent's. */
extern uint32_t soft_fork_gen;

static inline struct soft_context *soft_context_of(struct ibv_context *context)
{
	return (struct soft_context *)(void *)((char *)context -
					       offsetof(struct soft_context,
							verbs.context));
}

static inline uint32_t soft_round_up_pow2(uint32_t n)
{
	return n <= 1 ? n : 1u << (32 - __builtin_clz(n - 1));
}

static inline bool soft_is_foreign(const struct soft_context *c)
{
	return c->fork_gen != soft_fork_gen;
}

/* ---- soft.c ---- */

/* The pace that a context of @device is to have. */
struct verbs_pace soft_device_pace(const struct soft_device *device);

/* ---- segment.c ---- */

int soft_segment_new(struct soft_context *c);
/* Map @fd as a peer's segment if it is one. */
struct soft_segment *soft_segment_map(int fd);
/* Zeroed space for a ring, or NULL.  Caller holds the context's lock. */
struct soft_block *soft_block_new(struct soft_context *c, size_t bytes);
void soft_block_free(struct soft_context *c, struct soft_block *block);
uint64_t soft_random(struct soft_context *c);

/* ---- context.c, pd and queries ---- */

/* May @attr be used to reach a peer from here? */
bool soft_is_address(struct soft_context *c, const struct ibv_ah_attr *attr);

/* ---- mr.c ---- */

/* Wait until no post that began before can be using our memory. */
void soft_drain(struct soft_context *c);

#endif
