/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "bench/info.h"

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

/* Gb/s of a lane, by the bit of PortInfo's LinkSpeedActive. */
static double lane_rate(unsigned int speed)
{
	switch (speed) {
	case 1:
		return 2.5; /* SDR */
	case 2:
		return 5; /* DDR */
	case 4:
	case 8:
		return 10; /* QDR, FDR10 */
	case 16:
		return 14; /* FDR */
	case 32:
		return 25; /* EDR */
	case 64:
		return 50; /* HDR */
	case 128:
		return 100; /* NDR */
	}
	return 0;
}

static int n_lanes(unsigned int width)
{
	switch (width) {
	case 1:
		return 1;
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	}
	return 0;
}

/* The entries of a port's table that are in use. */
static void probe_gids(struct verbs_device *device, int length,
		       struct info_port *port)
{
	int i;

	for (i = 0; i < length && port->n_gids < INFO_GIDS_MAX; i++) {
		struct info_gid *gid = &port->gids[port->n_gids];
		struct ibv_gid_entry entry = {.gid = {.raw = {0}}};
		static const union ibv_gid none;

		if (verbs_gid(device, port->number, i, &entry) ||
		    !memcmp(&entry.gid, &none, sizeof(none)))
			continue;
		gid->index = i;
		gid->type = gid_type_name(entry.gid_type);
		inet_ntop(AF_INET6, entry.gid.raw, gid->text,
			  sizeof(gid->text));
		port->n_gids++;
	}
}

static int probe_port(struct verbs_device *device, struct info_port *port)
{
	struct ibv_port_attr attr = {0};
	int error = verbs_port(device, port->number, &attr);

	if (error)
		return error;
	port->state = state_name(attr.state);
	port->link_layer = attr.link_layer == IBV_LINK_LAYER_ETHERNET
				   ? "Ethernet"
				   : "InfiniBand";
	port->rate_gbps = lane_rate(attr.active_speed) *
			  n_lanes(attr.active_width);
	/* IBV_MTU_256 is 1, and each step doubles. */
	port->mtu = 128 << attr.active_mtu;
	port->lid = attr.lid;
	probe_gids(device, attr.gid_tbl_len, port);
	return 0;
}

static int probe_ports(struct verbs_device *device, struct info_device *info)
{
	int n = device->attr.phys_port_cnt;
	int error;
	int i;

	info->ports = calloc((size_t)n, sizeof(*info->ports));
	if (!info->ports)
		return base_error(WREATH_ENOMEM, "no memory for %d ports", n);
	for (i = 0; i < n; i++) {
		info->ports[i].number = i + 1;
		error = probe_port(device, &info->ports[i]);
		if (error)
			return error;
		info->n_ports++;
	}
	return 0;
}

static void probe_device(const struct verbs_table *table,
			 struct info_device *info)
{
	struct verbs_device *device;

	if (verbs_device_open(table, info->name, &device)) {
		snprintf(info->error, sizeof(info->error), "%s",
			 wreath_error_text());
		return;
	}
	snprintf(info->firmware, sizeof(info->firmware), "%.63s",
		 device->attr.fw_ver);
	if (probe_ports(device, info))
		snprintf(info->error, sizeof(info->error), "%s",
			 wreath_error_text());
	verbs_device_close(device);
}

void info_probe(int (*get)(const struct verbs_table **out), const char *name,
		struct info_source *source)
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
		probe_device(table, &source->devices[i]);
	}
}

void info_release(struct info_source *source)
{
	int i;

	for (i = 0; i < source->n_devices; i++)
		free(source->devices[i].ports);
}
