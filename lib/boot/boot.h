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
 * The handshake keeps strangers out; it does not hide or protect what follows
 * it from who can read or alter packets between the hosts.
 *
 * This room must never know verbs or buffers.  A struct boot may be used by
 * one thread at a time, but for boot_fail(), boot_failure(), boot_has_left()
 * and boot_rank(), which any thread may call at any time.  In a child of
 * fork() a struct boot is of no use but to boot_close(), which then does
 * nothing.
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
 *
 * A round that failed does not count, and its failure is told once to each of
 * its ranks that comes later; one that comes again starts another round.
 * Errors: WREATH_EINVAL (interface, settings), WREATH_ENET, WREATH_ENOMEM.
 */
int boot_root_start(const char *ifname, int n_rounds,
		    struct wreath_unique_id *id);

/*
 * The same for one more communicator of ranks of @boot, which has more than
 * one: listens where those ranks have reached each other, and asks neither
 * environment nor interfaces.
 * Errors: WREATH_ENET, WREATH_ENOMEM.
 */
int boot_root_start_beside(const struct boot *boot, int64_t idle_ms,
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
 * the root where nobody else has.  Half of a launcher's variables is
 * WREATH_EINVAL and names what is missing.
 *
 * It may be called again for another communicator, in the same order on every
 * rank.  It blocks up to WREATH_JOIN_TIMEOUT, for rank 0's id to come.  With
 * one rank @place->id is all zero.
 *
 * Between hosts under torchrun the secret is derived from TORCHELASTIC_RUN_ID,
 * MASTER_ADDR and MASTER_PORT, and is as private as those are; WREATH_COMM_ID
 * carries a true one.
 */
int boot_discover(const struct base_env *env, struct boot_place *place);

struct boot_args {
	const struct wreath_unique_id *id;
	int rank, n_ranks;
	int64_t join_timeout_ms;
	int64_t timeout_ms; /* of boot_all_gather() and boot_recv() */
	/*
	 * Settings that must be the same on every rank, in words such as
	 * "channels=2 slots=4", at most 63 characters; a difference is
	 * WREATH_EMISMATCH and shows both.  May be NULL.
	 */
	const char *config;
	/*
	 * Called by boot's thread when the communicator has failed, once,
	 * and never after boot_close(); with one rank, which has no thread, by
	 * boot_fail().  It must not block, and of boot it may call
	 * boot_failure() only.  May be NULL.
	 */
	void (*on_failure)(void *arg);
	void *on_failure_arg;
	/*
	 * Called by boot_all_gather() and boot_recv() every now and then while
	 * they wait, by their thread, for what must go on meanwhile; they
	 * return its error at once.  It may not wait itself.  May be NULL.
	 */
	int (*while_waiting)(void *arg);
	void *while_waiting_arg;
	/*
	 * Called every now and then by boot_open(), by its thread, which
	 * returns the error that it gives within half a second, in which the
	 * other ranks are told; 0 goes on.  It sets the text, and may not wait
	 * itself.  May be NULL.
	 */
	int (*stopped)(void *arg);
	void *stopped_arg;
};

/*
 * Join.  Collective; blocks up to @join_timeout_ms, and where all have come at
 * its very end, for some seconds more.  The text of a failure names the ranks
 * that are missing, or that disagree.  With one rank there are no sockets and
 * no thread, and @id may be anything.
 * Errors: WREATH_EINVAL (rank or number of ranks, a rank claimed twice, a
 * stale id), WREATH_EMISMATCH (version, config), WREATH_ETIMEOUT,
 * WREATH_EPEER, WREATH_ENET, WREATH_ENOMEM.
 */
int boot_open(const struct boot_args *args, struct boot **out);

/*
 * Say goodbye and free; NULL is allowed.  Other ranks see a rank that has left
 * in peace, not one that has died.  Blocks for at most a twentieth of a
 * second, usually until all have closed.
 *
 * A rank that has closed goes on to carry the frames of others, from a thread
 * that stays behind until they have closed too; exit() waits up to 2 s for it.
 * When that process ends earlier than the rest, those whose way led through it
 * cannot reach each other any more, and get WREATH_EPEER where they try.
 */
void boot_close(struct boot *boot);

/*
 * Every rank gives @bytes (at most BOOT_RECORD_MAX, the same everywhere) and
 * gets all of them in order of rank in @all.  Collective; blocks up to the
 * deadline, and up to half a second more where others know better who is late.
 * O(log n) rounds.  With @bytes 0 it is a barrier, and both may be NULL.
 *
 * A rank that does not come in time fails the communicator for all: the text
 * names it.
 * Errors: WREATH_EINVAL, WREATH_EMISMATCH (other @bytes), WREATH_ETIMEOUT,
 * WREATH_EPEER (a rank has left), WREATH_ENOMEM, or the failure that happened.
 */
int boot_all_gather(struct boot *boot, const void *mine, size_t bytes,
		    void *all);

/*
 * A message to one rank, routed over the tree; does not block for the peer.
 * Messages of one pair arrive in order; @peer may be the rank itself.
 * Errors: WREATH_EAGAIN (@peer has not taken 64 messages of this rank yet: ask
 * again), WREATH_EINVAL, WREATH_EPEER (it has left), WREATH_ENOMEM, or the
 * failure that happened.
 */
int boot_send(struct boot *boot, int peer, const void *record, size_t bytes);

/*
 * The next message from @peer, which must have @bytes.  Blocks to the deadline,
 * and what it returns then is no failure of the communicator.
 * Errors: WREATH_ETIMEOUT, WREATH_EMISMATCH (another length: that message is
 * gone), WREATH_EINVAL, WREATH_EPEER (it has left), or the failure that
 * happened.
 */
int boot_recv(struct boot *boot, int peer, void *record, size_t bytes);

/*
 * The same without waiting: WREATH_EAGAIN, and no text, where no message of
 * @peer is there; one atomic load then, and no look at what has failed.
 */
int boot_recv_now(struct boot *boot, int peer, void *record, size_t bytes);

/*
 * A note to another rank, of at most BOOT_RECORD_MAX bytes; apart from
 * messages, and few: nobody counts them.  Does not block.  Those of one pair
 * arrive in order.  Errors: WREATH_EPEER (it has left), WREATH_ENOMEM, or the
 * failure that happened.
 */
int boot_note_send(struct boot *boot, int peer, const void *note, size_t bytes);

/*
 * Ask another rank; its boot's thread answers by a note, whatever the rank
 * itself is doing: @answer puts it into @reply, of BOOT_ANSWER_MAX bytes, and
 * returns its length, or 0 for no answer.  It may not block or call boot, and
 * the ask comes from the network.  After boot_answer_by(boot, NULL, NULL) it
 * runs no more.
 */
#define BOOT_ANSWER_MAX 256
typedef size_t boot_answer_fn(void *arg, const void *ask, size_t bytes,
			      void *reply);
void boot_answer_by(struct boot *boot, boot_answer_fn *answer, void *arg);
int boot_ask(struct boot *boot, int peer, const void *ask, size_t bytes);

/*
 * The next note from anybody, cut to @size; false where there is none.  One
 * atomic load then.
 */
bool boot_note_take(struct boot *boot, int *peer, void *note, size_t size,
		    size_t *bytes);

/* A rank's own words for itself in messages; valid until boot_close(). */
struct boot_rank {
	char host[64];
	int pid;
};
const struct boot_rank *boot_rank(const struct boot *boot, int rank);

/* Why a communicator stopped; the first failure wins on each rank. */
struct boot_failure {
	int error;   /* enum wreath_error */
	int culprit; /* the rank suspected, or -1 */
	char text[1536];
};

/*
 * Tell every rank that the communicator has failed, with the sentence to show
 * them.  Does not block.  The first failure that a rank hears of stays.  Calls
 * that wait return it, and so do all later ones.  @culprit may be -1.
 */
void boot_fail(struct boot *boot, int error, int culprit, const char *text);

/*
 * True once the communicator has failed; *out is then the failure.  One atomic
 * load while it has not.
 */
bool boot_failure(struct boot *boot, struct boot_failure *out);

/*
 * True when @rank has left by boot_close().  That is no failure by itself: it
 * is one for whoever still waits for the rank.  One atomic load.
 */
bool boot_has_left(struct boot *boot, int rank);

/*
 * Which ranks are left?  Called by every rank that lives, when some have died
 * or are to be left out, also where the tree has broken: ranks meet at the
 * addresses that they told each other when they joined, and prove themselves
 * as then.  The lowest that lives is the chair, and what it finds counts for
 * all: everyone else has come, or nobody is at home at its address any more.
 *
 * Then the survivors join by boot_survey_id(), as @rank of @n_ranks, and tell
 * each other by boot_survey_end() how that went; so all go on, or none does.
 *
 * Where the network falls in two, each half takes the other for dead.
 */
struct boot_survey;

struct boot_survey_args {
	const bool *left_out; /* [n_ranks], the same on every rank; not this */
	int64_t timeout_ms;   /* for all to come */
	int64_t idle_ms;      /* as of boot_root_start_beside() */
	/* As in struct boot_args; also asked by boot_survey_watch(). */
	int (*stopped)(void *arg);
	void *stopped_arg;
};

/*
 * Find out; blocks up to @timeout_ms and a second.  One thread, and one survey
 * at a time; nobody may close @boot meanwhile.  With one rank there is nobody
 * to ask.
 * Errors: WREATH_ETIMEOUT (names who lives but does not come), WREATH_EMISMATCH
 * (other ranks are left out elsewhere), WREATH_ENET, WREATH_ENOMEM, and what
 * @stopped gives.
 */
int boot_survey_start(struct boot *boot, const struct boot_survey_args *args,
		      struct boot_survey **out);

const struct wreath_unique_id *boot_survey_id(const struct boot_survey *survey,
					      int *rank, int *n_ranks);

/*
 * For struct boot_args: WREATH_EPEER once a survivor is seen to have died, or
 * to have failed; @survey is a struct boot_survey.
 */
int boot_survey_watch(void *survey);

/*
 * This rank has joined the survivors, which made @joined, or failed with @err
 * and its text.  0 when all have joined, if one has died since then or not;
 * WREATH_EAGAIN when one died before, or all are to survey once more for
 * another reason, told by the text; else the error of all.  Blocks up to
 * @timeout_ms.  @survey is gone afterwards.
 */
int boot_survey_end(struct boot_survey *survey, int64_t timeout_ms, int err,
		    const struct boot *joined);

#endif
