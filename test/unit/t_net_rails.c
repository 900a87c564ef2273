/* SPDX-License-Identifier: MIT */
/*
 * Goal: rails join ports of one kind and network, one of each rank, use all
 * that is common to the ranks, and are the same whoever looks.
 * Method: random offers out of few networks, against counts of what each rank
 * has, and against the pairs of ports that two ranks could be connected by.
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

#define N_RANKS 9

static uint64_t seed;
static struct net_offer offers[N_RANKS];
static uint8_t ports[N_RANKS * NET_PORTS_MAX];
static struct net_rails rails = {.ports = ports};

static unsigned int below(unsigned int n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(seed >> 33) % n;
}

/* A kind of network: its layer, and the address of @host on it. */
enum { V4_A, V4_B, V6, IB_A, IB_B, SOFT_ROCE, SOFT_IB, NODE, N_KINDS };

static struct net_gid address(int kind, unsigned int host)
{
	struct net_gid gid = {.prefix = 64, .kind = NET_GID_IB};

	gid.raw[0] = 0xfd;
	gid.raw[7] = (uint8_t)kind;
	gid.raw[14] = (uint8_t)(host >> 8);
	gid.raw[15] = (uint8_t)host;
	if (kind == V4_A || kind == V4_B) {
		memset(gid.raw, 0, 10);
		memset(gid.raw + 10, 0xff, 2);
		gid.raw[12] = 10;
		gid.raw[13] = (uint8_t)kind;
		gid.prefix = 96 + 16;
		gid.kind = NET_GID_IPV4;
	} else if (kind == V6) {
		gid.kind = NET_GID_IPV6;
	} else if (kind >= SOFT_ROCE && kind != SOFT_IB) {
		gid.raw[0] = 0xfe;
		gid.raw[1] = 0x80;
		gid.kind = NET_GID_LINK_LOCAL;
	}
	return gid;
}

static struct net_port_offer *add_port(struct net_offer *offer, int kind,
				       uint32_t mbps)
{
	struct net_port_offer *port = &offer->ports[offer->n_ports++];

	memset(port, 0, sizeof(*port));
	snprintf(port->name, sizeof(port->name), "dev%d:1", offer->n_ports);
	port->link_layer = kind == IB_A || kind == IB_B || kind == SOFT_IB
				   ? IBV_LINK_LAYER_INFINIBAND
				   : IBV_LINK_LAYER_ETHERNET;
	port->is_soft = kind >= SOFT_ROCE;
	port->is_node = kind == NODE;
	port->mbps = mbps;
	port->gids[port->n_gids++] = address(kind, below(65536));
	return port;
}

static void clear(void)
{
	memset(offers, 0, sizeof(offers));
}

/* Each port is on one network; @first and @n say on which it may be. */
static void random_offers(int n_ranks, int first, unsigned int n)
{
	int r;

	clear();
	for (r = 0; r < n_ranks; r++) {
		unsigned int left = below(NET_PORTS_MAX + 1);

		while (left--)
			add_port(&offers[r], first + (int)below(n),
				 below(4) * 25000);
	}
}

static int count(int rank, int kind)
{
	struct net_gid gid = address(kind, 0);
	int n = 0;
	int p;

	for (p = 0; p < offers[rank].n_ports; p++) {
		const struct net_port_offer *port = &offers[rank].ports[p];

		n += port->is_soft == (kind >= SOFT_ROCE) &&
		     port->is_node == (kind == NODE) &&
		     port->gids[0].kind == gid.kind &&
		     !memcmp(port->gids[0].raw, gid.raw, 14);
	}
	return n;
}

/* Of a kind there are as many as the rank has that has fewest. */
static int n_common(int n_ranks, int first, int n)
{
	int total = 0;
	int kind, r;

	for (kind = first; kind < first + n; kind++) {
		int least = NET_PORTS_MAX;

		for (r = 0; r < n_ranks; r++)
			if (count(r, kind) < least)
				least = count(r, kind);
		total += least;
	}
	return total;
}

static const struct net_port_offer *port_of(int rank, int rail)
{
	int port = ports[rank * NET_PORTS_MAX + rail];

	assert_true(port < offers[rank].n_ports);
	return &offers[rank].ports[port];
}

/* What every rail must be. */
static void check_rails(int n_ranks, bool one_host)
{
	int i, j, q, r;

	assert_in_range(rails.n, 0, NET_CHANNELS_MAX);
	for (i = 0; i < rails.n; i++) {
		uint32_t least = UINT32_MAX;

		for (r = 0; r < n_ranks; r++) {
			const struct net_port_offer *port = port_of(r, i);

			assert_false(port->is_node);
			if (port->mbps < least)
				least = port->mbps;
			for (j = 0; j < i; j++)
				assert_ptr_not_equal(port, port_of(r, j));
			/* Alone, each pair of them can be connected. */
			for (q = 0; q < r; q++) {
				struct net_offer ends[2] = {{.n_ports = 1},
							    {.n_ports = 1}};
				struct net_pair pair;

				ends[0].ports[0] = *port_of(q, i);
				ends[1].ports[0] = *port;
				assert_int_equal(net_pairs(ends, one_host,
							   &pair, 1), 1);
				assert_true(pair.tier <= NET_TIER_SUBNET);
			}
		}
		assert_int_equal(rails.mbps[i], least);
		if (i)
			assert_true(rails.mbps[i - 1] >= least);
	}
}

static void all_that_is_common_is_used(void **state)
{
	int turn;

	(void)state;
	for (turn = 0; turn < 20000; turn++) {
		int n_ranks = 1 + (int)below(N_RANKS);
		bool one_host = below(2);
		int n_soft, n_hard, n;

		random_offers(n_ranks, 0, N_KINDS);
		n_soft = one_host ? n_common(n_ranks, SOFT_ROCE, 2) : 0;
		n_hard = n_common(n_ranks, 0, SOFT_ROCE);
		n = n_soft ? n_soft : n_hard;
		net_rails_find(offers, n_ranks, one_host, &rails);
		assert_int_equal(rails.n_found, n);
		assert_int_equal(rails.n, n < NET_CHANNELS_MAX
						  ? n : NET_CHANNELS_MAX);
		check_rails(n_ranks, one_host);
	}
}

/* Ports with several addresses, some of which no rail may be built on. */
static void ports_of_many_networks_are_used_once(void **state)
{
	int turn, r, p;

	(void)state;
	for (turn = 0; turn < 20000; turn++) {
		int n_ranks = 1 + (int)below(N_RANKS);

		random_offers(n_ranks, V4_A, 2);
		for (r = 0; r < n_ranks; r++) {
			for (p = 0; p < offers[r].n_ports; p++) {
				struct net_port_offer *port =
					&offers[r].ports[p];
				unsigned int n = below(4);

				port->gids[0].prefix = below(4) ? 112 : 0;
				port->gids[0].flags =
					below(4) ? 0 : NET_GID_STRAY;
				while (n--)
					port->gids[port->n_gids++] = address(
						V4_A + (int)below(3),
						below(65536));
			}
		}
		net_rails_find(offers, n_ranks, below(2), &rails);
		check_rails(n_ranks, true);
	}
}

/* The same ranks in another order are joined alike. */
static void the_order_of_ranks_does_not_matter(void **state)
{
	int turn, i, r;

	(void)state;
	for (turn = 0; turn < 5000; turn++) {
		struct net_rails other = rails;
		struct net_offer first;
		int n_ranks = 2 + (int)below(N_RANKS - 1);

		random_offers(n_ranks, IB_A, 4);
		net_rails_find(offers, n_ranks, true, &other);
		first = offers[0];
		for (r = 0; r + 1 < n_ranks; r++)
			offers[r] = offers[r + 1];
		offers[n_ranks - 1] = first;
		net_rails_find(offers, n_ranks, true, &rails);
		assert_int_equal(rails.n_found, other.n_found);
		for (i = 0; i < rails.n; i++)
			assert_int_equal(rails.mbps[i], other.mbps[i]);
	}
}

static void what_one_rank_lacks_is_named_once(void **state)
{
	int r;

	(void)state;
	clear();
	for (r = 0; r < 5; r++) {
		add_port(&offers[r], SOFT_ROCE, 10000);
		if (r != 3)
			add_port(&offers[r], SOFT_IB, 5000);
	}
	net_rails_find(offers, 5, true, &rails);
	assert_int_equal(rails.n, 1);
	assert_int_equal(rails.n_left, 1);
	assert_int_equal(rails.left[0].rank, 0);
	assert_int_equal(rails.left[0].port, 1);
	assert_int_equal(rails.left[0].lacks, 3);
	/* What only one has is named as well: here rank 4's. */
	add_port(&offers[4], SOFT_ROCE, 10000);
	net_rails_find(offers, 5, true, &rails);
	assert_int_equal(rails.n, 1);
	assert_int_equal(rails.n_left, 2);
	assert_int_equal(rails.left[1].rank, 4);
	assert_int_equal(rails.left[1].lacks, 0);
}

static void the_rest_is_named_exactly_where_there_is_one(void **state)
{
	int turn, r, p;

	(void)state;
	for (turn = 0; turn < 5000; turn++) {
		int n_ranks = 1 + (int)below(N_RANKS);
		int n_ports = 0;
		int i;

		random_offers(n_ranks, V4_A, 3);
		net_rails_find(offers, n_ranks, false, &rails);
		for (r = 0; r < n_ranks && rails.n; r++)
			for (p = 0; p < offers[r].n_ports; p++)
				n_ports++;
		assert_int_equal(rails.n_left > 0,
				 n_ports > rails.n_found * n_ranks);
		for (i = 0; i < rails.n_left; i++) {
			const struct net_rail_left *left = &rails.left[i];

			assert_in_range(left->lacks, 0, n_ranks - 1);
			assert_int_not_equal(left->lacks, left->rank);
			assert_in_range(left->port, 0,
					offers[left->rank].n_ports - 1);
		}
	}
}

static void the_fastest_meet_the_fastest(void **state)
{
	int r;

	(void)state;
	clear();
	for (r = 0; r < 3; r++) {
		uint32_t odd = r == 1;

		add_port(&offers[r], V4_A, odd ? 400000 : 100000);
		add_port(&offers[r], V4_A, odd ? 100000 : 400000);
		add_port(&offers[r], IB_A, 200000);
	}
	net_rails_find(offers, 3, false, &rails);
	assert_int_equal(rails.n, 3);
	assert_int_equal(rails.mbps[0], 400000);
	assert_int_equal(rails.mbps[1], 200000);
	assert_int_equal(rails.mbps[2], 100000);
	for (r = 0; r < 3; r++) {
		assert_int_equal(port_of(r, 0)->mbps, 400000);
		assert_int_equal(port_of(r, 1)->link_layer,
				 IBV_LINK_LAYER_INFINIBAND);
	}
}

static void routed_and_link_local_ways_are_no_rails(void **state)
{
	int r;

	(void)state;
	clear();
	for (r = 0; r < 2; r++) {
		struct net_port_offer *port =
			add_port(&offers[r], V4_A + r, 100000);

		port->gids[port->n_gids++] = address(SOFT_ROCE, below(9));
	}
	net_rails_find(offers, 2, false, &rails);
	assert_int_equal(rails.n, 0);
	assert_int_equal(rails.n_left, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_is_common_is_used),
		cmocka_unit_test(ports_of_many_networks_are_used_once),
		cmocka_unit_test(the_order_of_ranks_does_not_matter),
		cmocka_unit_test(what_one_rank_lacks_is_named_once),
		cmocka_unit_test(the_rest_is_named_exactly_where_there_is_one),
		cmocka_unit_test(the_fastest_meet_the_fastest),
		cmocka_unit_test(routed_and_link_local_ways_are_no_rails),
	};
	const char *given = getenv("SEED");

	seed = given ? strtoull(given, NULL, 0) : (uint64_t)getpid() << 20 ^
						  base_now_ns();
	printf("SEED=%llu\n", (unsigned long long)seed);
	setenv("WREATH_LOG", "off", 1);
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
