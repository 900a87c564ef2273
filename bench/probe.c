/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/info.h"
#include "net/net.h"

static const char *state_name(enum ibv_port_state state)
{
	switch (state) {
	case IBV_PORT_DOWN:
		return "down";
	case IBV_PORT_INIT:
		return "initializing";
	case IBV_PORT_ARMED:
		return "armed";
	case IBV_PORT_ACTIVE:
		return "active";
	case IBV_PORT_ACTIVE_DEFER:
		return "active, deferred";
	case IBV_PORT_NOP:
		break;
	}
	return "unknown";
}

static const char *gid_type_name(uint32_t type)
{
	switch (type) {
	case IBV_GID_TYPE_IB:
		return "IB";
	case IBV_GID_TYPE_ROCE_V1:
		return "RoCE v1";
	case IBV_GID_TYPE_ROCE_V2:
		return "RoCE v2";
	}
	return "unknown";
}

static void take_gid(const struct net_gid_row *row, struct info_gid *gid)
{
	bool is_ipv4 = row->gid.kind == NET_GID_IPV4;

	gid->index = row->index;
	gid->type = gid_type_name(row->type);
	gid->verdict = row->why;
	gid->prefix = row->gid.prefix;
	snprintf(gid->interface, sizeof(gid->interface), "%s", row->ifname);
	inet_ntop(AF_INET6, row->gid.raw, gid->text, sizeof(gid->text));
	snprintf(gid->address, sizeof(gid->address), "%s", gid->text);
	if (!is_ipv4)
		return;
	inet_ntop(AF_INET, row->gid.raw + 12, gid->address,
		  sizeof(gid->address));
	gid->prefix = row->gid.prefix > 96 ? row->gid.prefix - 96 : 0;
}

/* The entries of a port's table that are in use. */
static int probe_gids(struct verbs_device *device,
		      const struct ibv_port_attr *attr,
		      const struct base_env *env, struct info_port *port)
{
	int64_t wanted = env ? env->value[BASE_ENV_GID_INDEX] : -1;
	struct net_gid_row *rows = calloc(INFO_GIDS_MAX, sizeof(*rows));
	int i;

	if (!rows)
		return base_error(WREATH_ENOMEM, "no memory for %d GIDs",
				  INFO_GIDS_MAX);
	port->n_gids = net_gid_rows(device, port->number, attr, wanted, rows,
				    INFO_GIDS_MAX);
	for (i = 0; i < port->n_gids; i++) {
		take_gid(&rows[i], &port->gids[i]);
		if (port->refusal[0] && rows[i].is_usable)
			port->gids[i].verdict = "the port is refused";
	}
	free(rows);
	return 0;
}

/* Why the settings do not want the port. */
static void check_port(struct verbs_device *device,
		       const struct ibv_port_attr *attr,
		       const struct base_env *env, struct info_port *port)
{
	struct net_port checked = {
		.device = device, .number = port->number, .attr = *attr};

	if (env && net_port_check(&checked, env))
		snprintf(port->refusal, sizeof(port->refusal), "%s",
			 wreath_error_text());
}

static int probe_port(struct verbs_device *device, const struct base_env *env,
		      struct info_port *port)
{
	struct ibv_port_attr attr = {0};
	int error = verbs_port(device, port->number, &attr);

	if (error)
		return error;
	port->state = state_name(attr.state);
	port->link_layer = attr.link_layer == IBV_LINK_LAYER_ETHERNET
				   ? "Ethernet"
				   : "InfiniBand";
	port->rate_gbps = device->pace.bits
				  ? (double)device->pace.bits / 1e9
				  : verbs_port_mbps(&attr) / 1000.0;
	port->latency_us = (double)device->pace.latency_ns / 1e3;
	/* IBV_MTU_256 is 1, and each step doubles. */
	port->mtu = 128 << attr.active_mtu;
	port->lid = attr.lid;
	check_port(device, &attr, env, port);
	return probe_gids(device, &attr, env, port);
}

static int probe_ports(struct verbs_device *device, const struct base_env *env,
		       struct info_device *info)
{
	int n = device->attr.phys_port_cnt;
	int error;
	int i;

	info->ports = calloc((size_t)n, sizeof(*info->ports));
	if (!info->ports)
		return base_error(WREATH_ENOMEM, "no memory for %d ports", n);
	for (i = 0; i < n; i++) {
		info->ports[i].number = i + 1;
		error = probe_port(device, env, &info->ports[i]);
		if (error)
			return error;
		info->n_ports++;
	}
	return 0;
}

static void probe_device(const struct verbs_table *table,
			 const struct base_env *env, struct info_device *info)
{
	struct verbs_device *device;

	if (verbs_device_open(table, info->name, &device)) {
		snprintf(info->error, sizeof(info->error), "%s",
			 wreath_error_text());
		return;
	}
	snprintf(info->firmware, sizeof(info->firmware), "%.63s",
		 device->attr.fw_ver);
	if (probe_ports(device, env, info))
		snprintf(info->error, sizeof(info->error), "%s",
			 wreath_error_text());
	verbs_device_close(device);
}

void info_probe(int (*get)(const struct verbs_table **out), const char *name,
		const struct base_env *env, struct info_source *source)
{
	struct verbs_name names[INFO_DEVICES_MAX];
	const struct verbs_table *table;
	int n = 0;
	int i;

	memset(source, 0, sizeof(*source));
	source->name = name;
	if (get(&table) || verbs_list(table, names, INFO_DEVICES_MAX, &n)) {
		snprintf(source->error, sizeof(source->error), "%s",
			 wreath_error_text());
		return;
	}
	source->n_devices = n < INFO_DEVICES_MAX ? n : INFO_DEVICES_MAX;
	for (i = 0; i < source->n_devices; i++) {
		snprintf(source->devices[i].name,
			 sizeof(source->devices[i].name), "%.63s",
			 names[i].name);
		probe_device(table, env, &source->devices[i]);
	}
}

void info_probe_cm(char why[512])
{
	struct rdma_event_channel *channel;

	why[0] = 0;
	if (verbs_cm_open(&channel))
		snprintf(why, 512, "%s", wreath_error_text());
	else
		verbs_cm_close(channel);
}

void info_release(struct info_source *source)
{
	int i;

	for (i = 0; i < source->n_devices; i++)
		free(source->devices[i].ports);
}
