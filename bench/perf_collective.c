/* SPDX-License-Identifier: MIT */
/* What can be measured: names, and where blocks lie. */
#include <stdlib.h>
#include <string.h>

#include "bench/perf.h"

/* The order of enum perf_kind. */
const struct perf_collective perf_collectives[PERF_N_KINDS] = {
	{"all_reduce", NULL, SCHED_ALL_REDUCE, .has_in_place = true},
	{"reduce", NULL, SCHED_REDUCE, .has_in_place = true},
	{"broadcast", NULL, SCHED_BROADCAST, .has_in_place = true},
	{"reduce_scatter", NULL, SCHED_REDUCE_SCATTER, .sends_blocks = true,
	 .has_in_place = true},
	{"all_gather", NULL, SCHED_ALL_GATHER, .recvs_blocks = true,
	 .has_in_place = true},
	{"gather", NULL, SCHED_GATHER, .recvs_blocks = true,
	 .has_in_place = true},
	{"scatter", NULL, SCHED_SCATTER, .sends_blocks = true,
	 .has_in_place = true},
	{"all_to_all", "alltoall", SCHED_ALL_TO_ALL, .sends_blocks = true,
	 .recvs_blocks = true},
	{"sendrecv", NULL, SCHED_EXCHANGE, .has_in_place = false},
	{"barrier", NULL, SCHED_BARRIER, .has_in_place = false},
	{"reduce_scatter_v", NULL, SCHED_REDUCE_SCATTER, .sends_blocks = true,
	 .has_in_place = true, .has_lists = true},
	{"all_gather_v", NULL, SCHED_ALL_GATHER, .recvs_blocks = true,
	 .has_in_place = true, .has_lists = true},
	{"all_to_all_v", "alltoallv", SCHED_ALL_TO_ALL, .sends_blocks = true,
	 .recvs_blocks = true, .has_lists = true},
	{"overlap", NULL, SCHED_ALL_REDUCE, .has_in_place = true},
};

static bool is_called(const char *name, const char *word, size_t length)
{
	return name && strlen(name) == length && !strncmp(name, word, length);
}

static int find(const char *word, size_t length)
{
	int i;

	for (i = 0; i < PERF_N_KINDS; i++) {
		if (is_called(perf_collectives[i].name, word, length) ||
		    is_called(perf_collectives[i].other, word, length))
			return i;
	}
	return -1;
}

int perf_kind_read(const struct bench_args *args, const char *word)
{
	const char *names[PERF_N_KINDS + 1] = {NULL};
	int kind = find(word, strlen(word));
	int i;

	for (i = 0; i < PERF_N_KINDS; i++)
		names[i] = perf_collectives[i].name;
	return kind >= 0 ? kind : bench_word(args, "collective", word, names);
}

const char *perf_called_as(const char *program)
{
	static const char end[] = "_perf";
	const char *slash = strrchr(program, '/');
	const char *name = slash ? slash + 1 : program;
	size_t length = strlen(name);
	int kind = -1;

	if (length > strlen(end) &&
	    !strcmp(name + length - strlen(end), end))
		kind = find(name, length - strlen(end));
	return kind < 0 ? NULL : perf_collectives[kind].name;
}

void perf_program(enum perf_kind kind, char *out, size_t size)
{
	const struct perf_collective *what = &perf_collectives[kind];

	snprintf(out, size, "%s_perf", what->other ? what->other : what->name);
}

bool perf_has_blocks(enum perf_kind kind)
{
	return perf_collectives[kind].sends_blocks ||
	       perf_collectives[kind].recvs_blocks;
}

bool perf_is_reducing(enum perf_kind kind)
{
	return kind != PERF_BARRIER &&
	       sched_is_reducing(perf_collectives[kind].sched);
}

bool perf_is_rooted(enum perf_kind kind)
{
	return sched_is_rooted(perf_collectives[kind].sched);
}
