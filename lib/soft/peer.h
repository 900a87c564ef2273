/* SPDX-License-Identifier: MIT */
/* Other contexts, and the control thread that speaks with them. */
#ifndef SOFT_PEER_H
#define SOFT_PEER_H

#include <sys/socket.h>
#include <sys/un.h>

#include "soft/device.h"

/* A region of a peer in another process, as mapped here. */
struct soft_mapping {
	struct soft_mapping *next;
	uint64_t id;
	size_t bytes;
	char *base; /* NULL: asked for */
};

/* Another context, of this process or not. */
struct soft_peer {
	struct soft_peer *next;
	struct soft_address address;
	uint64_t id;
	struct soft_segment *seg;
	struct soft_held *held; /* of a peer in this process, else NULL */
	int fd;			   /* to a far one's control thread, or -1 */
	int pid;
	_Atomic bool is_dead;
	_Atomic bool is_barred; /* its private memory, by the system */
	unsigned int n_refs; /* queue pairs */
	pthread_mutex_t map_lock;
	pthread_cond_t map_cond; /* a mapping has come */
	struct soft_mapping *mappings;
	struct soft_pin *pins; /* map.c, under @map_lock */
};

/*
 * What contexts of one process need of each other, kept until the last of
 * them is done with it.
 */
struct soft_held {
	struct soft_segment *seg;
	struct soft_key *keys; /* SOFT_N_MR of them */
	_Atomic unsigned int n_refs;
	pthread_mutex_t lock;
	/* Under @lock; NULL once it is closed. */
	struct soft_context *context;
};

/* A connection that another context made to us. */
struct soft_guest {
	struct soft_guest *next;
	int fd;
	uint64_t id; /* 0: it has not said hello */
	struct soft_datagram *waiting; /* until then nothing more is read */
};

void soft_held_put(struct soft_held *held);

/* ---- address.c ---- */

bool soft_address_is(const struct soft_address *a,
		     const struct soft_address *b);
/* The socket's name of an address, and its length. */
socklen_t soft_address_name(const struct soft_address *address,
			    struct sockaddr_un *name);
/* A socket that listens at @address, or -1. */
int soft_listen(const struct soft_address *address);
/* One to whoever listens there and runs under our user, or -1; about 2 s. */
int soft_dial(const struct soft_address *address, int *pid);
/* The same without waiting: EAGAIN if it is not possible now. */
int soft_dial_now(const struct soft_address *address);

/* ---- peer.c, mapping.c ---- */

void soft_registry_watch_forks(void);
void soft_registry_add(struct soft_context *c);
void soft_registry_remove(struct soft_context *c);
/* Find and hold the peer at @address, or NULL; may block about 2 s. */
struct soft_peer *soft_peer_get(struct soft_context *c,
				const struct soft_address *address);
/* Caller holds the context's lock. */
void soft_peer_put(struct soft_context *c, struct soft_peer *peer);
/* A peer is silent from now on.  Caller holds the context's lock. */
void soft_peer_died(struct soft_context *c, struct soft_peer *peer);
/*
 * Wait until a post of @qp's peer that is under way has ended, at most
 * @timeout_ms; false when that passed.  Does not wait for the dead.
 */
bool soft_peer_drain(struct soft_qp *qp, int timeout_ms);
void soft_peers_free(struct soft_context *c);
/* Where region @id of a far peer is mapped here; NULL: not yet. */
char *soft_mapping_find(struct soft_peer *peer, uint64_t id, size_t *bytes);
/* Ask for it, unless that was done; it comes by the control thread. */
void soft_mapping_ask(struct soft_peer *peer, uint64_t id);
/* Wait for what was asked for, at most @timeout_ms. */
bool soft_mapping_wait(struct soft_peer *peer, uint64_t id, int timeout_ms);
/* The answer: @fd is taken over; -1: there is no such region. */
void soft_mapping_add(struct soft_peer *peer, uint64_t id, int fd);
/* Unmap what the peer has given up.  Caller holds the context's lock. */
void soft_mappings_trim(struct soft_context *c, struct soft_peer *peer);
void soft_mappings_free(struct soft_peer *peer);

/* ---- message.c, control.c ---- */

enum soft_message_type {
	SOFT_HELLO,  /* @a: the sender's id; answered with the segment */
	SOFT_REGION, /* @a: a region's id; answered with its memfd, if any */
	SOFT_NOTE,   /* @a: slot << 32 | epoch, @b: enum soft_note */
	SOFT_GONE,   /* regions of the sender are no more */
	SOFT_PUT,    /* write the payload at @a; answered with @b: errno */
	SOFT_GET,    /* read @bytes at @a; the same, and a payload */
	SOFT_SWAP,   /* compare and swap at @a; as SOFT_GET, the old value */
	SOFT_ADD,    /* fetch and add, the same */
	SOFT_DATAGRAM, /* as ud.c packs it; not answered */
};

/* Bytes behind a message at most: two fit a socket's default buffer. */
#define SOFT_PAYLOAD 65536u
#define SOFT_MESSAGE_MAGIC 0x77736d31u

struct soft_message {
	uint32_t magic, type;
	uint64_t a, b;
	/* From SOFT_PUT on: the right to the memory, and who asks. */
	uint32_t key, need, bytes, slot, token;
	uint32_t unused;
};

/* Send, with @fd unless it is -1.  0 or errno. */
int soft_message_send(int socket, enum soft_message_type type, uint64_t a,
		      uint64_t b, int fd);
/* Send with a payload.  0 or errno. */
int soft_payload_send(int socket, struct soft_message *message,
		      const void *payload, size_t bytes);
/*
 * Receive.  @payload has SOFT_PAYLOAD bytes or is NULL; *fd is -1 if none came.
 * 0 or errno; EPIPE: the end, or rubbish.
 */
int soft_message_recv(int socket, struct soft_message *message, int *fd,
		      void *payload, size_t *bytes);
/* The memory that @m asks for, if its key gives the right to it, else NULL.
 * Caller holds the context's lock, which a deregistration waits for. */
char *soft_payload_find(struct soft_context *c, const struct soft_message *m);
/* To or from our own memory, which may be unmapped: 0 or errno. */
int soft_copy_own(char *at, void *payload, size_t bytes, bool is_write);
/* Serve SOFT_SWAP and SOFT_ADD. */
int soft_atomic_serve(struct soft_context *c, int socket,
		      struct soft_message *m, const void *payload,
		      size_t bytes);
/* Serve SOFT_PUT and SOFT_GET of a guest, and take the answer to ours. */
int soft_payload_serve(struct soft_context *c, int socket,
		       struct soft_message *m, void *payload, size_t bytes);
void soft_payload_take(struct soft_context *c, const struct soft_message *m,
		       const void *payload, size_t bytes);

/* Bring notes to the peer's owner; false: try again later. */
bool soft_note_send(struct soft_qp *qp, uint32_t notes);
/* Act on notes for queue pair @slot at @epoch.  No locks held. */
void soft_note_take(struct soft_context *c, uint32_t slot, uint32_t epoch,
		    uint32_t notes);
int soft_control_start(struct soft_context *c);
void soft_control_stop(struct soft_context *c);
void soft_control_wake(struct soft_context *c);

/* ---- ah.c, ud.c ---- */

/* The way of datagrams to an address, for all who send there. */
struct soft_courier {
	struct soft_courier *next;
	struct soft_address address;
	unsigned int n_refs; /* the context's lock */
	pthread_mutex_t lock;
	int fd; /* -1: nobody has been found there */
	uint64_t tried_ns;
};

/* Send, or lose it: 0, EAGAIN when there is no room now, or another errno. */
int soft_courier_send(struct soft_courier *courier, const struct msghdr *msg);
void soft_couriers_free(struct soft_context *c);
/* A datagram has come.  Control thread only, as the next two are. */
void soft_datagram_take(struct soft_context *c, struct soft_guest *guest,
			const struct soft_message *m,
			const unsigned char *payload, size_t bytes);
/* Try the one that waits again. */
void soft_datagram_retry(struct soft_context *c, struct soft_guest *guest);
void soft_datagram_drop(struct soft_context *c, struct soft_guest *guest);

/* map.c: forget what was mapped for keys that are no more; forget all. */
void soft_pins_trim(struct soft_peer *peer);
void soft_pins_free(struct soft_peer *peer);

#endif
