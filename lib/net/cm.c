/* SPDX-License-Identifier: MIT */
/* Ports that connect by librdmacm: their channels, listeners and records. */
#include <stdio.h>
#include <string.h>

#include "net/cm.h"

/*
 * The soft device has no kernel behind it that could connect it.  What the
 * kernel connects is not asked for its kind: an iWARP port, which has no other
 * way to be connected, would come here as an InfiniBand or RoCE port does.
 */
static bool wants_cm(const struct net *net, const struct net_port *port)
{
	return net->env->value[BASE_ENV_CONNECT] && !port->is_soft;
}

void net_cm_address(const struct net *net, const struct net_port *port, int i,
		    struct verbs_cm_address *out)
{
	memset(out, 0, sizeof(*out));
	out->gid = port->gids[i];
	out->is_ib = port->attr.link_layer == IBV_LINK_LAYER_INFINIBAND;
	out->pkey = (uint16_t)net->env->value[BASE_ENV_PKEY];
	out->scope = port->cm->scopes[i];
}

/*
 * One listener at each address: a peer chooses among them as the exchange
 * would, and an address that is not there any more is left out.
 */
static int listen_all(const struct net *net, struct net_port *port)
{
	struct net_cm_port *cm = port->cm;
	int i;
	int n = 0;

	for (i = 0; i < port->n_gids; i++) {
		struct verbs_cm_address address;
		struct ibv_gid_entry entry;

		if (verbs_gid(port->device, port->number, port->gid_index[i],
			      &entry))
			continue;
		cm->scopes[i] = entry.ndev_ifindex;
		net_cm_address(net, port, i, &address);
		if (verbs_cm_listen(cm->channel, port->device, port->number,
				    &address, &cm->listeners[i]))
			continue;
		cm->numbers[i] = address.number;
		n++;
	}
	cm->listens = n;
	if (n)
		return 0;
	return base_error(WREATH_ENET,
			  "%s: librdmacm can listen at none of its %d "
			  "addresses; the last one: %s", port->text,
			  port->n_gids, base_error_text());
}

static void deafen(struct net_cm_port *cm)
{
	int i;

	for (i = 0; i < NET_GIDS_MAX; i++) {
		verbs_cm_free(cm->listeners[i]);
		cm->listeners[i] = NULL;
		cm->numbers[i] = 0;
	}
	cm->listens = false;
}

void net_cm_deafen(struct net *net)
{
	int i;

	for (i = 0; i < net->n_ports; i++)
		if (net->ports[i].cm)
			deafen(net->ports[i].cm);
}

static int open_port(struct net_port *port)
{
	size_t at = strlen(port->text);
	int err;

	port->cm = base_alloc(1, sizeof(*port->cm));
	if (!port->cm)
		return WREATH_ENOMEM;
	err = verbs_cm_open(&port->cm->channel);
	if (!err)
		snprintf(port->text + at, sizeof(port->text) - at, " (cm)");
	return err;
}

int net_cm_open(struct net *net)
{
	int i;
	int err = 0;

	for (i = 0; i < net->n_ports && !err; i++)
		if (wants_cm(net, &net->ports[i]))
			err = open_port(&net->ports[i]);
	return err;
}

void net_cm_close(struct net *net)
{
	int i;

	for (i = 0; i < net->n_ports; i++) {
		struct net_cm_port *cm = net->ports[i].cm;

		if (!cm)
			continue;
		deafen(cm);
		verbs_cm_close(cm->channel);
		base_free(cm);
		net->ports[i].cm = NULL;
	}
}

int net_cm_conn_new(struct net_conn *conn, struct net_record *record)
{
	struct net_cm_port *port = conn->port->cm;
	int err = 0;

	if (!port)
		return 0;
	if (!port->listens)
		err = listen_all(conn->net, conn->port);
	if (err)
		return err;
	conn->cm = base_alloc(1, sizeof(*conn->cm));
	if (!conn->cm)
		return WREATH_ENOMEM;
	base_random(conn->local.token, sizeof(conn->local.token));
	memcpy(conn->local.cm_numbers, port->numbers, sizeof(port->numbers));
	conn->local.by_cm = 1;
	/* The rest goes by the card, to whoever has the token. */
	*record = conn->local;
	record->qpn = 0;
	record->psn = 0;
	record->rkey = 0;
	record->address = 0;
	record->board_rkey = 0;
	record->board = 0;
	return 0;
}

void net_cm_conn_free(struct net_conn *conn)
{
	if (!conn->cm)
		return;
	verbs_cm_free(conn->cm->id);
	base_free(conn->cm);
	conn->cm = NULL;
}
