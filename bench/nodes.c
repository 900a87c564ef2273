/* SPDX-License-Identifier: MIT */
/* --nodes: which ranks pretend to be one node. */
#include <string.h>

#include "bench/bench.h"
#include "sched/sched.h"

/* "3,5": so many ranks on each; they must be all of them. */
static int take_sizes(const struct bench_args *args, const char *text, int n,
		      int *nodes)
{
	char word[8];
	int node = 0;
	int64_t sum = 0;

	do {
		size_t length = strcspn(text, ",");
		int64_t size;

		snprintf(word, sizeof(word), "%.*s", (int)length, text);
		if (length >= sizeof(word) ||
		    !base_parse_int(word, 1, 65535, &size))
			return bench_refuse(args, "--nodes: '%.*s' is no number "
						  "of ranks; write for example "
						  "3,5", (int)length, text);
		for (; size; size--, sum++)
			if (sum < n)
				nodes[sum] = node;
		node++;
		text += length;
	} while (*text++);
	if (sum == n)
		return 0;
	return bench_refuse(args, "--nodes has places for %lld ranks on %d "
				  "nodes, and there are %d ranks",
			    (long long)sum, node, n);
}

int bench_nodes(const struct bench_args *args, const char *text, int n,
		int *nodes)
{
	struct sched_shape shape = {.n_ranks = n};
	int64_t n_nodes;
	int i;

	if (strchr(text, ','))
		return take_sizes(args, text, n, nodes);
	if (!base_parse_int(text, 1, 65535, &n_nodes))
		return bench_refuse(args, "--nodes: '%.64s' is neither a number "
					  "of nodes, as 2, nor the ranks of "
					  "each, as 3,5", text);
	if (n_nodes > n)
		return bench_refuse(args, "--nodes: %lld nodes are more than "
					  "the %d ranks", (long long)n_nodes,
				    n);
	shape.n_nodes = (int)n_nodes;
	for (i = 0; i < n; i++)
		nodes[i] = sched_node_of(&shape, i);
	return 0;
}
