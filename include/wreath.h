/* SPDX-License-Identifier: MIT */
/*
 * wreath: collective communication over RDMA verbs.
 *
 * Conventions, said once for every function below:
 *
 * - A function returns 0, or a negative value of enum wreath_error.  The
 *   sentence that says what failed, where, on which rank and what to do is
 *   wreath_error_text(), kept per thread until the next failing call.
 * - Outputs come last and are written only on success.
 * - A rank is a process or a thread; a communicator belongs to one rank.  Calls
 *   on different communicators may run at the same time.  Calls on one
 *   communicator may come from any thread, one at a time, in the same order on
 *   every rank; wreath_comm_abort() and the queries may come at any time.
 * - Buffers are memory of the host, or of a GPU where the process uses CUDA:
 *   each rank's own affair, so that ranks of both kinds may meet.  Those of one
 *   call are on one GPU, or on the host.  A blocking call takes what is in them
 *   when it is made: work that was put on CUDA streams before must be done.
 * - A call never blocks longer than the communicator's deadline without
 *   progress (WREATH_TIMEOUT, 30 s by default).
 * - No function keeps a pointer after it returned, but for the buffers of an
 *   operation on a stream, which must stay until the operation is done.
 */
#ifndef WREATH_H
#define WREATH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WREATH_VERSION_MAJOR 0
#define WREATH_VERSION_MINOR 1
#define WREATH_VERSION_PATCH 0
#define WREATH_VERSION                                                         \
	(WREATH_VERSION_MAJOR * 10000 + WREATH_VERSION_MINOR * 100 +           \
	 WREATH_VERSION_PATCH)

#if defined(__GNUC__)
#define WREATH_API __attribute__((visibility("default")))
#else
#define WREATH_API
#endif

/*
 * What went wrong, grouped by what has to be made anew: nothing but the call
 * (-1..-9), the communicator (-10..-19), the process's devices (-20).
 */
enum wreath_error {
	WREATH_OK = 0,
	WREATH_EINVAL = -1,	/* an argument or setting is out of range */
	WREATH_ENOMEM = -2,	/* no memory, descriptors, device resources */
	WREATH_EAGAIN = -3,	/* not done yet: ask again */
	WREATH_EUNSUP = -4,	/* this build or device cannot do it */
	WREATH_EPEER = -10,	/* a rank died or left */
	WREATH_ETIMEOUT = -11,	/* no progress within the deadline */
	WREATH_EMISMATCH = -12, /* the ranks disagree about the operation */
	WREATH_ENET = -13,	/* a queue pair, link or port failed */
	WREATH_EABORTED = -14,	/* wreath_comm_abort() was called */
	WREATH_EDEVICE = -20,	/* the device itself is gone */
};

/* The element of a vector.  The values are part of the ABI. */
enum wreath_type {
	WREATH_INT8 = 0,
	WREATH_UINT8 = 1,
	WREATH_INT16 = 2,
	WREATH_UINT16 = 3,
	WREATH_INT32 = 4,
	WREATH_UINT32 = 5,
	WREATH_INT64 = 6,
	WREATH_UINT64 = 7,
	WREATH_FLOAT16 = 8,
	WREATH_BFLOAT16 = 9,
	WREATH_FLOAT32 = 10,
	WREATH_FLOAT64 = 11,
	WREATH_FLOAT8E4M3 = 12, /* 4 exponent bits, no infinity, NaN 0x7f */
	WREATH_FLOAT8E5M2 = 13, /* 5 exponent bits, infinities as in IEEE */
	WREATH_N_TYPES = 14,
};

/*
 * How elements are combined; wreath(7) has the rules for NaN, -0, overflow and
 * rounding.
 */
enum wreath_op {
	WREATH_SUM = 0,
	WREATH_PROD = 1,
	WREATH_MIN = 2,
	WREATH_MAX = 3,
	WREATH_AVG = 4, /* the sum, divided once by the number of ranks */
	WREATH_N_OPS = 5,
	WREATH_OP_USER = 64, /* and above: of wreath_op_create_scaled_sum() */
};

struct wreath_comm;
struct wreath_stream;

/*
 * Names a communicator to be: addresses, port and a secret.  Make it on one
 * rank, carry its 128 bytes to the others by any means that you trust, and
 * treat it as a password.
 */
struct wreath_unique_id {
	unsigned char bytes[128];
};

/* The version of the library in use, as WREATH_VERSION counts. */
WREATH_API int wreath_version(void);

/* A code's name, such as "WREATH_EPEER".  Never NULL. */
WREATH_API const char *wreath_error_name(int error);

/*
 * The whole sentence of the calling thread's last failure; "" if there was
 * none.  Valid until the thread's next failing call.
 */
WREATH_API const char *wreath_error_text(void);

/* The size of an element in bytes, or 0 for a type that does not exist. */
WREATH_API size_t wreath_type_size(enum wreath_type type);

/*
 * Make an id and listen for its ranks in this process, until they have all
 * come or the deadline for joining has passed.
 * Errors: WREATH_EINVAL (a bad WREATH_* variable), WREATH_ENET, WREATH_ENOMEM.
 */
WREATH_API int wreath_unique_id_create(struct wreath_unique_id *id);

/*
 * Join @n_ranks ranks that all hold @id.  Collective: returns when every rank
 * has come, or fails on every rank that has.  The caller owns *@comm and ends
 * it by wreath_comm_destroy().
 * Errors: WREATH_EINVAL (@rank not in [0, @n_ranks), a rank taken twice,
 * different @n_ranks), WREATH_ETIMEOUT, WREATH_EPEER, WREATH_ENET,
 * WREATH_ENOMEM, WREATH_EDEVICE.
 */
WREATH_API int wreath_comm_init(const struct wreath_unique_id *id, int rank,
				int n_ranks, struct wreath_comm **comm);

/*
 * The same, with id, rank and number of ranks found in the environment:
 * WREATH_*, torchrun, PMI-1 (mpirun of MPICH) or Open MPI; wreath_env(7).
 * Without any of them the communicator has one rank.
 */
WREATH_API int wreath_comm_init_env(struct wreath_comm **comm);

/*
 * The same as wreath_comm_init(), in a thread: returns at once.  Until all
 * ranks have joined, wreath_comm_async_error() and every call on *@comm return
 * WREATH_EAGAIN, but for wreath_comm_rank(), wreath_comm_size(),
 * wreath_comm_abort() and wreath_comm_destroy(), of which the last two end the
 * joining within a second.  Then wreath_comm_async_error() is 0, or the error
 * that wreath_comm_init() would have returned; *@comm must be destroyed then,
 * too.
 * Errors: WREATH_EINVAL, WREATH_ENOMEM.
 */
WREATH_API int wreath_comm_init_start(const struct wreath_unique_id *id,
				      int rank, int n_ranks,
				      struct wreath_comm **comm);

/* The color of ranks that take no part in any communicator of a split. */
#define WREATH_COLOR_NONE (-1)

/*
 * Cut @comm into communicators of the ranks that gave the same @color, in the
 * order of @key, and of rank in @comm where keys are the same.  Collective over
 * @comm, in the order of its calls; blocks.  @comm goes on; both have the same
 * settings, whatever the environment says meanwhile.  The caller owns *@out;
 * WREATH_COLOR_NONE makes it NULL.
 * Errors: WREATH_EINVAL (@color is negative), WREATH_EMISMATCH, and those of
 * wreath_comm_init(), which leave @comm as it is.
 */
WREATH_API int wreath_comm_split(struct wreath_comm *comm, int color, int key,
				 struct wreath_comm **out);

/*
 * Another communicator of the same ranks, whose operations may run beside
 * those of @comm.  Otherwise as wreath_comm_split().
 */
WREATH_API int wreath_comm_duplicate(struct wreath_comm *comm,
				     struct wreath_comm **out);

/*
 * Make a communicator of the ranks of @comm that are still alive, in the order
 * of their ranks, without the @n_exclude ranks in @exclude, which do not call
 * (NULL and 0: nobody).  Called by every other rank that lives, with the same
 * list, after a rank died or before that was noticed; it ends @comm: whatever
 * is under way on it fails, here and on the other ranks, and it must be
 * destroyed, after this call.  Whoever has destroyed @comm before is taken for
 * gone, too.  All ranks get a communicator of the same ranks, or none does.
 * Blocks up to WREATH_TIMEOUT for the others to call.
 * Errors: WREATH_EINVAL, WREATH_EMISMATCH (different lists), WREATH_ETIMEOUT
 * (a rank lives, and does not call), WREATH_EPEER (ranks died one after the
 * other, too fast), WREATH_EABORTED, WREATH_ENET, WREATH_ENOMEM.
 */
WREATH_API int wreath_comm_shrink(struct wreath_comm *comm, const int *exclude,
				  int n_exclude, struct wreath_comm **out);

/* This rank's number, or WREATH_EINVAL. */
WREATH_API int wreath_comm_rank(const struct wreath_comm *comm);

/* The number of ranks, or WREATH_EINVAL. */
WREATH_API int wreath_comm_size(const struct wreath_comm *comm);

/*
 * The devices and ports in use, such as "soft0:1 RoCEv2 fe80::1", all rails
 * among them, separated by commas.  Owned by the communicator; NULL if @comm is
 * not one.
 */
WREATH_API const char *wreath_comm_device(const struct wreath_comm *comm);

/*
 * Wait until every operation is done on every rank.  Collective; blocks.
 * After it only wreath_comm_destroy() and the queries are allowed.
 */
WREATH_API int wreath_comm_finalize(struct wreath_comm *comm);

/*
 * Finalize where that was not done and nothing has failed, and free.  NULL is
 * allowed.  @comm is gone afterwards, also when an error is returned.
 */
WREATH_API int wreath_comm_destroy(struct wreath_comm *comm);

/*
 * Stop every operation of @comm on every rank: pending and later calls return
 * WREATH_EABORTED, here within a second.  From any thread, at any time, more
 * than once.  @comm must still be destroyed.
 */
WREATH_API int wreath_comm_abort(struct wreath_comm *comm);

/*
 * 0 while @comm works, WREATH_EAGAIN while it is still joining, else the error
 * that broke it.  Never blocks.
 * wreath_error_text() then has the sentence.
 */
WREATH_API int wreath_comm_async_error(struct wreath_comm *comm);

/*
 * Combine @count elements of every rank's @send into every rank's @recv.
 * @count, @type and @op must be the same on every rank.  @send == @recv is in
 * place; buffers that overlap otherwise are refused.  @count 0 does nothing but
 * keeps its place in the order, and allows NULL.  Any alignment is allowed.
 *
 * @stream NULL: blocks until @recv is complete and @send may be written.
 * Else: returns at once, and the operation runs in the order of the stream.
 *
 * The bits of the result are the same on every rank and from run to run.
 * Errors: WREATH_EINVAL, WREATH_EMISMATCH, WREATH_EPEER, WREATH_ETIMEOUT,
 * WREATH_ENET, WREATH_EABORTED, WREATH_EAGAIN (the stream's queue is full).
 */
WREATH_API int wreath_all_reduce(const void *send, void *recv, size_t count,
				 enum wreath_type type, enum wreath_op op,
				 struct wreath_comm *comm,
				 struct wreath_stream *stream);

/*
 * The collectives below share the rules of wreath_all_reduce(): arguments that
 * are no buffers are the same on every rank unless it is said otherwise; the
 * buffers may be of any alignment; a blocking call returns when this rank's
 * part is done, which tells nothing of the others' except where a result
 * depends on them; errors are the same.  n is the number of ranks.  A buffer
 * that this rank does not need may be NULL.
 */

/*
 * Combine @count elements of every rank's @send into @recv of rank @root.
 * @recv is written on @root only; there it may be @send.
 */
WREATH_API int wreath_reduce(const void *send, void *recv, size_t count,
			     enum wreath_type type, enum wreath_op op, int root,
			     struct wreath_comm *comm,
			     struct wreath_stream *stream);

/*
 * Copy @count elements of @send on rank @root to @recv on every rank.  @send
 * is read on @root only; there it may be @recv.
 */
WREATH_API int wreath_broadcast(const void *send, void *recv, size_t count,
				enum wreath_type type, int root,
				struct wreath_comm *comm,
				struct wreath_stream *stream);

/*
 * Combine the n blocks of @count elements in every rank's @send; rank r gets
 * block r in @recv, @count elements.  In place: @recv == @send + r * @count
 * elements.
 */
WREATH_API int wreath_reduce_scatter(const void *send, void *recv, size_t count,
				     enum wreath_type type, enum wreath_op op,
				     struct wreath_comm *comm,
				     struct wreath_stream *stream);

/*
 * Every rank gets the @count elements of every rank's @send, in order of rank:
 * n blocks in @recv.  In place: @send == @recv + rank * @count elements.
 */
WREATH_API int wreath_all_gather(const void *send, void *recv, size_t count,
				 enum wreath_type type,
				 struct wreath_comm *comm,
				 struct wreath_stream *stream);

/* The same, on rank @root only. */
WREATH_API int wreath_gather(const void *send, void *recv, size_t count,
			     enum wreath_type type, int root,
			     struct wreath_comm *comm,
			     struct wreath_stream *stream);

/*
 * Rank r gets block r of the n blocks of @count elements in @send of rank
 * @root.  In place on @root: @recv == @send + @root * @count elements.
 */
WREATH_API int wreath_scatter(const void *send, void *recv, size_t count,
			      enum wreath_type type, int root,
			      struct wreath_comm *comm,
			      struct wreath_stream *stream);

/*
 * Block i of @recv is block r of @send on rank i, where r is this rank: n
 * blocks of @count elements each.  There is no form in place.
 */
WREATH_API int wreath_all_to_all(const void *send, void *recv, size_t count,
				 enum wreath_type type,
				 struct wreath_comm *comm,
				 struct wreath_stream *stream);

/* Returns when every rank has called it. */
WREATH_API int wreath_barrier(struct wreath_comm *comm,
			      struct wreath_stream *stream);

/*
 * The forms with blocks of different lengths.  @counts [n] has the elements of
 * each rank's block, @displs [n] where it begins in the buffer of all blocks,
 * in elements; @displs NULL: one block follows the other.  Both are the same
 * on every rank, and are not kept.  Blocks must not overlap where they are
 * written.
 */

/* @send has @counts[rank] elements, @recv all blocks. */
WREATH_API int wreath_all_gather_v(const void *send, void *recv,
				   const size_t *counts, const size_t *displs,
				   enum wreath_type type,
				   struct wreath_comm *comm,
				   struct wreath_stream *stream);

/* @send has all blocks, @recv @counts[rank] elements. */
WREATH_API int wreath_reduce_scatter_v(const void *send, void *recv,
				       const size_t *counts,
				       const size_t *displs,
				       enum wreath_type type, enum wreath_op op,
				       struct wreath_comm *comm,
				       struct wreath_stream *stream);

/*
 * Here the lists differ from rank to rank: @send_counts[i] here is
 * @recv_counts[r] on rank i, where r is this rank.
 */
WREATH_API int wreath_all_to_all_v(const void *send, const size_t *send_counts,
				   const size_t *send_displs, void *recv,
				   const size_t *recv_counts,
				   const size_t *recv_displs,
				   enum wreath_type type,
				   struct wreath_comm *comm,
				   struct wreath_stream *stream);

/*
 * Send @count elements to rank @peer, which calls wreath_recv() for as many
 * bytes from this rank.  What is sent from one rank to another is received in
 * that order.  A send may wait for its receive; several that depend on each
 * other belong in a group.
 */
WREATH_API int wreath_send(const void *send, size_t count,
			   enum wreath_type type, int peer,
			   struct wreath_comm *comm,
			   struct wreath_stream *stream);
WREATH_API int wreath_recv(void *recv, size_t count, enum wreath_type type,
			   int peer, struct wreath_comm *comm,
			   struct wreath_stream *stream);

/*
 * Calls between start and end, of any communicators and by this thread, only
 * note what is to be done; the end of the outermost group does it: sends and
 * receives of a communicator all at once, so that any pattern of them works,
 * collectives in their order before them.  Blocks unless all calls were given
 * a stream.  Returns the first error, of a call that was refused as well:
 * then nothing of the group is done.  At most 4096 calls.
 */
WREATH_API int wreath_group_start(void);
WREATH_API int wreath_group_end(void);

/*
 * An operation for reductions on @comm: the sum of every rank's input times
 * its own *@scalar, an element of @type.  Collectives that use it must be of
 * @type.  Every rank makes it at the same place in the order of such calls;
 * the scalars may differ.  At most 64 a communicator.
 * Errors: WREATH_EINVAL, WREATH_ENOMEM.
 */
WREATH_API int wreath_op_create_scaled_sum(const void *scalar,
					   enum wreath_type type,
					   struct wreath_comm *comm,
					   enum wreath_op *op);

/* Operations that use it may still wait in a stream. */
WREATH_API int wreath_op_destroy(enum wreath_op op, struct wreath_comm *comm);

/*
 * A queue of operations on host memory, run in order by a thread of its own.
 * Operations of several communicators may be queued on one stream.
 * Errors: WREATH_ENOMEM.
 */
WREATH_API int wreath_stream_create(struct wreath_stream **stream);

/*
 * A queue that is in order with a CUDA stream, @cuda_stream, a cudaStream_t or
 * CUstream; NULL is the default stream of the calling thread's current device.
 * An operation that is queued begins when the CUDA stream has come to it, and
 * what is put on the CUDA stream after it waits until it is done, or has
 * failed; the caller never waits.  Buffers may be on that stream's GPU or on
 * the host.  The CUDA stream must live until wreath_stream_destroy().  Calls
 * while it is captured into a graph are refused with WREATH_EUNSUP.
 * Errors: WREATH_EINVAL (not a stream of a device's primary context),
 * WREATH_EUNSUP (no CUDA here; the text says why), WREATH_ENOMEM,
 * WREATH_EDEVICE.
 */
WREATH_API int wreath_stream_from_cuda(void *cuda_stream,
				       struct wreath_stream **stream);

/*
 * Wait until everything queued is done.  Blocks.  Returns the first error of
 * the operations queued since the last wait.
 */
WREATH_API int wreath_stream_wait(struct wreath_stream *stream);

/* WREATH_EAGAIN while operations are pending, else as wreath_stream_wait(). */
WREATH_API int wreath_stream_query(struct wreath_stream *stream);

/* Wait for what is queued, and free.  NULL is allowed. */
WREATH_API int wreath_stream_destroy(struct wreath_stream *stream);

/*
 * Page-aligned, zeroed memory that every device can reach without a copy: the
 * fastest buffers for collectives.  The caller frees it by wreath_mem_free().
 * Errors: WREATH_EINVAL (@bytes is 0), WREATH_ENOMEM.
 */
WREATH_API int wreath_mem_alloc(size_t bytes, void **ptr);

/*
 * The same on GPU @device, as CUDA numbers them; not zeroed.  The fastest
 * buffers there: peers and network devices reach them without a copy.
 * Errors: WREATH_EINVAL (@bytes is 0, no such device), WREATH_ENOMEM,
 * WREATH_EUNSUP (no CUDA here; the text says why).
 */
WREATH_API int wreath_mem_alloc_gpu(size_t bytes, int device, void **ptr);

/* Free it; no operation may be using it.  NULL is allowed. */
WREATH_API int wreath_mem_free(void *ptr);

/*
 * The GPU that @ptr points into, as CUDA numbers them, or -1 for memory of the
 * host.  @ptr NULL: that of the calling thread's current CUDA context, or -1.
 * Errors: WREATH_EINVAL for memory that was freed.
 */
WREATH_API int wreath_mem_device(const void *ptr, int *device);

/*
 * Promise that [@ptr, @ptr + @bytes) stays mapped until it is deregistered, so
 * that devices may read and write it in place; memory of the host, or of a GPU.
 * Errors: WREATH_EINVAL (NULL, empty, overlaps a registered range),
 * WREATH_ENOMEM.
 */
WREATH_API int wreath_mem_register(void *ptr, size_t bytes);

/* Take the promise of wreath_mem_register(@ptr) back. */
WREATH_API int wreath_mem_deregister(void *ptr);

#ifdef __cplusplus
}
#endif

#endif
