/* SPDX-License-Identifier: MIT */
/*
 * Goal: the verifier never follows an index out of its array, and names it.
 * Method: one field at a time of a proved schedule is set out of range; under
 * the address sanitizer a missed check is a crash.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_kit.h"

/* Rank 1 of a oneshot of 3: lane 0 sends to 2 and 0, lane 1 takes both. */
static void build(struct kit *kit)
{
	kit_make(kit, SCHED_ONESHOT, 3, 1);
	kit_proved(kit, 2, true);
}

static void a_list_past_the_peers_is_refused(void **state)
{
	struct sched_step *step;
	struct kit kit;

	(void)state;
	build(&kit);
	step = kit_step(&kit, 1, 1, 0);
	step->n_recv = 5;
	kit_refused(&kit, 2, true, "rank 1 lane 1 step 0: recv list");
	step->n_recv = UINT32_MAX;
	kit_refused(&kit, 2, true, "rank 1 lane 1 step 0: recv list");
	step->n_recv = 2;
	step->recv = UINT32_MAX;
	kit_refused(&kit, 2, true, "rank 1 lane 1 step 0: recv list");
	step = kit_step(&kit, 1, 0, 0);
	step->send = 3;
	kit_refused(&kit, 2, true, "rank 1 lane 0 step 0: send list");
	step->send = 0;
	step->n_send = UINT32_MAX;
	kit_refused(&kit, 2, true, "rank 1 lane 0 step 0: send list");
	kit_release(&kit);
}

static void a_peer_that_is_none_is_refused(void **state)
{
	struct kit kit;

	(void)state;
	build(&kit);
	kit.scheds[1]->peers[0] = 3;
	kit_refused(&kit, 2, true, "send names rank 3, not in [0, 3)");
	kit.scheds[1]->peers[0] = UINT32_MAX;
	kit_refused(&kit, 2, true, "send names rank 4294967295");
	kit.scheds[1]->peers[0] = 1;
	kit_refused(&kit, 2, true, "send names the rank itself");
	kit.scheds[1]->peers[0] = 0;
	kit_refused(&kit, 2, true, "send names rank 0 twice");
	kit.scheds[1]->peers[0] = 2;
	kit.scheds[1]->peers[2] = 2;
	kit_refused(&kit, 2, true, "recv names rank 2 twice");
	kit_release(&kit);
}

static void a_chunk_or_lane_out_of_range_is_refused(void **state)
{
	struct sched_step *step;
	struct kit kit;

	(void)state;
	build(&kit);
	step = kit_step(&kit, 1, 0, 0);
	step->chunk = 1;
	kit_refused(&kit, 2, true, "chunk 1 is not in [0, 1)");
	step->chunk = 0;
	step->send_lane = 2;
	kit_refused(&kit, 2, true, "send_lane 2 is not in [0, 2)");
	step->send_lane = 1;
	step = kit_step(&kit, 1, 1, 0);
	step->after_lane = 2;
	kit_refused(&kit, 2, true, "after_lane 2 is not in [0, 2)");
	step->after_lane = -2;
	kit_refused(&kit, 2, true, "after_lane -2");
	step->after_lane = -1;
	kit_refused(&kit, 2, true, "after_lane -1");
	step->after_lane = 0;
	step->after_step = 1;
	kit_refused(&kit, 2, true, "after_step 1 is not in [0, 1)");
	step->after_step = -1;
	kit_refused(&kit, 2, true, "after_step -1");
	kit_release(&kit);
}

static void flags_that_contradict_a_step_are_refused(void **state)
{
	struct sched_step *step;
	struct kit kit;

	(void)state;
	build(&kit);
	step = kit_step(&kit, 1, 1, 0);
	step->flags |= 64;
	kit_refused(&kit, 2, true, "flags 0x41");
	step->flags = SCHED_STORE | SCHED_RECV_FINAL;
	kit_refused(&kit, 2, true, "a final chunk is stored as it comes");
	step->local = SCHED_NONE;
	kit_refused(&kit, 2, true, "a final chunk is stored as it comes");
	step->flags = SCHED_STORE | SCHED_SEND_FINAL;
	kit_refused(&kit, 2, true, "final chunk to nobody");
	step->flags = SCHED_STORE;
	step->local = 3;
	kit_refused(&kit, 2, true, "local 3");
	step->local = SCHED_INPUT;
	step->local_at = 3;
	kit_refused(&kit, 2, true, "local_at 3 is not in [0, 2]");
	step = kit_step(&kit, 1, 0, 0);
	step->local = SCHED_NONE;
	kit_refused(&kit, 2, true, "nothing to work on");
	kit_release(&kit);

	kit_make(&kit, SCHED_RING, 3, 1);
	step = kit_step(&kit, 1, 0, 3);
	step->flags = SCHED_RECV_FINAL | SCHED_SEND_FINAL;
	kit_refused(&kit, 2, true, "a final chunk is stored as it comes");
	step->flags |= SCHED_STORE;
	step->local = SCHED_OUTPUT;
	kit_refused(&kit, 2, true, "a final chunk is stored as it comes");
	kit_release(&kit);
}

static void raw_input_that_is_none_is_refused(void **state)
{
	struct sched_step *step;
	struct kit kit;

	(void)state;
	kit_make(&kit, SCHED_TWOSHOT, 3, 1);
	step = kit_step(&kit, 1, 0, 0);
	step->flags = SCHED_SEND_AWAIT;
	kit_refused(&kit, 2, true, "it is to await the readers of raw input "
				   "and sends none");
	step->flags = SCHED_SEND_INPUT;
	step->local = SCHED_OUTPUT;
	kit_refused(&kit, 2, true, "it is to send raw input and sends "
				   "something else");
	step->local = SCHED_INPUT;
	step->n_send = 0;
	kit_refused(&kit, 2, true, "it is to send raw input");
	step->n_send = 1;
	step->flags |= SCHED_RECV_INPUT;
	kit_refused(&kit, 2, true, "it is to take raw input from nobody");
	step->flags = SCHED_SEND_INPUT;
	step = kit_step(&kit, 1, 1, 0);
	step->flags = SCHED_STORE | SCHED_RECV_INPUT | SCHED_SEND_INPUT;
	kit_refused(&kit, 2, true, "it is to send raw input");
	kit_release(&kit);
}

static void lanes_that_do_not_share_out_the_steps_are_refused(void **state)
{
	struct sched *sched;
	struct kit kit;

	(void)state;
	build(&kit);
	sched = kit.scheds[1];
	sched->lanes[1].step = 0;
	kit_refused(&kit, 2, true, "rank 1 lane 1: steps");
	sched->lanes[1].step = 1;
	sched->lanes[1].n_steps = 2;
	kit_refused(&kit, 2, true, "rank 1 lane 1: steps");
	sched->lanes[1].n_steps = UINT32_MAX;
	kit_refused(&kit, 2, true, "rank 1 lane 1: steps");
	sched->lanes[1].n_steps = 0;
	kit_refused(&kit, 2, true, "rank 1: 1 of 2 steps are in no lane");
	sched->lanes[1].n_steps = 1;
	sched->lanes[1].channel = 1;
	kit_refused(&kit, 2, true, "rank 1 lane 1: channel 1");
	kit_release(&kit);
}

static void heads_that_differ_or_make_no_sense_are_refused(void **state)
{
	struct kit kit;
	int i;

	(void)state;
	build(&kit);
	kit.scheds[1]->n_lanes = 1;
	kit_refused(&kit, 2, true, "rank 1: n_lanes 1");
	for (i = 0; i < 3; i++)
		kit.scheds[i]->n_lanes = SCHED_LANES_MAX + 1;
	kit_refused(&kit, 2, true, "rank 0: n_lanes 65");
	for (i = 0; i < 3; i++)
		kit.scheds[i]->n_lanes = 2;
	kit.scheds[2]->n_chunks = 2;
	kit_refused(&kit, 2, true, "rank 2: n_chunks 2");
	kit.scheds[2]->n_chunks = 1;
	kit.scheds[2]->n_pieces = 2;
	kit_refused(&kit, 2, true, "rank 2: n_pieces 2");
	kit.scheds[2]->n_pieces = 1;
	kit.scheds[2]->n_blocks = 3;
	kit_refused(&kit, 2, true,
		    "rank 2: n_blocks 3 is not 1, as all_reduce has");
	kit.scheds[2]->n_blocks = 1;
	for (i = 0; i < 3; i++) {
		kit.scheds[i]->n_pieces = 0;
		kit.scheds[i]->n_chunks = 0;
	}
	kit_refused(&kit, 2, true, "rank 0: n_pieces 0");
	/* As many as no memory holds, and no step stores. */
	for (i = 0; i < 3; i++) {
		kit.scheds[i]->n_pieces = UINT32_MAX;
		kit.scheds[i]->n_chunks = UINT32_MAX;
	}
	kit_refused(&kit, 2, true, "4294967295 chunks to store and 6 steps");
	kit_release(&kit);
}

static void pieces_that_channels_cannot_share_are_refused(void **state)
{
	struct kit kit;
	int i;

	(void)state;
	kit_make(&kit, SCHED_ONESHOT, 3, 2);
	kit_step(&kit, 1, 0, 0)->chunk = 1;
	kit_refused(&kit, 2, true, "rank 1 lane 0 step 0: chunk 1 is channel "
				   "1's, the lane is channel 0's");
	for (i = 0; i < 3; i++) {
		kit.scheds[i]->n_pieces = 3;
		kit.scheds[i]->n_chunks = 3;
	}
	kit_refused(&kit, 2, true, "rank 0: n_pieces 3 is not that of rank 0, "
				   "3, or no multiple of the 2 channels");
	kit_release(&kit);
}

static void nodes_that_differ_are_refused(void **state)
{
	static const uint32_t nodes[][3] = {{0, 1, 1}, {0, 1, 1}, {0, 0, 1}};
	struct kit kit;

	(void)state;
	build(&kit);
	kit.scheds[0]->shape.n_nodes = 2;
	kit_refused(&kit, 2, true, "rank 1: its shape is not that of rank 0");
	kit.scheds[1]->shape.n_nodes = 2;
	kit.scheds[2]->shape.n_nodes = 2;
	kit_proved(&kit, 2, true);
	kit.scheds[0]->shape.nodes = nodes[0];
	kit_refused(&kit, 2, true, "rank 1: its shape is not that of rank 0");
	/* Equal lists, wherever they lie. */
	kit.scheds[1]->shape.nodes = nodes[1];
	kit.scheds[2]->shape.nodes = nodes[1];
	kit_proved(&kit, 2, true);
	kit.scheds[2]->shape.nodes = nodes[2];
	kit_refused(&kit, 2, true, "rank 2: its shape is not that of rank 0");
	kit_release(&kit);
}

static void boxes_that_are_none_are_refused(void **state)
{
	struct kit kit;
	int i;

	(void)state;
	build(&kit);
	kit.scheds[1]->lanes[1].box = 2;
	kit_refused(&kit, 2, true, "rank 1 lane 1: box 2 is not in [0, 3), or "
				   "not that of rank 0, 1");
	for (i = 0; i < 3; i++)
		kit.scheds[i]->lanes[1].box = SCHED_BOXES;
	kit_refused(&kit, 2, true, "rank 0 lane 1: box 3 is not in [0, 3)");
	kit_release(&kit);
}

/* Every field of a step, set to numbers that overflow when added to. */
static void no_value_of_any_field_leads_out_of_an_array(void **state)
{
	static const uint32_t values[] = {0, 1, 2, 3, 0x7fffffff, 0x80000000,
					  0xfffffffe, 0xffffffff};
	struct kit kit;
	size_t field, i;
	uint32_t at;

	(void)state;
	kit_make(&kit, SCHED_TWOSHOT, 3, 2);
	for (at = 0; at < kit.scheds[1]->n_steps; at++) {
		uint32_t *fields = (uint32_t *)&kit.scheds[1]->steps[at];

		for (field = 0; field < sizeof(struct sched_step) / 4;
		     field++) {
			uint32_t good = fields[field];

			for (i = 0; i < base_countof(values); i++) {
				fields[field] = values[i];
				kit_verify(&kit, 2, true);
			}
			fields[field] = good;
		}
	}
	kit_proved(&kit, 2, true);
	kit_release(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_past_the_peers_is_refused),
		cmocka_unit_test(a_peer_that_is_none_is_refused),
		cmocka_unit_test(a_chunk_or_lane_out_of_range_is_refused),
		cmocka_unit_test(flags_that_contradict_a_step_are_refused),
		cmocka_unit_test(raw_input_that_is_none_is_refused),
		cmocka_unit_test(
			lanes_that_do_not_share_out_the_steps_are_refused),
		cmocka_unit_test(
			heads_that_differ_or_make_no_sense_are_refused),
		cmocka_unit_test(pieces_that_channels_cannot_share_are_refused),
		cmocka_unit_test(nodes_that_differ_are_refused),
		cmocka_unit_test(boxes_that_are_none_are_refused),
		cmocka_unit_test(no_value_of_any_field_leads_out_of_an_array),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
