/* SPDX-License-Identifier: MIT */
/*
 * net: RC queue pairs between ranks, and messages on them.
 *
 * A connection joins two ranks on one channel: one queue pair, and at each end
 * a mailbox, registered memory that the other end writes.  It holds, for each
 * of NET_LANES lanes, slots for messages to come, and the words by which both
 * ends keep in step.  A sender writes only where it was granted a place, which
 * is credit for the next slots of a lane (a counter that the receiver writes
 * into the sender's mailbox), or the receiver's own output (zero copy).  Where
 * the peer's memory is mapped its payload is stored or read there directly;
 * what makes a message visible is a WRITE in any case.
 *
 * Where the device promises line order that WRITE is one 8-byte word behind
 * the payload, the message's number and the operation's signature, and the
 * receiver polls it.  Elsewhere the payload's own WRITE carries both, shortened
 * to immediate data, and completions are polled: one request a message.
 *
 * A rail is one port of each rank, all of one provider and link layer and in
 * one subnet, so that each reaches all others of its rail.  All ranks find the
 * same rails, in the same order, out of all ranks' offers: those ports that
 * every rank has the like of; the rest is named in the log and left out.
 * Channel k is on rail k % n_rails, and no queue pair crosses rails: within a
 * rail the pairs of addresses are tried in their order.  Ranks of one node are
 * joined by the best pair of ports that they have, on every channel, and not
 * by rails, unless all ranks are one node.  Where there is one rail, or no
 * port that all ranks have, each two ranks use the best pair that they have.
 *
 * This room must never know schedules, sockets or the public API.  A struct
 * net is used by one thread at a time.  Only net_block() waits for a peer.
 */
#ifndef NET_H
#define NET_H

#include <stdatomic.h>

#include "base/base.h"
#include "mem/mem.h"
#include "net/connect.h"
#include "net/gpu.h"
#include "net/notes.h"
#include "net/place.h"
#include "net/port.h"

#define NET_LANES 3	  /* lanes of a connection */
#define NET_SLOTS_MAX 8	  /* slots of a lane: one line of arrival words */
#define NET_LINE_SLOTS 16 /* small messages of a lane under way */
#define NET_LINE_DATA 56  /* payload of a line: the rest is its word */
#define NET_LINES_MAX 8	  /* lines of a small message */
#define NET_CHANNELS_MAX 4

/*
 * One direction pair of a lane: what this rank sends to the peer's lane, and
 * what it receives on its own.  Numbers count messages and may wrap.
 */
struct net_lane {
	struct net_conn *conn;
	/* Sending. */
	uint32_t n_sent;
	uint32_t n_lent; /* n_sent after the last that is read in our memory */
	const _Atomic uint64_t *credit; /* messages the peer has consumed */
	char *map_slots;  /* the peer's slots, where they can be stored to */
	char *stage;	  /* else: our copies of its slots, to WRITE from */
	char *stage_lines;
	uint64_t far_words, far_lines, far_slots, far_credit;
	/* Receiving. */
	uint32_t n_received;
	uint32_t n_arrived; /* by completions, and their signatures */
	uint32_t arrived[NET_LINE_SLOTS];
	uint32_t n_credited;
	const _Atomic uint64_t *words;
	char *lines;
	char *slots;
	uint8_t index;
};

struct net_conn {
	struct net *net;
	struct net_port *port;
	struct ibv_qp *qp;
	int peer;
	int channel;
	uint32_t rkey; /* of the peer's mailbox */
	uint32_t lkey_stage;
	bool ready;
	bool has_failed; /* net_conn_ready() has, by this pair of ports */
	bool is_mending; /* what is sent now is sent when mended */
	bool is_reading; /* a READ of net_sign_read() is under way */
	uint32_t n_posted, n_done; /* send requests, and those reclaimed */
	uint32_t max_inline;
	uint32_t n_places_sent, n_places_taken;
	uint64_t far_places, far_wake;
	const char *places;    /* granted by the peer, in our mailbox */
	_Atomic uint64_t *wake; /* the peer sleeps: wake it */
	uint32_t granted; /* kinds of places in the grant given last */
	uint32_t place_told; /* kinds in that taken last, of use here or not */
	struct net_place place; /* it, kinds of use, and where it is mapped */
	char *output_map;
	const char *input_map;
	struct net_places_ahead outputs_ahead, inputs_ahead;
	struct net_lane lanes[NET_LANES];
	/* Cold. */
	struct net_mend *mend; /* NULL: cannot be mended */
	uint32_t n_recvs;      /* posted */
	char *mailbox, *stage, *mailbox_map; /* _map: the peer's */
	int mailbox_fd, stage_fd;
	size_t mailbox_bytes, stage_bytes;
	struct ibv_mr *mailbox_mr, *stage_mr;
	struct net_record local, other;
	union ibv_gid gid, other_gid; /* in use */
	bool is_routed; /* they are of different subnets */
	struct net_cm_conn *cm; /* where librdmacm connects, else NULL */
	uint64_t bytes_sent;
	struct net_exports exports;
	bool has_pinned; /* net_conn_pin() */
	unsigned int n_pinned;
};

struct net {
	int rank, n_ranks;
	int n_channels, n_slots; /* n_channels: a multiple of n_rails */
	int n_rails; /* at least 1 */
	/* Megabits a second of each rail: of its slowest port, the fastest
	 * rail first; all are 0 where one is not known. */
	uint32_t rail_mbps[NET_CHANNELS_MAX];
	size_t slot_bytes;
	struct net_port *started[NET_PORTS_MAX]; /* ports in use */
	int n_started;
	bool polls_completions; /* one has no line order, or is paced */
	struct net_conn **conns; /* [n_ranks * NET_CHANNELS_MAX] */
	struct net_conn **active; /* those there are */
	int n_active;
	char (*names)[128];
	const struct base_env *env;
	struct net_notes notes;
	int n_mending;
	bool has_told;	   /* net_fail_tell() */
	uint64_t heard_ns; /* when net_fail_heard() first had news */
	uint64_t watch_ns; /* when net_watch() looked last */
	/* Signatures of our last operations, for peers to READ. */
	struct net_entry *board; /* [NET_SIGNS] */
	int board_fd;
	int failed; /* the error that a completion brought, or 0 */
	struct mem_watch watch;
	void *mr_lock; /* pthread_mutex_t: a region may go at any time */
	struct net_mr *mrs;
	/* The GPU of the operation under way, set by who runs it; NULL: its
	 * buffers are in memory of the host. */
	struct mem_gpu *gpu;
	bool has_ipc; /* ranks of this host import each other's GPU memory */
	bool must_flush; /* memory of a GPU was granted by key */
	uint64_t n_granted; /* places in memory of GPUs, ever */
	struct net_gpu_way *ways;
	/* Cold. */
	struct verbs_device *devices[NET_DEVICES_MAX];
	int n_devices;
	struct net_port ports[NET_PORTS_MAX]; /* candidates */
	int n_ports;
	char *offers; /* [n_ranks], @offer_bytes each */
	size_t offer_bytes;
	uint32_t *hosts, *nodes; /* [n_ranks]: where each rank is */
	uint32_t n_nodes;
	int max_rails;
	/* [n_ranks * NET_PORTS_MAX]: by rank and rail the port's place in the
	 * rank's offer, where n_rails > 1. */
	uint8_t *rail_ports;
	/* [n_ranks * NET_CHANNELS_MAX]: by peer and rail, the pairs that did
	 * not work. */
	uint8_t *attempts;
	char text[512];
};

int net_open(const struct net_args *args, struct net **out);
void net_close(struct net *net);

/*
 * Ranks tell each other their ports: net_offer() writes this rank's offer, of
 * NET_OFFER_MAX bytes at most, and returns its length.  net_agree() takes all
 * of them in order of rank, @bytes apart, and with them chooses ports for each
 * peer, as that peer does.  It takes @offers over, which base_free() frees;
 * @hosts and @nodes [n_ranks] number the host and the node of each rank, from
 * 0 without gaps, and are copied; a node is within a host.  n_channels, n_rails
 * and rail_mbps are final from here on.  It may block for seconds where the
 * only way to a peer leads over a router.
 * Errors: WREATH_ENET with both ends' ports where none fit, WREATH_EMISMATCH.
 */
size_t net_offer(const struct net *net, void *out);
int net_agree(struct net *net, void *offers, size_t bytes,
	      const uint32_t *hosts, const uint32_t *nodes);

/* The connection to @peer on @channel, or NULL while there is none. */
static inline struct net_conn *net_conn(struct net *net, int peer, int channel)
{
	return net->conns[peer * NET_CHANNELS_MAX + channel];
}

/* What a channel carries of a vector, beside the others: as its rail does. */
static inline uint32_t net_channel_weight(const struct net *net, int channel)
{
	uint32_t mbps = net->rail_mbps[channel % net->n_rails];

	return mbps ? mbps : 1;
}

/* Can every rank store to and load from every other's memory? */
bool net_maps_all(const struct net *net);

/* The devices and ports in use, for messages. */
const char *net_text(const struct net *net);

/*
 * Reclaim sends, count arrivals, mend what is broken, and find failures.  0 or
 * the error that broke the net, with its text set.
 */
int net_poll(struct net *net);

/*
 * Sleep until something arrives from any connection, or for @timeout_ms;
 * peers are asked to wake us.
 */
int net_block(struct net *net, int timeout_ms);

/* ---- the data path ---- */

static inline uint64_t net_word(uint32_t number, uint32_t signature)
{
	return (uint64_t)signature << 32 | number;
}

/* @window: messages that may be under way, slots or NET_LINE_SLOTS. */
static inline bool net_can_send(const struct net_lane *lane, uint32_t window)
{
	/* Pairs with the peer's WRITE of its counter: acquire, so that our
	 * next store into the slot stays behind its last read of it. */
	uint64_t credit =
		atomic_load_explicit(lane->credit, memory_order_acquire);

	return lane->n_sent - (uint32_t)credit < window;
}

/* Has the peer consumed all that it was to read in our memory? */
static inline bool net_is_read(const struct net_lane *lane)
{
	/* Pairs with the peer's WRITE of its counter: acquire, so that the
	 * user's next store into the memory stays behind its last read. */
	uint64_t credit =
		atomic_load_explicit(lane->credit, memory_order_acquire);

	return (int32_t)(lane->n_lent - (uint32_t)credit) <= 0;
}

/* Nothing is lent yet; also where numbers have wrapped since the last time. */
static inline void net_lend_nothing(struct net_lane *lane)
{
	lane->n_lent = (uint32_t)atomic_load_explicit(lane->credit,
						      memory_order_relaxed);
}

/* Where the payload of the next slot message is to be stored. */
static inline void *net_slot(const struct net_lane *lane)
{
	const struct net *net = lane->conn->net;
	char *base = lane->map_slots ? lane->map_slots : lane->stage;

	return base + lane->n_sent % (uint32_t)net->n_slots * net->slot_bytes;
}

/*
 * Send what was stored in net_slot(), @bytes long.  0 or an error that broke
 * the net.
 */
int net_send_slot(struct net_lane *lane, size_t bytes, uint32_t signature);

/*
 * Send a message whose payload the peer reads in place, out of the input that
 * it was granted.
 */
int net_send_nothing(struct net_lane *lane, uint32_t signature);

/*
 * Send @bytes to @offset of the place last taken.  Where the place is mapped
 * the caller has stored them there already; else they are in net_slot().
 */
int net_send_place(struct net_lane *lane, uint64_t offset, size_t bytes,
		   uint32_t signature);

/*
 * Send a small message: @n_lines lines of 64 bytes, 56 of payload and the word
 * net_word(lane->n_sent + 1, signature), all set by the caller.
 */
int net_send_lines(struct net_lane *lane, const void *lines, size_t n_lines,
		   uint32_t signature);

enum net_arrival {
	NET_NONE,
	NET_ARRIVED,
	NET_MISMATCH, /* a message is there, of another operation */
};

/*
 * Immediate data has 24 bits for the signature: two operations that differ
 * look alike once in 16 million times.  The queue pair itself keeps messages
 * in order, so that a few bits of the number are enough to see a lost one.
 */
#define NET_IMM_SIGNATURE 0xffffffu

static inline enum net_arrival net_look_completed(const struct net_lane *lane,
						  uint32_t signature)
{
	uint32_t n = lane->n_received;

	if (lane->n_arrived == n)
		return NET_NONE;
	return lane->arrived[n % NET_LINE_SLOTS] ==
			       (signature & NET_IMM_SIGNATURE)
		       ? NET_ARRIVED : NET_MISMATCH;
}

static inline enum net_arrival net_look(const struct net_lane *lane,
					const _Atomic uint64_t *at,
					uint32_t signature)
{
	uint64_t want = net_word(lane->n_received + 1, signature);
	/*
	 * Pairs with the sender's WRITE of the word behind its payload: the
	 * device makes the payload visible first (line order).
	 */
	uint64_t word = atomic_load_explicit(at, memory_order_acquire);

	if (base_unlikely(!lane->conn->port->line_order))
		return net_look_completed(lane, signature);
	if (base_likely(word == want))
		return NET_ARRIVED;
	return (uint32_t)word == (uint32_t)want ? NET_MISMATCH : NET_NONE;
}

/* Has the lane's next slot message come? */
static inline enum net_arrival net_arrived(const struct net_lane *lane,
					   uint32_t signature)
{
	const struct net *net = lane->conn->net;

	return net_look(lane,
			lane->words +
				lane->n_received % (uint32_t)net->n_slots,
			signature);
}

/* The payload of the lane's next slot message, once it has arrived. */
static inline const void *net_payload(const struct net_lane *lane)
{
	const struct net *net = lane->conn->net;

	return lane->slots +
	       lane->n_received % (uint32_t)net->n_slots * net->slot_bytes;
}

/* The lines of the lane's next small message, arrived or not. */
static inline const char *net_lines(const struct net_lane *lane)
{
	return lane->lines + lane->n_received % NET_LINE_SLOTS *
				     (NET_LINES_MAX * BASE_LINE);
}

/* Has line @i of the lane's next small message come? */
static inline enum net_arrival net_line_arrived(const struct net_lane *lane,
						size_t i, uint32_t signature)
{
	const char *at = net_lines(lane) + i * BASE_LINE + NET_LINE_DATA;

	return net_look(lane, (const _Atomic uint64_t *)(const void *)at,
			signature);
}

/* Write our counter of consumed messages to the peer. */
int net_credit(struct net_lane *lane);

/*
 * The lane's next message is done with; its slot may be used again.  The peer
 * is told when @batch are untold.
 */
static inline int net_consume(struct net_lane *lane, uint32_t batch)
{
	lane->n_received++;
	if (lane->n_received - lane->n_credited < batch)
		return 0;
	return net_credit(lane);
}

#endif
