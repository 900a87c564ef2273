/* SPDX-License-Identifier: MIT */
/*
 * Goal: the ring's schedules are rings that follow the nodes, and do what
 * their collective means with as many messages as stated and no more.
 * Method: the schedules of all ranks, for every small number of ranks and
 * every root, are looked at step by step, run and counted; those of all_reduce
 * also by the judge in orders drawn by chance.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_orders.h"
#include "sched_prove.h"
#include "sched_walk.h"

#include "sched/draft.h"

#define N_RANKS 12

static void check_neighbours(const struct kit *kit, uint32_t channel)
{
	uint32_t n = (uint32_t)kit->n_ranks;
	uint32_t rank, i;

	for (rank = 0; rank < n; rank++) {
		const struct sched *sched = kit->scheds[rank];
		const struct sched_lane *lane = &sched->lanes[channel];
		uint32_t up = (rank + 1) % n;
		uint32_t down = (rank + n - 1) % n;

		assert_int_equal(lane->channel, channel);
		assert_int_equal(lane->n_steps, 2 * n - 1);
		for (i = 0; i < lane->n_steps; i++) {
			const struct sched_step *step =
				&sched->steps[lane->step + i];

			assert_int_equal(step->n_recv, i > 0);
			assert_int_equal(step->n_send, i < 2 * n - 2);
			assert_int_equal(step->send_lane,
					 step->n_send ? channel : 0);
			if (step->n_recv)
				assert_int_equal(sched->peers[step->recv],
						 channel % 2 ? up : down);
			if (step->n_send)
				assert_int_equal(sched->peers[step->send],
						 channel % 2 ? down : up);
		}
	}
}

static void ring_joins_neighbours_and_odd_channels_turn_back(void **state)
{
	struct kit kit;
	int n;
	uint32_t k;

	(void)state;
	for (n = 2; n <= N_RANKS; n++) {
		kit_make(&kit, SCHED_RING, n, SCHED_CHANNELS_MAX);
		for (k = 0; k < SCHED_CHANNELS_MAX; k++)
			check_neighbours(&kit, k);
		kit_release(&kit);
	}
}

static void ring_folds_what_came_before_what_is_here(void **state)
{
	struct kit kit;
	uint32_t i;
	int rank;

	(void)state;
	kit_make(&kit, SCHED_RING, 5, 2);
	for (rank = 0; rank < 5; rank++) {
		for (i = 0; i < kit.scheds[rank]->n_steps; i++) {
			const struct sched_step *step =
				&kit.scheds[rank]->steps[i];

			if (step->local)
				assert_int_equal(step->local_at, step->n_recv);
		}
	}
	kit_release(&kit);
}

static void ring_stores_every_chunk_once_and_sends_results_final(void **state)
{
	struct kit kit;
	int n, rank;

	(void)state;
	for (n = 2; n <= N_RANKS; n++) {
		kit_make(&kit, SCHED_RING, n, 3);
		for (rank = 0; rank < n; rank++) {
			const struct sched *sched = kit.scheds[rank];
			int stored[3 * N_RANKS] = {0};
			uint32_t i;

			assert_int_equal(sched->n_chunks, 3 * n);
			for (i = 0; i < sched->n_steps; i++) {
				const struct sched_step *step =
					&sched->steps[i];
				bool stores = step->flags & SCHED_STORE;
				bool finals = step->flags & SCHED_SEND_FINAL;

				stored[step->chunk] += stores;
				assert_int_equal(finals,
						 stores && step->n_send);
			}
			for (i = 0; i < sched->n_chunks; i++)
				assert_int_equal(stored[i], 1);
		}
		kit_release(&kit);
	}
}

static void ring_reduces_every_chunk_once_in_any_order(void **state)
{
	(void)state;
	orders_reduce(SCHED_RING, 2);
}

static const enum sched_collective ringed[] = {
	SCHED_ALL_REDUCE, SCHED_REDUCE_SCATTER, SCHED_ALL_GATHER,
	SCHED_BROADCAST,  SCHED_REDUCE,
};

static struct forms forms;

static uint32_t channel_of(uint32_t chunk)
{
	return chunk % forms.n_pieces /
	       (forms.n_pieces / (uint32_t)forms.shape.n_channels);
}

static uint32_t place_of(uint32_t rank)
{
	uint32_t place = 0;

	while (forms.order[place] != rank)
		place++;
	return place;
}

/* The rank @links ahead of @place, the way that the chunk's channel runs. */
static uint32_t rank_from(uint32_t place, uint32_t links, uint32_t chunk)
{
	uint32_t n = (uint32_t)forms.shape.n_ranks;

	links = channel_of(chunk) % 2 ? 2 * n - links : links;
	return forms.order[(place + links) % n];
}

/* A fold begins where it need not be, and ends where it must. */
static uint32_t nth_of_ring(const struct forms *of, uint32_t chunk, uint32_t i)
{
	uint32_t n = (uint32_t)of->shape.n_ranks;

	switch (of->shape.collective) {
	case SCHED_REDUCE_SCATTER:
		return rank_from(place_of(chunk / of->n_pieces), i + 1, chunk);
	case SCHED_REDUCE:
		return rank_from(place_of((uint32_t)of->shape.root), i + 1,
				 chunk);
	default:
		return rank_from(chunk % n, i, chunk);
	}
}

static void start(enum sched_collective collective, int n, int root,
		  enum forms_layout layout, uint32_t n_nodes, uint64_t *seed)
{
	forms.shape = (struct sched_shape){
		.collective = collective, .algo = SCHED_RING, .n_ranks = n,
		.n_channels = 1 + (n + root) % SCHED_CHANNELS_MAX,
		.root = root};
	forms_lay_out(&forms, layout, n_nodes, seed);
	forms_make(&forms);
	forms.nth = nth_of_ring;
	forms.n_slots = 2;
	forms.n_passes = 1;
	forms.absent = 0;
}

/*
 * Each link is one of the ring's, and is crossed by a chunk once a half; of
 * those that are used no more join two nodes than there are nodes.
 */
static void check_links(uint32_t most)
{
	uint32_t n = (uint32_t)forms.shape.n_ranks;
	uint32_t from, to, chunk;
	uint32_t n_between[SCHED_CHANNELS_MAX] = {0};

	for (from = 0; from < n; from++) {
		for (to = 0; to < n; to++) {
			uint32_t is_used = 0;

			for (chunk = 0; chunk < forms.n_chunks; chunk++) {
				uint32_t by = forms.crossed[from][to][chunk];

				assert_true(by <= most);
				if (!by)
					continue;
				is_used |= 1u << channel_of(chunk);
				assert_int_equal(
					rank_from(place_of(from), 1, chunk),
					to);
			}
			if (sched_node_of(&forms.shape, (int)from) ==
			    sched_node_of(&forms.shape, (int)to))
				continue;
			for (chunk = 0; chunk < SCHED_CHANNELS_MAX; chunk++)
				n_between[chunk] += is_used >> chunk & 1;
		}
	}
	for (chunk = 0; chunk < SCHED_CHANNELS_MAX; chunk++)
		assert_true(n_between[chunk] <=
			    (forms.shape.n_nodes == 1
				     ? 0 : (uint32_t)forms.shape.n_nodes));
}

static void check_counts(void)
{
	uint32_t n = (uint32_t)forms.shape.n_ranks;
	enum sched_collective collective = forms.shape.collective;
	uint32_t halves = collective == SCHED_ALL_REDUCE ? 2 : 1;
	uint32_t n_sent = (n - 1) * forms.n_chunks * halves;
	/* The chain's last rank sends nothing, the ring's ranks all alike. */
	uint32_t busiest = sched_is_rooted(collective)
				   ? (n > 1 ? forms.n_pieces : 0)
				   : n_sent / n;

	forms_run(&forms);
	assert_int_equal(forms.n_messages, n_sent);
	assert_int_equal(forms_busiest(&forms), busiest);
	assert_int_equal(sched_generator(collective, SCHED_RING)
				 ->sent_bound(&forms.shape, forms.n_pieces),
			 busiest);
	assert_int_equal(forms.depth, halves * (n - 1));
	check_links(halves);
}

static void each_block_goes_around_once_and_nodes_stay_together(void **state)
{
	uint64_t seed = kit_seed();
	size_t i;
	int n, root;

	(void)state;
	for (i = 0; i < base_countof(ringed); i++) {
		bool rooted = sched_is_rooted(ringed[i]);

		for (n = 1; n <= FORMS_RANKS; n++) {
			for (root = 0; root < (rooted ? n : 6); root++) {
				uint32_t n_nodes =
					1 + kit_below(&seed, (uint32_t)n);
				enum forms_layout layout =
					(enum forms_layout)((n + root) %
							    FORMS_N_LAYOUTS);

				start(ringed[i], n, rooted ? root : 0, layout,
				      n_nodes, &seed);
				check_counts();
				forms_release(&forms);
			}
		}
	}
}

/* Of blocks of unequal length the shorter ones are left out in the end. */
static void nothing_waits_forever_for_what_is_left_out(void **state)
{
	uint64_t seed = kit_seed();
	int n, times;
	size_t i;

	(void)state;
	for (i = 1; i < base_countof(ringed); i++) {
		for (n = 2; n <= FORMS_RANKS; n += 1 + n / 8) {
			start(ringed[i], n, 0, FORMS_DEALT, 1 + (uint32_t)n / 3,
			      &seed);
			forms.n_passes = FORMS_PASSES;
			for (times = 0; times < 4; times++) {
				forms.absent = kit_random(&seed);
				forms_run(&forms);
			}
			forms_release(&forms);
		}
	}
}

/* What a pass brings late must not wait for the whole of the pass before. */
static void a_chain_passes_on_each_piece_as_it_comes(void **state)
{
	uint64_t seed = kit_seed();
	uint32_t rank, j;

	(void)state;
	start(SCHED_BROADCAST, 7, 3, FORMS_PLAIN, 1, &seed);
	for (rank = 0; rank < 7; rank++) {
		const struct sched *sched = forms.scheds[rank];

		assert_true(forms.n_pieces > (uint32_t)forms.shape.n_channels);
		for (j = 0; j < sched->n_steps; j++) {
			assert_int_equal(sched->steps[j].chunk, j);
			assert_int_equal(sched->steps[j].n_recv, rank != 3);
		}
	}
	forms_release(&forms);
}

static void every_ring_is_proved_for_any_root_and_meets_its_bound(void **state)
{
	static const struct prove_form rows[] = {
		{SCHED_ALL_REDUCE, SCHED_RING, 2, 0, 2},
		{SCHED_BARRIER, SCHED_RING, 2, 0, 2},
		{SCHED_REDUCE_SCATTER, SCHED_RING, 2, 0, 1},
		{SCHED_ALL_GATHER, SCHED_RING, 2, 0, 1},
		{SCHED_BROADCAST, SCHED_RING, 1, 0, 1},
		{SCHED_REDUCE, SCHED_RING, 1, 0, 1},
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
			ring_joins_neighbours_and_odd_channels_turn_back),
		cmocka_unit_test(ring_folds_what_came_before_what_is_here),
		cmocka_unit_test(
			ring_stores_every_chunk_once_and_sends_results_final),
		cmocka_unit_test(ring_reduces_every_chunk_once_in_any_order),
		cmocka_unit_test(
			each_block_goes_around_once_and_nodes_stay_together),
		cmocka_unit_test(nothing_waits_forever_for_what_is_left_out),
		cmocka_unit_test(a_chain_passes_on_each_piece_as_it_comes),
		cmocka_unit_test(
			every_ring_is_proved_for_any_root_and_meets_its_bound),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
