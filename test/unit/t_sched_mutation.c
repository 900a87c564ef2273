/* SPDX-License-Identifier: MIT */
/*
 * Goal: no damage to a schedule escapes the verifier.
 * Method: schedules of the generators are damaged at random, once or more.
 * What the verifier refuses is done with.  What it accepts is either the same
 * schedule, or has to be an equivalent one: then the judge runs it in many
 * random orders, in place and with every number of slots from the one proved
 * on, and finds the right sums, alike on all ranks, every time, and no rank
 * sends more than before.  The judge shares no code with the verifier, and has
 * no notion of a proof, so that an error would have to be made twice.
 */
#include "sched_all.h"

#define N_MUTANTS (KIT_IS_SLOW ? 4000 : 25000)
#define N_ORDERS 12
#define N_RANKS 6
/* Damage that changes nothing is tried again so often. */
#define N_TRIES 4

struct mutant {
	struct kit kit;
	struct sched *sched; /* the damaged rank's */
	struct sched_step *step;
	uint64_t *random;
};

static uint32_t below(struct mutant *mutant, uint32_t n)
{
	return kit_below(mutant->random, n);
}

static void change_field(struct mutant *mutant)
{
	struct sched *sched = mutant->sched;
	struct sched_step *step = mutant->step;

	switch (below(mutant, 9)) {
	case 0:
		step->chunk = below(mutant, sched->n_chunks + 1);
		break;
	case 1:
		step->flags ^= (uint8_t)(1u << below(mutant, 6));
		break;
	case 2:
		step->local = (uint8_t)below(mutant, 3);
		break;
	case 3:
		step->local_at = below(mutant, step->n_recv + 2);
		break;
	case 4:
		step->send_lane = below(mutant, sched->n_lanes + 1);
		break;
	case 5:
		step->n_recv -= step->n_recv > 0;
		break;
	case 6:
		step->n_send -= step->n_send > 0;
		break;
	case 7:
		step->after_lane = (int32_t)below(mutant, sched->n_lanes);
		step->after_step = (int32_t)below(
			mutant, sched->lanes[step->after_lane].n_steps);
		break;
	default:
		step->after_lane = -1;
		step->after_step = -1;
		break;
	}
}

static void change_peers(struct mutant *mutant)
{
	struct sched *sched = mutant->sched;
	struct sched_step *step = mutant->step;
	bool recv = below(mutant, 2);
	uint32_t n = recv ? step->n_recv : step->n_send;
	uint32_t *peers = sched->peers + (recv ? step->recv : step->send);
	uint32_t i, j, peer;

	if (!n)
		return;
	i = below(mutant, n);
	if (below(mutant, 2)) {
		peers[i] = below(mutant, (uint32_t)mutant->kit.n_ranks);
		return;
	}
	j = below(mutant, n);
	peer = peers[i];
	peers[i] = peers[j];
	peers[j] = peer;
}

static void change_steps(struct mutant *mutant, uint32_t lane, uint32_t at)
{
	struct sched *sched = mutant->sched;
	struct sched_step *step = mutant->step;
	uint32_t last = sched->lanes[lane].n_steps - 1;
	struct sched_step *other =
		&sched->steps[sched->lanes[lane].step +
			      below(mutant, last + 1)];
	struct sched_step moved = *step;

	switch (below(mutant, 3)) {
	case 0:
		kit_drop_step(sched, lane, at);
		break;
	case 1: /* overwrite one by another */
		*step = *other;
		break;
	default:
		*step = *other;
		*other = moved;
		break;
	}
}

static void damage_rank(struct mutant *mutant, uint32_t rank)
{
	uint32_t lane, at;

	mutant->sched = mutant->kit.scheds[rank];
	lane = below(mutant, mutant->sched->n_lanes);
	if (!mutant->sched->lanes[lane].n_steps)
		return;
	at = below(mutant, mutant->sched->lanes[lane].n_steps);
	mutant->step =
		&mutant->sched->steps[mutant->sched->lanes[lane].step + at];
	switch (below(mutant, 4)) {
	case 0:
		change_peers(mutant);
		break;
	case 1:
		change_steps(mutant, lane, at);
		break;
	default:
		change_field(mutant);
		break;
	}
}

/* A lane of all ranks is in another box. */
static void change_box(struct mutant *mutant)
{
	uint32_t lane = below(mutant, mutant->kit.scheds[0]->n_lanes);
	uint32_t box = below(mutant, SCHED_BOXES);
	int i;

	for (i = 0; i < mutant->kit.n_ranks; i++)
		mutant->kit.scheds[i]->lanes[lane].box = box;
}

/* The first hop is raw input; with two ranks the second is the answer. */
static void send_raw(struct kit *kit)
{
	uint32_t lane;
	int i;

	for (i = 0; i < kit->n_ranks; i++) {
		for (lane = 0; lane < kit->scheds[i]->n_lanes; lane++) {
			kit_step(kit, i, lane, 0)->flags |= SCHED_SEND_INPUT;
			kit_step(kit, i, lane, 1)->flags |= SCHED_RECV_INPUT;
		}
	}
}

/* One rank is damaged, or all alike, as by a generator that is wrong. */
static void damage(struct mutant *mutant)
{
	uint32_t n = (uint32_t)mutant->kit.n_ranks;
	uint64_t before;
	uint32_t i;

	if (!below(mutant, 12)) {
		change_box(mutant);
		return;
	}
	before = *mutant->random;
	if (below(mutant, 3)) {
		damage_rank(mutant, below(mutant, n));
		return;
	}
	for (i = 0; i < n; i++) {
		*mutant->random = before;
		below(mutant, 3);
		damage_rank(mutant, i);
	}
}

/* The judge's word, over many orders, on what the verifier accepted. */
static void check_accepted(const struct kit *kit, int n_slots, bool in_place,
			   uint64_t *random)
{
	int i;

	for (i = 0; i < N_ORDERS; i++) {
		uint32_t slots = (uint32_t)n_slots + (uint32_t)i % 3;
		const char *wrong;

		if (slots > JUDGE_SLOTS)
			slots = JUDGE_SLOTS;
		wrong = judge_run(kit, slots, in_place, kit_random(random));
		if (wrong) {
			char text[4096];
			int rank;

			for (rank = 0; rank < kit->n_ranks; rank++) {
				sched_print(kit->scheds[rank], text,
					    sizeof(text));
				print_message("%s\n", text);
			}
			fail_msg("accepted with %d slots%s, but %s", n_slots,
				 in_place ? " in place" : "", wrong);
		}
	}
}

static void damage_is_refused_or_changes_nothing(void **state)
{
	uint64_t random = kit_seed();
	int n_refused = 0;
	int n_same = 0;
	int n_equivalent = 0;
	int i;

	(void)state;
	for (i = 0; i < N_MUTANTS; i++) {
		struct mutant mutant = {.random = &random};
		bool in_place = kit_below(&random, 2);
		int n_damages = 1 + (int)kit_below(&random, 3) / 2;
		struct sched_shape shape;
		uint32_t nodes[N_RANKS];
		struct kit made;
		int n_slots;

		all_draw(&made, &shape, nodes, 2, N_RANKS, &random);
		in_place &= kit_has_in_place(shape.collective);
		n_slots = 1 + (int)kit_below(&random, 3);
		if (kit_verify(&made, n_slots, in_place))
			n_slots = 2;
		kit_proved(&made, n_slots, in_place);
		kit_copy_all(&mutant.kit, &made);
		if (shape.algo == SCHED_RING && shape.n_ranks == 2 &&
		    shape.collective == SCHED_ALL_REDUCE &&
		    kit_below(&random, 2))
			send_raw(&mutant.kit);
		do {
			damage(&mutant);
		} while (--n_damages > 0 || (n_damages > -N_TRIES &&
					   all_are_same(&mutant.kit, &made)));
		if (kit_verify(&mutant.kit, n_slots, in_place)) {
			/* The same schedule must not be refused, of course. */
			assert_false(all_are_same(&mutant.kit, &made));
			n_refused++;
		} else if (all_are_same(&mutant.kit, &made)) {
			n_same++;
		} else {
			n_equivalent++;
			check_accepted(&mutant.kit, n_slots, in_place,
				       &random);
		}
		kit_release(&mutant.kit);
		kit_release(&made);
	}
	print_message("%d damaged: %d refused, %d the same again, %d "
		      "equivalent\n",
		      N_MUTANTS, n_refused, n_same, n_equivalent);
	/* Were most accepted, the damage would not be worth its name. */
	assert_true(n_refused > N_MUTANTS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damage_is_refused_or_changes_nothing),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
