/* SPDX-License-Identifier: MIT */
/*
 * What the outputs hold, as expressions, cell by cell.
 *
 * Value r < n_ranks is the cell's chunk in rank r's input; above them each
 * value is the fold of two others, and two folds of the same operands are the
 * same value.  So two chunks have the same bits for every input and every
 * operation, however it rounds, exactly when they have the same number here.
 */
#include <inttypes.h>

#include "verify.h"

struct fold {
	uint32_t left, right;
	uint32_t n_inputs; /* with repetition; UINT32_MAX is that or more */
};

struct values {
	struct verify *verify;
	struct fold *folds; /* value n_ranks + i */
	uint32_t n_folds;
	uint32_t *table; /* of folds, by hash; VERIFY_NONE is empty */
	uint32_t table_mask;
	uint32_t *outputs; /* by rank: value */
	uint32_t *stored;  /* by rank: the node that stored it */
	uint32_t *counts;  /* of a rank's input, while one value is counted */
	uint32_t *stack;
};

static uint32_t n_inputs(const struct values *values, uint32_t value)
{
	uint32_t n_ranks = values->verify->n_ranks;

	return value < n_ranks ? 1 : values->folds[value - n_ranks].n_inputs;
}

/* The fold of two values; the table is never more than half full. */
static uint32_t fold(struct values *values, uint32_t left, uint32_t right)
{
	uint32_t a = n_inputs(values, left);
	uint32_t b = n_inputs(values, right);
	uint64_t hash = (((uint64_t)left << 32) | right) * 0x9e3779b97f4a7c15u;
	uint32_t at = (uint32_t)(hash >> 32) & values->table_mask;
	struct fold *entry;

	while (values->table[at] != VERIFY_NONE) {
		entry = &values->folds[values->table[at]];
		if (entry->left == left && entry->right == right)
			return values->verify->n_ranks + values->table[at];
		at = (at + 1) & values->table_mask;
	}
	values->table[at] = values->n_folds;
	entry = &values->folds[values->n_folds];
	entry->left = left;
	entry->right = right;
	entry->n_inputs = a > UINT32_MAX - b ? UINT32_MAX : a + b;
	return values->verify->n_ranks + values->n_folds++;
}

static int run_node(struct values *values, uint32_t at)
{
	const struct verify *verify = values->verify;
	struct verify_node *node = &values->verify->nodes[at];
	const struct sched_step *step = node->step;
	uint32_t value = VERIFY_NONE;
	uint32_t i;

	for (i = 0; i <= step->n_recv; i++) {
		uint32_t operand;

		if (step->local && i == step->local_at) {
			operand = step->local == SCHED_INPUT
					  ? node->rank
					  : values->outputs[node->rank];
			if (operand == VERIFY_NONE)
				return verify_refuse_node(
					verify, at,
					"reads output chunk %" PRIu32
					", which no step has stored by then",
					step->chunk);
			value = value == VERIFY_NONE
					? operand
					: fold(values, value, operand);
		}
		if (i == step->n_recv)
			break;
		operand = verify->messages[verify->taken[node->taken + i]].from;
		operand = verify->nodes[operand].value;
		value = value == VERIFY_NONE ? operand
					     : fold(values, value, operand);
	}
	node->value = value;
	if (step->flags & SCHED_STORE) {
		values->outputs[node->rank] = value;
		values->stored[node->rank] = at;
	}
	return 0;
}

/* How often each rank's input is in @value. */
static void count_inputs(struct values *values, uint32_t value)
{
	uint32_t n_ranks = values->verify->n_ranks;
	uint32_t n = 0;
	uint32_t i;

	for (i = 0; i < n_ranks; i++)
		values->counts[i] = 0;
	values->stack[n++] = value;
	while (n) {
		const struct fold *entry;

		value = values->stack[--n];
		if (value < n_ranks) {
			values->counts[value]++;
			continue;
		}
		entry = &values->folds[value - n_ranks];
		values->stack[n++] = entry->left;
		values->stack[n++] = entry->right;
	}
}

/* The sum of everything: each rank's input once. */
static int check_sum(struct values *values, uint32_t at, uint32_t value)
{
	const struct verify *verify = values->verify;
	uint32_t chunk = verify->nodes[at].step->chunk;
	uint32_t i;

	/* Folds of folds may hold billions; far too many need no counting. */
	if (n_inputs(values, value) > 2 * verify->n_ranks)
		return verify_refuse_node(verify, at,
					  "stores chunk %" PRIu32 " with %"
					  PRIu32 " contributions of %" PRIu32
					  " ranks",
					  chunk, n_inputs(values, value),
					  verify->n_ranks);
	count_inputs(values, value);
	for (i = 0; i < verify->n_ranks; i++) {
		if (values->counts[i] != 1)
			return verify_refuse_node(
				verify, at,
				"stores chunk %" PRIu32 " with the "
				"contribution of rank %" PRIu32
				" %" PRIu32 " times",
				chunk, i, values->counts[i]);
	}
	return 0;
}

/* Whose input is moved into an output block. */
static uint32_t source_of(const struct sched_shape *shape, uint32_t block)
{
	switch (shape->collective) {
	case SCHED_BROADCAST:
	case SCHED_SCATTER:
		return (uint32_t)shape->root;
	default:
		return block;
	}
}

static int check_moved(const struct values *values, uint32_t at,
		       uint32_t value)
{
	const struct verify *verify = values->verify;
	const struct sched_step *step = verify->nodes[at].step;
	uint32_t source = source_of(verify->shape, verify_block(verify, step));

	if (value == source)
		return 0;
	return verify_refuse_node(verify, at,
				  "stores chunk %" PRIu32 ", and it is not that "
				  "of rank %" PRIu32 " alone", step->chunk,
				  source);
}

/* The chunk of the cell in the output of @rank; VERIFY_NONE: not there. */
static uint32_t output_chunk(const struct verify *verify, uint32_t cell,
			     uint32_t rank)
{
	uint32_t chunk = cell;

	if (verify->is_crossing) {
		uint32_t source = cell / verify->n_chunks;
		uint32_t target =
			cell % verify->n_chunks / verify->n_pieces;

		return rank == target ? source * verify->n_pieces +
						cell % verify->n_pieces
				      : VERIFY_NONE;
	}
	return sched_has_output(verify->shape, (int)rank,
				(int)(chunk / verify->n_pieces))
		       ? chunk : VERIFY_NONE;
}

static int check_cell(struct values *values, uint32_t cell)
{
	const struct verify *verify = values->verify;
	bool is_reducing = sched_is_reducing(verify->shape->collective);
	uint32_t first = VERIFY_NONE;
	uint32_t first_rank = 0;
	uint32_t i;
	int err;

	for (i = 0; i < verify->n_ranks; i++) {
		uint32_t chunk = output_chunk(verify, cell, i);
		uint32_t value = values->outputs[i];

		if (chunk == VERIFY_NONE)
			continue;
		if (value == VERIFY_NONE)
			return base_error(WREATH_EINVAL,
					  "rank %" PRIu32 ": no step stores "
					  "chunk %" PRIu32, i, chunk);
		if (value == first)
			continue;
		err = is_reducing
			      ? check_sum(values, values->stored[i], value)
			      : check_moved(values, values->stored[i], value);
		if (err)
			return err;
		if (first != VERIFY_NONE)
			return verify_refuse_node(
				verify, values->stored[i],
				"stores chunk %" PRIu32 " folded in another "
				"order than on rank %" PRIu32, chunk,
				first_rank);
		first = value;
		first_rank = i;
	}
	return 0;
}

/* Operands of a cell's folds: what its steps receive, and have themselves. */
static uint64_t count_operands(const struct verify *verify, uint32_t cell)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = verify->cells[cell]; i < verify->cells[cell + 1]; i++)
		n += verify->nodes[verify->members[i]].step->n_recv + 1;
	return n;
}

static uint64_t table_size(uint64_t n_folds)
{
	uint64_t n = 2;

	while (n < 2 * n_folds)
		n *= 2;
	return n;
}

static int run_cell(struct values *values, uint32_t cell)
{
	struct verify *verify = values->verify;
	uint64_t n_table = table_size(count_operands(verify, cell));
	uint64_t i;
	uint32_t at;
	int err = 0;

	values->n_folds = 0;
	values->table_mask = (uint32_t)(n_table - 1);
	for (i = 0; i < n_table; i++)
		values->table[i] = VERIFY_NONE;
	for (i = 0; i < verify->n_ranks; i++)
		values->outputs[i] = VERIFY_NONE;
	for (at = verify->cells[cell]; !err && at < verify->cells[cell + 1];
	     at++)
		err = run_node(values, verify->members[at]);
	return err ? err : check_cell(values, cell);
}

/* Room for the largest cell.  Every operand is one fold at most. */
static int values_init(struct values *values, struct verify *verify)
{
	uint64_t n_folds = 0;
	uint32_t i;

	for (i = 0; i < verify->n_cells; i++) {
		uint64_t n = count_operands(verify, i);

		n_folds = n > n_folds ? n : n_folds;
	}
	values->verify = verify;
	values->folds = base_alloc(n_folds, sizeof(*values->folds));
	values->table = base_alloc(table_size(n_folds), sizeof(*values->table));
	values->outputs = base_alloc(verify->n_ranks, sizeof(*values->outputs));
	values->stored = base_alloc(verify->n_ranks, sizeof(*values->stored));
	values->counts = base_alloc(verify->n_ranks, sizeof(*values->counts));
	/* A value with n inputs has n of its parts on the stack at most. */
	values->stack =
		base_alloc(2 * verify->n_ranks + 1, sizeof(*values->stack));
	if (!values->folds || !values->table || !values->outputs ||
	    !values->stored || !values->counts || !values->stack)
		return WREATH_ENOMEM;
	return 0;
}

static void values_release(struct values *values)
{
	base_free(values->folds);
	base_free(values->table);
	base_free(values->outputs);
	base_free(values->stored);
	base_free(values->counts);
	base_free(values->stack);
}

int verify_values(struct verify *verify)
{
	struct values values = {0};
	uint32_t i;
	int err = values_init(&values, verify);

	for (i = 0; !err && i < verify->n_cells; i++)
		err = run_cell(&values, i);
	values_release(&values);
	return err;
}
