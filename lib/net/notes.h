/* SPDX-License-Identifier: MIT */
/*
 * A way to the other ranks that does not lead over queue pairs, for the time
 * in which one is broken.  Part of net's door.
 */
#ifndef NET_NOTES_H
#define NET_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an operation is; both ends of a link compare. */
struct net_sign {
	uint64_t seq;
	uint64_t count; /* where @is_ragged: a hash of the lists */
	uint32_t collective;
	uint32_t type;
	uint32_t op;
	uint32_t algo;
	uint32_t root;
	uint32_t is_ragged; /* a v-form: blocks of different lengths */
};

/*
 * Find the ports that may be used.  Where none is active, waits for one to
 * come up: up to a twelfth of WREATH_JOIN_TIMEOUT.
 */
struct net_notes {
	/* Send a note.  Does not block; 0 or an error. */
	int (*send)(void *arg, int peer, const void *note, size_t bytes);
	/* The same, for net_answer() at the other rank. */
	int (*ask)(void *arg, int peer, const void *note, size_t bytes);
	/* The next note from anybody, cut to @size; false: there is none. */
	bool (*take)(void *arg, int *peer, void *note, size_t size,
		     size_t *bytes);
	void *arg;
};

struct net;
struct net_conn;

/* Log what the devices have reported.  A system call; not for a data path. */
void net_events(struct net *net);

/*
 * To be called now and then by whoever waits, net_poll() alone does not do it:
 * hear of ports that have gone down or come up, and put connections to the
 * test that may have broken without a word.  0 or the error that broke the net.
 */
int net_watch(struct net *net);

/*
 * Tell the peers whose memory is mapped, those of this host, that this rank has
 * failed, and why: the network may not tell them.  Once; later calls do
 * nothing.
 */
void net_fail_tell(struct net *net, int error, const char *text);
/* 0, or the error that such a peer has told a moment ago, with its text set. */
int net_fail_heard(struct net *net);

/* A deadline has passed: 0, or the error of what is broken and not mended. */
int net_overdue(struct net *net);

/*
 * For a peer that asks by a note: the answer to @ask, of at most 128 bytes;
 * its length, or 0.  Any thread may call, until net_close().
 */
size_t net_answer(const struct net *net, const void *ask, size_t bytes,
		  void *reply);

/*
 * READ the signature that @conn's peer had for operation @seq.  Blocks up to
 * @timeout_ms.  WREATH_EAGAIN: no answer, or it has not come that far;
 * otherwise 0, and sign->seq tells which operation the entry is of.
 */
int net_sign_read(struct net_conn *conn, uint64_t seq, int timeout_ms,
		  struct net_sign *sign);

/* Post the signature of our operation for the peers to READ. */
void net_sign_post(struct net *net, const struct net_sign *sign);

#endif
