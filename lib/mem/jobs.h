/* SPDX-License-Identifier: MIT */
/*
 * The queue of a struct mem_gpu, for the files that carry it on.
 *
 * Jobs go to the stream in the order of their numbers, and behind each batch a
 * word is written by the stream: a mark.  Marks are counted with 64 bits here,
 * of which the word has the low 32.
 */
#ifndef MEM_JOBS_H
#define MEM_JOBS_H

#include "mem/cuda.h"
#include "reduce/gpu.h"

/* Pieces under way: one is copied in, one is folded, one is copied out, and one
 * makes up for what is late. */
#define STAGES 4

enum job_kind {
	JOB_COPY,   /* by the copy engine; elements are bytes */
	JOB_LAUNCH, /* by a kernel */
	JOB_STAGED,
};

struct job {
	enum job_kind kind;
	enum wreath_type type;
	enum wreath_op op;
	size_t count, elem_bytes;
	unsigned int divisor;
	int n_src, n_dst, i_factor; /* -1: none */
	uint64_t gpu_src, gpu_dst, factor;
	uint64_t mark;	/* when it comes, the job is done; 0: not known yet */
	size_t n_begun; /* elements of a staged job that have their piece */
	const void *src[REDUCE_MAX];
	void *dst[REDUCE_MAX];
};

/* A part of a staged job that is copied in or was, in memory of its own. */
struct piece {
	uint64_t number; /* of the job */
	size_t at, count;
	uint64_t mark; /* of what was copied in */
	/* Each operand that is staged has as many bytes. */
	size_t room;
	char *memory;
};

/* An allocation of another process, as this GPU reaches it. */
struct import {
	uint64_t process[2], base, id;
	uint64_t here; /* 0: it cannot be reached, which was tried: */
	int result;    /* what CUDA said */
	size_t bytes;
	uint64_t n_drains; /* when it was used last */
};

struct mem_gpu {
	struct cuda_gpu *device;
	struct mem_gpu_info info;
	struct CUstream_st *stream;
	struct cuda_words words;
	bool has_words;

	/* Numbers: the last that was taken up, that may start, that was given
	 * to the stream as a whole, and that is done. */
	uint64_t last, pushed, issued, done;
	uint64_t mark, mark_seen;
	unsigned int n_polls;
	int error; /* stays */
	char text[512];

	/* Pieces [first, first + n) of the ring, which are to be folded. */
	uint64_t first_piece, n_pieces;
	struct piece pieces[STAGES];
	size_t stage_bytes;
	char *stages; /* pinned */

	uint64_t n_drains;
	size_t n_imports;
	struct import imports[MEM_IMPORTS_MOST];

	struct job jobs[MEM_JOBS_MAX];
	/* Here, since they are long. */
	struct reduce_gpu_batch batch;
	char factor[4096];
};

static inline struct job *gpu_job(struct mem_gpu *gpu, uint64_t number)
{
	return &gpu->jobs[number % MEM_JOBS_MAX];
}

/* ---- jobs.c ---- */

/* A failure of the device, reported once; it stays. */
int gpu_fail(struct mem_gpu *gpu, int result, const char *operation);
/* Have the stream write a mark behind what it was given. */
int gpu_mark(struct mem_gpu *gpu);
int gpu_copy(struct mem_gpu *gpu, void *dst, const void *src, size_t bytes);

/* ---- share.c ---- */

void gpu_imports_close(struct mem_gpu *gpu);

/* ---- stage.c ---- */

/* Pinned memory for operands of @fold_bytes. */
int stages_init(struct mem_gpu *gpu, size_t fold_bytes);
/* Begin pieces of the next job, as far as there is room; *@all: to its end. */
int stage_begin(struct mem_gpu *gpu, struct job *job, bool *all);
/* Whether a piece could be carried on. */
bool stage_can_go(struct mem_gpu *gpu);
int stage_carry_on(struct mem_gpu *gpu);

#endif
