/* SPDX-License-Identifier: MIT */
/*
 * Goal: ranks of which one makes another call than the rest all get an error,
 * within the deadline, that names two ranks; nobody hangs, and nobody that
 * waited for the odd one returns as if it had come.
 * Method: pairs of calls out of a list, by chance, at the first call and after
 * many good ones; then a call more, by which those learn it whose part was
 * done.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/loop/ranks.h"

#define MANY 120000 /* bytes of a long vector, for each rank */
#define DEADLINE 1.0

enum what {
	REDUCED,
	REDUCED_LONG,
	TO_ROOT,
	TO_OTHER_ROOT,
	FROM_ROOT,
	FROM_OTHER_ROOT,
	SCATTERED,
	GATHERED,
	GATHERED_LONG,
	GATHERED_LISTS,
	GATHERED_OTHER_LISTS,
	SCATTERED_LISTS,
	SCATTERED_SUM,
	TO_ALL,
	TO_ALL_LISTS,
	TO_ALL_LONG_LISTS,
	AT_ROOT,
	SENT,
	SENT_LONG,
	RECEIVED,
	MET,
	N_WHATS,
};

static const char *const names[N_WHATS] = {
	"all_reduce", "long all_reduce", "reduce", "reduce to another",
	"broadcast", "broadcast from another", "scatter", "all_gather",
	"long all_gather", "all_gather_v", "another all_gather_v",
	"reduce_scatter_v", "reduce_scatter", "all_to_all", "all_to_all_v",
	"long all_to_all_v", "gather", "send", "long send", "recv", "barrier",
};

struct pair {
	enum what most, one;
	int n_good, odd;
};

static int call(struct rank *rank, enum what what, char *in, char *out)
{
	struct wreath_comm *comm = rank->comm;
	size_t counts[RANKS_MAX], lengths[RANKS_MAX];
	int right = (rank->rank + 1) % rank->n_ranks;
	int i;

	for (i = 0; i < RANKS_MAX; i++) {
		counts[i] = (size_t)(i * 3 + 10) +
			    (what == GATHERED_OTHER_LISTS && i == 1);
		lengths[i] = what == TO_ALL_LONG_LISTS ? MANY : 10;
	}
	switch (what) {
	case REDUCED:
		return wreath_all_reduce(in, out, 10, WREATH_INT8, WREATH_SUM,
					 comm, NULL);
	case REDUCED_LONG:
		return wreath_all_reduce(in, out, MANY, WREATH_INT8,
					 WREATH_SUM, comm, NULL);
	case TO_ROOT:
	case TO_OTHER_ROOT:
		return wreath_reduce(in, out, 10, WREATH_INT8, WREATH_SUM,
				     what == TO_OTHER_ROOT, comm, NULL);
	case FROM_ROOT:
	case FROM_OTHER_ROOT:
		return wreath_broadcast(in, out, 10, WREATH_INT8,
					what == FROM_OTHER_ROOT, comm, NULL);
	case SCATTERED:
		return wreath_scatter(in, out, 10, WREATH_INT8, 0, comm, NULL);
	case GATHERED:
	case GATHERED_LONG:
		return wreath_all_gather(in, out,
					 what == GATHERED ? 10 : MANY,
					 WREATH_INT8, comm, NULL);
	case GATHERED_LISTS:
	case GATHERED_OTHER_LISTS:
		return wreath_all_gather_v(in, out, counts, NULL, WREATH_INT8,
					   comm, NULL);
	case SCATTERED_LISTS:
		return wreath_reduce_scatter_v(in, out, counts, NULL,
					       WREATH_INT8, WREATH_SUM, comm,
					       NULL);
	case SCATTERED_SUM:
		return wreath_reduce_scatter(in, out, 10, WREATH_INT8,
					     WREATH_SUM, comm, NULL);
	case TO_ALL:
		return wreath_all_to_all(in, out, 10, WREATH_INT8, comm, NULL);
	case TO_ALL_LISTS:
	case TO_ALL_LONG_LISTS:
		return wreath_all_to_all_v(in, lengths, NULL, out, lengths,
					   NULL, WREATH_INT8, comm, NULL);
	case AT_ROOT:
		return wreath_gather(in, out, 10, WREATH_INT8, 0, comm, NULL);
	case SENT:
	case SENT_LONG:
		return wreath_send(in, what == SENT ? 10 : 5 * MANY,
				   WREATH_INT8, right, comm, NULL);
	case RECEIVED:
		return wreath_recv(out, 10, WREATH_INT8, right, comm, NULL);
	default:
		return wreath_barrier(comm, NULL);
	}
}

static int n_named(const char *text, int n_ranks)
{
	char name[16];
	int n = 0;
	int i;

	for (i = 0; i < n_ranks; i++) {
		snprintf(name, sizeof(name), "rank %d", i);
		n += strstr(text, name) != NULL;
	}
	return n;
}

static int differ(struct rank *rank)
{
	const struct pair *pair = rank->arg;
	enum what mine = rank->rank == pair->odd ? pair->one : pair->most;
	char *in = calloc(8, MANY);
	char *out = calloc(8, MANY);
	double start;
	int err = 0;
	int i;

	for (i = 0; i < pair->n_good && !err; i++)
		err = call(rank, i % 3 ? REDUCED : GATHERED, in, out);
	start = ranks_now();
	if (!err)
		err = call(rank, mine, in, out);
	/* By what follows at the latest. */
	if (!err)
		err = wreath_barrier(rank->comm, NULL);
	if (!err)
		err = wreath_comm_finalize(rank->comm);
	if (!err)
		err = rank_broken(rank, "nobody has noticed");
	else if (ranks_now() - start > 2 * DEADLINE + 3)
		err = rank_broken(rank, "it took %.1f s: %s",
				  ranks_now() - start, wreath_error_text());
	else if (n_named(wreath_error_text(), rank->n_ranks) < 2)
		err = rank_broken(rank, "two are not named: %s",
				  wreath_error_text());
	else
		err = 0;
	free(in);
	free(out);
	wreath_comm_destroy(rank->comm);
	rank->comm = NULL;
	return err;
}

static bool run_pair(enum what most, enum what one, int n_good, int n)
{
	struct pair pair = {.most = most, .one = one, .n_good = n_good,
			    .odd = (int)(most + one) % n};
	struct ranks run = {.n = n, .body = differ, .arg = &pair,
			    .mode = (most + one) % 2 ? RANKS_PROCESSES
						     : RANKS_THREADS,
			    .seconds = 60};
	bool is_well = true;
	int i;

	ranks_start(&run);
	ranks_join(&run);
	for (i = 0; i < n; i++)
		is_well &= !run.shared->results[i].code &&
			   run.shared->results[i].has_ended;
	if (!is_well)
		for (i = 0; i < n; i++)
			printf("%s, but %s on rank %d of %d, after %d: rank %d "
			       "%d %s\n", names[most], names[one], pair.odd, n,
			       n_good, i, run.shared->results[i].code,
			       run.shared->results[i].text);
	ranks_end(&run);
	return is_well;
}

/* Two ranks of which one sends and one receives do not differ. */
static bool is_quarrel(enum what most, enum what one)
{
	return most != one && !(most == SENT && one == RECEIVED) &&
	       !(most == RECEIVED && one == SENT);
}

static void run_pairs(int n_good)
{
	uint64_t state = ranks_seed();
	int n_left = RANKS_TIMES(4, 8, 60);
	int n_bad = 0;

	ranks_set("WREATH_TIMEOUT", "1s");
	while (n_left) {
		enum what most = (enum what)(ranks_random(&state) % N_WHATS);
		enum what one = (enum what)(ranks_random(&state) % N_WHATS);

		if (!is_quarrel(most, one))
			continue;
		n_bad += !run_pair(most, one, n_good,
				   (int)ranks_between(&state, 2, 4));
		n_left--;
	}
	assert_int_equal(n_bad, 0);
}

static void another_first_call_is_told_of(void **state)
{
	(void)state;
	run_pairs(0);
}

static void another_call_after_many_is_told_of(void **state)
{
	(void)state;
	run_pairs(20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(another_first_call_is_told_of,
					  ranks_clean),
		cmocka_unit_test_teardown(another_call_after_many_is_told_of,
					  ranks_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
