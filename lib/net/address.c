/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <string.h>

#include "net/inner.h"

/* DSCP 26, what most RoCE networks give their lossless class. */
#define NET_TRAFFIC_CLASS 106
#define NET_HOP_LIMIT 64

enum gid_family { GID_IPV4, GID_IPV6, GID_LINK_LOCAL, GID_NONE };

static enum gid_family family(const union ibv_gid *gid)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	static const uint8_t none[16];

	if (!memcmp(gid->raw, none, sizeof(none)))
		return GID_NONE;
	if (!memcmp(gid->raw, v4, sizeof(v4)))
		return GID_IPV4;
	if (gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80)
		return GID_LINK_LOCAL;
	return GID_IPV6;
}

void net_gid_text(const union ibv_gid *gid, char out[64])
{
	if (family(gid) == GID_IPV4)
		inet_ntop(AF_INET, gid->raw + 12, out, 64);
	else
		inet_ntop(AF_INET6, gid->raw, out, 64);
}

/* Candidates in order of preference: IPv4, IPv6, then link-local. */
static void add_candidate(struct net_port *port,
			  const struct ibv_gid_entry *entry)
{
	int at = port->n_gids;
	int i;

	while (at && family(&port->gids[at - 1]) > family(&entry->gid))
		at--;
	if (at == NET_GIDS_MAX)
		return;
	if (port->n_gids < NET_GIDS_MAX)
		port->n_gids++;
	for (i = port->n_gids - 1; i > at; i--) {
		port->gids[i] = port->gids[i - 1];
		port->gid_index[i] = port->gid_index[i - 1];
	}
	port->gids[at] = entry->gid;
	port->gid_index[at] = (uint8_t)entry->gid_index;
}

void net_gids_find(struct net_port *port, const struct base_env *env)
{
	int64_t wanted = env->value[BASE_ENV_GID_INDEX];
	bool ethernet = port->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	int i;

	for (i = 0; i < port->attr.gid_tbl_len && i < 256; i++) {
		struct ibv_gid_entry entry;

		if (wanted >= 0 && ethernet && i != wanted)
			continue;
		if (verbs_gid(port->device, port->number, i, &entry))
			continue;
		if (family(&entry.gid) == GID_NONE)
			continue;
		if (ethernet && entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		add_candidate(port, &entry);
	}
}

static int common_bits(const union ibv_gid *a, const union ibv_gid *b)
{
	int i;

	for (i = 0; i < 16; i++) {
		int differ = a->raw[i] ^ b->raw[i];

		if (differ)
			return i * 8 + __builtin_clz((unsigned int)differ) - 24;
	}
	return 128;
}

/*
 * How well two GIDs fit: the same family, and then the longer the common
 * prefix, the more likely one subnet.  Symmetric, so that both ends choose the
 * same pair.
 */
static int fit(const union ibv_gid *a, const union ibv_gid *b)
{
	if (family(a) != family(b))
		return -1;
	return (GID_NONE - (int)family(a)) * 1000 + common_bits(a, b);
}

static uint32_t pair_bit(int mine, int theirs)
{
	return 1u << (mine * NET_GIDS_MAX + theirs);
}

/* The best pair that is not among @refused. */
static bool choose_gids(const struct net_conn *conn, uint32_t refused,
			int *mine, int *theirs)
{
	const struct net_port *port = conn->port;
	int best = -1;
	int i, j;

	for (i = 0; i < port->n_gids; i++) {
		for (j = 0; j < conn->other.n_gids; j++) {
			int score = fit(&port->gids[i], &conn->other.gids[j]);

			if (score <= best || (refused & pair_bit(i, j)))
				continue;
			best = score;
			*mine = i;
			*theirs = j;
		}
	}
	return best >= 0;
}

static void fill_grh(const struct net_conn *conn, int mine, int theirs,
		     int traffic_class, struct ibv_ah_attr *ah)
{
	ah->is_global = 1;
	ah->grh.dgid = conn->other.gids[theirs];
	ah->grh.sgid_index = conn->port->gid_index[mine];
	ah->grh.hop_limit = NET_HOP_LIMIT;
	ah->grh.traffic_class = (uint8_t)traffic_class;
}

static void note_gids(struct net_conn *conn, int mine, int theirs)
{
	conn->gid = conn->port->gids[mine];
	conn->other_gid = conn->other.gids[theirs];
}

/* Every pair that fits is tried: a table may hold GIDs that no longer work. */
static int ethernet_address(struct net_conn *conn, int traffic_class,
			    struct ibv_ah_attr *ah)
{
	struct net_port *port = conn->port;
	uint32_t refused = 0;
	int mine, theirs;

	while (choose_gids(conn, refused, &mine, &theirs)) {
		fill_grh(conn, mine, theirs, traffic_class, ah);
		if (!verbs_ah_try(port->device, port->pd, ah)) {
			note_gids(conn, mine, theirs);
			return 0;
		}
		refused |= pair_bit(mine, theirs);
	}
	return base_error(WREATH_ENET,
			  "%s has no RoCEv2 GID that %s for one of %s; give "
			  "both ports an address (`ip addr`) of one network, "
			  "or set WREATH_GID_INDEX", port->text,
			  refused ? "works" : "is of the same family",
			  conn->net->names[conn->peer]);
}

int net_address(struct net_conn *conn, const struct base_env *env,
		struct ibv_ah_attr *ah)
{
	const struct net_port *port = conn->port;
	int64_t traffic_class = env->value[BASE_ENV_TRAFFIC_CLASS];
	int mine, theirs;

	memset(ah, 0, sizeof(*ah));
	ah->port_num = (uint8_t)port->number;
	ah->sl = (uint8_t)env->value[BASE_ENV_SL];
	if (port->attr.link_layer == IBV_LINK_LAYER_ETHERNET)
		return ethernet_address(conn,
					traffic_class < 0 ? NET_TRAFFIC_CLASS
							  : (int)traffic_class,
					ah);
	ah->dlid = conn->other.lid;
	if (!choose_gids(conn, 0, &mine, &theirs))
		return 0;
	note_gids(conn, mine, theirs);
	/* Across subnets the LID is a router's: the GRH says whose. */
	if (memcmp(conn->gid.raw, conn->other_gid.raw, 8))
		fill_grh(conn, mine, theirs, 0, ah);
	return 0;
}

uint32_t net_pair_bit(int mine, int theirs)
{
	return pair_bit(mine, theirs);
}

bool net_gids_choose(const struct net_conn *conn, uint32_t refused, int *mine,
		     int *theirs)
{
	return choose_gids(conn, refused, mine, theirs);
}

int net_traffic_class(const struct net_port *port, const struct base_env *env)
{
	int64_t wanted = env->value[BASE_ENV_TRAFFIC_CLASS];

	if (port->attr.link_layer != IBV_LINK_LAYER_ETHERNET)
		return -1;
	return wanted < 0 ? NET_TRAFFIC_CLASS : (int)wanted;
}
