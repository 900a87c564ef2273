/* SPDX-License-Identifier: MIT */
/*
 * Goal: the addresses of a host's interfaces are known with their subnets.
 * Method: the loopback interface, which every host has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "topo/topo.h"

static const unsigned char loopback[16] = {[10] = 0xff, [11] = 0xff,
					   [12] = 127, [15] = 1};
static const unsigned char none[16];

static void loopback_has_its_address_and_subnet(void **state)
{
	struct topo_addr *addrs;
	int i, n;
	int n_found = 0, n_bare = 0;

	(void)state;
	assert_int_equal(topo_addrs(&addrs, &n), 0);
	for (i = 0; i < n; i++) {
		assert_true(addrs[i].prefix <= 128);
		assert_true(strlen(addrs[i].ifname) > 0);
		assert_true(addrs[i].ifindex > 0);
		if (!memcmp(addrs[i].addr, none, 16))
			n_bare += !strcmp(addrs[i].ifname, "lo");
		if (memcmp(addrs[i].addr, loopback, 16))
			continue;
		n_found++;
		assert_string_equal(addrs[i].ifname, "lo");
		assert_int_equal(addrs[i].prefix, 96 + 8);
		assert_true(addrs[i].is_up);
		assert_false(addrs[i].is_vlan);
	}
	base_free(addrs);
	if (!n_found) {
		print_message("the loopback interface is down here\n");
		skip();
	}
	assert_int_equal(n_found, 1);
	/* Interfaces without addresses are there as well. */
	assert_int_equal(n_bare, 1);
}

static void memory_that_runs_out_is_an_error(void **state)
{
	struct topo_addr *addrs;
	int n;

	(void)state;
	base_alloc_fail_at(1);
	assert_int_equal(topo_addrs(&addrs, &n), WREATH_ENOMEM);
	base_alloc_fail_at(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_has_its_address_and_subnet),
		cmocka_unit_test(memory_that_runs_out_is_an_error),
	};

	alarm(20);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
