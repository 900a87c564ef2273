/* SPDX-License-Identifier: MIT */
/* What devices report by themselves: ports that go, tables that change. */
#include <poll.h>

#include "net/inner.h"

static void set_gone(struct net_port *port, const struct net_conn *conn)
{
	char text[64];

	if (port->has_reported && port->reported == IBV_EVENT_GID_CHANGE)
		return;
	port->reported = IBV_EVENT_GID_CHANGE;
	port->has_reported = true;
	net_gid_text(&conn->gid, text);
	base_log(BASE_LOG_WARN,
		 "%s reports IBV_EVENT_GID_CHANGE: GID %s, which connections "
		 "use, is gone; they fail unless its address comes back",
		 port->text, text);
}

/* The GIDs of connections: are they where queue pairs need them? */
static void look_for_gids(const struct net *net, struct net_port *port)
{
	int i;

	for (i = 0; i < net->n_active; i++) {
		const struct net_conn *conn = net->active[i];

		if (conn->port != port || net_gid_index(port, &conn->gid) >= 0)
			continue;
		set_gone(port, conn);
		return;
	}
	port->has_reported &= port->reported != IBV_EVENT_GID_CHANGE;
	base_log(BASE_LOG_INFO,
		 "%s reports IBV_EVENT_GID_CHANGE: its table of GIDs has "
		 "changed, and has those in use", port->text);
}

void net_gid_check(struct net_conn *conn)
{
	const struct net_port *port = conn->port;

	/* An InfiniBand port's GID is not what its packets are sent by. */
	if (port->attr.link_layer != IBV_LINK_LAYER_ETHERNET ||
	    !port->attr.gid_tbl_len || port->is_gone)
		return;
	if (net_gid_index(port, &conn->gid) < 0)
		set_gone(conn->port, conn);
}

/* A device has one queue of events for all of its ports. */
static struct net_port *port_meant(struct net *net, struct net_port *port,
				   const struct ibv_async_event *event)
{
	int i;

	switch (event->event_type) {
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_GID_CHANGE:
		break;
	default:
		return port;
	}
	for (i = 0; i < net->n_started; i++)
		if (net->started[i]->device == port->device &&
		    net->started[i]->number == event->element.port_num)
			return net->started[i];
	return port;
}

static void take(struct net *net, struct net_port *port,
		 enum ibv_event_type type)
{
	port->n_flaps += type == IBV_EVENT_PORT_ERR ||
			 type == IBV_EVENT_PORT_ACTIVE;
	switch (type) {
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_DEVICE_FATAL:
		port->is_gone |= type == IBV_EVENT_DEVICE_FATAL;
		port->reported = type;
		port->has_reported = true;
		base_log(BASE_LOG_INFO, "%s reports %s", port->text,
			 verbs_event_name(type));
		break;
	case IBV_EVENT_GID_CHANGE:
		look_for_gids(net, port);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		/* What it said of its end before holds no more. */
		port->has_reported &= port->reported != IBV_EVENT_PORT_ERR;
		base_log(BASE_LOG_INFO, "%s is active again", port->text);
		break;
	default:
		base_log(BASE_LOG_DEBUG, "%s reports %s", port->text,
			 verbs_event_name(type));
		break;
	}
}

void net_port_events(struct net *net, struct net_port *port)
{
	const struct verbs_table *verbs = port->device->verbs;
	struct pollfd fd = {.fd = port->device->context->async_fd,
			    .events = POLLIN};

	/* The descriptor blocks: only what is there is read. */
	while (poll(&fd, 1, 0) == 1 && (fd.revents & POLLIN)) {
		struct ibv_async_event event;

		if (verbs->get_async_event(port->device->context, &event))
			return;
		verbs->ack_async_event(&event);
		take(net, port_meant(net, port, &event), event.event_type);
	}
}

void net_events(struct net *net)
{
	int i;

	for (i = 0; i < net->n_started; i++)
		net_port_events(net, net->started[i]);
}
