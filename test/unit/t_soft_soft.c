/* SPDX-License-Identifier: MIT */
/*
 * Goal: WREATH_SOFT makes the devices that it names, and nonsense in it is
 * refused with the word named; ports tell what their link layer has.  Method:
 * lists, good and bad, and queries of what they make.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>

#include "soft_pair.h"

static int n_devices(const char *spec)
{
	const struct verbs_table *table;
	struct ibv_device **list;
	int n, i;

	setenv("WREATH_SOFT", spec, 1);
	if (soft_table(&table))
		return -1;
	list = table->get_device_list(&n);
	assert_non_null(list);
	for (i = 0; i < n; i++) {
		char name[16];

		snprintf(name, sizeof(name), "soft%d", i);
		assert_string_equal(table->get_device_name(list[i]), name);
	}
	assert_null(list[n]);
	table->free_device_list(list);
	return n;
}

static void list_makes_its_devices(void **state)
{
	const struct verbs_table *table;

	(void)state;
	assert_int_equal(n_devices("roce:1"), 1);
	assert_int_equal(n_devices("ib"), 1);
	assert_int_equal(n_devices("ib:2,roce:3"), 5);
	assert_int_equal(n_devices("roce:16"), 16);
	setenv("WREATH_SOFT", "off", 1);
	assert_int_equal(soft_table(&table), WREATH_EUNSUP);
	assert_int_equal(soft_table(&table), WREATH_EUNSUP);
}

static void nonsense_is_refused_by_name(void **state)
{
	static const char *const bad[] = {
		"", ",", "roce:0", "roce:17", "ib:-1", "ib:x", "ib:", "roce2",
		"eth:1", "roce:9,ib:8", "roce:1,x", "ib:1 ",
	};
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(bad); i++) {
		assert_int_equal(n_devices(bad[i]), -1);
		assert_non_null(strstr(wreath_error_text(), "WREATH_SOFT"));
	}
	n_devices("roce:1,bogus:4");
	assert_non_null(strstr(wreath_error_text(), "'bogus:4'"));
}

static void ethernet_port_has_a_routable_kind_of_gid(void **state)
{
	struct pair_args args = {0};
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct pair_end a;
	__be16 pkey;

	(void)state;
	setenv("WREATH_SOFT", "roce", 1);
	pair_end_open(&a, &args);
	assert_int_equal(a.verbs->query_port(a.context, 1, &port), 0);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.lid, 0);
	assert_int_equal(port.active_mtu, IBV_MTU_4096);
	assert_int_equal(a.verbs->query_gid_ex(a.context, 1, 0, &entry, 0,
					       sizeof(entry)), 0);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(entry.gid.raw[0], 0xfe);
	assert_int_equal(entry.gid.raw[1], 0x80);
	assert_memory_equal(&entry.gid, &a.card.gid, sizeof(entry.gid));
	assert_int_equal(a.verbs->query_gid_ex(a.context, 1, 1, &entry, 0,
					       sizeof(entry)), ENODATA);
	assert_int_equal(a.verbs->query_gid_ex(
				 a.context, 1, (uint32_t)port.gid_tbl_len,
				 &entry, 0, sizeof(entry)), EINVAL);
	assert_int_equal(a.verbs->query_gid(a.context, 1, 1, &gid), 0);
	assert_int_equal(gid.global.interface_id, 0);
	assert_int_equal(a.verbs->query_gid(a.context, 1, port.gid_tbl_len,
					    &gid), -1);
	assert_int_equal(a.verbs->query_gid(a.context, 2, 0, &gid), -1);
	assert_int_equal(a.verbs->query_port(a.context, 2, &port), EINVAL);
	assert_int_equal(a.verbs->query_port(a.context, 0, &port), EINVAL);
	assert_int_equal(a.verbs->query_pkey(a.context, 1, 0, &pkey), 0);
	assert_int_equal(ntohs(pkey), 0xffff);
	assert_int_equal(a.verbs->query_pkey(a.context, 1, 1, &pkey), -1);
	pair_end_close(&a);
}

static void infiniband_port_has_a_lid_of_its_own(void **state)
{
	struct pair_args args = {0};
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	struct pair_end ends[8];
	int i, j;

	(void)state;
	setenv("WREATH_SOFT", "ib", 1);
	for (i = 0; i < 8; i++) {
		pair_end_open(&ends[i], &args);
		assert_int_equal(ends[i].verbs->query_port(ends[i].context, 1,
							   &port), 0);
		assert_int_equal(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
		assert_in_range(port.lid, 1, 0xbfff);
		assert_int_equal(port.lmc, 0);
		for (j = 0; j < i; j++)
			assert_int_not_equal(port.lid, ends[j].card.lid);
	}
	assert_int_equal(ends[0].verbs->query_gid_ex(ends[0].context, 1, 0,
						     &entry, 0,
						     sizeof(entry)), 0);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_IB);
	for (i = 0; i < 8; i++)
		pair_end_close(&ends[i]);
}

static void device_keeps_its_word_about_limits(void **state)
{
	struct pair_args args = {0};
	struct ibv_device_attr attr;
	struct pair_end a;

	(void)state;
	setenv("WREATH_SOFT", "roce", 1);
	pair_end_open(&a, &args);
	assert_int_equal(a.verbs->query_device(a.context, &attr), 0);
	assert_int_equal(attr.phys_port_cnt, 1);
	assert_true(attr.max_qp >= 1024 && attr.max_qp_wr >= 1024);
	assert_int_equal(attr.max_srq_sge, attr.max_sge);
	assert_int_equal(attr.max_mw, 0);
	assert_int_equal(attr.atomic_cap, IBV_ATOMIC_HCA);
	pair_end_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_makes_its_devices),
		cmocka_unit_test(nonsense_is_refused_by_name),
		cmocka_unit_test(ethernet_port_has_a_routable_kind_of_gid),
		cmocka_unit_test(infiniband_port_has_a_lid_of_its_own),
		cmocka_unit_test(device_keeps_its_word_about_limits),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
