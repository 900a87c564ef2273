/* SPDX-License-Identifier: MIT */
/* net's own: what its files share and nobody else may know. */
#ifndef NET_INNER_H
#define NET_INNER_H

#include "net/net.h"

/*
 * Requests on a send queue.  Two a message at most, NET_LINE_SLOTS messages a
 * lane, and credits: 256 leaves room, so that a post never waits in practice.
 */
#define NET_SQ_DEPTH 256
/* One request in so many is signalled, and reclaims those before it. */
#define NET_SIGNAL_EVERY 32
/* Arrivals that may wait for us: every lane's messages, and wake-ups. */
#define NET_RQ_DEPTH (NET_LANES * NET_LINE_SLOTS + 16)
/* The longest inline payload that is asked for: a whole small message. */
#define NET_INLINE (NET_LINES_MAX * BASE_LINE)
/*
 * Grants of places under way on a connection.  Each belongs to an operation
 * with a message between the two: a rank may be ahead by the messages that fit
 * the slots, and by the operation that it is in.
 */
#define NET_PLACES (2 * NET_SLOTS_MAX)
/*
 * The retry count: 7 is never counted down by some devices (rxe), so that a
 * dead peer would never be noticed.
 */
#define NET_RETRIES 6
/* 0.64 ms (the specification's table); receives are always posted ahead. */
#define NET_RNR_TIMER 12

/* Layout of a mailbox; what the peer may write, in lines of 64 bytes. */
#define NET_BOX_WAKE 0
#define NET_BOX_SCRATCH 64 /* where READs land: ours, not the peer's */
#define NET_BOX_FAILURE 128 /* struct net_failure */
#define NET_BOX_PLACES (NET_BOX_FAILURE + 1536)
#define NET_BOX_EXPORTS (NET_BOX_PLACES + NET_PLACES * BASE_LINE)
#define NET_EXPORT_BYTES (2 * BASE_LINE) /* struct mem_export; ours to write */
#define NET_BOX_LANES (NET_BOX_EXPORTS + NET_EXPORTS * NET_EXPORT_BYTES)
#define NET_BOX_WORDS 0	  /* of a lane: arrival words */
#define NET_BOX_CREDIT 64 /* of a lane: messages that the peer consumed */
#define NET_BOX_LINES 128 /* of a lane: small messages */
#define NET_LINES_BYTES (NET_LINE_SLOTS * NET_LINES_MAX * BASE_LINE)
#define NET_BOX_LANE (NET_BOX_LINES + NET_LINES_BYTES)
#define NET_BOX_SLOTS                                                          \
	((NET_BOX_LANES + NET_LANES * NET_BOX_LANE + 4095) / 4096 * 4096)

/* A grant as it travels: the place, and a word that says whose it is. */
struct net_grant {
	struct net_place place;
	uint64_t pad;
	uint64_t word;
};
_Static_assert(sizeof(struct net_grant) == BASE_LINE, "a grant is a line");
_Static_assert(sizeof(struct mem_export) <= NET_EXPORT_BYTES, "an export fits");

/*
 * A signature on the board.  Peers READ it whenever they like, also while it
 * is written: the last word tells whether the others belong together.
 */
struct net_entry {
	_Atomic uint64_t words[8]; /* four of the signature, and their check */
};
_Static_assert(sizeof(struct net_entry) == BASE_LINE, "an entry is a line");
#define NET_SIGNS 8 /* operations on the board */

/* Immediate data: lane, number, signature; or all ones, to wake a sleeper. */
#define NET_IMM_LANE_SHIFT 30
#define NET_IMM_NUMBER_SHIFT 24
#define NET_IMM_NUMBER 0x3fu
#define NET_IMM_WAKE 0xffffffffu
_Static_assert(NET_LANES < 4 && NET_LINE_SLOTS <= NET_IMM_NUMBER,
	       "lane and number fit the immediate data");

/* wr_id: kind, connection, and for sends the count of posted requests. */
#define NET_WR_RECV (1ull << 63)
#define NET_WR_READ (1ull << 62)
#define NET_WR_CONN(id) ((uint32_t)((id) >> 32) & 0x3fffffffu)

static inline uint64_t net_wr_id(const struct net_conn *conn, uint64_t kind)
{
	uint64_t at = (uint64_t)conn->peer * NET_CHANNELS_MAX +
		      (uint64_t)conn->channel;

	return kind | at << 32;
}

/* A message as it was sent, by its number; its payload is in the stage. */
struct net_sent {
	uint64_t address;
	uint32_t rkey, bytes, signature;
	bool is_lines;
};

#define NET_NOTE_MAGIC 0x77720101u
enum net_note_kind {
	NET_NOTE_OFFER = 1, /* here is another queue pair */
	NET_NOTE_READY,	    /* and it can receive */
	NET_NOTE_ASK,	    /* what are you doing? */
	NET_NOTE_SIGN,	    /* this, or what comes nearest */
};

/* What two ends of a connection tell each other when it is broken, or slow. */
struct net_note {
	uint32_t magic, kind, channel, epoch, qpn, psn;
	uint32_t arrived[NET_LANES]; /* messages that need not come again */
	uint32_t pad;
	struct net_sign sign; /* asks: only its seq */
};
_Static_assert(sizeof(struct net_note) == 80, "a note is 80 bytes");

enum net_mend_state {
	NET_SOUND,
	NET_DRAINING,  /* what had arrived is being counted */
	NET_OFFERED,   /* the peer knows of the next queue pair */
	NET_CONNECTED, /* that is ready to receive */
};

struct net_mend {
	enum net_mend_state state;
	uint32_t epoch; /* how many times it broke */
	bool has_offer, peer_is_ready;
	struct net_note offer; /* of the peer */
	struct ibv_wc cause;
	uint64_t since_ns, until_ns, next_ns;
	struct net_sent sent[NET_LANES][NET_LINE_SLOTS];
	struct net_grant grants[NET_PLACES];
	struct net_sign answer; /* the last; seq 0: none */
	uint64_t probe_until_ns; /* 0: none is under way */
	uint32_t probe; /* its number among the requests */
	uint32_t n_flaps; /* of the port, when it was last put to the test */
};

/* ---- ports.c ---- */

int net_ports_open(struct net *net, const struct net_args *args);
void net_ports_close(struct net *net);
/* The port's name in messages, with the GID that is used. */
void net_port_name(struct net_port *port, const union ibv_gid *gid);
/* Make what a port needs to be used, and name it; nothing where it is there. */
int net_port_start(struct net *net, struct net_port *port,
		   const union ibv_gid *gid);

/* ---- gids.c ---- */

enum net_gid_kind net_gid_kind(const uint8_t raw[16]);
void net_gid_text(const union ibv_gid *gid, char out[64]);
/* Fill in the port's candidates, best first. */
int net_gids_find(struct net_port *port, int64_t wanted);

/* ---- offer.c: what a rank tells its peers of a port ---- */

struct net_port_offer {
	char name[32]; /* "mlx5_0:1" */
	uint32_t mbps;
	uint16_t lid;
	uint8_t link_layer, mtu;
	uint8_t is_soft, n_gids;
	uint8_t is_node; /* net_port's */
	uint8_t pad;
	struct net_gid gids[NET_GIDS_MAX];
};

/* What a rank tells its peers of its GPU: ipc.c */
struct net_ipc_offer {
	uint64_t space; /* whom it could exchange handles with; 0: nobody */
	uint64_t gpu;	/* the one it uses, by its uuid */
	uint64_t reached[16]; /* those that kernels on it reach; 0: no more */
};

struct net_offer {
	uint32_t magic;
	uint8_t n_ports;
	uint8_t pad[3];
	struct net_ipc_offer ipc;
	struct net_port_offer ports[NET_PORTS_MAX];
};

/* The offer of @rank, which is checked: WREATH_EMISMATCH. */
int net_offer_of(const struct net *net, int rank, struct net_offer *out);
/* "rxe0:1 (Ethernet: 10.77.0.1/24 fe80::1/64), ..." */
void net_offer_text(const struct net_offer *offer, char *out, size_t size);

/* "InfiniBand", "Ethernet" */
const char *net_layer_name(int link_layer);

/* ---- choose.c: which pairs of ports can be connected ---- */

#define NET_PAIRS_MAX 16 /* that are tried; better than those beyond */

/* Better before worse. */
enum net_tier {
	NET_TIER_SOFT,
	NET_TIER_SUBNET,     /* one subnet */
	NET_TIER_ROUTED,     /* two, and perhaps a router between */
	NET_TIER_LINK_LOCAL, /* one link, as far as can be seen */
	NET_TIER_STRAY,	     /* of addresses that nobody here has */
	NET_TIER_NONE,
};

/* A port and GID at each end, by their places in the offers. */
struct net_pair {
	uint8_t port[2], gid[2];
	uint8_t tier; /* enum net_tier */
};

/*
 * The pairs of @ends [2] that fit, best first, at most @max; returns how many.
 * Pure, and given the ends in order of rank, so that both find the same.
 */
int net_pairs(const struct net_offer ends[2], bool is_local,
	      struct net_pair *pairs, int max);
/* Why there is none, with the remedy. */
const char *net_pairs_why_none(const struct net_offer ends[2], bool is_local);
/* The bits that two addresses have in common from the first on. */
int net_common_bits(const uint8_t a[16], const uint8_t b[16]);

/* ---- rails.c: the rails that all ranks have ---- */

/* Networks of left-out ports that are named; there may be one a rank. */
#define NET_LEFT_MAX 8

/* A port that is on no rail, and a rank that has no like of it. */
struct net_rail_left {
	int rank, port, lacks;
};

struct net_rails {
	int n;	     /* at most NET_CHANNELS_MAX */
	int n_found; /* also those beyond */
	uint32_t mbps[NET_PORTS_MAX]; /* of the slowest port; 0: unknown */
	/* [n_ranks * NET_PORTS_MAX]: by rank and rail the port's place in the
	 * rank's offer.  The caller's. */
	uint8_t *ports;
	int n_left;
	struct net_rail_left left[NET_LEFT_MAX];
};

/*
 * The rails of @offers [n_ranks], the fastest first: no port is on two, and
 * none can be added.  @one_host: soft ports reach all ranks, and then they are
 * the rails.  Pure.
 */
void net_rails_find(const struct net_offer *offers, int n_ranks, bool one_host,
		    struct net_rails *rails);
/* Find those of all ranks' offers, and set the net's. */
int net_rails_agree(struct net *net);
/* The rail of @channel to @peer; -1: any pair of ports will do. */
int net_rail_of(const struct net *net, int peer, int channel);

/* ---- agree.c ---- */

/* What net_agree() needs, and what it leaves. */
int net_agree_init(struct net *net);
void net_agree_release(struct net *net);

/* How many pairs have been tried for @conn. */
uint8_t net_agree_attempt(const struct net_conn *conn);

/* The pair that is to be tried now for @conn; fills in its port and GIDs. */
int net_agree_conn(struct net_conn *conn);

/* " of rxe0:1", the port at the peer's end; "" where it is not known. */
void net_agree_far_port(const struct net_conn *conn, char out[40]);

/* Count what the verdicts name as tried; WREATH_ENET when it was the last. */
int net_agree_next(struct net *net, int peer, const struct net_verdict *mine,
		   const struct net_verdict *theirs);

/* ---- address.c: where InfiniBand and Ethernet differ ---- */

/* The address of @conn's peer.  Blocks until the kernel has found it. */
int net_address(struct net_conn *conn, const struct base_env *env,
		struct ibv_ah_attr *ah);
/* Where the table of @port has @gid now, or -1: it may move, or go. */
int net_gid_index(const struct net_port *port, const union ibv_gid *gid);
void net_address_fill(const struct net_port *port, const union ibv_gid *mine,
		      const union ibv_gid *theirs, int index,
		      const struct base_env *env, struct ibv_ah_attr *ah);

/* -1 where the fabric decides. */
int net_traffic_class(const struct net_port *port, const struct base_env *env);

/* ---- ready.c ---- */

uint8_t net_timeout_exponent(int64_t ms);

/* ---- cm.c: where WREATH_CONNECT=cm ---- */

/* When a port starts and stops. */
int net_cm_open(const struct net *net, struct net_port *port);
void net_cm_close(struct net_port *port);
/* Fill in what the records of @conn have for librdmacm. */
int net_cm_conn_new(struct net_conn *conn, struct net_record *record);
/* 0 unless this end shall be asked and cannot listen. */
int net_cm_can_meet(const struct net_conn *conn);
/* The way that the kernel has found for @conn, once it is connected. */
bool net_cm_has_way(const struct net_conn *conn, struct ibv_ah_attr *ah);
void net_cm_conn_free(struct net_conn *conn);

/* ---- events.c ---- */

/* Read what @port's device has reported, and log what is worth it. */
void net_port_events(struct net *net, struct net_port *port);
/* A connection has failed, perhaps before the event came: is its GID there? */
void net_gid_check(struct net_conn *conn);

/* ---- conn.c ---- */

/* @conn's queue pair, in INIT and with its receives. */
int net_qp_new(struct net_conn *conn);
/* Shared memory, registered with the port. */
int net_box_new(struct net_port *port, size_t bytes, int access, char **out,
		int *fd, struct ibv_mr **mr);

/* Is the peer's memory to be reached by load and store? */
static inline bool net_port_maps(const struct net_port *port)
{
	return port->device->verbs->map && port->line_order &&
	       !verbs_is_paced(port->device);
}
static inline bool net_maps(const struct net_conn *conn)
{
	return net_port_maps(conn->port);
}

/* Give back what the device mapped; NULL is allowed. */
static inline void net_unmap(struct net_conn *conn, const void *mapped)
{
	if (mapped && conn->port->device->verbs->unmap)
		conn->port->device->verbs->unmap(conn->qp, mapped);
}

/* Move a queue pair on, with what is the same for all; @attr has the rest. */
int net_qp_init(struct net_port *port, struct ibv_qp *qp, int access);
int net_qp_rtr(struct net_port *port, struct ibv_qp *qp,
	       struct ibv_qp_attr *attr);
int net_qp_rts(struct net_port *port, struct ibv_qp *qp, uint32_t psn,
	       const struct base_env *env);
/* ready.c: @conn's, to where it sends, by conn->other. */
int net_qp_ready(struct net_conn *conn);

/* The retry time of the exponent @t, once. */
static inline uint64_t net_timeout_ns(uint8_t t)
{
	return UINT64_C(4096) << t;
}

/* mend.c */
/* Keep what is needed to mend @conn; before its first message. */
int net_mend_prepare(struct net_conn *conn);
/* A completion of @conn failed: begin to mend it, or fail. */
int net_mend_broken(struct net_conn *conn, const struct ibv_wc *wc);
/* Go on wherever it is possible. */
int net_mend(struct net *net);

/* Why a peer on this host has failed: written by it, into our mailbox. */
struct net_failure {
	char text[1528];
	_Atomic uint64_t error; /* enum wreath_error, negated; last, once */
};
_Static_assert(sizeof(struct net_failure) == 1536, "fits its place");

/* send.c */
int net_post(struct net_conn *conn, struct ibv_send_wr *wr);
int net_recv_post(struct net_conn *conn);
/* Ask the peer to end our sleep with its next message. */
int net_wake_ask(struct net_conn *conn);
/* For a connection that was mended: the same once more. */
int net_send_again(struct net_lane *lane, uint32_t number);
int net_credit_again(struct net_lane *lane);
/* Lane 0's, with a completion for it. */
int net_credit_signalled(struct net_conn *conn);

/* place.c */
int net_places_grant_again(struct net_conn *conn);
void net_places_unmap(struct net_conn *conn);

/* watch.c */
/* Send what does no harm, and see within @patience_ns whether it arrives. */
int net_probe(struct net_conn *conn, uint64_t patience_ns);
/* How long a queue pair tries at most, and a second. */
uint64_t net_patience_ns(const struct net *net);

/* errors.c */
int net_completion_error(struct net_conn *conn, const struct ibv_wc *wc);

#endif
