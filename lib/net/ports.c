/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "net/inner.h"

#define NET_DEVICES_MAX 64

static void port_text(struct net_port *port)
{
	char gid[64] = "no GID";

	if (port->attr.link_layer == IBV_LINK_LAYER_INFINIBAND) {
		snprintf(port->text, sizeof(port->text),
			 "%.40s:%d InfiniBand LID %u", port->device->name,
			 port->number, port->attr.lid);
		return;
	}
	if (port->n_gids)
		net_gid_text(&port->gids[0], gid);
	snprintf(port->text, sizeof(port->text), "%.40s:%d RoCEv2 %s",
		 port->device->name, port->number, gid);
}

static int find_pkey(struct net_port *port, const struct base_env *env)
{
	uint16_t wanted = (uint16_t)env->value[BASE_ENV_PKEY];
	int i;

	for (i = 0; i < port->attr.pkey_tbl_len; i++) {
		uint16_t pkey;

		if (verbs_pkey(port->device, port->number, i, &pkey))
			continue;
		/* The top bit is membership, not part of the partition. */
		if (((pkey ^ wanted) & 0x7fff) == 0) {
			port->pkey_index = (uint16_t)i;
			return 0;
		}
	}
	return base_error(WREATH_EINVAL,
			  "WREATH_PKEY=%u is not in the table of %s port %d",
			  wanted, port->device->name, port->number);
}

/* 0, WREATH_EAGAIN where the port is not active, or an error. */
static int port_try(struct net_port *port, int number,
		    const struct base_env *env)
{
	int err = verbs_port(port->device, number, &port->attr);

	if (err)
		return err;
	if (port->attr.state != IBV_PORT_ACTIVE)
		return WREATH_EAGAIN;
	port->number = number;
	port->n_gids = 0;
	net_gids_find(port, env);
	if (port->attr.link_layer == IBV_LINK_LAYER_ETHERNET && !port->n_gids)
		return WREATH_EAGAIN;
	return find_pkey(port, env);
}

static int port_start(struct net *net, struct net_port *port)
{
	int n_cqe = net->n_ranks * NET_CHANNELS_MAX *
		    (NET_RQ_DEPTH + NET_SQ_DEPTH / NET_SIGNAL_EVERY + 2);
	int err, flags;

	if (n_cqe > port->device->attr.max_cqe)
		n_cqe = port->device->attr.max_cqe;
	err = verbs_pd_new(port->device, &port->pd);
	if (!err)
		err = verbs_channel_new(port->device, &port->channel);
	if (!err)
		err = verbs_cq_new(port->device, n_cqe, port->channel,
				   &port->cq);
	if (err)
		return err;
	/* The channel is polled; a read must never hang for a lost event. */
	flags = fcntl(port->channel->fd, F_GETFL);
	if (flags < 0 ||
	    fcntl(port->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return base_error(WREATH_EDEVICE,
				  "the completion channel of %s cannot be "
				  "made non-blocking", port->device->name);
	port->line_order =
		(port->device->verbs->promises & VERBS_LINE_ORDER) &&
		net->env->value[BASE_ENV_ARRIVAL] == 0;
	net->polls_completions |= !port->line_order;
	port_text(port);
	return 0;
}

static void port_stop(struct net_port *port)
{
	if (!port->device)
		return;
	verbs_cq_free(port->device, port->cq);
	verbs_channel_free(port->device, port->channel);
	verbs_pd_free(port->device, port->pd);
	verbs_device_close(port->device);
	memset(port, 0, sizeof(*port));
}

/* "NAME" or "NAME:PORT"; 0 stands for any port. */
static int parse_hca(const char *text, char name[64], int *number)
{
	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : strlen(text);
	int64_t value = 0;

	if (!length || length >= 64 ||
	    (colon && !base_parse_int(colon + 1, 1, 255, &value)))
		return base_error(WREATH_EINVAL,
				  "WREATH_HCA='%.64s' is not NAME or "
				  "NAME:PORT with a port from 1 to 255", text);
	memcpy(name, text, length);
	name[length] = 0;
	*number = (int)value;
	return 0;
}

/*
 * Open the first active port of @device_name, or its port @number.
 * WREATH_EAGAIN: no port is active.
 */
static int open_device(struct net *net, const struct verbs_table *verbs,
		       const char *device_name, int number)
{
	struct net_port *port = &net->ports[net->n_ports];
	int last = number;
	int i;
	int err = verbs_device_open(verbs, device_name, &port->device);

	if (err)
		return err;
	if (!number)
		last = port->device->attr.phys_port_cnt;
	err = WREATH_EAGAIN;
	if (last > port->device->attr.phys_port_cnt)
		err = base_error(WREATH_EINVAL,
				 "WREATH_HCA=%s:%d: the ports of %s are 1 to "
				 "%d", device_name, number, device_name,
				 port->device->attr.phys_port_cnt);
	for (i = number ? number : 1; i <= last && err == WREATH_EAGAIN; i++)
		err = port_try(port, i, net->env);
	if (!err)
		err = port_start(net, port);
	if (err) {
		port_stop(port);
		return err;
	}
	net->n_ports++;
	return 0;
}

/* Open the first device of @verbs that has an active port. */
static int open_any(struct net *net, const struct verbs_table *verbs,
		    bool is_soft)
{
	struct verbs_name names[NET_DEVICES_MAX];
	int err, i, n;

	err = verbs_list(verbs, names, NET_DEVICES_MAX, &n);
	if (err)
		return err;
	err = WREATH_EAGAIN;
	for (i = 0; i < n && i < NET_DEVICES_MAX && err == WREATH_EAGAIN; i++)
		err = open_device(net, verbs, names[i].name, 0);
	if (err == WREATH_EAGAIN && n)
		return base_error(WREATH_EDEVICE,
				  "none of the %d devices of %s has an active "
				  "port with a GID; `wreath info` shows them",
				  n, verbs->name);
	if (err == WREATH_EAGAIN)
		return base_error(WREATH_EDEVICE,
				  "%s has no device; is its driver loaded and "
				  "/dev/infiniband there?  Ranks of one host "
				  "need none, unless WREATH_SOFT is off",
				  verbs->name);
	if (!err)
		net->ports[net->n_ports - 1].is_soft = is_soft;
	return err;
}

static int open_named(struct net *net, const struct net_args *args)
{
	const struct verbs_table *const tables[] = {args->soft, args->ibv};
	const char *wanted = args->env->text[BASE_ENV_HCA];
	char known[256] = "";
	char name[64];
	int number = 0;
	int err;
	size_t t;

	err = parse_hca(wanted, name, &number);
	if (err)
		return err;
	for (t = 0; t < base_countof(tables); t++) {
		struct verbs_name names[NET_DEVICES_MAX];
		int i;
		int n = 0;

		if (!tables[t] ||
		    verbs_list(tables[t], names, NET_DEVICES_MAX, &n))
			continue;
		for (i = 0; i < n && i < NET_DEVICES_MAX; i++) {
			size_t at = strlen(known);

			snprintf(known + at, sizeof(known) - at, " %.32s",
				 names[i].name);
			if (strcmp(names[i].name, name))
				continue;
			err = open_device(net, tables[t], name, number);
			if (err != WREATH_EAGAIN) {
				net->ports[0].is_soft = !t;
				return err;
			}
			return base_error(WREATH_EDEVICE,
					  "WREATH_HCA=%s: the port is not "
					  "active, or has no GID", wanted);
		}
	}
	return base_error(WREATH_EINVAL,
			  "WREATH_HCA=%s: there is no such device; there are:%s",
			  wanted, *known ? known : " none");
}

int net_ports_open(struct net *net, const struct net_args *args)
{
	int err = WREATH_EAGAIN;

	if (*args->env->text[BASE_ENV_HCA])
		return open_named(net, args);
	if (args->soft)
		err = open_any(net, args->soft, true);
	if (!err && args->all_local)
		return 0;
	if (err && err != WREATH_EAGAIN && err != WREATH_EDEVICE)
		return err;
	if (args->ibv)
		return open_any(net, args->ibv, false);
	if (err == WREATH_EAGAIN || !args->all_local)
		return base_error(WREATH_EDEVICE,
				  "%s: ranks are on several hosts or the soft "
				  "device is off, and libibverbs has no "
				  "device; is rdma-core installed and "
				  "/dev/infiniband there?",
				  args->names[args->rank]);
	return err;
}

void net_ports_close(struct net *net)
{
	while (net->n_ports)
		port_stop(&net->ports[--net->n_ports]);
}

struct net_port *net_port_for(struct net *net, bool local)
{
	int i;

	for (i = 0; i < net->n_ports; i++)
		if (net->ports[i].is_soft == local)
			return &net->ports[i];
	return &net->ports[net->n_ports - 1];
}
