/* SPDX-License-Identifier: MIT */
/* The ports that may be used. */
#include <stdio.h>
#include <string.h>

#include "net/search.h"

/* A link that comes up is looked for so often. */
#define LATE_STEP_MS 50
/* Waiting for a port is a small part of waiting for ranks: 5 s of 60. */
#define LATE_PART 12

static const char *state_name(enum ibv_port_state state)
{
	switch (state) {
	case IBV_PORT_DOWN:
		return "down";
	case IBV_PORT_INIT:
		return "initializing";
	case IBV_PORT_ARMED:
		return "armed";
	default:
		return "in an unknown state";
	}
}

static int find_pkey(struct net_port *port, const struct base_env *env)
{
	uint16_t wanted = (uint16_t)env->value[BASE_ENV_PKEY];
	char known[256] = "";
	int i;

	for (i = 0; i < port->attr.pkey_tbl_len; i++) {
		size_t at = strlen(known);
		uint16_t pkey;

		if (verbs_pkey(port->device, port->number, i, &pkey))
			continue;
		/* The top bit is membership, not part of the partition. */
		if (pkey && ((pkey ^ wanted) & 0x7fff) == 0) {
			port->pkey_index = (uint16_t)i;
			return 0;
		}
		if (pkey)
			snprintf(known + at, sizeof(known) - at, "%s%u",
				 at ? ", " : "", pkey);
	}
	return base_error(WREATH_EINVAL,
			  "WREATH_PKEY=%u is not in the table of %s port %d, "
			  "which has: %s; the fabric's manager gives them",
			  wanted, port->device->name, port->number,
			  *known ? known : "none");
}

/* "NAME" names all ports of a device, "NAME:PORT" one. */
static bool is_named(const struct net_port *port, const char *list)
{
	char own[80];
	size_t name = strlen(port->device->name);

	snprintf(own, sizeof(own), "%s:%d", port->device->name, port->number);
	while (*list) {
		size_t n = strcspn(list, ",");

		if ((n == name || n == strlen(own)) && !memcmp(list, own, n))
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

int net_port_check(struct net_port *port, const struct base_env *env)
{
	const char *list = env->text[BASE_ENV_HCA];

	if (*list && !is_named(port, list))
		return base_error(WREATH_EINVAL,
				  "WREATH_HCA=%.64s does not name it", list);
	return find_pkey(port, env);
}

/* The entry that WREATH_GID_INDEX asks for is of no use: what would be. */
static int wrong_gid(const struct net_port *port, int64_t wanted)
{
	struct net_gid_row *rows = base_alloc(NET_TABLE_MAX, sizeof(*rows));
	const char *what = "is empty";
	char good[256] = "";
	int i, n;

	if (!rows)
		return WREATH_ENOMEM;
	n = net_gid_rows(port->device, port->number, &port->attr, -1, rows,
			 NET_TABLE_MAX);
	for (i = 0; i < n; i++) {
		size_t at = strlen(good);
		union ibv_gid gid;
		char text[64];

		if (rows[i].index == wanted)
			what = rows[i].why;
		if (!rows[i].is_usable)
			continue;
		memcpy(gid.raw, rows[i].gid.raw, sizeof(gid.raw));
		net_gid_text(&gid, text);
		snprintf(good + at, sizeof(good) - at, "%s%d (%s)",
			 at ? ", " : "", rows[i].index, text);
	}
	base_free(rows);
	if (wanted >= port->attr.gid_tbl_len)
		what = "is beyond the table";
	return base_error(WREATH_EINVAL,
			  "WREATH_GID_INDEX=%d of %s port %d, which has "
			  "entries 0 to %d: %s; of use are: %s; unset it, and "
			  "one is chosen", (int)wanted, port->device->name,
			  port->number, port->attr.gid_tbl_len - 1, what,
			  *good ? good : "none");
}

/*
 * 0, an error, or WREATH_EAGAIN where the port may become usable: that is no
 * failure yet, and what is missing stands in @text.
 */
static int port_try(struct net_port *port, const struct base_env *env,
		    char text[256])
{
	int64_t wanted = env->value[BASE_ENV_GID_INDEX];
	int err = verbs_port(port->device, port->number, &port->attr);

	if (!err && port->attr.state != IBV_PORT_ACTIVE) {
		snprintf(text, 256, "%s:%d is not active, but %s",
			 port->device->name, port->number,
			 state_name(port->attr.state));
		return WREATH_EAGAIN;
	}
	if (!err)
		err = net_gids_find(port, wanted);
	if (!err && !port->n_gids && wanted >= 0 &&
	    port->attr.link_layer == IBV_LINK_LAYER_ETHERNET)
		err = wrong_gid(port, wanted);
	if (err)
		return err;
	if (!port->n_gids) {
		snprintf(text, 256,
			 "%s:%d has no GID that can be used: give its "
			 "interface an address (`ip addr add`)",
			 port->device->name, port->number);
		return WREATH_EAGAIN;
	}
	return find_pkey(port, env);
}

static bool is_known(const struct net *net, const struct verbs_device *device,
		     int number)
{
	int i;

	for (i = 0; i < net->n_ports; i++)
		if (net->ports[i].device == device &&
		    net->ports[i].number == number)
			return true;
	return false;
}

/*
 * Several soft ports of a kind reach the same peers, and all of them move bytes
 * by the cores of the ranks themselves: a second one gains nothing, unless it
 * has a rate of its own.  Who asks for them by name shall have them.
 */
static bool is_more_of_the_same(const struct net_search *search,
				const struct net_port *port)
{
	const struct net *net = search->net;
	int i;

	if (!port->is_soft || verbs_is_paced(port->device) ||
	    *search->args->env->text[BASE_ENV_HCA])
		return false;
	for (i = 0; i < net->n_ports; i++)
		if (net->ports[i].is_soft &&
		    !verbs_is_paced(net->ports[i].device) &&
		    net->ports[i].is_node == port->is_node &&
		    net->ports[i].attr.link_layer == port->attr.link_layer)
			return true;
	return false;
}

static int look_at_ports(struct net_search *search, int d)
{
	struct net *net = search->net;
	struct verbs_device *device = net->devices[d];
	int first = search->numbers[d] ? search->numbers[d] : 1;
	int last = search->numbers[d] ? first : device->attr.phys_port_cnt;

	if (last > device->attr.phys_port_cnt)
		return base_error(WREATH_EINVAL,
				  "WREATH_HCA=%s:%d: the ports of %s are 1 to "
				  "%d", device->name, last, device->name,
				  device->attr.phys_port_cnt);
	for (; first <= last; first++) {
		struct net_port *port = &net->ports[net->n_ports];
		char text[256];
		int err;

		if (is_known(net, device, first))
			continue;
		if (net->n_ports == NET_PORTS_MAX) {
			base_log(BASE_LOG_INFO,
				 "%s:%d is left out: %d ports are enough",
				 device->name, first, NET_PORTS_MAX);
			return 0;
		}
		memset(port, 0, sizeof(*port));
		port->device = device;
		port->number = first;
		port->is_soft = search->are_soft[d];
		port->is_node = port->is_soft &&
				!strcmp(device->name, NET_NODE_DEVICE);
		err = port_try(port, search->args->env, text);
		if (err == WREATH_ENOMEM)
			return err;
		search->may_come |= err == WREATH_EAGAIN;
		if (err == WREATH_EAGAIN)
			net_search_refuse(search, WREATH_EDEVICE, text);
		else if (err)
			net_search_refuse(search, err, base_error_text());
		if (!err && !is_more_of_the_same(search, port))
			net->n_ports++;
	}
	return 0;
}

/* Are there ports for every peer, as far as is known? */
static bool is_enough(const struct net_search *search)
{
	const struct net_args *args = search->args;
	const struct net *net = search->net;
	int i;

	for (i = 0; i < net->n_ports; i++)
		if (args->all_local || !net->ports[i].is_soft)
			return true;
	return false;
}

static int none(const struct net_search *search)
{
	const struct net_args *args = search->args;
	const char *name = args->names[args->rank];

	if (search->error)
		return base_error(search->error,
				  "%s: no port can be used: %s", name,
				  search->why);
	if (!args->all_local && search->n_listed)
		return base_error(WREATH_EDEVICE,
				  "%s: ranks are on several hosts, and "
				  "libibverbs has no device here; is its "
				  "driver loaded and /dev/infiniband there?",
				  name);
	return base_error(WREATH_EDEVICE,
			  "%s: the soft device is off, and libibverbs has no "
			  "device; is rdma-core installed, a driver loaded and "
			  "/dev/infiniband there?  Ranks of one host need "
			  "none, unless WREATH_SOFT is off", name);
}

int net_ports_look(struct net_search *search)
{
	int d;
	int err = 0;

	/* What the devices themselves said stays. */
	search->why[search->n_said] = 0;
	search->error = search->open_error;
	search->may_come = false;
	for (d = 0; d < search->net->n_devices && !err; d++)
		err = look_at_ports(search, d);
	return err;
}

int net_ports_open(struct net *net, const struct net_args *args)
{
	struct net_search search = {.net = net, .args = args};
	uint64_t end_ns = base_now_ns() +
			  (uint64_t)args->env->value[BASE_ENV_JOIN_TIMEOUT] *
				  (1000000 / LATE_PART);
	bool is_told = false;
	int err = net_devices_open(&search);

	search.n_said = strlen(search.why);
	search.open_error = search.error;
	while (!err) {
		err = net_ports_look(&search);
		if (err || is_enough(&search))
			break;
		if (!search.may_come || base_now_ns() > end_ns)
			return none(&search);
		if (!is_told)
			base_log(BASE_LOG_WARN,
				 "%s; waiting for it, up to %.1f s", search.why,
				 (double)(end_ns - base_now_ns()) / 1e9);
		is_told = true;
		base_sleep_ms(LATE_STEP_MS);
	}
	return err;
}
