/* SPDX-License-Identifier: MIT */
/*
 * Goal: every collective and message is right with every setting: slots, their
 * size, channels, arrivals, ports of both kinds, rates, pretended nodes, and a
 * device that delays and reorders what it may.
 * Method: settings by chance, then calls by chance, each checked in full.
 */
#include <stdio.h>
#include <stdlib.h>

#include "test/loop/calls.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *const algos[] = {"auto", "auto", "ring", "oneshot",
				    "twoshot", "tree", "split-ring",
				    "halving", "direct"};
static const char *const slots[] = {"2", "3", "4", "8"};
static const char *const slot_bytes[] = {"0", "0", "4k", "8192", "64k"};
static const char *const channels[] = {"1", "1", "2", "3", "4"};
static const char *const arrivals[] = {"auto", "auto", "completion"};
static const char *const soft[] = {
	"roce:1", "ib:1", "ib:1,roce:1", "roce:1@5G+20us,ib:1@2G",
	"roce:1@10G+5us", "ib:1@8G,roce:1@1G"};

struct storm {
	struct calls_plan plan;
	uint64_t nodes; /* 0: none pretends */
};

static const char *draw(uint64_t *state, const char *name,
			const char *const *list, size_t n)
{
	const char *value = list[ranks_random(state) % n];

	ranks_set(name, value);
	printf(" %s=%s", name, value);
	return value;
}

static int in_storm(struct rank *rank)
{
	const struct storm *storm = rank->arg;
	char node[8];
	int err;

	if (storm->nodes) {
		snprintf(node, sizeof(node), "%d",
			 (int)(storm->nodes >> rank->rank * 2 & 3));
		ranks_set("WREATH_NODE", node);
	}
	err = rank_join(rank, &rank->comm);
	if (err)
		return err;
	rank->arg = &storm->plan;
	return calls_body(rank);
}

static void run_storm(uint64_t *state)
{
	struct storm storm = {
		.plan = {.seed = ranks_random(state),
			 .bytes = (size_t)1 << ranks_between(state, 12, 21),
			 .n_calls = RANKS_TIMES(10, 40, 100),
			 .only = -1}};
	struct ranks run = {.n = (int)ranks_between(state, 2, 7),
			    .body = in_storm, .arg = &storm, .no_comm = true,
			    .seconds = RANKS_SLOW ? 200 : 60};

	printf("%d ranks, %zu bytes:", run.n, storm.plan.bytes);
	draw(state, "WREATH_ALGO", algos, COUNT(algos));
	draw(state, "WREATH_SLOTS", slots, COUNT(slots));
	draw(state, "WREATH_SLOT_BYTES", slot_bytes, COUNT(slot_bytes));
	draw(state, "WREATH_CHANNELS", channels, COUNT(channels));
	draw(state, "WREATH_ARRIVAL", arrivals, COUNT(arrivals));
	draw(state, "WREATH_SOFT", soft, COUNT(soft));
	/* Threads share an environment, and so a node. */
	run.mode = ranks_random(state) % 3 ? RANKS_PROCESSES : RANKS_THREADS;
	if (run.mode == RANKS_PROCESSES && ranks_random(state) % 2)
		storm.nodes = ranks_random(state) | 1;
	printf(" nodes %llx %s\n", (unsigned long long)storm.nodes & 0xffff,
	       run.mode == RANKS_THREADS ? "threads" : "processes");
	fflush(stdout);
	ranks_run(&run);
}

static void every_call_is_right_with_every_setting(void **state)
{
	uint64_t chance = ranks_seed();
	int i;

	(void)state;
	for (i = 0; i < RANKS_TIMES(6, 16, 60); i++)
		run_storm(&chance);
}

static void chaos_changes_no_result(void **state)
{
	uint64_t chance = ranks_seed();
	int i;

	(void)state;
	for (i = 0; i < RANKS_TIMES(4, 10, 30); i++) {
		char faults[64];

		snprintf(faults, sizeof(faults), "chaos=%d", i + 1);
		ranks_set("WREATH_SOFT_FAULTS", faults);
		run_storm(&chance);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			every_call_is_right_with_every_setting, ranks_clean),
		cmocka_unit_test_teardown(chaos_changes_no_result,
					  ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
