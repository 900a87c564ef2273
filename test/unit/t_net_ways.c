/* SPDX-License-Identifier: MIT */
/*
 * Goal: no queue pair crosses rails, ranks of a node are joined by the port
 * that is the node's or else by the best, and both ends of every connection
 * are of one mind.
 * Method: the nets of four ranks in one process, over the soft device, one of
 * whose devices may be called the node's.
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

#define N_NETS 4

static const struct verbs_table *soft;
static struct verbs_table fake;
static struct base_env env;
static struct net *nets[N_NETS];
static char names[N_NETS][128] = {"rank 0", "rank 1", "rank 2", "rank 3"};

/* The last device is that of a node. */
static const char *fake_name(struct ibv_device *device)
{
	const char *name = soft->get_device_name(device);

	return strcmp(name, "soft2") ? name : NET_NODE_DEVICE;
}

/* Where @has_dead the device's GID is the second, behind one of nobody. */
static bool has_dead;

static int fake_query_gid_ex(struct ibv_context *context, uint32_t port,
			     uint32_t index, struct ibv_gid_entry *entry,
			     uint32_t flags, size_t size)
{
	static const uint8_t dead[16] = {0xfe, 0x80, [15] = 9};
	int err;

	if (index > has_dead)
		return ENODATA;
	err = soft->query_gid_ex(context, port, 0, entry, flags, size);
	if (!err && has_dead && !index)
		memcpy(entry->gid.raw, dead, sizeof(dead));
	return err;
}

static struct ibv_ah *fake_create_ah(struct ibv_pd *pd,
				     struct ibv_ah_attr *attr)
{
	struct ibv_ah_attr real = *attr;

	/* 3 is an empty one. */
	real.grh.sgid_index = attr->grh.sgid_index == has_dead ? 0 : 3;
	return soft->create_ah(pd, &real);
}

static int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr real = *attr;

	if (mask & IBV_QP_AV)
		real.ah_attr.grh.sgid_index =
			attr->ah_attr.grh.sgid_index == has_dead ? 0 : 3;
	return soft->modify_qp(qp, &real, mask);
}

/* By what is said to be the soft device, or libibverbs, of other hosts. */
static void open_as(const char *devices, int max_rails, bool is_soft,
		    const uint32_t nodes[N_NETS])
{
	static const uint32_t here[N_NETS];
	struct net_args args = {.env = &env, .all_local = is_soft,
				.n_ranks = N_NETS, .names = names,
				.soft = is_soft ? &fake : NULL, .ibv = &fake,
				.max_rails = max_rails};
	int i, j;

	setenv("WREATH_SOFT", devices, 1);
	assert_int_equal(base_env_load(&env), 0);
	assert_int_equal(soft_table(&soft), 0);
	fake = *soft;
	fake.get_device_name = fake_name;
	fake.query_gid_ex = fake_query_gid_ex;
	fake.create_ah = fake_create_ah;
	fake.modify_qp = fake_modify_qp;
	for (i = 0; i < N_NETS; i++) {
		args.rank = i;
		assert_int_equal(net_open(&args, &nets[i]), 0);
	}
	for (i = 0; i < N_NETS; i++) {
		char *all = base_alloc(N_NETS, NET_OFFER_MAX);

		for (j = 0; j < N_NETS; j++)
			net_offer(nets[j], all + j * NET_OFFER_MAX);
		assert_int_equal(net_agree(nets[i], all, NET_OFFER_MAX,
					   is_soft ? here : nodes, nodes), 0);
	}
}

static void open_nets(const char *devices, int max_rails,
		      const uint32_t nodes[N_NETS])
{
	open_as(devices, max_rails, true, nodes);
}

static void expect_port(int i, int j, int c, char want)
{
	const struct net_conn *conn;
	struct net_record record;
	char name[64] = NET_NODE_DEVICE;

	assert_int_equal(net_conn_new(nets[i], j, c, &record), 0);
	conn = net_conn(nets[i], j, c);
	if (want != 'n')
		snprintf(name, sizeof(name), "soft%c", want);
	assert_string_equal(conn->port->device->name, name);
}

/* Every rank's port to every other, by channel: "01" are soft0 and soft1. */
static void expect_ports(const uint32_t nodes[N_NETS], const char *near,
			 const char *far)
{
	int c, i, j;

	for (i = 0; i < N_NETS; i++) {
		assert_int_equal(nets[i]->n_channels, strlen(far));
		for (j = 0; j < N_NETS; j++) {
			const char *want = nodes[i] == nodes[j] ? near : far;

			for (c = 0; far[c] && i != j; c++) {
				expect_port(i, j, c, want[c]);
			}
		}
	}
	for (i = 0; i < N_NETS; i++)
		net_close(nets[i]);
}

static void channels_stay_on_their_rail(void **state)
{
	const uint32_t one[N_NETS] = {0, 0, 0, 0};
	const uint32_t two[N_NETS] = {0, 1, 0, 1};

	(void)state;
	open_nets("ib:1,roce:1", 0, one);
	expect_ports(one, "01", "01");
	open_nets("roce:1,ib:1", 1, two);
	expect_ports(two, "0", "0");
	/* Within a node the best port, on every channel: it is the RoCE one. */
	open_nets("ib:1,roce:1", 0, two);
	assert_int_equal(nets[0]->n_nodes, 2);
	expect_ports(two, "11", "01");
	setenv("WREATH_CHANNELS", "3", 1);
	open_nets("ib:1,roce:1", 0, one);
	expect_ports(one, "01", "01");
	setenv("WREATH_CHANNELS", "4", 1);
	open_nets("ib:1,roce:1", 0, one);
	expect_ports(one, "0101", "0101");
	unsetenv("WREATH_CHANNELS");
}

static void a_node_uses_its_own_port_and_no_other_does(void **state)
{
	const uint32_t one[N_NETS] = {0, 0, 0, 0};
	const uint32_t two[N_NETS] = {0, 0, 1, 1};

	(void)state;
	open_nets("ib:1,roce:2", 0, two);
	assert_int_equal(nets[3]->n_rails, 2);
	expect_ports(two, "nn", "01");
	open_nets("roce:1,ib:1,roce:1", 1, two);
	expect_ports(two, "n", "0");
	open_nets("ib:1,roce:2", 0, one);
	assert_int_equal(nets[3]->n_rails, 1);
	expect_ports(one, "n", "n");
}

static void hosts_are_joined_by_all_ports_of_a_subnet(void **state)
{
	const uint32_t one[N_NETS] = {0, 0, 0, 0};
	const uint32_t two[N_NETS] = {0, 0, 1, 1};

	(void)state;
	open_as("ib:2", 0, false, two);
	assert_int_equal(nets[1]->n_rails, 2);
	assert_int_equal(nets[1]->rail_mbps[1], 200000);
	expect_ports(two, "00", "01");
	open_as("ib:2", 0, false, one);
	expect_ports(one, "01", "01");
	open_as("ib:2", 1, false, two);
	expect_ports(two, "0", "0");
	/* Link-local addresses do not tell one link from another. */
	open_as("roce:4", 0, false, two);
	assert_int_equal(nets[1]->n_rails, 1);
	expect_ports(two, "0", "0");
}

/* As comm does it, between ranks 0 and 1; how many turns it took. */
static int connect_two(void)
{
	struct net_record records[2][NET_CHANNELS_MAX];
	int n = nets[0]->n_channels;
	int c, i, turn;

	for (turn = 1; turn < 100; turn++) {
		struct net_verdict verdicts[2];

		memset(verdicts, 0, sizeof(verdicts));
		for (i = 0; i < 2; i++)
			for (c = 0; c < n; c++)
				assert_int_equal(net_conn_new(
					nets[i], !i, c, &records[i][c]), 0);
		for (i = 0; i < 2; i++) {
			int err = 0;

			for (c = 0; c < n && !err; c++)
				err = net_conn_ready(nets[i], !i, c,
						     &records[!i][c]);
			if (err)
				net_verdict(nets[i], !i, err, &verdicts[i]);
		}
		if (!verdicts[0].error && !verdicts[1].error)
			return turn;
		for (i = 0; i < 2; i++)
			assert_int_equal(net_conn_next(nets[i], !i,
						       &verdicts[i],
						       &verdicts[!i]), 0);
	}
	return turn;
}

static void each_rail_finds_its_own_addresses(void **state)
{
	const uint32_t two[N_NETS] = {0, 1, 0, 1};
	int c, i;

	(void)state;
	has_dead = true;
	setenv("WREATH_HCA", "soft0,soft1", 1);
	open_nets("roce:2", 0, two);
	assert_int_equal(nets[0]->n_channels, 2);
	/* Of the four pairs of addresses of each rail the last one works. */
	assert_in_range(connect_two(), 4, 7);
	for (c = 0; c < 2; c++)
		for (i = 0; i < 2; i++) {
			const struct net_conn *conn = net_conn(nets[i], !i, c);

			assert_int_equal(conn->local.attempt, 3);
			assert_memory_equal(
				&conn->gid,
				&net_conn(nets[!i], i, c)->other_gid, 16);
		}
	for (i = 0; i < N_NETS; i++)
		net_close(nets[i]);
	unsetenv("WREATH_HCA");
	has_dead = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(channels_stay_on_their_rail),
		cmocka_unit_test(a_node_uses_its_own_port_and_no_other_does),
		cmocka_unit_test(hosts_are_joined_by_all_ports_of_a_subnet),
		cmocka_unit_test(each_rail_finds_its_own_addresses),
	};

	setenv("WREATH_LOG", "off", 1);
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
