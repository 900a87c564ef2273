/* SPDX-License-Identifier: MIT */
/*
 * For tests: two ranks' nets over a device of libibverbs, WREATH_HCA or the
 * first, each connected by librdmacm in a thread of its own.  Helpers assert.
 */
#ifndef NET_SIDES_H
#define NET_SIDES_H

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/cm.h"

#define N_CHANNELS 2

static struct base_env env;
static const struct verbs_table *ibv;
static char names[2][128] = {"rank 0 (here, pid 1)", "rank 1 (here, pid 1)"};

struct side {
	struct net *net;
	struct net_record records[N_CHANNELS];
	pthread_t thread;
	int timeout_ms;
	int err;
	char text[512];
};

static struct side sides[2];

static inline void open_side(int rank)
{
	struct net_args args = {.env = &env, .ibv = ibv, .rank = rank,
				.n_ranks = 2, .names = names,
				.all_local = true, .all_ports = true};
	struct side *side = &sides[rank];

	memset(side, 0, sizeof(*side));
	side->timeout_ms = 20000;
	assert_int_equal(net_open(&args, &side->net), 0);
}

/* What comm does: all offers to all, and the records. */
static inline void agree(int rank)
{
	const uint32_t here[2] = {0, 0};
	char *offers = base_alloc(2, NET_OFFER_MAX);
	struct side *side = &sides[rank];
	int c, i;

	for (i = 0; i < 2; i++)
		net_offer(sides[i].net, offers + i * NET_OFFER_MAX);
	assert_int_equal(net_agree(side->net, offers, NET_OFFER_MAX, here,
				   here), 0);
	for (c = 0; c < N_CHANNELS; c++)
		assert_int_equal(net_conn_new(side->net, !rank, c,
					      &side->records[c]), 0);
}

static inline void open_to_agree(void)
{
	open_side(0);
	open_side(1);
	agree(0);
	agree(1);
}

static inline void open_both(void)
{
	int c, i;

	open_to_agree();
	for (i = 0; i < 2; i++)
		for (c = 0; c < N_CHANNELS; c++)
			assert_int_equal(net_conn_ready(sides[i].net, !i, c,
							&sides[!i].records[c]),
					 0);
}

static inline void close_both(void)
{
	net_close(sides[0].net);
	net_close(sides[1].net);
}

static void *connect_side(void *arg)
{
	struct side *side = arg;

	side->err = net_connect(side->net, side->timeout_ms, NULL, NULL);
	snprintf(side->text, sizeof(side->text), "%s", wreath_error_text());
	return NULL;
}

static inline void start(struct side *side)
{
	assert_int_equal(pthread_create(&side->thread, NULL, connect_side,
					side), 0);
}

static inline void finish(struct side *side)
{
	assert_int_equal(pthread_join(side->thread, NULL), 0);
}

static inline void expect_connected(void)
{
	int i;

	for (i = 0; i < 2; i++)
		if (sides[i].err)
			fail_msg("rank %d: %s", i, sides[i].text);
}

/* Both ends of each channel: a slot there, a slot back. */
static inline void talk(void)
{
	int c, i;

	for (i = 0; i < 2; i++)
		for (c = 0; c < N_CHANNELS; c++)
			assert_int_equal(net_conn_reach(sides[i].net, !i, c),
					 0);
	for (i = 0; i < 2 * N_CHANNELS; i++) {
		struct net_lane *from, *to;
		uint64_t end = base_now_ns() + 5000000000ull;
		const unsigned char *got;

		c = i / 2;
		from = &net_conn(sides[i % 2].net, !(i % 2), c)->lanes[0];
		to = &net_conn(sides[!(i % 2)].net, i % 2, c)->lanes[0];
		memset(net_slot(from), 0x40 + i, 3000);
		assert_int_equal(net_send_slot(from, 3000, 5), 0);
		while (net_arrived(to, 5) != NET_ARRIVED) {
			assert_true(base_now_ns() < end);
			assert_int_equal(net_poll(sides[0].net), 0);
			assert_int_equal(net_poll(sides[1].net), 0);
		}
		got = net_payload(to);
		assert_int_equal(got[0], 0x40 + i);
		assert_int_equal(got[2999], 0x40 + i);
	}
}

/* 0, or the exit status of a test that cannot be run here, with the reason. */
static inline int sides_init(void)
{
	struct rdma_event_channel *channel;
	struct verbs_name name;
	int n = 0;

	alarm(110);
	setenv("WREATH_CONNECT", "cm", 1);
	setenv("WREATH_LOG", "off", 0);
	setenv("WREATH_CHANNELS", "2", 1);
	setenv("WREATH_TRAFFIC_CLASS", "96", 1);
	if (base_env_load(&env))
		return 1;
	if (verbs_ibv(&ibv) || verbs_list(ibv, &name, 1, &n) || !n) {
		printf("libibverbs has no device here\n");
		return 77;
	}
	if (verbs_cm_open(&channel)) {
		printf("librdmacm cannot be used here\n");
		return 77;
	}
	verbs_cm_close(channel);
	return 0;
}

/* Connect both at once, as ranks do. */
static inline void connect_both(void)
{
	open_both();
	start(&sides[0]);
	start(&sides[1]);
	finish(&sides[0]);
	finish(&sides[1]);
	expect_connected();
}

#endif
