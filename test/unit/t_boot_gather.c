/* SPDX-License-Identifier: MIT */
/*
 * Goal: every rank gets every record, in order of rank.  Method: records whose
 * bytes are a function of round and rank, for every number of ranks, of every
 * kind of length, many in a row and with ranks at different speeds.
 */
#include "boot_ranks.h"

static const size_t lengths[] = {8, 0, 1, 68, 4096, 333, 4095, 2};

static unsigned char byte_of(int round, int rank, size_t at)
{
	return (unsigned char)(round * 131 + rank * 31 + (int)at * 7 + 1);
}

static bool gather_once(struct a_rank *rank, int round, size_t bytes)
{
	int n = rank->ranks->n;
	unsigned char mine[BOOT_RECORD_MAX];
	unsigned char *all = calloc((size_t)n, bytes + 1);
	bool good;
	size_t i;
	int r;

	for (i = 0; i < bytes; i++)
		mine[i] = byte_of(round, rank->rank, i);
	good = all && !boot_all_gather(rank->boot, mine, bytes, all);
	for (r = 0; good && r < n; r++)
		for (i = 0; good && i < bytes; i++)
			good = all[(size_t)r * bytes + i] ==
			       byte_of(round, r, i);
	free(all);
	return good;
}

static int gather_many(struct a_rank *rank)
{
	unsigned int seed = (unsigned int)rank->rank;
	int round;

	for (round = 0; round < 24; round++) {
		/* Some ranks dawdle: their children are a round ahead. */
		if (rand_r(&seed) % 8 == 0)
			ms_sleep(1);
		if (!gather_once(rank, round, lengths[round % 8]))
			return round + 1;
	}
	return 0;
}

static void every_rank_gets_every_record(void **state)
{
	static struct ranks ranks;
	int n;

	(void)state;
	for (n = 1; n <= 64; n = n < 16 ? n + 1 : n * 2) {
		ranks_init(&ranks, n, gather_many);
		assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
		run_threads(&ranks, 0, n);
		all_were_good(&ranks);
	}
}

static int gather_odd_lengths(struct a_rank *rank)
{
	unsigned char in[16] = {0};
	unsigned char out[64 * 16];

	/* Rank 3 disagrees; all get to know, whoever they are. */
	return boot_all_gather(rank->boot, in, rank->rank == 3 ? 9 : 8, out);
}

static void different_lengths_are_a_mismatch_on_all(void **state)
{
	static struct ranks ranks;
	int i;

	(void)state;
	ranks_init(&ranks, 7, gather_odd_lengths);
	assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
	run_threads(&ranks, 0, 7);
	for (i = 0; i < 7; i++)
		assert_int_equal(ranks.rank[i].result, WREATH_EMISMATCH);
}

static int gather_without_one(struct a_rank *rank)
{
	const int *absent = rank->ranks->arg;
	int value = rank->rank;
	int out[64];
	int err;

	if (rank->rank == *absent) {
		struct boot_failure failure;
		int i;

		/* It hears that it is waited for. */
		for (i = 0; i < 500; i++) {
			if (boot_failure(rank->boot, &failure))
				return failure.error;
			ms_sleep(10);
		}
		return 0;
	}
	err = boot_all_gather(rank->boot, &value, sizeof(value), out);
	snprintf(rank->text, sizeof(rank->text), "%s", wreath_error_text());
	return err;
}

static void a_missing_rank_is_named_at_the_deadline(void **state)
{
	static struct ranks ranks;
	int absent, i;

	(void)state;
	for (absent = 1; absent < 8; absent++) {
		char want[32];

		ranks_init(&ranks, 8, gather_without_one);
		ranks.arg = &absent;
		for (i = 0; i < 8; i++)
			ranks.rank[i].timeout_ms = 100;
		assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
		run_threads(&ranks, 0, 8);
		snprintf(want, sizeof(want), "rank %d (host ", absent);
		for (i = 0; i < 8; i++) {
			assert_int_equal(ranks.rank[i].result, WREATH_ETIMEOUT);
			if (i != absent)
				assert_has(ranks.rank[i].text, want);
		}
	}
}

static int too_long(struct a_rank *rank)
{
	static char record[BOOT_RECORD_MAX + 1];
	static char all[BOOT_RECORD_MAX + 1];

	return boot_all_gather(rank->boot, record, sizeof(record), all);
}

static void a_record_too_long_is_refused(void **state)
{
	static struct ranks ranks;

	(void)state;
	ranks_init(&ranks, 1, too_long);
	run_threads(&ranks, 0, 1);
	assert_int_equal(ranks.rank[0].result, WREATH_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rank_gets_every_record),
		cmocka_unit_test(different_lengths_are_a_mismatch_on_all),
		cmocka_unit_test(a_missing_rank_is_named_at_the_deadline),
		cmocka_unit_test(a_record_too_long_is_refused),
	};

	alarm(60);
	return cmocka_run_group_tests_name("boot/gather", tests, NULL, NULL);
}
