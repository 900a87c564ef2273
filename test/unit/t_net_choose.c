/* SPDX-License-Identifier: MIT */
/*
 * Goal: two ranks choose the same ports without a word more than their offers,
 * and find a pair exactly where there is one that can be connected.
 * Method: random offers out of few subnets, against a plain statement of what
 * fits; and offers made by hand for each rule of what is better.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/inner.h"

static uint64_t seed;

static unsigned int below(unsigned int n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(seed >> 33) % n;
}

static struct net_gid v4(unsigned int subnet, unsigned int host)
{
	struct net_gid gid = {.prefix = 96 + 24, .kind = NET_GID_IPV4};

	memset(gid.raw + 10, 0xff, 2);
	gid.raw[12] = 10;
	gid.raw[13] = (uint8_t)subnet;
	gid.raw[15] = (uint8_t)host;
	return gid;
}

static struct net_gid v6(unsigned int subnet, unsigned int host)
{
	struct net_gid gid = {.raw = {0xfd}, .prefix = 64,
			      .kind = NET_GID_IPV6};

	gid.raw[7] = (uint8_t)subnet;
	gid.raw[15] = (uint8_t)host;
	return gid;
}

static struct net_gid link_local(unsigned int host)
{
	struct net_gid gid = {.raw = {0xfe, 0x80}, .prefix = 64,
			      .kind = NET_GID_LINK_LOCAL};

	gid.raw[15] = (uint8_t)host;
	return gid;
}

static struct net_gid infiniband(unsigned int subnet, unsigned int host)
{
	struct net_gid gid = v6(subnet, host);

	gid.kind = NET_GID_IB;
	return gid;
}

static struct net_port_offer *add_port(struct net_offer *offer, int layer)
{
	struct net_port_offer *port = &offer->ports[offer->n_ports++];

	memset(port, 0, sizeof(*port));
	snprintf(port->name, sizeof(port->name), "dev%d:1", offer->n_ports);
	port->link_layer = (uint8_t)layer;
	port->mbps = 100000;
	return port;
}

static void add(struct net_port_offer *port, struct net_gid gid)
{
	port->gids[port->n_gids++] = gid;
}

static void random_gids(struct net_port_offer *port)
{
	unsigned int n = 1 + below(4);

	while (n--) {
		struct net_gid gid = link_local(below(4));

		if (port->link_layer == IBV_LINK_LAYER_INFINIBAND)
			gid = infiniband(below(3), below(4));
		else if (below(3))
			gid = below(2) ? v4(below(4), below(4))
				       : v6(below(4), below(4));
		if (gid.kind == NET_GID_IPV4 || gid.kind == NET_GID_IPV6) {
			gid.flags = below(5) ? 0 : NET_GID_VLAN;
			gid.flags |= below(8) ? 0 : NET_GID_STRAY;
			gid.prefix = below(8) ? gid.prefix : 0;
		}
		add(port, gid);
	}
}

static void random_offer(struct net_offer *offer)
{
	unsigned int n = below(4);

	memset(offer, 0, sizeof(*offer));
	while (n--) {
		struct net_port_offer *port =
			add_port(offer, below(3) ? IBV_LINK_LAYER_ETHERNET
						 : IBV_LINK_LAYER_INFINIBAND);

		port->is_soft = !below(4);
		port->mbps = below(3) * 1000;
		random_gids(port);
	}
}

/* ---- what fits, said plainly ---- */

static bool in_subnet(const struct net_gid *a, const struct net_gid *b)
{
	int i;

	for (i = 0; i < a->prefix; i++)
		if ((a->raw[i / 8] ^ b->raw[i / 8]) >> (7 - i % 8) & 1)
			return false;
	return true;
}

static bool shares_subnet(const struct net_gid *a, const struct net_gid *b)
{
	return (a->prefix || b->prefix) && in_subnet(a, b) && in_subnet(b, a);
}

static bool has_better(const struct net_port_offer *port)
{
	int i;
	bool found = false;

	for (i = 0; i < port->n_gids; i++)
		found |= port->gids[i].kind != NET_GID_LINK_LOCAL &&
			 !(port->gids[i].flags & NET_GID_STRAY);
	return found;
}

static bool fits(const struct net_port_offer *p, const struct net_gid *a,
		 const struct net_port_offer *q, const struct net_gid *b,
		 bool is_local)
{
	bool is_stray = (a->flags | b->flags) & NET_GID_STRAY;
	bool is_vlan = (a->flags | b->flags) & NET_GID_VLAN;

	if (p->link_layer != q->link_layer || p->is_soft != q->is_soft)
		return false;
	if (p->is_soft)
		return is_local;
	if (a->kind != b->kind)
		return false;
	if (a->kind == NET_GID_LINK_LOCAL)
		return !has_better(p) || !has_better(q);
	if (is_stray || shares_subnet(a, b))
		return true;
	return !is_local && !is_vlan;
}

static bool is_any(const struct net_offer *a, const struct net_offer *b,
		   bool is_local)
{
	int p, q, i, j;

	for (p = 0; p < a->n_ports; p++)
		for (q = 0; q < b->n_ports; q++)
			for (i = 0; i < a->ports[p].n_gids; i++)
				for (j = 0; j < b->ports[q].n_gids; j++)
					if (fits(&a->ports[p],
						 &a->ports[p].gids[i],
						 &b->ports[q],
						 &b->ports[q].gids[j],
						 is_local))
						return true;
	return false;
}

static void a_pair_is_found_exactly_where_one_fits(void **state)
{
	int turn;

	(void)state;
	for (turn = 0; turn < 20000; turn++) {
		struct net_offer ends[2];
		struct net_pair pairs[NET_PAIRS_MAX];
		bool is_local = below(2);
		int i, n;

		random_offer(&ends[0]);
		random_offer(&ends[1]);
		n = net_pairs(ends, is_local, pairs, NET_PAIRS_MAX);
		assert_int_equal(n > 0, is_any(&ends[0], &ends[1], is_local));
		for (i = 0; i < n; i++) {
			const struct net_port_offer *p =
				&ends[0].ports[pairs[i].port[0]];
			const struct net_port_offer *q =
				&ends[1].ports[pairs[i].port[1]];

			assert_true(pairs[i].gid[0] < p->n_gids);
			assert_true(pairs[i].gid[1] < q->n_gids);
			assert_true(fits(p, &p->gids[pairs[i].gid[0]], q,
					 &q->gids[pairs[i].gid[1]], is_local));
			assert_true(!i || pairs[i].tier >= pairs[i - 1].tier);
		}
		if (!n)
			assert_non_null(net_pairs_why_none(ends, is_local));
	}
}

/*
 * What is best must not hang on who is called first: seen from the other end
 * the pair is the same one, but for where all else is equal.
 */
static void the_best_is_as_good_from_the_other_end(void **state)
{
	int turn;

	(void)state;
	for (turn = 0; turn < 20000; turn++) {
		struct net_offer ends[2], back[2];
		struct net_pair pair, other, again;
		bool is_local = below(2);
		int n;

		random_offer(&ends[0]);
		random_offer(&ends[1]);
		back[0] = ends[1];
		back[1] = ends[0];
		n = net_pairs(ends, is_local, &pair, 1);
		assert_int_equal(net_pairs(back, is_local, &other, 1), n);
		if (!n)
			continue;
		assert_int_equal(pair.tier, other.tier);
		/* Each rank computes it for itself, and to the bit. */
		net_pairs(ends, is_local, &again, 1);
		assert_memory_equal(pair.port, again.port, 2);
		assert_memory_equal(pair.gid, again.gid, 2);
	}
}

static void expect_best(const struct net_offer ends[2], bool is_local, int p,
			int q, int i, int j)
{
	struct net_pair pair;

	assert_int_equal(net_pairs(ends, is_local, &pair, 1), 1);
	assert_int_equal(pair.port[0], p);
	assert_int_equal(pair.port[1], q);
	assert_int_equal(pair.gid[0], i);
	assert_int_equal(pair.gid[1], j);
}

static void ports_of_one_subnet_find_each_other_in_any_order(void **state)
{
	struct net_offer ends[2] = {{0}, {0}};

	(void)state;
	add(add_port(&ends[0], IBV_LINK_LAYER_INFINIBAND), infiniband(1, 1));
	add(add_port(&ends[0], IBV_LINK_LAYER_ETHERNET), v4(1, 1));
	add(add_port(&ends[0], IBV_LINK_LAYER_ETHERNET), v4(2, 1));
	add(add_port(&ends[1], IBV_LINK_LAYER_ETHERNET), v4(3, 2));
	add(add_port(&ends[1], IBV_LINK_LAYER_ETHERNET), v4(2, 2));
	expect_best(ends, false, 2, 1, 0, 0);
}

static void families_and_links_have_their_order(void **state)
{
	struct net_offer ends[2] = {{0}, {0}};
	struct net_port_offer *a = add_port(&ends[0], IBV_LINK_LAYER_ETHERNET);
	struct net_port_offer *b = add_port(&ends[1], IBV_LINK_LAYER_ETHERNET);
	struct net_pair pair;

	(void)state;
	add(a, link_local(1));
	add(b, link_local(2));
	expect_best(ends, false, 0, 0, 0, 0);
	/* IPv6 is better, and more so IPv4, of one subnet. */
	add(a, v6(1, 1));
	add(b, v6(1, 2));
	expect_best(ends, false, 0, 0, 1, 1);
	add(a, v4(1, 1));
	add(b, v4(1, 2));
	expect_best(ends, false, 0, 0, 2, 2);
	/* A subnet in common goes before the family. */
	a->gids[2] = v4(3, 1);
	expect_best(ends, false, 0, 0, 1, 1);
	/* Both have proper addresses, of different subnets: not one link. */
	a->gids[1] = v6(3, 1);
	assert_int_equal(net_pairs(ends, true, &pair, 1), 0);
	expect_best(ends, false, 0, 0, 2, 2); /* by a router, perhaps */
}

static void a_vlan_is_met_by_its_subnet_only(void **state)
{
	struct net_offer ends[2] = {{0}, {0}};
	struct net_port_offer *a = add_port(&ends[0], IBV_LINK_LAYER_ETHERNET);
	struct net_port_offer *b = add_port(&ends[1], IBV_LINK_LAYER_ETHERNET);
	struct net_pair pair;

	(void)state;
	add(a, v4(1, 1));
	a->gids[0].flags = NET_GID_VLAN;
	add(b, v4(2, 2));
	assert_int_equal(net_pairs(ends, false, &pair, 1), 0);
	add(b, v4(1, 2));
	expect_best(ends, false, 0, 0, 0, 1);
}

static void what_is_faster_wins(void **state)
{
	struct net_offer ends[2] = {{0}, {0}};

	(void)state;
	add(add_port(&ends[0], IBV_LINK_LAYER_ETHERNET), v4(1, 1));
	add(add_port(&ends[0], IBV_LINK_LAYER_INFINIBAND), infiniband(1, 1));
	add(add_port(&ends[1], IBV_LINK_LAYER_INFINIBAND), infiniband(1, 2));
	add(add_port(&ends[1], IBV_LINK_LAYER_ETHERNET), v4(1, 2));
	ends[0].ports[1].mbps = 400000;
	ends[1].ports[0].mbps = 200000;
	expect_best(ends, false, 1, 0, 0, 0);
	/* The slower end counts. */
	ends[1].ports[0].mbps = 50000;
	expect_best(ends, false, 0, 1, 0, 0);
}

static void a_host_prefers_soft_and_a_port_itself(void **state)
{
	struct net_offer ends[2] = {{0}, {0}};
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		add(add_port(&ends[i], IBV_LINK_LAYER_ETHERNET), v4(1, 1));
		add(add_port(&ends[i], IBV_LINK_LAYER_ETHERNET), v4(1, 2));
	}
	/* The second port is faster at one end; the first, to itself, safer. */
	ends[0].ports[1].mbps = 400000;
	expect_best(ends, true, 0, 0, 0, 0);
	for (i = 0; i < 2; i++) {
		add(add_port(&ends[i], IBV_LINK_LAYER_ETHERNET), link_local(7));
		ends[i].ports[2].is_soft = 1;
	}
	expect_best(ends, true, 2, 2, 0, 0);
	expect_best(ends, false, 0, 0, 0, 0);
}

static void why_there_is_none_is_said(void **state)
{
	struct net_offer ends[2] = {{0}, {0}};
	struct net_port_offer *a, *b;

	(void)state;
	assert_non_null(strstr(net_pairs_why_none(ends, false), "no port"));
	a = add_port(&ends[0], IBV_LINK_LAYER_INFINIBAND);
	b = add_port(&ends[1], IBV_LINK_LAYER_ETHERNET);
	add(a, infiniband(1, 1));
	add(b, v4(1, 1));
	assert_non_null(strstr(net_pairs_why_none(ends, false), "InfiniBand"));
	a->link_layer = IBV_LINK_LAYER_ETHERNET;
	a->gids[0] = v6(1, 1);
	assert_non_null(strstr(net_pairs_why_none(ends, false), "family"));
	a->gids[0] = v4(2, 1);
	assert_non_null(strstr(net_pairs_why_none(ends, false), "subnet"));
	a->is_soft = 1;
	assert_non_null(strstr(net_pairs_why_none(ends, true), "WREATH_SOFT"));
	b->is_soft = 1;
	assert_non_null(strstr(net_pairs_why_none(ends, false), "host only"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pair_is_found_exactly_where_one_fits),
		cmocka_unit_test(the_best_is_as_good_from_the_other_end),
		cmocka_unit_test(
			ports_of_one_subnet_find_each_other_in_any_order),
		cmocka_unit_test(families_and_links_have_their_order),
		cmocka_unit_test(a_vlan_is_met_by_its_subnet_only),
		cmocka_unit_test(what_is_faster_wins),
		cmocka_unit_test(a_host_prefers_soft_and_a_port_itself),
		cmocka_unit_test(why_there_is_none_is_said),
	};
	const char *given = getenv("SEED");

	seed = given ? strtoull(given, NULL, 0) : (uint64_t)getpid() << 20 ^
						  base_now_ns();
	printf("SEED=%llu\n", (unsigned long long)seed);
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
