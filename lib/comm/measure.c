/* SPDX-License-Identifier: MIT */
/*
 * A rank measures with one other of its node, and by each rail with one of
 * another node; all pairs at once, as they work in a collective.  The lower
 * rank of a pair leads: it sends, the other sends back.
 *
 * First one message at a time, for the latency; then as many as slots allow,
 * for the bandwidth both ways at once.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>

#include "comm/model.h"

#define PING 0x70696e67u /* signs messages of no operation */
#define US 1000ull
#define MS 1000000ull

/* Of a pair on one tier; with five tiers 45 ms. */
#define LATENCY_NS (3 * MS)
#define LATENCY_MAX 100
#define STREAM_NS (3 * MS)
#define STREAM_SMALL (16 << 10)
/* A message that takes longer shows the rate, however small. */
#define STREAM_SLOW_NS (100 * US)
#define LOOK_NS (1 * MS)

struct ping {
	uint32_t goes_on;
	uint32_t bytes;
};

/* One end of a pair. */
struct pair {
	struct wreath_comm *comm;
	struct net_lane *lane;
	uint64_t start_ns, look_ns; /* of a wait; 0: not yet read */
	uint32_t n_idle;
};

static int overdue(const struct pair *pair)
{
	const struct wreath_comm *comm = pair->comm;

	return base_error(WREATH_ETIMEOUT,
			  "measuring: %s waited %lld ms for %s; is that process "
			  "stopped, or not in the call?",
			  comm->names[comm->rank],
			  (long long)comm->guard.timeout_ms,
			  comm->names[pair->lane->conn->peer]);
}

static int look(struct pair *pair)
{
	struct wreath_comm *comm = pair->comm;
	uint64_t now = base_now_ns();
	int err = 0;

	if (!pair->start_ns)
		pair->start_ns = pair->look_ns = now;
	if (now - pair->look_ns < LOOK_NS)
		return 0;
	pair->look_ns = now;
	err = comm->guard.stopped(comm->guard.arg);
	if (!err)
		err = comm->guard.left(comm->guard.arg,
				       pair->lane->conn->peer);
	if (!err)
		err = net_poll(comm->net);
	if (!err)
		err = net_watch(comm->net);
	if (!err && now - pair->start_ns >
			    (uint64_t)comm->guard.timeout_ms * MS)
		err = overdue(pair);
	return err;
}

/* Nothing to do: let others run, and see that all is well. */
static int idle(struct pair *pair)
{
	struct wreath_comm *comm = pair->comm;

	if (comm->net->polls_completions) {
		int err = net_poll(comm->net);

		if (err)
			return err;
	} else {
		base_pause();
	}
	if (++pair->n_idle < (uint32_t)comm->guard.n_spins_max)
		return 0;
	sched_yield();
	return pair->n_idle % 8 ? 0 : look(pair);
}

/* A message of the peer's, if one is there: 1, 0, or an error. */
static int take(struct pair *pair, struct ping *ping)
{
	struct net_lane *lane = pair->lane;
	enum net_arrival is_there = net_arrived(lane, PING);
	int err;

	if (is_there == NET_NONE)
		return 0;
	if (is_there == NET_MISMATCH)
		return base_error(WREATH_EMISMATCH,
				  "%s is in another call than %s, which "
				  "measures; every rank must make the same "
				  "calls in the same order",
				  pair->comm->names[lane->conn->peer],
				  pair->comm->names[pair->comm->rank]);
	memcpy(ping, net_payload(lane), sizeof(*ping));
	err = net_consume(lane, (uint32_t)pair->comm->net->n_slots / 2);
	pair->n_idle = 0;
	pair->start_ns = 0;
	return err ? err : 1;
}

static bool can_send(const struct pair *pair)
{
	return net_can_send(pair->lane, (uint32_t)pair->comm->net->n_slots);
}

static int send(struct pair *pair, uint32_t goes_on, uint32_t bytes)
{
	struct ping ping = {goes_on, bytes};

	memcpy(net_slot(pair->lane), &ping, sizeof(ping));
	return net_send_slot(pair->lane, bytes, PING);
}

/*
 * Keep @n_ahead messages of @bytes under way for @ns or until @n_max are back;
 * the seconds that each took into @each, the shortest way there and back into
 * @trip, where one is under way at a time.
 */
static int lead(struct pair *pair, uint32_t bytes, uint32_t n_ahead,
		uint64_t ns, uint32_t n_max, double *each, double *trip)
{
	uint64_t start = base_now_ns();
	uint64_t now = start;
	uint64_t last = start;
	uint64_t least = UINT64_MAX;
	uint32_t n_out = 0;
	uint32_t n_back = 0;

	while (n_back < n_out || (n_back < n_max && now - start < ns)) {
		bool is_open = n_out < n_max && now - start < ns;
		struct ping ping;
		int got;

		if (is_open && n_out - n_back < n_ahead && can_send(pair)) {
			int err = send(pair, 1, bytes);

			if (err)
				return err;
			n_out++;
			continue;
		}
		got = take(pair, &ping);
		if (got < 0)
			return got;
		if (!got) {
			got = idle(pair);
			if (got)
				return got;
			continue;
		}
		n_back++;
		now = base_now_ns();
		if (now - last < least)
			least = now - last;
		last = now;
	}
	*each = (double)(last - start) / 1e9 / n_back;
	*trip = (double)least / 1e9;
	return 0;
}

static int await_room(struct pair *pair)
{
	while (!can_send(pair)) {
		int err = idle(pair);

		if (err)
			return err;
	}
	return 0;
}

static int follow(struct pair *pair)
{
	for (;;) {
		struct ping ping;
		int err = take(pair, &ping);

		if (err < 0)
			return err;
		if (!err) {
			err = idle(pair);
			if (err)
				return err;
			continue;
		}
		if (!ping.goes_on)
			return 0;
		/* The peer's word is bounded by what a slot takes. */
		if (ping.bytes < sizeof(ping) ||
		    ping.bytes > pair->comm->net->slot_bytes)
			ping.bytes = sizeof(ping);
		err = await_room(pair);
		if (!err)
			err = send(pair, 1, ping.bytes);
		if (err)
			return err;
	}
}

static int stop(struct pair *pair)
{
	int err = await_room(pair);

	return err ? err : send(pair, 0, sizeof(struct ping));
}

static int stream(struct pair *pair, double *bandwidth)
{
	struct net *net = pair->comm->net;
	uint32_t bytes = STREAM_SMALL;
	double each, trip, rate;
	int err;

	*bandwidth = 0;
	/* What is mapped is copied by the rank itself, not by the device. */
	if (pair->lane->map_slots)
		return 0;
	if (bytes > net->slot_bytes)
		bytes = (uint32_t)net->slot_bytes;
	err = lead(pair, bytes, (uint32_t)net->n_slots, STREAM_NS, UINT32_MAX,
		   &each, &trip);
	if (err)
		return err;
	*bandwidth = bytes / each;
	if (each * 1e9 > STREAM_SLOW_NS || bytes == net->slot_bytes)
		return 0;
	bytes = (uint32_t)net->slot_bytes;
	err = lead(pair, bytes, (uint32_t)net->n_slots, STREAM_NS, UINT32_MAX,
		   &each, &trip);
	rate = bytes / each;
	if (!err && rate > *bandwidth)
		*bandwidth = rate;
	return err;
}

static int measure_pair(struct wreath_comm *comm, int peer, int channel,
			double *latency, double *bandwidth)
{
	struct net_conn *conn = net_conn(comm->net, peer, channel);
	struct pair pair = {.comm = comm, .lane = &conn->lanes[0]};
	uint32_t batch = (uint32_t)comm->net->n_slots / 2;
	double each, trip;
	int err = 0;

	/* Small messages before this leave more untold than slots allow. */
	if (pair.lane->n_received - pair.lane->n_credited >= batch)
		err = net_credit(pair.lane);
	if (err)
		return err;
	if (comm->rank > peer)
		return follow(&pair);
	/* The first is late: the other has still to come. */
	err = lead(&pair, sizeof(struct ping), 1, UINT64_MAX, 1, &each, &trip);
	if (!err)
		err = lead(&pair, sizeof(struct ping), 1, LATENCY_NS,
			   LATENCY_MAX, &each, &trip);
	if (!err)
		err = stream(&pair, bandwidth);
	if (!err)
		err = stop(&pair);
	if (err)
		return err;
	*latency = trip / 2;
	return 0;
}

/* ---- who with whom ---- */

/* The place of @rank among those of its node. */
static int place_of(const struct wreath_comm *comm, int rank)
{
	int place = 0;
	int i;

	for (i = 0; i < rank; i++)
		place += comm->nodes[i] == comm->nodes[rank];
	return place;
}

/* Who has that place in that node, or -1. */
static int rank_at(const struct wreath_comm *comm, uint32_t node, int place)
{
	int i;

	for (i = 0; i < comm->n_ranks; i++)
		if (comm->nodes[i] == node && !place--)
			return i;
	return -1;
}

static int pair_up(struct wreath_comm *comm, int near, int far)
{
	bool *peers;
	int err;

	if (near < 0 && far < 0)
		return 0;
	peers = base_alloc((size_t)comm->n_ranks, sizeof(*peers));
	if (!peers)
		return WREATH_ENOMEM;
	if (near >= 0)
		peers[near] = true;
	if (far >= 0)
		peers[far] = true;
	err = comm_connect_pairs(comm, peers);
	base_free(peers);
	return err;
}

/*
 * What a message costs each end by a port that keeps a rate: two WRITEs put
 * off and done later (fitted to 2, 4 and 8 ranks on 2 cores, by one-shot
 * all-reduces of 8 bytes: 4 to 12 us).
 */
#define PACED_OVERHEAD 8e-6

/*
 * What a device says of itself is more than a measurement among busy ranks:
 * it is as slow as that, at least and at most.
 */
static void believe_pace(const struct net_conn *conn, double *latency,
			 double *overhead, double *bandwidth)
{
	const struct verbs_pace *pace = &conn->port->device->pace;

	if (!verbs_is_paced(conn->port->device))
		return;
	*latency = (double)pace->latency_ns / 1e9;
	*overhead = PACED_OVERHEAD;
	*bandwidth = (double)pace->bits / 8;
}

static int measure_tier(struct wreath_comm *comm, int peer, int channel,
			int tier, struct sched_measured *out)
{
	const struct net_conn *conn;
	int err;

	if (peer < 0)
		return 0;
	conn = net_conn(comm->net, peer, channel);
	if (!tier && !conn->lanes[0].map_slots)
		out->maps_all = 0;
	/* Of mapped memory the defaults say more: they were fitted to it. */
	if (!tier && conn->lanes[0].map_slots)
		return 0;
	err = measure_pair(comm, peer, channel, &out->latency[tier],
			   &out->bandwidth[tier]);
	if (!err)
		believe_pace(conn, &out->latency[tier], &out->overhead[tier],
			     &out->bandwidth[tier]);
	return err;
}

int comm_measure(struct wreath_comm *comm, struct sched_measured *out)
{
	uint32_t node = comm->nodes[comm->rank];
	int place = place_of(comm, comm->rank);
	int near = rank_at(comm, node, place ^ 1);
	int far = rank_at(comm, node ^ 1, place);
	int n_rails = comm->n_nodes > 1 ? comm->net->n_rails : 0;
	int err = pair_up(comm, near, far);
	int rail;

	if (!err)
		err = measure_tier(comm, near, 0, 0, out);
	for (rail = 0; rail < n_rails && !err; rail++)
		err = measure_tier(comm, far, rail, 1 + rail, out);
	return err;
}
