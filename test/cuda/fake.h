/* SPDX-License-Identifier: MIT */
/*
 * What the files of the simulated driver share.
 *
 * One lock guards all state; work itself (copies, kernels) runs without it, on
 * a thread for each stream.  A piece of work has a number, which grows over all
 * streams: what has to be done first is what has a lower one.
 */
#ifndef FAKE_H
#define FAKE_H

#include <pthread.h>
#include <stdbool.h>

#include "test/cuda/abi.h"

#define FAKE_DEVICES_MAX 16
#define FAKE_POISON 0xfb  /* in device memory that nobody wrote */
#define FAKE_CANARY 0xc7  /* around it */

struct fake_config {
	int n_devices, version;
	uint64_t seed;
	size_t memory; /* of a device */
	uint64_t late_ns;
	bool peermem, nodmabuf, noipc, hopper, nomemops, nopeer, strict;
};
extern struct fake_config fake_config;

extern pthread_mutex_t fake_lock;
/* Some work is done, or something ended. */
extern pthread_cond_t fake_changed;
/* Guarded by the lock. */
extern bool fake_has_ended;
extern uint64_t fake_sequence; /* the last number given */

/* ---- call.c ---- */

/*
 * The beginning of each call: it is counted, and fails where it is to fail or
 * nothing may be called.
 */
int fake_enter(const char *name);
/* Of calls that may come before cuInit(). */
int fake_enter_early(const char *name);
/* For tests of the unfit moment: 1 where the n-th "kernel" is to fail. */
bool fake_must_fail(const char *name);
/* To stderr: what a program did wrong. */
void fake_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
uint64_t fake_random(uint64_t *state);

#define FAKE_STACK_MAX 32

/*
 * Of a thread.  Not thread-local variables: of a library that is opened late
 * the dynamic linker allocates those, and frees them at the end of the thread
 * in a way that the thread sanitizer takes for a race.
 */
struct fake_thread {
	struct CUctx_st *stack[FAKE_STACK_MAX];
	int n_stack;
	bool is_in_host_func; /* that cuLaunchHostFunc() was given */
	int capture_mode;
	uint64_t id; /* from 1 on */
};
struct fake_thread *fake_me(void);

void fake_read_config(void);
void fake_fail_at(const char *name, uint64_t n);
/* Of the table of functions: NULL for none. */
void *fake_function(const char *name);

/* ---- context.c ---- */

struct CUctx_st {
	int device;
	bool is_primary;
	int retained; /* 0: not active */
	int error;    /* sticky, once something went wrong on the device */
	bool reaches[FAKE_DEVICES_MAX]; /* peers' memory */
	struct CUstream_st *legacy;
	struct CUctx_st *next;
};
/* The calling thread's, in order to work on it. */
int fake_ctx(struct CUctx_st **out);
/* The same, which must be the one of @ctx. */
int fake_ctx_check(struct CUctx_st *ctx);
struct CUctx_st *fake_primary(int device);
int fake_n_contexts(void);
/* Caller holds the lock. */
void fake_ctx_fail(struct CUctx_st *ctx, int error);

/* ---- memory.c ---- */

enum fake_kind {
	FAKE_DEVICE,
	FAKE_IMPORTED,
	FAKE_MANAGED,
	FAKE_PINNED,
	FAKE_REGISTERED,
};

struct fake_range {
	enum fake_kind kind;
	struct CUctx_st *ctx;
	int device;	/* whose memory it is; of host memory the context's */
	uintptr_t base; /* public */
	size_t bytes;
	char *alias; /* of @base, where the driver itself reads and writes */
	char *map, *alias_map;
	size_t map_bytes;
	int fd;
	uint64_t id;
	bool sync_memops;
	unsigned int flags;
	int n_users;  /* work that is running on it */
	int n_opened; /* of an import */
	struct cu_ipc handle;
	struct fake_range *next;
};
/* Caller holds the lock. */
struct fake_range *fake_find(cu_ptr ptr, size_t bytes);
struct fake_range *fake_find_base(cu_ptr ptr);
/* Whose pages hold all of it. */
struct fake_range *fake_find_mapping(cu_ptr ptr, size_t bytes);
struct fake_range *fake_find_import(const struct CUctx_st *ctx,
				    const struct cu_ipc *handle);
bool fake_was_freed(cu_ptr ptr);
/* Maps @fd (-1: a new one), twice, and links the range in. */
int fake_map(struct fake_range *range, int fd, size_t before);
void fake_range_add(struct fake_range *range);
/* Waits for the work under way, unlinks, and frees. */
void fake_range_remove(struct fake_range *range);
bool fake_overlaps(uintptr_t base, size_t bytes);
void fake_count_ranges(struct fake_leaks *leaks);
/*
 * Where work of @ctx reads and writes [ptr, ptr + bytes): a user is counted.
 * CUDA_ERROR_ILLEGAL_ADDRESS, and why in words.
 */
int fake_reach(struct CUctx_st *ctx, cu_ptr ptr, size_t bytes, char **out,
	       struct fake_range **range, const char **why);

/* ---- stream.c ---- */

enum fake_work {
	FAKE_COPY,
	FAKE_SET,
	FAKE_KERNEL,
	FAKE_WRITE,
	FAKE_WAIT,
	FAKE_RECORD,
	FAKE_WAIT_EVENT,
	FAKE_HOST,
};

struct fake_item {
	enum fake_work work;
	uint64_t number;
	cu_ptr dst, src;
	size_t bytes;
	bool dst_is_host, src_is_host; /* pageable */
	uint32_t value;
	unsigned int flags;
	struct CUevent_st *event; /* of a record */
	struct CUstream_st *other; /* of a wait for an event: where it is, */
	uint64_t other_number;	   /* and which */
	struct fake_kernel *kernel;
	void (*fn)(void *);
	void *arg;
	void *staged; /* a copy of pageable memory */
	struct fake_item *next;
};

struct CUstream_st {
	struct CUctx_st *ctx;
	unsigned int flags;
	int priority;
	uint64_t thread_id; /* of the per-thread default stream */
	bool is_legacy, is_destroyed, has_thread;
	int capture, capture_mode;
	uint64_t capture_thread;
	uint64_t oldest; /* the lowest number that is not done, or UINT64_MAX */
	uint64_t random;
	struct fake_item *head, *tail;
	pthread_cond_t has_work;
	struct CUstream_st *next;
};

/* Resolve and check a handle; takes the lock, which stays taken on success. */
int fake_stream_lock(struct CUstream_st *handle, struct CUstream_st **out);
/*
 * Copy the item and queue it; lets go of the lock.  *@number, where asked for,
 * is 0 when the stream is captured, and the item dropped.
 */
int fake_queue(struct CUstream_st *stream, const struct fake_item *item,
	       uint64_t *number);
/* Caller holds the lock: wait until the stream has done what is numbered. */
int fake_stream_wait(const struct CUstream_st *stream, uint64_t number);
/* Caller holds the lock: wait for all that is queued in the context so far. */
void fake_ctx_wait(struct CUctx_st *ctx);
int fake_n_streams(void);
/* Caller holds the lock. */
struct CUstream_st *fake_streams(void);
void *fake_stream_thread(void *arg);
/* Calls that are unsafe while someone captures: capture.c. */
int fake_capture_check(void);

/* ---- run.c, event.c, kernel.c, memop.c ---- */

/* Do a piece of work, without the lock; an error is the context's. */
int fake_run(struct CUstream_st *stream, struct fake_item *item);
void fake_item_free(struct fake_item *item);
/* Caller holds the lock: the record is done. */
void fake_event_done(struct CUevent_st *event, uint64_t number);
int fake_n_events(void);
int fake_kernel_run(struct CUctx_st *ctx, const struct fake_kernel *kernel,
		    uint64_t *random);
void fake_kernel_free(struct fake_kernel *kernel);
int fake_n_modules(void);

#endif
