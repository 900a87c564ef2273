/* SPDX-License-Identifier: MIT */
/*
 * Goal: any pattern of sends and receives that can end does end, and every
 * message reaches its place, also where the ranks meet for the first time.
 * Method: two patterns in which a message to one peer waits for one with
 * another; then random ones.  Of those the messages have a total order, and
 * each rank cuts its own, in that order, into groups wherever it likes.  That
 * ends: of all messages that are not done the first one is, at both of its
 * ends, in the group that is under way, and the first of its queue there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/loop/ranks.h"

#define MESSAGES_MAX 200
/* Longer than all slots of a lane together, whatever the settings. */
#define LONG ((size_t)3 << 20)

struct message {
	int from, to;
	size_t bytes;
};

static char byte_of(const struct message *m, int which, size_t at)
{
	return (char)(m->from * 31 + m->to * 17 + which * 7 + (int)(at % 251));
}

static int send_one(struct rank *rank, char *at, const struct message *m,
		    int which)
{
	size_t i;

	for (i = 0; i < m->bytes; i++)
		at[i] = byte_of(m, which, i);
	return wreath_send(at, m->bytes, WREATH_UINT8, m->to, rank->comm, NULL);
}

static int recv_one(struct rank *rank, char *at, const struct message *m)
{
	memset(at, 0, m->bytes);
	return wreath_recv(at, m->bytes, WREATH_UINT8, m->from, rank->comm,
			   NULL);
}

static int check_one(struct rank *rank, const char *at, const struct message *m,
		     int which)
{
	size_t i;

	for (i = 0; i < m->bytes; i++)
		if (at[i] != byte_of(m, which, i))
			return rank_broken(rank, "byte %zu of message %d, %d to "
						 "%d, is %d", i, which, m->from,
					   m->to, at[i]);
	return 0;
}

/* ---- messages in order, groups that end before one of them ---- */

struct program {
	const struct message *messages;
	int n;
	/* By message: bit r: a group of rank r ends before it. */
	const uint64_t *cuts;
	uint64_t in_groups; /* bit r: calls of rank r are groups of one too */
	bool is_shared;
};

static int give(struct rank *rank, const struct program *program, int i,
		char **bytes)
{
	const struct message *m = &program->messages[i];
	int err = 0;

	/* A message to itself has two places. */
	if (m->from == rank->rank)
		err = send_one(rank, bytes[2 * i], m, i);
	if (!err && m->to == rank->rank)
		err = recv_one(rank, bytes[2 * i + 1], m);
	return err;
}

static int run_group(struct rank *rank, const struct program *program,
		     const int *mine, int n, char **bytes)
{
	bool is_one = n == 1 && !(program->in_groups >> rank->rank & 1) &&
		      program->messages[*mine].from !=
			      program->messages[*mine].to;
	int err = is_one ? 0 : wreath_group_start();
	int i;

	for (i = 0; i < n && !err; i++)
		err = give(rank, program, mine[i], bytes);
	if (!is_one && !err)
		err = wreath_group_end();
	for (i = 0; i < n && !err; i++)
		if (program->messages[mine[i]].to == rank->rank)
			err = check_one(rank, bytes[2 * mine[i] + 1],
					&program->messages[mine[i]], mine[i]);
	return err;
}

static int run_messages(struct rank *rank, const struct program *program,
			char **bytes)
{
	int mine[MESSAGES_MAX];
	int n = 0;
	int err = 0;
	int i;

	for (i = 0; i < program->n && !err; i++) {
		const struct message *m = &program->messages[i];

		if (m->from != rank->rank && m->to != rank->rank)
			continue;
		if (n && program->cuts[i] >> rank->rank & 1) {
			err = run_group(rank, program, mine, n, bytes);
			n = 0;
		}
		mine[n++] = i;
	}
	return err || !n ? err : run_group(rank, program, mine, n, bytes);
}

static int alloc_end(const struct program *program, size_t bytes, char **out)
{
	void *at = NULL;
	int err = 0;

	if (program->is_shared)
		err = wreath_mem_alloc(bytes + 1, &at);
	else
		at = malloc(bytes + 1);
	*out = at;
	return at ? err : WREATH_ENOMEM;
}

static int run_program(struct rank *rank, const struct program *program)
{
	char *bytes[2 * MESSAGES_MAX] = {NULL};
	int err = 0;
	int i;

	for (i = 0; i < program->n && !err; i++) {
		const struct message *m = &program->messages[i];

		if (m->from == rank->rank)
			err = alloc_end(program, m->bytes, &bytes[2 * i]);
		if (!err && m->to == rank->rank)
			err = alloc_end(program, m->bytes, &bytes[2 * i + 1]);
	}
	if (!err)
		err = run_messages(rank, program, bytes);
	for (i = 0; i < 2 * program->n; i++) {
		if (program->is_shared && bytes[i])
			wreath_mem_free(bytes[i]);
		else
			free(bytes[i]);
	}
	return err;
}

static void run_body(rank_body *body, const void *arg, int least, int most)
{
	int n;

	for (n = least; n <= most; n++) {
		struct ranks run = {.n = n, .body = body, .arg = arg,
				    .seconds = RANKS_SLOW ? 200 : 60,
				    .mode = n % 2 ? RANKS_PROCESSES
						  : RANKS_THREADS};

		ranks_run(&run);
	}
}

/* ---- one message waits for another ---- */

struct chain {
	int n_twice; /* how often rank 0 sends to rank 2 in its group */
	size_t bytes;
	bool is_connected;
};

/*
 * Rank 0 sends to ranks 1 and 2 in a group; rank 2 takes its messages and sends
 * one to rank 1, which takes rank 0's after that.
 */
static int chain(struct rank *rank)
{
	const struct chain *chain = rank->arg;
	size_t bytes = chain->bytes;
	const struct message messages[] = {
		{.from = 0, .to = 2, .bytes = bytes},
		{.from = 0, .to = 2, .bytes = bytes},
		{.from = 2, .to = 1, .bytes = bytes},
		{.from = 0, .to = 1, .bytes = bytes},
	};
	const uint64_t cuts[] = {6, 6, 6, 6};
	const struct program program = {
		.messages = messages + 2 - chain->n_twice,
		.n = 2 + chain->n_twice,
		.cuts = cuts,
	};
	int err = 0;

	if (chain->is_connected)
		err = wreath_barrier(rank->comm, NULL);
	return err ? err : run_program(rank, &program);
}

static void run_chains(int n_twice, bool is_connected)
{
	static const size_t lengths[] = {0, 10, 5000, LONG};
	size_t i;

	ranks_set("WREATH_TIMEOUT", "5s");
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct chain arg = {n_twice, lengths[i], is_connected};

		ranks_set("WREATH_CHANNELS", "1");
		run_body(chain, &arg, 3, 4);
		ranks_set("WREATH_CHANNELS", "2");
		run_body(chain, &arg, 3, 4);
	}
}

static void ranks_that_meet_do_not_wait_for_others(void **state)
{
	(void)state;
	run_chains(1, false);
}

static void a_second_message_does_not_wait_for_another_peer(void **state)
{
	(void)state;
	run_chains(2, true);
	run_chains(2, false);
}

/* A rank that sends, and takes later, with one that does both at once. */
static int both_ways(struct rank *rank)
{
	const struct message messages[] = {
		{.from = 0, .to = 1, .bytes = LONG},
		{.from = 1, .to = 0, .bytes = LONG},
		{.from = 0, .to = 1, .bytes = LONG + 77},
		{.from = 1, .to = 0, .bytes = LONG + 99},
	};
	const uint64_t cuts[] = {1, 1, 1, 1};
	const struct program program = {
		.messages = messages, .n = 4, .cuts = cuts,
		.is_shared = *(const bool *)rank->arg,
	};

	return run_program(rank, &program);
}

static void two_ways_are_apart(void **state)
{
	static const bool is_shared[] = {false, true};

	(void)state;
	ranks_set("WREATH_TIMEOUT", "5s");
	run_body(both_ways, &is_shared[0], 2, 3);
	run_body(both_ways, &is_shared[1], 2, 3);
	ranks_set("WREATH_ARRIVAL", "completion");
	run_body(both_ways, &is_shared[1], 2, 3);
}

/* ---- random patterns ---- */

struct drawing {
	uint64_t seed;
	int n_messages;
	size_t longest;
};

static size_t draw_length(uint64_t *state, size_t longest)
{
	switch (ranks_between(state, 0, 3)) {
	case 0:
		return ranks_between(state, 0, 60);
	case 1:
		return ranks_between(state, 0, 6000);
	case 2:
		return ranks_between(state, 0, longest / 8);
	default:
		return ranks_between(state, 0, longest);
	}
}

static int draw_and_run(struct rank *rank)
{
	const struct drawing *drawing = rank->arg;
	uint64_t state = drawing->seed;
	struct message messages[MESSAGES_MAX];
	uint64_t cuts[MESSAGES_MAX];
	struct program program = {.messages = messages, .cuts = cuts};
	uint64_t last = (uint64_t)rank->n_ranks - 1;
	int err = 0;
	int i, turn;

	for (turn = 0; turn < 2 && !err; turn++) {
		unsigned int many = (unsigned int)ranks_between(&state, 1, 5);

		program.n = (int)ranks_between(
			&state, 1, (uint64_t)drawing->n_messages);
		program.in_groups = ranks_random(&state);
		program.is_shared = ranks_random(&state) & 1;
		for (i = 0; i < program.n; i++) {
			messages[i].from = (int)ranks_between(&state, 0, last);
			messages[i].to = (int)ranks_between(&state, 0, last);
			messages[i].bytes =
				draw_length(&state, drawing->longest);
			cuts[i] = ranks_random(&state);
			if (many > 2)
				cuts[i] &= ranks_random(&state);
			if (many > 4)
				cuts[i] &= ranks_random(&state);
		}
		err = run_program(rank, &program);
		if (!err && ranks_random(&state) & 1)
			err = wreath_barrier(rank->comm, NULL);
	}
	return err;
}

static void draw(int n_turns, size_t longest)
{
	static uint64_t seed;
	int i;

	if (!seed)
		seed = ranks_seed();
	for (i = 0; i < n_turns; i++) {
		struct drawing drawing = {
			.seed = seed++,
			.n_messages = i % 3 ? 40 : MESSAGES_MAX,
			.longest = longest,
		};
		int n = 3 + (int)(drawing.seed % 4);

		printf("SEED=%llu\n", (unsigned long long)drawing.seed);
		run_body(draw_and_run, &drawing, n, n);
	}
}

/* The ports and how messages arrive at them, in pairs of name and value. */
static const char *const settings[][6] = {
	{NULL},
	{"WREATH_CHANNELS", "2"},
	{"WREATH_ARRIVAL", "completion"},
	{"WREATH_ARRIVAL", "completion", "WREATH_CHANNELS", "2",
	 "WREATH_SLOTS", "2"},
	{"WREATH_SOFT", "roce:2@8G"},
	{"WREATH_SOFT", "ib:1,roce:1", "WREATH_SLOT_BYTES", "4096"},
	{"WREATH_SOFT_FAULTS", "bounce=always", "WREATH_CHANNELS", "3"},
	{"WREATH_SOFT_FAULTS", "chaos=7", "WREATH_SLOTS", "8"},
	{"WREATH_SOFT_FAULTS", "promise=none"},
};

static void every_pattern_that_can_end_ends(void **state)
{
	size_t i;
	int k;

	for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		ranks_set("WREATH_TIMEOUT", RANKS_SLOW ? "60s" : "15s");
		for (k = 0; k < 6 && settings[i][k]; k += 2)
			ranks_set(settings[i][k], settings[i][k + 1]);
		draw(RANKS_TIMES(1, 4, 30), 300000);
		ranks_clean(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			a_second_message_does_not_wait_for_another_peer,
			ranks_clean),
		cmocka_unit_test_teardown(
			ranks_that_meet_do_not_wait_for_others, ranks_clean),
		cmocka_unit_test_teardown(two_ways_are_apart, ranks_clean),
		cmocka_unit_test_teardown(every_pattern_that_can_end_ends,
					  ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
