/* SPDX-License-Identifier: MIT */
/*
 * No two accesses to a chunk of a rank's memory race, whatever the order in
 * which lanes and ranks run.
 *
 * For one rank at a time, each step of all ranks has a clock: how many steps
 * of each of that rank's lanes are done before it in every execution.  An
 * access is safe when the clock of the step that makes it has counted all
 * accesses that it must come after.  A final chunk is written at some time
 * between the step that sends it and the step that takes it, so for it the
 * sender's clock counts.  Passes are different memory, and no edge leads back
 * into an earlier pass, so one pass is enough.
 *
 * The values of value.c are those of one order; that there is no race is what
 * makes them the values of all.
 */
#include <inttypes.h>

#include "verify.h"

struct memory {
	const struct verify *verify;
	uint32_t rank;
	uint32_t n_lanes;
	uint32_t *clocks; /* by node * n_lanes + lane of @rank */
	/* By chunk * n_lanes + lane: the steps up to the last that did so. */
	uint32_t *written;
	uint32_t *used; /* read or written */
};

static void clock_join(const struct memory *memory, uint32_t to, uint32_t from)
{
	uint32_t *a = &memory->clocks[(size_t)to * memory->n_lanes];
	const uint32_t *b = &memory->clocks[(size_t)from * memory->n_lanes];
	uint32_t i;

	for (i = 0; i < memory->n_lanes; i++)
		a[i] = a[i] > b[i] ? a[i] : b[i];
}

static void clock_node(const struct memory *memory, uint32_t at)
{
	const struct verify *verify = memory->verify;
	const struct verify_node *node = &verify->nodes[at];
	uint32_t *clock = &memory->clocks[(size_t)at * memory->n_lanes];
	uint32_t after = verify_after(verify, node);
	uint32_t i;

	for (i = 0; i < memory->n_lanes; i++)
		clock[i] = 0;
	if (node->at)
		clock_join(memory, at, at - 1);
	for (i = 0; i < node->step->n_recv; i++) {
		uint32_t message = verify->taken[node->taken + i];

		clock_join(memory, at, verify->messages[message].from);
	}
	if (after != VERIFY_NONE)
		clock_join(memory, at, after);
	if (node->rank == memory->rank)
		clock[node->lane] = node->at + 1;
}

/* The first lane with an access in @accesses that @clock has not counted. */
static uint32_t find_uncounted(const struct memory *memory,
			       const uint32_t *accesses, const uint32_t *clock)
{
	uint32_t i;

	for (i = 0; i < memory->n_lanes; i++) {
		if (accesses[i] > (clock ? clock[i] : 0))
			return i;
	}
	return VERIFY_NONE;
}

static int check_read(const struct memory *memory, uint32_t at)
{
	const struct verify_node *node = &memory->verify->nodes[at];
	uint32_t chunk = node->step->chunk;
	const uint32_t *written = &memory->written[chunk * memory->n_lanes];
	bool input = node->step->local == SCHED_INPUT;
	uint32_t lane;

	/* The input must be there still: before every write, not after it. */
	lane = find_uncounted(
		memory, written,
		input ? NULL
		      : &memory->clocks[(size_t)at * memory->n_lanes]);
	if (lane == VERIFY_NONE)
		return 0;
	if (input)
		return verify_refuse_node(
			memory->verify, at,
			"reads input chunk %" PRIu32 ", which in place lane "
			"%" PRIu32 " step %" PRIu32 " may have overwritten",
			chunk, lane, written[lane] - 1);
	return verify_refuse_node(memory->verify, at,
				  "reads output chunk %" PRIu32
				  " while lane %" PRIu32 " step %" PRIu32
				  " may be storing it",
				  chunk, lane, written[lane] - 1);
}

static int check_write(const struct memory *memory, uint32_t at)
{
	const struct verify *verify = memory->verify;
	const struct verify_node *node = &verify->nodes[at];
	uint32_t chunk = node->step->chunk;
	const uint32_t *used = &memory->used[chunk * memory->n_lanes];
	bool final = node->step->flags & SCHED_RECV_FINAL;
	uint32_t start = at;
	uint32_t lane;

	if (final)
		start = verify->messages[verify->taken[node->taken]].from;
	lane = find_uncounted(memory, used,
			      &memory->clocks[(size_t)start * memory->n_lanes]);
	if (lane == VERIFY_NONE)
		return 0;
	return verify_refuse_node(
		verify, at,
		"%s chunk %" PRIu32 " before lane %" PRIu32 " step %" PRIu32
		" is certain to be done with it",
		final ? "its sender may write final" : "overwrites", chunk,
		lane, used[lane] - 1);
}

/* Called in the run's order, so that of any two the later one is checked. */
static int check_node(const struct memory *memory, uint32_t at)
{
	const struct verify_node *node = &memory->verify->nodes[at];
	const struct sched_step *step = node->step;
	size_t place = (size_t)step->chunk * memory->n_lanes + node->lane;
	int err;

	if (step->local == SCHED_OUTPUT ||
	    (step->local == SCHED_INPUT && memory->verify->in_place)) {
		err = check_read(memory, at);
		if (err)
			return err;
		memory->used[place] = node->at + 1;
	}
	if (step->flags & SCHED_STORE) {
		err = check_write(memory, at);
		if (err)
			return err;
		memory->used[place] = node->at + 1;
		memory->written[place] = node->at + 1;
	}
	return 0;
}

static int check_rank(struct memory *memory)
{
	const struct verify *verify = memory->verify;
	size_t n = (size_t)verify->n_chunks * memory->n_lanes;
	size_t i;
	int err = 0;

	for (i = 0; i < n; i++) {
		memory->written[i] = 0;
		memory->used[i] = 0;
	}
	for (i = 0; !err && i < verify->n_nodes; i++) {
		uint32_t at = verify->order[i];

		clock_node(memory, at);
		if (verify->nodes[at].rank == memory->rank)
			err = check_node(memory, at);
	}
	return err;
}

int verify_memory(const struct verify *verify)
{
	size_t n_clocks = (size_t)verify->n_nodes * verify->n_lanes;
	size_t n_chunks = (size_t)verify->n_chunks * verify->n_lanes;
	struct memory memory = {.verify = verify, .n_lanes = verify->n_lanes};
	int err = 0;

	memory.clocks = base_alloc(n_clocks, sizeof(*memory.clocks));
	memory.written = base_alloc(n_chunks, sizeof(*memory.written));
	memory.used = base_alloc(n_chunks, sizeof(*memory.used));
	if (!memory.clocks || !memory.written || !memory.used)
		err = WREATH_ENOMEM;
	for (; !err && memory.rank < verify->n_ranks; memory.rank++)
		err = check_rank(&memory);
	base_free(memory.clocks);
	base_free(memory.written);
	base_free(memory.used);
	return err;
}
