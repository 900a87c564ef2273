/* SPDX-License-Identifier: MIT */
/*
 * What a rank of `wreath perf` works with: vectors whose contents are known,
 * the team that it agrees with, and the cell of one measurement.
 */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include <stdatomic.h>

#include "bench/cuda.h"
#include "bench/perf.h"

/* ---- perf_pattern.c ---- */

struct perf_pattern;

/* Whose elements: those of a rank's input, or of all ranks' reduction. */
#define PERF_REDUCED (-1)
/* No rank's: what lies in an output before anything comes. */
#define PERF_UNTOUCHED (-2)

/* Some elements of a rank's input or of the result, in some place. */
struct perf_piece {
	int source;    /* a rank, PERF_REDUCED or PERF_UNTOUCHED */
	uint64_t from; /* the first of them, of all that the source has */
	uint64_t at;   /* where it is in the buffer */
	uint64_t count;
};

/* What @rank gives and what must come out; NULL without memory. */
struct perf_pattern *perf_pattern_new(enum wreath_type type, int op,
				      int rank, int n_ranks);
void perf_pattern_free(struct perf_pattern *pattern);
/* This rank's own input, from its first element on. */
void perf_pattern_fill(const struct perf_pattern *pattern, void *buffer,
		       uint64_t count);
/* As no output is ever. */
void perf_pattern_blank(void *buffer, uint64_t bytes);
/*
 * Compare every element of @piece of @buffer, and add those that differ to
 * @check, of which @fault says what they are.
 */
void perf_pattern_check(struct perf_pattern *pattern,
			const struct perf_piece *piece, const void *buffer,
			enum perf_fault fault, struct perf_check *check);

/* ---- perf_team.c ---- */

/* Iterations that are timed one by one, at most. */
#define PERF_SAMPLES 4096
/* Bytes of a record of perf_team_gather(). */
#define PERF_RECORD_MAX 320

/* In memory that forked ranks share with each other and their parent. */
struct perf_page {
	struct wreath_unique_id id;
	_Atomic int has_id;
	_Atomic int is_interrupted;
	_Atomic int failing; /* 1: a rank writes the failure, 2: it is there */
	int fail_rank, fail_code;
	char fail_text[2048];
	_Atomic int must_stop; /* a rank has failed: wait for nobody */
	/* How often all ranks together came to a barrier that is checked. */
	_Atomic uint64_t n_barriers;
	_Alignas(BASE_LINE) _Atomic unsigned int n_arrived;
	_Alignas(BASE_LINE) _Atomic unsigned int phase;
	_Alignas(BASE_LINE) double slots[]; /* [n_ranks][PERF_SAMPLES] */
};

/*
 * What ranks agree by.  Forked ranks use the page and not the library, which
 * is what is being tested; others have nothing but the library.
 */
struct perf_team {
	int rank, n_ranks, n_cores;
	struct perf_page *page;
	struct wreath_comm *comm; /* NULL: by @page */
};

/* All three are collective; false when the team has come apart. */
bool perf_team_barrier(struct perf_team *team);
/* @values become the greatest of all ranks; n at most PERF_SAMPLES. */
bool perf_team_max(struct perf_team *team, double *values, size_t n);
/* [n_ranks] records of @bytes into @all. */
bool perf_team_gather(struct perf_team *team, const void *mine, size_t bytes,
		      void *all);
/* Keep the calling thread's error text, if it is the first; stop the team. */
void perf_team_fail(struct perf_team *team, int code, const char *text);
/*
 * The failure that was kept, told on stderr: its exit status, or 0 if there is
 * none.  @text gets a copy.
 */
int perf_failure(const struct perf_page *page, char *text, size_t size);

/* ---- perf_memory.c ---- */

/*
 * The buffers of a rank.  Those on a GPU are filled and read by copies of them
 * in the host's memory.
 */
struct perf_memory {
	const struct perf_options *options;
	bool is_gpu;
	struct bench_gpu gpu;
	size_t bytes;	    /* of each buffer */
	void *buffers[2];   /* send, NULL where that is not used, and recv */
	unsigned char *copy; /* of either, in turn */
};

/* Whether there is a GPU as asked for; false, and said why, when not. */
bool perf_memory_exists(const struct perf_options *options);

/* Collective.  0, or an error; perf_memory_close() in any case. */
int perf_memory_open(struct perf_memory *memory,
		     const struct perf_options *options,
		     struct perf_team *team);
void perf_memory_close(struct perf_memory *memory);

/* The stream that calls are queued on, or NULL where they block. */
int perf_memory_stream(const struct perf_memory *memory,
		       struct wreath_stream **out);
/* Of the GPU, if there is one. */
void perf_memory_describe(const struct perf_memory *memory,
			  struct perf_place *place);

/*
 * The host's memory that stands for what is at @at in a buffer: itself, or its
 * copy, which put takes to the GPU, and get from there.
 */
void *perf_memory_view(const struct perf_memory *memory, const void *at);
int perf_memory_put(struct perf_memory *memory, void *at, size_t bytes);
int perf_memory_get(struct perf_memory *memory, const void *at, size_t bytes);

/* ---- perf_call.c ---- */

/* The blocks of a vector: lengths, and where each begins, in elements. */
struct perf_blocks {
	size_t *counts, *displs; /* [n_ranks] each */
};

/* All that a measurement needs. */
struct perf_cell {
	const struct perf_options *options;
	struct perf_team *team;
	struct wreath_comm *comm;
	struct wreath_stream *stream; /* NULL: blocking */
	struct perf_memory *memory;
	struct perf_pattern *pattern;
	void *send, *recv;
	enum perf_kind kind;
	enum wreath_type type;
	int op;
	int root;	/* -1: has none */
	uint64_t count; /* as the call has it; with lists, the mean */
	bool in_place;
	double *samples; /* [PERF_SAMPLES] */
	struct perf_check *checks; /* [n_ranks] */
	uint64_t n_barriers;	   /* of this rank, that were checked */
	struct perf_compute *compute; /* of overlap, made when needed */
	double compute_ns;	      /* of a whole gradient; 0: not chosen */
	/* perf_call_plan() sets these. */
	struct perf_blocks sent, received; /* with lists only */
	const void *from;
	void *to;
	uint64_t n_sent, n_received; /* elements of this rank's buffers, */
	uint64_t n_whole; /* and of the whole vector, where both are in place */
	int n_pieces; /* of what this rank gets */
};

/* Lists for @n ranks; false without memory. */
bool perf_call_open(struct perf_cell *cell, int n);
void perf_call_close(struct perf_cell *cell);
/* Where everything is for kind, type, count, root and place of the cell. */
void perf_call_plan(struct perf_cell *cell);
/* Piece @i of @cell->n_pieces of what must lie at @to afterwards. */
void perf_call_piece(const struct perf_cell *cell, int i,
		     struct perf_piece *piece);
/* The call, once; a full stream is waited for. */
int perf_call(struct perf_cell *cell);
/*
 * Until it is done, and a GPU's stream has gone on: 0 at once where calls
 * block.
 */
int perf_call_wait(struct perf_cell *cell);

/* ---- perf_check.c ---- */

/*
 * Buffers before a series of calls, of which nobody looks at the results.
 * The input again, where every call is to find it written just before.
 */
int perf_prepare(struct perf_cell *cell);
int perf_touch(struct perf_cell *cell);

enum perf_outcome {
	PERF_DONE,
	PERF_STOPPED, /* all ranks agree to stop: interrupted */
	PERF_BROKEN,  /* an error, which has been kept in the team */
};

/* Some calls from known inputs, and a look at every element. */
enum perf_outcome perf_check_it(struct perf_cell *cell,
				struct perf_result *result);

/* Into @result, of all ranks. */
enum perf_outcome perf_check_gather(struct perf_cell *cell,
				    const struct perf_check *mine,
				    struct perf_result *result);

/* ---- perf_loop.c ---- */

/* Keep the library's error in the team. */
enum perf_outcome perf_broken(struct perf_cell *cell, int error);

/* The greatest of all ranks' values; the moment to agree to stop. */
enum perf_outcome perf_agree(struct perf_cell *cell, double *value);

/* The least first. */
void perf_sort(double *values, int64_t n);

/* Measure and check; @result's times, iterations and check are set. */
enum perf_outcome perf_measure(struct perf_cell *cell,
			       struct perf_result *result);

/* ---- perf_choice.c ---- */

/*
 * After the calls, since a communicator that has run none may only guess: the
 * algorithm that @result used, and the predictions where there are any.
 */
void perf_choice(const struct perf_cell *cell, struct perf_result *result);

/* ---- perf_overlap.c ---- */

/* The same for buckets of the cell's size, beside a computation. */
enum perf_outcome perf_overlap(struct perf_cell *cell,
			       struct perf_result *result);
void perf_overlap_close(struct perf_cell *cell);

/* ---- perf_compute.c ---- */

/* A computation of known length, in memory of its own. */
struct perf_compute;

/* Measures how fast it is; NULL without memory. */
struct perf_compute *perf_compute_new(void);
void perf_compute_free(struct perf_compute *compute);
/* How much of it takes so long, when nothing else runs. */
uint64_t perf_compute_units(const struct perf_compute *compute, double ns);
void perf_compute_run(struct perf_compute *compute, uint64_t units);

#endif
