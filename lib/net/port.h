/* SPDX-License-Identifier: MIT */
/*
 * Ports, what they are chosen by, and what two ranks tell each other: a part
 * of the door, net/net.h.
 */
#ifndef NET_PORT_H
#define NET_PORT_H

#include "base/base.h"
#include "verbs/verbs.h"

#define NET_DEVICES_MAX 16
#define NET_PORTS_MAX 8 /* candidates that a rank tells its peers */
#define NET_GIDS_MAX 16 /* ... of each port */
#define NET_TABLE_MAX 256 /* GIDs that an address handle can name */
#define NET_TOKEN_BYTES 16
/* The soft device that joins the ranks of a pretended node, and no others. */
#define NET_NODE_DEVICE "node0"

struct net_notes;
struct net_cm_port;

enum net_gid_kind {
	NET_GID_IPV4,
	NET_GID_IPV6,
	NET_GID_LINK_LOCAL,
	NET_GID_IB, /* of an InfiniBand port */
};

enum net_gid_flag {
	NET_GID_STRAY = 1, /* no interface here has the address */
	NET_GID_VLAN = 2,
};

/* A GID, with what a table of GIDs does not tell: its subnet. */
struct net_gid {
	uint8_t raw[16];
	uint8_t prefix; /* bits of the subnet, of 128; 0: unknown */
	uint8_t kind;	/* enum net_gid_kind */
	uint8_t flags;	/* enum net_gid_flag */
	uint8_t pad;
};
_Static_assert(sizeof(struct net_gid) == 20, "a GID travels in 20 bytes");

/* An entry of a port's table, and what becomes of it. */
struct net_gid_row {
	struct net_gid gid;
	int index;
	uint32_t type;	  /* enum ibv_gid_type */
	unsigned int ifindex; /* 0: unknown */
	char ifname[16];  /* "": unknown */
	bool is_usable;	  /* a candidate */
	const char *why;  /* "chosen", "candidate", or why not */
};

/*
 * The filled entries of a port's table in their order, at most @max, and what
 * would be chosen by itself; @wanted is WREATH_GID_INDEX.  Returns how many.
 */
int net_gid_rows(struct verbs_device *device, int port,
		 const struct ibv_port_attr *attr, int64_t wanted,
		 struct net_gid_row *rows, int max);

/*
 * A port that may be used: active, with its addresses.  The rest is there once
 * it is started, which it is when it has been chosen for a peer.
 */
struct net_port {
	struct verbs_device *device;
	struct ibv_pd *pd; /* NULL: not started */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *board_mr;
	struct ibv_port_attr attr;
	int number;
	int n_gids;
	struct net_gid gids[NET_GIDS_MAX]; /* best first */
	unsigned int ifindexes[NET_GIDS_MAX]; /* of each; 0: unknown */
	uint16_t pkey_index;
	bool line_order; /* arrivals are seen by polling memory */
	bool is_soft;
	bool is_node; /* for peers of the own node alone, NET_NODE_DEVICE */
	bool is_gone; /* the device has reported its end */
	enum ibv_event_type reported; /* the last bad news, if any */
	bool has_reported;
	struct verbs_counters *counters; /* as it began; NULL: no kernel's */
	uint32_t n_flaps; /* how often the port has gone down or come up */
	struct net_cm_port *cm; /* where librdmacm connects, else NULL */
	char text[128]; /* "soft0:1 RoCEv2 fe80::1" */
};

/*
 * Does WREATH_HCA want this port, and has it the partition of WREATH_PKEY?
 * @port has its device, number and attributes; its partition's index is set.
 */
int net_port_check(struct net_port *port, const struct base_env *env);

/* What net_open() must know. */
struct net_args {
	const struct base_env *env;
	/* Providers, best first for peers of the own host: soft, then ibv. */
	const struct verbs_table *soft, *ibv; /* NULL: not there */
	bool all_local;	 /* no rank is on another host */
	bool all_ports;	 /* ... but some rank wants another port than soft */
	bool crowded;	 /* ranks outnumber the cores they may use */
	int rank, n_ranks;
	int max_rails; /* that may be used; 0: NET_CHANNELS_MAX */
	/* [n_ranks] "rank 3 (host a, pid 12)", for messages; not copied. */
	char (*names)[128];
	const struct net_notes *notes; /* NULL: nothing broken is mended */
};

/* A rail, as far as one rank knows. */
struct net_own_rail {
	char name[32]; /* "mlx5_0:1" */
	const char *link_layer; /* "InfiniBand", "Ethernet" */
	uint32_t mbps; /* 0: unknown */
};

/*
 * The rails that there were if all ranks had ports like ours, of one host or of
 * several, for those who want to know before ranks meet.  Ports that are not
 * active are not waited for.  At most NET_CHANNELS_MAX into @rails.
 */
int net_rails_own(const struct net_args *args, struct net_own_rail *rails,
		  int *n);

/* What two ranks tell each other to be connected; travels through boot. */
struct net_record {
	uint32_t magic;
	uint32_t qpn;
	uint32_t psn;
	uint32_t rkey;	       /* of the mailbox */
	uint64_t address;      /* of the mailbox */
	uint64_t mailbox_bytes;
	uint32_t board_rkey;   /* of the signature board */
	uint32_t slot_bytes;
	uint64_t board;
	uint16_t lid;
	uint8_t link_layer;
	uint8_t mtu;
	uint8_t attempt; /* which of the pairs of ports it is for */
	uint8_t n_slots;
	/* Where librdmacm listens for @gid of the pair; 0: by the exchange.
	 * What is zero then goes by the card (card.c), proven by @token. */
	uint16_t cm_number;
	uint8_t token[NET_TOKEN_BYTES];
};
_Static_assert(sizeof(struct net_record) == 72, "a record is 72 bytes");

/*
 * What two ranks tell each other when a pair of ports did not work at an end:
 * both go on to the next.
 */
struct net_verdict {
	int32_t error; /* 0: it works here */
	uint32_t rail; /* on which it does not */
	char text[504];
};
_Static_assert(sizeof(struct net_verdict) == 512, "a verdict is 512 bytes");

/* An offer as it travels, at most. */
#define NET_OFFER_MAX 3072

#endif
