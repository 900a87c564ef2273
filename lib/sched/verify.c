/* SPDX-License-Identifier: MIT */
/*
 * The proof as a whole: its parts in turn, the graph that they share, and what
 * can be read off it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "draft.h"
#include "verify.h"

static int refuse(uint32_t rank, uint32_t lane, uint32_t at, const char *fmt,
		  va_list ap) __attribute__((format(printf, 4, 0), cold));

static int refuse(uint32_t rank, uint32_t lane, uint32_t at, const char *fmt,
		  va_list ap)
{
	char reason[256];

	vsnprintf(reason, sizeof(reason), fmt, ap);
	return base_error(WREATH_EINVAL,
			  "rank %" PRIu32 " lane %" PRIu32 " step %" PRIu32
			  ": %s", rank, lane, at, reason);
}

int verify_refuse(uint32_t rank, uint32_t lane, uint32_t at, const char *fmt,
		  ...)
{
	va_list ap;
	int err;

	va_start(ap, fmt);
	err = refuse(rank, lane, at, fmt, ap);
	va_end(ap);
	return err;
}

int verify_refuse_node(const struct verify *verify, uint32_t node,
		       const char *fmt, ...)
{
	const struct verify_node *at = &verify->nodes[node];
	va_list ap;
	int err;

	va_start(ap, fmt);
	err = refuse(at->rank, at->lane, at->at, fmt, ap);
	va_end(ap);
	return err;
}

uint32_t verify_after(const struct verify *verify,
		      const struct verify_node *node)
{
	uint32_t lane = node->rank * verify->n_lanes;

	if (node->step->after_lane < 0)
		return VERIFY_NONE;
	lane += (uint32_t)node->step->after_lane;
	return verify->lanes[lane].node + (uint32_t)node->step->after_step;
}

static int check_arguments(struct sched *const *scheds, int n_ranks,
			   int n_slots)
{
	int i;

	if (n_ranks < 1 || n_ranks > SCHED_RANKS_MAX)
		return base_error(WREATH_EINVAL,
				  "verify: n_ranks %d is not in [1, %d]",
				  n_ranks, SCHED_RANKS_MAX);
	if (n_slots < 1)
		return base_error(WREATH_EINVAL,
				  "verify: n_slots %d is not positive",
				  n_slots);
	for (i = 0; i < n_ranks; i++) {
		if (!scheds[i])
			return base_error(WREATH_EINVAL,
					  "rank %d: it has no schedule", i);
	}
	if (scheds[0]->shape.n_ranks != n_ranks)
		return base_error(WREATH_EINVAL,
				  "rank 0: a schedule for %d ranks, not %d",
				  scheds[0]->shape.n_ranks, n_ranks);
	/* The other ranks' shapes are compared with this one. */
	return sched_check_shape(&scheds[0]->shape, 0);
}

static bool is_crossing(enum sched_collective collective)
{
	return collective == SCHED_ALL_TO_ALL || collective == SCHED_EXCHANGE;
}

static int allocate(struct verify *verify)
{
	uint64_t n_cells = (uint64_t)verify->n_chunks *
			   (verify->is_crossing ? verify->n_ranks : 1);
	uint64_t n_nodes = 0;
	uint32_t n_lanes = verify->n_ranks * verify->n_lanes;
	uint32_t i;

	for (i = 0; i < verify->n_ranks; i++)
		n_nodes += verify->scheds[i]->n_steps;
	if (n_nodes > VERIFY_MAX)
		return base_error(WREATH_EINVAL,
				  "more than %u steps in all", VERIFY_MAX);
	/* Each is stored by someone, which bounds the memory needed here. */
	if (n_cells > n_nodes)
		return base_error(WREATH_EINVAL,
				  "%" PRIu64 " chunks to store and %" PRIu64
				  " steps: some chunk is not stored",
				  n_cells, n_nodes);
	verify->n_nodes = (uint32_t)n_nodes;
	verify->n_cells = (uint32_t)n_cells;
	verify->nodes = base_alloc(n_nodes, sizeof(*verify->nodes));
	verify->order = base_alloc(n_nodes, sizeof(*verify->order));
	verify->lanes = base_alloc(n_lanes, sizeof(*verify->lanes));
	verify->cells = base_alloc(n_cells + 1, sizeof(*verify->cells));
	verify->members = base_alloc(n_nodes, sizeof(*verify->members));
	if (!verify->nodes || !verify->order || !verify->lanes ||
	    !verify->cells || !verify->members)
		return WREATH_ENOMEM;
	return 0;
}

/* Sort the nodes by cell, those of a cell in the order of the run. */
static void sort_cells(struct verify *verify)
{
	uint32_t *cells = verify->cells;
	uint32_t first = 0;
	uint32_t i;

	for (i = 0; i < verify->n_nodes; i++)
		cells[verify->nodes[i].cell]++;
	for (i = 0; i <= verify->n_cells; i++) {
		uint32_t n = cells[i];

		cells[i] = first;
		first += n;
	}
	/* Each moves up to its end, which is the beginning of the next. */
	for (i = 0; i < verify->n_nodes; i++) {
		uint32_t at = verify->order[i];

		verify->members[cells[verify->nodes[at].cell]++] = at;
	}
	for (i = verify->n_cells; i > 0; i--)
		cells[i] = cells[i - 1];
	cells[0] = 0;
}

static void release(struct verify *verify)
{
	base_free(verify->nodes);
	base_free(verify->order);
	base_free(verify->lanes);
	base_free(verify->queues);
	base_free(verify->messages);
	base_free(verify->taken);
	base_free(verify->sent);
	base_free(verify->cells);
	base_free(verify->members);
}

/* Sent to two peers, a chunk crosses the wire twice and counts twice. */
static int check_sent(const struct verify *verify, struct sched_proof *proof)
{
	const struct sched_shape *shape = verify->shape;
	const struct generator *generator =
		sched_generator(shape->collective, shape->algo);
	uint32_t i, j;

	proof->chunks_sent_bound =
		generator->sent_bound(shape, verify->n_pieces);
	for (i = 0; i < verify->n_ranks; i++) {
		const struct sched *sched = verify->scheds[i];
		uint64_t n_sent = 0;
		uint64_t n_received = 0;

		for (j = 0; j < sched->n_steps; j++) {
			n_sent += sched->steps[j].n_send;
			n_received += sched->steps[j].n_recv;
		}
		if (n_sent > proof->chunks_sent_bound)
			return base_error(WREATH_EINVAL,
					  "rank %" PRIu32 ": sends %" PRIu64
					  " chunks a pass, %s needs %" PRIu64,
					  i, n_sent,
					  sched_algo_name(shape->algo),
					  proof->chunks_sent_bound);
		if (n_sent > proof->chunks_sent_max)
			proof->chunks_sent_max = n_sent;
		if (n_received > proof->chunks_received_max)
			proof->chunks_received_max = n_received;
	}
	return 0;
}

static uint32_t max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* The longest chain of messages, over the graph in the run's order. */
static uint32_t find_depth(struct verify *verify)
{
	uint32_t deepest = 0;
	uint32_t i, j;

	for (i = 0; i < verify->n_nodes; i++) {
		struct verify_node *node = &verify->nodes[verify->order[i]];
		uint32_t after = verify_after(verify, node);

		node->depth = node->at ? node[-1].depth : 0;
		if (after != VERIFY_NONE)
			node->depth =
				max(node->depth, verify->nodes[after].depth);
		for (j = 0; j < node->step->n_recv; j++) {
			uint32_t message = verify->taken[node->taken + j];
			uint32_t from = verify->messages[message].from;

			node->depth = max(node->depth,
					  verify->nodes[from].depth + 1);
		}
		deepest = max(deepest, node->depth);
	}
	return deepest;
}

static int prove(struct verify *verify, struct sched_proof *proof)
{
	int err = verify_lists(verify);

	if (!err)
		err = allocate(verify);
	if (!err)
		err = verify_match(verify);
	if (!err)
		err = verify_run(verify);
	if (err)
		return err;
	sort_cells(verify);
	err = verify_values(verify);
	if (!err)
		err = verify_memory(verify);
	if (!err)
		err = check_sent(verify, proof);
	if (err)
		return err;
	proof->n_steps = verify->n_nodes;
	proof->n_messages = verify->n_messages;
	proof->depth = find_depth(verify);
	return 0;
}

int sched_verify(struct sched *const *scheds, int n_ranks, int n_slots,
		 bool in_place, struct sched_proof *proof)
{
	struct sched_proof found = {0};
	struct verify verify = {0};
	int err = check_arguments(scheds, n_ranks, n_slots);

	if (err)
		return err;
	verify.shape = &scheds[0]->shape;
	verify.is_crossing = is_crossing(verify.shape->collective);
	if (in_place && verify.is_crossing)
		return base_error(WREATH_EINVAL,
				  "verify: %s has no form in place",
				  sched_collective_name(
					  verify.shape->collective));
	verify.scheds = scheds;
	verify.n_ranks = (uint32_t)n_ranks;
	verify.n_slots = (uint32_t)n_slots;
	verify.n_lanes = scheds[0]->n_lanes;
	verify.n_pieces = scheds[0]->n_pieces;
	verify.n_chunks = scheds[0]->n_chunks;
	verify.in_place = in_place;
	err = prove(&verify, &found);
	release(&verify);
	if (!err)
		*proof = found;
	return err;
}
