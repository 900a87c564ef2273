/* SPDX-License-Identifier: MIT */
/*
 * The tests of this folder on memory of GPUs, without a change to them: with
 * RANKS_GPU=1 in the environment each call of wreath that they make goes
 * through a function that moves its buffers to memory of the rank's GPU, calls,
 * and moves back what came.  RANKS_GPU=mix does so by chance, for each group of
 * calls, so that ranks with either kind of memory meet in one operation.
 *
 * A stream of theirs is in order with a CUDA stream then, on which the buffers
 * are filled just before the operation, and read just after it, by work that is
 * late: nobody waits in between, so what comes out is right only where both
 * streams are in order.
 *
 * The GPUs are simulated (test/cuda), unless RANKS_CUDA=libcuda.so.1 names
 * another driver.  Then buffers are filled and read in pinned memory, and
 * copies go between that and the GPU; the simulation can be named as well.
 */
#ifndef GPU_H
#define GPU_H

#include "wreath.h"

struct rank;

/* In the test: settings of the simulation, the same for all ranks. */
void gpu_prepare(void);
/* In a process of ranks, before and after all of them. */
void gpu_load(void);
/* A sentence on what is left, or NULL. */
const char *gpu_unload(void);
/* In a rank's thread: its GPU. */
void gpu_enter(int rank);
void gpu_leave(void);

int gpu_all_reduce(const void *send, void *recv, size_t count,
		   enum wreath_type type, enum wreath_op op,
		   struct wreath_comm *comm, struct wreath_stream *stream);
int gpu_reduce(const void *send, void *recv, size_t count,
	       enum wreath_type type, enum wreath_op op, int root,
	       struct wreath_comm *comm, struct wreath_stream *stream);
int gpu_broadcast(const void *send, void *recv, size_t count,
		  enum wreath_type type, int root, struct wreath_comm *comm,
		  struct wreath_stream *stream);
int gpu_reduce_scatter(const void *send, void *recv, size_t count,
		       enum wreath_type type, enum wreath_op op,
		       struct wreath_comm *comm, struct wreath_stream *stream);
int gpu_all_gather(const void *send, void *recv, size_t count,
		   enum wreath_type type, struct wreath_comm *comm,
		   struct wreath_stream *stream);
int gpu_gather(const void *send, void *recv, size_t count,
	       enum wreath_type type, int root, struct wreath_comm *comm,
	       struct wreath_stream *stream);
int gpu_scatter(const void *send, void *recv, size_t count,
		enum wreath_type type, int root, struct wreath_comm *comm,
		struct wreath_stream *stream);
int gpu_all_to_all(const void *send, void *recv, size_t count,
		   enum wreath_type type, struct wreath_comm *comm,
		   struct wreath_stream *stream);
int gpu_all_gather_v(const void *send, void *recv, const size_t *counts,
		     const size_t *displs, enum wreath_type type,
		     struct wreath_comm *comm, struct wreath_stream *stream);
int gpu_reduce_scatter_v(const void *send, void *recv, const size_t *counts,
			 const size_t *displs, enum wreath_type type,
			 enum wreath_op op, struct wreath_comm *comm,
			 struct wreath_stream *stream);
int gpu_all_to_all_v(const void *send, const size_t *send_counts,
		     const size_t *send_displs, void *recv,
		     const size_t *recv_counts, const size_t *recv_displs,
		     enum wreath_type type, struct wreath_comm *comm,
		     struct wreath_stream *stream);
int gpu_send(const void *send, size_t count, enum wreath_type type, int peer,
	     struct wreath_comm *comm, struct wreath_stream *stream);
int gpu_recv(void *recv, size_t count, enum wreath_type type, int peer,
	     struct wreath_comm *comm, struct wreath_stream *stream);
int gpu_group_start(void);
int gpu_group_end(void);
int gpu_stream_create(struct wreath_stream **stream);
int gpu_stream_wait(struct wreath_stream *stream);
int gpu_stream_query(struct wreath_stream *stream);
int gpu_stream_destroy(struct wreath_stream *stream);
int gpu_comm_destroy(struct wreath_comm *comm);

#ifndef GPU_OWN_NAMES
#define wreath_all_reduce gpu_all_reduce
#define wreath_reduce gpu_reduce
#define wreath_broadcast gpu_broadcast
#define wreath_reduce_scatter gpu_reduce_scatter
#define wreath_all_gather gpu_all_gather
#define wreath_gather gpu_gather
#define wreath_scatter gpu_scatter
#define wreath_all_to_all gpu_all_to_all
#define wreath_all_gather_v gpu_all_gather_v
#define wreath_reduce_scatter_v gpu_reduce_scatter_v
#define wreath_all_to_all_v gpu_all_to_all_v
#define wreath_send gpu_send
#define wreath_recv gpu_recv
#define wreath_group_start gpu_group_start
#define wreath_group_end gpu_group_end
#define wreath_stream_create gpu_stream_create
#define wreath_stream_wait gpu_stream_wait
#define wreath_stream_query gpu_stream_query
#define wreath_stream_destroy gpu_stream_destroy
#define wreath_comm_destroy gpu_comm_destroy
#endif

#endif
