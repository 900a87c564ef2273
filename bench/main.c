/* SPDX-License-Identifier: MIT */
/*
 * The `wreath` command: finds the subcommand and gives it its words.  Called
 * under the name all_reduce_perf it is `wreath perf all_reduce`, and so on.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

static int version_main(int argc, char **argv);
static int help_main(int argc, char **argv);

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"run", run_main, "start the ranks of a program on this machine"},
	{"perf", perf_main, "measure a collective, and check its results"},
	{"info", info_main, "show devices, ports, addresses and settings"},
	{"schedule", schedule_main, "print the steps of an algorithm, or prove "
				    "them"},
	{"sim", sim_main, "predict a collective on a described network"},
	{"plan", plan_main, "say whether a network hides a training job's "
			    "reductions"},
	{"gpu", gpu_main, "measure a GPU's reductions beside its copies"},
	{"version", version_main, "print the version"},
	{"help", help_main, "explain a command"},
};

static void usage(FILE *to)
{
	size_t i;

	fprintf(to, "usage: wreath COMMAND [options]\n\n");
	for (i = 0; i < base_countof(commands); i++)
		fprintf(to, "  %-10s %s\n", commands[i].name,
			commands[i].help);
	fprintf(to, "\n`wreath help COMMAND` explains one; wreath(1) has it "
		    "all.\n");
}

static const struct command *find(const char *name)
{
	const char *names[base_countof(commands) + 1];
	const char *nearest;
	size_t i;

	for (i = 0; i < base_countof(commands); i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
		names[i] = commands[i].name;
	}
	names[i] = NULL;
	nearest = bench_nearest(name, names);
	if (nearest)
		fprintf(stderr, "wreath: unknown command '%.64s'; did you mean "
				"%s?\n", name, nearest);
	else
		fprintf(stderr, "wreath: unknown command '%.64s'; `wreath "
				"help` lists them\n", name);
	return NULL;
}

static int version_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("wreath %s\n", bench_version());
	return BENCH_OK;
}

static int help_main(int argc, char **argv)
{
	char ask[] = "--help";
	char *words[] = {NULL, ask, NULL};
	const struct command *command;

	if (argc < 2) {
		usage(stdout);
		return BENCH_OK;
	}
	command = find(argv[1]);
	if (!command)
		return BENCH_USAGE;
	if (command->main == help_main || command->main == version_main) {
		printf("wreath %s: %s\n", command->name, command->help);
		return BENCH_OK;
	}
	words[0] = argv[1];
	return command->main(2, words);
}

static int called_as_perf(const char *collective, int argc, char **argv)
{
	char name[] = "perf";
	char first[32];
	char **words = malloc(((size_t)argc + 2) * sizeof(*words));
	int status;
	int i;

	if (!words)
		return BENCH_FAILED;
	words[0] = name;
	snprintf(first, sizeof(first), "%s", collective);
	words[1] = first;
	for (i = 1; i <= argc; i++)
		words[i + 1] = argv[i]; /* with the NULL at its end */
	status = perf_main(argc + 1, words);
	free(words);
	return status;
}

/* What could not be written was not done. */
static int written(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	if (!status) {
		fprintf(stderr, "wreath: cannot write to standard output\n");
		status = BENCH_FAILED;
	}
	return status;
}

int main(int argc, char **argv)
{
	const struct command *command;
	const char *collective;

	if (argc < 1)
		return BENCH_USAGE;
	collective = perf_called_as(argv[0]);
	if (collective)
		return called_as_perf(collective, argc, argv);
	if (argc < 2) {
		usage(stderr);
		return BENCH_USAGE;
	}
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))
		return help_main(argc - 1, argv + 1);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return version_main(argc - 1, argv + 1);
	command = find(argv[1]);
	if (!command)
		return BENCH_USAGE;
	return written(command->main(argc - 1, argv + 1));
}
