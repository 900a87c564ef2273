/* SPDX-License-Identifier: MIT */
/*
 * Connections by librdmacm (WREATH_CONNECT=cm): what the files of it share.
 *
 * Each port has one event channel, and while connections are made a listener
 * at each address that a peer shall reach it by.  Of two ranks the higher one
 * asks the lower.  Boot has carried where to ask, and a token for each
 * connection; what the exchange would carry beyond it travels in the private
 * data of request and reply.
 */
#ifndef NET_CM_H
#define NET_CM_H

#include "net/inner.h"

/* ---- card.c: private data ---- */

#define NET_CARD_BYTES 56

enum net_card_kind {
	NET_CARD_REQUEST = 1,
	NET_CARD_REPLY = 2,
};

struct net_card {
	uint8_t kind; /* enum net_card_kind */
	uint8_t channel;
	uint16_t rank; /* of whoever shows the card */
	uint8_t n_slots;
	uint32_t slot_bytes;
	uint64_t address, board; /* of its mailbox and its signatures */
	uint32_t rkey, board_rkey;
};

/* @token is the one that the reader gave. */
void net_card_write(const struct net_card *card,
		    const unsigned char token[NET_TOKEN_BYTES],
		    unsigned char bytes[NET_CARD_BYTES]);

/*
 * Take @n bytes of a stranger apart; what follows the card is ignored, since
 * transports pad.  False where they are no card.  To be believed only when
 * net_card_is_genuine().
 */
bool net_card_read(const void *data, size_t n, struct net_card *card);
bool net_card_is_genuine(const void *data, size_t n,
			 const unsigned char token[NET_TOKEN_BYTES]);

/* ---- cm.c: ports and records ---- */

/* For a number: this rank asks, or cannot listen.  No listener has it. */
#define NET_CM_DEAF 1

struct net_cm_listener {
	struct verbs_cm_address address;
	struct rdma_cm_id *id;
};

struct net_cm_port {
	struct rdma_event_channel *channel;
	struct net_cm_listener listeners[NET_GIDS_MAX];
	int n_listeners;
};

/* @gid of @port, as librdmacm is told of it; the number is 0. */
void net_cm_address(const struct net *net, const struct net_port *port,
		    const union ibv_gid *gid, struct verbs_cm_address *out);

/* Nobody is expected any more: close the listeners. */
void net_cm_deafen(struct net_port *port);

/* ---- attempt.c: one connection ---- */

enum net_cm_state {
	NET_CM_IDLE, /* to be tried at @retry_ns, or waits for a request */
	NET_CM_RESOLVES,
	NET_CM_ROUTES,
	NET_CM_ASKS,
	NET_CM_ACCEPTS, /* the reply is under way */
	NET_CM_DONE,
};

struct net_cm_conn {
	enum net_cm_state state;
	struct rdma_cm_id *id;
	uint64_t retry_ns;
	unsigned int n_tries;
	bool is_used;	  /* the queue pair has left INIT */
	struct ibv_ah_attr ah; /* the way that the kernel has found */
	char cause[256];  /* why the last try failed */
};

/* The side that asks. */
static inline bool net_cm_asks(const struct net_conn *conn)
{
	return conn->net->rank > conn->peer;
}

/* Begin another try.  An error ends the connection's set-up for good. */
int net_cm_try(struct net_conn *conn);

/* Take what has happened to @conn's identifier. */
int net_cm_on_event(struct net_conn *conn, const struct verbs_cm_event *event);

/* Somebody asks at @port: accept, or refuse. */
int net_cm_on_request(struct net *net, struct net_port *port,
		      const struct verbs_cm_event *event);

#endif
