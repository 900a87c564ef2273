/* SPDX-License-Identifier: MIT */
/*
 * nccl: the interface of NCCL over wreath.h, and over nothing else of this
 * library: it proves that the public interface is enough.
 *
 * A handle, ncclComm_t, points to a struct ncclComm, which lies in memory that
 * is never given back: a call on a handle that was destroyed finds that out.
 * Every call on a communicator is between nccl_enter() and nccl_leave(), so
 * that whoever ends it knows when nobody is inside any more.
 */
#ifndef NCCL_INNER_H
#define NCCL_INNER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "nccl/nccl.h"
#include "wreath.h"

/* The second name of a function, which profilers call past the first. */
#define NCCL_ALIAS(name)                                                       \
	extern __typeof__(name) p##name                                        \
		__attribute__((alias(#name), visibility("default")))

/* For functions that nccl.h does not declare. */
#define NCCL_SHOWN __attribute__((visibility("default")))

/* Streams that a communicator remembers: frameworks use one or two. */
#define NCCL_STREAMS 16
/* Values that sums are multiplied by, as many as a wreath_comm has. */
#define NCCL_FACTORS 64
/* Operations of ncclRedOpCreatePreMulSum() of a communicator at a time. */
#define NCCL_OPS 256

/*
 * Communicators of one process that belong together: what has to be done for
 * all of them may be asked for by one thread, one after the other.
 */
struct nccl_family {
	uint64_t a, b;
};

/* A CUDA stream as wreath knows it. */
struct nccl_stream {
	cudaStream_t cuda;
	int device;	    /* of the streams that each device has, else 0 */
	pthread_t thread;   /* of the stream that each thread has, else 0 */
	uint64_t last_use;
	struct wreath_stream *stream;
};

struct nccl_factor {
	enum wreath_type type;
	uint64_t bits; /* of the scalar */
	enum wreath_op op;
	bool is_used;
	uint64_t last_use;
};

struct nccl_op {
	bool is_used, is_late; /* late: read when a collective runs */
	ncclDataType_t type;
	uint64_t bits;
	const void *scalar; /* where it is read late */
};

struct ncclComm {
	_Atomic uint32_t magic; /* NCCL_LIVE while the handle may be used */
	_Atomic uint32_t users; /* calls inside */
	_Atomic(struct wreath_comm *) comm; /* NULL until it is begun */
	_Atomic int n_jobs;	/* threads that work on it */
	_Atomic bool is_joined;	/* it was seen to be made */
	_Atomic int failure;	/* ncclResult_t of such a thread; it stays */
	char text[1024];	/* of @failure, written before it */
	int rank, n_ranks, device;
	bool is_blocking, is_revoked, is_final, is_aborted;
	uint32_t n_children;
	struct nccl_family family;
	struct ncclComm *next; /* in the list that it is in */
	pthread_mutex_t lock;  /* of what follows */
	uint64_t clock;	       /* for last_use */
	struct nccl_stream streams[NCCL_STREAMS];
	int n_streams;
	struct nccl_factor factors[NCCL_FACTORS];
	struct nccl_op ops[NCCL_OPS];
};

/* ---- log.c: what the user reads ---- */

enum nccl_level {
	NCCL_OFF,
	NCCL_ERROR,
	NCCL_WARN,
	NCCL_INFO,
};

void nccl_log_level_set(enum nccl_level level);
enum nccl_level nccl_log_level(void);
/* One line on stderr. */
void nccl_log(enum nccl_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Keep the sentence for ncclGetLastError(); returns @result. */
ncclResult_t nccl_fail(ncclResult_t result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), cold));
/* Of an error of wreath, whose sentence is wreath_error_text(), or of 0. */
ncclResult_t nccl_result(int error, const char *function);
ncclResult_t nccl_result_of(int error);
/* The same without a line in the log. */
void nccl_keep(const char *text);
/* The last sentence of the calling thread. */
const char *nccl_own_text(void);
/* That of the process, in memory of the calling thread. */
const char *nccl_last_text(void);

/* ---- env.c ---- */

/* The first call reads NCCL_* and sets WREATH_*. */
void nccl_env_read(void);
/* What NCCL_COMM_BLOCKING says: 0, 1, or -1 where it says nothing. */
int nccl_env_blocking(void);

/* ---- handle.c ---- */

/* A handle that is not live yet, or NULL with the text set. */
struct ncclComm *nccl_handle_new(const char *function);
void nccl_handle_open(struct ncclComm *comm);
void nccl_handle_free(struct ncclComm *comm);
ncclResult_t nccl_enter(struct ncclComm *comm, const char *function);
void nccl_leave(struct ncclComm *comm);
/* No call gets in any more; false where the handle is not live. */
bool nccl_handle_close(struct ncclComm *comm);
/* Wait until @n calls are inside at most; false after @timeout_ms. */
bool nccl_handle_await(struct ncclComm *comm, uint32_t n, int timeout_ms);
bool nccl_handle_is_live(const struct ncclComm *comm);
/* Is there another live one of the family? */
bool nccl_handle_has_sibling(const struct ncclComm *comm);
struct nccl_family nccl_family_mix(struct nccl_family family, uint64_t word);
void nccl_nap(void); /* about a millisecond */

/* ---- config.c ---- */

struct nccl_settings {
	bool is_blocking;
};

/* @config may be NULL; @out has the defaults before. */
ncclResult_t nccl_config_read(const ncclConfig_t *config, const char *function,
			      struct nccl_settings *out);

/* ---- job.c: what would block, on a thread ---- */

/* Run @work(@arg) on a thread, one of @comm->n_jobs; @comm may be NULL. */
ncclResult_t nccl_job_start(struct ncclComm *comm, void (*work)(void *arg),
			    void *arg);
/* Wait for the threads that work on @comm. */
void nccl_job_await(struct ncclComm *comm);
/* @comm has failed: what broke it first stays. */
void nccl_comm_failed(struct ncclComm *comm, ncclResult_t result,
		      const char *text);

/* ---- init.c, child.c ---- */

/* A communicator to be made when the group ends, or at once. */
struct nccl_making {
	const char *function;
	struct nccl_making *next;
	struct ncclComm *parent; /* NULL: by id; held while it is made */
	struct ncclComm *comm;	 /* NULL: this rank gets none */
	ncclComm_t *out;
	struct wreath_unique_id id;
	bool is_shrink, is_blocking;
	int color, key;
	int *exclude; /* owned */
	int n_exclude;
	ncclResult_t result;
	char text[512]; /* of @result */
};

/* Holds what it names; NULL with the text set. */
struct nccl_making *nccl_making_new(const char *function);
/* Begin all of the list, wait for those that block, and free it. */
ncclResult_t nccl_make(struct nccl_making *list);
/* None is made; the list is freed. */
void nccl_make_cancel(struct nccl_making *list);
/* Make a child: blocks. */
void nccl_child_make(struct nccl_making *making);

/* What is known of @comm: success, ncclInProgress, or what broke it. */
ncclResult_t nccl_state(struct ncclComm *comm);
/* ncclInvalidArgument where @comm is still being made, and its failure. */
ncclResult_t nccl_check_ready(struct ncclComm *comm, const char *function);

/* ---- group.c ---- */

bool nccl_group_is_open(void);
/* Done now, or when the group ends. */
ncclResult_t nccl_group_make(struct nccl_making *making);
/* The result of a call: one that was refused refuses the open group. */
ncclResult_t nccl_group_note(ncclResult_t result);
/* In a group @comm, which is entered, stays so until its end. */
ncclResult_t nccl_group_hold(struct ncclComm *comm);
bool nccl_group_holds(const struct ncclComm *comm);
/* Do @what with @comm when the group ends: false without one. */
bool nccl_group_later(struct ncclComm *comm,
		      ncclResult_t (*what)(struct ncclComm *comm));

/* ---- stream.c ---- */

/* NULL in *@out: there is no CUDA, and the call blocks. */
ncclResult_t nccl_stream_get(struct ncclComm *comm, cudaStream_t cuda,
			     const void *send, const void *recv,
			     const char *function, struct wreath_stream **out);
/* Errors of operations that did not break the communicator. */
ncclResult_t nccl_streams_error(struct ncclComm *comm);
void nccl_streams_free(struct ncclComm *comm);

/* ---- op.c ---- */

/* wreath's number of @op for a collective of @type on @stream. */
ncclResult_t nccl_op_get(struct ncclComm *comm, ncclRedOp_t op,
			 ncclDataType_t type, struct wreath_stream *stream,
			 const char *function, enum wreath_op *out);

/* ---- type.c ---- */

bool nccl_type_get(ncclDataType_t type, enum wreath_type *out);

/* ---- memory.c ---- */

void nccl_memory_forget(struct ncclComm *comm);

#endif
