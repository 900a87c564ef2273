/* SPDX-License-Identifier: MIT */
/* Which port each peer is reached by. */
#include <stdio.h>
#include <string.h>

#include "net/reach.h"

/* The ways to a peer: this rank's end is ends[@side]. */
struct ways {
	struct net_offer ends[2];
	struct net_pair pairs[NET_PAIRS_MAX];
	int n, side;
};

static bool is_local(const struct net *net, int peer)
{
	return net->hosts[peer] == net->hosts[net->rank];
}

static bool has_node_port(const struct net_offer *offer)
{
	int p;

	for (p = 0; p < offer->n_ports; p++)
		if (offer->ports[p].is_node)
			return true;
	return false;
}

/* Leave the addresses of those ports out that are not to be used. */
static void narrow(const struct net *net, int peer, int rail,
		   struct ways *ways)
{
	const int ranks[2] = {ways->side ? peer : net->rank,
			      ways->side ? net->rank : peer};
	bool node = net->nodes[peer] == net->nodes[net->rank] &&
		    has_node_port(&ways->ends[0]) &&
		    has_node_port(&ways->ends[1]);
	int p, side;

	for (side = 0; side < 2; side++) {
		const uint8_t *row = net->rail_ports + ranks[side] *
							       NET_PORTS_MAX;

		for (p = 0; p < ways->ends[side].n_ports; p++) {
			struct net_port_offer *port =
				&ways->ends[side].ports[p];

			if (rail < 0 ? !!port->is_node != node
				     : p != row[rail])
				port->n_gids = 0;
		}
	}
}

/* By @rail, or where it is -1 by whatever fits. */
static int find_ways(const struct net *net, int peer, int rail,
		     struct ways *ways)
{
	int err;

	ways->side = net->rank > peer;
	err = net_offer_of(net, net->rank, &ways->ends[ways->side]);
	if (!err)
		err = net_offer_of(net, peer, &ways->ends[!ways->side]);
	if (err)
		return err;
	narrow(net, peer, rail, ways);
	ways->n = net_pairs(ways->ends, is_local(net, peer), ways->pairs,
			    NET_PAIRS_MAX);
	return 0;
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
static int agree_by(struct net *net, int peer, int rail)
{
	struct ways ways;
	int err = find_ways(net, peer, rail, &ways);
	int i;

	if (err)
		return err;
	if (!ways.n)
		return no_way(net, peer, &ways,
			      net_pairs_why_none(ways.ends,
						 is_local(net, peer)));
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

static int agree_with(struct net *net, int peer)
{
	int err = 0;
	int i;

	if (net_rail_of(net, peer, 0) < 0)
		return agree_by(net, peer, -1);
	for (i = 0; i < net->n_rails && !err; i++)
		err = agree_by(net, peer, i);
	return err;
}

int net_agree_init(struct net *net)
{
	size_t n = (size_t)net->n_ranks;

	net->n_rails = 1;
	net->hosts = base_alloc(n, sizeof(*net->hosts));
	net->nodes = base_alloc(n, sizeof(*net->nodes));
	net->rail_ports = base_alloc(n, NET_PORTS_MAX);
	net->attempts = base_alloc(n, NET_CHANNELS_MAX);
	return net->hosts && net->nodes && net->rail_ports && net->attempts
		       ? 0 : WREATH_ENOMEM;
}

void net_agree_release(struct net *net)
{
	base_free(net->offers);
	base_free(net->attempts);
	base_free(net->rail_ports);
	base_free(net->nodes);
	base_free(net->hosts);
}

int net_agree(struct net *net, void *offers, size_t bytes,
	      const uint32_t *hosts, const uint32_t *nodes)
{
	int err, i;

	net->offers = offers;
	net->offer_bytes = bytes;
	net->n_nodes = 0;
	for (i = 0; i < net->n_ranks; i++) {
		net->hosts[i] = hosts[i];
		net->nodes[i] = nodes[i];
		if (nodes[i] >= net->n_nodes)
			net->n_nodes = nodes[i] + 1;
	}
	err = net_rails_agree(net);
	if (!err)
		err = net_ipc_agree(net);
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

static uint8_t *attempts_of(const struct net *net, int peer, int rail)
{
	return &net->attempts[peer * NET_CHANNELS_MAX + (rail < 0 ? 0 : rail)];
}

uint8_t net_agree_attempt(const struct net_conn *conn)
{
	int rail = net_rail_of(conn->net, conn->peer, conn->channel);

	return *attempts_of(conn->net, conn->peer, rail);
}

int net_agree_conn(struct net_conn *conn)
{
	struct net *net = conn->net;
	int rail = net_rail_of(net, conn->peer, conn->channel);
	int tried = net_agree_attempt(conn);
	const struct net_pair *pair;
	struct ways ways;
	int err = find_ways(net, conn->peer, rail, &ways);

	if (err)
		return err;
	wreath_assert(tried < ways.n);
	pair = &ways.pairs[tried];
	conn->port = port_of(net, &ways, pair);
	conn->is_routed = pair->tier == NET_TIER_ROUTED;
	get_gid(&ways, pair, ways.side, &conn->gid);
	get_gid(&ways, pair, !ways.side, &conn->other_gid);
	err = net_port_start(net, conn->port, &conn->gid);
	/* Once a pair has failed, its GID is no name for the port. */
	if (!err && tried)
		net_port_name(conn->port, &conn->gid);
	return err;
}

void net_agree_far_port(const struct net_conn *conn, char out[40])
{
	const struct net *net = conn->net;
	int rail = net_rail_of(net, conn->peer, conn->channel);
	struct ways ways;
	int tried;

	out[0] = 0;
	if (!net->offers || find_ways(net, conn->peer, rail, &ways))
		return;
	tried = net_agree_attempt(conn);
	if (tried >= ways.n)
		return;
	snprintf(out, 40, " of %.32s",
		 end_of(&ways, &ways.pairs[tried], !ways.side)->name);
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

static int none_left(const struct net *net, int peer, const struct ways *ways,
		     const char *whose, const struct net_verdict *cause)
{
	char pair[256], tried_text[640] = "";
	int i;

	for (i = 0; i < ways->n; i++) {
		size_t at = strlen(tried_text);

		pair_text(ways, i, pair);
		snprintf(tried_text + at, sizeof(tried_text) - at, "%s%s",
			 i ? ", " : "", pair);
	}
	return base_error(WREATH_ENET,
			  "%s cannot be connected to %s; tried: %s; at last "
			  "%s said: %.400s", net->names[net->rank],
			  net->names[peer], tried_text, whose, cause->text);
}

/* Pass on from the pair that is of no use on @rail. */
static int pass_on(struct net *net, int peer, int rail, const char *whose,
		   const struct net_verdict *cause)
{
	uint8_t *tried = attempts_of(net, peer, rail);
	char pair[256];
	struct ways ways;
	int err = find_ways(net, peer, rail, &ways);

	if (err)
		return err;
	if (*tried + 1 >= ways.n)
		return none_left(net, peer, &ways, whose, cause);
	pair_text(&ways, *tried, pair);
	base_log(BASE_LOG_WARN,
		 "%s reaches %s not by %s (%.300s); the next pair of ports is "
		 "tried", net->names[net->rank], net->names[peer], pair,
		 cause->text);
	++*tried;
	return 0;
}

/* What came over a network may be anything. */
static int rail_of(const struct net *net, int peer,
		   const struct net_verdict *verdict)
{
	return net_rail_of(net, peer, (int)(verdict->rail % NET_CHANNELS_MAX));
}

int net_agree_next(struct net *net, int peer, const struct net_verdict *mine,
		   const struct net_verdict *theirs)
{
	int err = 0;

	if (mine->error)
		err = pass_on(net, peer, rail_of(net, peer, mine), "the first",
			      mine);
	/* Both may have failed by one pair: that is passed on from once. */
	if (!err && theirs->error &&
	    (!mine->error ||
	     rail_of(net, peer, mine) != rail_of(net, peer, theirs)))
		err = pass_on(net, peer, rail_of(net, peer, theirs),
			      "the second", theirs);
	return err;
}
