/* SPDX-License-Identifier: MIT */
/*
 * Goal: the kernels of GPUs give the bits of the scalar reference, whatever
 * the shape of the job.
 * Method: their code, compiled for the processor, against the reference: all
 * pairs of 8 bits, all codes of 16 bits with edges as partners, and jobs of
 * random shape.
 */
#include "reduce_trial.h"
#include "reduce_cuda.h"

static void *alloc(size_t bytes)
{
	void *mem = aligned_alloc(16, (bytes + 15) & ~(size_t)15);

	assert_non_null(mem);
	return mem;
}

/* Every other one from its last thread to the first. */
static void launch(enum wreath_type type, enum wreath_op op,
		   const struct reduce_gpu_batch *batch, unsigned int n_blocks)
{
	static bool backwards;

	cuda_launch(cuda_kernels[type][op], batch, n_blocks, backwards);
	backwards = !backwards;
}

static const struct trial_device processor = {alloc, free, launch};

static void all_pairs_of_8_bits(void **state)
{
	(void)state;
	trial_8_bits(&processor);
}

static void all_codes_of_16_bits_with_edges(void **state)
{
	(void)state;
	trial_16_bits(&processor);
}

static void jobs_of_any_shape(void **state)
{
	(void)state;
	trial_any_shape(&processor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_pairs_of_8_bits),
		cmocka_unit_test(all_codes_of_16_bits_with_edges),
		cmocka_unit_test(jobs_of_any_shape),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
