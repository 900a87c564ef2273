/* SPDX-License-Identifier: MIT */
/*
 * Goal: the direct exchanges talk to everyone once, without a crowd at one
 * peer, fold in order of rank, and reduce.
 * Method: as for the ring; the schedules are looked at, run and counted, and
 * run by the judge.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_orders.h"
#include "sched_prove.h"
#include "sched_walk.h"

#include "sched/draft.h"

#define N_RANKS 12

static const enum sched_algo direct[] = {SCHED_ONESHOT, SCHED_TWOSHOT};

/* The step that receives from all: the first of the second lane. */
static const struct sched_step *gathering(const struct sched *sched,
					  enum sched_algo algo,
					  uint32_t channel)
{
	uint32_t lane = channel * (algo == SCHED_ONESHOT ? 2 : 3) + 1;

	assert_int_equal(sched->lanes[lane].channel, channel);
	assert_int_equal(sched->lanes[lane].n_steps, 1);
	return &sched->steps[sched->lanes[lane].step];
}

static void direct_folds_in_order_of_rank_everywhere(void **state)
{
	struct kit kit;
	size_t a;
	int n, rank;
	uint32_t channel, i;

	(void)state;
	for (a = 0; a < base_countof(direct); a++) {
		for (n = 2; n <= N_RANKS; n++) {
			kit_make(&kit, direct[a], n, 2);
			for (rank = 0; rank < n; rank++) {
				const struct sched *sched = kit.scheds[rank];

				for (channel = 0; channel < 2; channel++) {
					const struct sched_step *step =
						gathering(sched, direct[a],
							  channel);
					const uint32_t *peers =
						sched->peers + step->recv;

					assert_int_equal(step->n_recv, n - 1);
					assert_int_equal(step->local_at, rank);
					for (i = 0; i < step->n_recv; i++)
						assert_int_equal(
							peers[i],
							i + (i >=
							     step->local_at));
				}
			}
			kit_release(&kit);
		}
	}
}

/* The @i-th peer that a rank sends to, over all steps. */
static uint32_t target(const struct sched *sched, uint32_t i)
{
	uint32_t at;

	for (at = 0; i >= sched->steps[at].n_send; at++)
		i -= sched->steps[at].n_send;
	return sched->peers[sched->steps[at].send + i];
}

static void direct_spreads_each_round_over_all_peers(void **state)
{
	struct kit kit;
	size_t a;
	int n, rank;
	uint32_t i;

	(void)state;
	for (a = 0; a < base_countof(direct); a++) {
		for (n = 2; n <= N_RANKS; n++) {
			uint32_t rounds = (uint32_t)n - 1;

			if (direct[a] == SCHED_TWOSHOT)
				rounds *= 2;
			kit_make(&kit, direct[a], n, 1);
			for (i = 0; i < rounds; i++) {
				int met[N_RANKS] = {0};

				for (rank = 0; rank < n; rank++)
					met[target(kit.scheds[rank], i)]++;
				for (rank = 0; rank < n; rank++)
					assert_int_equal(met[rank], 1);
			}
			kit_release(&kit);
		}
	}
}

static void twoshot_takes_results_in_the_order_they_are_sent(void **state)
{
	struct kit kit;
	uint32_t by;

	(void)state;
	kit_make(&kit, SCHED_TWOSHOT, 7, 1);
	/* The peer that is @by behind sends to this rank as its @by-th. */
	for (by = 1; by < 7; by++) {
		const struct sched_step *step = kit_step(&kit, 3, 2, by - 1);
		uint32_t peer = kit.scheds[3]->peers[step->recv];
		const struct sched_step *sends =
			kit_step(&kit, (int)peer, 1, 0);

		assert_int_equal(kit.scheds[peer]->peers[sends->send + by - 1],
				 3);
		assert_int_equal(step->chunk, peer);
	}
	kit_release(&kit);
}

/* Shares go out raw, results final: with both in place no slot is needed. */
static void twoshot_moves_nothing_but_raw_input_and_results(void **state)
{
	struct kit kit;
	uint32_t i;
	int rank;

	(void)state;
	kit_make(&kit, SCHED_TWOSHOT, 4, 2);
	for (rank = 0; rank < 4; rank++) {
		for (i = 0; i < kit.scheds[rank]->n_steps; i++) {
			const struct sched_step *step =
				&kit.scheds[rank]->steps[i];

			if (step->n_send)
				assert_true(step->flags &
					    (SCHED_SEND_INPUT |
					     SCHED_SEND_FINAL));
			if (step->n_recv)
				assert_true(step->flags &
					    (SCHED_RECV_INPUT |
					     SCHED_RECV_FINAL));
		}
	}
	kit_release(&kit);
}

static void direct_chunks_of_a_channel_are_neighbours(void **state)
{
	struct kit kit;
	uint32_t i, j;

	(void)state;
	kit_make(&kit, SCHED_TWOSHOT, 5, 4);
	for (i = 0; i < kit.scheds[2]->n_lanes; i++) {
		const struct sched_lane *lane = &kit.scheds[2]->lanes[i];

		for (j = 0; j < lane->n_steps; j++)
			assert_int_equal(
				kit.scheds[2]->steps[lane->step + j].chunk / 5,
				lane->channel);
	}
	kit_release(&kit);
}

static void direct_reduces_every_chunk_once_in_any_order(void **state)
{
	(void)state;
	orders_reduce(SCHED_ONESHOT, 1);
	orders_reduce(SCHED_TWOSHOT, 1);
}

static uint32_t nth_of_ranks(const struct forms *forms, uint32_t chunk,
			     uint32_t i)
{
	(void)forms;
	(void)chunk;
	return i;
}

/* Depth one; each share goes to who folds it, and that in one step. */
static void check_reducing(enum sched_collective collective, int n, int root)
{
	static struct forms forms;
	bool rooted = sched_is_rooted(collective);
	uint64_t n_sent, busiest;
	int rank;

	forms.shape = (struct sched_shape){
		.collective = collective, .algo = SCHED_DIRECT, .n_ranks = n,
		.n_channels = 1 + (n + root) % SCHED_CHANNELS_MAX,
		.root = root};
	forms_make(&forms);
	forms.nth = nth_of_ranks;
	forms.n_slots = 1;
	forms.n_passes = 1;
	forms_run(&forms);
	n_sent = (uint64_t)(n - 1) * forms.n_chunks;
	busiest = rooted ? (n > 1) * forms.n_pieces : n_sent / (uint64_t)n;
	assert_int_equal(forms.n_messages, n_sent);
	assert_int_equal(forms_busiest(&forms), busiest);
	assert_int_equal(sched_generator(collective, SCHED_DIRECT)
				 ->sent_bound(&forms.shape, forms.n_pieces),
			 busiest);
	assert_int_equal(forms.depth, n > 1);
	for (rank = 0; n > 1 && rank < n; rank++) {
		const struct sched *sched = forms.scheds[rank];
		uint32_t i;

		for (i = 0; i < sched->n_steps; i++) {
			const struct sched_step *step = &sched->steps[i];

			assert_int_equal(step->flags,
					 step->n_recv
						 ? SCHED_RECV_INPUT |
							   SCHED_STORE
						 : SCHED_SEND_INPUT |
							   SCHED_SEND_AWAIT);
			assert_true(!step->n_recv ||
				    step->n_recv == (uint32_t)n - 1);
		}
	}
	forms_release(&forms);
}

static void direct_shares_are_read_in_place_by_who_folds_them(void **state)
{
	int n, root;

	(void)state;
	for (n = 1; n <= FORMS_RANKS; n++) {
		check_reducing(SCHED_REDUCE_SCATTER, n, 0);
		for (root = 0; root < n; root++)
			check_reducing(SCHED_REDUCE, n, root);
	}
}

static void more_ranks_than_one_fold_takes_are_refused(void **state)
{
	static const struct {
		enum sched_collective collective;
		enum sched_algo algo;
		const char *text;
	} rows[] = {
		{SCHED_ALL_REDUCE, SCHED_ONESHOT, "oneshot all_reduce"},
		{SCHED_ALL_REDUCE, SCHED_TWOSHOT, "twoshot all_reduce"},
		{SCHED_BARRIER, SCHED_ONESHOT, "oneshot barrier"},
		{SCHED_REDUCE, SCHED_DIRECT, "direct reduce"},
		{SCHED_REDUCE_SCATTER, SCHED_DIRECT, "direct reduce_scatter"},
	};
	struct sched *sched;
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(rows); i++) {
		struct sched_shape shape = {
			.collective = rows[i].collective, .algo = rows[i].algo,
			.n_ranks = SCHED_DIRECT_RANKS_MAX, .n_channels = 1};

		assert_int_equal(sched_make(&shape, 0, &sched), 0);
		sched_free(sched);
		shape.n_ranks++;
		assert_int_equal(sched_make(&shape, 0, &sched), WREATH_EUNSUP);
		assert_non_null(strstr(base_error_text(), rows[i].text));
		assert_non_null(strstr(base_error_text(),
				       "at most 64 ranks; there are 65"));
	}
}

static void every_direct_form_is_proved_and_its_bound_is_met(void **state)
{
	static const struct prove_form rows[] = {
		{SCHED_ALL_REDUCE, SCHED_ONESHOT, 1, 1, 0},
		{SCHED_ALL_REDUCE, SCHED_TWOSHOT, 1, 2, 0},
		{SCHED_BARRIER, SCHED_ONESHOT, 1, 1, 0},
		{SCHED_BARRIER, SCHED_TWOSHOT, 1, 2, 0},
		{SCHED_REDUCE_SCATTER, SCHED_DIRECT, 1, 1, 0},
		{SCHED_REDUCE, SCHED_DIRECT, 1, 1, 0},
	};
	uint64_t seed = kit_seed();
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(rows); i++)
		prove(&rows[i], &seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(direct_folds_in_order_of_rank_everywhere),
		cmocka_unit_test(direct_spreads_each_round_over_all_peers),
		cmocka_unit_test(
			twoshot_takes_results_in_the_order_they_are_sent),
		cmocka_unit_test(
			twoshot_moves_nothing_but_raw_input_and_results),
		cmocka_unit_test(direct_chunks_of_a_channel_are_neighbours),
		cmocka_unit_test(direct_reduces_every_chunk_once_in_any_order),
		cmocka_unit_test(
			direct_shares_are_read_in_place_by_who_folds_them),
		cmocka_unit_test(more_ranks_than_one_fold_takes_are_refused),
		cmocka_unit_test(
			every_direct_form_is_proved_and_its_bound_is_met),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
