/* SPDX-License-Identifier: MIT */
/*
 * The parts of `wreath perf`.
 *
 * A rank (perf_rank.c) measures (perf_loop.c) calls (perf_call.c) on vectors
 * with known contents (perf_pattern.c), checks what came (perf_check.c), and
 * agrees with the other ranks by a team (perf_team.c); perf_measure.h is what
 * these share.  Rank 0 sends what happens as events to the report
 * (perf_report.c): through a pipe to the parent where the ranks were forked
 * (perf_local.c), so that what is done is shown also when ranks die; by a call
 * where a launcher started us.
 */
#ifndef PERF_H
#define PERF_H

#include "bench/bench.h"
#include "sched/sched.h"

#define PERF_RANKS_MAX 512
#define PERF_ALGOS_MAX (1 + SCHED_N_ALGOS) /* and "auto" */
#define PERF_SIZES_MAX 64
/* Larger than any machine's memory; sums of a few of them still fit. */
#define PERF_BYTES_MAX (1ll << 50)

/* ---- perf_collective.c ---- */

enum perf_kind {
	PERF_ALL_REDUCE,
	PERF_REDUCE,
	PERF_BROADCAST,
	PERF_REDUCE_SCATTER,
	PERF_ALL_GATHER,
	PERF_GATHER,
	PERF_SCATTER,
	PERF_ALL_TO_ALL,
	PERF_SENDRECV, /* every rank to the next, and from the one before */
	PERF_BARRIER,
	PERF_REDUCE_SCATTER_V, /* blocks of uneven lengths, */
	PERF_ALL_GATHER_V,     /* which are drawn by the size */
	PERF_ALL_TO_ALL_V,
	PERF_OVERLAP, /* all-reduce in buckets beside a computation */
	PERF_N_KINDS,
};

struct perf_collective {
	const char *name;
	const char *other; /* nccl-tests' name where it differs, or NULL */
	enum sched_collective sched;
	bool sends_blocks, recvs_blocks; /* one a rank, where the root is */
	bool has_in_place;
	bool has_lists; /* of lengths */
};

extern const struct perf_collective perf_collectives[PERF_N_KINDS];

/* "all_gather", "alltoall"; BENCH_BAD when refused, which has been said. */
int perf_kind_read(const struct bench_args *args, const char *word);
/* "alltoall_perf", as nccl-tests calls it. */
void perf_program(enum perf_kind kind, char *out, size_t size);
/* Does a size consist of a block for each rank? */
bool perf_has_blocks(enum perf_kind kind);
bool perf_is_reducing(enum perf_kind kind);
bool perf_is_rooted(enum perf_kind kind);

/* ---- perf_options.c ---- */

enum perf_buffers {
	PERF_ALLOC,    /* wreath_mem_alloc() */
	PERF_MALLOC,   /* malloc() */
	PERF_REGISTER, /* malloc() and wreath_mem_register() */
};

/* Where buffers are. */
enum perf_memory_kind {
	PERF_HOST,
	PERF_GPU,
	PERF_MANAGED,
	PERF_MIXED, /* on a GPU of ranks of even number, else on the host */
};

enum perf_halves {
	PERF_BOTH,
	PERF_OUT, /* out of place only */
	PERF_IN,
};

#define PERF_ALL_ROOTS (-1)

struct perf_options {
	enum perf_kind kind;
	int64_t root; /* of rooted collectives, or PERF_ALL_ROOTS */
	uint64_t min_bytes, max_bytes;
	uint64_t step_bytes; /* 0: by factor */
	int64_t step_factor;
	uint64_t sizes[PERF_SIZES_MAX]; /* instead of all these */
	int n_sizes;
	bool types[WREATH_N_TYPES];
	bool ops[WREATH_N_OPS];
	int algos[PERF_ALGOS_MAX]; /* of perf_algo_names */
	int n_algos;
	bool all_algos; /* "all": those that there are, beside auto */
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
	int memory;	  /* enum perf_memory_kind */
	int64_t gpu;	  /* that all use, or -1: one after the other */
	int64_t blocking; /* on a GPU: without its stream */
	uint64_t unalign; /* bytes from a page's start to the buffers */
	bool touch;	  /* write the input before each operation */
	bool stream;	  /* by a stream, not blocking; always on a GPU */
	int halves;	  /* enum perf_halves */
	int per_iter;	  /* the columns of -I */
	uint64_t gradient; /* of overlap, in bytes; 0: a default */
	double compute_ms; /* of overlap; 0: as long as the communication */
	uint64_t buffer_bytes; /* of each buffer */
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

/* Set what was not given; 0, or BENCH_BAD. */
int perf_options_complete(const struct bench_args *args,
			  struct perf_options *options);

/* The size at @i, the one before it being @bytes; false after the last. */
bool perf_next_size(const struct perf_options *options, int i,
		    uint64_t *bytes);

/* ---- perf_lists.c ---- */

/* "auto", "ring", ...; the words of WREATH_ALGO. */
extern const char *const perf_algo_names[];
extern const char *const perf_op_names[WREATH_N_OPS + 1];
/* "host", "gpu", ...; the words of --memory. */
extern const char *const perf_memory_names[];

/* "gpu", "gpu:1", "managed"; false when refused, which has been said then. */
bool perf_memory_read(const struct bench_args *args, const char *value,
		      struct perf_options *options);

/* The options that are lists; the first rows of the options' table. */
enum perf_list { PERF_OPS, PERF_TYPES, PERF_ALGOS, PERF_SIZES, PERF_N_LISTS };

/*
 * Refuse algorithms that the collective has not, and leave them out of "all";
 * false when refused.
 */
bool perf_list_fit(const struct bench_args *args,
		   struct perf_options *options);

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

/* ---- events: what rank 0 tells the report ---- */

/* The operation of collectives that move and do not reduce. */
#define PERF_NO_OP WREATH_N_OPS

enum perf_fault {
	PERF_WRONG,   /* not what should have come */
	PERF_CHANGED, /* the input was changed */
	PERF_WRITTEN, /* where nothing should have come */
	PERF_EARLY,   /* a barrier let through before all had come */
};

struct perf_check {
	int64_t wrong;	/* elements */
	uint64_t first; /* the first of them, in its buffer */
	double got, want;
	enum perf_fault fault;
};

struct perf_place {
	int rank;
	int pid;
	int gpu; /* whose memory it uses, or -1 */
	char host[64];
	char device[128];
	char gpu_name[64]; /* its PCI address, and what it is */
};

struct perf_times {
	double min, avg, p50, p99, max; /* us, of the slowest rank each time */
	double cv; /* standard deviation over mean, in percent */
};

/* Of overlap: @bytes of its result are a bucket's. */
struct perf_overlap {
	uint64_t gradient; /* bytes */
	int64_t n_buckets;
	double compute_us, comm_us; /* each alone */
	double both_us;
};

struct perf_result {
	enum perf_kind kind;
	int algo; /* of perf_algo_names */
	int used; /* the algorithm that "auto" means here */
	enum wreath_type type;
	int op;	  /* enum wreath_op, or PERF_NO_OP */
	int root; /* -1: has none */
	uint64_t bytes, count;
	bool in_place;
	int64_t n_iters;
	struct perf_times us;
	/* By the model of costs, where auto was asked for; 0: unknown. */
	double predicted_us[SCHED_N_ALGOS];
	struct perf_overlap overlap;
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
struct perf_page;

/* Where rank 0 sends events: a pipe, or, where @fd is -1, the report. */
struct perf_sink {
	int fd;
	struct perf_report *report;
};
void perf_emit(const struct perf_sink *sink, const struct perf_event *event);

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
/* The name of the algorithm that ran; of type and operation, or "none". */
const char *perf_result_algo(const struct perf_result *result);
const char *perf_result_type(const struct perf_result *result);
const char *perf_result_op(const struct perf_result *result);

/* ---- perf_table.c: what goes to the table on standard output ---- */

void perf_table_head(const struct perf_report *report);
void perf_table_place(const struct perf_place *place);
void perf_table_columns(const struct perf_report *report, int algo);
void perf_table_result(struct perf_report *report,
		       const struct perf_result *result);
/* End a row whose second half will not come. */
void perf_table_end_row(struct perf_report *report);

/* ---- perf_overlap_table.c ---- */

/* Of the communication, what the computation hid, and what it could have. */
double perf_hidden(const struct perf_overlap *overlap);
double perf_hidden_ideal(const struct perf_overlap *overlap);
void perf_overlap_columns(void);
void perf_overlap_row(const struct perf_result *result);
/* The bucket size that took the least time. */
void perf_overlap_foot(const struct perf_report *report);
/* Members of a result's JSON object, and columns of its CSV line. */
void perf_overlap_json(const struct perf_result *result, FILE *to);
void perf_overlap_csv(const struct perf_report *report, FILE *to);

/* ---- perf_summary.c ---- */

/* The algorithms side by side, where there was more than one. */
void perf_summary(const struct perf_report *report);

/* ---- perf_export.c, perf_plot.c ---- */

void perf_write_json(const struct perf_report *report, FILE *to);
void perf_write_csv(const struct perf_report *report, FILE *to);
/* False, and said why, when there is no plot. */
bool perf_plot(const struct perf_report *report, const char *path);

#endif
