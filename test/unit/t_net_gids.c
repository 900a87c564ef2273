/* SPDX-License-Identifier: MIT */
/*
 * Goal: every entry of a port's table of GIDs is taken or refused for a reason
 * that is said; and what a user asks for and cannot have is answered with the
 * value, what there is, and the remedy.
 * Method: the soft device in the role of hardware, with tables of GIDs and
 * partition keys made up here, on the loopback interface, which is real.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>
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
static struct base_env env;
static char names[2][128] = {"rank 0 (hosta, pid 1)", "rank 1 (hostb, pid 2)"};

/* The fake's table. */
static const struct {
	uint8_t raw[16];
	uint32_t type;
	bool on_lo;
	const char *why;
	int prefix;
} table[] = {
	{{0xfe, 0x80, [15] = 1}, IBV_GID_TYPE_ROCE_V1, false, "RoCE v1", 64},
	{{0xfe, 0x80, [15] = 1}, IBV_GID_TYPE_ROCE_V2, false,
	 "link-local: only if nothing better", 64},
	{{0}, IBV_GID_TYPE_ROCE_V2, false, "all zero", 0},
	{{[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}, IBV_GID_TYPE_ROCE_V1, true,
	 "RoCE v1", 96 + 8},
	{{0xfd, 0x77, [15] = 1}, IBV_GID_TYPE_ROCE_V2, false, "candidate", 0},
	{{[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}, IBV_GID_TYPE_ROCE_V2, true,
	 "chosen", 96 + 8},
	{{[10] = 0xff, [11] = 0xff, 192, 0, 2, 9}, IBV_GID_TYPE_ROCE_V2, true,
	 "no address on the interface: only if nothing better", 0},
};
#define HOLE 9 /* entries below it are the table's, this one is beyond */

static int fake_query_gid_ex(struct ibv_context *context, uint32_t port,
			     uint32_t index, struct ibv_gid_entry *entry,
			     uint32_t flags, size_t size)
{
	(void)context;
	(void)flags;
	(void)size;
	if (index >= base_countof(table))
		return ENODATA;
	memcpy(entry->gid.raw, table[index].raw, 16);
	entry->gid_index = index;
	entry->port_num = port;
	entry->gid_type = table[index].type;
	entry->ndev_ifindex = table[index].on_lo ? if_nametoindex("lo") : 0;
	return 0;
}

static int fake_query_port(struct ibv_context *context, uint8_t port,
			   struct ibv_port_attr *attr)
{
	int err = soft->query_port(context, port, attr);

	attr->gid_tbl_len = HOLE;
	attr->pkey_tbl_len = 4;
	return err;
}

static int fake_query_pkey(struct ibv_context *context, uint8_t port, int index,
			   __be16 *pkey)
{
	static const uint16_t keys[] = {0xffff, 0x8005, 0, 0x7006};

	(void)context;
	(void)port;
	*pkey = htobe16(keys[index]);
	return 0;
}

static struct ibv_context *fake_open(struct ibv_device *device)
{
	(void)device;
	errno = EACCES;
	return NULL;
}

static int setup(void **state)
{
	(void)state;
	if (soft_table(&soft))
		return -1;
	fake = *soft;
	fake.query_gid_ex = fake_query_gid_ex;
	fake.query_port = fake_query_port;
	fake.query_pkey = fake_query_pkey;
	return 0;
}

static int open_net(const char *name, const char *value, struct net **net)
{
	struct net_args args = {.env = &env, .ibv = &fake, .n_ranks = 2,
				.names = names};
	int err;

	setenv(name, value, 1);
	assert_int_equal(base_env_load(&env), 0);
	err = net_open(&args, net);
	unsetenv(name);
	return err;
}

static void contains(const char *what)
{
	if (!strstr(wreath_error_text(), what))
		fail_msg("'%s' is not in: %s", what, wreath_error_text());
}

static void every_entry_has_its_reason(void **state)
{
	static struct net_gid_row rows[NET_TABLE_MAX];
	struct verbs_device *device;
	struct ibv_port_attr attr;
	size_t i;

	(void)state;
	assert_int_equal(verbs_device_open(&fake, "soft0", &device), 0);
	assert_int_equal(verbs_port(device, 1, &attr), 0);
	assert_int_equal(net_gid_rows(device, 1, &attr, -1, rows,
				      NET_TABLE_MAX), base_countof(table));
	for (i = 0; i < base_countof(table); i++) {
		assert_int_equal(rows[i].index, i);
		assert_string_equal(rows[i].why, table[i].why);
		assert_int_equal(rows[i].gid.prefix, table[i].prefix);
		assert_string_equal(rows[i].ifname,
				    table[i].on_lo ? "lo" : "");
	}
	/* No more than there is room for. */
	assert_int_equal(net_gid_rows(device, 1, &attr, -1, rows, 3), 3);
	verbs_device_close(device);
}

static void candidates_come_best_first(void **state)
{
	struct net *net;

	(void)state;
	assert_int_equal(open_net("WREATH_PKEY", "65535", &net), 0);
	assert_int_equal(net->n_ports, 1);
	assert_int_equal(net->ports[0].n_gids, 4);
	assert_memory_equal(net->ports[0].gids[0].raw, table[5].raw, 16);
	assert_memory_equal(net->ports[0].gids[1].raw, table[4].raw, 16);
	assert_memory_equal(net->ports[0].gids[2].raw, table[1].raw, 16);
	assert_memory_equal(net->ports[0].gids[3].raw, table[6].raw, 16);
	net_close(net);
	assert_int_equal(open_net("WREATH_GID_INDEX", "4", &net), 0);
	assert_int_equal(net->ports[0].n_gids, 1);
	assert_memory_equal(net->ports[0].gids[0].raw, table[4].raw, 16);
	net_close(net);
}

static void an_index_of_no_use_is_answered_with_those_of_use(void **s)
{
	static const struct {
		const char *index, *why;
	} rows[] = {{"8", "is empty"},
		    {"200", "is beyond the table"},
		    {"0", "RoCE v1"},
		    {"2", "all zero"}};
	struct net *net;
	size_t i;

	(void)s;
	for (i = 0; i < base_countof(rows); i++) {
		char value[64];

		assert_int_equal(open_net("WREATH_GID_INDEX", rows[i].index,
					  &net), WREATH_EINVAL);
		snprintf(value, sizeof(value), "WREATH_GID_INDEX=%s of soft0",
			 rows[i].index);
		contains(value);
		contains("entries 0 to 8");
		contains(rows[i].why);
		contains("1 (fe80::1), 4 (fd77::1), 5 (127.0.0.1)");
	}
}

static void a_missing_partition_is_answered_with_those_there(
	void **state)
{
	struct net *net;

	(void)state;
	assert_int_equal(open_net("WREATH_PKEY", "7", &net), WREATH_EINVAL);
	contains("WREATH_PKEY=7");
	contains("65535, 32773, 28678");
	/* An empty entry is no key, and membership is not part of one. */
	assert_int_equal(open_net("WREATH_PKEY", "32768", &net),
			 WREATH_EINVAL);
	assert_int_equal(open_net("WREATH_PKEY", "5", &net), 0);
	assert_int_equal(net->ports[0].pkey_index, 1);
	net_close(net);
}

static void a_device_that_may_not_be_opened_is_named_with_its_file(void **s)
{
	struct net_args args = {.env = &env, .soft = soft, .ibv = &fake,
				.n_ranks = 2, .names = names};
	struct net *net;

	(void)s;
	fake.open_device = fake_open;
	assert_int_equal(open_net("WREATH_HCA", "soft0", &net),
			 WREATH_EDEVICE);
	contains("cannot open soft0");
	contains(strerror(EACCES));
	contains("/dev/infiniband/");
	contains("--device");
	assert_int_equal(open_net("WREATH_PKEY", "65535", &net),
			 WREATH_EDEVICE);
	contains("no port can be used: cannot open soft0");
	/* One that is not needed is no matter. */
	args.all_local = true;
	args.all_ports = true;
	assert_int_equal(base_env_load(&env), 0);
	assert_int_equal(net_open(&args, &net), 0);
	assert_int_equal(net->n_ports, 1);
	net_close(net);
	fake.open_device = soft->open_device;
}

static void too_little_memory_to_lock_is_told_with_the_remedies(void **state)
{
	struct verbs_device *device;
	static char buffer[8192];
	struct ibv_mr *mr;
	struct ibv_pd *pd;

	(void)state;
	setenv("WREATH_SOFT_FAULTS", "memlock=4096", 1);
	assert_int_equal(verbs_device_open(soft, "soft0", &device), 0);
	assert_int_equal(verbs_pd_new(device, &pd), 0);
	assert_int_equal(verbs_mr_new(device, pd, buffer, sizeof(buffer), -1, 0,
				      IBV_ACCESS_LOCAL_WRITE, &mr),
			 WREATH_ENOMEM);
	contains("8192 bytes");
	if (!strstr(wreath_error_text(), "RLIMIT_MEMLOCK")) {
		print_message("nothing limits locked memory here\n");
	} else {
		contains("are needed");
		contains("ulimit -l unlimited");
		contains("LimitMEMLOCK=infinity");
		contains("--ulimit memlock=-1");
	}
	verbs_pd_free(device, pd);
	verbs_device_close(device);
	unsetenv("WREATH_SOFT_FAULTS");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_entry_has_its_reason),
		cmocka_unit_test(candidates_come_best_first),
		cmocka_unit_test(
			an_index_of_no_use_is_answered_with_those_of_use),
		cmocka_unit_test(
			a_missing_partition_is_answered_with_those_there),
		cmocka_unit_test(
			a_device_that_may_not_be_opened_is_named_with_its_file),
		cmocka_unit_test(
			too_little_memory_to_lock_is_told_with_the_remedies),
	};

	if (!if_nametoindex("lo")) {
		print_message("there is no loopback interface\n");
		return 77;
	}
	setenv("WREATH_LOG", "off", 1);
	setenv("WREATH_JOIN_TIMEOUT", "1s", 1);
	alarm(60);
	return cmocka_run_group_tests(tests, setup, NULL);
}
