/* SPDX-License-Identifier: MIT */
/*
 * The time of MPI_Allreduce: float32, sum, out of place, in memory of
 * MPI_Alloc_mem().  A line "BYTES MICROSECONDS" for each size.
 *
 *     mpirun -n N mpi SECONDS TOUCH BYTES...
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

struct vectors {
	float *send, *recv;
	int count;
	float value; /* of every element that this rank gives */
};

static void operate(void *arg)
{
	struct vectors *vectors = arg;

	MPI_Allreduce(vectors->send, vectors->recv, vectors->count, MPI_FLOAT,
		      MPI_SUM, MPI_COMM_WORLD);
}

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

	for (i = 0; i < vectors->count; i++)
		vectors->send[i] = vectors->value;
}

static int is_right(const struct vectors *vectors, int n_ranks)
{
	float sum = (float)(n_ranks * (n_ranks + 1) / 2);
	int i;

	for (i = 0; i < vectors->count; i++) {
		if (vectors->recv[i] != sum)
			return 0;
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct vectors vectors;
	struct measure measure = {operate, barrier, max, NULL, &vectors};
	int rank, n_ranks;
	int i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
	if (argc < 4) {
		fprintf(stderr, "usage: mpi SECONDS TOUCH BYTES...\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (strcmp(argv[2], "0"))
		measure.touch = fill;
	vectors.value = (float)(rank + 1);
	for (i = 3; i < argc; i++) {
		long long bytes = strtoll(argv[i], NULL, 10);
		double us;

		vectors.count = (int)(bytes / (long long)sizeof(float));
		MPI_Alloc_mem(bytes, MPI_INFO_NULL, &vectors.send);
		MPI_Alloc_mem(bytes, MPI_INFO_NULL, &vectors.recv);
		fill(&vectors);
		memset(vectors.recv, 0, (size_t)bytes);
		us = measure_us(&measure, strtod(argv[1], NULL));
		if (!is_right(&vectors, n_ranks)) {
			fprintf(stderr, "wrong result at %lld bytes\n", bytes);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		if (!rank) {
			printf("%lld %.4f\n", bytes, us);
			fflush(stdout);
		}
		MPI_Free_mem(vectors.send);
		MPI_Free_mem(vectors.recv);
	}
	MPI_Finalize();
	return 0;
}
