/* SPDX-License-Identifier: MIT */
/*
 * Goal: two ranks that share ports are connected by the first pair that works
 * at both ends, also when tables of GIDs have changed meanwhile; and where none
 * works both have one sentence that says so.
 * Method: the soft device in the role of hardware, behind a table of verbs
 * that puts dead GIDs before its own one, moves it, or has no route.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/inner.h"
#include "soft/soft.h"

static const struct verbs_table *soft;
static struct verbs_table fake;
static struct base_env envs[2];
static struct net *nets[2];
static char names[2][128] = {"rank 0 (hosta, pid 1)", "rank 1 (hostb, pid 2)"};

/* What the fake shows: the device's GID at one index, a dead one at 0. */
static int real_at;
static bool has_dead, is_ipv4, has_route;
/* The MTU of the port of the first rank, or 0; that of the path last used. */
static enum ibv_mtu first_mtu, path_mtu;

static int fake_query_gid_ex(struct ibv_context *context, uint32_t port,
			     uint32_t index, struct ibv_gid_entry *entry,
			     uint32_t flags, size_t size)
{
	static const uint8_t dead[16] = {0xfe, 0x80, [14] = 0xde, [15] = 0xad};
	int err;

	if ((int)index != real_at && !(has_dead && !index))
		return ENODATA;
	err = soft->query_gid_ex(context, port, 0, entry, flags, size);
	if (!err && (int)index != real_at)
		memcpy(entry->gid.raw, dead, 16);
	if (!err && is_ipv4) {
		/* Another subnet for each context. */
		memset(entry->gid.raw, 0, 12);
		memset(entry->gid.raw + 10, 0xff, 2);
		entry->gid.raw[12] = 10;
	}
	return err;
}

static struct ibv_ah *fake_create_ah(struct ibv_pd *pd,
				     struct ibv_ah_attr *attr)
{
	struct ibv_ah_attr real = *attr;

	if (is_ipv4 && !has_route) {
		errno = ENETUNREACH;
		return NULL;
	}
	real.grh.sgid_index = attr->grh.sgid_index == real_at ? 0 : 3;
	return soft->create_ah(pd, &real);
}

static int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr real = *attr;

	if (mask & IBV_QP_PATH_MTU)
		path_mtu = attr->path_mtu;
	if (mask & IBV_QP_AV)
		real.ah_attr.grh.sgid_index =
			attr->ah_attr.grh.sgid_index == real_at ? 0 : 3;
	return soft->modify_qp(qp, &real, mask);
}

static int fake_query_port(struct ibv_context *context, uint8_t port,
			   struct ibv_port_attr *attr)
{
	int err = soft->query_port(context, port, attr);

	if (first_mtu && !nets[0])
		attr->active_mtu = first_mtu;
	return err;
}

static void open_nets(const char *first, const char *second)
{
	const char *const devices[] = {first, second};
	int i;

	assert_int_equal(soft_table(&soft), 0);
	fake = *soft;
	fake.promises = 0;
	fake.map = NULL;
	fake.query_gid_ex = fake_query_gid_ex;
	fake.query_port = fake_query_port;
	fake.create_ah = fake_create_ah;
	fake.modify_qp = fake_modify_qp;
	for (i = 0; i < 2; i++) {
		struct net_args args = {.env = &envs[i], .ibv = &fake,
					.rank = i, .n_ranks = 2,
					.names = names};

		setenv("WREATH_SOFT", devices[i], 1);
		assert_int_equal(base_env_load(&envs[i]), 0);
		assert_int_equal(net_open(&args, &nets[i]), 0);
	}
}

static void close_nets(void)
{
	net_close(nets[0]);
	net_close(nets[1]);
	nets[0] = NULL;
	nets[1] = NULL;
}

static int agree(int i)
{
	const uint32_t apart[2] = {0, 1};
	char *offers = base_alloc(2, NET_OFFER_MAX);

	net_offer(nets[0], offers);
	net_offer(nets[1], offers + NET_OFFER_MAX);
	return net_agree(nets[i], offers, NET_OFFER_MAX, apart, apart);
}

static void contains(const char *what)
{
	if (!strstr(wreath_error_text(), what))
		fail_msg("'%s' is not in: %s", what, wreath_error_text());
}

/* As comm does it; how many pairs of ports were tried. */
static int connect_nets(int *n_tries)
{
	struct net_record records[2];
	int i, c;

	for (*n_tries = 1;; ++*n_tries) {
		struct net_verdict verdicts[2];
		int errs[2] = {0, 0};

		memset(verdicts, 0, sizeof(verdicts));
		for (i = 0; i < 2; i++)
			assert_int_equal(net_conn_new(nets[i], !i, 0,
						      &records[i]), 0);
		for (i = 0; i < 2; i++) {
			verdicts[i].error = net_conn_ready(nets[i], !i, 0,
							   &records[!i]);
			if (!verdicts[i].error)
				continue;
			assert_int_equal(verdicts[i].error, WREATH_EAGAIN);
			snprintf(verdicts[i].text, sizeof(verdicts[i].text),
				 "%.500s", wreath_error_text());
		}
		if (!verdicts[0].error && !verdicts[1].error)
			return 0;
		for (i = 0; i < 2; i++)
			errs[i] = net_conn_next(nets[i], !i, &verdicts[i],
						&verdicts[!i]);
		assert_int_equal(errs[0], errs[1]);
		for (c = 0; c < 2; c++)
			assert_int_equal(nets[c]->n_active, 0);
		if (errs[0])
			return errs[0];
	}
}

static void expect_connected(int n_expected)
{
	int i, n_tries;

	assert_int_equal(connect_nets(&n_tries), 0);
	assert_int_equal(n_tries, n_expected);
	for (i = 0; i < 2; i++) {
		assert_int_equal(net_conn_reach(nets[i], !i, 0), 0);
		assert_memory_equal(&net_conn(nets[i], !i, 0)->gid,
				    &net_conn(nets[!i], i, 0)->other_gid, 16);
		assert_int_not_equal(net_conn(nets[i], !i, 0)->gid.raw[15] |
				     net_conn(nets[i], !i, 0)->gid.raw[14] << 8,
				     0xdead);
	}
}

static void reset(int at, bool dead, bool ipv4, bool route)
{
	real_at = at;
	has_dead = dead;
	is_ipv4 = ipv4;
	has_route = route;
}

static void dead_pairs_are_passed_over_by_both(void **state)
{
	(void)state;
	reset(2, true, false, true);
	open_nets("roce:1", "roce:1");
	assert_int_equal(agree(0), 0);
	assert_int_equal(agree(1), 0);
	/* Dead with dead, dead with good, good with dead, good with good. */
	expect_connected(4);
	close_nets();
}

static void a_gid_that_moved_is_found_by_its_value(void **state)
{
	(void)state;
	reset(1, false, false, true);
	open_nets("roce:1", "roce:1");
	assert_int_equal(agree(0), 0);
	real_at = 3;
	assert_int_equal(agree(1), 0);
	expect_connected(1);
	close_nets();
}

static void the_smaller_mtu_is_that_of_the_path(void **state)
{
	static const enum ibv_mtu mtus[] = {IBV_MTU_1024, IBV_MTU_2048,
					    IBV_MTU_4096};
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(mtus); i++) {
		reset(0, false, false, true);
		first_mtu = mtus[i];
		path_mtu = 0;
		open_nets("roce:1", "roce:1");
		first_mtu = 0;
		assert_int_equal(agree(0), 0);
		assert_int_equal(agree(1), 0);
		expect_connected(1);
		/* Both ends have set it; the last one is left here. */
		assert_int_equal(path_mtu, mtus[i]);
		close_nets();
	}
}

static void where_nothing_works_both_say_what_was_tried(void **state)
{
	int n_tries;

	(void)state;
	reset(2, true, false, true);
	open_nets("roce:1", "roce:1");
	assert_int_equal(agree(0), 0);
	assert_int_equal(agree(1), 0);
	/* The GID goes away before it is used. */
	real_at = -1;
	assert_int_equal(connect_nets(&n_tries), WREATH_ENET);
	assert_int_equal(n_tries, 4);
	contains("rank 1 (hostb, pid 2) cannot be connected to rank 0 (hosta");
	contains("tried: soft0:1 fe80::dead to soft0:1 fe80::dead, ");
	contains("is gone");
	close_nets();
}

static void infiniband_and_ethernet_do_not_meet(void **state)
{
	int i;

	(void)state;
	reset(0, false, false, true);
	open_nets("ib:1", "roce:1");
	for (i = 0; i < 2; i++) {
		assert_int_equal(agree(i), WREATH_ENET);
		contains(names[0]);
		contains(names[1]);
		contains("soft0:1 (InfiniBand LID ");
		contains("soft0:1 (Ethernet fe80::");
		contains("one is on InfiniBand only");
		contains("WREATH_HCA");
	}
	close_nets();
	/* With one of each they do. */
	open_nets("ib:1", "roce:1,ib:1");
	assert_int_equal(agree(0), 0);
	assert_int_equal(agree(1), 0);
	expect_connected(1);
	close_nets();
}

static void subnets_without_a_route_are_told_when_ranks_meet(void **state)
{
	int i;

	(void)state;
	reset(0, false, true, false);
	open_nets("roce:1", "roce:1");
	for (i = 0; i < 2; i++) {
		assert_int_equal(agree(i), WREATH_ENET);
		contains("different subnets");
		contains("no way");
		contains("ip addr add");
	}
	close_nets();
	has_route = true;
	open_nets("roce:1", "roce:1");
	assert_int_equal(agree(0), 0);
	assert_int_equal(agree(1), 0);
	close_nets();
}

static void offers_that_make_no_sense_are_refused(void **state)
{
	static char good[NET_OFFER_MAX];
	const uint32_t apart[2] = {0, 1};
	uint64_t seed = 1;
	size_t bytes;
	int turn;

	(void)state;
	reset(0, false, false, true);
	open_nets("roce:1,ib:1", "roce:1");
	bytes = net_offer(nets[1], good);
	assert_true(bytes < sizeof(good));
	for (turn = 0; turn < 3000; turn++) {
		char *offers = base_alloc(2, NET_OFFER_MAX);
		char *theirs = offers + NET_OFFER_MAX;
		int err;

		net_offer(nets[0], offers);
		memcpy(theirs, good, bytes);
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		theirs[(seed >> 40) % bytes] = (char)(seed >> 32);
		err = net_agree(nets[0], offers, NET_OFFER_MAX, apart, apart);
		assert_true(!err || err == WREATH_EMISMATCH ||
			    err == WREATH_ENET);
		base_free(nets[0]->offers);
		nets[0]->offers = NULL;
	}
	close_nets();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dead_pairs_are_passed_over_by_both),
		cmocka_unit_test(a_gid_that_moved_is_found_by_its_value),
		cmocka_unit_test(the_smaller_mtu_is_that_of_the_path),
		cmocka_unit_test(where_nothing_works_both_say_what_was_tried),
		cmocka_unit_test(infiniband_and_ethernet_do_not_meet),
		cmocka_unit_test(
			subnets_without_a_route_are_told_when_ranks_meet),
		cmocka_unit_test(offers_that_make_no_sense_are_refused),
	};

	setenv("WREATH_LOG", "off", 1);
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
