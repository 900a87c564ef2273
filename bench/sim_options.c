/* SPDX-License-Identifier: MIT */
/* The command line of wreath sim: a fabric by file, by options, or both. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/sim.h"

/* A description is a page of text. */
#define FILE_MAX (1 << 20)

#define AT(field) offsetof(struct sim_options, field)

/* Those of BENCH_OTHER with @words set are statements of a fabric. */
static const char *const statement[] = {NULL};

static const struct bench_option options_table[] = {
	{0, "algo", "LIST", "engines, with commas, or all (all)", BENCH_OTHER,
	 0, 0, 0, NULL},
	{'b', "bytes", "FROM:TO", "sizes, or one size (1M:1G)", BENCH_OTHER, 0,
	 0, 0, NULL},
	{0, "channels", "N", "channels (as many as rails)", BENCH_INT,
	 AT(n_channels), 1, SCHED_CHANNELS_MAX, NULL},
	{0, "root", "RANK", "of rooted collectives (0)", BENCH_INT, AT(root),
	 0, SCHED_RANKS_MAX - 1, NULL},
	{'F', "fabric", "FILE", "the description of the fabric", BENCH_TEXT,
	 AT(fabric_file), 0, 0, NULL},
	{'n', "ranks", "N", "ranks (one a node)", BENCH_OTHER, 0, 0, 0,
	 statement},
	{0, "nodes", "N", "nodes (1)", BENCH_OTHER, 0, 0, 0, statement},
	{0, "rail", "RATE,LATENCY", "a rail, once for each: 400G,2us",
	 BENCH_OTHER, 0, 0, 0, statement},
	{0, "ports", "OWNER", "of each rail: per_node per_rank (per_node)",
	 BENCH_OTHER, 0, 0, 0, statement},
	{0, "nvlink", "RATE,LATENCY", "between the ranks of a node",
	 BENCH_OTHER, 0, 0, 0, statement},
	{0, "topology", "WORDS", "flat, spine-leaf,leaf,16, fat-tree,radix,64",
	 BENCH_OTHER, 0, 0, 0, statement},
	{0, "routing", "HOW", "of ways up: modulo hash (modulo)", BENCH_OTHER,
	 0, 0, 0, statement},
	{0, "switch", "TIME", "latency of a link between switches (0)",
	 BENCH_OTHER, 0, 0, 0, statement},
	{0, "overhead", "TIME", "a message costs each end (300ns)",
	 BENCH_OTHER, 0, 0, 0, statement},
	{0, "reduce", "RATE", "of folding in, or free (30GB/s)", BENCH_OTHER,
	 0, 0, 0, statement},
	{0, "copy", "RATE", "of copying, or free (40GB/s)", BENCH_OTHER, 0, 0,
	 0, statement},
	{0, "slot_bytes", "SIZE", "of a message at most (256K)", BENCH_OTHER,
	 0, 0, 0, statement},
	{0, "slots", "N", "messages under way of a lane and pair (4)",
	 BENCH_OTHER, 0, 0, 0, statement},
	{0, "slow", "LINK", "link,node,3,rail,0,rate,50G", BENCH_OTHER, 0, 0,
	 0, statement},
	{0, "lost", "LINK", "link,leaf,2,rail,0,up,1", BENCH_OTHER, 0, 0, 0,
	 statement},
	{0, "plain", NULL, "run every rank, fold none", BENCH_FLAG,
	 AT(is_plain), 0, 0, NULL},
	{0, "path", NULL, "show every critical path", BENCH_FLAG,
	 AT(shows_path), 0, 0, NULL},
	{0, "limit", "N", "messages to simulate at most (2000000000)",
	 BENCH_SIZE, AT(limit), 1, INT64_MAX, NULL},
	{0, "json", NULL, "results as JSON", BENCH_FLAG, AT(json), 0, 0, NULL},
	{0, "csv", NULL, "or as CSV", BENCH_FLAG, AT(csv), 0, 0, NULL},
	{0, "plot", "FILE.svg", "draw them with gnuplot; - on the terminal",
	 BENCH_TEXT, AT(plot), 0, 0, NULL},
	{0, NULL, NULL, NULL, BENCH_OTHER, 0, 0, 0, NULL},
};

static const char usage_line[] = "wreath sim COLLECTIVE [options]";
static const char usage_text[] =
	"Runs the schedules of a collective in virtual time over a fabric: "
	"how long it\ntakes, the bus bandwidth, which link is the busiest, and "
	"what the time goes to.\nThe fabric is described by a file, by "
	"options, or both; wreath-sim(1) has the\nwords.\n\n"
	"  wreath sim all_reduce -n 64 --nodes 8 --rail 400G,2us --nvlink "
	"450GB/s,0.7us";

/* "all" or "ring,tree": a mask. */
static bool read_algos(const struct bench_args *args, const char *value,
		       unsigned int *mask)
{
	const char *names[SCHED_N_ALGOS + 2];
	char word[64];
	int i;

	for (i = 0; i < SCHED_N_ALGOS; i++)
		names[i] = sched_algo_name((enum sched_algo)i);
	names[i++] = "all";
	names[i] = NULL;
	*mask = 0;
	for (;;) {
		size_t length = strcspn(value, ",");

		snprintf(word, sizeof(word), "%.*s",
			 (int)base_min_size(length, sizeof(word) - 1), value);
		i = bench_word(args, "--algo", word, names);
		if (i < 0)
			return false;
		*mask |= i == SCHED_N_ALGOS ? (1u << SCHED_N_ALGOS) - 1
					    : 1u << i;
		if (!value[length])
			return true;
		value += length + 1;
	}
}

/* FROM:TO in factors of 2, or one size. */
static bool read_bytes(const struct bench_args *args, const char *value,
		       struct sim_options *options)
{
	const char *colon = strchr(value, ':');
	char from_text[32];
	uint64_t from, to, bytes;

	snprintf(from_text, sizeof(from_text), "%.*s",
		 (int)(colon ? base_min_size((size_t)(colon - value), 31)
			     : 31), value);
	if (!base_parse_size(from_text, &from) || !from ||
	    !base_parse_size(colon ? colon + 1 : from_text, &to) ||
	    to < from || to > 1ull << 44) {
		bench_refuse(args, "--bytes '%.64s' is not FROM:TO, two sizes "
			     "from 1 to 16T, such as 1M:1G", value);
		return false;
	}
	options->n_bytes = 0;
	for (bytes = from; bytes <= to && options->n_bytes < SIM_SIZES_MAX;
	     bytes *= 2)
		options->bytes[options->n_bytes++] = bytes;
	return true;
}

/* "--rail 400G,2us" is the statement "rail 400G,2us". */
static bool read_statement(const struct bench_option *option,
			   const char *value, struct sim_options *options)
{
	char name[32], text[256];

	snprintf(name, sizeof(name), "--%s", option->name);
	if (strchr(value, '\n') ||
	    snprintf(text, sizeof(text), "%s %s", option->name, value) >=
		    (int)sizeof(text)) {
		fprintf(stderr, "wreath sim: %s: too long a value\n", name);
		return false;
	}
	if (!sched_fabric_read(&options->fabric, name, text))
		return true;
	fprintf(stderr, "wreath sim: %s\n", wreath_error_text());
	return false;
}

static bool read_file(struct sim_options *options)
{
	const char *path = options->fabric_file;
	FILE *from = fopen(path, "r");
	char *text = malloc(FILE_MAX + 1);
	bool is_read = false;
	size_t n;

	if (!from || !text) {
		fprintf(stderr, "wreath sim: cannot read %s: %s\n", path,
			strerror(errno));
		goto out;
	}
	n = fread(text, 1, FILE_MAX + 1, from);
	if (ferror(from) || n > FILE_MAX) {
		fprintf(stderr, "wreath sim: cannot read %s: %s\n", path,
			n > FILE_MAX ? "it is longer than 1 MiB"
				     : strerror(errno));
		goto out;
	}
	text[n] = '\0';
	if (strlen(text) < n)
		fprintf(stderr, "wreath sim: %s: it is no text: there is a 0 "
				"at byte %zu\n", path, strlen(text) + 1);
	else if (sched_fabric_read(&options->fabric, path, text))
		fprintf(stderr, "wreath sim: %s\n", wreath_error_text());
	else
		is_read = true;
out:
	free(text);
	if (from)
		fclose(from);
	return is_read;
}

/* What the options say comes on top of the file, whatever stands first. */
static int read_fabric(int argc, char **argv, struct sim_options *options)
{
	struct bench_args args = {"wreath sim", options_table, argc, argv, 0,
				  false};
	struct sim_options ignored;
	bool had_rail = false;
	const char *value;
	int found;

	sched_fabric_init(&options->fabric);
	if (options->fabric_file && !read_file(options))
		return BENCH_USAGE + 1;
	while ((found = bench_read(&args, &ignored, &value)) != BENCH_END) {
		const struct bench_option *option = &options_table[found < 0
								  ? 0 : found];

		if (!option->words)
			continue;
		if (!strcmp(option->name, "rail") && !had_rail) {
			options->fabric.n_rails = 0;
			had_rail = true;
		}
		/* Ranks by an option are not what the file says of nodes. */
		if (!strcmp(option->name, "ranks"))
			options->fabric.ranks_per_node = 0;
		if (!read_statement(option, value, options))
			return BENCH_USAGE + 1;
	}
	if (sched_fabric_check(&options->fabric, &options->lost)) {
		fprintf(stderr, "wreath sim: %s\n", wreath_error_text());
		return BENCH_USAGE + 1;
	}
	return 0;
}

static int read_options(struct bench_args *args, struct sim_options *options)
{
	const char *names[SCHED_N_COLLECTIVES + 1];
	const char *value;
	int i, found;

	for (i = 0; i <= SCHED_N_COLLECTIVES; i++)
		names[i] = sched_collective_name((enum sched_collective)i);
	while ((found = bench_read(args, options, &value)) != BENCH_END) {
		if (found == BENCH_HELP) {
			bench_usage(stdout, usage_line, usage_text,
				    options_table);
			return BENCH_OK + 1;
		}
		if (found == BENCH_BAD)
			return BENCH_USAGE + 1;
		if (found == BENCH_OPERAND) {
			options->collective = bench_word(args, "collective",
							 value, names);
			if (options->collective < 0)
				return BENCH_USAGE + 1;
		} else if (found == 0) {
			if (!read_algos(args, value, &options->algos))
				return BENCH_USAGE + 1;
		} else if (found == 1 && !read_bytes(args, value, options)) {
			return BENCH_USAGE + 1;
		}
	}
	return 0;
}

int sim_parse(int argc, char **argv, struct sim_options *options)
{
	struct bench_args args = {"wreath sim", options_table, argc, argv, 0,
				  false};
	int status;

	*options = (struct sim_options){.collective = -1,
					.algos = (1u << SCHED_N_ALGOS) - 1,
					.limit = 2000000000};
	read_bytes(&args, "1M:1G", options);
	status = read_options(&args, options);
	if (status)
		return status;
	if (options->collective < 0) {
		bench_refuse(&args, "of which collective? wreath sim "
				    "all_reduce --nodes 4 --rail 100G,2us");
		return BENCH_USAGE + 1;
	}
	status = read_fabric(argc, argv, options);
	if (status)
		return status;
	if (options->root >= options->fabric.n_ranks) {
		bench_refuse(&args, "--root %lld is not one of %d ranks",
			     (long long)options->root,
			     options->fabric.n_ranks);
		return BENCH_USAGE + 1;
	}
	if (!options->n_channels)
		options->n_channels = options->fabric.n_rails > 1
					      ? options->fabric.n_rails : 1;
	return 0;
}
