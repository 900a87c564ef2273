/* SPDX-License-Identifier: MIT */
/* A rank of `wreath perf`: joins, and goes through sizes, types, operations. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/perf_measure.h"

struct sweep {
	const struct perf_job *job;
	const struct perf_options *options;
	struct perf_team team;
	struct perf_cell cell;
	struct perf_memory memory;
	int algo;
};

static void emit(struct sweep *sweep, enum perf_event_kind kind,
		 const struct perf_result *result)
{
	struct perf_event event = {.kind = kind};

	if (sweep->team.rank)
		return;
	event.result = *result;
	perf_emit(&sweep->job->sink, &event);
}

static int buffers_new(struct sweep *sweep)
{
	struct perf_memory *memory = &sweep->memory;
	uint64_t off = sweep->options->unalign;
	int error = perf_memory_open(memory, sweep->options, &sweep->team);

	if (error)
		return error;
	if (memory->buffers[0])
		sweep->cell.send = (char *)memory->buffers[0] + off;
	sweep->cell.recv = (char *)memory->buffers[1] + off;
	sweep->cell.memory = memory;
	return 0;
}

/* Where every rank runs, for the table's head. */
static bool introduce(struct sweep *sweep)
{
	struct perf_place *all;
	struct perf_place mine = {.rank = sweep->team.rank,
				  .pid = (int)getpid()};
	const char *device = wreath_comm_device(sweep->cell.comm);
	int r;

	_Static_assert(sizeof(mine) <= PERF_RECORD_MAX, "a record has room");
	perf_memory_describe(&sweep->memory, &mine);
	gethostname(mine.host, sizeof(mine.host) - 1);
	snprintf(mine.device, sizeof(mine.device), "%s",
		 device ? device : "unknown");
	all = calloc((size_t)sweep->team.n_ranks, sizeof(*all));
	if (!all || !perf_team_gather(&sweep->team, &mine, sizeof(mine), all)) {
		free(all);
		return false;
	}
	for (r = 0; !sweep->team.rank && r < sweep->team.n_ranks; r++) {
		struct perf_event event = {.kind = PERF_PLACE};

		event.place = all[r];
		perf_emit(&sweep->job->sink, &event);
	}
	free(all);
	return true;
}

/* One row of the table: both halves of it. */
static enum perf_outcome row(struct sweep *sweep, struct perf_result *result)
{
	enum perf_outcome outcome = PERF_DONE;
	int half;

	for (half = 0; half < 2 && outcome == PERF_DONE; half++) {
		if (sweep->options->halves == (half ? PERF_OUT : PERF_IN))
			continue;
		result->in_place = half;
		sweep->cell.in_place = half;
		sweep->cell.count = result->count;
		emit(sweep, PERF_BEGIN, result);
		outcome = sweep->cell.kind == PERF_OVERLAP
				  ? perf_overlap(&sweep->cell, result)
				  : perf_measure(&sweep->cell, result);
		if (outcome != PERF_DONE)
			break;
		perf_choice(&sweep->cell, result);
		emit(sweep, PERF_RESULT, result);
	}
	return outcome;
}

/* All sizes of one type, operation and root. */
static enum perf_outcome sizes(struct sweep *sweep)
{
	struct perf_cell *cell = &sweep->cell;
	enum perf_outcome outcome = PERF_DONE;
	size_t unit = wreath_type_size(cell->type);
	uint64_t bytes = 0;
	int i;

	if (perf_has_blocks(cell->kind))
		unit *= (size_t)sweep->team.n_ranks;
	for (i = 0; outcome == PERF_DONE &&
		    perf_next_size(sweep->options, i, &bytes); i++) {
		struct perf_result result = {
			.kind = cell->kind, .algo = sweep->algo,
			.type = cell->type, .op = cell->op,
			.root = cell->root};

		result.count = bytes / unit;
		result.bytes = result.count * unit;
		/* Less than an element is no vector; nothing at all is one. */
		if (result.count || !bytes)
			outcome = row(sweep, &result);
	}
	return outcome;
}

static enum perf_outcome roots(struct sweep *sweep, enum wreath_type type,
			       int op)
{
	struct perf_cell *cell = &sweep->cell;
	enum perf_outcome outcome = PERF_DONE;
	bool is_rooted = perf_is_rooted(cell->kind);
	int root = is_rooted ? (int)sweep->options->root : -1;
	int last = root;

	if (is_rooted && root == PERF_ALL_ROOTS) {
		root = 0;
		last = sweep->team.n_ranks - 1;
	}
	cell->pattern = perf_pattern_new(type, op, sweep->team.rank,
					 sweep->team.n_ranks);
	if (!cell->pattern) {
		perf_team_fail(&sweep->team, WREATH_ENOMEM,
			       "no memory for the pattern");
		return PERF_BROKEN;
	}
	cell->type = type;
	cell->op = op;
	for (; root <= last && outcome == PERF_DONE; root++) {
		cell->root = root;
		outcome = sizes(sweep);
	}
	perf_pattern_free(cell->pattern);
	cell->pattern = NULL;
	return outcome;
}

static enum perf_outcome types_and_ops(struct sweep *sweep)
{
	const struct perf_options *options = sweep->options;
	bool is_reducing = perf_is_reducing(options->kind);
	enum perf_outcome outcome = PERF_DONE;
	int type, op;

	for (type = 0; type < WREATH_N_TYPES; type++) {
		if (!options->types[type])
			continue;
		if (!is_reducing && outcome == PERF_DONE)
			outcome = roots(sweep, (enum wreath_type)type,
					PERF_NO_OP);
		for (op = 0; is_reducing && op < WREATH_N_OPS; op++) {
			if (options->ops[op] && outcome == PERF_DONE)
				outcome = roots(sweep, (enum wreath_type)type,
						op);
		}
	}
	return outcome;
}

static bool is_wanted(const struct sweep *sweep, int64_t cycle)
{
	return !sweep->options->n_cycles || cycle < sweep->options->n_cycles;
}

static enum perf_outcome sweep_comm(struct sweep *sweep)
{
	struct perf_result key = {.kind = sweep->options->kind,
				  .algo = sweep->algo, .used = sweep->algo};
	enum perf_outcome outcome;
	int64_t cycle;
	int error;

	sweep->cell.samples = calloc(PERF_SAMPLES, sizeof(double));
	sweep->cell.checks = calloc((size_t)sweep->team.n_ranks,
				    sizeof(*sweep->cell.checks));
	error = buffers_new(sweep);
	if (!error && (!sweep->cell.samples || !sweep->cell.checks ||
		       !perf_call_open(&sweep->cell, sweep->team.n_ranks)))
		error = base_error(WREATH_ENOMEM, "no memory for samples");
	if (!error)
		error = perf_memory_stream(&sweep->memory,
					   &sweep->cell.stream);
	if (error) {
		perf_team_fail(&sweep->team, error, wreath_error_text());
		outcome = PERF_BROKEN;
	} else {
		outcome = introduce(sweep) ? PERF_DONE : PERF_BROKEN;
	}
	if (outcome == PERF_DONE)
		emit(sweep, PERF_ALGO, &key);
	for (cycle = 0; outcome == PERF_DONE && is_wanted(sweep, cycle);
	     cycle++)
		outcome = types_and_ops(sweep);
	wreath_stream_destroy(sweep->cell.stream);
	sweep->cell.stream = NULL;
	free(sweep->cell.samples);
	free(sweep->cell.checks);
	perf_call_close(&sweep->cell);
	perf_overlap_close(&sweep->cell);
	return outcome;
}

/*
 * Can this algorithm do it for so many ranks?  Of those that were not asked for
 * by name, the others are left out, by all ranks alike.
 */
static bool has_form(const struct sweep *sweep)
{
	struct sched_shape shape = {
		.collective = perf_collectives[sweep->options->kind].sched,
		.algo = (enum sched_algo)(sweep->algo - 1),
		.n_ranks = sweep->team.n_ranks,
		.n_channels = 1,
	};
	struct sched *sched;

	if (!sweep->algo || !sweep->options->all_algos)
		return true;
	if (sched_make(&shape, sweep->team.rank, &sched))
		return false;
	sched_free(sched);
	return true;
}

/* The rank that is asked for is one of them. */
static bool has_root(struct sweep *sweep)
{
	int64_t root = sweep->options->root;
	char text[128];

	if (!perf_is_rooted(sweep->options->kind) ||
	    root < sweep->team.n_ranks)
		return true;
	snprintf(text, sizeof(text), "--root %lld: there are %d ranks",
		 (long long)root, sweep->team.n_ranks);
	perf_team_fail(&sweep->team, WREATH_EINVAL, text);
	return false;
}

/* A communicator, all that is measured with it, and its end. */
static enum perf_outcome sweep_algo(struct sweep *sweep)
{
	enum perf_outcome outcome;
	struct wreath_comm *comm;
	int error;

	if (sweep->job->rank < 0)
		error = wreath_comm_init_env(&comm);
	else
		error = wreath_comm_init(&sweep->team.page->id,
					 sweep->team.rank,
					 sweep->team.n_ranks, &comm);
	if (error) {
		perf_team_fail(&sweep->team, error, wreath_error_text());
		return PERF_BROKEN;
	}
	sweep->cell.comm = comm;
	if (sweep->job->rank < 0) {
		sweep->team.comm = comm;
		sweep->team.rank = wreath_comm_rank(comm);
		sweep->team.n_ranks = wreath_comm_size(comm);
	}
	outcome = has_root(sweep) ? PERF_DONE : PERF_BROKEN;
	if (outcome == PERF_DONE && has_form(sweep))
		outcome = sweep_comm(sweep);
	/* After a failure there is nothing to say goodbye to: end at once. */
	if (outcome == PERF_BROKEN) {
		wreath_comm_abort(comm);
		wreath_comm_destroy(comm);
		perf_memory_close(&sweep->memory);
		return outcome;
	}
	error = wreath_comm_destroy(comm);
	perf_memory_close(&sweep->memory);
	if (error) {
		perf_team_fail(&sweep->team, error, wreath_error_text());
		return PERF_BROKEN;
	}
	return outcome;
}

/* One rank of a process sets it, and the others wait until it has. */
static bool set_algo(struct sweep *sweep, bool is_first)
{
	const char *name = perf_algo_names[sweep->algo];

	if (sweep->job->rank >= 0 && !perf_team_barrier(&sweep->team))
		return false;
	/* What --algo does not say, the environment may. */
	if (is_first && (sweep->options->n_algos > 1 || strcmp(name, "auto")))
		setenv("WREATH_ALGO", name, 1);
	return sweep->job->rank < 0 || perf_team_barrier(&sweep->team);
}

int perf_rank(const struct perf_job *job)
{
	const struct perf_options *options = job->options;
	struct sweep sweep = {.job = job, .options = options};
	enum perf_outcome outcome = PERF_DONE;
	int i;

	sweep.team.page = job->page;
	sweep.team.rank = job->rank < 0 ? 0 : job->rank;
	sweep.team.n_ranks = (int)(options->n_procs * options->n_threads);
	sweep.team.n_cores = options->n_cores;
	sweep.cell.options = options;
	sweep.cell.kind = options->kind;
	sweep.cell.team = &sweep.team;
	for (i = 0; i < options->n_algos && outcome == PERF_DONE; i++) {
		sweep.algo = options->algos[i];
		if (!set_algo(&sweep, job->rank < 0 ||
			      job->rank % options->n_threads == 0))
			outcome = PERF_BROKEN;
		if (outcome == PERF_DONE)
			outcome = sweep_algo(&sweep);
	}
	return outcome == PERF_BROKEN ? BENCH_WREATH : BENCH_OK;
}
