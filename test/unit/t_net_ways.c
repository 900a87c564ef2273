/* SPDX-License-Identifier: MIT */
/*
 * Goal: no queue pair crosses rails, ranks of a node are joined by the port
 * that is the node's or else by the best, and both ends of every connection
 * are of one mind.
 * Method: the nets of four ranks in one process, over the soft device, one of
 * whose devices may be called the node's.
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

static void open_nets(const char *devices, int max_rails,
		      const uint32_t nodes[N_NETS])
{
	const uint32_t hosts[N_NETS] = {0};
	struct net_args args = {.env = &env, .all_local = true,
				.n_ranks = N_NETS, .names = names,
				.soft = &fake, .max_rails = max_rails};
	int i, j;

	setenv("WREATH_SOFT", devices, 1);
	assert_int_equal(base_env_load(&env), 0);
	assert_int_equal(soft_table(&soft), 0);
	fake = *soft;
	fake.get_device_name = fake_name;
	for (i = 0; i < N_NETS; i++) {
		args.rank = i;
		assert_int_equal(net_open(&args, &nets[i]), 0);
	}
	for (i = 0; i < N_NETS; i++) {
		char *all = base_alloc(N_NETS, NET_OFFER_MAX);

		for (j = 0; j < N_NETS; j++)
			net_offer(nets[j], all + j * NET_OFFER_MAX);
		assert_int_equal(net_agree(nets[i], all, NET_OFFER_MAX, hosts,
					   nodes), 0);
	}
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(channels_stay_on_their_rail),
		cmocka_unit_test(a_node_uses_its_own_port_and_no_other_does),
	};

	setenv("WREATH_LOG", "off", 1);
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
