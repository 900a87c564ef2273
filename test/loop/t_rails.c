/* SPDX-License-Identifier: MIT */
/*
 * Goal: with several ports a rank, and ranks that pretend to be nodes, results
 * are what they are with one; ranks whose ports differ use those that all have,
 * and say which they do not.
 * Method: seeded trials over an InfiniBand and a RoCE port at once, checked
 * against the model; what the library says of its ports, and logs.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/loop/trial.h"

/* Which ports there are can be told to the soft device only. */
static void need_soft(void)
{
	if (ranks_have_device())
		skip();
}

/* A run: what each rank has, and what becomes of it. */
struct fleet {
	struct trials_plan plan;
	const char *name;     /* a setting that differs, or NULL */
	const char *value[8]; /* of each rank; NULL: not set */
	const char *shown[2]; /* words of wreath_comm_device(), or NULL */
	const char *hidden;   /* one that it must not have, or NULL */
	const char *logged;   /* by rank 0, once, or NULL */
};

static int check_device(struct rank *rank, const struct fleet *fleet)
{
	const char *text = wreath_comm_device(rank->comm);
	int i;

	for (i = 0; i < 2; i++)
		if (fleet->shown[i] && !strstr(text, fleet->shown[i]))
			return rank_broken(rank, "no '%s' in '%s'",
					   fleet->shown[i], text);
	if (fleet->hidden && strstr(text, fleet->hidden))
		return rank_broken(rank, "'%s' in '%s'", fleet->hidden, text);
	return 0;
}

/* What was written to @fd: the sentence once from rank 0, and never else. */
static int check_log(struct rank *rank, const struct fleet *fleet, int fd)
{
	char text[4096];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	const char *at;

	text[n < 0 ? 0 : n] = 0;
	at = strstr(text, fleet->logged);
	if (!rank->rank != !!at || (at && strstr(at + 1, fleet->logged)))
		return rank_broken(rank, "the log has '%s'", text);
	return 0;
}

static int be_of_fleet(struct rank *rank)
{
	const struct fleet *fleet = rank->arg;
	const char *value = fleet->value[rank->rank];
	int fd = -1;
	int err;

	if (fleet->name && value)
		ranks_set(fleet->name, value);
	if (fleet->logged) {
		fd = memfd_create("log", MFD_CLOEXEC);
		dup2(fd, STDERR_FILENO);
	}
	err = rank_join(rank, &rank->comm);
	if (err)
		return err;
	rank->arg = &fleet->plan;
	err = check_device(rank, fleet);
	if (!err)
		err = trials_body(rank);
	if (!err && fleet->logged)
		err = check_log(rank, fleet, fd);
	return err;
}

static void run_fleet(struct fleet *fleet, int n, enum ranks_mode mode)
{
	struct ranks run = {.n = n,
			    .mode = mode,
			    .body = be_of_fleet,
			    .arg = fleet,
			    .no_comm = true,
			    .seconds = RANKS_SLOW ? 200 : 60};

	fleet->plan.seed = ranks_seed();
	fleet->plan.bytes = 512 << 10;
	fleet->plan.n_trials = RANKS_TIMES(8, 30, 200);
	ranks_start(&run);
	ranks_join(&run);
	ranks_expect_ok(&run);
	trials_expect_same(&run);
	ranks_end(&run);
}

static const char *const algos[] = {"ring",	  "auto", "twoshot", "tree",
				    "split-ring", "halving"};
#define N_ALGOS (sizeof(algos) / sizeof(algos[0]))

static void both_kinds_of_port_are_used_at_once(void **state)
{
	struct fleet fleet = {.shown = {"InfiniBand", "RoCEv2"}};
	size_t i;

	(void)state;
	need_soft();
	ranks_set("WREATH_SOFT", "ib:1,roce:1");
	for (i = 0; i < N_ALGOS; i++) {
		ranks_set("WREATH_ALGO", algos[i]);
		ranks_set("WREATH_ARRIVAL", i % 3 ? "auto" : "completion");
		run_fleet(&fleet, 2 + (int)i % 4,
			  i % 2 ? RANKS_THREADS : RANKS_PROCESSES);
	}
}

static void channels_are_dealt_out_to_rails(void **state)
{
	struct fleet one = {.shown = {"soft0:1"}, .hidden = "soft1:1"};
	struct fleet both = {.shown = {"soft0:1", "soft1:1"}};

	(void)state;
	need_soft();
	ranks_set("WREATH_ALGO", "ring");
	ranks_set("WREATH_SOFT", "roce:1,ib:1");
	ranks_set("WREATH_CHANNELS", "3");
	run_fleet(&both, 3, RANKS_PROCESSES);
	ranks_set("WREATH_CHANNELS", "4");
	run_fleet(&both, 3, RANKS_THREADS);
	ranks_set("WREATH_CHANNELS", "1");
	run_fleet(&one, 2, RANKS_PROCESSES);
	/* Ports of a kind gain nothing, unless they are asked for. */
	unsetenv("WREATH_CHANNELS");
	ranks_set("WREATH_SOFT", "roce:2");
	run_fleet(&one, 2, RANKS_PROCESSES);
	ranks_set("WREATH_HCA", "soft0,soft1");
	run_fleet(&both, 3, RANKS_PROCESSES);
}

static void the_common_part_is_used_and_the_rest_named(void **state)
{
	struct fleet fleet = {
		.name = "WREATH_SOFT",
		.value = {"roce:1,ib:2", "roce:1,ib:1", "roce:1,ib:1",
			  "roce:1"},
		.shown = {"soft0:1"},
		.hidden = "InfiniBand",
		.logged = " has no port like soft1:1 (InfiniBand) of rank 0 ",
	};

	(void)state;
	need_soft();
	ranks_set("WREATH_ALGO", "ring");
	run_fleet(&fleet, 4, RANKS_PROCESSES);
	/* Two are left where one rank has three. */
	fleet.hidden = NULL;
	fleet.shown[1] = "InfiniBand";
	fleet.value[3] = "ib:1,roce:1";
	fleet.logged = NULL;
	run_fleet(&fleet, 4, RANKS_PROCESSES);
}

static void pretended_nodes_change_no_result(void **state)
{
	static const char *const soft[] = {"roce:1", "ib:1,roce:1"};
	struct fleet fleet = {
		.name = "WREATH_NODE",
		.value = {"7", "0", "0", "7", "65535", "0"},
		.shown = {ranks_have_device() ? NULL : "soft0:1"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < N_ALGOS; i++) {
		ranks_set("WREATH_ALGO", algos[i]);
		if (!ranks_have_device())
			ranks_set("WREATH_SOFT", soft[i % 2]);
		run_fleet(&fleet, 3 + (int)i % 4, RANKS_PROCESSES);
	}
}

/* Of one kind as well: they share the vector by their rates. */
static void rails_with_rates_join_nodes(void **state)
{
	static const char *const soft[] = {"roce:1@2G,ib:1@1G+20us",
					   "roce:1@3G,roce:1@1G", "ib:2@2G"};
	struct fleet fleet = {
		.name = "WREATH_NODE",
		.value = {"0", "0", "1", "1", "1"},
		.shown = {"soft0:1", "soft1:1"},
	};
	size_t i;

	(void)state;
	need_soft();
	for (i = 0; i < sizeof(soft) / sizeof(soft[0]); i++) {
		ranks_set("WREATH_ALGO", algos[i]);
		ranks_set("WREATH_SOFT", soft[i]);
		run_fleet(&fleet, 3 + (int)i, RANKS_PROCESSES);
	}
}

/* ---- bad input ---- */

static int join_with(struct rank *rank)
{
	const char *const *values = rank->arg;

	if (values[rank->rank])
		ranks_set("WREATH_NODE", values[rank->rank]);
	return rank_join(rank, &rank->comm);
}

static void expect_refused(const char *const *values, int rank, int code,
			   const char *word)
{
	struct ranks run = {
		.n = 3, .body = join_with, .arg = values, .no_comm = true};

	ranks_start(&run);
	ranks_join(&run);
	ranks_expect(&run, rank, code, word);
	ranks_end(&run);
}

static void nodes_of_some_ranks_only_are_refused(void **state)
{
	static const char *const some[] = {"3", NULL, "3"};
	static const char *const minus[] = {"-1", "-1", "0"};
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		expect_refused(some, i, WREATH_EMISMATCH,
			       "WREATH_NODE is 3 on rank 0 ");
		expect_refused(minus, i, WREATH_EMISMATCH,
			       "and 0 on rank 2 ");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(both_kinds_of_port_are_used_at_once,
					  ranks_clean),
		cmocka_unit_test_teardown(channels_are_dealt_out_to_rails,
					  ranks_clean),
		cmocka_unit_test_teardown(
			the_common_part_is_used_and_the_rest_named,
			ranks_clean),
		cmocka_unit_test_teardown(pretended_nodes_change_no_result,
					  ranks_clean),
		cmocka_unit_test_teardown(rails_with_rates_join_nodes,
					  ranks_clean),
		cmocka_unit_test_teardown(nodes_of_some_ranks_only_are_refused,
					  ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
