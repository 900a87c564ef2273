/* SPDX-License-Identifier: MIT */
/*
 * The time of a collective of MPI: float32, sum where it folds, out of place,
 * in memory of MPI_Alloc_mem().  A line "BYTES MICROSECONDS" for each size,
 * which counts what `wreath perf` counts: the vector, or all blocks of it.
 *
 *     mpirun -n N mpi COLLECTIVE SECONDS TOUCH BYTES...
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

struct vectors {
	float *send, *recv;
	int count, n_send, n_recv; /* of a block, of all */
	float value; /* of every element that this rank gives */
};

static void all_reduce(void *arg)
{
	struct vectors *v = arg;

	MPI_Allreduce(v->send, v->recv, v->count, MPI_FLOAT, MPI_SUM,
		      MPI_COMM_WORLD);
}

static void all_gather(void *arg)
{
	struct vectors *v = arg;

	MPI_Allgather(v->send, v->count, MPI_FLOAT, v->recv, v->count,
		      MPI_FLOAT, MPI_COMM_WORLD);
}

static void reduce_scatter(void *arg)
{
	struct vectors *v = arg;

	MPI_Reduce_scatter_block(v->send, v->recv, v->count, MPI_FLOAT,
				 MPI_SUM, MPI_COMM_WORLD);
}

/* In place, since MPI has no other form; the root's is what it sends. */
static void broadcast(void *arg)
{
	struct vectors *v = arg;

	MPI_Bcast(v->recv, v->count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void all_to_all(void *arg)
{
	struct vectors *v = arg;

	MPI_Alltoall(v->send, v->count, MPI_FLOAT, v->recv, v->count,
		     MPI_FLOAT, MPI_COMM_WORLD);
}

static const struct collective {
	const char *name;
	void (*operate)(void *arg);
	int sends_blocks, gets_blocks, folds;
} collectives[] = {
	{"all_reduce", all_reduce, 0, 0, 1},
	{"all_gather", all_gather, 0, 1, 0},
	{"reduce_scatter", reduce_scatter, 1, 0, 1},
	{"broadcast", broadcast, 0, 0, 0},
	{"all_to_all", all_to_all, 1, 1, 0},
	{NULL, NULL, 0, 0, 0},
};

static void barrier(void *arg)
{
	(void)arg;
	MPI_Barrier(MPI_COMM_WORLD);
}

static double max(void *arg, double value)
{
	double greatest;

	(void)arg;
	MPI_Allreduce(&value, &greatest, 1, MPI_DOUBLE, MPI_MAX,
		      MPI_COMM_WORLD);
	return greatest;
}

static void fill(void *arg)
{
	struct vectors *vectors = arg;
	int i;

	for (i = 0; i < vectors->n_send; i++)
		vectors->send[i] = vectors->value;
}

static int is_right(const struct collective *collective,
		    const struct vectors *vectors, int n_ranks)
{
	int i;

	for (i = 0; i < vectors->n_recv; i++) {
		float want = (float)(i / vectors->count + 1);

		if (collective->folds)
			want = (float)(n_ranks * (n_ranks + 1) / 2);
		if (vectors->recv[i] != want)
			return 0;
	}
	return 1;
}

static void run(const struct collective *collective, struct measure *measure,
		double seconds, long long bytes, int n_ranks)
{
	struct vectors *v = measure->arg;
	int n_blocks = collective->sends_blocks || collective->gets_blocks
			       ? n_ranks : 1;
	double us;
	int i;

	v->count = (int)(bytes / (long long)sizeof(float)) / n_blocks;
	v->n_send = v->count * (collective->sends_blocks ? n_ranks : 1);
	v->n_recv = v->count * (collective->gets_blocks ? n_ranks : 1);
	MPI_Alloc_mem((MPI_Aint)v->n_send * 4, MPI_INFO_NULL, &v->send);
	MPI_Alloc_mem((MPI_Aint)v->n_recv * 4, MPI_INFO_NULL, &v->recv);
	fill(v);
	memset(v->recv, 0, (size_t)v->n_recv * 4);
	for (i = 0; i < v->count && (int)v->value == 1; i++)
		v->recv[i] = 1;
	us = measure_us(measure, seconds);
	if (!is_right(collective, v, n_ranks)) {
		fprintf(stderr, "wrong result at %lld bytes\n", bytes);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if ((int)v->value == 1) {
		printf("%lld %.4f\n", bytes, us);
		fflush(stdout);
	}
	MPI_Free_mem(v->send);
	MPI_Free_mem(v->recv);
}

int main(int argc, char **argv)
{
	const struct collective *collective = collectives;
	struct vectors vectors;
	struct measure measure = {NULL, barrier, max, NULL, &vectors};
	int rank, n_ranks;
	int i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
	while (argc > 1 && collective->name &&
	       strcmp(collective->name, argv[1]))
		collective++;
	if (argc < 5 || !collective->name) {
		fprintf(stderr, "usage: mpi COLLECTIVE SECONDS TOUCH "
				"BYTES...\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	measure.operate = collective->operate;
	if (strcmp(argv[3], "0"))
		measure.touch = fill;
	vectors.value = (float)(rank + 1);
	for (i = 4; i < argc; i++)
		run(collective, &measure, strtod(argv[2], NULL),
		    strtoll(argv[i], NULL, 10), n_ranks);
	MPI_Finalize();
	return 0;
}
