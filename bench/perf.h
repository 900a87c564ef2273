/* SPDX-License-Identifier: MIT */
/*
 * The parts of `wreath perf`.
 *
 * A rank (perf_rank.c) measures (perf_loop.c) vectors with known contents
 * (perf_pattern.c) and agrees with the other ranks by a team (perf_team.c).
 * Rank 0 sends what happens as events to the report (perf_report.c): through a
 * pipe to the parent where the ranks were forked (perf_local.c), so that what
 * is done is shown also when ranks die; by a call where a launcher started us.
 */
#ifndef PERF_H
#define PERF_H

#include <stdatomic.h>

#include "bench/bench.h"

#define PERF_RANKS_MAX 512
#define PERF_ALGOS_MAX 8
#define PERF_SIZES_MAX 64
/* Larger than any machine's memory; sums of a few of them still fit. */
#define PERF_BYTES_MAX (1ll << 50)

/* ---- perf_options.c ---- */

enum perf_buffers {
	PERF_ALLOC,    /* wreath_mem_alloc() */
	PERF_MALLOC,   /* malloc() */
	PERF_REGISTER, /* malloc() and wreath_mem_register() */
};

enum perf_halves {
	PERF_BOTH,
	PERF_OUT, /* out of place only */
	PERF_IN,
};

struct perf_options {
	uint64_t min_bytes, max_bytes;
	uint64_t step_bytes; /* 0: by factor */
	int64_t step_factor;
	uint64_t sizes[PERF_SIZES_MAX]; /* instead of all these */
	int n_sizes;
	bool types[WREATH_N_TYPES];
	bool ops[WREATH_N_OPS];
	int algos[PERF_ALGOS_MAX]; /* of perf_algo_names */
	int n_algos;
	bool is_launched;  /* ranks are found in the environment */
	int64_t n_procs;   /* local ranks to fork */
	int64_t n_threads; /* ranks of each process */
	const char *nodes; /* NULL, or how ranks pretend to be nodes */
	int *node_of;	   /* then [n_procs]: WREATH_NODE of each */
	int n_cores;	   /* of this host, before ranks are bound to them */
	int64_t n_iters;   /* 0: as many as fit @seconds */
	int64_t n_warmup;
	int64_t n_agg;	  /* operations of an iteration */
	int64_t n_cycles; /* 0: until interrupted */
	int64_t n_checks; /* operations to check of each size, 0: none */
	double seconds;	  /* per size and half */
	int buffers;	  /* enum perf_buffers */
	uint64_t unalign; /* bytes from a page's start to the buffers */
	bool touch;	  /* write the input before each operation */
	bool stream;	  /* by a stream, not blocking */
	int halves;	  /* enum perf_halves */
	int per_iter;	  /* the columns of -I */
	double min_busbw;
	int64_t timeout_s; /* 0: the library's */
	const char *json, *csv, *plot; /* NULL: none; "-": standard output */
	bool quiet;
	int64_t ignored; /* options of nccl-tests without meaning here */
};

/*
 * Read the command line.  0 to go on, else the exit status plus one, and the
 * reason has been said.
 */
int perf_options_read(int argc, char **argv, struct perf_options *options);

/* The size at @i, the one before it being @bytes; false after the last. */
bool perf_next_size(const struct perf_options *options, int i,
		    uint64_t *bytes);

/* ---- perf_lists.c ---- */

/* "auto", "ring", ...; the words of WREATH_ALGO. */
extern const char *const perf_algo_names[];
extern const char *const perf_op_names[WREATH_N_OPS + 1];

/* The options that are lists; the first rows of the options' table. */
enum perf_list { PERF_OPS, PERF_TYPES, PERF_ALGOS, PERF_SIZES, PERF_N_LISTS };

/* "ring,twoshot", "8,1K"; false when refused, which has been said then. */
bool perf_list_read(const struct bench_args *args, enum perf_list list,
		    const char *value, struct perf_options *options);

/* ---- perf_number.c: types by nccl-tests' names, elements as doubles ---- */

struct perf_type {
	const char *name;
	const char *other; /* another name for it, or NULL */
	bool is_float, is_signed;
	/* Of a float: widths of its fields, its exponent's bias. */
	int exponent, mantissa, bias;
};

extern const struct perf_type perf_types[WREATH_N_TYPES];

/* A double in the range of a float @type, rounded to nearest even. */
void perf_encode(enum wreath_type type, double value, void *element);
double perf_decode(enum wreath_type type, const void *element);
/* How many representable values two floats are apart; a NaN is far off. */
uint64_t perf_distance(enum wreath_type type, const void *a, const void *b);

/* ---- perf_pattern.c ---- */

struct perf_pattern;

struct perf_check {
	int64_t wrong;	/* elements */
	uint64_t first; /* the first of them */
	double got, want;
	bool is_input; /* not the result: the input was changed */
};

/* What @rank gives and what must come out; NULL without memory. */
struct perf_pattern *perf_pattern_new(enum wreath_type type, enum wreath_op op,
				      int rank, int n_ranks);
void perf_pattern_free(struct perf_pattern *pattern);
void perf_pattern_fill(const struct perf_pattern *pattern, void *buffer,
		       uint64_t count);
/* Compare every element, with the result or with the input as it was. */
void perf_pattern_check(const struct perf_pattern *pattern, bool is_input,
			const void *buffer, uint64_t count,
			struct perf_check *check);

/* ---- events: what rank 0 tells the report ---- */

struct perf_place {
	int rank;
	int pid;
	char host[64];
	char device[128];
};

struct perf_times {
	double min, avg, p50, p99, max; /* us, of the slowest rank each time */
	double cv; /* standard deviation over mean, in percent */
};

struct perf_result {
	int algo; /* of perf_algo_names */
	int used; /* the algorithm that "auto" means here */
	enum wreath_type type;
	enum wreath_op op;
	uint64_t bytes, count;
	bool in_place;
	int64_t n_iters;
	struct perf_times us;
	bool is_checked;
	int wrong_rank;
	struct perf_check check; /* of all ranks; the first of @wrong_rank */
};

enum perf_event_kind {
	PERF_PLACE,  /* a rank has joined */
	PERF_ALGO,   /* all have: the sweep begins */
	PERF_BEGIN,  /* a measurement begins: only the key of @result is set */
	PERF_RESULT, /* and is done */
};

/* Smaller than PIPE_BUF, so that it passes a pipe in one piece. */
struct perf_event {
	enum perf_event_kind kind;
	union {
		struct perf_place place;
		struct perf_result result;
	};
};

struct perf_report;

/* Where rank 0 sends events: a pipe, or, where @fd is -1, the report. */
struct perf_sink {
	int fd;
	struct perf_report *report;
};
void perf_emit(const struct perf_sink *sink, const struct perf_event *event);

/* ---- perf_team.c ---- */

/* Iterations that are timed one by one, at most. */
#define PERF_SAMPLES 4096
/* Bytes of a record of perf_team_gather(). */
#define PERF_RECORD_MAX 256

/* In memory that forked ranks share with each other and their parent. */
struct perf_page {
	struct wreath_unique_id id;
	_Atomic int has_id;
	_Atomic int is_interrupted;
	_Atomic int failing; /* 1: a rank writes the failure, 2: it is there */
	int fail_rank, fail_code;
	char fail_text[2048];
	_Atomic int must_stop; /* a rank has failed: wait for nobody */
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

/* ---- perf_loop.c ---- */

/* All that a measurement needs. */
struct perf_cell {
	const struct perf_options *options;
	struct perf_team *team;
	struct wreath_comm *comm;
	struct wreath_stream *stream; /* NULL: blocking */
	const struct perf_pattern *pattern;
	void *send, *recv;
	enum wreath_type type;
	enum wreath_op op;
	uint64_t count;
	bool in_place;
	double *samples; /* [PERF_SAMPLES] */
	struct perf_check *checks; /* [n_ranks] */
};

enum perf_outcome {
	PERF_DONE,
	PERF_STOPPED, /* all ranks agree to stop: interrupted */
	PERF_BROKEN,  /* an error, which has been kept in the team */
};

/* Measure and check; @result's times, iterations and check are set. */
enum perf_outcome perf_measure(struct perf_cell *cell,
			       struct perf_result *result);

/* ---- perf_rank.c ---- */

struct perf_job {
	const struct perf_options *options;
	struct perf_sink sink; /* rank 0's */
	int rank;	       /* of n_procs * n_threads; -1: found by */
	struct perf_page *page; /* the library in the environment */
};

/* The whole of a rank.  Returns an exit status. */
int perf_rank(const struct perf_job *job);

/* ---- perf_local.c, perf_launched.c ---- */

/* Fork the ranks, and mind them; returns the exit status. */
int perf_local(const struct perf_options *options, struct perf_report *report);
/* Be one rank of those that a launcher started. */
int perf_launched(const struct perf_options *options,
		  struct perf_report *report);

/* ---- perf_report.c ---- */

struct perf_report {
	const struct perf_options *options;
	int n_ranks;
	FILE *table; /* NULL: no table on standard output */
	FILE *json, *csv;
	struct perf_place *places;
	int n_places;
	struct perf_result *results;
	size_t n_results, max_results;
	bool is_row_open;  /* a row with its second half to come */
	bool has_progress; /* a line of progress stands on the terminal */
	bool is_interrupted;
	bool has_failed;   /* to write a file */
	int64_t n_wrong;
	int64_t n_measured;
	double sum_busbw;
	char error[2048]; /* "" if all went well */
};

/* False, and said why, when a file cannot be written. */
bool perf_report_open(const struct perf_options *options,
		      struct perf_report *report);
void perf_report_event(struct perf_report *report,
		       const struct perf_event *event);
/* Footer, files, plots.  Returns BENCH_OK, BENCH_WRONG or BENCH_FAILED. */
int perf_report_close(struct perf_report *report);

double perf_algbw(const struct perf_result *result);
double perf_busbw(const struct perf_result *result, int n_ranks);
/* The name of the algorithm that ran. */
const char *perf_result_algo(const struct perf_result *result);

/* ---- perf_export.c, perf_plot.c ---- */

void perf_write_json(const struct perf_report *report, FILE *to);
void perf_write_csv(const struct perf_report *report, FILE *to);
/* False, and said why, when there is no plot. */
bool perf_plot(const struct perf_report *report, const char *path);

#endif
