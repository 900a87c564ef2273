/* SPDX-License-Identifier: MIT */
/*
 * Goal: no setting changes a result: algorithms, channels, ways of arrival,
 * kinds of device, numbers and sizes of slots, and a device that reorders
 * whatever it may.
 * Method: the same seeded trials under each row of settings, checked against
 * the model; then under settings drawn by chance.
 */
#include <stdio.h>

#include "test/loop/trial.h"

struct setting {
	const char *name, *value;
};

#define N_SETTINGS 4

struct row {
	struct setting settings[N_SETTINGS];
};

static const struct row rows[] = {
	{{{"WREATH_ALGO", "ring"}}},
	{{{"WREATH_ALGO", "ring"}, {"WREATH_CHANNELS", "2"}}},
	{{{"WREATH_ALGO", "oneshot"}}},
	{{{"WREATH_ALGO", "oneshot"}, {"WREATH_CHANNELS", "3"}}},
	{{{"WREATH_ALGO", "twoshot"}}},
	{{{"WREATH_ALGO", "twoshot"}, {"WREATH_CHANNELS", "2"}}},
	{{{"WREATH_ALGO", "auto"}, {"WREATH_CHANNELS", "3"}}},
	{{{"WREATH_ARRIVAL", "completion"}}},
	{{{"WREATH_ARRIVAL", "completion"},
	  {"WREATH_ALGO", "ring"},
	  {"WREATH_CHANNELS", "2"}}},
	/* A soft device is connected by the exchange all the same. */
	{{{"WREATH_CONNECT", "cm"}}},
	{{{"WREATH_SOFT", "ib:1"}}},
	{{{"WREATH_SOFT", "ib:1"}, {"WREATH_ARRIVAL", "completion"}}},
	{{{"WREATH_SOFT", "roce:2,ib:1"}, {"WREATH_HCA", "soft1:1"}}},
	{{{"WREATH_SLOT_BYTES", "4096"}, {"WREATH_SLOTS", "2"}}},
	{{{"WREATH_SLOT_BYTES", "4096"},
	  {"WREATH_SLOTS", "2"},
	  {"WREATH_ALGO", "ring"}}},
	{{{"WREATH_SLOT_BYTES", "4096"},
	  {"WREATH_SLOTS", "2"},
	  {"WREATH_ARRIVAL", "completion"}}},
	{{{"WREATH_SLOTS", "8"}}},
	{{{"WREATH_SPIN", "0"}}},
	{{{"WREATH_SOFT_FAULTS", "promise=none"}}},
	{{{"WREATH_SOFT_FAULTS", "bounce=always"}}},
	{{{"WREATH_SOFT_FAULTS", "promise=none,bounce=always"}}},
	{{{"WREATH_SOFT_FAULTS", "delay=50"}}},
	{{{"WREATH_SPIN", "20000"}}},
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static void run_row(const struct row *row, const struct trials_plan *plan,
		    int n, enum ranks_mode mode)
{
	struct ranks run = {
		.n = n, .mode = mode, .body = trials_body, .arg = plan,
		.seconds = RANKS_SLOW ? 200 : 60};
	size_t i;

	for (i = 0; i < N_SETTINGS && row->settings[i].name; i++) {
		ranks_set(row->settings[i].name, row->settings[i].value);
		printf("%s=%s ", row->settings[i].name,
		       row->settings[i].value);
	}
	printf("with %d %s\n", n,
	       mode == RANKS_THREADS ? "threads" : "processes");
	ranks_start(&run);
	ranks_join(&run);
	ranks_expect_ok(&run);
	trials_expect_same(&run);
	ranks_end(&run);
	ranks_clean(NULL);
}

static void no_setting_changes_a_result(void **state)
{
	const struct trials_plan plan = {
		.seed = ranks_seed(),
		.bytes = 512 << 10,
		.n_trials = RANKS_SLOW ? 12 : 60,
	};
	size_t i;

	(void)state;
	for (i = 0; i < N_ROWS; i++) {
		run_row(&rows[i], &plan, 2 + (int)(i % 3),
			i % 2 ? RANKS_THREADS : RANKS_PROCESSES);
	}
}

static void settings_go_together(void **state)
{
	static const struct {
		const char *name;
		const char *values[5];
		unsigned int n;
	} knobs[] = {
		{"WREATH_ALGO", {"auto", "ring", "oneshot", "twoshot"}, 4},
		{"WREATH_ARRIVAL", {"auto", "completion"}, 2},
		{"WREATH_CHANNELS", {"1", "2", "3", "4"}, 4},
		{"WREATH_SLOTS", {"2", "3", "5", "8"}, 4},
		{"WREATH_SLOT_BYTES", {"0", "4096", "8K", "100000"}, 4},
		{"WREATH_SOFT", {"roce:1", "ib:1", "ib:2,roce:1"}, 3},
		{"WREATH_SPIN", {"-1", "0", "1"}, 3},
	};
	uint64_t seed = ranks_seed();
	struct trials_plan plan = {.bytes = 512 << 10,
			    .n_trials = RANKS_SLOW ? 10 : 40};
	int i;
	size_t k;

	(void)state;
	for (i = 0; i < RANKS_TIMES(4, 16, 150); i++) {
		struct row none = {{{NULL, NULL}}};

		for (k = 0; k < sizeof(knobs) / sizeof(knobs[0]); k++) {
			const char *value =
				knobs[k].values[ranks_random(&seed) %
						knobs[k].n];

			ranks_set(knobs[k].name, value);
			printf("%s=%s ", knobs[k].name, value);
		}
		plan.seed = ranks_random(&seed);
		run_row(&none, &plan, (int)ranks_between(&seed, 2, 6),
			i % 2 ? RANKS_PROCESSES : RANKS_THREADS);
	}
}

static void chaos_changes_no_result(void **state)
{
	uint64_t seed = ranks_seed();
	struct trials_plan plan = {.bytes = 256 << 10,
			    .n_trials = RANKS_SLOW ? 10 : 50};
	int i;

	(void)state;
	for (i = 0; i < RANKS_TIMES(3, 10, 300); i++) {
		static const struct row ways[] = {
			{{{NULL, NULL}}},
			{{{"WREATH_ALGO", "ring"}}},
			{{{"WREATH_ALGO", "twoshot"},
			  {"WREATH_CHANNELS", "2"}}},
		};
		char chaos[32];

		snprintf(chaos, sizeof(chaos), "chaos=%u",
			 (unsigned int)(ranks_random(&seed) >> 33));
		ranks_set("WREATH_SOFT_FAULTS", chaos);
		printf("WREATH_SOFT_FAULTS=%s ", chaos);
		plan.seed = ranks_random(&seed);
		run_row(&ways[i % 3], &plan, (int)ranks_between(&seed, 2, 4),
			i % 2 ? RANKS_THREADS : RANKS_PROCESSES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(no_setting_changes_a_result,
					  ranks_clean),
		cmocka_unit_test_teardown(settings_go_together, ranks_clean),
		cmocka_unit_test_teardown(chaos_changes_no_result,
					  ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
