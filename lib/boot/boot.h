/* SPDX-License-Identifier: MIT */
/*
 * boot: how ranks find each other, before there is any queue pair, and how
 * they learn that one of them has died.
 *
 * A root listens at the address in the unique id.  Each rank proves that it
 * knows the secret (mutual HMAC over nonces), is told its place in a tree of
 * TCP connections, and keeps the tree open: records are gathered over it,
 * failures are spread over it, and its breaking is how a death is seen.  One
 * thread per communicator serves the tree.
 *
 * This room must never know verbs or buffers.  A struct boot may be used by
 * one thread at a time, but for boot_fail() and boot_failure(), which any
 * thread may call at any time.
 */
#ifndef BOOT_H
#define BOOT_H

#include "base/base.h"

struct boot;

/* Longest record of boot_all_gather() and message of boot_send(), in bytes. */
#define BOOT_RECORD_MAX 4096

/*
 * Make an id and serve it from a thread of this process: until @n_rounds
 * communicators have been made with it (0: without end, to the end of the
 * process), or until WREATH_JOIN_TIMEOUT has passed since the last rank came.
 * @ifname "" chooses: loopback only if that is all there is, else the first
 * interface with an address; "lo" keeps strangers from other hosts out.
 */
int boot_root_start(const char *ifname, int n_rounds,
		    struct wreath_unique_id *id);

/* The id as 256 lower-case digits, as WREATH_COMM_ID takes it. */
void boot_id_to_hex(const struct wreath_unique_id *id, char hex[257]);

/*
 * The value of WREATH_COMM_ID: 256 hexadecimal digits, or @FILE with them.
 * WREATH_EINVAL also for a file that others could read or have written.
 */
int boot_id_parse(const char *text, struct wreath_unique_id *id);

/* Who am I?  Found by boot_discover(). */
struct boot_place {
	struct wreath_unique_id id;
	int rank;
	int n_ranks;
	char found_by[64]; /* "WREATH_RANK", "torchrun", "PMI-1", ... */
};

/*
 * Find id, rank and number of ranks in the environment; the first that is
 * there wins, in this order: WREATH_COMM_ID with WREATH_RANK and
 * WREATH_N_RANKS, torchrun, PMI-1, Open MPI, one rank alone.  Rank 0 starts
 * the root where nobody else has.
 */
int boot_discover(const struct base_env *env, struct boot_place *place);

struct boot_args {
	const struct wreath_unique_id *id;
	int rank, n_ranks;
	int64_t join_timeout_ms;
	int64_t timeout_ms;
	/*
	 * Settings that must be the same on every rank, in words such as
	 * "channels=2 slots=4", at most 63 characters; a difference is
	 * WREATH_EMISMATCH and shows both.  May be NULL.
	 */
	const char *config;
	/*
	 * Called by boot's thread when the communicator has failed, once; it
	 * must not block and must not call boot.  May be NULL.
	 */
	void (*on_failure)(void *arg);
	void *on_failure_arg;
};

/*
 * Join.  Collective; blocks up to @join_timeout_ms.  The text of a failure
 * names the ranks that are missing, or that disagree.
 */
int boot_open(const struct boot_args *args, struct boot **out);

/*
 * Say goodbye and free; NULL is allowed.  Other ranks see a rank that has left
 * in peace, not one that has died.
 */
void boot_close(struct boot *boot);

/*
 * Every rank gives @bytes (at most BOOT_RECORD_MAX, the same everywhere) and
 * gets all of them in order of rank in @all.  Collective; blocks up to the
 * deadline.  O(log n) rounds.
 */
int boot_all_gather(struct boot *boot, const void *mine, size_t bytes,
		    void *all);

/*
 * A message to one rank, routed over the tree; does not block for the peer.
 * Messages of one pair arrive in order.
 */
int boot_send(struct boot *boot, int peer, const void *record, size_t bytes);

/* The next message from @peer, which must have @bytes.  Blocks to the deadline. */
int boot_recv(struct boot *boot, int peer, void *record, size_t bytes);

/* A rank's own words for itself in messages: host, pid. */
struct boot_rank {
	char host[64];
	int pid;
};
const struct boot_rank *boot_rank(const struct boot *boot, int rank);

/* Why a communicator stopped; the first failure wins on each rank. */
struct boot_failure {
	int error;	/* enum wreath_error */
	int culprit;	/* the rank suspected, or -1 */
	char text[1536];
};

/*
 * Tell every rank that the communicator has failed, with the sentence to show
 * them.  Does not block.  The first failure that a rank hears of stays.
 */
void boot_fail(struct boot *boot, int error, int culprit, const char *text);

/* True once the communicator has failed; *out is then the failure.  Cheap. */
bool boot_failure(struct boot *boot, struct boot_failure *out);

/*
 * True when @rank has left by boot_close().  That is no failure by itself: it
 * is one for whoever still waits for the rank.
 */
bool boot_has_left(struct boot *boot, int rank);

#endif
