/* SPDX-License-Identifier: MIT */
/* What each collective means: the table in sched.h, as functions. */
#include "sched.h"

/* Which ranks have a block, in their input or their output. */
enum who {
	ALL,
	ROOT,	/* the root alone has it, or them all */
	OWNER,	/* rank b has block b */
};

static const struct {
	const char *name;
	bool has_blocks; /* one a rank */
	bool is_rooted, is_reducing, is_paired;
	enum who in, out;
} rules[SCHED_N_COLLECTIVES] = {
	[SCHED_ALL_REDUCE] = {"all_reduce", .is_reducing = true},
	[SCHED_REDUCE] = {"reduce", .is_reducing = true, .is_rooted = true,
			  .out = ROOT},
	[SCHED_BROADCAST] = {"broadcast", .is_rooted = true, .in = ROOT},
	[SCHED_REDUCE_SCATTER] = {"reduce_scatter", .has_blocks = true,
				  .is_reducing = true, .out = OWNER},
	[SCHED_ALL_GATHER] = {"all_gather", .has_blocks = true, .in = OWNER},
	[SCHED_GATHER] = {"gather", .has_blocks = true, .is_rooted = true,
			  .is_paired = true, .in = OWNER, .out = ROOT},
	[SCHED_SCATTER] = {"scatter", .has_blocks = true, .is_rooted = true,
			   .is_paired = true, .in = ROOT, .out = OWNER},
	[SCHED_ALL_TO_ALL] = {"all_to_all", .has_blocks = true,
			      .is_paired = true},
	[SCHED_EXCHANGE] = {"exchange", .has_blocks = true, .is_paired = true},
	[SCHED_BARRIER] = {"barrier", .is_reducing = true},
};

const char *sched_collective_name(enum sched_collective collective)
{
	return (unsigned int)collective < SCHED_N_COLLECTIVES
		       ? rules[collective].name : NULL;
}

int sched_n_blocks(enum sched_collective collective, int n_ranks)
{
	return rules[collective].has_blocks ? n_ranks : 1;
}

static bool has(enum who who, const struct sched_shape *shape, int rank,
		int block)
{
	switch (who) {
	case ROOT:
		return rank == shape->root;
	case OWNER:
		return rank == block;
	case ALL:
		break;
	}
	return true;
}

bool sched_has_input(const struct sched_shape *shape, int rank, int block)
{
	return has(rules[shape->collective].in, shape, rank, block);
}

bool sched_has_output(const struct sched_shape *shape, int rank, int block)
{
	return has(rules[shape->collective].out, shape, rank, block);
}

bool sched_is_rooted(enum sched_collective collective)
{
	return rules[collective].is_rooted;
}

bool sched_is_reducing(enum sched_collective collective)
{
	return rules[collective].is_reducing;
}

bool sched_is_paired(enum sched_collective collective)
{
	return rules[collective].is_paired;
}

int sched_node_of(const struct sched_shape *shape, int rank)
{
	int n_nodes = shape->n_nodes ? shape->n_nodes : 1;
	int each = shape->n_ranks / n_nodes;
	int more = shape->n_ranks % n_nodes; /* nodes with one more */

	if (shape->nodes)
		return (int)shape->nodes[rank];
	if (rank < more * (each + 1))
		return rank / (each + 1);
	return more + (rank - more * (each + 1)) / each;
}
