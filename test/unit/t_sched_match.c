/* SPDX-License-Identifier: MIT */
/*
 * Goal: a message that nobody takes, that nobody sends, or that is taken for
 * another one is found.
 * Method: every step and every peer of small schedules is dropped or changed
 * in turn; each such schedule must be refused.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_judge.h"

/* Called with a copy of each schedule, and one of its steps. */
typedef bool (*change_fn)(struct kit *kit, struct sched *sched, uint32_t lane,
			  uint32_t at);

/* Change every step of every rank in turn; how many changes were refused. */
static int refuse_each(change_fn change, int n_ranks)
{
	struct kit made, kit;
	int algo, rank;
	uint32_t lane, at;
	int n = 0;

	for (algo = 0; algo < (int)base_countof(kit_algos); algo++) {
		kit_make(&made, kit_algos[algo], n_ranks, 2);
		for (rank = 0; rank < n_ranks; rank++) {
			const struct sched *sched = made.scheds[rank];

			for (lane = 0; lane < sched->n_lanes; lane++) {
				for (at = 0; at < sched->lanes[lane].n_steps;
				     at++) {
					kit_copy_all(&kit, &made);
					if (change(&kit, kit.scheds[rank],
						   lane, at)) {
						kit_refused(&kit, 3, false,
							    "rank ");
						n++;
					}
					kit_release(&kit);
				}
			}
		}
		kit_release(&made);
	}
	return n;
}

static bool drop(struct kit *kit, struct sched *sched, uint32_t lane,
		 uint32_t at)
{
	(void)kit;
	kit_drop_step(sched, lane, at);
	return true;
}

static void a_dropped_step_is_refused(void **state)
{
	(void)state;
	assert_int_equal(refuse_each(drop, 4), 4 * 2 * (7 + 2 + 7));
	refuse_each(drop, 2);
}

static bool swap_peers(struct kit *kit, struct sched *sched, uint32_t lane,
		       uint32_t at)
{
	struct sched_step *step = &sched->steps[sched->lanes[lane].step + at];
	uint32_t recv;

	(void)kit;
	if (!step->n_recv || !step->n_send)
		return false;
	recv = sched->peers[step->recv];
	if (recv == sched->peers[step->send])
		return false;
	sched->peers[step->recv] = sched->peers[step->send];
	sched->peers[step->send] = recv;
	return true;
}

static void swapped_peers_are_refused(void **state)
{
	(void)state;
	assert_true(refuse_each(swap_peers, 5) > 50);
}

static bool next_peer(struct kit *kit, struct sched *sched, uint32_t lane,
		      uint32_t at)
{
	struct sched_step *step = &sched->steps[sched->lanes[lane].step + at];
	uint32_t *peer = &sched->peers[step->n_send ? step->send : step->recv];

	do {
		*peer = (*peer + 1) % (uint32_t)kit->n_ranks;
	} while ((int)*peer == sched->rank);
	return true;
}

static void another_peer_is_refused(void **state)
{
	(void)state;
	assert_true(refuse_each(next_peer, 4) > 100);
}

static bool next_chunk(struct kit *kit, struct sched *sched, uint32_t lane,
		       uint32_t at)
{
	struct sched_step *step = &sched->steps[sched->lanes[lane].step + at];

	(void)kit;
	step->chunk = (step->chunk + 1) % sched->n_chunks;
	return true;
}

static void a_wrong_chunk_is_refused(void **state)
{
	(void)state;
	assert_int_equal(refuse_each(next_chunk, 4), 4 * 2 * (7 + 2 + 7));
}

static bool next_lane(struct kit *kit, struct sched *sched, uint32_t lane,
		      uint32_t at)
{
	struct sched_step *step = &sched->steps[sched->lanes[lane].step + at];

	(void)kit;
	step->send_lane = (step->send_lane + 1) % sched->n_lanes;
	return step->n_send > 0;
}

static void another_lane_is_refused(void **state)
{
	(void)state;
	assert_true(refuse_each(next_lane, 4) > 50);
}

static bool flip_final(struct kit *kit, struct sched *sched, uint32_t lane,
		       uint32_t at)
{
	struct sched_step *step = &sched->steps[sched->lanes[lane].step + at];

	(void)kit;
	if (!step->n_send)
		return false;
	step->flags ^= SCHED_SEND_FINAL;
	return true;
}

static void final_at_one_end_only_is_refused(void **state)
{
	(void)state;
	assert_true(refuse_each(flip_final, 4) > 50);
}

static bool flip_input(struct kit *kit, struct sched *sched, uint32_t lane,
		       uint32_t at)
{
	struct sched_step *step = &sched->steps[sched->lanes[lane].step + at];

	(void)kit;
	if (!step->n_send)
		return false;
	step->flags ^= SCHED_SEND_INPUT;
	return true;
}

static void raw_input_at_one_end_only_is_refused(void **state)
{
	(void)state;
	assert_true(refuse_each(flip_input, 4) > 50);
}

static void a_message_left_over_is_refused(void **state)
{
	struct kit kit, made;

	(void)state;
	kit_make(&made, SCHED_TWOSHOT, 3, 1);
	kit_copy_all(&kit, &made);
	kit_release(&made);
	/* Rank 2's lane 2 takes from 1 and 0; it stops before the latter. */
	kit_drop_step(kit.scheds[2], 2, 1);
	kit_refused(&kit, 2, false,
		    "rank 0 lane 1 step 0: rank 2 lane 2 takes 0 of the 1 "
		    "messages sent a pass: one is left over");
	kit_release(&kit);
}

/* Two lanes into one: the receiver cannot know which comes first. */
static void two_senders_of_one_queue_are_refused(void **state)
{
	struct kit kit;

	(void)state;
	kit_blank(&kit, 2, 2, 2);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0);
	kit_add(&kit, 0, 1, 1, -1, SCHED_INPUT, 1, 0);
	kit_add(&kit, 1, 0, 0, 0, SCHED_INPUT, -1, 0);
	kit_add(&kit, 1, 0, 1, 0, SCHED_INPUT, -1, 0);
	kit_refused(&kit, 2, false,
		    "rank 0 lane 1 step 0: sends to rank 1 lane 0, as lane 0 "
		    "does");
	kit_release(&kit);
}

/* The root may add what comes from two sides; others have no output. */
static void lanes_of_two_peers_may_share_a_box(void **state)
{
	struct sched_shape shape = {.collective = SCHED_REDUCE,
				    .algo = SCHED_DIRECT, .n_ranks = 3,
				    .n_channels = 1, .root = 1};
	struct sched_step *step;
	struct kit kit;
	int rank;

	(void)state;
	kit_blank_shape(&kit, &shape, 2, 1);
	kit_add(&kit, 0, 0, 0, -1, SCHED_INPUT, 1, 0);
	kit_add(&kit, 2, 0, 0, -1, SCHED_INPUT, 1, 1);
	kit_add(&kit, 1, 0, 0, 0, SCHED_INPUT, -1, 0)->flags = SCHED_STORE;
	step = kit_add(&kit, 1, 1, 0, 2, SCHED_OUTPUT, -1, 0);
	step->flags = SCHED_STORE;
	step->after_lane = 0;
	step->after_step = 0;
	kit_proved(&kit, 1, true);
	for (rank = 0; rank < 3; rank++)
		kit.scheds[rank]->lanes[1].box = 0;
	kit_proved(&kit, 1, true);
	kit_release(&kit);
}

static void lanes_of_one_peer_may_not_share_a_box(void **state)
{
	struct sched_shape shape = {.collective = SCHED_BROADCAST,
				    .algo = SCHED_RING, .n_ranks = 2,
				    .n_channels = 1};
	struct kit kit;
	uint32_t i;
	int rank;

	(void)state;
	kit_blank_shape(&kit, &shape, 2, 2);
	for (i = 0; i < 2; i++) {
		kit_add(&kit, 0, i, i, -1, SCHED_INPUT, 1, i)->flags =
			SCHED_STORE;
		kit_add(&kit, 1, i, i, 0, SCHED_NONE, -1, 0)->flags =
			SCHED_STORE;
	}
	kit_proved(&kit, 1, false);
	for (rank = 0; rank < 2; rank++)
		kit.scheds[rank]->lanes[1].box = 0;
	kit_refused(&kit, 2, false,
		    "rank 0 lane 1 step 0: lanes 0 and 1 of rank 1 both take "
		    "from rank 0 in box 0 of channel 0");
	assert_non_null(judge_run(&kit, 2, false, 1));
	kit_release(&kit);
}

/* Sent into the one lane, in order, and taken by both, in whichever order. */
static void a_box_is_not_emptied_by_two_lanes(void **state)
{
	struct sched_shape shape = {.collective = SCHED_BROADCAST,
				    .algo = SCHED_RING, .n_ranks = 2,
				    .n_channels = 1};
	struct kit kit;
	uint32_t i;

	(void)state;
	kit_blank_shape(&kit, &shape, 2, 2);
	for (i = 0; i < 2; i++) {
		kit_add(&kit, 0, 0, i, -1, SCHED_INPUT, 1, 0)->flags =
			SCHED_STORE;
		kit_add(&kit, 1, i, i, 0, SCHED_NONE, -1, 0)->flags =
			SCHED_STORE;
		kit.scheds[i]->lanes[1].box = 0;
	}
	kit_refused(&kit, 2, false,
		    "rank 1 lane 1 step 0: lanes 0 and 1 of rank 1 both take "
		    "from rank 0 in box 0 of channel 0");
	kit_release(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dropped_step_is_refused),
		cmocka_unit_test(swapped_peers_are_refused),
		cmocka_unit_test(another_peer_is_refused),
		cmocka_unit_test(a_wrong_chunk_is_refused),
		cmocka_unit_test(another_lane_is_refused),
		cmocka_unit_test(final_at_one_end_only_is_refused),
		cmocka_unit_test(raw_input_at_one_end_only_is_refused),
		cmocka_unit_test(a_message_left_over_is_refused),
		cmocka_unit_test(two_senders_of_one_queue_are_refused),
		cmocka_unit_test(lanes_of_two_peers_may_share_a_box),
		cmocka_unit_test(lanes_of_one_peer_may_not_share_a_box),
		cmocka_unit_test(a_box_is_not_emptied_by_two_lanes),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
