/* SPDX-License-Identifier: MIT */
/* Which port each peer is reached by. */
#include <stdio.h>
#include <string.h>

#include "net/inner.h"

/* The ways to a peer: this rank's end is ends[@side]. */
struct ways {
	struct net_offer ends[2];
	struct net_pair pairs[NET_PAIRS_MAX];
	int n, side;
};

static int find_ways(const struct net *net, int peer, struct ways *ways)
{
	int err;

	ways->side = net->rank > peer;
	err = net_offer_of(net, net->rank, &ways->ends[ways->side]);
	if (!err)
		err = net_offer_of(net, peer, &ways->ends[!ways->side]);
	if (!err)
		ways->n = net_pairs(ways->ends, net->is_local[peer],
				    ways->pairs, NET_PAIRS_MAX);
	return err;
}

static const struct net_port_offer *end_of(const struct ways *ways,
					   const struct net_pair *pair,
					   int side)
{
	return &ways->ends[side].ports[pair->port[side]];
}

static int no_way(const struct net *net, int peer, const struct ways *ways,
		  const char *why)
{
	/* Both ends and the reason fit in what all ranks are told. */
	char mine[400], theirs[400];

	net_offer_text(&ways->ends[ways->side], mine, sizeof(mine));
	net_offer_text(&ways->ends[!ways->side], theirs, sizeof(theirs));
	return base_error(WREATH_ENET,
			  "%s and %s have no ports that can be connected: the "
			  "first has %s; the second has %s; %s",
			  net->names[net->rank], net->names[peer], mine,
			  theirs, why);
}

static void get_gid(const struct ways *ways, const struct net_pair *pair,
		    int side, union ibv_gid *out)
{
	const struct net_gid *gid =
		&end_of(ways, pair, side)->gids[pair->gid[side]];

	memcpy(out->raw, gid->raw, sizeof(out->raw));
}

static struct net_port *port_of(struct net *net, const struct ways *ways,
				const struct net_pair *pair)
{
	return &net->ports[pair->port[ways->side]];
}

/* Does the kernel know a route between the ends of @pair? */
static bool is_routed(struct net *net, const struct ways *ways,
		      const struct net_pair *pair)
{
	struct net_port *port = port_of(net, ways, pair);
	union ibv_gid mine, theirs;
	struct ibv_ah_attr ah;
	int index;

	get_gid(ways, pair, ways->side, &mine);
	get_gid(ways, pair, !ways->side, &theirs);
	index = net_gid_index(port, &mine);
	if (index < 0)
		return false;
	net_address_fill(port, &mine, &theirs, index, net->env, &ah);
	return !verbs_ah_try(port->device, port->pd, &ah);
}

/*
 * A subnet in common is proof enough.  Without one the kernel is asked here,
 * so that hosts which cannot reach each other are told of when a communicator
 * is made, and not by its first operation.
 */
static int agree_with(struct net *net, int peer)
{
	struct ways ways;
	int err = find_ways(net, peer, &ways);
	int i;

	if (err)
		return err;
	if (!ways.n)
		return no_way(net, peer, &ways,
			      net_pairs_why_none(ways.ends,
						 net->is_local[peer]));
	for (i = 0; i < ways.n; i++) {
		const struct net_pair *pair = &ways.pairs[i];
		struct net_port *port = port_of(net, &ways, pair);
		union ibv_gid gid;

		get_gid(&ways, pair, ways.side, &gid);
		err = net_port_start(net, port, &gid);
		if (err)
			return err;
		if (pair->tier != NET_TIER_ROUTED ||
		    port->attr.link_layer != IBV_LINK_LAYER_ETHERNET ||
		    is_routed(net, &ways, pair))
			return 0;
	}
	return no_way(net, peer, &ways,
		      "their addresses are of different subnets, and the "
		      "kernel finds no way between them: give both an address "
		      "of one subnet (`ip addr add`), add a route, or choose "
		      "other ports by WREATH_HCA");
}

int net_agree(struct net *net, void *offers, size_t bytes,
	      const bool *is_local)
{
	int i;
	int err = 0;

	net->offers = offers;
	net->offer_bytes = bytes;
	memcpy(net->is_local, is_local, (size_t)net->n_ranks);
	for (i = 0; i < net->n_ranks && !err; i++)
		if (i != net->rank)
			err = agree_with(net, i);
	/* From here on other threads may read it. */
	for (i = 0; i < net->n_started; i++) {
		size_t at = strlen(net->text);

		snprintf(net->text + at, sizeof(net->text) - at, "%s%s",
			 at ? ", " : "", net->started[i]->text);
	}
	return err;
}

int net_agree_conn(struct net_conn *conn)
{
	struct net *net = conn->net;
	const struct net_pair *pair;
	struct ways ways;
	int err = find_ways(net, conn->peer, &ways);

	if (err)
		return err;
	wreath_assert(net->attempts[conn->peer] < ways.n);
	pair = &ways.pairs[net->attempts[conn->peer]];
	conn->port = port_of(net, &ways, pair);
	conn->is_routed = pair->tier == NET_TIER_ROUTED;
	get_gid(&ways, pair, ways.side, &conn->gid);
	get_gid(&ways, pair, !ways.side, &conn->other_gid);
	err = net_port_start(net, conn->port, &conn->gid);
	/* Once a pair has failed, its GID is no name for the port. */
	if (!err && net->attempts[conn->peer])
		net_port_name(conn->port, &conn->gid);
	return err;
}

void net_agree_far_port(const struct net_conn *conn, char out[40])
{
	const struct net *net = conn->net;
	const struct net_pair *pair;
	struct ways ways;

	out[0] = 0;
	if (!net->offers || find_ways(net, conn->peer, &ways) ||
	    net->attempts[conn->peer] >= ways.n)
		return;
	pair = &ways.pairs[net->attempts[conn->peer]];
	snprintf(out, 40, " of %.32s", end_of(&ways, pair, !ways.side)->name);
}

/* "rxe0:1 10.77.0.1 to rxe0:1 10.77.0.2", this rank's end first. */
static void pair_text(const struct ways *ways, int i, char out[256])
{
	const struct net_pair *pair = &ways->pairs[i];
	union ibv_gid mine, theirs;
	char text[2][64];

	get_gid(ways, pair, ways->side, &mine);
	get_gid(ways, pair, !ways->side, &theirs);
	net_gid_text(&mine, text[0]);
	net_gid_text(&theirs, text[1]);
	snprintf(out, 256, "%s %s to %s %s",
		 end_of(ways, pair, ways->side)->name, text[0],
		 end_of(ways, pair, !ways->side)->name, text[1]);
}

int net_agree_next(struct net *net, int peer, const struct net_verdict *mine,
		   const struct net_verdict *theirs)
{
	const struct net_verdict *cause = mine->error ? mine : theirs;
	int tried = net->attempts[peer];
	char pair[256], tried_text[640] = "";
	struct ways ways;
	int err = find_ways(net, peer, &ways);
	int i;

	if (err)
		return err;
	pair_text(&ways, tried, pair);
	if (tried + 1 < ways.n) {
		base_log(BASE_LOG_WARN,
			 "%s reaches %s not by %s (%.300s); the next pair of "
			 "ports is tried", net->names[net->rank],
			 net->names[peer], pair, cause->text);
		net->attempts[peer]++;
		return 0;
	}
	for (i = 0; i <= tried; i++) {
		size_t at = strlen(tried_text);

		pair_text(&ways, i, pair);
		snprintf(tried_text + at, sizeof(tried_text) - at, "%s%s",
			 i ? ", " : "", pair);
	}
	return base_error(WREATH_ENET,
			  "%s cannot be connected to %s; tried: %s; at last "
			  "%s said: %.400s", net->names[net->rank],
			  net->names[peer], tried_text,
			  mine->error ? "the first" : "the second",
			  cause->text);
}
