/* SPDX-License-Identifier: MIT */
/* What ranks grant each other: places in their memory.  Part of net's door. */
#ifndef NET_PLACE_H
#define NET_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mem_where;
struct net_conn;

/*
 * What one rank grants another for one operation: its output, to write final
 * bytes to, and its input, to read in place.
 */
struct net_place {
	uint64_t output, input; /* addresses at the rank that grants */
	uint64_t output_bytes, input_bytes;
	uint32_t output_rkey, input_rkey;
	uint32_t kinds; /* enum net_place_kind */
	uint32_t pad;
};

enum net_place_kind {
	NET_PLACE_OUTPUT = 1, /* else final bytes go to the slots */
	NET_PLACE_INPUT = 2,  /* else input is sent to the slots */
	/* Beside those: the place is in memory of a GPU, reached by CUDA IPC
	 * and not by keys, and so by who has a GPU in the operation too. */
	NET_PLACE_OUTPUT_GPU = 4,
	NET_PLACE_INPUT_GPU = 8,
	/* No place: whoever grants has a GPU in the operation. */
	NET_PLACE_GPU_OP = 16,
};

/* What is to be granted; kinds that are not set are not. */
struct net_granting {
	void *output;
	const void *input;
	size_t output_bytes, input_bytes;
	uint32_t kinds; /* NET_PLACE_OUTPUT, NET_PLACE_INPUT */
	/* Where they lie, by mem_where(); NULL: in memory of the host. */
	const struct mem_where *output_where, *input_where;
	/* The peer grants as well, and both end when they have taken the
	 * other's grant: so neither has more than two untaken. */
	bool is_mutual;
};

/*
 * Grant @conn's peer the places of the operation with @signature, as far as
 * they lie in registered regions; conn->granted tells what was granted.
 *
 * Memory of a GPU need not be registered by the user.  Where the connection is
 * mapped it is granted by CUDA IPC, if the grant is mutual and net->has_ipc;
 * else its output is, as any, where the port can register it.  What is granted
 * so stays registered until net_flush().
 */
int net_place_grant(struct net_conn *conn, const struct net_granting *what,
		    uint32_t signature);

/*
 * True once the peer's grant is there: conn->place and its maps.
 *
 * conn->place_told has the kinds as granted, conn->place.kinds those of use
 * here: of a place in memory of a GPU none while net->gpu is NULL.  The maps of
 * the others are good on net->gpu, until the operation ends.  An import that
 * fails breaks the net, as net_poll() then tells: the peer relies on it.
 */
bool net_place_take(struct net_conn *conn, uint32_t signature);

/*
 * The same for messages, which each way between two ranks go in an order of
 * their own: a grant of @kind only, whether or not what->kinds has it, and the
 * grants of a kind are taken in their order, whatever those of the other.
 *
 * Both ends grant once for a message, the sender its input and the receiver its
 * output, when they come to it, and end it only when they have taken the
 * other's.  So two of a kind may be untaken: the message's, and the next one's.
 */
#define NET_PLACES_AHEAD 2
int net_place_grant_one(struct net_conn *conn, enum net_place_kind kind,
			const struct net_granting *what, uint32_t signature);
bool net_place_take_one(struct net_conn *conn, enum net_place_kind kind,
			uint32_t signature);

/*
 * Memory of GPUs that this rank exports to a peer: entries in its mailbox, from
 * which the peer reads them, each kept until it is the one not granted for the
 * longest time.  A mutual grant has two at most, and two may be untaken.
 */
#define NET_EXPORTS 8
struct net_exports {
	uint64_t ids[NET_EXPORTS]; /* of the allocations; 0: none */
	uint64_t granted[NET_EXPORTS]; /* when last, by net->n_granted */
};

/* Of one kind: those that have come, and are not taken yet. */
struct net_places_ahead {
	struct net_place places[NET_PLACES_AHEAD];
	uint32_t n_put, n_taken;
};

#endif
