/* SPDX-License-Identifier: MIT */
/*
 * base: what every room stands on: errors, log, settings, clock, memory,
 * checked arithmetic.
 *
 * It must never know what a rank, a queue pair or a schedule is.  Any thread
 * may call anything here.
 */
#ifndef BASE_H
#define BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wreath.h"

#define base_likely(x) __builtin_expect(!!(x), 1)
#define base_unlikely(x) __builtin_expect(!!(x), 0)
#define base_countof(a) (sizeof(a) / sizeof((a)[0]))

/* A cache line of every machine we know; shared words live one to a line. */
#define BASE_LINE 64

/*
 * For our own mistakes, in release builds too; never for a user's input, and
 * never with a side effect.
 */
#define wreath_assert(cond)                                                    \
	((cond) ? (void)0 : base_assert_failed(#cond, __FILE__, __LINE__))
_Noreturn void base_assert_failed(const char *cond, const char *file, int line);

/* ---- errors: error.c ---- */

/*
 * Keep the sentence for wreath_error_text() of this thread, log it at level
 * info, and return @error.  Called once per failure, by the room that knows
 * the cause; the rooms above only pass the number on.
 */
int base_error(int error, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), cold));

/* The same sentence kept again: for a failure found by another thread. */
int base_error_again(int error, const char *text) __attribute__((cold));

const char *base_error_text(void);

/* "float32", "sum"; never NULL.  names.c */
const char *base_type_name(unsigned int type);
const char *base_op_name(unsigned int op);

enum base_log_level {
	BASE_LOG_OFF,
	BASE_LOG_ERROR,
	BASE_LOG_WARN,
	BASE_LOG_INFO,
	BASE_LOG_DEBUG,
};

/* To stderr, one write a line: "wreath: [pid] warn: text". */
void base_log(enum base_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), cold));
void base_log_level_set(enum base_log_level level);

/* ---- settings: env.c, the only reader of the environment ---- */

enum base_env_name {
	BASE_ENV_ALGO,
	BASE_ENV_ARRIVAL,
	BASE_ENV_CHANNELS,
	BASE_ENV_COMM_ID,
	BASE_ENV_CONNECT,
	BASE_ENV_GID_INDEX,
	BASE_ENV_GPU,
	BASE_ENV_GPU_DIRECT,
	BASE_ENV_GPU_IMAGE,
	BASE_ENV_GPU_IPC,
	BASE_ENV_GPU_REDUCE,
	BASE_ENV_HCA,
	BASE_ENV_JOIN_TIMEOUT,
	BASE_ENV_LOG,
	BASE_ENV_NODE,
	BASE_ENV_N_RANKS,
	BASE_ENV_PKEY,
	BASE_ENV_QP_TIMEOUT,
	BASE_ENV_RANK,
	BASE_ENV_SL,
	BASE_ENV_SLOTS,
	BASE_ENV_SLOT_BYTES,
	BASE_ENV_SOCKET_IFNAME,
	BASE_ENV_SOFT,
	BASE_ENV_SOFT_FAULTS,
	BASE_ENV_SPIN,
	BASE_ENV_TIMEOUT,
	BASE_ENV_TRAFFIC_CLASS,
	BASE_ENV_TUNING,
	BASE_N_ENV,
};

enum base_env_kind {
	BASE_ENV_INT,
	BASE_ENV_SIZE,	   /* bytes: 4096, 64K, 1M (binary) */
	BASE_ENV_DURATION, /* milliseconds: 500ms, 30s, 2m; bare is seconds */
	BASE_ENV_ENUM,	   /* one word of @words, its position is the value */
	BASE_ENV_STRING,
};

struct base_env_var {
	const char *name; /* "WREATH_TIMEOUT" */
	enum base_env_kind kind;
	const char *fallback; /* the default, as the user would write it */
	int64_t min, max;     /* in units of the value, inclusive */
	const char *words;    /* BASE_ENV_ENUM: "auto ring direct" */
	const char *help;     /* one sentence, for the man page and the table */
};

/* The one table, BASE_N_ENV long, in the order of enum base_env_name. */
const struct base_env_var *base_env_table(void);

/* A reading of the environment: a value, not a global. */
struct base_env {
	int64_t value[BASE_N_ENV];	 /* numbers, durations in ms, enums */
	char text[BASE_N_ENV][512];	 /* as written, or the default */
	bool is_set[BASE_N_ENV];
};

/*
 * Read every WREATH_* variable.  A bad value is WREATH_EINVAL and names the
 * variable, the value and the range; an unknown WREATH_* variable is warned
 * about once per process, with the nearest name.
 */
int base_env_load(struct base_env *env);

/*
 * A foreign variable, such as PMI_RANK: NULL when unset, or when the process
 * runs set-uid.
 */
const char *base_env_foreign(const char *name);

/* A whole decimal number within [min, max]; false for anything else. */
bool base_parse_int(const char *text, int64_t min, int64_t max, int64_t *out);

/* 4096, 64K, 1M, 2G (binary); false for anything else or an overflow. */
bool base_parse_size(const char *text, uint64_t *out);

/* 500ms, 30s, 2m or bare seconds, to milliseconds. */
bool base_parse_duration(const char *text, int64_t *out_ms);

/*
 * Levenshtein's distance of two words, for 'did you mean'; words of more than
 * 63 characters are far from all.
 */
unsigned int base_distance(const char *a, const char *b);

/* ---- clock, randomness, memory: sys.c ---- */

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t base_now_ns(void);

/* Sleep; for slow paths only. */
void base_sleep_ms(unsigned int ms);

/* Fill with unpredictable bytes.  Never fails: without them we must stop. */
void base_random(void *out, size_t bytes);

/*
 * Zeroed memory, aligned to a cache line; NULL when there is none, and then
 * the error text is set (WREATH_ENOMEM).  Freed by base_free(), NULL allowed.
 */
void *base_alloc(size_t n, size_t bytes) __attribute__((malloc));
void base_free(void *ptr);

/* The @n-th base_alloc() from now fails; 0 turns it off.  For tests. */
void base_alloc_fail_at(uint64_t n);

/* True when a * b overflows; *out is written otherwise. */
static inline bool base_mul_overflows(size_t a, size_t b, size_t *out)
{
	return __builtin_mul_overflow(a, b, out);
}

static inline size_t base_min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline size_t base_round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static inline void base_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

#endif
