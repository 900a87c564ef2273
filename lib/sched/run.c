/* SPDX-License-Identifier: MIT */
/*
 * One run stands for all.
 *
 * A step has conditions, each of the form "that lane has done so many steps":
 * the senders of its messages have sent, the takers of the messages that fill
 * its places in the slots have taken, the step that it runs after has run.
 * Steps done are never undone, so a condition once met stays met, and a step
 * that can run can run until it does, whatever else happens in between.  Hence
 * two steps that can both run can run in either order and lead to the same
 * state, and all runs that go on for as long as they can do the same steps: if
 * one comes to its end, each does, and if one deadlocks, each does.  (This is
 * what Kahn showed of processes joined by queues with one writer and one
 * reader; a bounded queue is two, the places flowing back.)
 *
 * An executor which gives a slot back before the whole step is done, or sends
 * to one peer before there is room at the next, meets its conditions earlier
 * than this, and so does not deadlock either.
 *
 * The number of passes does not matter: every message of a pass is taken in
 * it, so where a pass can be done from empty slots, the next can too, and
 * that is one run of any number of passes.  Two are run all the same, with
 * lanes as far ahead as their slots let them, so that this stands on more than
 * an argument.
 *
 * Nor do chunks that are empty, in whichever passes: blocks of a length of
 * their own, channels of unequal weight, and the absent blocks of an exchange.
 * All steps of such a chunk do nothing, at both ends of each of its messages
 * (match.c: the two are of one cell).  Take the run that comes to its end, and
 * in it let those steps do nothing, which they can at any time.  Every other
 * step can still run where it stands: its messages have been sent, since their
 * senders are of its cell and do what they did; the lane that it runs after
 * has come as far; and its places are free, for a queue that leaves out
 * messages has its nth message back no later than before, and that one has
 * been taken: takers are passed in the order of the queue.  So there is a run
 * that comes to its end, hence all do.
 */
#include <inttypes.h>

#include "verify.h"

#define N_PASSES 2

struct run {
	struct verify *verify;
	uint32_t *ready; /* a stack of lanes; a lane is on it once at most */
	uint32_t n_ready;
	uint32_t n_ordered; /* nodes run in the first pass */
};

struct condition {
	uint32_t lane;
	uint64_t done;
};

static uint32_t lane_of(const struct verify *verify, uint32_t node)
{
	return verify->nodes[node].rank * verify->n_lanes +
	       verify->nodes[node].lane;
}

/* "@node has run in pass @pass." */
static struct condition has_run(const struct verify *verify, uint32_t node,
				uint64_t pass)
{
	uint32_t lane = lane_of(verify, node);

	return (struct condition){lane, pass * verify->lanes[lane].n_steps +
						verify->nodes[node].at + 1};
}

/* "The message whose slot @message is to use has been taken." */
static struct condition has_room(const struct verify *verify,
				 const struct verify_message *message,
				 uint64_t pass)
{
	const struct verify_queue *queue = &verify->queues[message->queue];
	uint64_t nth = pass * queue->n_sent + message->at;
	uint32_t before;

	if (nth < verify->n_slots)
		return (struct condition){0, 0};
	nth -= verify->n_slots;
	before = queue->message + (uint32_t)(nth % queue->n_sent);
	return has_run(verify, verify->messages[before].to,
		       nth / queue->n_sent);
}

static struct condition condition_at(const struct verify *verify,
				     const struct verify_node *node,
				     uint64_t pass, uint32_t at)
{
	const struct sched_step *step = node->step;
	uint32_t message;

	if (at < step->n_recv) {
		message = verify->taken[node->taken + at];
		return has_run(verify, verify->messages[message].from, pass);
	}
	at -= step->n_recv;
	if (at < step->n_send) {
		message = verify->sent[node->sent + at];
		return has_room(verify, &verify->messages[message], pass);
	}
	return has_run(verify, verify_after(verify, node), pass);
}

static uint32_t n_conditions(const struct sched_step *step)
{
	return step->n_recv + step->n_send + (step->after_lane >= 0);
}

static const struct verify_node *next_node(const struct verify *verify,
					   const struct verify_lane *lane)
{
	return &verify->nodes[lane->node + lane->done % lane->n_steps];
}

/* Run a lane's steps until one has to wait; then it is in a list. */
static void run_lane(struct run *run, uint32_t at)
{
	struct verify *verify = run->verify;
	struct verify_lane *lane = &verify->lanes[at];
	uint64_t end = (uint64_t)lane->n_steps * N_PASSES;

	while (lane->done < end) {
		const struct verify_node *node = next_node(verify, lane);
		uint32_t n = n_conditions(node->step);

		for (; lane->condition < n; lane->condition++) {
			struct condition c = condition_at(
				verify, node, lane->done / lane->n_steps,
				lane->condition);

			if (verify->lanes[c.lane].done >= c.done)
				continue;
			lane->awaits = c.lane;
			lane->until = c.done;
			lane->next = verify->lanes[c.lane].waiters;
			verify->lanes[c.lane].waiters = at;
			return;
		}
		if (lane->done < lane->n_steps)
			verify->order[run->n_ordered++] =
				(uint32_t)(node - verify->nodes);
		lane->condition = 0;
		lane->done++;
	}
}

/* Those who wait for @at are ready, or go on waiting. */
static void wake(struct run *run, uint32_t at)
{
	struct verify_lane *lanes = run->verify->lanes;
	uint32_t waiter = lanes[at].waiters;

	lanes[at].waiters = VERIFY_NONE;
	while (waiter != VERIFY_NONE) {
		uint32_t next = lanes[waiter].next;

		if (lanes[waiter].until <= lanes[at].done) {
			run->ready[run->n_ready++] = waiter;
		} else {
			lanes[waiter].next = lanes[at].waiters;
			lanes[at].waiters = waiter;
		}
		waiter = next;
	}
}

static bool is_stuck(const struct verify_lane *lane)
{
	return lane->done < (uint64_t)lane->n_steps * N_PASSES;
}

/*
 * Whoever is stuck waits for another that is, so following them ends in a
 * circle; as many hops as there are lanes are certainly in it.
 */
static int report_deadlock(const struct verify *verify, uint32_t at)
{
	const struct verify_node *node, *other;
	uint32_t i;

	for (i = 0; i < verify->n_ranks * verify->n_lanes; i++)
		at = verify->lanes[at].awaits;
	node = next_node(verify, &verify->lanes[at]);
	other = next_node(verify, &verify->lanes[verify->lanes[at].awaits]);
	i = verify->lanes[at].condition;
	return verify_refuse(
		node->rank, node->lane, node->at,
		"a deadlock with %" PRIu32 " slots: it waits for %s, and "
		"rank %" PRIu32 " lane %" PRIu32 " step %" PRIu32
		" waits in a circle with it",
		verify->n_slots,
		i < node->step->n_recv ? "a message"
		: i < node->step->n_recv + node->step->n_send
			? "room at a peer"
			: "the step that it runs after",
		other->rank, other->lane, other->at);
}

int verify_run(struct verify *verify)
{
	uint32_t n_lanes = verify->n_ranks * verify->n_lanes;
	struct run run = {.verify = verify};
	uint32_t i;
	int err = 0;

	run.ready = base_alloc(n_lanes, sizeof(*run.ready));
	if (!run.ready)
		return WREATH_ENOMEM;
	for (i = 0; i < n_lanes; i++) {
		verify->lanes[i].waiters = VERIFY_NONE;
		/* Popped from the end: rank 0 comes first. */
		run.ready[run.n_ready++] = n_lanes - 1 - i;
	}
	while (run.n_ready) {
		uint32_t at = run.ready[--run.n_ready];

		run_lane(&run, at);
		wake(&run, at);
	}
	for (i = 0; !err && i < n_lanes; i++) {
		if (is_stuck(&verify->lanes[i]))
			err = report_deadlock(verify, i);
	}
	base_free(run.ready);
	return err;
}
