/* SPDX-License-Identifier: MIT */
/* wreath schedule: the steps of an algorithm, printed and proved. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "sched/sched.h"

struct schedule {
	int64_t n_ranks, n_channels, n_slots;
	int64_t rank; /* -1: all */
	int collective, algo;
	bool verify, in_place;
};

static const char *collectives[SCHED_N_COLLECTIVES + 1];
static const char *algos[SCHED_N_ALGOS + 1];

#define AT(field) offsetof(struct schedule, field)

static const struct bench_option options[] = {
	{0, "algo", "NAME", "ring oneshot twoshot (ring)", BENCH_WORD,
	 AT(algo), 0, 0, algos},
	{'n', "ranks", "N", "ranks (4)", BENCH_INT, AT(n_ranks), 1,
	 SCHED_RANKS_MAX, NULL},
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

static const char usage_line[] = "wreath schedule all_reduce [options]";
static const char usage_text[] =
	"Prints what each rank does in a pass over the vector.  With --verify "
	"it is\nproved instead, for every order in which ranks can run: that "
	"every chunk of the\nresult holds each rank's contribution once, "
	"combined in one order on all ranks;\nthat nothing is overwritten "
	"before it was read; that there is no deadlock; that\nno rank sends "
	"more than the algorithm's bound.  Exit status 1 if it is refused.";

/* 0 to go on, else the exit status plus one. */
static int parse(int argc, char **argv, struct schedule *schedule)
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
	if (schedule->rank >= schedule->n_ranks) {
		bench_refuse(&args, "--rank %lld is not one of %lld ranks",
			     (long long)schedule->rank,
			     (long long)schedule->n_ranks);
		return BENCH_USAGE + 1;
	}
	return 0;
}

static int print_one(const struct sched *sched)
{
	size_t length = sched_print(sched, NULL, 0);
	char *text = malloc(length + 1);

	if (!text) {
		fprintf(stderr, "wreath schedule: no memory for the text\n");
		return BENCH_FAILED;
	}
	sched_print(sched, text, length + 1);
	fputs(text, stdout);
	if (length && text[length - 1] != '\n')
		putchar('\n');
	free(text);
	return BENCH_OK;
}

static void print_head(const struct schedule *schedule)
{
	printf("%s %s, %lld ranks, %lld channel%s%s\n",
	       collectives[schedule->collective], algos[schedule->algo],
	       (long long)schedule->n_ranks, (long long)schedule->n_channels,
	       schedule->n_channels == 1 ? "" : "s",
	       schedule->in_place ? ", in place" : "");
}

static int verify(const struct schedule *schedule, struct sched **scheds)
{
	struct sched_proof proof;

	print_head(schedule);
	fflush(stdout);
	if (sched_verify(scheds, (int)schedule->n_ranks,
			 (int)schedule->n_slots, schedule->in_place, &proof)) {
		fprintf(stderr, "wreath schedule: refused: %s\n",
			wreath_error_text());
		return BENCH_FAILED;
	}
	printf("proved, in every order, with %lld slots\n"
	       "  steps of all ranks          %llu\n"
	       "  messages of a pass          %llu\n"
	       "  chunks of a pass            %u\n"
	       "  sent by the busiest rank    %llu chunks, bound %llu\n"
	       "  longest chain of messages   %u\n",
	       (long long)schedule->n_slots,
	       (unsigned long long)proof.n_steps,
	       (unsigned long long)proof.n_messages, scheds[0]->n_chunks,
	       (unsigned long long)proof.chunks_sent_max,
	       (unsigned long long)proof.chunks_sent_bound, proof.depth);
	return BENCH_OK;
}

static int print(const struct schedule *schedule, struct sched **scheds)
{
	int status = BENCH_OK;
	int64_t r;

	for (r = 0; r < schedule->n_ranks && !status; r++) {
		if (schedule->rank >= 0 && schedule->rank != r)
			continue;
		if (r && schedule->rank < 0)
			putchar('\n');
		status = print_one(scheds[r]);
	}
	return status;
}

static int make_all(const struct schedule *schedule, struct sched **scheds)
{
	struct sched_shape shape = {
		.collective = (enum sched_collective)schedule->collective,
		.algo = (enum sched_algo)schedule->algo,
		.n_ranks = (int)schedule->n_ranks,
		.n_channels = (int)schedule->n_channels,
	};
	int r;

	for (r = 0; r < shape.n_ranks; r++) {
		if (sched_make(&shape, r, &scheds[r])) {
			fprintf(stderr, "wreath schedule: %s\n",
				wreath_error_text());
			return BENCH_FAILED;
		}
	}
	return BENCH_OK;
}

int schedule_main(int argc, char **argv)
{
	struct schedule schedule = {.n_ranks = 4, .n_channels = 1,
				    .n_slots = 4, .rank = -1};
	struct sched **scheds;
	int status;
	int i;

	for (i = 0; i < SCHED_N_COLLECTIVES; i++)
		collectives[i] = sched_collective_name(
			(enum sched_collective)i);
	for (i = 0; i < SCHED_N_ALGOS; i++)
		algos[i] = sched_algo_name((enum sched_algo)i);
	status = parse(argc, argv, &schedule);
	if (status)
		return status - 1;
	scheds = calloc((size_t)schedule.n_ranks, sizeof(struct sched *));
	if (!scheds)
		return BENCH_FAILED;
	status = make_all(&schedule, scheds);
	if (!status)
		status = schedule.verify ? verify(&schedule, scheds)
					 : print(&schedule, scheds);
	for (i = 0; i < schedule.n_ranks; i++)
		sched_free(scheds[i]);
	free(scheds);
	return status;
}
