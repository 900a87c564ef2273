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

int net_cm_open(const struct net *net, struct net_port *port)
{
	size_t at = strlen(port->text);
	int err;

	if (!wants_cm(net, port))
		return 0;
	port->cm = base_alloc(1, sizeof(*port->cm));
	if (!port->cm)
		return WREATH_ENOMEM;
	err = verbs_cm_open(&port->cm->channel);
	if (!err)
		snprintf(port->text + at, sizeof(port->text) - at, " (cm)");
	return err;
}

void net_cm_deafen(struct net_port *port)
{
	struct net_cm_port *cm = port->cm;

	while (cm->n_listeners)
		verbs_cm_free(cm->listeners[--cm->n_listeners].id);
}

void net_cm_close(struct net_port *port)
{
	if (!port->cm)
		return;
	net_cm_deafen(port);
	verbs_cm_close(port->cm->channel);
	base_free(port->cm);
	port->cm = NULL;
}

void net_cm_address(const struct net *net, const struct net_port *port,
		    const union ibv_gid *gid, struct verbs_cm_address *out)
{
	int i;

	memset(out, 0, sizeof(*out));
	out->gid = *gid;
	out->is_ib = port->attr.link_layer == IBV_LINK_LAYER_INFINIBAND;
	out->pkey = (uint16_t)net->env->value[BASE_ENV_PKEY];
	for (i = 0; i < port->n_gids; i++)
		if (!memcmp(port->gids[i].raw, gid->raw, 16))
			out->scope = port->ifindexes[i];
}

/* The number of the listener at @gid, which is made at first use. */
static int listen_at(const struct net *net, struct net_port *port,
		     const union ibv_gid *gid, uint16_t *number)
{
	struct net_cm_port *cm = port->cm;
	struct net_cm_listener *listener = cm->listeners;
	int i, err;

	for (i = 0; i < cm->n_listeners; i++, listener++) {
		if (memcmp(&listener->address.gid, gid, sizeof(*gid)))
			continue;
		*number = listener->address.number;
		return 0;
	}
	/* Each is one of the port's GIDs, and there are no more of those. */
	wreath_assert(i < NET_GIDS_MAX);
	net_cm_address(net, port, gid, &listener->address);
	err = verbs_cm_listen(cm->channel, port->device, port->number,
			      &listener->address, &listener->id);
	if (err)
		return err;
	cm->n_listeners++;
	*number = listener->address.number;
	return 0;
}

int net_cm_conn_new(struct net_conn *conn, struct net_record *record)
{
	int err = 0;

	if (!conn->port->cm)
		return 0;
	conn->cm = base_alloc(1, sizeof(*conn->cm));
	if (!conn->cm)
		return WREATH_ENOMEM;
	/* An address that has just gone is no end: there may be another. */
	conn->local.cm_number = NET_CM_DEAF;
	if (!net_cm_asks(conn))
		err = listen_at(conn->net, conn->port, &conn->gid,
				&conn->local.cm_number);
	if (err == WREATH_ENOMEM)
		return err;
	base_random(conn->local.token, sizeof(conn->local.token));
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

int net_cm_can_meet(const struct net_conn *conn)
{
	if (net_cm_asks(conn) || conn->local.cm_number != NET_CM_DEAF)
		return 0;
	return base_error(WREATH_ENET,
			  "%s: librdmacm cannot listen there; was the address "
			  "removed?", conn->port->text);
}

bool net_cm_has_way(const struct net_conn *conn, struct ibv_ah_attr *ah)
{
	if (!conn->cm || conn->cm->state != NET_CM_DONE)
		return false;
	*ah = conn->cm->ah;
	return true;
}

void net_cm_conn_free(struct net_conn *conn)
{
	if (!conn->cm)
		return;
	verbs_cm_free(conn->cm->id);
	base_free(conn->cm);
	conn->cm = NULL;
}
