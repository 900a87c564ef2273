/* SPDX-License-Identifier: MIT */
/*
 * Goal: an argument or a setting that cannot be is refused at once, by a
 * sentence that names it and its value, and nothing is harmed by it.
 * Method: a table of each, and a good call after every bad one.
 */
#include <stdio.h>
#include <string.h>

#include "test/loop/ranks.h"

static float numbers[64];

struct call {
	const char *what;
	const void *send;
	void *recv;
	size_t count;
	int type, op;
	const char *words[2]; /* of the text */
};

static const struct call calls[] = {
	{"send is NULL", NULL, numbers, 7, WREATH_FLOAT32, WREATH_SUM,
	 {"send", "7"}},
	{"recv is NULL", numbers, NULL, 1, WREATH_FLOAT32, WREATH_SUM,
	 {"recv", "1"}},
	{"an overlap by all but one byte", numbers, (char *)numbers + 1, 8,
	 WREATH_FLOAT32, WREATH_SUM, {"overlap", "32"}},
	{"an overlap by one element", numbers + 7, numbers, 8, WREATH_FLOAT32,
	 WREATH_SUM, {"overlap", "32"}},
	{"an overlap by one byte", numbers, (char *)numbers + 31, 8,
	 WREATH_FLOAT32, WREATH_SUM, {"overlap", "32"}},
	{"a count that overflows", numbers, numbers, SIZE_MAX / 2,
	 WREATH_FLOAT64, WREATH_SUM, {"count 9223372036854775807", "float64"}},
	{"a count beyond all memory", numbers, numbers, SIZE_MAX, WREATH_INT8,
	 WREATH_MAX, {"count 18446744073709551615", "int8"}},
	{"type -1", numbers, numbers, 1, -1, WREATH_SUM, {"type -1", "13"}},
	{"type 14", numbers, numbers, 1, 14, WREATH_SUM, {"type 14", "13"}},
	{"op -1", numbers, numbers, 1, WREATH_FLOAT32, -1, {"op -1", "4"}},
	{"op 5", numbers, numbers, 1, WREATH_FLOAT32, 5, {"op 5", "4"}},
};
#define N_CALLS (sizeof(calls) / sizeof(calls[0]))

static int check_refusal(struct rank *rank, int err, const char *what,
			 const char *word, const char *value)
{
	const char *text = wreath_error_text();

	if (err != WREATH_EINVAL)
		return rank_broken(rank, "%s: %s, not WREATH_EINVAL: %s", what,
				   wreath_error_name(err), text);
	if (!strstr(text, word) || !strstr(text, value))
		return rank_broken(rank, "%s: '%s' or '%s' is not in: %s",
				   what, word, value, text);
	return 0;
}

static int good_call(struct rank *rank, struct wreath_stream *stream)
{
	int word = 1;
	int err = wreath_all_reduce(&word, &word, 1, WREATH_INT32, WREATH_SUM,
				    rank->comm, stream);

	if (!err && stream)
		err = wreath_stream_wait(stream);
	if (!err && word != rank->n_ranks)
		err = rank_broken(rank, "a good call went wrong");
	return err;
}

static int make_calls(struct rank *rank)
{
	struct wreath_stream *stream;
	int err = wreath_stream_create(&stream);
	size_t i;
	int way;

	for (i = 0; i < N_CALLS && !err; i++) {
		for (way = 0; way < 2 && !err; way++) {
			const struct call *call = &calls[i];
			int got = wreath_all_reduce(
				call->send, call->recv, call->count,
				(enum wreath_type)call->type,
				(enum wreath_op)call->op, rank->comm,
				way ? stream : NULL);

			err = check_refusal(rank, got, call->what,
					    call->words[0], call->words[1]);
			if (!err)
				err = good_call(rank, way ? stream : NULL);
		}
	}
	wreath_stream_destroy(stream);
	if (!err)
		err = check_refusal(
			rank, wreath_all_reduce(numbers, numbers, 1,
						WREATH_FLOAT32, WREATH_SUM,
						NULL, NULL),
			"no communicator", "communicator", "NULL");
	return err;
}

static void a_bad_call_is_refused_and_harms_nothing(void **state)
{
	struct ranks run = {.n = 1, .body = make_calls};

	(void)state;
	ranks_run(&run);
	run.n = 3;
	ranks_run(&run);
	run.mode = RANKS_THREADS;
	ranks_run(&run);
}

/* Adjacent buffers do not overlap, and NULL is allowed for nothing. */
static int odd_calls(struct rank *rank)
{
	float own[16] = {0};
	int err = wreath_all_reduce(own, own + 8, 8, WREATH_FLOAT32,
				    WREATH_SUM, rank->comm, NULL);

	if (!err)
		err = wreath_all_reduce(own + 8, own, 8, WREATH_FLOAT32,
					WREATH_SUM, rank->comm, NULL);
	if (!err)
		err = wreath_all_reduce(NULL, NULL, 0, WREATH_FLOAT32,
					WREATH_SUM, rank->comm, NULL);
	/* With nothing in it no buffer overlaps another. */
	if (!err)
		err = wreath_all_reduce(own, (char *)own + 1, 0,
					WREATH_FLOAT32, WREATH_SUM, rank->comm,
					NULL);
	return err ? err : good_call(rank, NULL);
}

static void an_odd_call_is_allowed(void **state)
{
	struct ranks run = {.n = 2, .body = odd_calls};

	(void)state;
	ranks_run(&run);
}

static int join_badly(struct rank *rank)
{
	static const struct {
		int rank, n_ranks;
		const char *word, *value;
	} rows[] = {
		{-1, 2, "rank -1", "0..1"},
		{2, 2, "rank 2", "0..1"},
		{2147483647, 2, "rank 2147483647", "0..1"},
		{0, 0, "n_ranks 0", "1.."},
		{0, -5, "n_ranks -5", "1.."},
		{0, 1 << 30, "n_ranks 1073741824", "1.."},
	};
	const struct wreath_unique_id *id = rank_id(rank);
	struct wreath_comm *comm = NULL;
	int err = 0;
	size_t i;

	if (!id)
		return rank_broken(rank, "no id: %s", wreath_error_text());
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]) && !err; i++)
		err = check_refusal(
			rank, wreath_comm_init(id, rows[i].rank,
					       rows[i].n_ranks, &comm),
			"a bad rank", rows[i].word, rows[i].value);
	if (!err)
		err = check_refusal(rank, wreath_comm_init(NULL, 0, 2, &comm),
				    "no id", "id", "NULL");
	if (!err)
		err = check_refusal(rank, wreath_comm_init(id, 0, 2, NULL),
				    "no place", "comm", "NULL");
	if (!err)
		err = check_refusal(rank, wreath_comm_init_env(NULL),
				    "no place", "comm", "NULL");
	if (!err)
		err = check_refusal(rank, wreath_unique_id_create(NULL),
				    "no place", "id", "NULL");
	if (!err && comm)
		err = rank_broken(rank, "an output was written");
	/* The id is as good as before. */
	if (!err)
		err = wreath_comm_init(id, rank->rank, rank->n_ranks,
				       &rank->comm);
	return err ? err : good_call(rank, NULL);
}

static void a_bad_rank_is_refused_and_the_id_stays_good(void **state)
{
	struct ranks run = {.n = 2, .body = join_badly, .no_comm = true};

	(void)state;
	ranks_run(&run);
}

static int bad_memory(struct rank *rank)
{
	static char bytes[100];
	void *ptr = NULL;
	char *start;
	int err;

	err = check_refusal(rank, wreath_mem_alloc(0, &ptr), "nothing",
			    "0 bytes", "");
	if (!err)
		err = check_refusal(rank, wreath_mem_alloc(SIZE_MAX, &ptr),
				    "everything", "18446744073709551615", "");
	if (!err)
		err = check_refusal(rank, wreath_mem_alloc(8, NULL),
				    "no place", "ptr", "NULL");
	if (!err)
		err = check_refusal(rank, wreath_mem_free(bytes), "a stranger",
				    "wreath_mem_alloc", "");
	if (!err)
		err = check_refusal(rank, wreath_mem_register(NULL, 8), "NULL",
				    "8 bytes", "");
	if (!err)
		err = check_refusal(rank, wreath_mem_register(bytes, 0),
				    "nothing", "0 bytes", "");
	if (!err)
		err = check_refusal(rank, wreath_mem_deregister(bytes),
				    "a stranger", "wreath_mem_register", "");
	if (!err)
		err = wreath_mem_register(bytes + 10, 50);
	if (!err)
		err = check_refusal(rank, wreath_mem_register(bytes, 11),
				    "an overlap", "overlap", "11");
	if (!err)
		err = check_refusal(rank, wreath_mem_register(bytes + 59, 9),
				    "an overlap", "overlap", "9");
	if (!err)
		err = wreath_mem_deregister(bytes + 10);
	if (!err)
		err = wreath_mem_alloc(100, &ptr);
	start = ptr;
	if (!err)
		err = check_refusal(rank, wreath_mem_deregister(start),
				    "not registered", "wreath_mem_register",
				    "");
	if (!err)
		err = check_refusal(rank, wreath_mem_free(start + 1),
				    "the middle", "wreath_mem_alloc", "");
	return err ? err : wreath_mem_free(start);
}

static void bad_memory_is_refused(void **state)
{
	struct ranks run = {.n = 1, .body = bad_memory, .no_comm = true};

	(void)state;
	ranks_run(&run);
}

struct setting {
	const char *name, *value;
	const char *word; /* of the text, beside name and value */
};

static const struct setting bad_settings[] = {
	{"WREATH_ALGO", "rign", "ring"},
	{"WREATH_ALGO", "", "ring"},
	{"WREATH_ALGO", "ring ", "twoshot"},
	{"WREATH_ARRIVAL", "soon", "completion"},
	{"WREATH_CHANNELS", "0", "4"},
	{"WREATH_CHANNELS", "5", "4"},
	{"WREATH_CHANNELS", "1x", "4"},
	{"WREATH_CHANNELS", "99999999999999999999", "4"},
	{"WREATH_NODE", "-2", "65535"},
	{"WREATH_NODE", "65536", "65535"},
	{"WREATH_NODE", "1,2", "65535"},
	{"WREATH_CONNECT", "tcp", "exchange cm"},
	{"WREATH_SLOTS", "1", "8"},
	{"WREATH_SLOT_BYTES", "4Q", ""},
	{"WREATH_SLOT_BYTES", "1e9", ""},
	{"WREATH_SLOT_BYTES", "1G", ""},
	{"WREATH_TIMEOUT", "-1", ""},
	{"WREATH_TIMEOUT", "30 s", ""},
	{"WREATH_TIMEOUT", "1ms", ""},
	{"WREATH_JOIN_TIMEOUT", "soon", ""},
	{"WREATH_SPIN", "-2", ""},
	{"WREATH_LOG", "loud", "debug"},
};

static int read_setting(struct rank *rank)
{
	const struct setting *setting = rank->arg;
	struct wreath_unique_id id = {{0}};
	int err = check_refusal(rank, wreath_comm_init_env(&rank->comm),
				setting->name, setting->name, setting->value);

	if (!err && !strstr(wreath_error_text(), setting->word))
		err = rank_broken(rank, "'%s' is not in: %s", setting->word,
				  wreath_error_text());
	if (!err)
		err = check_refusal(rank, wreath_unique_id_create(&id),
				    setting->name, setting->name,
				    setting->value);
	if (!err)
		err = check_refusal(rank, wreath_comm_init(&id, 0, 1,
							   &rank->comm),
				    setting->name, setting->name,
				    setting->value);
	return err;
}

static void a_bad_setting_is_refused_by_name(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad_settings) / sizeof(bad_settings[0]); i++) {
		struct ranks run = {.n = 1,
				    .body = read_setting,
				    .arg = &bad_settings[i],
				    .no_comm = true};

		ranks_set(bad_settings[i].name, bad_settings[i].value);
		ranks_run(&run);
		ranks_clean(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bad_call_is_refused_and_harms_nothing),
		cmocka_unit_test(an_odd_call_is_allowed),
		cmocka_unit_test(a_bad_rank_is_refused_and_the_id_stays_good),
		cmocka_unit_test(bad_memory_is_refused),
		cmocka_unit_test_teardown(a_bad_setting_is_refused_by_name,
					  ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
