/* SPDX-License-Identifier: MIT */
/*
 * Goal: whatever fails in the device of one rank, every rank returns an error
 * that names the fault, in time and without a wrong result; what the device
 * gets over is not seen at all.
 * Method: one rank's device injects a fault at its n-th call while all ranks
 * work off seeded trials; each fault must have happened.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/loop/trial.h"

#define BOUND (RANKS_SLOW ? 20.0 : 6.0)

struct fault {
	const char *clause;
	const char *word; /* of every rank's text, beside the rank's name */
};

struct plan {
	const char *clause;
	int victim;
	uint64_t seed;
	int n_trials;
};

static int work(struct rank *rank)
{
	const struct plan *plan = rank->arg;
	struct trials trials;
	int err;
	int i;

	if (rank->rank == plan->victim)
		ranks_set("WREATH_SOFT_FAULTS", plan->clause);
	err = rank_join(rank, &rank->comm);
	trials_init(&trials, rank, plan->seed);
	for (i = 0; i < plan->n_trials && !err; i++) {
		struct trial trial;

		trial_draw(&trials, rank,
			   trial_count(&trials.state, 64 << 10), &trial);
		err = trial_run(rank, &trials, &trial);
		if (err && err != RANKS_BROKEN) {
			/* The text outlives what is freed now. */
			err = rank_broken(rank, "%s: %s",
					  wreath_error_name(err),
					  wreath_error_text());
			rank_result(rank)->values[1] = 1;
			trial_drop(&trial);
			return err;
		}
	}
	trials_tell(&trials, rank);
	/* The end is a call like others: what fails there is told, too. */
	if (!err)
		err = wreath_comm_finalize(rank->comm);
	if (err && err != RANKS_BROKEN) {
		err = rank_broken(rank, "%s: %s", wreath_error_name(err),
				  wreath_error_text());
		rank_result(rank)->values[1] = 1;
	}
	return err;
}

static struct ranks start(const struct plan *plan, int n)
{
	struct ranks run = {.n = n,
			    .body = work,
			    .arg = plan,
			    .no_comm = true,
			    .seconds = RANKS_SLOW ? 100 : 40};

	return run;
}

/* Every rank must fail by the library's own word. */
static void expect_failure(const struct plan *plan, int n, const char *word)
{
	struct ranks run = start(plan, n);
	char name[16];
	int i;

	snprintf(name, sizeof(name), "rank %d ", plan->victim);
	ranks_start(&run);
	ranks_join(&run);
	printf("%s on rank %d of %d: %s\n", plan->clause, plan->victim, n,
	       run.shared->results[0].text);
	for (i = 0; i < n; i++) {
		ranks_expect(&run, i, RANKS_BROKEN, word);
		ranks_expect(&run, i, RANKS_BROKEN, name);
		if (run.shared->results[i].values[1] != 1)
			fail_msg("rank %d did not fail but: %s", i,
				 run.shared->results[i].text);
		if (run.shared->results[i].seconds > BOUND)
			fail_msg("rank %d took %.1f s", i,
				 run.shared->results[i].seconds);
	}
	ranks_end(&run);
}

static void every_fault_is_told_on_every_rank(void **state)
{
	static const struct fault faults[] = {
		{"fail_reg=1", "register"},
		{"fail_reg=2", "register"},
		{"fail_reg=3", "register"},
		{"fail_cq=1", "completion queue"},
		{"fail_recv=5", "receive"},
		{"fail_recv=70", "receive"},
		{"fail_post=2", "cannot post"},
		{"fail_post=3", "cannot post"},
		{"fail_post=77", "cannot post"},
		{"status=RETRY_EXC_ERR@20", "RETRY_EXC_ERR"},
		{"status=REM_ACCESS_ERR@9", "REM_ACCESS_ERR"},
		{"status=LOC_PROT_ERR@60", "LOC_PROT_ERR"},
		{"status=RNR_RETRY_EXC_ERR@33", "RNR_RETRY_EXC_ERR"},
		{"status=REM_INV_REQ_ERR@12", "REM_INV_REQ_ERR"},
		{"status=FATAL_ERR@3", "FATAL_ERR"},
		{"qp_error=30", "IBV_WC_"},
		{"device_gone=0", "soft0"},
		{"device_gone=50", "IBV_WC_"},
		{"memlock=100000", "MEMLOCK"},
	};
	uint64_t seed = ranks_seed();
	size_t i;

	(void)state;
	ranks_set("WREATH_QP_TIMEOUT", "500ms");
	ranks_set("WREATH_TIMEOUT", "2s");
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		int n = 2 + (int)(i % 3);
		struct plan plan = {.clause = faults[i].clause,
				    .victim = (int)(i % (size_t)n),
				    .seed = ranks_random(&seed),
				    .n_trials = 300};

		expect_failure(&plan, n, faults[i].word);
	}
}

static void a_port_that_stays_down_is_told(void **state)
{
	struct plan plan = {.clause = "port_down=100",
			    .victim = 1,
			    .seed = ranks_seed(),
			    .n_trials = 100000};

	(void)state;
	ranks_set("WREATH_QP_TIMEOUT", "500ms");
	ranks_set("WREATH_TIMEOUT", "3s");
	expect_failure(&plan, 3, "rank ");
}

static void what_the_device_gets_over_is_not_seen(void **state)
{
	static const struct {
		const char *clause, *arrival;
	} rows[] = {
		{"port_down=30:100", "completion"},
		{"port_down=30:100", "auto"},
		{"delay=300", "auto"},
		{"gid_change=0", "auto"},
		{"bounce=always", "auto"},
		{"fail_qp=1", "auto"},
	};
	uint64_t seed = ranks_seed();
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct plan plan = {.clause = rows[i].clause,
				    .victim = (int)(i % 3),
				    .seed = ranks_random(&seed),
				    .n_trials = i == 1 ? 40 : 200};
		struct ranks run = start(&plan, 3);

		ranks_set("WREATH_ARRIVAL", rows[i].arrival);
		printf("%s\n", rows[i].clause);
		ranks_start(&run);
		ranks_join(&run);
		ranks_expect_ok(&run);
		trials_expect_same(&run);
		ranks_end(&run);
	}
}

/* The n-th allocation of the library fails, for growing n, until none does. */
static void memory_that_runs_out_is_told(void **state)
{
	uint64_t seed = ranks_seed();
	int n_ok = 0;
	int at;

	(void)state;
	ranks_set("WREATH_TIMEOUT", "3s");
	for (at = 1; at < 400 && n_ok < 2; at += 1 + at / 8) {
		char clause[32];
		struct plan plan = {.clause = clause,
				    .victim = at % 2,
				    .seed = ranks_random(&seed),
				    .n_trials = 20};
		struct ranks run = start(&plan, 2);
		int i;

		snprintf(clause, sizeof(clause), "fail_alloc=%d", at);
		ranks_start(&run);
		ranks_join(&run);
		printf("%s: %s\n", clause, run.shared->results[0].text);
		if (!run.shared->results[0].code) {
			ranks_expect_ok(&run);
			n_ok++;
		}
		for (i = 0; i < 2; i++) {
			const struct rank_result *result =
				&run.shared->results[i];

			if (!result->code && !result->wait_status)
				continue;
			ranks_expect(&run, i, RANKS_BROKEN, "");
			assert_int_equal(result->values[1], 1);
			assert_true(result->seconds < BOUND);
		}
		ranks_end(&run);
	}
	assert_int_equal(n_ok, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_fault_is_told_on_every_rank,
					  ranks_clean),
		cmocka_unit_test_teardown(a_port_that_stays_down_is_told,
					  ranks_clean),
		cmocka_unit_test_teardown(
			what_the_device_gets_over_is_not_seen, ranks_clean),
		cmocka_unit_test_teardown(memory_that_runs_out_is_told,
					  ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
