/* SPDX-License-Identifier: MIT */
/*
 * Goal: a tuning file says what it says, or is refused at the place where it
 * is wrong.
 * Method: whole files by hand; every prefix and many damaged copies of one, of
 * which none may crash; the choice that follows.
 */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>

#include "sched_kit.h"

static const char sample[] =
	"# for the machines of hall 3\n"
	"all_reduce ranks 8 nodes 2 bytes 64K-1M algo split-ring channels 2\n"
	"\n"
	"any bytes 1M- algo ring # the rest\n"
	"latency rail 0 5us\n"
	"latency node 200ns\n"
	"bandwidth rail 1 10G\n"
	"fold 40GB\n"
	"wait 1.5us";

static void accepted(const char *text, struct sched_tuning *tuning)
{
	if (sched_tuning_parse("f", text, tuning))
		fail_msg("'%s': %s", text, base_error_text());
}

/* Refused, with @why in the text. */
static void refused(const char *text, const char *why)
{
	struct sched_tuning tuning;

	assert_int_equal(sched_tuning_parse("f", text, &tuning),
			 WREATH_EINVAL);
	if (!strstr(base_error_text(), why))
		fail_msg("'%s' is refused by '%s', not by '%s'", text,
			 base_error_text(), why);
}

static void near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9 * fabs(b)))
		fail_msg("%.12g is not %.12g", a, b);
}

static void a_file_is_read_line_by_line(void **state)
{
	struct sched_tuning tuning;
	struct sched_cost cost;

	(void)state;
	accepted(sample, &tuning);
	assert_int_equal(tuning.n_rules, 2);
	assert_int_equal(tuning.rules[0].collective, SCHED_ALL_REDUCE);
	assert_int_equal(tuning.rules[0].algo, SCHED_SPLIT_RING);
	assert_int_equal(tuning.rules[0].n_channels, 2);
	assert_int_equal(tuning.rules[0].ranks_min, 8);
	assert_int_equal(tuning.rules[0].ranks_max, 8);
	assert_int_equal(tuning.rules[0].nodes_max, 2);
	assert_int_equal(tuning.rules[0].bytes_min, 64 << 10);
	assert_int_equal(tuning.rules[0].bytes_max, 1 << 20);
	assert_int_equal(tuning.rules[1].collective, -1);
	assert_true(tuning.rules[1].bytes_max == UINT64_MAX);
	assert_int_equal(tuning.rules[1].ranks_min, 1);

	sched_cost_default(&cost, 2, 2);
	sched_tuning_apply(&tuning, &cost);
	near(cost.tiers[1].latency, 5e-6);
	near(cost.tiers[0].latency, 200e-9);
	near(cost.tiers[2].bandwidth, 10e9 / 8);
	near(cost.fold, 40e9);
	near(cost.wait, 1.5e-6);
}

static void an_error_has_its_place(void **state)
{
	(void)state;
	refused("al_reduce algo ring", "f:1:1: 'al_reduce' is no "
				       "collective or parameter; did you mean "
				       "all_reduce?");
	refused("\n# x\n  all_reduce algo rnig", "f:3:19: 'rnig' is "
						 "no algorithm; did you mean "
						 "ring?");
	refused("all_reduce rank 8 algo ring", "f:1:12: 'rank' is no key; "
					       "did you mean ranks?");
	refused("all_reduce colour 8 algo ring", "one of: ranks nodes");
	refused("all_reduce ranks 8", "needs an algo");
	refused("all_reduce ranks 0 algo ring", "f:1:18: ranks '0' is not");
	refused("all_reduce ranks 8-4 algo ring", "ranks '8-4' is not");
	refused("all_reduce ranks 99999 algo ring", "from 1 to 16384");
	refused("all_reduce ranks", "ranks needs a value");
	refused("all_reduce ranks 2 ranks 3 algo ring", "ranks is given twice");
	refused("all_reduce bytes 64X algo ring", "bytes '64X' is not a size");
	refused("all_reduce bytes -1 algo ring", "bytes '-1' is not a size");
	refused("all_reduce algo ring channels 5", "channels '5' is not a "
						   "number from 1 to 4");
	refused("all_reduce algo ring channels 1-2", "channels '1-2'");
	refused("latency 5us", "'5us' is no place");
	refused("latency rail 4 5us", "rail '4' is not a number from 0 to 3");
	refused("latency rail 0 5", "latency '5' is not a time");
	refused("latency node -5us", "latency '-5us' is not a time");
	refused("latency node nan", "latency 'nan' is not a time");
	refused("latency node 0x5us", "is not a time");
	refused("bandwidth node 0G", "bandwidth '0G' is not a rate");
	refused("bandwidth node 5", "bandwidth '5' is not a rate");
	refused("bandwidth node 1e999G", "is not a rate");
	refused("fold 1GB more", "'more' is more than fold takes");
	refused("fold 1GB\nfold 2GB", "f:2:6: fold is given twice");
	refused("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"is no collective or parameter");
	refused("any ranks 000000000000000000000000000000008 algo ring",
		"has more than 32 characters");
}

static void too_many_rules_are_refused(void **state)
{
	static char text[(SCHED_RULES_MAX + 1) * 16 + 1];
	struct sched_tuning tuning;
	int i;

	(void)state;
	for (i = 0; i < SCHED_RULES_MAX; i++)
		memcpy(text + i * 14, "any algo ring\n", 14);
	accepted(text, &tuning);
	assert_int_equal(tuning.n_rules, SCHED_RULES_MAX);
	memcpy(text + i * 14, "any algo ring\n", 14);
	refused(text, "f:65:14: there are more than 64 rules");
}

static void files_that_differ_have_other_hashes(void **state)
{
	struct sched_tuning a, b;

	(void)state;
	accepted("any algo ring", &a);
	accepted("any algo tree", &b);
	assert_true(a.hash != b.hash);
	accepted("any algo ring", &b);
	assert_true(a.hash == b.hash);
	accepted("", &b);
	assert_true(b.hash != 0);
}

/* Accepted or refused, but read to its end, and no further. */
static void damage_is_survived(void **state)
{
	uint64_t seed = kit_seed();
	struct sched_tuning tuning;
	char text[sizeof(sample)];
	size_t i;

	(void)state;
	base_log_level_set(BASE_LOG_OFF);
	for (i = 0; i < sizeof(sample); i++) {
		memcpy(text, sample, sizeof(sample));
		text[i] = 0;
		sched_tuning_parse("f", text, &tuning);
	}
	for (i = 0; i < 20000; i++) {
		int n = 1 + (int)kit_below(&seed, 4);

		memcpy(text, sample, sizeof(sample));
		while (n--)
			text[kit_below(&seed, sizeof(sample) - 1)] =
				(char)kit_below(&seed, 256);
		sched_tuning_parse("f", text, &tuning);
		assert_true(tuning.n_rules <= SCHED_RULES_MAX);
	}
}

/* The first rule that fits stands above all, where its algorithm has a form. */
static void a_rule_overrides_the_choice(void **state)
{
	struct sched_shape shape = {.collective = SCHED_ALL_REDUCE,
				    .n_ranks = 4, .n_channels = 1};
	struct sched_chooser chooser;
	struct sched_tuning tuning;
	struct sched_cost cost;
	const struct sched_span *span;

	(void)state;
	sched_cost_default(&cost, 4, 4);
	cost.is_plain = true;
	accepted("all_reduce ranks 4 bytes 100-200 algo ring channels 2\n"
		 "all_reduce ranks 5 algo ring\n"
		 "all_reduce bytes 100- algo direct\n"
		 "broadcast algo ring\n", &tuning);
	assert_int_equal(sched_chooser_init(&chooser, &shape, &cost, &tuning,
					    0), 0);
	span = sched_chooser_find(&chooser, 150);
	assert_int_equal(span->algo, SCHED_RING);
	assert_int_equal(span->n_channels, 2);
	assert_int_equal(sched_chooser_find(&chooser, 100)->algo, SCHED_RING);
	assert_int_equal(sched_chooser_find(&chooser, 200)->algo, SCHED_RING);
	assert_int_equal(sched_chooser_find(&chooser, 99)->algo,
			 SCHED_ONESHOT);
	assert_int_equal(sched_chooser_find(&chooser, 201)->algo,
			 SCHED_ONESHOT);
	assert_int_equal(sched_chooser_find(&chooser, 201)->n_channels, 0);
	assert_int_equal(sched_chooser_find(&chooser, 1 << 20)->algo,
			 SCHED_TWOSHOT);
}

static void rates_and_times_have_units(void **state)
{
	double value;

	(void)state;
	assert_true(sched_parse_rate("400G", &value));
	near(value, 50e9);
	assert_true(sched_parse_rate("400Gbit", &value));
	near(value, 50e9);
	assert_true(sched_parse_rate("900GB", &value));
	near(value, 900e9);
	assert_true(sched_parse_rate("1.6T", &value));
	near(value, 200e9);
	assert_false(sched_parse_rate("400", &value));
	assert_false(sched_parse_rate("400Q", &value));
	assert_false(sched_parse_rate("", &value));
	assert_false(sched_parse_rate("infG", &value));
	assert_false(sched_parse_rate("1.2.3G", &value));
	assert_false(sched_parse_rate("1,5G", &value));
	assert_true(sched_parse_time("2.5us", &value));
	near(value, 2.5e-6);
	assert_true(sched_parse_time("0ns", &value));
	assert_false(sched_parse_time("5", &value));
	assert_false(sched_parse_time(" 5us", &value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_line_by_line),
		cmocka_unit_test(an_error_has_its_place),
		cmocka_unit_test(too_many_rules_are_refused),
		cmocka_unit_test(files_that_differ_have_other_hashes),
		cmocka_unit_test(damage_is_survived),
		cmocka_unit_test(a_rule_overrides_the_choice),
		cmocka_unit_test(rates_and_times_have_units),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
