/* SPDX-License-Identifier: MIT */
/*
 * Goal: settings are read strictly, and a bad one is named.
 * Method: set variables in this process, load, and look at values and texts.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static struct base_env env;

static int clear(void **state)
{
	const struct base_env_var *table = base_env_table();
	size_t i;

	(void)state;
	for (i = 0; i < BASE_N_ENV; i++)
		unsetenv(table[i].name);
	setenv("WREATH_LOG", "off", 1);
	return 0;
}

static void defaults_are_valid_and_in_order(void **state)
{
	const struct base_env_var *table = base_env_table();
	size_t i;

	(void)state;
	assert_int_equal(base_env_load(&env), 0);
	assert_int_equal(env.value[BASE_ENV_TIMEOUT], 30000);
	assert_int_equal(env.value[BASE_ENV_ALGO], 0);
	assert_false(env.is_set[BASE_ENV_TIMEOUT]);
	for (i = 0; i < BASE_N_ENV; i++) {
		assert_non_null(table[i].name);
		assert_true(strlen(table[i].help) > 10);
		if (i)
			assert_true(strcmp(table[i - 1].name,
					   table[i].name) < 0);
	}
}

static void good_values_are_read(void **state)
{
	(void)state;
	setenv("WREATH_TIMEOUT", "500ms", 1);
	setenv("WREATH_SLOT_BYTES", "16K", 1);
	setenv("WREATH_ALGO", "twoshot", 1);
	setenv("WREATH_SPIN", "-1", 1);
	setenv("WREATH_HCA", "mlx5_0:1", 1);
	assert_int_equal(base_env_load(&env), 0);
	assert_int_equal(env.value[BASE_ENV_TIMEOUT], 500);
	assert_int_equal(env.value[BASE_ENV_SLOT_BYTES], 16384);
	assert_int_equal(env.value[BASE_ENV_ALGO], 3);
	assert_int_equal(env.value[BASE_ENV_SPIN], -1);
	assert_string_equal(env.text[BASE_ENV_HCA], "mlx5_0:1");
	assert_true(env.is_set[BASE_ENV_HCA]);
}

static void bad_values_are_refused_by_name_and_range(void **state)
{
	static const struct {
		const char *name, *value, *range;
	} rows[] = {
		{"WREATH_TIMEOUT", "abc", "500ms"},
		{"WREATH_TIMEOUT", "-1", "500ms"},
		{"WREATH_TIMEOUT", "1e9", "500ms"},
		{"WREATH_TIMEOUT", "99999999999999999999", "500ms"},
		{"WREATH_TIMEOUT", "", "500ms"},
		{"WREATH_TIMEOUT", "30 s", "500ms"},
		{"WREATH_SLOTS", "1", "from 2 to 8"},
		{"WREATH_SLOTS", "9", "from 2 to 8"},
		{"WREATH_SLOTS", "4k ", "from 2 to 8"},
		{"WREATH_SLOTS", " 4", "from 2 to 8"},
		{"WREATH_SLOTS", "+4", "from 2 to 8"},
		{"WREATH_SLOT_BYTES", "2M", "1048576"},
		{"WREATH_SLOT_BYTES", "16X", "1048576"},
		{"WREATH_SLOT_BYTES", "99999999999G", "1048576"},
		{"WREATH_ALGO", "rings", "auto ring oneshot twoshot"},
		{"WREATH_ALGO", "rin", "auto ring oneshot twoshot"},
		{"WREATH_ALGO", "", "auto ring oneshot twoshot"},
	};
	size_t i;

	for (i = 0; i < base_countof(rows); i++) {
		clear(state);
		setenv(rows[i].name, rows[i].value, 1);
		assert_int_equal(base_env_load(&env), WREATH_EINVAL);
		assert_non_null(strstr(wreath_error_text(), rows[i].name));
		assert_non_null(strstr(wreath_error_text(), rows[i].value));
		assert_non_null(strstr(wreath_error_text(), rows[i].range));
	}
}

static void a_long_value_is_refused_and_cut_in_the_text(void **state)
{
	static char value[10240];

	(void)state;
	memset(value, 'x', sizeof(value) - 1);
	setenv("WREATH_HCA", value, 1);
	assert_int_equal(base_env_load(&env), WREATH_EINVAL);
	assert_true(strlen(wreath_error_text()) < 200);
	setenv("WREATH_ALGO", value, 1);
	assert_int_equal(base_env_load(&env), WREATH_EINVAL);
	assert_true(strlen(wreath_error_text()) < 200);
}

static void sizes_and_durations_do_not_overflow(void **state)
{
	uint64_t bytes;
	int64_t ms;

	(void)state;
	assert_true(base_parse_size("15K", &bytes));
	assert_int_equal(bytes, 15 << 10);
	assert_true(base_parse_size("2g", &bytes));
	assert_int_equal(bytes, 2ull << 30);
	assert_false(base_parse_size("18014398509481985K", &bytes));
	assert_false(base_parse_size("1KB", &bytes));
	assert_false(base_parse_size("K", &bytes));
	assert_true(base_parse_duration("2m", &ms));
	assert_int_equal(ms, 120000);
	assert_false(base_parse_duration("9223372036854775807m", &ms));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(defaults_are_valid_and_in_order, clear),
		cmocka_unit_test_setup(good_values_are_read, clear),
		cmocka_unit_test_setup(bad_values_are_refused_by_name_and_range,
				       clear),
		cmocka_unit_test_setup(
			a_long_value_is_refused_and_cut_in_the_text, clear),
		cmocka_unit_test(sizes_and_durations_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
