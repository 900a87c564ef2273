/* SPDX-License-Identifier: MIT */
/* wreath schedule: the steps of an algorithm, printed and proved. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "sched/sched.h"

/*
 * Steps of all ranks that are proved at most: with its messages and what the
 * proof notes down, a step takes some 200 bytes, so that this is 3 GB.
 */
#define PROVED_STEPS_MAX (UINT64_C(1) << 24)

struct schedule {
	int64_t n_ranks, n_channels, n_slots;
	int64_t root; /* -1: none was named */
	int64_t rank; /* -1: all */
	int collective;
	int algo; /* -1: the first that has such a form */
	const char *nodes;
	bool verify, in_place;
};

static const char *collectives[SCHED_N_COLLECTIVES + 1];
static const char *algos[SCHED_N_ALGOS + 1];

#define AT(field) offsetof(struct schedule, field)

static const struct bench_option options[] = {
	{0, "algo", "NAME", "the algorithm (the first that will do)",
	 BENCH_WORD, AT(algo), 0, 0, algos},
	{'n', "ranks", "N", "ranks (4)", BENCH_INT, AT(n_ranks), 1,
	 SCHED_RANKS_MAX, NULL},
	{0, "root", "RANK", "of broadcast, reduce, gather, scatter (0)",
	 BENCH_INT, AT(root), 0, SCHED_RANKS_MAX - 1, NULL},
	{0, "nodes", "N|LIST", "in N nodes, or nodes of so many ranks each: "
	 "3,5 (1)", BENCH_TEXT, AT(nodes), 0, 0, NULL},
	{0, "channels", "N", "channels (1)", BENCH_INT, AT(n_channels), 1,
	 SCHED_CHANNELS_MAX, NULL},
	{0, "rank", "RANK", "print this rank's part only", BENCH_INT, AT(rank),
	 0, SCHED_RANKS_MAX - 1, NULL},
	{0, "verify", NULL, "prove it right instead of printing it",
	 BENCH_FLAG, AT(verify), 0, 0, NULL},
	{0, "slots", "N", "messages under way between two ranks (4)",
	 BENCH_INT, AT(n_slots), 1, 64, NULL},
	{0, "in-place", NULL, "with the output where the input is",
	 BENCH_FLAG, AT(in_place), 0, 0, NULL},
	{0, NULL, NULL, NULL, BENCH_OTHER, 0, 0, 0, NULL},
};

static const char usage_line[] = "wreath schedule COLLECTIVE [options]";
static const char usage_text[] =
	"Prints what each rank does in a pass over the vector.  With --verify "
	"it is\nproved instead, for every order in which ranks can run: that "
	"every chunk of the\nresult is what it should be, with each rank's "
	"contribution once, combined in one\norder on all ranks; that nothing "
	"is overwritten before it was read; that there\nis no deadlock; that "
	"no rank sends more than the algorithm's bound.  Exit status\n"
	"1 if it is refused.\n\n"
	"COLLECTIVE is all_reduce, reduce, broadcast, reduce_scatter, "
	"all_gather, gather,\nscatter, all_to_all, exchange (the sends and "
	"receives of a group) or barrier.\nAlgorithms are ring, oneshot, "
	"twoshot, tree, split-ring, halving and direct.";

static int refuse_rank(const struct bench_args *args, const char *option,
		       int64_t rank, int64_t n_ranks)
{
	return bench_refuse(args, "--%s %lld is not one of %lld ranks: 0 to "
				  "%lld", option, (long long)rank,
			    (long long)n_ranks, (long long)n_ranks - 1);
}

/* What the options say together.  0, or BENCH_BAD. */
static int take_shape(const struct bench_args *args,
		      const struct schedule *schedule,
		      struct sched_shape *shape)
{
	static int node_of[SCHED_RANKS_MAX];
	static uint32_t nodes[SCHED_RANKS_MAX];
	int i;

	shape->collective = (enum sched_collective)schedule->collective;
	shape->algo = (enum sched_algo)schedule->algo;
	shape->n_ranks = (int)schedule->n_ranks;
	shape->n_channels = (int)schedule->n_channels;
	if (schedule->rank >= schedule->n_ranks)
		return refuse_rank(args, "rank", schedule->rank,
				   schedule->n_ranks);
	if (schedule->root >= 0 && !sched_is_rooted(shape->collective))
		return bench_refuse(args, "--root: %s has no root",
				    collectives[shape->collective]);
	if (schedule->root >= schedule->n_ranks)
		return refuse_rank(args, "root", schedule->root,
				   schedule->n_ranks);
	if (schedule->in_place && (shape->collective == SCHED_ALL_TO_ALL ||
				   shape->collective == SCHED_EXCHANGE))
		return bench_refuse(args, "--in-place: %s has no such form",
				    collectives[shape->collective]);
	shape->root = schedule->root > 0 ? (int)schedule->root : 0;
	if (!schedule->nodes)
		return 0;
	if (bench_nodes(args, schedule->nodes, shape->n_ranks, node_of))
		return BENCH_BAD;
	for (i = 0; i < shape->n_ranks; i++)
		nodes[i] = (uint32_t)node_of[i];
	shape->nodes = nodes;
	shape->n_nodes = node_of[shape->n_ranks - 1] + 1;
	return 0;
}

/* 0 to go on, else the exit status plus one. */
static int parse(int argc, char **argv, struct schedule *schedule,
		 struct sched_shape *shape)
{
	struct bench_args args = {"wreath schedule", options, argc, argv, 0,
				  false};
	const char *value;
	bool is_named = false;
	int found;

	while ((found = bench_read(&args, schedule, &value)) != BENCH_END) {
		if (found == BENCH_HELP) {
			bench_usage(stdout, usage_line, usage_text, options);
			return BENCH_OK + 1;
		}
		if (found == BENCH_BAD)
			return BENCH_USAGE + 1;
		schedule->collective = bench_word(&args, "collective", value,
						  collectives);
		if (schedule->collective < 0)
			return BENCH_USAGE + 1;
		is_named = true;
	}
	if (!is_named) {
		bench_refuse(&args, "of which collective? wreath schedule "
				    "all_reduce");
		return BENCH_USAGE + 1;
	}
	return take_shape(&args, schedule, shape) ? BENCH_USAGE + 1 : 0;
}

/* Whether there is a schedule of rank 0 by @algo; if not, the text says why. */
static bool can_make(const struct sched_shape *shape, int algo)
{
	struct sched_shape other = *shape;
	struct sched *sched;

	other.algo = (enum sched_algo)algo;
	if (sched_make(&other, 0, &sched))
		return false;
	sched_free(sched);
	return true;
}

static void put_forms(const struct sched_shape *shape)
{
	int i;

	fputs("; there is", stderr);
	for (i = 0; i < SCHED_N_ALGOS; i++) {
		if (sched_has_form(shape->collective, (enum sched_algo)i))
			fprintf(stderr, " %s", algos[i]);
	}
}

/* The algorithm that is asked for, or the first that will do. */
static int choose_algo(const struct schedule *schedule,
		       struct sched_shape *shape)
{
	int algo = schedule->algo;
	bool can = false;
	int i;

	if (algo >= 0)
		can = can_make(shape, algo);
	for (i = 0; schedule->algo < 0 && !can && i < SCHED_N_ALGOS; i++) {
		can = can_make(shape, i);
		algo = i;
	}
	if (can) {
		shape->algo = (enum sched_algo)algo;
		return BENCH_OK;
	}
	fprintf(stderr, "wreath schedule: %s", wreath_error_text());
	if (!sched_has_form(shape->collective, (enum sched_algo)algo))
		put_forms(shape);
	fputc('\n', stderr);
	return BENCH_USAGE;
}

static int make(const struct sched_shape *shape, int rank, struct sched **out)
{
	if (!sched_make(shape, rank, out))
		return BENCH_OK;
	fprintf(stderr, "wreath schedule: %s\n", wreath_error_text());
	return BENCH_FAILED;
}

static int print_one(const struct sched_shape *shape, int rank)
{
	struct sched *sched;
	size_t length;
	char *text;

	if (make(shape, rank, &sched))
		return BENCH_FAILED;
	length = sched_print(sched, NULL, 0);
	text = malloc(length + 1);
	if (text) {
		sched_print(sched, text, length + 1);
		fputs(text, stdout);
		if (length && text[length - 1] != '\n')
			putchar('\n');
	} else {
		fprintf(stderr, "wreath schedule: no memory for the text\n");
	}
	free(text);
	sched_free(sched);
	return text ? BENCH_OK : BENCH_FAILED;
}

/* One at a time: of many ranks not all have room in memory. */
static int print(const struct schedule *schedule,
		 const struct sched_shape *shape)
{
	int status = BENCH_OK;
	int r;

	if (schedule->rank >= 0)
		return print_one(shape, (int)schedule->rank);
	for (r = 0; r < shape->n_ranks && !status && !ferror(stdout); r++) {
		if (r)
			putchar('\n');
		status = print_one(shape, r);
	}
	return status;
}

static void print_head(const struct schedule *schedule,
		       const struct sched_shape *shape)
{
	printf("%s %s, %d ranks", collectives[shape->collective],
	       algos[shape->algo], shape->n_ranks);
	if (shape->n_nodes > 1)
		printf(" in %d nodes", shape->n_nodes);
	if (sched_is_rooted(shape->collective))
		printf(", root %d", shape->root);
	printf(", %d channel%s%s\n", shape->n_channels,
	       shape->n_channels == 1 ? "" : "s",
	       schedule->in_place ? ", in place" : "");
	fflush(stdout);
}

static int prove(const struct schedule *schedule,
		 const struct sched_shape *shape, struct sched **scheds)
{
	struct sched_proof proof;

	print_head(schedule, shape);
	if (sched_verify(scheds, shape->n_ranks, (int)schedule->n_slots,
			 schedule->in_place, &proof)) {
		fprintf(stderr, "wreath schedule: refused: %s\n",
			wreath_error_text());
		return BENCH_FAILED;
	}
	printf("proved, in every order, with %lld slots\n"
	       "  steps of all ranks          %llu\n"
	       "  messages of a pass          %llu\n"
	       "  chunks of a pass            %u\n"
	       "  sent by the busiest rank    %llu chunks, bound %llu\n"
	       "  taken by the busiest rank   %llu chunks\n"
	       "  longest chain of messages   %u\n",
	       (long long)schedule->n_slots,
	       (unsigned long long)proof.n_steps,
	       (unsigned long long)proof.n_messages, scheds[0]->n_chunks,
	       (unsigned long long)proof.chunks_sent_max,
	       (unsigned long long)proof.chunks_sent_bound,
	       (unsigned long long)proof.chunks_received_max, proof.depth);
	return BENCH_OK;
}

static int refuse_steps(const struct sched_shape *shape)
{
	fprintf(stderr, "wreath schedule: --verify: %d ranks have more than "
			"%llu steps together, too many to prove; take fewer\n",
		shape->n_ranks, (unsigned long long)PROVED_STEPS_MAX);
	return BENCH_FAILED;
}

/* From both ends, so that a busy root is not taken for a common rank. */
static int make_all(const struct sched_shape *shape, struct sched **scheds)
{
	uint64_t n = (uint64_t)shape->n_ranks;
	uint64_t n_steps = 0;
	uint64_t least = UINT64_MAX;
	uint64_t i;

	for (i = 0; i < n; i++) {
		uint64_t r = i % 2 ? n - 1 - i / 2 : i / 2;

		if (make(shape, (int)r, &scheds[r]))
			return BENCH_FAILED;
		n_steps += scheds[r]->n_steps;
		if (scheds[r]->n_steps < least)
			least = scheds[r]->n_steps;
		if (n_steps > PROVED_STEPS_MAX ||
		    (i == 1 && least * n > PROVED_STEPS_MAX))
			return refuse_steps(shape);
	}
	return BENCH_OK;
}

static int verify(const struct schedule *schedule,
		  const struct sched_shape *shape)
{
	size_t n = (size_t)shape->n_ranks;
	struct sched **scheds = calloc(n, sizeof(struct sched *));
	int status = BENCH_FAILED;
	size_t r;

	if (!scheds)
		fprintf(stderr, "wreath schedule: no memory for %zu ranks\n",
			n);
	else
		status = make_all(shape, scheds);
	if (!status)
		status = prove(schedule, shape, scheds);
	for (r = 0; scheds && r < n; r++)
		sched_free(scheds[r]);
	free(scheds);
	if (status || schedule->rank < 0)
		return status;
	putchar('\n');
	return print(schedule, shape);
}

int schedule_main(int argc, char **argv)
{
	struct schedule schedule = {.n_ranks = 4, .n_channels = 1,
				    .n_slots = 4, .root = -1, .rank = -1,
				    .algo = -1};
	struct sched_shape shape = {.n_nodes = 1};
	int status;
	int i;

	for (i = 0; i < SCHED_N_COLLECTIVES; i++)
		collectives[i] = sched_collective_name(
			(enum sched_collective)i);
	for (i = 0; i < SCHED_N_ALGOS; i++)
		algos[i] = sched_algo_name((enum sched_algo)i);
	status = parse(argc, argv, &schedule, &shape);
	if (status)
		return status - 1;
	status = choose_algo(&schedule, &shape);
	if (status)
		return status;
	return schedule.verify ? verify(&schedule, &shape)
			       : print(&schedule, &shape);
}
