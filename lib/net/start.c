/* SPDX-License-Identifier: MIT */
/* What a port needs to be used, made when it is first chosen for a peer. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "net/inner.h"

static int set_nonblocking(struct net_port *port)
{
	int flags = fcntl(port->channel->fd, F_GETFL);

	/* The channel is polled; a read must never hang for a lost event. */
	if (flags < 0 ||
	    fcntl(port->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return base_error(WREATH_EDEVICE,
				  "the completion channel of %s cannot be "
				  "made non-blocking", port->device->name);
	return 0;
}

static void port_stop(struct net_port *port)
{
	net_cm_close(port);
	verbs_mr_free(port->device, port->board_mr);
	verbs_cq_free(port->device, port->cq);
	verbs_channel_free(port->device, port->channel);
	verbs_pd_free(port->device, port->pd);
	base_free(port->counters);
	port->counters = NULL;
	port->board_mr = NULL;
	port->cq = NULL;
	port->channel = NULL;
	port->pd = NULL;
}

static int make_objects(struct net *net, struct net_port *port)
{
	/* A queue pair that breaks completes all that it has; where it may be
	 * mended none of that may be lost. */
	int n_sends = port->is_soft ? NET_SQ_DEPTH / NET_SIGNAL_EVERY + 2
				    : NET_SQ_DEPTH;
	int n_cqe = net->n_ranks * NET_CHANNELS_MAX * (NET_RQ_DEPTH + n_sends);
	int err;

	if (n_cqe > port->device->attr.max_cqe)
		n_cqe = port->device->attr.max_cqe;
	err = verbs_pd_new(port->device, &port->pd);
	if (!err)
		err = verbs_channel_new(port->device, &port->channel);
	if (!err)
		err = verbs_cq_new(port->device, n_cqe, port->channel,
				   &port->cq);
	if (!err)
		err = set_nonblocking(port);
	if (!err)
		err = verbs_mr_new(port->device, port->pd, net->board,
				   NET_SIGNS * sizeof(*net->board),
				   net->board_fd, 0, IBV_ACCESS_REMOTE_READ,
				   &port->board_mr);
	return err;
}

void net_port_name(struct net_port *port, const union ibv_gid *gid)
{
	char text[64];

	net_gid_text(gid, text);
	if (port->attr.link_layer == IBV_LINK_LAYER_INFINIBAND)
		snprintf(port->text, sizeof(port->text),
			 "%.40s:%d InfiniBand LID %u", port->device->name,
			 port->number, port->attr.lid);
	else
		snprintf(port->text, sizeof(port->text), "%.40s:%d RoCEv2 %s",
			 port->device->name, port->number, text);
}

int net_port_start(struct net *net, struct net_port *port,
		   const union ibv_gid *gid)
{
	int err;

	if (port->pd)
		return 0;
	net_port_name(port, gid);
	err = make_objects(net, port);
	if (!err)
		err = net_cm_open(net, port);
	if (!err && !port->is_soft) {
		port->counters = base_alloc(1, sizeof(*port->counters));
		err = port->counters ? 0 : WREATH_ENOMEM;
	}
	if (err) {
		port_stop(port);
		return err;
	}
	if (port->counters)
		verbs_counters(port->device->name, port->number,
			       port->counters);
	port->line_order =
		(port->device->verbs->promises & VERBS_LINE_ORDER) &&
		net->env->value[BASE_ENV_ARRIVAL] == 0;
	/* What a port carries out late is soonest done by who polls it. */
	net->polls_completions |= !port->line_order ||
				  verbs_is_paced(port->device);
	net->started[net->n_started++] = port;
	return 0;
}

bool net_maps_all(const struct net *net)
{
	int i;

	for (i = 0; i < net->n_started; i++)
		if (!net_port_maps(net->started[i]))
			return false;
	return true;
}

void net_ports_close(struct net *net)
{
	while (net->n_started)
		port_stop(net->started[--net->n_started]);
	while (net->n_devices)
		verbs_device_close(net->devices[--net->n_devices]);
}
