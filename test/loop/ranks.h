/* SPDX-License-Identifier: MIT */
/*
 * For the tests in this folder: n ranks, as processes or as threads of one
 * process, each of which runs a body and leaves its result in memory that it
 * shares with the test.
 *
 * The test's own process never calls wreath: it forks the ranks, or one
 * process that has all of them as its threads, watches over them, and looks at
 * what they leave behind.  Whatever happens a rank is killed by SIGALRM after
 * its seconds.
 */
#ifndef RANKS_H
#define RANKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <cmocka.h>

#include "wreath.h"
#include "test/loop/gpu.h"

#define RANKS_MAX 64
#define RANKS_IDS 8
#define RANKS_VALUES 8

/* A sanitizer slows everything down ... */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RANKS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RANKS_SANITIZED 1
#endif
#endif
#ifndef RANKS_SANITIZED
#define RANKS_SANITIZED 0
#endif

/* ... and so does another device: the tests do less of the same. */
#define RANKS_SLOW (RANKS_SANITIZED || ranks_have_device())

/* A t_x_long.c defines it and includes t_x.c: the same, more of it. */
#ifndef RANKS_LONG
#define RANKS_LONG 0
#endif

/* How often: when slow, in `make test`, in `make check`. */
#define RANKS_TIMES(few, some, many)                                           \
	(RANKS_LONG ? (RANKS_SLOW ? (some) : (many))                           \
		    : (RANKS_SLOW ? (few) : (some)))

enum ranks_mode {
	RANKS_PROCESSES,
	RANKS_THREADS,
};

/*
 * RANKS_ENV="WREATH_HCA=rxe0 ..." is how all of this folder runs on another
 * device: what a test does not set itself is set for its ranks.  What is about
 * the soft device stays on it.
 */
bool ranks_have_device(void);

/* What a body returns when the test itself found something wrong. */
#define RANKS_BROKEN (-100)

struct ranks;

struct rank {
	struct ranks *run;
	int rank, n_ranks;
	struct wreath_comm *comm; /* the harness joins and destroys it */
	const void *arg;
	unsigned int n_barriers; /* rank_barrier()'s own */
	unsigned int n_ids;	 /* rank_join()'s own */
};

/* 0, an error of wreath, or RANKS_BROKEN by rank_broken(). */
typedef int rank_body(struct rank *rank);

struct rank_result {
	_Atomic pid_t pid;
	_Atomic bool has_ended; /* the body has, and left this: */
	int code;
	double seconds;	 /* that the body took */
	char text[2048]; /* wreath_error_text(), or the complaint */
	_Atomic uint64_t values[RANKS_VALUES]; /* the test's own */
	int wait_status; /* of its process, after ranks_join() */
};

struct ranks_shared {
	struct rank_result results[RANKS_MAX];
	_Atomic unsigned int n_reached; /* rank_reach() */
	_Atomic unsigned int n_allowed; /* ranks_allow(), rank_await() */
	_Atomic unsigned int n_in_barrier;
	_Atomic unsigned int n_ids;
	struct wreath_unique_id ids[RANKS_IDS];
};

struct ranks {
	/* The test's. */
	int n;
	enum ranks_mode mode;
	rank_body *body;
	const void *arg;
	bool no_comm;  /* the body joins by itself */
	unsigned int seconds; /* 0: 60 */
	/* The harness's. */
	struct ranks_shared *shared;
	pid_t pids[RANKS_MAX];
	int n_fds;
	struct rank ranks[RANKS_MAX];
};

/* ---- in the test: ranks.c ---- */

/* Start, join, expect all well, end. */
void ranks_run(struct ranks *run);

void ranks_start(struct ranks *run);
/* Wait for the end of all; nobody and nothing may be left. */
void ranks_join(struct ranks *run);
/* Fail the test unless every rank's body returned 0. */
void ranks_expect_ok(const struct ranks *run);
/* ... unless @rank's body returned @code and its text holds @word. */
void ranks_expect(const struct ranks *run, int rank, int code,
		  const char *word);
void ranks_end(struct ranks *run);

/* Only where ranks are processes. */
void ranks_signal(struct ranks *run, int rank, int signal);
/* Wait until rank_reach() was called @n times in all. */
void ranks_await(struct ranks *run, unsigned int n);
/* Let rank_await(@n) return. */
void ranks_allow(struct ranks *run, unsigned int n);

/* SEED from the environment, or another one each time; printed. */
uint64_t ranks_seed(void);
/* splitmix64: every seed is good, 0 as well. */
uint64_t ranks_random(uint64_t *state);
/* A number in [low, high]. */
uint64_t ranks_between(uint64_t *state, uint64_t low, uint64_t high);

/* Settings of the ranks to come; taken back after every test. */
void ranks_set(const char *name, const char *value);
int ranks_clean(void **state);

double ranks_now(void);
/* Wait until *@at is @n or beyond; false when that takes too long. */
bool ranks_wait_for(const _Atomic unsigned int *at, unsigned int n);
void ranks_sleep_ms(unsigned int ms);
int ranks_n_fds(void);
/* Once no more than @most are left, or after 3 s: a thread that ends by itself
 * may hold some for a moment. */
int ranks_settled_fds(int most);
/* Of this process. */
long ranks_resident_kb(void);

/* ---- in a rank: rank.c ---- */

/* Join, run the body, leave, and keep the result. */
void rank_run(struct rank *rank);

/* Complain, and return RANKS_BROKEN. */
int rank_broken(struct rank *rank, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Rank 0 makes another id, and all join by it. */
int rank_join(struct rank *rank, struct wreath_comm **comm);
/* Rank 0 makes it; NULL when that failed. */
const struct wreath_unique_id *rank_id(struct rank *rank);

/* Wait for all ranks, without wreath; false when some do not come. */
bool rank_barrier(struct rank *rank);
void rank_reach(struct rank *rank);
bool rank_await(struct rank *rank, unsigned int n);

/*
 * Sum over @comm, whose ranks were @members, a bit each, in the communicator
 * that they came from: who is there, how many, and this rank's number.
 */
int rank_sums_members(struct rank *rank, struct wreath_comm *comm,
		      uint64_t members);

static inline struct rank_result *rank_result(struct rank *rank)
{
	return &rank->run->shared->results[rank->rank];
}

#endif
