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
 * Raw input is read where it is, by a step of another rank.  When that rank's
 * clocks are there, every write to the input must have counted the reader, and
 * some step of the owner too, or the owner's call could return before it.  The
 * reader itself may write the result over what it has read.
 *
 * The values of value.c are those of one order; that there is no race is what
 * makes them the values of all.
 */
#include <inttypes.h>
#include <string.h>

#include "verify.h"

/* A node in the run's order, where every edge leads forward. */
struct place {
	uint32_t node;
	uint32_t rank;
	uint32_t edge; /* the first of those that lead here */
};

struct memory {
	const struct verify *verify;
	uint32_t rank;
	uint32_t n_lanes;
	struct place *places;
	uint32_t *place_of; /* by node */
	uint32_t *edges;    /* the places that they come from */
	uint32_t *clocks;   /* by place * n_lanes + lane of @rank */
	/* By chunk * n_lanes + lane: the steps up to the last that did so. */
	uint32_t *written;
	uint32_t *used; /* read or written */
	/* Nodes that store, by rank * n_chunks + chunk; the rest by node. */
	uint32_t *writes;
	uint32_t *next_write;
};

static uint32_t *clock_of(const struct memory *memory, uint32_t place)
{
	return &memory->clocks[(size_t)place * memory->n_lanes];
}

static uint32_t *clock_of_node(const struct memory *memory, uint32_t node)
{
	return clock_of(memory, memory->place_of[node]);
}

static void add_write(struct memory *memory, uint32_t at)
{
	const struct verify_node *node = &memory->verify->nodes[at];
	uint32_t *head = &memory->writes[node->rank * memory->verify->n_chunks +
					 node->step->chunk];

	memory->next_write[at] = *head;
	*head = at;
}

/* The graph laid out in the order in which each rank's check goes over it. */
static void lay_out(struct memory *memory)
{
	const struct verify *verify = memory->verify;
	uint32_t edge = 0;
	uint32_t i, j;

	for (i = 0; i < verify->n_ranks * verify->n_chunks; i++)
		memory->writes[i] = VERIFY_NONE;
	for (i = 0; i < verify->n_nodes; i++) {
		uint32_t at = verify->order[i];
		const struct verify_node *node = &verify->nodes[at];
		uint32_t after = verify_after(verify, node);

		if (node->step->flags & SCHED_STORE)
			add_write(memory, at);
		memory->place_of[at] = i;
		memory->places[i] = (struct place){at, node->rank, edge};
		if (node->at)
			memory->edges[edge++] = memory->place_of[at - 1];
		if (after != VERIFY_NONE)
			memory->edges[edge++] = memory->place_of[after];
		for (j = 0; j < node->step->n_recv; j++) {
			uint32_t message = verify->taken[node->taken + j];
			uint32_t from = verify->messages[message].from;

			memory->edges[edge++] = memory->place_of[from];
		}
	}
	memory->places[i].edge = edge;
}

static void clock_place(const struct memory *memory, uint32_t at)
{
	const struct place *place = &memory->places[at];
	uint32_t n_lanes = memory->n_lanes;
	uint32_t *clock = clock_of(memory, at);
	uint32_t i, j;

	for (i = 0; i < n_lanes; i++)
		clock[i] = 0;
	for (j = place->edge; j < place[1].edge; j++) {
		const uint32_t *from = clock_of(memory, memory->edges[j]);

		for (i = 0; i < n_lanes; i++)
			clock[i] = clock[i] > from[i] ? clock[i] : from[i];
	}
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
		input ? NULL : clock_of_node(memory, at));
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

/* When @at stores: a final chunk may land once it is sent. */
static uint32_t write_start(const struct memory *memory, uint32_t at)
{
	const struct verify *verify = memory->verify;
	const struct verify_node *node = &verify->nodes[at];

	if (!(node->step->flags & SCHED_RECV_FINAL))
		return at;
	return verify->messages[verify->taken[node->taken]].from;
}

static int check_write(const struct memory *memory, uint32_t at)
{
	const struct verify *verify = memory->verify;
	const struct verify_node *node = &verify->nodes[at];
	uint32_t chunk = node->step->chunk;
	const uint32_t *used = &memory->used[chunk * memory->n_lanes];
	uint32_t start = write_start(memory, at);
	uint32_t lane;

	lane = find_uncounted(memory, used, clock_of_node(memory, start));
	if (lane == VERIFY_NONE)
		return 0;
	return verify_refuse_node(
		verify, at,
		"%s chunk %" PRIu32 " before lane %" PRIu32 " step %" PRIu32
		" is certain to be done with it",
		start != at ? "its sender may write final" : "overwrites",
		chunk, lane, used[lane] - 1);
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

/* Has a step of @rank counted @reader, a step of the rank at hand? */
static bool is_heard(const struct memory *memory, uint32_t rank,
		     const struct verify_node *reader)
{
	const struct verify *verify = memory->verify;
	uint32_t i;

	for (i = 0; i < memory->n_lanes; i++) {
		const struct verify_lane *lane =
			&verify->lanes[rank * memory->n_lanes + i];
		uint32_t last = lane->node + lane->n_steps - 1;

		if (lane->n_steps &&
		    clock_of_node(memory, last)[reader->lane] > reader->at)
			return true;
	}
	return false;
}

/* @reader may read the chunk in the input of @rank. */
static int check_raw(const struct memory *memory, uint32_t reader,
		     uint32_t rank)
{
	const struct verify *verify = memory->verify;
	const struct verify_node *node = &verify->nodes[reader];
	uint32_t chunk = node->step->chunk;
	uint32_t at = memory->writes[rank * verify->n_chunks + chunk];

	if (!is_heard(memory, rank, node))
		return verify_refuse_node(
			verify, reader,
			"may read the input of rank %" PRIu32 " in place, and "
			"no step of that rank is certain to come after it",
			rank);
	for (; verify->in_place && at != VERIFY_NONE;
	     at = memory->next_write[at]) {
		uint32_t start = write_start(memory, at);

		if (clock_of_node(memory, start)[node->lane] <= node->at)
			return verify_refuse_node(
				verify, at,
				"may overwrite input chunk %" PRIu32 ", which "
				"rank %" PRIu32 " lane %" PRIu32
				" step %" PRIu32 " reads in place",
				chunk, node->rank, node->lane, node->at);
	}
	return 0;
}

static int check_raws(const struct memory *memory)
{
	const struct verify *verify = memory->verify;
	uint32_t first = verify->lanes[memory->rank * memory->n_lanes].node;
	uint32_t n = verify->scheds[memory->rank]->n_steps;
	uint32_t i, j;

	for (i = first; i < first + n; i++) {
		const struct verify_node *node = &verify->nodes[i];

		if (!(node->step->flags & SCHED_RECV_INPUT))
			continue;
		for (j = 0; j < node->step->n_recv; j++) {
			uint32_t message = verify->taken[node->taken + j];
			uint32_t from = verify->messages[message].from;
			int err = check_raw(memory, i,
					    verify->nodes[from].rank);

			if (err)
				return err;
		}
	}
	return 0;
}

/*
 * Whether two steps of @rank access one chunk, or one reads raw input: out of
 * place there may be no such step.
 */
static bool can_race(const struct memory *memory)
{
	const struct verify *verify = memory->verify;
	const struct sched *sched = verify->scheds[memory->rank];
	uint32_t *accesses = memory->used;
	bool found = false;
	uint32_t i;

	for (i = 0; i < sched->n_steps; i++) {
		const struct sched_step *step = &sched->steps[i];

		if (step->flags & SCHED_STORE ||
		    step->local == SCHED_OUTPUT ||
		    (step->local == SCHED_INPUT && verify->in_place))
			found |= accesses[step->chunk]++ > 0;
		found |= (step->flags & SCHED_RECV_INPUT) != 0;
	}
	for (i = 0; i < verify->n_chunks; i++)
		accesses[i] = 0;
	return found;
}

static int check_rank(struct memory *memory)
{
	const struct verify *verify = memory->verify;
	size_t n = (size_t)verify->n_chunks * memory->n_lanes;
	uint32_t i;
	int err = 0;

	memset(memory->used, 0, n * sizeof(*memory->used));
	memset(memory->written, 0, n * sizeof(*memory->written));
	if (!can_race(memory))
		return 0;
	for (i = 0; !err && i < verify->n_nodes; i++) {
		const struct place *place = &memory->places[i];
		const struct verify_node *node;

		clock_place(memory, i);
		if (place->rank != memory->rank)
			continue;
		node = &verify->nodes[place->node];
		clock_of(memory, i)[node->lane] = node->at + 1;
		err = check_node(memory, place->node);
	}
	return err ? err : check_raws(memory);
}

static int memory_init(struct memory *memory)
{
	const struct verify *verify = memory->verify;
	size_t n_nodes = verify->n_nodes;
	size_t n_edges = 2 * n_nodes + verify->n_messages;
	size_t n_clocks = n_nodes * memory->n_lanes;
	size_t n_chunks = (size_t)verify->n_chunks * memory->n_lanes;
	size_t n_writes = (size_t)verify->n_ranks * verify->n_chunks;

	memory->places = base_alloc(n_nodes + 1, sizeof(*memory->places));
	memory->place_of = base_alloc(n_nodes, sizeof(*memory->place_of));
	memory->edges = base_alloc(n_edges, sizeof(*memory->edges));
	memory->clocks = base_alloc(n_clocks, sizeof(*memory->clocks));
	memory->written = base_alloc(n_chunks, sizeof(*memory->written));
	memory->used = base_alloc(n_chunks, sizeof(*memory->used));
	memory->writes = base_alloc(n_writes, sizeof(*memory->writes));
	memory->next_write = base_alloc(n_nodes, sizeof(*memory->next_write));
	if (!memory->places || !memory->place_of || !memory->edges ||
	    !memory->clocks || !memory->written || !memory->used ||
	    !memory->writes || !memory->next_write)
		return WREATH_ENOMEM;
	lay_out(memory);
	return 0;
}

static void memory_release(struct memory *memory)
{
	base_free(memory->places);
	base_free(memory->place_of);
	base_free(memory->edges);
	base_free(memory->clocks);
	base_free(memory->written);
	base_free(memory->used);
	base_free(memory->writes);
	base_free(memory->next_write);
}

int verify_memory(const struct verify *verify)
{
	struct memory memory = {.verify = verify, .n_lanes = verify->n_lanes};
	int err = memory_init(&memory);

	for (; !err && memory.rank < verify->n_ranks; memory.rank++)
		err = check_rank(&memory);
	memory_release(&memory);
	return err;
}
