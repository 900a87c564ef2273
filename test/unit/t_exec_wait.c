/* SPDX-License-Identifier: MIT */
/*
 * Goal: a signature reads as the call that it stands for, whatever it holds,
 * and a plan that no fold can run is refused.
 * Method: signatures by hand, out of range too; a one-shot of too many ranks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/exec.h"

static void a_signature_reads_as_its_call(void **state)
{
	struct net_sign sign = {
		.seq = 7,
		.count = 4,
		.type = WREATH_FLOAT32,
		.op = WREATH_SUM,
		.algo = SCHED_RING,
	};
	char text[128];

	(void)state;
	exec_sign_text(&sign, text, sizeof(text));
	assert_string_equal(text, "all_reduce(count 4, float32, sum) by ring");
	sign.collective = SCHED_N_COLLECTIVES;
	exec_sign_text(&sign, text, sizeof(text));
	assert_string_equal(text, "the end of the communicator");
}

static void a_signature_of_rubbish_is_text_all_the_same(void **state)
{
	struct net_sign sign;
	char text[16];

	(void)state;
	memset(&sign, 0xee, sizeof(sign));
	exec_sign_text(&sign, text, sizeof(text));
	assert_true(strlen(text) < sizeof(text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signature_reads_as_its_call),
		cmocka_unit_test(a_signature_of_rubbish_is_text_all_the_same),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
