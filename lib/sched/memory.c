/* SPDX-License-Identifier: MIT */
/*
 * No two accesses to a chunk of a rank's memory race, whatever the order in
 * which lanes and ranks run.
 *
 * An access is safe when each one that it must come after is done before it in
 * every execution: when edges lead from the one step to the other.  Only edges
 * within the cell count, since the steps of other cells may have nothing to
 * do; but of a lane that is through with a step, the steps before it are done
 * as well.  A final chunk is written at some time between the step that sends
 * it and the step that takes it, so for it the edges have to lead to the
 * sender's step.  Passes are different memory, and no edge leads back into an
 * earlier pass, so one pass is enough.
 *
 * Raw input is read where it is, by a step of another rank, or written into
 * that rank's output until then.  Every write to the input must come after the
 * reader, and some step of the owner too, or the owner's call could return
 * before it; unless it awaits its readers.  The reader itself may write the
 * result over what it has read.  Raw and final at once is all of this.
 *
 * In place, an input chunk that is stored unchanged stays as it is: that is no
 * write.
 *
 * The values of value.c are those of one order; that there is no race is what
 * makes them the values of all.
 */
#include <inttypes.h>

#include "verify.h"

/*
 * The cell's steps by their place in the run's order, 0, 1, ..., where every
 * edge leads forward.  Which of them lead to which is found for 64 at a time.
 */
struct memory {
	const struct verify *verify;
	const uint32_t *members; /* of the cell, the node of each place */
	uint32_t n_places;
	uint32_t base;	    /* the first of the 64 */
	uint64_t *reached;  /* by place: a bit for each of them led here */
	uint32_t *previous; /* by place: the one before of the same rank */
	uint32_t *last;	    /* by rank: its last place so far, VERIFY_NONE */
	uint32_t *place_of; /* by node */
};

static const struct verify_node *node_at(const struct memory *memory,
					 uint32_t place)
{
	return &memory->verify->nodes[memory->members[place]];
}

/* Whether @from, one of the 64, is done before @to, or is the same. */
static bool leads(const struct memory *memory, uint32_t from, uint32_t to)
{
	return memory->reached[to] >> (from - memory->base) & 1;
}

/* Is @from not among those that are looked at this time? */
static bool is_aside(const struct memory *memory, uint32_t from)
{
	return from < memory->base || from >= memory->base + 64;
}

/* All the ways to @to that end with lane @lane's steps up to @at. */
static uint64_t reached_by_lane(const struct memory *memory, uint32_t to,
				uint32_t lane, uint32_t at)
{
	uint32_t place;

	for (place = memory->previous[to]; place != VERIFY_NONE;
	     place = memory->previous[place]) {
		const struct verify_node *node = node_at(memory, place);

		if (node->lane == lane && node->at <= at)
			return memory->reached[place];
	}
	return 0;
}

static void reach(struct memory *memory, uint32_t to)
{
	const struct verify *verify = memory->verify;
	const struct verify_node *node = node_at(memory, to);
	const struct sched_step *step = node->step;
	uint64_t reached = is_aside(memory, to)
				   ? 0 : UINT64_C(1) << (to - memory->base);
	uint32_t i;

	memory->previous[to] = memory->last[node->rank];
	memory->last[node->rank] = to;
	reached |= reached_by_lane(memory, to, node->lane, node->at);
	if (step->after_lane >= 0)
		reached |= reached_by_lane(memory, to,
					   (uint32_t)step->after_lane,
					   (uint32_t)step->after_step);
	for (i = 0; i < step->n_recv; i++) {
		uint32_t message = verify->taken[node->taken + i];
		uint32_t from = verify->messages[message].from;

		reached |= memory->reached[memory->place_of[from]];
	}
	memory->reached[to] = reached;
}

/* Is the chunk that @node works on one memory in its input and output? */
static bool is_shared(const struct verify *verify,
		      const struct verify_node *node)
{
	int block = (int)verify_block(verify, node->step);

	return verify->in_place &&
	       sched_has_input(verify->shape, (int)node->rank, block) &&
	       sched_has_output(verify->shape, (int)node->rank, block);
}

static bool reads_input(const struct verify *verify,
			const struct verify_node *node)
{
	return node->step->local == SCHED_INPUT && is_shared(verify, node);
}

static bool writes(const struct verify *verify, const struct verify_node *node)
{
	return node->step->flags & SCHED_STORE &&
	       (node->step->n_recv || !reads_input(verify, node));
}

/* Where @place stores: a final chunk may land once it is sent. */
static uint32_t write_start(const struct memory *memory, uint32_t place)
{
	const struct verify *verify = memory->verify;
	const struct verify_node *node = node_at(memory, place);
	uint32_t message;

	if (!(node->step->flags & SCHED_RECV_FINAL))
		return place;
	message = verify->taken[node->taken];
	return memory->place_of[verify->messages[message].from];
}

/* @place reads what an earlier step of the rank, @before, writes. */
static int check_read(const struct memory *memory, uint32_t before,
		      uint32_t place)
{
	const struct verify_node *node = node_at(memory, place);
	const struct verify_node *writer = node_at(memory, before);

	/* The input must be there still: before every write, not after it. */
	if (node->step->local == SCHED_INPUT)
		return verify_refuse_node(
			memory->verify, memory->members[place],
			"reads input chunk %" PRIu32 ", which in place lane "
			"%" PRIu32 " step %" PRIu32 " may have overwritten",
			node->step->chunk, writer->lane, writer->at);
	if (leads(memory, before, place))
		return 0;
	return verify_refuse_node(memory->verify, memory->members[place],
				  "reads output chunk %" PRIu32
				  " while lane %" PRIu32 " step %" PRIu32
				  " may be storing it",
				  node->step->chunk, writer->lane, writer->at);
}

static int check_write(const struct memory *memory, uint32_t before,
		       uint32_t place)
{
	const struct verify_node *user = node_at(memory, before);
	uint32_t start = write_start(memory, place);

	if (leads(memory, before, start))
		return 0;
	return verify_refuse_node(
		memory->verify, memory->members[place],
		"%s chunk %" PRIu32 " before lane %" PRIu32 " step %" PRIu32
		" is certain to be done with it",
		start != place ? "its sender may write final" : "overwrites",
		node_at(memory, place)->step->chunk, user->lane, user->at);
}

/*
 * Against every access of the rank so far, so that of any two the later one is
 * checked.
 */
static int check_place(const struct memory *memory, uint32_t place)
{
	const struct verify *verify = memory->verify;
	const struct verify_node *node = node_at(memory, place);
	bool is_reader = node->step->local == SCHED_OUTPUT ||
			 reads_input(verify, node);
	bool is_writer = writes(verify, node);
	uint32_t at;
	int err = 0;

	for (at = memory->previous[place]; !err && at != VERIFY_NONE;
	     at = memory->previous[at]) {
		const struct verify_node *before = node_at(memory, at);
		bool was_writer = writes(verify, before);
		bool was_reader = before->step->local == SCHED_OUTPUT ||
				  reads_input(verify, before);

		if (is_aside(memory, at))
			continue;
		if (is_reader && was_writer)
			err = check_read(memory, at, place);
		if (!err && is_writer && (was_writer || was_reader))
			err = check_write(memory, at, place);
	}
	return err;
}

/* @reader may read the chunk in the input of the step that sends it. */
static int check_raw(const struct memory *memory, uint32_t reader,
		     const struct verify_node *owner)
{
	const struct verify *verify = memory->verify;
	const struct verify_node *node = node_at(memory, reader);
	bool shared = is_shared(verify, owner);
	bool heard = owner->step->flags & SCHED_SEND_AWAIT;
	uint32_t at;

	for (at = memory->last[owner->rank]; at != VERIFY_NONE;
	     at = memory->previous[at]) {
		heard |= leads(memory, reader, at);
		if (!shared || !writes(verify, node_at(memory, at)) ||
		    leads(memory, reader, write_start(memory, at)))
			continue;
		return verify_refuse_node(
			verify, memory->members[at],
			"may overwrite input chunk %" PRIu32 ", which "
			"rank %" PRIu32 " lane %" PRIu32 " step %" PRIu32
			" reads in place",
			owner->step->chunk, node->rank, node->lane, node->at);
	}
	if (heard)
		return 0;
	return verify_refuse_node(
		verify, memory->members[reader],
		"may read the input of rank %" PRIu32 " in place, and "
		"no step of that rank is certain to come after it",
		owner->rank);
}

static int check_raws(const struct memory *memory, uint32_t place)
{
	const struct verify *verify = memory->verify;
	const struct verify_node *node = node_at(memory, place);
	uint32_t i;
	int err = 0;

	if (!(node->step->flags & SCHED_RECV_INPUT))
		return 0;
	for (i = 0; !err && i < node->step->n_recv; i++) {
		uint32_t message = verify->taken[node->taken + i];
		uint32_t from = verify->messages[message].from;

		err = check_raw(memory, place, &verify->nodes[from]);
	}
	return err;
}

static int check_cell(struct memory *memory, uint32_t cell)
{
	const struct verify *verify = memory->verify;
	uint32_t i, base;
	int err = 0;

	memory->members = &verify->members[verify->cells[cell]];
	memory->n_places = verify->cells[cell + 1] - verify->cells[cell];
	for (i = 0; i < memory->n_places; i++)
		memory->place_of[memory->members[i]] = i;
	for (base = 0; !err && base < memory->n_places; base += 64) {
		memory->base = base;
		for (i = 0; i < memory->n_places; i++)
			memory->last[node_at(memory, i)->rank] = VERIFY_NONE;
		for (i = 0; !err && i < memory->n_places; i++) {
			reach(memory, i);
			err = check_place(memory, i);
		}
		for (i = base; !err && i < memory->n_places && i < base + 64;
		     i++)
			err = check_raws(memory, i);
	}
	return err;
}

static int memory_init(struct memory *memory)
{
	const struct verify *verify = memory->verify;
	uint32_t n_places = 0;
	uint32_t i;

	for (i = 0; i < verify->n_cells; i++) {
		uint32_t n = verify->cells[i + 1] - verify->cells[i];

		n_places = n > n_places ? n : n_places;
	}
	memory->reached = base_alloc(n_places, sizeof(*memory->reached));
	memory->previous = base_alloc(n_places, sizeof(*memory->previous));
	memory->last = base_alloc(verify->n_ranks, sizeof(*memory->last));
	memory->place_of =
		base_alloc(verify->n_nodes, sizeof(*memory->place_of));
	if (!memory->reached || !memory->previous || !memory->last ||
	    !memory->place_of)
		return WREATH_ENOMEM;
	return 0;
}

static void memory_release(struct memory *memory)
{
	base_free(memory->reached);
	base_free(memory->previous);
	base_free(memory->last);
	base_free(memory->place_of);
}

int verify_memory(const struct verify *verify)
{
	struct memory memory = {.verify = verify};
	uint32_t i;
	int err = memory_init(&memory);

	for (i = 0; !err && i < verify->n_cells; i++)
		err = check_cell(&memory, i);
	memory_release(&memory);
	return err;
}
