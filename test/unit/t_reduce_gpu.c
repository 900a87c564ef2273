/* SPDX-License-Identifier: MIT */
/*
 * Goal: batches have every fold whole and once, share out the blocks, and
 * never put side by side what must come one after the other; the image is
 * one, or none.
 * Method: hand-made folds for each rule; random ones against a model that
 * marks bytes.
 */
#include "reduce_test.h"
#include "reduce/gpu.h"

#define MAX_FOLDS 12

/* Folds of float32 in one memory of @bytes; lists of their own. */
struct folds {
	struct reduce_gpu_fold fold[MAX_FOLDS];
	struct reduce_args args[MAX_FOLDS];
	const void *src[MAX_FOLDS][REDUCE_MAX];
	void *dst[MAX_FOLDS][REDUCE_MAX];
};

static float memory[4096];

static void fold_set(struct folds *f, int i, int n_src, int n_dst, size_t count)
{
	int k;

	for (k = 0; k < n_src; k++)
		f->src[i][k] = memory + 2048;
	for (k = 0; k < n_dst; k++)
		f->dst[i][k] = memory + 64 * i;
	f->args[i] = (struct reduce_args){
		.src = f->src[i],
		.n_src = n_src,
		.dst = f->dst[i],
		.n_dst = n_dst,
		.count = count,
	};
	f->fold[i] = (struct reduce_gpu_fold){
		.args = &f->args[i],
		.factored = -1,
	};
}

static int pack(const struct folds *f, int n, unsigned int max_blocks,
		struct reduce_gpu_batch *batch)
{
	unsigned int n_blocks, next = 0, i;
	int packed = reduce_gpu_pack(f->fold, n, sizeof(float), max_blocks,
				     batch, &n_blocks);

	/* Each job has blocks of its own, and together they are the grid. */
	assert_in_range(packed, 1, n);
	assert_int_equal(batch->n_jobs, packed);
	for (i = 0; i < batch->n_jobs; i++) {
		assert_int_equal(batch->jobs[i].first_block, next);
		assert_in_range(batch->jobs[i].n_blocks, 1, 65535);
		next += batch->jobs[i].n_blocks;
	}
	assert_int_equal(n_blocks, next);
	assert_in_range(n_blocks, 1, max_blocks + (unsigned int)packed);
	return packed;
}

static void a_batch_holds_the_fold_as_given(void **state)
{
	struct reduce_gpu_batch batch;
	struct folds f;
	int i, k;

	(void)state;
	fold_set(&f, 0, 3, 2, 5);
	fold_set(&f, 1, 64, 64, 7);
	f.fold[0].factor = 0x1122334455667788;
	f.fold[0].factored = 2;
	f.args[0].divisor = 9;
	for (k = 0; k < 3; k++)
		f.src[0][k] = memory + 2048 + k;
	assert_int_equal(pack(&f, 2, 100, &batch), 2);
	assert_true(batch.jobs[0].factor == 0x1122334455667788);
	assert_int_equal(batch.jobs[0].factored, 2);
	assert_int_equal(batch.jobs[0].divisor, 9);
	assert_int_equal(batch.jobs[1].factored, -1);
	for (i = 0; i < 2; i++) {
		const struct reduce_gpu_job *job = &batch.jobs[i];

		assert_int_equal(job->count, f.args[i].count);
		assert_int_equal(job->n_src, f.args[i].n_src);
		assert_int_equal(job->n_dst, f.args[i].n_dst);
		for (k = 0; k < job->n_src; k++)
			assert_true(batch.pointers[job->first + k] ==
				    (uintptr_t)f.src[i][k]);
		for (k = 0; k < job->n_dst; k++)
			assert_true(batch.pointers[job->first + job->n_src +
						   k] ==
				    (uintptr_t)f.dst[i][k]);
	}
}

static void a_batch_takes_what_fits(void **state)
{
	struct reduce_gpu_batch batch;
	struct folds f;
	int i;

	(void)state;
	for (i = 0; i < MAX_FOLDS; i++)
		fold_set(&f, i, 2, 1, 5);
	assert_int_equal(pack(&f, MAX_FOLDS, 100, &batch), REDUCE_GPU_JOBS);
	assert_int_equal(pack(&f, 1, 100, &batch), 1);
	for (i = 0; i < MAX_FOLDS; i++)
		fold_set(&f, i, REDUCE_MAX, REDUCE_MAX, 5);
	assert_int_equal(pack(&f, MAX_FOLDS, 100, &batch),
			 REDUCE_GPU_POINTERS / (2 * REDUCE_MAX));
	assert_int_equal(pack(&f, MAX_FOLDS, 0, &batch),
			 REDUCE_GPU_POINTERS / (2 * REDUCE_MAX));
}

static void blocks_are_shared_by_the_bytes(void **state)
{
	struct reduce_gpu_batch batch;
	struct folds f;

	(void)state;
	/* Ranges of no memory: packing does not look into it. */
	fold_set(&f, 0, 2, 1, (size_t)3 << 30);
	fold_set(&f, 1, 2, 1, (size_t)1 << 30);
	f.dst[0][0] = (void *)((uintptr_t)1 << 45);
	f.dst[1][0] = (void *)((uintptr_t)2 << 45);
	f.src[0][0] = f.src[0][1] = (void *)((uintptr_t)3 << 45);
	f.src[1][0] = f.src[1][1] = (void *)((uintptr_t)3 << 45);
	assert_int_equal(pack(&f, 2, 264, &batch), 2);
	assert_in_range(batch.jobs[0].n_blocks, 197, 198);
	assert_in_range(batch.jobs[1].n_blocks, 65, 66);
	/* More than a grid can be numbered by. */
	assert_int_equal(pack(&f, 2, 1000000, &batch), 2);
	assert_in_range(batch.jobs[0].n_blocks, 40000, 65535);
	/* No thread without a vector. */
	f.args[0].count = 1024;
	f.args[1].count = 16384;
	assert_int_equal(pack(&f, 2, 264, &batch), 2);
	assert_in_range(batch.jobs[0].n_blocks, 1, 1);
	assert_in_range(batch.jobs[1].n_blocks, 8, 9);
	f.args[0].count = 0;
	f.args[1].count = 0;
	assert_int_equal(pack(&f, 2, 264, &batch), 2);
}

static void folds_that_depend_are_not_side_by_side(void **state)
{
	struct reduce_gpu_batch batch;
	struct folds f;

	(void)state;
	/* In place, and sources that are the same, are no matter. */
	fold_set(&f, 0, 2, 1, 16);
	fold_set(&f, 1, 2, 1, 16);
	f.src[0][1] = f.dst[0][0];
	f.src[1][1] = f.dst[1][0];
	assert_int_equal(pack(&f, 2, 100, &batch), 2);
	/* The second reads what the first one writes, by its last element. */
	f.src[1][1] = memory + 15;
	assert_int_equal(pack(&f, 2, 100, &batch), 1);
	f.src[1][1] = memory + 16;
	assert_int_equal(pack(&f, 2, 100, &batch), 2);
	/* The second writes what the first one reads. */
	f.dst[1][0] = memory + 2048 + 15;
	assert_int_equal(pack(&f, 2, 100, &batch), 1);
	f.dst[1][0] = memory + 2048 - 16;
	assert_int_equal(pack(&f, 2, 100, &batch), 2);
	/* Both write it. */
	f.dst[1][0] = (char *)memory + 63;
	assert_int_equal(pack(&f, 2, 100, &batch), 1);
}

/* Do two folds, by every byte of memory, disturb each other? */
static bool model_disturbs(const struct folds *f, int a, int b)
{
	static unsigned char seen[sizeof(memory)];
	const struct reduce_args *x = &f->args[a], *y = &f->args[b];
	size_t at, i;
	int k, round;

	for (round = 0; round < 2; round++, x = &f->args[b], y = &f->args[a]) {
		memset(seen, 0, sizeof(seen));
		for (k = 0; k < x->n_dst; k++)
			memset(seen + ((char *)x->dst[k] - (char *)memory), 1,
			       x->count * sizeof(float));
		for (k = 0; k < y->n_src + y->n_dst; k++) {
			const void *p = k < y->n_src ? y->src[k] :
						       y->dst[k - y->n_src];

			at = (size_t)((const char *)p - (char *)memory);
			for (i = 0; i < y->count * sizeof(float); i++)
				if (seen[at + i])
					return true;
		}
	}
	return false;
}

static void packing_stops_at_the_first_that_depends(void **state)
{
	uint64_t seed = test_seed(), from, to;
	struct reduce_gpu_batch batch;
	struct folds f;
	int round, i, k, n, want;

	(void)state;
	for (round = 0; round < 2000; round++) {
		n = 1 + (int)(test_random(&seed) % MAX_FOLDS);
		for (i = 0; i < n; i++) {
			fold_set(&f, i, 1 + (int)(test_random(&seed) % 3),
				 1 + (int)(test_random(&seed) % 2),
				 1 + test_random(&seed) % 64);
			for (k = 0; k < 3; k++) {
				from = test_random(&seed) % 3000;
				to = test_random(&seed) % 3000;
				f.src[i][k] = memory + from;
				f.dst[i][k] = memory + to;
			}
		}
		for (want = 1; want < n && want < REDUCE_GPU_JOBS; want++) {
			for (k = 0; k < want; k++)
				if (model_disturbs(&f, k, want))
					break;
			if (k < want)
				break;
		}
		assert_int_equal(pack(&f, n, 100, &batch), want);
	}
}

static void the_image_is_one_of_kernels_or_none(void **state)
{
	size_t bytes = 1;
	const void *image = reduce_gpu_image(&bytes);
	uint32_t magic;
	uint16_t header;
	uint64_t rest;

	(void)state;
	if (!image) {
		assert_int_equal(bytes, 0);
		return;
	}
	/* Its header: a number, a version, its own size, that of the rest. */
	assert_int_equal((uintptr_t)image % 8, 0);
	assert_true(bytes > 16);
	memcpy(&magic, image, sizeof(magic));
	memcpy(&header, (const char *)image + 6, sizeof(header));
	memcpy(&rest, (const char *)image + 8, sizeof(rest));
	assert_int_equal(magic, 0xba55ed50);
	assert_true(header + rest == bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_holds_the_fold_as_given),
		cmocka_unit_test(a_batch_takes_what_fits),
		cmocka_unit_test(blocks_are_shared_by_the_bytes),
		cmocka_unit_test(folds_that_depend_are_not_side_by_side),
		cmocka_unit_test(packing_stops_at_the_first_that_depends),
		cmocka_unit_test(the_image_is_one_of_kernels_or_none),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
