/* SPDX-License-Identifier: MIT */
/*
 * Goal: where one rank has other settings or devices than the rest, all of them
 * find ports that fit, or all are told whose what does not fit.
 * Method: one rank's environment differs; a call follows where all joined.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/loop/ranks.h"

/* One rank has a setting of its own. */
struct odd {
	int rank;
	const char *name, *value;
	int code;
	const char *word; /* of the odd rank's text */
	int other_code;
	const char *other_word; /* 0 and NULL: as the odd one */
};

static int join_oddly(struct rank *rank)
{
	const struct odd *odd = rank->arg;
	int word = 1;
	int err;

	if (rank->rank == odd->rank)
		ranks_set(odd->name, odd->value);
	err = rank_join(rank, &rank->comm);
	/* Who did join learns it by the first call. */
	if (!err)
		err = wreath_all_reduce(&word, &word, 1, WREATH_INT32,
					WREATH_SUM, rank->comm, NULL);
	rank_reach(rank);
	rank_await(rank, 1);
	return err;
}

static void expect_odd(const struct odd *odd, int n)
{
	struct ranks run = {.n = n,
			    .body = join_oddly,
			    .arg = odd,
			    .no_comm = true};
	int i;

	ranks_start(&run);
	ranks_await(&run, (unsigned int)n);
	ranks_allow(&run, 1);
	ranks_join(&run);
	for (i = 0; i < n; i++) {
		bool is_odd = i == odd->rank || !odd->other_word;

		printf("%s=%s, rank %d: %s\n", odd->name, odd->value, i,
		       run.shared->results[i].text);
		ranks_expect(&run, i, is_odd ? odd->code : odd->other_code,
			     is_odd ? odd->word : odd->other_word);
		assert_true(run.shared->results[i].seconds < 8);
	}
	ranks_end(&run);
}

static void a_difference_in_settings_is_named(void **state)
{
	static const struct odd odds[] = {
		{1, "WREATH_ALGO", "ring", WREATH_EMISMATCH, "WREATH_ALGO", 0,
		 NULL},
		{2, "WREATH_CHANNELS", "2", WREATH_EMISMATCH,
		 "WREATH_CHANNELS", 0, NULL},
		{0, "WREATH_SLOTS", "8", WREATH_EMISMATCH, "WREATH_SLOTS", 0,
		 NULL},
		{1, "WREATH_SLOT_BYTES", "8192", WREATH_EMISMATCH,
		 "WREATH_SLOT_BYTES", 0, NULL},
		{1, "WREATH_ARRIVAL", "completion", WREATH_EMISMATCH,
		 "WREATH_ARRIVAL", 0, NULL},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(odds) / sizeof(odds[0]); i++)
		expect_odd(&odds[i], 3);
}

static void another_way_of_connecting_is_named(void **state)
{
	const char *all = getenv("RANKS_ENV");
	const struct odd odd = {
		1, "WREATH_CONNECT",
		all && strstr(all, "WREATH_CONNECT=cm") ? "exchange" : "cm",
		WREATH_EMISMATCH, "WREATH_CONNECT", 0, NULL};

	(void)state;
	expect_odd(&odd, 3);
}

static void a_device_that_is_not_there_is_named(void **state)
{
	static const struct odd odds[] = {
		{1, "WREATH_HCA", "mlx5_0", WREATH_EINVAL,
		 "WREATH_HCA=mlx5_0: there is no such device; there are: "
		 "soft0", 0, NULL},
		{0, "WREATH_HCA", "soft0:7", WREATH_EINVAL, "7", 0, NULL},
		{2, "WREATH_HCA", "soft0:x", WREATH_EINVAL,
		 "WREATH_HCA='soft0:x'", 0, NULL},
		{1, "WREATH_SOFT", "token:1", WREATH_EINVAL, "token", 0, NULL},
		{1, "WREATH_SOFT_FAULTS", "meteor=1", WREATH_EINVAL, "meteor",
		 0, NULL},
		{0, "WREATH_SOFT_FAULTS", "port_down=0", WREATH_EDEVICE,
		 "active", 0, NULL},
		{1, "WREATH_SOFT", "ib:1", WREATH_ENET, "InfiniBand", 0, NULL},
	};
	size_t i;

	(void)state;
	ranks_set("WREATH_SOFT", "roce:1");
	/* A port that is down is waited for, for a twelfth of it. */
	ranks_set("WREATH_JOIN_TIMEOUT", "6s");
	for (i = 0; i < sizeof(odds) / sizeof(odds[0]); i++)
		expect_odd(&odds[i], 3);
}

static void a_port_that_is_down_is_named_by_all(void **state)
{
	static const struct odd odds[] = {
		{0, "WREATH_HCA", "soft0:1", WREATH_EDEVICE, "active", 0, NULL},
		{0, "WREATH_SPIN", "0", WREATH_EDEVICE, "active", 0, NULL},
	};
	size_t i;

	(void)state;
	ranks_set("WREATH_SOFT_FAULTS", "port_down=0");
	ranks_set("WREATH_JOIN_TIMEOUT", "6s");
	for (i = 0; i < sizeof(odds) / sizeof(odds[0]); i++)
		expect_odd(&odds[i], 2);
}

/* ---- ports ---- */

static void a_port_that_comes_up_late_is_waited_for(void **state)
{
	/* The wait is 0.5 s, and the port is there after half of that. */
	static const struct odd odd = {1, "WREATH_SOFT_FAULTS",
				       "port_down=0:250", 0, "", 0, NULL};

	(void)state;
	ranks_set("WREATH_SOFT", "roce:1");
	ranks_set("WREATH_JOIN_TIMEOUT", "6s");
	expect_odd(&odd, 3);
}

static void the_port_that_both_have_is_chosen(void **state)
{
	static const struct odd odds[] = {
		{1, "WREATH_SOFT", "ib:1", 0, "", 0, NULL},
		{0, "WREATH_SOFT", "roce:1", 0, "", 0, NULL},
		{2, "WREATH_SOFT", "ib:1,roce:1", 0, "", 0, NULL},
		{1, "WREATH_HCA", "soft1", 0, "", 0, NULL},
		{2, "WREATH_HCA", "soft2,soft1", 0, "", 0, NULL},
	};
	size_t i;

	(void)state;
	ranks_set("WREATH_SOFT", "roce:2,ib:1");
	for (i = 0; i < sizeof(odds) / sizeof(odds[0]); i++)
		expect_odd(&odds[i], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_difference_in_settings_is_named,
					  ranks_clean),
		cmocka_unit_test_teardown(another_way_of_connecting_is_named,
					  ranks_clean),
		cmocka_unit_test_teardown(a_device_that_is_not_there_is_named,
					  ranks_clean),
		cmocka_unit_test_teardown(
			a_port_that_comes_up_late_is_waited_for, ranks_clean),
		cmocka_unit_test_teardown(the_port_that_both_have_is_chosen,
					  ranks_clean),
		cmocka_unit_test_teardown(a_port_that_is_down_is_named_by_all,
					  ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
