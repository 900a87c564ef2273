/* SPDX-License-Identifier: MIT */
/*
 * Which ports of two ranks can be connected, and which best.  Both ranks see
 * the same two offers in the same order, and so find the same.
 */
#include <string.h>

#include "net/inner.h"

int net_common_bits(const uint8_t a[16], const uint8_t b[16])
{
	int i;

	for (i = 0; i < 16; i++) {
		int differ = a[i] ^ b[i];

		if (differ)
			return i * 8 + __builtin_clz((unsigned int)differ) - 24;
	}
	return 128;
}

/* Each must see the other in its own subnet. */
static bool is_one_subnet(const struct net_gid *a, const struct net_gid *b)
{
	int prefix = a->prefix > b->prefix ? a->prefix : b->prefix;

	return prefix && net_common_bits(a->raw, b->raw) >= prefix;
}

/* A port whose interface has no address but link-local ones. */
static bool has_only_link_local(const struct net_port_offer *port)
{
	int i;

	for (i = 0; i < port->n_gids; i++)
		if (port->gids[i].kind != NET_GID_LINK_LOCAL &&
		    !(port->gids[i].flags & NET_GID_STRAY))
			return false;
	return true;
}

/* How well GID @i of port @a and @j of @b fit, both Ethernet. */
static enum net_tier ethernet_tier(const struct net_port_offer *a, int i,
				   const struct net_port_offer *b, int j,
				   bool is_local)
{
	const struct net_gid *x = &a->gids[i];
	const struct net_gid *y = &b->gids[j];

	if (x->kind != y->kind)
		return NET_TIER_NONE;
	if ((x->flags | y->flags) & NET_GID_STRAY)
		return NET_TIER_STRAY;
	/*
	 * Every link has the same link-local subnet.  Two ports that both have
	 * a proper one, and not the same, are hardly on one link.
	 */
	if (x->kind == NET_GID_LINK_LOCAL)
		return has_only_link_local(a) || has_only_link_local(b)
			       ? NET_TIER_LINK_LOCAL : NET_TIER_NONE;
	if (is_one_subnet(x, y))
		return NET_TIER_SUBNET;
	/* Nobody routes between ports of one host, or out of a VLAN to RDMA. */
	if (is_local || ((x->flags | y->flags) & NET_GID_VLAN))
		return NET_TIER_NONE;
	return NET_TIER_ROUTED;
}

static enum net_tier tier_of(const struct net_port_offer *a, int i,
			     const struct net_port_offer *b, int j,
			     bool is_local)
{
	if (a->link_layer != b->link_layer || a->is_soft != b->is_soft)
		return NET_TIER_NONE;
	if (a->is_soft)
		return is_local ? NET_TIER_SOFT : NET_TIER_NONE;
	if (a->link_layer == IBV_LINK_LAYER_ETHERNET)
		return ethernet_tier(a, i, b, j, is_local);
	if (is_one_subnet(&a->gids[i], &b->gids[j]))
		return NET_TIER_SUBNET;
	return is_local ? NET_TIER_NONE : NET_TIER_ROUTED;
}

/*
 * Smaller is better: what is surer to work, then a port with itself (ports of
 * one host may not reach each other), then what is faster, then the family,
 * and last the places in the offers, so that no two are alike.
 */
struct rank_of_pair {
	uint64_t first, second;
};

static struct rank_of_pair rank_pair(const struct net_port_offer *a,
				     const struct net_port_offer *b,
				     const struct net_pair *pair,
				     bool is_local)
{
	const struct net_gid *x = &a->gids[pair->gid[0]];
	const struct net_gid *y = &b->gids[pair->gid[1]];
	uint32_t mbps = a->mbps < b->mbps ? a->mbps : b->mbps;
	uint64_t is_other = is_local && memcmp(x->raw, y->raw, 16);
	struct rank_of_pair rank = {
		.first = (uint64_t)pair->tier << 40 | is_other << 32 |
			 (UINT32_MAX - mbps),
		.second = (uint64_t)x->kind << 32 |
			  (uint64_t)pair->port[0] << 24 |
			  (uint64_t)pair->port[1] << 16 |
			  (uint64_t)pair->gid[0] << 8 | pair->gid[1],
	};

	return rank;
}

struct pairs {
	const struct net_offer *ends;
	bool is_local;
	struct net_pair *list;
	struct rank_of_pair ranks[NET_PAIRS_MAX];
	int n, max;
};

static void insert(struct pairs *pairs, const struct net_pair *pair)
{
	const struct net_offer *ends = pairs->ends;
	struct rank_of_pair rank = rank_pair(&ends[0].ports[pair->port[0]],
					     &ends[1].ports[pair->port[1]],
					     pair, pairs->is_local);
	int at = pairs->n;
	int i;

	while (at && (pairs->ranks[at - 1].first > rank.first ||
		      (pairs->ranks[at - 1].first == rank.first &&
		       pairs->ranks[at - 1].second > rank.second)))
		at--;
	if (at == pairs->max)
		return;
	if (pairs->n < pairs->max)
		pairs->n++;
	for (i = pairs->n - 1; i > at; i--) {
		pairs->list[i] = pairs->list[i - 1];
		pairs->ranks[i] = pairs->ranks[i - 1];
	}
	pairs->list[at] = *pair;
	pairs->ranks[at] = rank;
}

int net_pairs(const struct net_offer ends[2], bool is_local,
	      struct net_pair *list, int max)
{
	struct pairs pairs = {
		.ends = ends, .is_local = is_local, .list = list,
		.max = max < NET_PAIRS_MAX ? max : NET_PAIRS_MAX};
	int p, q, i, j;

	for (p = 0; p < ends[0].n_ports; p++) {
		for (q = 0; q < ends[1].n_ports; q++) {
			const struct net_port_offer *a = &ends[0].ports[p];
			const struct net_port_offer *b = &ends[1].ports[q];
			int n = a->n_gids * b->n_gids;

			for (i = 0; i < n; i++) {
				struct net_pair pair = {
					.port = {(uint8_t)p, (uint8_t)q}};

				j = i % b->n_gids;
				pair.gid[0] = (uint8_t)(i / b->n_gids);
				pair.gid[1] = (uint8_t)j;
				pair.tier = (uint8_t)tier_of(
					a, pair.gid[0], b, j, is_local);
				if (pair.tier != NET_TIER_NONE)
					insert(&pairs, &pair);
			}
		}
	}
	return pairs.n;
}

/* Is there a port of @layer, or with a GID of @kind? */
static bool has_layer(const struct net_offer *offer, int layer)
{
	int p;

	for (p = 0; p < offer->n_ports; p++)
		if (offer->ports[p].link_layer == layer)
			return true;
	return false;
}

static unsigned int families(const struct net_offer *offer)
{
	unsigned int found = 0;
	int i, p;

	for (p = 0; p < offer->n_ports; p++)
		for (i = 0; i < offer->ports[p].n_gids; i++)
			found |= 1u << offer->ports[p].gids[i].kind;
	return found;
}

static bool has_hardware(const struct net_offer *offer)
{
	int p;

	for (p = 0; p < offer->n_ports; p++)
		if (!offer->ports[p].is_soft)
			return true;
	return false;
}

const char *net_pairs_why_none(const struct net_offer ends[2], bool is_local)
{
	int a = ends[0].n_ports ? ends[0].ports[0].link_layer : 0;

	if (!ends[0].n_ports || !ends[1].n_ports)
		return "one has no port at all; `wreath info` there tells why";
	if (!has_layer(&ends[1], a) &&
	    !(has_layer(&ends[0], IBV_LINK_LAYER_INFINIBAND) &&
	      has_layer(&ends[0], IBV_LINK_LAYER_ETHERNET)))
		return "one is on InfiniBand only and the other on Ethernet "
		       "only: choose ports of one kind by WREATH_HCA (and "
		       "WREATH_SOFT), or connect the hosts by one kind";
	if (has_hardware(&ends[0]) != has_hardware(&ends[1]))
		return "one has the soft device only and the other has an "
		       "RDMA device only: give both the same WREATH_HCA and "
		       "WREATH_SOFT";
	if (!has_hardware(&ends[0]) && !is_local)
		return "the soft device reaches within a host only, and they "
		       "are not on one";
	if (!(families(&ends[0]) & families(&ends[1])))
		return "they have no addresses of one family (IPv4 or IPv6): "
		       "give both an address of one subnet (`ip addr add`)";
	return "their addresses are of different subnets: give both an "
	       "address of one (`ip addr add`), or choose ports that have "
	       "one by WREATH_HCA";
}
