/* SPDX-License-Identifier: MIT */
/* What the files behind gpu.h share. */
#ifndef GPU_INNER_H
#define GPU_INNER_H

#define GPU_OWN_NAMES
#include <stdbool.h>

#include "test/cuda/abi.h"
#include "test/loop/gpu.h"
#include "test/loop/ranks.h"

/* A function of the driver. */
#define CU(name) ((__typeof__(&name))gpu_symbol(#name))
void *gpu_symbol(const char *name);
/* A call of the driver that cannot fail. */
#define OK(call) gpu_expect((call), #call, __LINE__)
void gpu_expect(int err, const char *what, int line);
_Noreturn void gpu_broken(const char *what);

#define GPU_COMMS 64

/* A CUDA stream, and the one of wreath that is in order with it. */
struct gpu_stream {
	struct wreath_stream *stream;
	struct CUstream_st *cuda;
	int device;
	uint64_t owner; /* the thread that made it */
	/* What was put on it since it was waited for, of these. */
	const struct wreath_comm *comms[GPU_COMMS];
	int n_comms;
	struct gpu_stream *next;
};
/* NULL for one without CUDA. */
struct gpu_stream *gpu_stream_of(const struct wreath_stream *stream);
/* The stream has work of @comm; or, before a blocking call of it: wait for all
 * streams that have, since what it reads may be on its way from there. */
void gpu_note(struct gpu_stream *stream, const struct wreath_comm *comm);
void gpu_settle(const struct wreath_comm *comm);
/* The thread's GPU, or -1: no memory of GPUs for it. */
int gpu_device(void);
/* Does the host see memory of GPUs, as only a simulation lets it? */
bool gpu_is_seen(void);
/* One that waits for no other. */
struct CUstream_st *gpu_copy_stream(int device);
/* Should the next buffers be the GPU's? */
bool gpu_draw(void);
/* RANKS_GPU=mix */
bool gpu_is_mixed(void);
uint64_t gpu_chance(void);
void gpu_use(int device);

/* ---- gpu_memory.c: memory of GPUs that is used again and again ---- */

struct gpu_block {
	int device, how;
	cu_ptr ptr;
	char *alias; /* where the host sees it, or a copy of it, pinned */
	size_t bytes;
	_Atomic bool is_used;
	struct gpu_block *next;
};
/* NULL where there is no room. */
struct gpu_block *gpu_block_get(int device, size_t bytes);
void gpu_block_put(struct gpu_block *block);
void gpu_blocks_init(void);
void gpu_blocks_free(void);

/* ---- gpu_move.c: what stands for a range of the host ---- */

struct gpu_map {
	struct gpu_block *block;
	char *host;
	size_t bytes;
	size_t at;		/* in the block */
	size_t out_at, out_end; /* what is to come back */
	struct gpu_stream *stream; /* NULL: blocking */
	struct gpu_map *next;
};

/* A call under way; zeroed by its maker. */
struct gpu_call {
	bool is_on;
	int device;
	struct gpu_stream *stream;
	struct CUctx_st *ctx; /* the thread's, which must stay */
	struct gpu_map *maps;
};

void gpu_call_begin(struct gpu_call *call, struct wreath_comm *comm,
		    struct wreath_stream *stream);
/*
 * Buffers of the call: the pointers become those to pass on.  A length of 0 is
 * for what this rank does not need.
 */
void gpu_call_buffers(struct gpu_call *call, const void **send,
		      size_t send_bytes, void **recv, size_t recv_bytes);
/* Moves back, or in a group at its end; returns @err. */
int gpu_call_end(struct gpu_call *call, int err);

#endif
