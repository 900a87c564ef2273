/* SPDX-License-Identifier: MIT */
/*
 * Goal: the rates and latencies of WREATH_SOFT reach the ports that it names,
 * exactly; what cannot be read is refused with the item, the value and the
 * range; a node has a device of its own where others are paced.  Method: lists,
 * good and bad, and what the opened devices say of themselves.
 */
#define _GNU_SOURCE
#include "soft_pair.h"

static void expect(const char *spec, int device, uint64_t bits,
		   uint64_t latency_ns)
{
	struct pair_args args = {.device = device};
	struct verbs_pace pace;
	struct pair_end a;

	setenv("WREATH_SOFT", spec, 1);
	pair_end_open(&a, &args);
	a.verbs->pace(a.context, &pace);
	assert_int_equal(pace.bits, bits);
	assert_int_equal(pace.latency_ns, latency_ns);
	pair_end_close(&a);
}

static void each_port_has_the_pace_of_its_item(void **state)
{
	const char *mixed = "roce:1,ib:2@2.5G+20us,roce@+1.5ms";

	(void)state;
	expect("roce:1", 0, 0, 0);
	expect("roce:1@10G", 0, 10000000000u, 0);
	expect("roce:1@10G+100us", 0, 10000000000u, 100000);
	expect("ib@1K", 0, 1000, 0);
	expect("ib@123456789+1ns", 0, 123456789, 1);
	expect("ib@10T+10000ms", 0, 10000000000000u, 10000000000u);
	expect("roce@0.001M", 0, 1000, 0);
	expect(mixed, 0, 0, 0);
	expect(mixed, 1, 2500000000u, 20000);
	expect(mixed, 2, 2500000000u, 20000);
	expect(mixed, 3, 0, 1500000);
	/* A device is what it was when it was opened. */
	expect("roce:1", 0, 0, 0);
}

static void refuse(const char *spec, const char *item, const char *value,
		   const char *range)
{
	const struct verbs_table *table;

	setenv("WREATH_SOFT", spec, 1);
	assert_int_equal(soft_table(&table), WREATH_EINVAL);
	assert_non_null(strstr(wreath_error_text(), "WREATH_SOFT"));
	assert_non_null(strstr(wreath_error_text(), item));
	assert_non_null(strstr(wreath_error_text(), value));
	assert_non_null(strstr(wreath_error_text(), range));
}

static void nonsense_is_refused_with_its_range(void **state)
{
	static const char *const rates[] = {
		"", "x", "G", "-1G", "1.G", ".5G", "1.2.3G", "10g", "10GB",
		"10 G", "999", "0", "0G", "11T", "1000000000000000000000",
		"0x10G", "1e9", "10G@10G", "nan",
	};
	static const char *const latencies[] = {
		"", "5", "us", "0us", "0.5ns", "-1us", "10001ms", "1s", "5us+5us",
		"5 us", "1.us",
	};
	char spec[128], value[64];
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(rates); i++) {
		snprintf(spec, sizeof(spec), "ib,roce:1@%s", rates[i]);
		snprintf(value, sizeof(value), "'%s'", rates[i]);
		refuse(spec, "'roce:1@", value, "from 1K to 10T");
	}
	for (i = 0; i < base_countof(latencies); i++) {
		snprintf(spec, sizeof(spec), "ib:2@1G+%s", latencies[i]);
		snprintf(value, sizeof(value), "'%s'", latencies[i]);
		refuse(spec, "'ib:2@1G+", value, "from 1ns to 10000ms");
	}
	refuse("roce:0@1G", "'roce:0@1G'", "from 1 to 16", "");
	refuse("@1G", "'@1G'", "from 1 to 16", "");
}

static uint32_t reported(const char *spec)
{
	struct pair_args args = {0};
	struct ibv_port_attr attr;
	struct pair_end a;

	setenv("WREATH_SOFT", spec, 1);
	pair_end_open(&a, &args);
	assert_int_equal(a.verbs->query_port(a.context, 1, &attr), 0);
	pair_end_close(&a);
	return verbs_port_mbps(&attr);
}

static void a_port_reports_the_next_rate_there_is(void **state)
{
	(void)state;
	assert_int_equal(reported("roce"), 200000);
	assert_int_equal(reported("roce@+5us"), 200000);
	assert_int_equal(reported("roce@100G"), 100000);
	assert_int_equal(reported("roce@10G"), 10000);
	assert_int_equal(reported("roce@24G"), 20000);
	assert_int_equal(reported("roce@3G"), 2500);
	assert_int_equal(reported("roce@1M"), 2500);
	assert_int_equal(reported("roce@10T"), 1200000);
}

static void the_exact_rate_is_known_of_a_device(void **state)
{
	const struct ibv_port_attr attr = {.active_width = 2,
					   .active_speed = 64};
	struct verbs_device device = {.pace = {.bits = 3000000000u}};

	(void)state;
	assert_int_equal(verbs_mbps(&device, &attr), 3000);
	assert_true(verbs_is_paced(&device));
	device.pace.bits = 1000;
	assert_int_equal(verbs_mbps(&device, &attr), 1);
	device.pace.bits = 0;
	assert_int_equal(verbs_mbps(&device, &attr), 200000);
	assert_false(verbs_is_paced(&device));
	device.pace.latency_ns = 1;
	assert_true(verbs_is_paced(&device));
}

/* Is the last of @n devices the node's own? */
static bool has_node(const char *spec, const char *node, int n)
{
	const struct verbs_table *table;
	struct ibv_device **list;
	int n_listed;
	bool is_it;

	setenv("WREATH_SOFT", spec, 1);
	if (node)
		setenv("WREATH_NODE", node, 1);
	else
		unsetenv("WREATH_NODE");
	assert_int_equal(soft_table(&table), 0);
	list = table->get_device_list(&n_listed);
	assert_non_null(list);
	assert_int_equal(n_listed, n);
	is_it = !strcmp(table->get_device_name(list[n - 1]), "node0");
	table->free_device_list(list);
	return is_it;
}

static void a_node_has_an_unpaced_device_of_its_own(void **state)
{
	struct pair_args args = {.device = 2};
	struct pair_wr w;
	struct pair_end a, b;

	(void)state;
	assert_false(has_node("roce@1G", NULL, 1));
	assert_false(has_node("roce@1G", "-1", 1));
	assert_false(has_node("roce:2", "0", 2));
	assert_true(has_node("roce@1G", "0", 2));
	assert_true(has_node("ib:14,roce@+1us", "3", 16));
	refuse("roce:16@1G", "WREATH_NODE", "16", "");
	assert_true(has_node("ib@1G,roce@1K", "1", 3));
	pair_open(&a, &b, &args);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 65536);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_non_null(a.verbs->map(a.qp, a.other.rkey, a.other.addr, 64));
	a.verbs->unmap(a.qp, NULL);
	unsetenv("WREATH_NODE");
	pair_close(&a, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_port_has_the_pace_of_its_item),
		cmocka_unit_test(nonsense_is_refused_with_its_range),
		cmocka_unit_test(a_port_reports_the_next_rate_there_is),
		cmocka_unit_test(the_exact_rate_is_known_of_a_device),
		cmocka_unit_test(a_node_has_an_unpaced_device_of_its_own),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
