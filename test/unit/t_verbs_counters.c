/* SPDX-License-Identifier: MIT */
/*
 * Goal: of a port's counters those that tell of trouble are read, and what
 * they have grown by is told; nothing that lies in the folders does harm.
 * Method: folders made by hand.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "verbs/verbs.h"

static char top[64];

static void in(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make(void **state)
{
	char path[128];

	(void)state;
	snprintf(top, sizeof(top), "/tmp/wreath-counters-XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(path, sizeof(path), "%s/counters", top);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/hw_counters", top);
	assert_int_equal(mkdir(path, 0700), 0);
	return 0;
}

static int clean(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", top);
	assert_int_equal(system(command), 0);
	return 0;
}

static void growth_is_told_by_name(void **state)
{
	struct verbs_counters before, after;
	char text[200];

	(void)state;
	in("counters/port_rcv_errors", "5\n");
	in("counters/port_rcv_data", "123456\n");
	in("hw_counters/local_ack_timeout_err", "0\n");
	in("hw_counters/out_of_sequence", "7\n");
	in("hw_counters/lifespan", "12\n");
	verbs_counters_read(top, &before);
	assert_int_equal(before.n, 3);
	verbs_counters_text(&before, &before, text, sizeof(text));
	assert_string_equal(text, "");
	in("counters/port_rcv_data", "999999\n");
	in("hw_counters/local_ack_timeout_err", "3\n");
	in("hw_counters/out_of_sequence", "2\n");
	in("hw_counters/duplicate_request", "4\n");
	verbs_counters_read(top, &after);
	verbs_counters_text(&before, &after, text, sizeof(text));
	assert_non_null(strstr(text, "local_ack_timeout_err 3"));
	/* A file that was not there counted nothing. */
	assert_non_null(strstr(text, "duplicate_request 4"));
	assert_null(strstr(text, "port_rcv"));
	assert_null(strstr(text, "out_of_sequence"));
}

static void what_is_no_number_is_left_out(void **state)
{
	struct verbs_counters counters;
	char path[128];

	(void)state;
	in("hw_counters/port_err", "many\n");
	in("hw_counters/link_err", "");
	in("hw_counters/a_name_much_longer_than_any_counter_of_a_device_err",
	   "1\n");
	in("hw_counters/big_err", "99999999999999999999999999\n");
	snprintf(path, sizeof(path), "%s/hw_counters/folder_err", top);
	assert_int_equal(mkdir(path, 0700), 0);
	verbs_counters_read(top, &counters);
	assert_int_equal(counters.n, 0);
	verbs_counters_read("/nowhere", &counters);
	assert_int_equal(counters.n, 0);
	verbs_counters("../../../../etc", 1, &counters);
	assert_int_equal(counters.n, 0);
	verbs_counters("", 1, &counters);
	assert_int_equal(counters.n, 0);
}

static void many_fill_no_more_than_there_is_room(void **state)
{
	struct verbs_counters none = {.n = 0}, counters;
	char name[64], text[40];
	int i;

	(void)state;
	for (i = 0; i < VERBS_COUNTERS_MAX + 10; i++) {
		snprintf(name, sizeof(name), "hw_counters/err_%d", i);
		in(name, "1\n");
	}
	verbs_counters_read(top, &counters);
	assert_int_equal(counters.n, VERBS_COUNTERS_MAX);
	verbs_counters_text(&none, &counters, text, sizeof(text));
	assert_int_equal(strlen(text), sizeof(text) - 1);
	assert_string_equal(text + sizeof(text) - 4, "...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(growth_is_told_by_name, make,
						clean),
		cmocka_unit_test_setup_teardown(what_is_no_number_is_left_out,
						make, clean),
		cmocka_unit_test_setup_teardown(
			many_fill_no_more_than_there_is_room, make, clean),
	};

	alarm(30);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
