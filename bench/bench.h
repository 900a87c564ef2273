/* SPDX-License-Identifier: MIT */
/*
 * bench: the workbench, the `wreath` command.  One file a subcommand; this
 * header is what they share: the table's row, options and their help, words.
 *
 * Here printf and malloc are plain, as in any program.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>

#include "base/base.h"

/* How a subcommand ends where nothing more special is said; nccl-tests' too. */
enum bench_exit {
	BENCH_OK = 0,
	BENCH_FAILED = 1,
	BENCH_WREATH = 3,	/* the library returned an error */
	BENCH_TIMEOUT = 4,
	BENCH_USAGE = 6,
	BENCH_WRONG = 7, /* a wrong result, or too slow by --min-busbw */
};

/* @argv[0] is the subcommand's own name.  Returns the exit status. */
int run_main(int argc, char **argv);
int perf_main(int argc, char **argv);
/* "all_gather" for a program of the name all_gather_perf, else NULL. */
const char *perf_called_as(const char *program);
int info_main(int argc, char **argv);
int schedule_main(int argc, char **argv);
int sim_main(int argc, char **argv);
int plan_main(int argc, char **argv);
int gpu_main(int argc, char **argv);

/* ---- option.c ---- */

/* What an option's value is, and what it is stored as. */
enum bench_kind {
	BENCH_OTHER,  /* is left to the caller */
	BENCH_FLAG,   /* bool, true; takes no value */
	BENCH_TEXT,   /* const char *, not empty */
	BENCH_INT,    /* int64_t, @min to @max */
	BENCH_SIZE,   /* uint64_t of bytes, @min to @max */
	BENCH_NUMBER, /* double, @min to @max */
	BENCH_WORD,   /* int, its place in @words */
};

struct bench_option {
	char letter;	   /* 0: has none */
	const char *name;  /* without its dashes; NULL ends a table */
	const char *value; /* what the value is called in help, NULL: none */
	const char *help;  /* one sentence, without a full stop */
	enum bench_kind kind;
	size_t offset; /* of the variable in the target */
	int64_t min, max;
	const char *const *words; /* NULL ends them */
};

/* A command line being read; the caller fills all but @at and @rest. */
struct bench_args {
	const char *command; /* "wreath run", for messages */
	const struct bench_option *options;
	int argc;
	char **argv;
	int at;	   /* the next word to read; 0 at first, skips argv[0] */
	bool rest; /* -- was seen: only operands follow */
};

enum {
	BENCH_END = -1,	    /* nothing is left */
	BENCH_OPERAND = -2, /* *value is a word that is no option */
	BENCH_HELP = -3,    /* -h or --help */
	BENCH_BAD = -4,	    /* refused; the reason is on stderr */
};

/*
 * Store options into @target up to one of BENCH_OTHER, whose place in the
 * table is returned with its *value, or up to what the negative numbers above
 * say.  -n4, -n 4, --iters 4 and --iters=4 are alike.
 */
int bench_read(struct bench_args *args, void *target, const char **value);

/* "wreath run: text" on stderr, and BENCH_BAD. */
int bench_refuse(const struct bench_args *args, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), cold));

/*
 * The place of @value in @words, or BENCH_BAD, said with the nearest; @what is
 * the option or the operand, such as "--algo".
 */
int bench_word(const struct bench_args *args, const char *what,
	       const char *value, const char *const *words);

/* The usage line, what the command does, and the options' table. */
void bench_usage(FILE *to, const char *usage, const char *text,
		 const struct bench_option *options);

/* The word of @words (NULL ends) that @word is a slip of, or NULL. */
const char *bench_nearest(const char *word, const char *const *words);

/* ---- gnuplot.c ---- */

struct bench_plot {
	const char *command;  /* "wreath perf", for messages */
	const char *path;     /* "-" is the terminal */
	const char *fallback; /* the script is FALLBACK.gp without gnuplot */
	/* Write the script, with its data. */
	void (*put)(const void *arg, FILE *to, const char *path);
	const void *arg;
};

/*
 * Draw; false, with the reason on stderr, if that failed.  Without gnuplot the
 * script is left in a file.
 */
bool bench_plot(const struct bench_plot *plot);

/* The script's beginning: the terminal, a logarithmic axis of bytes. */
void bench_plot_start(FILE *to, const char *path);

/* ---- nodes.c ---- */

/*
 * "2" cuts @n ranks into two nodes, as even as can be, "3,5" into nodes of 3
 * and 5: the number of each rank's node into @nodes [n].  0, or BENCH_BAD.
 */
int bench_nodes(const struct bench_args *args, const char *text, int n,
		int *nodes);

/* ---- text.c ---- */

/* As a JSON string, quoted and escaped; other than ASCII is left as it is. */
void bench_json_string(FILE *to, const char *text);

/* "SIGSEGV", or "signal 99" kept in a static buffer. */
const char *bench_signal_name(int number);

/* "0.1.0" */
const char *bench_version(void);

#endif
