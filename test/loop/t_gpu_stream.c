/* SPDX-License-Identifier: MIT */
/*
 * Goal: an operation on a CUDA stream needs nothing that waits for streams:
 * the stream waits for the operation.
 * Method: a simulated driver in which each allocation waits until all streams
 * are idle, and a communicator whose first calls are on a stream.
 */
#include <stdio.h>
#include <stdlib.h>

#include "test/loop/gpu_inner.h"

#define COUNT 300000 /* floats: several slots */

static int reduce(struct rank *rank, cu_ptr ptr, size_t count,
		  struct wreath_stream *stream)
{
	float *words = CU(fakeCudaAlias)(ptr, COUNT * sizeof(float));
	void *at = (void *)(uintptr_t)ptr;
	size_t i;
	int err;

	for (i = 0; i < count; i++)
		words[i] = (float)(i % 1000);
	err = wreath_all_reduce(at, at, count, WREATH_FLOAT32, WREATH_SUM,
				rank->comm, stream);
	/* Two at a time. */
	if (!err)
		err = wreath_all_reduce(at, at, count, WREATH_FLOAT32,
					WREATH_MAX, rank->comm, stream);
	if (!err)
		err = wreath_stream_wait(stream);
	for (i = 0; i < count && !err; i++)
		if (words[i] != (float)rank->n_ranks * (float)(i % 1000))
			err = rank_broken(rank, "word %zu of %zu is %g", i,
					  count, (double)words[i]);
	return err;
}

static int begin_on_stream(struct rank *rank)
{
	const size_t *count = rank->arg;
	struct wreath_stream *stream;
	struct CUstream_st *cuda;
	cu_ptr ptr;
	int err;

	OK(CU(cuMemAlloc_v2)(&ptr, COUNT * sizeof(float)));
	OK(CU(cuStreamCreate)(&cuda, 1));
	err = wreath_stream_from_cuda(cuda, &stream);
	if (err)
		return err;
	err = reduce(rank, ptr, *count, stream);
	if (!err)
		err = reduce(rank, ptr, COUNT, stream);
	wreath_stream_destroy(stream);
	OK(CU(cuStreamDestroy_v2)(cuda));
	OK(CU(cuMemFree_v2)(ptr));
	return err;
}

static void the_first_call_may_be_on_a_stream(void **state)
{
	static const size_t counts[] = {5, 6000, COUNT};
	size_t i;
	int n;

	(void)state;
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (n = 1; n <= 3; n++) {
			struct ranks run = {.n = n, .body = begin_on_stream,
					    .arg = &counts[i], .seconds = 30};

			/* Ranks of one process would wait for each other's
			 * streams in the first call of each. */
			ranks_run(&run);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_first_call_may_be_on_a_stream,
					  ranks_clean),
	};

	setenv("RANKS_GPU", "1", 1);
	setenv("FAKE_CUDA", "devices=3,seed=7,late=100us,strict", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
