/* SPDX-License-Identifier: MIT */
/* The one place where the addresses of InfiniBand and Ethernet differ. */
#include <string.h>

#include "net/inner.h"

/* DSCP 26, what most RoCE networks give their lossless class. */
#define NET_TRAFFIC_CLASS 106
#define NET_HOP_LIMIT 64

/*
 * Of the interface that it was found on: VLANs of a port have its link-local
 * address, too.  Any other address may have come back on another interface.
 */
static bool is_same_link(const struct net_port *port,
			 const struct ibv_gid_entry *entry)
{
	int i;

	if (net_gid_kind(entry->gid.raw) != NET_GID_LINK_LOCAL)
		return true;
	for (i = 0; i < port->n_gids; i++)
		if (!memcmp(port->gids[i].raw, entry->gid.raw, 16))
			return port->ifindexes[i] == entry->ndev_ifindex;
	return true;
}

int net_gid_index(const struct net_port *port, const union ibv_gid *gid)
{
	bool ethernet = port->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	int i;

	for (i = 0; i < port->attr.gid_tbl_len && i < NET_TABLE_MAX; i++) {
		struct ibv_gid_entry entry = {.gid_index = 0};

		if (!verbs_gid_try(port->device, port->number, i, &entry) ||
		    memcmp(&entry.gid, gid, sizeof(*gid)))
			continue;
		if (!ethernet || (entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
				  is_same_link(port, &entry)))
			return i;
	}
	return -1;
}

int net_traffic_class(const struct net_port *port, const struct base_env *env)
{
	int64_t wanted = env->value[BASE_ENV_TRAFFIC_CLASS];

	if (port->attr.link_layer != IBV_LINK_LAYER_ETHERNET)
		return -1;
	return wanted < 0 ? NET_TRAFFIC_CLASS : (int)wanted;
}

void net_address_fill(const struct net_port *port, const union ibv_gid *mine,
		      const union ibv_gid *theirs, int index,
		      const struct base_env *env, struct ibv_ah_attr *ah)
{
	bool ethernet = port->attr.link_layer == IBV_LINK_LAYER_ETHERNET;

	memset(ah, 0, sizeof(*ah));
	ah->port_num = (uint8_t)port->number;
	ah->sl = (uint8_t)env->value[BASE_ENV_SL];
	/* Within a subnet of InfiniBand the LID says all. */
	if (!ethernet && !memcmp(mine->raw, theirs->raw, 8))
		return;
	ah->is_global = 1;
	ah->grh.dgid = *theirs;
	ah->grh.sgid_index = (uint8_t)index;
	ah->grh.hop_limit = NET_HOP_LIMIT;
	if (ethernet)
		ah->grh.traffic_class = (uint8_t)net_traffic_class(port, env);
}

int net_address(struct net_conn *conn, const struct base_env *env,
		struct ibv_ah_attr *ah)
{
	struct net_port *port = conn->port;
	int index = net_gid_index(port, &conn->gid);
	char text[64];

	/* Only the fabric knows path and service level, and it was asked.  On
	 * Ethernet the table of GIDs may have changed since. */
	if (port->attr.link_layer == IBV_LINK_LAYER_INFINIBAND &&
	    net_cm_has_way(conn, ah))
		return 0;
	net_gid_text(&conn->gid, text);
	if (index < 0)
		return base_error(WREATH_ENET,
				  "GID %s of %s:%d is gone: was its address "
				  "removed?", text, port->device->name,
				  port->number);
	net_address_fill(port, &conn->gid, &conn->other_gid, index, env, ah);
	ah->dlid = conn->other.lid;
	/* A queue pair would be refused as well, but could not try again. */
	if (port->attr.link_layer == IBV_LINK_LAYER_ETHERNET)
		return verbs_ah_try(port->device, port->pd, ah);
	return 0;
}
