/* SPDX-License-Identifier: MIT */
/*
 * The rails: what all ranks have alike.  A network is what the ports of a rail
 * have in common; where every rank has several ports on one network there are
 * several rails, the fastest ports of all on the first.
 *
 * A way over a router is no rail: whether there is one only the kernels of both
 * ends can tell, and all ranks must conclude alike.  Nor is a link-local
 * address, which does not tell one link from another.
 */
#include <stdatomic.h>
#include <string.h>

#include "net/inner.h"

struct network {
	struct net_gid gid; /* not of soft ports: one host is theirs */
	uint8_t link_layer;
	bool is_soft;
};

static bool is_candidate(const struct net_port_offer *port, bool soft)
{
	return !!port->is_soft == soft && !port->is_node;
}

/* By its @i-th address; false where that tells no network. */
static bool network_of(const struct net_port_offer *port, int i,
		       struct network *out)
{
	memset(out, 0, sizeof(*out));
	out->link_layer = port->link_layer;
	out->is_soft = port->is_soft;
	if (out->is_soft || i >= port->n_gids)
		return out->is_soft && !i;
	out->gid = port->gids[i];
	return out->gid.prefix && out->gid.kind != NET_GID_LINK_LOCAL &&
	       !(out->gid.flags & NET_GID_STRAY);
}

/* Equal prefixes make it an equivalence: all of a rail reach each other. */
static bool is_on(const struct net_port_offer *port,
		  const struct network *network)
{
	const struct net_gid *gid = &network->gid;
	struct network other;
	int i;

	if (!is_candidate(port, network->is_soft) ||
	    port->link_layer != network->link_layer)
		return false;
	if (network->is_soft)
		return true;
	for (i = 0; i < port->n_gids; i++)
		if (network_of(port, i, &other) &&
		    other.gid.kind == gid->kind &&
		    other.gid.prefix == gid->prefix &&
		    net_common_bits(other.gid.raw, gid->raw) >= gid->prefix)
			return true;
	return false;
}

static bool is_used(const struct net_rails *rails, int rank, int port)
{
	int j;

	for (j = 0; j < rails->n_found; j++)
		if (rails->ports[rank * NET_PORTS_MAX + j] == port)
			return true;
	return false;
}

/* The fastest of @rank's ports on @network that is on no rail; -1: none. */
static int best_port(const struct net_rails *rails,
		     const struct net_offer *offers, int rank,
		     const struct network *network)
{
	const struct net_port_offer *ports = offers[rank].ports;
	int found = -1;
	int p;

	for (p = 0; p < offers[rank].n_ports; p++)
		if (!is_used(rails, rank, p) && is_on(&ports[p], network) &&
		    (found < 0 || ports[p].mbps > ports[found].mbps))
			found = p;
	return found;
}

/* One more rail on @network, if every rank has a port for it. */
static bool add_rail(struct net_rails *rails, const struct net_offer *offers,
		     int n_ranks, const struct network *network)
{
	uint32_t mbps = UINT32_MAX;
	int r;

	if (rails->n_found == NET_PORTS_MAX)
		return false;
	for (r = 0; r < n_ranks; r++) {
		int port = best_port(rails, offers, r, network);

		if (port < 0)
			return false;
		rails->ports[r * NET_PORTS_MAX + rails->n_found] =
			(uint8_t)port;
		if (offers[r].ports[port].mbps < mbps)
			mbps = offers[r].ports[port].mbps;
	}
	rails->mbps[rails->n_found++] = mbps;
	return true;
}

/* First by all ports' best addresses: others may be of no great meaning. */
static void add_rails(struct net_rails *rails, const struct net_offer *offers,
		      int n_ranks, bool soft)
{
	int i, p;

	for (i = 0; i < NET_GIDS_MAX; i++) {
		for (p = 0; p < offers[0].n_ports; p++) {
			const struct net_port_offer *port =
				&offers[0].ports[p];
			struct network network;

			if (!is_candidate(port, soft) ||
			    !network_of(port, i, &network))
				continue;
			while (add_rail(rails, offers, n_ranks, &network))
				;
		}
	}
}

static void swap_rails(struct net_rails *rails, int n_ranks, int i, int j)
{
	uint32_t mbps = rails->mbps[i];
	int r;

	rails->mbps[i] = rails->mbps[j];
	rails->mbps[j] = mbps;
	for (r = 0; r < n_ranks; r++) {
		uint8_t *row = rails->ports + r * NET_PORTS_MAX;
		uint8_t port = row[i];

		row[i] = row[j];
		row[j] = port;
	}
}

/* Insertion keeps the order of those that are equally fast. */
static void sort_rails(struct net_rails *rails, int n_ranks)
{
	int i, j;

	for (i = 1; i < rails->n_found; i++)
		for (j = i; j && rails->mbps[j - 1] < rails->mbps[j]; j--)
			swap_rails(rails, n_ranks, j - 1, j);
}

static bool is_named(const struct net_rails *rails,
		     const struct net_offer *offers,
		     const struct network *network)
{
	int i;

	for (i = 0; i < rails->n_left; i++) {
		const struct net_rail_left *left = &rails->left[i];

		if (is_on(&offers[left->rank].ports[left->port], network))
			return true;
	}
	return false;
}

static void name_left(struct net_rails *rails, const struct net_offer *offers,
		      int n_ranks, int rank, int port)
{
	struct network network;
	int lacks = 0;

	if (!network_of(&offers[rank].ports[port], 0, &network) ||
	    is_named(rails, offers, &network))
		return;
	while (lacks < n_ranks &&
	       best_port(rails, offers, lacks, &network) >= 0)
		lacks++;
	if (lacks == n_ranks)
		return;
	rails->left[rails->n_left].rank = rank;
	rails->left[rails->n_left].port = port;
	rails->left[rails->n_left++].lacks = lacks;
}

void net_rails_find(const struct net_offer *offers, int n_ranks, bool one_host,
		    struct net_rails *rails)
{
	bool soft = one_host;
	int p, r;

	rails->n_found = 0;
	rails->n_left = 0;
	/* What is in the host is nearer than what leads out of it. */
	if (soft)
		add_rails(rails, offers, n_ranks, true);
	if (!rails->n_found) {
		soft = false;
		add_rails(rails, offers, n_ranks, false);
	}
	sort_rails(rails, n_ranks);
	rails->n = rails->n_found < NET_CHANNELS_MAX ? rails->n_found
						     : NET_CHANNELS_MAX;
	for (r = 0; r < n_ranks && rails->n; r++)
		for (p = 0; p < offers[r].n_ports; p++)
			if (rails->n_left < NET_LEFT_MAX &&
			    !is_used(rails, r, p) &&
			    is_candidate(&offers[r].ports[p], soft))
				name_left(rails, offers, n_ranks, r, p);
}

/* ---- the net's ---- */

static void tell_left(const struct net *net, const struct net_offer *offers,
		      const struct net_rails *rails)
{
	static atomic_bool is_told;
	bool again;
	int i;

	/* All ranks know, and one tells; of further communicators, which are
	 * likely of the same ranks, only who asks to hear more. */
	if (!rails->n_left || net->rank)
		return;
	again = atomic_exchange(&is_told, true);
	for (i = 0; i < rails->n_left; i++) {
		const struct net_rail_left *left = &rails->left[i];
		const struct net_port_offer *port =
			&offers[left->rank].ports[left->port];

		base_log(again ? BASE_LOG_INFO : BASE_LOG_WARN,
			 "%s has no port like %s (%s) of %s: it is not used "
			 "as a rail", net->names[left->lacks], port->name,
			 net_layer_name(port->link_layer),
			 net->names[left->rank]);
	}
}

static void tell_rails(const struct net *net, const struct net_offer *own)
{
	const uint8_t *ports = net->rail_ports + net->rank * NET_PORTS_MAX;
	int i;

	for (i = 0; i < net->n_rails && net->n_rails > 1; i++)
		base_log(BASE_LOG_INFO, "rail %d of %d is %s, %u Mb/s", i,
			 net->n_rails, own->ports[ports[i]].name,
			 net->rail_mbps[i]);
}

static uint32_t node_mbps(const struct net_offer *offer)
{
	int p;

	for (p = 0; p < offer->n_ports; p++)
		if (offer->ports[p].is_node)
			return offer->ports[p].mbps;
	return 0;
}

static void choose(struct net *net, const struct net_rails *rails,
		   const struct net_offer *offers)
{
	bool is_known = true;
	uint32_t mbps = UINT32_MAX;
	int r, i;

	for (r = 0; r < net->n_ranks; r++)
		if (node_mbps(&offers[r]) < mbps)
			mbps = node_mbps(&offers[r]);
	net->n_rails = rails->n < net->max_rails ? rails->n : net->max_rails;
	/* One node that has a port of its own needs no other. */
	if (net->n_nodes == 1 && mbps)
		net->n_rails = 1;
	for (i = 0; i < net->n_rails; i++) {
		net->rail_mbps[i] = rails->mbps[i];
		is_known &= rails->mbps[i] > 0;
	}
	if (net->n_nodes == 1 && mbps)
		net->rail_mbps[0] = mbps;
	else if (!is_known)
		memset(net->rail_mbps, 0, sizeof(net->rail_mbps));
	if (!net->n_rails)
		net->n_rails = 1;
	net->n_channels -= net->n_channels % net->n_rails;
	if (net->n_channels < net->n_rails)
		net->n_channels = net->n_rails;
}

int net_rails_agree(struct net *net)
{
	size_t n = (size_t)net->n_ranks;
	struct net_rails rails = {.ports = net->rail_ports};
	struct net_offer *offers = base_alloc(n, sizeof(*offers));
	bool one_host = true;
	int err = offers ? 0 : WREATH_ENOMEM;
	int r;

	for (r = 0; r < net->n_ranks && !err; r++) {
		one_host &= net->hosts[r] == net->hosts[0];
		err = net_offer_of(net, r, &offers[r]);
	}
	if (!err) {
		net_rails_find(offers, net->n_ranks, one_host, &rails);
		tell_left(net, offers, &rails);
		choose(net, &rails, offers);
		tell_rails(net, &offers[net->rank]);
	}
	base_free(offers);
	return err;
}

int net_rail_of(const struct net *net, int peer, int channel)
{
	if (net->n_rails <= 1 ||
	    (net->n_nodes > 1 && net->nodes[peer] == net->nodes[net->rank]))
		return -1;
	return channel % net->n_rails;
}
