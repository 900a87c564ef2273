/* SPDX-License-Identifier: MIT */
/* A port's table of GIDs, and which of them may be used. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "net/inner.h"
#include "topo/topo.h"

enum net_gid_kind net_gid_kind(const uint8_t raw[16])
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};

	if (!memcmp(raw, v4, sizeof(v4)))
		return NET_GID_IPV4;
	if (raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80)
		return NET_GID_LINK_LOCAL;
	return NET_GID_IPV6;
}

void net_gid_text(const union ibv_gid *gid, char out[64])
{
	if (net_gid_kind(gid->raw) == NET_GID_IPV4)
		inet_ntop(AF_INET, gid->raw + 12, out, 64);
	else
		inet_ntop(AF_INET6, gid->raw, out, 64);
}

/* What the interfaces of the host say. */
struct addrs {
	struct topo_addr *list;
	int n;
};

/* The address itself: of the entry's interface, or else of any. */
static const struct topo_addr *find_addr(const struct addrs *addrs,
					 const uint8_t raw[16],
					 unsigned int ifindex)
{
	const struct topo_addr *found = NULL;
	int i;

	for (i = 0; i < addrs->n; i++) {
		const struct topo_addr *addr = &addrs->list[i];

		if (memcmp(addr->addr, raw, 16))
			continue;
		if (addr->ifindex == ifindex)
			return addr;
		found = found ? found : addr;
	}
	return found;
}

static const struct topo_addr *find_interface(const struct addrs *addrs,
					      unsigned int ifindex)
{
	int i;

	for (i = 0; i < addrs->n; i++)
		if (addrs->list[i].ifindex == ifindex)
			return &addrs->list[i];
	return NULL;
}

static void refuse(struct net_gid_row *row, const char *why)
{
	row->is_usable = false;
	row->why = why;
}

/* What the interface behind an entry of an Ethernet port's table says. */
static void judge_interface(struct net_gid_row *row, const struct addrs *addrs)
{
	unsigned int ifindex = row->ifindex;
	struct net_gid *gid = &row->gid;
	const struct topo_addr *own = find_interface(addrs, ifindex);
	const struct topo_addr *addr = find_addr(addrs, gid->raw, ifindex);
	const struct topo_addr *at = addr ? addr : own;

	if (gid->kind == NET_GID_LINK_LOCAL)
		gid->prefix = 64;
	/* Without an interface (the soft device) nothing more is known. */
	if (!ifindex || !addrs->n)
		return;
	if (at) {
		snprintf(row->ifname, sizeof(row->ifname), "%s", at->ifname);
		gid->flags |= at->is_vlan ? NET_GID_VLAN : 0;
	}
	if (addr) {
		gid->prefix = addr->prefix;
	} else if (gid->kind != NET_GID_LINK_LOCAL) {
		/* In a container the interface may be the host's. */
		gid->flags |= NET_GID_STRAY;
		row->why = "no address on the interface: only if nothing "
			   "better";
	}
	if (at && !at->is_up)
		refuse(row, "interface is down");
	else if (gid->kind == NET_GID_LINK_LOCAL && (gid->flags & NET_GID_VLAN))
		refuse(row, "link-local of a VLAN: does not tell which");
}

static void judge(struct net_gid_row *row, bool ethernet, int64_t wanted,
		  const struct addrs *addrs)
{
	static const uint8_t none[16];
	struct net_gid *gid = &row->gid;

	row->is_usable = true;
	row->why = "candidate";
	if (!memcmp(gid->raw, none, sizeof(none))) {
		refuse(row, "all zero");
		return;
	}
	if (!ethernet) {
		gid->kind = NET_GID_IB;
		gid->prefix = 64;
		/* The first is the port's own; others are aliases. */
		if (row->index)
			refuse(row, "an alias: the first is the port's own");
		return;
	}
	gid->kind = (uint8_t)net_gid_kind(gid->raw);
	if (gid->kind == NET_GID_LINK_LOCAL)
		row->why = "link-local: only if nothing better";
	judge_interface(row, addrs);
	if (row->type != IBV_GID_TYPE_ROCE_V2)
		refuse(row, "RoCE v1");
	else if (wanted >= 0 && wanted != row->index)
		refuse(row, "WREATH_GID_INDEX demands another");
}

static int order(const struct net_gid *gid)
{
	return gid->flags & NET_GID_STRAY ? NET_GID_IB : gid->kind;
}

static struct net_gid_row *best(struct net_gid_row *rows, int n)
{
	struct net_gid_row *found = NULL;
	int i;

	for (i = 0; i < n; i++)
		if (rows[i].is_usable &&
		    (!found || order(&rows[i].gid) < order(&found->gid)))
			found = &rows[i];
	return found;
}

int net_gid_rows(struct verbs_device *device, int port,
		 const struct ibv_port_attr *attr, int64_t wanted,
		 struct net_gid_row *rows, int max)
{
	bool ethernet = attr->link_layer == IBV_LINK_LAYER_ETHERNET;
	struct addrs addrs = {NULL, 0};
	struct net_gid_row *chosen;
	int i, n = 0;

	/* Without them GIDs are still GIDs: the kernel will judge. */
	if (ethernet && topo_addrs(&addrs.list, &addrs.n))
		addrs.n = 0;
	for (i = 0; i < attr->gid_tbl_len && i < NET_TABLE_MAX && n < max;
	     i++) {
		struct net_gid_row *row = &rows[n];
		struct ibv_gid_entry entry = {.gid_index = 0};

		if (!verbs_gid_try(device, port, i, &entry))
			continue;
		memset(row, 0, sizeof(*row));
		memcpy(row->gid.raw, entry.gid.raw, sizeof(row->gid.raw));
		row->index = i;
		row->type = entry.gid_type;
		row->ifindex = entry.ndev_ifindex;
		judge(row, ethernet, wanted, &addrs);
		n++;
	}
	base_free(addrs.list);
	chosen = best(rows, n);
	if (chosen)
		chosen->why = "chosen";
	return n;
}

static void add_candidate(struct net_port *port, const struct net_gid_row *row)
{
	const struct net_gid *gid = &row->gid;
	int at = port->n_gids;
	int i;

	while (at && order(&port->gids[at - 1]) > order(gid))
		at--;
	if (at == NET_GIDS_MAX)
		return;
	if (port->n_gids < NET_GIDS_MAX)
		port->n_gids++;
	for (i = port->n_gids - 1; i > at; i--) {
		port->gids[i] = port->gids[i - 1];
		port->ifindexes[i] = port->ifindexes[i - 1];
	}
	port->gids[at] = *gid;
	port->ifindexes[at] = row->ifindex;
}

int net_gids_find(struct net_port *port, int64_t wanted)
{
	struct net_gid_row *rows = base_alloc(NET_TABLE_MAX, sizeof(*rows));
	int i, n;

	if (!rows)
		return WREATH_ENOMEM;
	n = net_gid_rows(port->device, port->number, &port->attr, wanted, rows,
			 NET_TABLE_MAX);
	port->n_gids = 0;
	for (i = 0; i < n; i++)
		if (rows[i].is_usable)
			add_candidate(port, &rows[i]);
	base_free(rows);
	return 0;
}
