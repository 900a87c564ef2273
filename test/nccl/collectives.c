/* SPDX-License-Identifier: MIT */
/*
 * Goal: every operation gives what NCCL's description of it says.  Method:
 * small whole numbers, whose sums are exact, by one thread for @n of the ranks,
 * in a group where it has several.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"

#define COUNT 1000
/* The most elements of one rank's buffer. */
#define ROOM ((size_t)MAX_RANKS * COUNT)

struct run {
	ncclComm_t *comms;
	const int *ranks;
	int n, n_ranks;
	int64_t *send[MAX_RANKS], *recv[MAX_RANKS];
};

/* What rank @rank has at place @i before. */
static int64_t input(int rank, size_t i)
{
	return (int64_t)(i % 17) + 3 * rank + 1;
}

static int64_t combined(const struct run *run, ncclRedOp_t op, size_t i)
{
	int64_t value = input(0, i);
	int r;

	for (r = 1; r < run->n_ranks; r++) {
		int64_t other = input(r, i);

		if (op == ncclSum || op == ncclAvg)
			value += other;
		else if (op == ncclProd)
			value *= other;
		else if (op == ncclMax)
			value = value > other ? value : other;
		else
			value = value < other ? value : other;
	}
	return op == ncclAvg ? value / run->n_ranks : value;
}

static void fill(struct run *run)
{
	size_t at;
	int i;

	for (i = 0; i < run->n; i++)
		for (at = 0; at < ROOM; at++) {
			run->send[i][at] = input(run->ranks[i], at);
			run->recv[i][at] = -1;
		}
}

static void begin(const struct run *run)
{
	if (run->n > 1)
		OK(ncclGroupStart());
}

static void end(const struct run *run)
{
	if (run->n > 1)
		OK(ncclGroupEnd());
}

static void all_reduce(struct run *run, ncclRedOp_t op)
{
	size_t at;
	int i;

	fill(run);
	begin(run);
	for (i = 0; i < run->n; i++)
		OK(ncclAllReduce(run->send[i], run->recv[i], COUNT, ncclInt64,
				 op, run->comms[i], ANY_STREAM));
	end(run);
	for (i = 0; i < run->n; i++)
		for (at = 0; at < COUNT; at++)
			CHECK(run->recv[i][at] == combined(run, op, at));
}

static void reduce(struct run *run, int root)
{
	size_t at;
	int i;

	fill(run);
	begin(run);
	for (i = 0; i < run->n; i++)
		OK(ncclReduce(run->send[i], run->recv[i], COUNT, ncclInt64,
			      ncclSum, root, run->comms[i], NULL));
	end(run);
	for (i = 0; i < run->n; i++)
		for (at = 0; at < COUNT; at++)
			CHECK(run->recv[i][at] ==
			      (run->ranks[i] == root
				       ? combined(run, ncclSum, at) : -1));
}

static void reduce_scatter(struct run *run)
{
	size_t at;
	int i;

	fill(run);
	begin(run);
	for (i = 0; i < run->n; i++)
		OK(ncclReduceScatter(run->send[i], run->recv[i], COUNT,
				     ncclInt64, ncclMax, run->comms[i], NULL));
	end(run);
	for (i = 0; i < run->n; i++)
		for (at = 0; at < COUNT; at++)
			CHECK(run->recv[i][at] ==
			      combined(run, ncclMax,
				       (size_t)run->ranks[i] * COUNT + at));
}

/* Both forms; the old one is in place. */
static void broadcast(struct run *run, int root)
{
	size_t at;
	int i;

	fill(run);
	begin(run);
	for (i = 0; i < run->n; i++) {
		OK(ncclBroadcast(run->send[i], run->recv[i], COUNT, ncclInt64,
				 root, run->comms[i], NULL));
		OK(ncclBcast(run->send[i] + COUNT, COUNT, ncclInt64, root,
			     run->comms[i], NULL));
	}
	end(run);
	for (i = 0; i < run->n; i++)
		for (at = 0; at < COUNT; at++) {
			CHECK(run->recv[i][at] == input(root, at));
			CHECK(run->send[i][COUNT + at] ==
			      input(root, COUNT + at));
		}
}

static void all_gather(struct run *run)
{
	size_t at;
	int i, r;

	fill(run);
	begin(run);
	for (i = 0; i < run->n; i++)
		OK(ncclAllGather(run->send[i], run->recv[i], COUNT, ncclInt64,
				 run->comms[i], NULL));
	end(run);
	for (i = 0; i < run->n; i++)
		for (r = 0; r < run->n_ranks; r++)
			for (at = 0; at < COUNT; at++)
				CHECK(run->recv[i][(size_t)r * COUNT + at] ==
				      input(r, at));
}

static void gather_and_scatter(struct run *run, int root)
{
	size_t at;
	int i, r;

	fill(run);
	begin(run);
	for (i = 0; i < run->n; i++)
		OK(ncclGather(run->send[i], run->recv[i], COUNT, ncclInt64,
			      root, run->comms[i], NULL));
	end(run);
	for (i = 0; i < run->n; i++)
		for (r = 0; r < run->n_ranks && run->ranks[i] == root; r++)
			for (at = 0; at < COUNT; at++)
				CHECK(run->recv[i][(size_t)r * COUNT + at] ==
				      input(r, at));
	fill(run);
	begin(run);
	for (i = 0; i < run->n; i++)
		OK(ncclScatter(run->send[i], run->recv[i], COUNT, ncclInt64,
			       root, run->comms[i], NULL));
	end(run);
	for (i = 0; i < run->n; i++)
		for (at = 0; at < COUNT; at++)
			CHECK(run->recv[i][at] ==
			      input(root, (size_t)run->ranks[i] * COUNT + at));
}

static void all_to_all(struct run *run)
{
	size_t at;
	int i, r;

	fill(run);
	begin(run);
	for (i = 0; i < run->n; i++)
		OK(ncclAlltoAll(run->send[i], run->recv[i], COUNT, ncclInt64,
				run->comms[i], NULL));
	end(run);
	for (i = 0; i < run->n; i++)
		for (r = 0; r < run->n_ranks; r++)
			for (at = 0; at < COUNT; at++)
				CHECK(run->recv[i][(size_t)r * COUNT + at] ==
				      input(r, (size_t)run->ranks[i] * COUNT +
					       at));
}

/* Each to all, of lengths that differ, one of them 0: NCCL's all-to-all-v. */
static void messages(struct run *run)
{
	size_t at;
	int i, r;

	fill(run);
	OK(ncclGroupStart());
	for (i = 0; i < run->n; i++)
		for (r = 0; r < run->n_ranks; r++) {
			size_t n = (size_t)(run->ranks[i] + r) * 10;

			OK(ncclSend(run->send[i] + (size_t)r * COUNT, n,
				    ncclInt64, r, run->comms[i], NULL));
			OK(ncclRecv(run->recv[i] + (size_t)r * COUNT, n,
				    ncclInt64, r, run->comms[i], NULL));
		}
	OK(ncclGroupEnd());
	for (i = 0; i < run->n; i++)
		for (r = 0; r < run->n_ranks; r++)
			for (at = 0; at < COUNT; at++)
				CHECK(run->recv[i][(size_t)r * COUNT + at] ==
				      (at < (size_t)(run->ranks[i] + r) * 10
					       ? input(r, (size_t)run->ranks[i]
							  * COUNT + at)
					       : -1));
}

static void run_open(struct run *run, ncclComm_t *comms, const int *ranks,
		     int n, int n_ranks)
{
	int i;

	run->comms = comms;
	run->ranks = ranks;
	run->n = n;
	run->n_ranks = n_ranks;
	for (i = 0; i < n; i++) {
		run->send[i] = malloc(ROOM * sizeof(int64_t));
		run->recv[i] = malloc(ROOM * sizeof(int64_t));
		CHECK(run->send[i] && run->recv[i]);
	}
}

static void run_close(struct run *run)
{
	int i;

	for (i = 0; i < run->n; i++) {
		free(run->send[i]);
		free(run->recv[i]);
	}
}

void test_collectives(ncclComm_t *comms, const int *ranks, int n, int n_ranks)
{
	static const ncclRedOp_t ops[] = {ncclSum, ncclProd, ncclMax, ncclMin,
					  ncclAvg};
	struct run run;
	size_t i;
	int root;

	run_open(&run, comms, ranks, n, n_ranks);
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		all_reduce(&run, ops[i]);
	for (root = 0; root < n_ranks; root++) {
		reduce(&run, root);
		broadcast(&run, root);
		gather_and_scatter(&run, root);
	}
	reduce_scatter(&run);
	all_gather(&run);
	all_to_all(&run);
	messages(&run);
	run_close(&run);
}

/* Rank r multiplies by r + @plus; each its own scalar, read when it should. */
static void premul(struct run *run, ncclScalarResidence_t residence, int plus)
{
	float scalars[MAX_RANKS];
	ncclRedOp_t ops[MAX_RANKS];
	size_t at;
	int i, r;

	for (i = 0; i < run->n; i++) {
		float *to = (float *)run->send[i];

		scalars[i] = (float)(run->ranks[i] + plus);
		OK(ncclRedOpCreatePreMulSum(&ops[i], &scalars[i], ncclFloat32,
					    residence, run->comms[i]));
		CHECK(ops[i] >= ncclNumOps);
		/* What was read is not looked at again. */
		if (residence == ncclScalarHostImmediate)
			scalars[i] = 1000;
		for (at = 0; at < COUNT; at++)
			to[at] = (float)input(run->ranks[i], at);
	}
	begin(run);
	for (i = 0; i < run->n; i++) {
		OK(ncclAllReduce(run->send[i], run->recv[i], COUNT, ncclFloat32,
				 ops[i], run->comms[i], NULL));
		/* Allowed as soon as the call has returned. */
		OK(ncclRedOpDestroy(ops[i], run->comms[i]));
	}
	end(run);
	for (i = 0; i < run->n; i++)
		for (at = 0; at < COUNT; at++) {
			float wanted = 0;

			for (r = 0; r < run->n_ranks; r++)
				wanted += (float)((r + plus) * input(r, at));
			CHECK(((float *)run->recv[i])[at] == wanted);
		}
}

void test_premul(ncclComm_t *comms, const int *ranks, int n, int n_ranks)
{
	struct run run;
	int i;

	run_open(&run, comms, ranks, n, n_ranks);
	premul(&run, ncclScalarHostImmediate, 1);
	premul(&run, ncclScalarDevice, 1);
	/* More values than a communicator keeps at a time. */
	for (i = 0; i < 200; i++)
		premul(&run, ncclScalarHostImmediate, i);
	run_close(&run);
}
