/* SPDX-License-Identifier: MIT */
/*
 * Goal: devices are found and opened by name, ports and GIDs are asked for
 * within their range, and a failure says what, where and which there are.
 * Method: the soft device's table, whole and with verbs that fail in each of
 * libibverbs' three ways; and libibverbs itself, with or without devices.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "soft_pair.h"

static struct verbs_device *open_soft(const struct verbs_table *table)
{
	struct verbs_device *device;

	assert_int_equal(verbs_device_open(table, "soft0", &device), 0);
	return device;
}

static const struct verbs_table *soft(void)
{
	const struct verbs_table *table;

	assert_int_equal(soft_table(&table), 0);
	return table;
}

static void expect_text(const char *what)
{
	if (!strstr(wreath_error_text(), what))
		fail_msg("'%s' is not in: %s", what, wreath_error_text());
}

static void devices_are_listed_by_name(void **state)
{
	struct verbs_name names[2];
	int n;

	(void)state;
	assert_int_equal(verbs_list(soft(), names, 2, &n), 0);
	assert_int_equal(n, 3); /* more than asked for */
	assert_string_equal(names[0].name, "soft0");
	assert_string_equal(names[1].name, "soft1");
}

static void missing_device_is_told_by_name(void **state)
{
	struct verbs_device *device;

	(void)state;
	assert_int_not_equal(verbs_device_open(soft(), "mlx5_9", &device), 0);
	expect_text("mlx5_9");
}

static void opened_device_tells_what_it_has(void **state)
{
	struct verbs_device *device = open_soft(soft());
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	uint16_t pkey;

	(void)state;
	assert_string_equal(device->name, "soft0");
	assert_int_equal(device->attr.phys_port_cnt, 1);
	assert_int_equal(verbs_port(device, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(verbs_gid(device, 1, 0, &entry), 0);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(verbs_pkey(device, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_true(verbs_port(device, 2, &port) < 0);
	expect_text("soft0");
	assert_true(verbs_gid(device, 1, 99, &entry) < 0);
	expect_text("soft0");
	assert_true(verbs_pkey(device, 1, 7, &pkey) < 0);
	expect_text("soft0");
	verbs_device_close(device);
	verbs_device_close(NULL);
}

static int fails_with(int err)
{
	errno = err;
	return -1;
}

static int port_errno(struct ibv_context *context, uint8_t port,
		      struct ibv_port_attr *attr)
{
	(void)context;
	(void)port;
	(void)attr;
	return ENODEV;
}

static int pkey_minus_one(struct ibv_context *context, uint8_t port, int index,
			  __be16 *pkey)
{
	(void)context;
	(void)port;
	(void)index;
	(void)pkey;
	return fails_with(ENOMEM);
}

static struct ibv_pd *pd_null(struct ibv_context *context)
{
	(void)context;
	errno = ENOMEM;
	return NULL;
}

static void each_way_of_failing_is_understood(void **state)
{
	struct verbs_table table = *soft();
	struct verbs_device *device;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	uint16_t pkey;

	(void)state;
	table.query_port = port_errno;
	table.query_pkey = pkey_minus_one;
	table.alloc_pd = pd_null;
	device = open_soft(&table);
	assert_int_equal(verbs_port(device, 1, &port), WREATH_EDEVICE);
	expect_text(strerror(ENODEV));
	assert_true(verbs_pkey(device, 1, 0, &pkey) < 0);
	expect_text(strerror(ENOMEM));
	assert_int_equal(verbs_pd_new(device, &pd), WREATH_ENOMEM);
	expect_text(strerror(ENOMEM));
	verbs_device_close(device);
}

static void libibverbs_is_loaded_or_the_reason_told(void **state)
{
	const struct verbs_table *table, *again;
	struct verbs_name names[4];
	int n, error = verbs_ibv(&table);

	(void)state;
	if (error) {
		assert_int_equal(error, WREATH_EUNSUP);
		expect_text("rdma-core");
		assert_int_equal(verbs_ibv(&table), WREATH_EUNSUP);
		return;
	}
	assert_int_equal(verbs_ibv(&again), 0);
	assert_ptr_equal(table, again);
	assert_null(table->map);
	assert_int_equal(table->promises, 0);
	/* No device is no error. */
	assert_int_equal(verbs_list(table, names, 4, &n), 0);
	assert_true(n >= 0);
}

static void names_are_never_null(void **state)
{
	int i;

	(void)state;
	assert_string_equal(verbs_wc_name(IBV_WC_RETRY_EXC_ERR),
			    "IBV_WC_RETRY_EXC_ERR");
	assert_string_equal(verbs_wc_name(IBV_WC_SUCCESS), "IBV_WC_SUCCESS");
	assert_string_equal(verbs_event_name(IBV_EVENT_PORT_ERR),
			    "IBV_EVENT_PORT_ERR");
	for (i = -2; i < 100; i++) {
		assert_non_null(verbs_wc_name((enum ibv_wc_status)i));
		assert_non_null(verbs_event_name((enum ibv_event_type)i));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_listed_by_name),
		cmocka_unit_test(missing_device_is_told_by_name),
		cmocka_unit_test(opened_device_tells_what_it_has),
		cmocka_unit_test(each_way_of_failing_is_understood),
		cmocka_unit_test(libibverbs_is_loaded_or_the_reason_told),
		cmocka_unit_test(names_are_never_null),
	};

	setenv("WREATH_SOFT", "roce:2,ib:1", 1);
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
