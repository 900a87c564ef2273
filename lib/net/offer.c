/* SPDX-License-Identifier: MIT */
/* What a rank tells its peers of its ports, and how that travels. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "net/reach.h"

#define OFFER_MAGIC 0x776f0003u /* "wo", version 3 */

#define HEAD_BYTES offsetof(struct net_offer, ports)
#define PORT_BYTES offsetof(struct net_port_offer, gids)
_Static_assert(HEAD_BYTES + NET_PORTS_MAX * sizeof(struct net_port_offer) <=
		       NET_OFFER_MAX,
	       "the longest offer fits");

static void fill(const struct net_port *port, struct net_port_offer *out)
{
	memset(out, 0, sizeof(*out));
	snprintf(out->name, sizeof(out->name), "%.26s:%d", port->device->name,
		 port->number);
	out->mbps = verbs_mbps(port->device, &port->attr);
	out->lid = port->attr.lid;
	/* Old drivers leave it open, and are InfiniBand. */
	out->link_layer = port->attr.link_layer == IBV_LINK_LAYER_ETHERNET
				  ? IBV_LINK_LAYER_ETHERNET
				  : IBV_LINK_LAYER_INFINIBAND;
	out->mtu = (uint8_t)port->attr.active_mtu;
	out->is_soft = port->is_soft;
	out->is_node = port->is_node;
	out->n_gids = (uint8_t)port->n_gids;
	memcpy(out->gids, port->gids, sizeof(out->gids));
}

size_t net_offer(const struct net *net, void *out)
{
	struct net_offer head = {.magic = OFFER_MAGIC,
				 .n_ports = (uint8_t)net->n_ports};
	struct net_port_offer port;
	char *at = out;
	int i;

	net_ipc_offer(net->env, &head.ipc);
	memcpy(at, &head, HEAD_BYTES);
	at += HEAD_BYTES;
	for (i = 0; i < net->n_ports; i++) {
		size_t bytes;

		fill(&net->ports[i], &port);
		bytes = PORT_BYTES + port.n_gids * sizeof(port.gids[0]);
		memcpy(at, &port, bytes);
		at += bytes;
	}
	return (size_t)(at - (char *)out);
}

/* What came over a network may be anything. */
static bool is_sane(const struct net_port_offer *port)
{
	int i;

	if (port->n_gids > NET_GIDS_MAX ||
	    !memchr(port->name, 0, sizeof(port->name)) ||
	    (port->link_layer != IBV_LINK_LAYER_ETHERNET &&
	     port->link_layer != IBV_LINK_LAYER_INFINIBAND))
		return false;
	for (i = 0; port->name[i]; i++)
		if (!isprint((unsigned char)port->name[i]))
			return false;
	return true;
}

static bool unpack(const char *at, size_t room, struct net_offer *out)
{
	int i, j;

	memset(out, 0, sizeof(*out));
	if (room < HEAD_BYTES)
		return false;
	memcpy(out, at, HEAD_BYTES);
	at += HEAD_BYTES;
	room -= HEAD_BYTES;
	if (out->magic != OFFER_MAGIC || out->n_ports > NET_PORTS_MAX)
		return false;
	for (i = 0; i < out->n_ports; i++) {
		struct net_port_offer *port = &out->ports[i];
		size_t bytes;

		if (room < PORT_BYTES)
			return false;
		memcpy(port, at, PORT_BYTES);
		bytes = port->n_gids * sizeof(port->gids[0]);
		at += PORT_BYTES;
		room -= PORT_BYTES;
		if (!is_sane(port) || room < bytes)
			return false;
		memcpy(port->gids, at, bytes);
		at += bytes;
		room -= bytes;
		for (j = 0; j < port->n_gids; j++)
			if (port->gids[j].prefix > 128 ||
			    port->gids[j].kind > NET_GID_IB)
				return false;
	}
	return true;
}

int net_offer_of(const struct net *net, int rank, struct net_offer *out)
{
	if (unpack(net->offers + (size_t)rank * net->offer_bytes,
		   net->offer_bytes, out))
		return 0;
	return base_error(WREATH_EMISMATCH,
			  "%s speaks another version of wreath (its ports "
			  "cannot be read): install the same on all hosts",
			  net->names[rank]);
}

const char *net_layer_name(int link_layer)
{
	return link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet"
						     : "InfiniBand";
}

static size_t gid_text(const struct net_gid *gid, char *out, size_t size)
{
	int prefix = gid->kind == NET_GID_IPV4 ? gid->prefix - 96 : gid->prefix;
	union ibv_gid raw;
	char text[64];

	memcpy(raw.raw, gid->raw, sizeof(raw.raw));
	net_gid_text(&raw, text);
	if (prefix > 0)
		return (size_t)snprintf(out, size, " %s/%d", text, prefix);
	return (size_t)snprintf(out, size, " %s", text);
}

void net_offer_text(const struct net_offer *offer, char *out, size_t size)
{
	size_t at = 0;
	int i, j;

	snprintf(out, size, "no port");
	for (i = 0; i < offer->n_ports && at < size; i++) {
		const struct net_port_offer *port = &offer->ports[i];
		bool ib = port->link_layer == IBV_LINK_LAYER_INFINIBAND;

		char lid[16] = "";

		if (ib)
			snprintf(lid, sizeof(lid), " LID %u", port->lid);
		at += (size_t)snprintf(out + at, size - at, "%s%s (%s%s%s",
				       i ? ", " : "", port->name,
				       net_layer_name(port->link_layer), lid,
				       port->is_node   ? ", this node only"
				       : port->is_soft ? ", this host only"
						       : "");
		for (j = 0; j < port->n_gids && at < size; j++)
			at += gid_text(&port->gids[j], out + at, size - at);
		if (at < size)
			at += (size_t)snprintf(out + at, size - at, ")");
	}
	if (at >= size && size > 3)
		memcpy(out + size - 4, "...", 4);
}
