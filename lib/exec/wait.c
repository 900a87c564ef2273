/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>

#include "exec/inner.h"

#define MS 1000000ull

/* Idle for so long, a rank sleeps between looks: nobody is in a hurry. */
#define EXEC_BLOCK_AFTER_NS (20 * MS)
#define EXEC_BLOCK_MS 10
/* ... or shorter: what connects peers, and a GPU, come by another way. */
#define EXEC_APART_MS 1
/* How often a waiting rank looks whether the communicator has failed. */
#define EXEC_LOOK_NS (1 * MS)
/* ... and what its peers are doing: rarely, since it disturbs them. */
#define EXEC_ASK_NS (100 * MS)
/*
 * A yield that took longer ran somebody else: 2 us, or as many readings of the
 * clock where those alone take microseconds (a clock behind a system call, in
 * a virtual machine).
 */
#define EXEC_SWITCHED_NS 2000
#define EXEC_SWITCHED_READINGS 10
#define EXEC_ASK_TIMEOUT_MS 50
/* With a wrong message at hand only the answer can tell what is wrong. */
#define EXEC_MISMATCH_TIMEOUT_MS 1000

void exec_sign_text(const struct net_sign *sign, char *out, size_t size)
{
	enum sched_collective collective =
		(enum sched_collective)sign->collective;
	const char *name = sched_collective_name(collective);
	const char *algo = sched_algo_name((enum sched_algo)sign->algo);
	static const char *const others[] = {
		"the end of the communicator",
		"a split of the communicator",
		"a duplicate of the communicator",
	};
	char extra[64] = "";
	char what[32];
	size_t n = 0;

	if (sign->collective - SCHED_N_COLLECTIVES < base_countof(others)) {
		snprintf(out, size, "%s",
			 others[sign->collective - SCHED_N_COLLECTIVES]);
		return;
	}
	if (!name) {
		snprintf(out, size, "no collective that this version knows");
		return;
	}
	if (collective == SCHED_EXCHANGE || collective == SCHED_BARRIER) {
		snprintf(out, size, "%s", collective == SCHED_BARRIER
				 ? "barrier" : "a group of sends and receives");
		return;
	}
	if (sched_is_reducing(collective))
		n = (size_t)snprintf(extra, sizeof(extra), ", %s",
				     base_op_name(sign->op));
	if (sched_is_rooted(collective))
		snprintf(extra + n, sizeof(extra) - n, ", root %" PRIu32,
			 sign->root);
	if (sign->is_ragged)
		snprintf(what, sizeof(what), "lists #%08" PRIx32,
			 (uint32_t)sign->count);
	else
		snprintf(what, sizeof(what), "count %" PRIu64, sign->count);
	snprintf(out, size, "%s%s(%s, %s%s)%s%s", name,
		 sign->is_ragged ? "_v" : "", what,
		 base_type_name(sign->type), extra,
		 algo ? " by " : "", algo ? algo : "");
}

static int disagree(const struct exec_plan *plan, int peer,
		    const struct net_sign *theirs)
{
	const struct net_sign *mine = &plan->args->sign;
	char a[128], b[128];

	exec_sign_text(mine, a, sizeof(a));
	exec_sign_text(theirs, b, sizeof(b));
	return base_error(WREATH_EMISMATCH,
			  "operation %" PRIu64 " is %s on %s, but %s on %s; "
			  "every rank must make the same calls in the same "
			  "order", mine->seq, a,
			  plan->net->names[plan->net->rank], b,
			  plan->net->names[peer]);
}

/*
 * What is @conn's peer doing?  0 when it may still send what we wait for,
 * WREATH_EAGAIN when it is ahead of us, else the mismatch.
 */
static int ask(const struct exec_plan *plan, struct net_conn *conn,
	       int timeout_ms)
{
	const struct net_sign *mine = &plan->args->sign;
	struct net_sign theirs;
	int err = net_sign_read(conn, mine->seq, timeout_ms, &theirs);

	if (err == WREATH_EAGAIN)
		return 0;
	if (err)
		return err;
	if (theirs.seq != mine->seq)
		return WREATH_EAGAIN;
	if (theirs.count == mine->count && theirs.type == mine->type &&
	    theirs.op == mine->op && theirs.algo == mine->algo &&
	    theirs.collective == mine->collective &&
	    theirs.root == mine->root && theirs.is_ragged == mine->is_ragged)
		return 0;
	return disagree(plan, conn->peer, &theirs);
}

static int peer_is_ahead(const struct exec_plan *plan, int peer)
{
	return base_error(WREATH_EMISMATCH,
			  "%s has gone past operation %" PRIu64 " and sent "
			  "nothing for it, while %s waits in it; every rank "
			  "must make the same calls in the same order",
			  plan->net->names[peer], plan->args->sign.seq,
			  plan->net->names[plan->net->rank]);
}

/* Only the two know what they sent and expected, and each its own half. */
static int pair_mismatch(const struct exec_plan *plan, int peer,
			 uint32_t block)
{
	const struct exec_args *args = plan->args;
	size_t bytes = exec_block_bytes(&args->out, block);
	char what[128];

	exec_sign_text(&args->sign, what, sizeof(what));
	return base_error(WREATH_EMISMATCH,
			  "%s: %s expects %zu bytes of %s, which sent "
			  "something else; the counts of both must agree, and "
			  "the order of their calls", what,
			  plan->net->names[plan->net->rank], bytes,
			  plan->net->names[peer]);
}

/* The block that comes on @end. */
static uint32_t block_on(const struct exec_plan *plan,
			 const struct net_lane *end)
{
	uint32_t i;

	for (i = 0; plan->is_parted && i < plan->n_busy; i++) {
		const struct exec_step *step = plan->busy[i]->steps;

		if (step->n_recv && step->recv[0] == end)
			return step->block;
	}
	return plan->sched->shape.collective == SCHED_SCATTER
		       ? (uint32_t)plan->net->rank : (uint32_t)end->conn->peer;
}

int exec_mismatch(struct exec_plan *plan, const struct net_lane *lane)
{
	int timeout_ms = plan->guard.timeout_ms < EXEC_MISMATCH_TIMEOUT_MS
				 ? (int)plan->guard.timeout_ms
				 : EXEC_MISMATCH_TIMEOUT_MS;
	int err;

	if (plan->is_private)
		return pair_mismatch(plan, lane->conn->peer,
				     block_on(plan, lane));
	err = ask(plan, lane->conn, timeout_ms);

	if (err && err != WREATH_EAGAIN)
		return err;
	return base_error(WREATH_EMISMATCH,
			  "%s sent a message of another operation than %" PRIu64
			  ", which %s is in; every rank must make the same "
			  "calls in the same order",
			  plan->net->names[lane->conn->peer],
			  plan->args->sign.seq,
			  plan->net->names[plan->net->rank]);
}

/* Whom the lane waits for, or -1. */
static int awaited(const struct exec_lane *lane)
{
	if (lane->is_done)
		return -1;
	/* Who is not connected has no lane to wait for. */
	return lane->waits_for ? lane->waits_for->conn->peer : lane->peer;
}

static int ask_peers(struct exec_plan *plan, struct exec_wait *wait)
{
	bool is_suspect = false;
	uint32_t i;

	for (i = 0; i < plan->n_lanes; i++) {
		const struct exec_lane *lane = &plan->lanes[i];
		int peer = awaited(lane);
		int err;

		if (peer < 0)
			continue;
		err = plan->guard.left(plan->guard.arg, peer);
		/* Of sends and receives a peer may make others first. */
		if (!err && plan->args->sign.collective != SCHED_EXCHANGE)
			err = ask(plan, lane->waits_for->conn,
				  EXEC_ASK_TIMEOUT_MS);
		if (err && err != WREATH_EAGAIN)
			return err;
		/*
		 * A peer that is ahead may have sent its message just after we
		 * last looked for it: only one that is ahead twice, with
		 * nothing come in between, will never send it.
		 */
		is_suspect |= err == WREATH_EAGAIN;
		if (err && wait->n_suspects)
			return peer_is_ahead(plan, peer);
	}
	wait->n_suspects = is_suspect;
	return 0;
}

static int timed_out(const struct exec_plan *plan, uint64_t waited_ns)
{
	const struct exec_lane *lane = plan->lanes;
	int peer = -1;
	char what[128];
	uint32_t i;

	for (i = 0; i < plan->n_lanes && peer < 0; i++) {
		lane = &plan->lanes[i];
		peer = awaited(lane);
	}
	exec_sign_text(&plan->args->sign, what, sizeof(what));
	return base_error(
		WREATH_ETIMEOUT,
		"operation %" PRIu64 ", %s: %s waited %.1f s for %s (lane %u, "
		"step %u, pass %" PRIu64 " of %" PRIu64 "); is that process "
		"stopped, slow, or not in the call?  WREATH_TIMEOUT sets the "
		"deadline",
		plan->args->sign.seq, what, plan->net->names[plan->net->rank],
		(double)waited_ns / 1e9,
		peer >= 0 ? plan->net->names[peer]
			  : plan->n_jobs ? "its GPU" : "nobody",
		(unsigned int)(lane - plan->lanes), lane->step, lane->pass,
		plan->is_parted ? lane->n_passes : plan->n_passes);
}

static int look(struct exec_plan *plan, struct exec_wait *wait, uint64_t now)
{
	uint64_t waited = now - wait->start_ns;
	int err = plan->guard.stopped(plan->guard.arg);

	wait->look_ns = now;
	if (!err)
		err = net_fail_heard(plan->net);
	plan->stuck_since_ns = wait->start_ns;
	plan->is_told = err != 0;
	if (!err)
		err = net_poll(plan->net);
	if (!err)
		err = net_watch(plan->net);
	if (err)
		return err;
	if (waited > (uint64_t)plan->guard.timeout_ms * MS) {
		err = net_overdue(plan->net);
		return err ? err : timed_out(plan, waited);
	}
	if (now - wait->ask_ns > EXEC_ASK_NS) {
		wait->ask_ns = now;
		net_events(plan->net);
		err = ask_peers(plan, wait);
	}
	return err;
}

uint64_t exec_switched_ns(void)
{
	uint64_t least = UINT64_MAX;
	int i;

	for (i = 0; i < 16; i++) {
		uint64_t start = base_now_ns();
		uint64_t took = base_now_ns() - start;

		if (took < least)
			least = took;
	}
	least *= EXEC_SWITCHED_READINGS;
	return least > EXEC_SWITCHED_NS ? least : EXEC_SWITCHED_NS;
}

/*
 * The first yield of a wait, which tells whether the core is shared: with
 * nobody to run it returns in half a microsecond, else it takes several
 * (measured: 5 us between two ranks).  Two ranks that share a core must not
 * spin; the same two, when each has its own, must.
 */
static void yield_and_learn(struct exec_plan *plan)
{
	uint64_t start = base_now_ns();

	sched_yield();
	if (base_now_ns() - start > plan->switched_ns) {
		plan->n_spins /= 2;
		if (plan->n_spins < (uint32_t)plan->guard.n_spins_min)
			plan->n_spins = (uint32_t)plan->guard.n_spins_min;
	} else {
		plan->n_spins = plan->n_spins * 2 + 1;
		if (plan->n_spins > (uint32_t)plan->guard.n_spins_max)
			plan->n_spins = (uint32_t)plan->guard.n_spins_max;
	}
}

int exec_wait(struct exec_plan *plan, struct exec_wait *wait)
{
	uint64_t now;
	int err;

	if (base_unlikely(plan->net->polls_completions)) {
		err = net_poll(plan->net);
		if (err)
			return err;
	}
	if (wait->n_spins++ < plan->n_spins) {
		/* Polling a queue is pause enough. */
		if (!plan->net->polls_completions)
			base_pause();
		return 0;
	}
	if (!wait->has_yielded &&
	    plan->guard.n_spins_min < plan->guard.n_spins_max) {
		wait->has_yielded = true;
		yield_and_learn(plan);
		return 0;
	}
	sched_yield();
	/* A yield to another rank takes microseconds, one to nobody half of
	 * one: the clock is read every few of them. */
	if (wait->start_ns && wait->n_spins % 8)
		return 0;
	now = base_now_ns();
	if (!wait->start_ns) {
		wait->start_ns = now;
		wait->look_ns = now;
		wait->ask_ns = now;
	}
	if (now - wait->look_ns < EXEC_LOOK_NS)
		return 0;
	err = look(plan, wait, now);
	if (!err && now - wait->start_ns > EXEC_BLOCK_AFTER_NS)
		err = net_block(plan->net, plan->n_apart || plan->n_jobs
						   ? EXEC_APART_MS
						   : EXEC_BLOCK_MS);
	return err;
}
