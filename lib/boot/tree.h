/* SPDX-License-Identifier: MIT */
/*
 * One rank's part of the tree: struct boot from inside.
 *
 * A thread per communicator serves the connections to the parent and the
 * children.  Everything below is under boot->lock, but for the words marked
 * atomic.  Calls of the user send by themselves as far as the sockets let
 * them; the thread does the rest, and all reading.
 */
#ifndef BOOT_TREE_H
#define BOOT_TREE_H

#include <pthread.h>
#include <stdatomic.h>

#include "auth.h"

/* A pair may have so many messages that the receiver has not taken yet. */
#define BOOT_WINDOW 64

/* Bytes of messages that may wait for one slow neighbour. */
#define BOOT_QUEUE_BYTES ((size_t)64 << 20)

/* Connections of ranks to be children, and of strangers, not proved yet. */
#define BOOT_N_GUESTS 16

/* Head and payload as they go out; shared by the links they leave by. */
struct boot_frame {
	int n_refs;
	struct boot_head head;
	size_t bytes;            /* of @data */
	struct boot_frame *next; /* in an inbox */
	unsigned char data[];    /* BOOT_HEAD_BYTES, then the payload */
};

struct boot_out {
	struct boot_out *next;
	struct boot_frame *frame;
};

enum boot_link_state {
	BOOT_LINK_WAITS, /* for the child to come, the parent to be reached */
	BOOT_LINK_CONNECTS,
	BOOT_LINK_PROVES,
	BOOT_LINK_UP,
	BOOT_LINK_CLOSED,
};

struct boot_link {
	enum boot_link_state state;
	int rank;
	int first, end; /* a child's subtree; empty for the parent */
	struct boot_rank name;
	int fd;

	/* Out: a queue whose first frame has gone up to @sent. */
	struct boot_out *out, **out_end;
	size_t sent;
	size_t message_bytes;
	struct boot_out failure; /* kept, so that a failure needs no memory */

	/* In: a head, then a payload straight to where it belongs. */
	unsigned char head_in[BOOT_HEAD_BYTES];
	size_t head_have;
	struct boot_head head;
	unsigned char *into;
	size_t left;
	struct boot_frame *frame;
};

struct boot_inbox {
	struct boot_frame *head, **end;
	int n_waiting;
	_Atomic bool any;
	int n_taken;  /* since the last credit went out */
	int n_unseen; /* of ours to this peer, not known to be taken */
};

/* In the order of coming, from all ranks. */
struct boot_notes {
	struct boot_frame *head, **end;
	int n_waiting;
	_Atomic bool any;
};

struct boot_gather {
	uint64_t sequence; /* of the one that is going on, or comes next */
	bool begun;        /* its @record_bytes and @up are there */
	bool mine_is_in;
	bool sent_up;
	bool child_is_in[BOOT_FAN_OUT];
	int64_t timeout_ms; /* of the caller that waits */
	size_t record_bytes;
	struct boot_frame *up;   /* the subtree's records */
	struct boot_frame *down; /* everyone's, being received */
	struct boot_frame *done; /* of @sequence - 1, until it is taken */
};

struct boot {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int rank, n_ranks;
	int64_t timeout_ms;
	int process; /* who made it: in a forked child there is no thread */
	struct boot_shape shape;
	struct boot_rank *ranks; /* written in boot_open() only */
	struct boot_addr *addrs; /* where ranks listen; as @ranks */

	/* The tree. */
	unsigned char secret[BOOT_SECRET_BYTES];
	unsigned char token[BOOT_TOKEN_BYTES];
	bool has_place; /* the root has told it: others wait for us there */
	struct boot_addr parent_at;
	struct boot_addr listens_at;
	int listener; /* to the end: survivors meet there, see survey.h */
	bool stands;  /* all children have come: nobody is let in */
	bool is_surveyed; /* the listener is the survey's meanwhile */
	int wake;                                 /* an eventfd */
	struct boot_link links[1 + BOOT_FAN_OUT]; /* the parent first */
	struct boot_auth parent_auth;
	struct {
		int fd;
		struct boot_auth auth;
	} guests[BOOT_N_GUESTS];
	uint64_t join_deadline_ns;
	uint64_t deaf_until_ns; /* no descriptor to accept with */

	struct boot_gather gather;
	struct boot_inbox *inboxes;
	struct boot_notes notes;
	_Atomic uint8_t *left; /* by rank; pairs with boot_has_left() */

	/* @failure is written once, before @has_failed is released. */
	_Atomic bool has_failed;
	struct boot_failure failure;
	struct boot_frame *failure_frame;
	void (*on_failure)(void *arg);
	void *on_failure_arg;
	boot_answer_fn *answer;
	void *answer_arg;
	int (*while_waiting)(void *arg);
	void *while_waiting_arg;
	bool callback_is_due;
	bool callback_runs;

	/* The end. */
	pthread_t thread;
	bool has_thread;
	bool closing;
	uint64_t tell_until_ns; /* once closing: when to give up the parent */
	_Atomic bool must_stop; /* set by exit(), without the lock */
	bool done;              /* the thread has closed everything */
	bool is_ghost;          /* nobody waits for the thread: it frees */
	struct boot *next_ghost;
	unsigned char scratch[16384];
};

/* All below: caller holds boot->lock, unless it says otherwise. */

/* ---- link.c ---- */

struct boot_frame *boot_frame_new(const struct boot_head *head);
unsigned char *boot_frame_payload(struct boot_frame *frame);
/* Change the head of a frame that has not been queued yet. */
void boot_frame_relabel(struct boot_frame *frame, enum boot_frame_type type);
void boot_frame_put(struct boot_frame *frame);

void boot_link_init(struct boot_link *link);
/* Closed for good; what was queued is dropped. */
void boot_link_close(struct boot_link *link);

/*
 * Queue one more reference of @frame on @link, where it is not closed; without
 * memory the communicator fails.
 */
void boot_link_queue(struct boot *boot, struct boot_link *link,
		     struct boot_frame *frame);

/* On all links but @except, which may be NULL. */
void boot_link_queue_all(struct boot *boot, const struct boot_link *except,
			 struct boot_frame *frame);

/* Send what the socket takes; false when the link has broken: @err is why. */
bool boot_link_flush(struct boot_link *link, int *err);

/* Flush all, and wake the thread for what is left. */
void boot_links_flush(struct boot *boot);

/* Read what there is; false when the link has ended: @err is why. */
bool boot_link_read(struct boot *boot, struct boot_link *link, int *err);

/* The link that leads to @rank, which is not this one. */
struct boot_link *boot_link_towards(struct boot *boot, int rank);

/* True where @rank lies behind @link. */
bool boot_link_leads_to(const struct boot *boot, const struct boot_link *link,
			int rank);

/* ---- frames in: each checks the head, and says where the payload goes ---- */

/*
 * A frame begins on @link.  True: link->into has room for link->left bytes, if
 * there are any.  False: it is no frame that may come here now.
 */
bool boot_frame_begins(struct boot *boot, struct boot_link *link);
/* The payload is complete. */
void boot_frame_ends(struct boot *boot, struct boot_link *link);

bool boot_gather_up_begins(struct boot *boot, struct boot_link *link);
void boot_gather_up_ends(struct boot *boot, struct boot_link *link);
bool boot_gather_down_begins(struct boot *boot, struct boot_link *link);
void boot_gather_down_ends(struct boot *boot, struct boot_link *link);
void boot_gather_release(struct boot *boot);
/* boot_all_gather() with a deadline of its own; takes the lock itself. */
int boot_gather_within(struct boot *boot, int64_t timeout_ms, const void *mine,
		       size_t bytes, void *all);

bool boot_message_begins(struct boot *boot, struct boot_link *link);
void boot_message_ends(struct boot *boot, struct boot_link *link);
bool boot_credit_arrives(struct boot *boot, struct boot_link *link);
void boot_message_release(struct boot *boot);
/* Why nothing can go to @peer, or 0. */
int boot_check_way(struct boot *boot, int peer);

/* A note for this rank, complete. */
void boot_note_arrives(struct boot *boot, struct boot_frame *frame);
/* An ask for this rank, complete; boot's thread only. */
void boot_ask_arrives(struct boot *boot, struct boot_frame *frame);
void boot_notes_release(struct boot *boot);

bool boot_failure_begins(struct boot *boot, struct boot_link *link);
void boot_failure_ends(struct boot *boot, struct boot_link *link);
bool boot_leave_arrives(struct boot *boot, struct boot_link *link);

/* ---- fail.c ---- */

/* The first one stays, and is queued for everybody else. */
void boot_fail_locked(struct boot *boot, int error, int culprit,
		      const char *fmt, ...)
	__attribute__((format(printf, 4, 5), cold));

/* The neighbour's connection broke with the negative errno @err. */
void boot_link_died(struct boot *boot, struct boot_link *link, int err);

/* Queue that this rank leaves. */
void boot_leave(struct boot *boot);

/* The error of a failure that has happened, its text kept for this thread. */
int boot_failed_again(struct boot *boot);

/*
 * Lock; and unlock, calling on_failure first where it is due, without the
 * lock.
 */
void boot_lock(struct boot *boot);
void boot_unlock(struct boot *boot);

/*
 * Sleep until something has changed or @deadline_ns: false when that has
 * passed.
 */
bool boot_sleep(struct boot *boot, uint64_t deadline_ns);

/*
 * The same for a call of the user, with boot->while_waiting called meanwhile,
 * without the lock; *err is what that returned.
 */
bool boot_wait(struct boot *boot, uint64_t deadline_ns, int *err);

/* "rank 3 (host a, pid 17)"; before the names are known, "rank 3". */
void boot_name(const struct boot *boot, int rank, char text[128]);

/* ---- connect.c: the tree comes up; boot's thread only ---- */

/* Begin to connect to the parent, where that is due. */
void boot_parent_try(struct boot *boot);
/* The connection to the parent can go on. */
void boot_parent_step(struct boot *boot, struct boot_link *link);
/* Somebody knocks; once the tree stands, they learn that we live. */
void boot_guests_let_in(struct boot *boot);
/* Somebody who has come, a child or a stranger, can go on. */
void boot_guest_step(struct boot *boot, int i);

/* ---- serve.c ---- */

void *boot_serve(void *boot);

/* ---- join.c: no lock, before there is a thread ---- */

/*
 * Come to the root and be told a place.  Fills the token, the parent's
 * address, the neighbours' names, and opens the listener.  It may do so and
 * still return an error, where the caller gives up at that moment.
 */
int boot_join(struct boot *boot, const struct boot_args *args,
	      const struct boot_id *id);

/* ---- close.c ---- */

void boot_free(struct boot *boot);

/* The thread of a ghost is at its end: free it.  Does not hold the lock. */
void boot_ghost_ends(struct boot *boot);

#endif
