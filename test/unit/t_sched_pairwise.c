/* SPDX-License-Identifier: MIT */
/*
 * Goal: whoever has a block sends it once to whoever wants it, in rounds that
 * crowd no rank and no node, and without a deadlock whatever is left out.
 * Method: every collective that moves bytes, with every small number of ranks
 * and every root, is run and counted; steps are looked at one by one.
 */
#include "sched_prove.h"
#include "sched_walk.h"

#include "sched/draft.h"

static const enum sched_collective moving[] = {
	SCHED_ALL_GATHER, SCHED_BROADCAST,  SCHED_GATHER,
	SCHED_SCATTER,	  SCHED_ALL_TO_ALL, SCHED_EXCHANGE,
};

static struct forms forms;

static void start(enum sched_collective collective, int n, int root,
		  int n_channels)
{
	forms.shape = (struct sched_shape){
		.collective = collective, .algo = SCHED_DIRECT, .n_ranks = n,
		.n_channels = n_channels, .root = root};
	forms_make(&forms);
	forms.n_slots = 1;
	forms.n_passes = 1;
	forms.absent = 0;
}

/* Messages of a pass and channel, of all ranks and of the busiest one. */
static uint32_t messages_wanted(enum sched_collective collective, uint32_t n,
				uint32_t *busiest)
{
	if (collective == SCHED_GATHER) {
		*busiest = n > 1;
		return n - 1;
	}
	*busiest = n - 1;
	return sched_is_rooted(collective) ? n - 1 : n * (n - 1);
}

static void check_counts(void)
{
	enum sched_collective collective = forms.shape.collective;
	uint32_t n = (uint32_t)forms.shape.n_ranks;
	uint32_t k = (uint32_t)forms.shape.n_channels;
	uint32_t busiest, from, to, chunk;

	forms_run(&forms);
	assert_int_equal(forms.n_pieces, k);
	assert_int_equal(forms.n_messages,
			 k * messages_wanted(collective, n, &busiest));
	assert_int_equal(forms_busiest(&forms), k * busiest);
	assert_int_equal(sched_generator(collective, SCHED_DIRECT)
				 ->sent_bound(&forms.shape, k), k * busiest);
	assert_int_equal(forms.depth, n > 1);
	for (from = 0; from < n; from++) {
		for (to = 0; to < n; to++) {
			for (chunk = 0; chunk < forms.n_chunks; chunk++)
				assert_true(forms.crossed[from][to][chunk] <=
					    1);
		}
	}
}

static void each_block_goes_once_from_who_has_it_to_who_wants_it(void **state)
{
	int n, root;
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(moving); i++) {
		bool rooted = sched_is_rooted(moving[i]);

		for (n = 1; n <= FORMS_RANKS; n++) {
			for (root = 0; root < (rooted ? n : 1); root++) {
				start(moving[i], n, root, 1 + (n + root) % 4);
				check_counts();
				forms_release(&forms);
			}
		}
	}
}

static void nothing_waits_forever_for_what_is_left_out(void **state)
{
	uint64_t seed = kit_seed();
	int n, times;
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(moving); i++) {
		for (n = 2; n <= FORMS_RANKS; n += 1 + n / 8) {
			start(moving[i], n, 0, 1 + n % 2);
			for (times = 0; times < 4; times++) {
				forms.n_slots = 1 + (uint32_t)times % 2;
				forms.n_passes = FORMS_PASSES;
				forms.absent = kit_random(&seed);
				forms_run(&forms);
			}
			forms_release(&forms);
		}
	}
}

/* Round by round, each rank is sent to once, and so each of a node's. */
static void a_round_sends_to_every_rank_and_node_alike(void **state)
{
	uint32_t n, by, rank;

	(void)state;
	for (n = 2; n <= FORMS_RANKS; n++) {
		start(SCHED_ALL_TO_ALL, (int)n, 0, 1);
		for (by = 1; by < n; by++) {
			bool met[FORMS_RANKS] = {false};

			for (rank = 0; rank < n; rank++) {
				const struct sched *sched = forms.scheds[rank];
				const struct sched_step *out, *in;
				uint32_t to = (rank + by) % n;

				assert_int_equal(sched->lanes[0].n_steps,
						 n - 1);
				out = &sched->steps[by - 1];
				assert_int_equal(sched->peers[out->send], to);
				assert_false(met[to]);
				met[to] = true;
				/* There it is taken in the same round. */
				sched = forms.scheds[to];
				in = &sched->steps[sched->lanes[1].step + by -
						   1];
				assert_int_equal(sched->peers[in->recv], rank);
			}
		}
		forms_release(&forms);
	}
}

/* With memory that all can reach, nothing goes through a slot. */
static void all_that_moves_is_raw_final_and_waited_for(void **state)
{
	const uint8_t out = SCHED_SEND_INPUT | SCHED_SEND_FINAL |
			    SCHED_SEND_AWAIT;
	const uint8_t in = SCHED_RECV_INPUT | SCHED_RECV_FINAL | SCHED_STORE;
	uint32_t j;
	int rank;
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(moving); i++) {
		start(moving[i], 5, 0, 2);
		for (rank = 0; rank < 5; rank++) {
			for (j = 0; j < forms.scheds[rank]->n_steps; j++) {
				const struct sched_step *step =
					&forms.scheds[rank]->steps[j];

				assert_int_equal(step->flags,
						 step->n_send	? out
						 : step->n_recv ? in
								: SCHED_STORE);
				assert_true(step->n_recv <= 1);
				assert_int_equal(step->local,
						 step->n_recv ? SCHED_NONE
							      : SCHED_INPUT);
			}
		}
		forms_release(&forms);
	}
}

/* A step has no more peers than a fold has targets, so any number of ranks. */
static void large_shapes_share_one_block_in_several_steps(void **state)
{
	static const enum sched_collective shared[] = {SCHED_ALL_GATHER,
						       SCHED_BROADCAST};
	struct sched *sched;
	uint32_t j, n_sent;
	size_t i;
	int n;

	(void)state;
	for (i = 0; i < base_countof(shared); i++) {
		for (n = 62; n <= SCHED_RANKS_MAX; n += 1 + 7 * n / 8) {
			struct sched_shape shape = {
				.collective = shared[i], .algo = SCHED_DIRECT,
				.n_ranks = n, .n_channels = 1};

			assert_int_equal(sched_make(&shape, 0, &sched), 0);
			n_sent = 0;
			for (j = 0; j < sched->lanes[0].n_steps; j++) {
				assert_in_range(sched->steps[j].n_send, 1,
						SCHED_DIRECT_RANKS_MAX - 1);
				n_sent += sched->steps[j].n_send;
			}
			assert_int_equal(n_sent, n - 1);
			assert_int_equal(sched->lanes[0].n_steps,
					 (n - 2) / (SCHED_DIRECT_RANKS_MAX -
						    1) + 1);
			sched_free(sched);
		}
	}
}

static void every_pairwise_form_is_proved_and_its_bound_is_met(void **state)
{
	static const struct prove_form rows[] = {
		{SCHED_ALL_GATHER, SCHED_DIRECT, 1, 1, 0},
		{SCHED_BROADCAST, SCHED_DIRECT, 1, 1, 0},
		{SCHED_GATHER, SCHED_DIRECT, 1, 1, 0},
		{SCHED_SCATTER, SCHED_DIRECT, 1, 1, 0},
		{SCHED_ALL_TO_ALL, SCHED_DIRECT, 1, 1, 0},
		{SCHED_EXCHANGE, SCHED_DIRECT, 1, 1, 0},
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
		cmocka_unit_test(
			each_block_goes_once_from_who_has_it_to_who_wants_it),
		cmocka_unit_test(nothing_waits_forever_for_what_is_left_out),
		cmocka_unit_test(a_round_sends_to_every_rank_and_node_alike),
		cmocka_unit_test(all_that_moves_is_raw_final_and_waited_for),
		cmocka_unit_test(
			large_shapes_share_one_block_in_several_steps),
		cmocka_unit_test(
			every_pairwise_form_is_proved_and_its_bound_is_met),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
