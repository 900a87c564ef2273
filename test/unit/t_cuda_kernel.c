/* SPDX-License-Identifier: MIT */
/*
 * Goal: the simulated driver's kernels fold as reduce does, and take nothing
 * that would go wrong on a GPU.
 * Method: folds of every type and operation against reduce's reference; and
 * batches with one mistake each, after which the context must have failed.
 */
#include "reduce/gpu.h"
#include "reduce/reduce.h"
#include "test/unit/cuda_kit.h"

#define COUNT 1000
#define BYTES (COUNT * 8)

static struct CUmod_st *module;

static struct CUfunc_st *function(enum wreath_type type, enum wreath_op op)
{
	struct CUfunc_st *fn;
	char name[64];

	snprintf(name, sizeof(name), "wreath_fold_%s_%s",
		 base_type_name((unsigned int)type),
		 base_op_name((unsigned int)op));
	OK(CU(cuModuleGetFunction)(&fn, module, name));
	return fn;
}

static int launch(struct CUfunc_st *fn, struct reduce_gpu_batch *batch,
		  unsigned int grid, struct CUstream_st *stream)
{
	void *params[] = {batch};

	return CU(cuLaunchKernel)(fn, grid, 1, 1, REDUCE_GPU_THREADS, 1, 1, 0,
				  stream, params, NULL);
}

/* One job of two sources and two destinations. */
static void batch_init(struct reduce_gpu_batch *batch, cu_ptr a, cu_ptr b,
		       cu_ptr x, cu_ptr y)
{
	memset(batch, 0, sizeof(*batch));
	batch->n_jobs = 1;
	batch->jobs[0].count = COUNT;
	batch->jobs[0].factored = -1;
	batch->jobs[0].n_src = 2;
	batch->jobs[0].n_dst = 2;
	batch->jobs[0].n_blocks = 3;
	batch->pointers[0] = a;
	batch->pointers[1] = b;
	batch->pointers[2] = x;
	batch->pointers[3] = y;
}

static void fill(unsigned char *at, uint64_t state)
{
	size_t i;

	for (i = 0; i < BYTES; i++) {
		state = state * UINT64_C(6364136223846793005) + 1;
		at[i] = (unsigned char)(state >> 56);
	}
}

static unsigned char one[BYTES], two[BYTES], want[BYTES], is[2][BYTES];

static void fold_one(enum wreath_type type, enum wreath_op op, cu_ptr ptr,
		     unsigned char *pinned)
{
	void *dst[] = {want};
	const void *src[] = {one, two};
	struct reduce_args args = {.dst = dst, .n_dst = 1, .src = src,
				   .n_src = 2, .count = COUNT};
	size_t bytes = COUNT * wreath_type_size(type);
	struct reduce_gpu_batch batch;

	reduce_get(type, op, true)(&args);
	memcpy(pinned, two, BYTES);
	OK(CU(cuMemcpyHtoD_v2)(ptr, one, BYTES));
	batch_init(&batch, ptr, (uintptr_t)pinned, ptr + BYTES,
		   (uintptr_t)pinned);
	OK(launch(function(type, op), &batch, 3, NULL));
	/* It was copied. */
	memset(&batch, 0xff, sizeof(batch));
	OK(CU(cuMemcpyDtoH_v2)(is[0], ptr + BYTES, bytes));
	CHECK(!memcmp(is[0], want, bytes));
	CHECK(!memcmp(pinned, want, bytes));
}

static void fold_all(void)
{
	void *pinned;
	int type, op;
	cu_ptr ptr;

	OK(CU(cuInit)(0));
	kit_use(0);
	FAILS(CUDA_ERROR_INVALID_IMAGE, CU(cuModuleLoadData)(&module, "nothing"));
	OK(CU(cuModuleLoadData)(&module, "fake"));
	OK(CU(cuMemHostAlloc)(&pinned, BYTES, 0));
	ptr = kit_alloc((size_t)2 * BYTES);
	fill(one, 1);
	fill(two, 2);
	for (type = 0; type < WREATH_N_TYPES; type++)
		for (op = 0; op < WREATH_AVG; op++)
			fold_one((enum wreath_type)type, (enum wreath_op)op,
				 ptr, pinned);
	OK(CU(cuMemFree_v2)(ptr));
	OK(CU(cuMemFreeHost)(pinned));
	OK(CU(cuModuleUnload)(module));
	kit_leave(0);
}

static void kernels_have_the_bits_of_the_reference(void **state)
{
	(void)state;
	kit_case("", fold_all);
}

static void scale(void)
{
	int32_t values[] = {1, -7, 30};
	int32_t factor = 5;
	struct reduce_gpu_batch batch;
	cu_ptr ptr;

	OK(CU(cuInit)(0));
	kit_use(0);
	OK(CU(cuModuleLoadData)(&module, "fake"));
	ptr = kit_alloc(sizeof(values));
	OK(CU(cuMemcpyHtoD_v2)(ptr, values, sizeof(values)));
	batch_init(&batch, ptr, 0, 0, 0);
	batch.jobs[0].count = 3;
	batch.jobs[0].n_src = 1;
	batch.jobs[0].n_dst = 1;
	batch.pointers[1] = ptr;
	batch.jobs[0].factored = 0;
	memcpy(&batch.jobs[0].factor, &factor, sizeof(factor));
	batch.jobs[0].divisor = 3;
	OK(launch(function(WREATH_INT32, WREATH_SUM), &batch, 3, NULL));
	OK(CU(cuMemcpyDtoH_v2)(values, ptr, sizeof(values)));
	CHECK(values[0] == 1 && values[1] == -11 && values[2] == 50);
	OK(CU(cuMemFree_v2)(ptr));
	OK(CU(cuModuleUnload)(module));
	kit_leave(0);
}

static void a_factor_comes_first_and_a_divisor_last(void **state)
{
	(void)state;
	kit_case("", scale);
}

/* Each of these is the end of the context. */
enum mistake {
	PAGEABLE,
	FREED,
	PEER,
	TOO_LONG,
	GRID,
	OVERLAP,
	RACE,
	N_MISTAKES,
};

static enum mistake mistake;

static void make_mistake(struct reduce_gpu_batch *batch, cu_ptr ptr)
{
	static char pageable_bytes[BYTES];
	cu_ptr gone;

	switch (mistake) {
	case PAGEABLE:
		batch->pointers[1] = (uintptr_t)pageable_bytes;
		break;
	case FREED:
		gone = kit_alloc(BYTES);
		OK(CU(cuMemFree_v2)(gone));
		batch->pointers[1] = gone;
		break;
	case TOO_LONG:
		batch->jobs[0].count = 3 * COUNT;
		break;
	case GRID:
		batch->jobs[0].n_blocks = 4;
		break;
	case OVERLAP:
		batch->pointers[2] = ptr + 8;
		break;
	case RACE:
		batch->n_jobs = 2;
		batch->jobs[0].n_blocks = 1;
		batch->jobs[1] = batch->jobs[0];
		batch->jobs[1].first = 4;
		batch->jobs[1].first_block = 1;
		batch->jobs[1].n_blocks = 2;
		memcpy(&batch->pointers[4], batch->pointers, 32);
		break;
	default:
		break;
	}
}

static void fail_once(void)
{
	struct CUstream_st *stream;
	struct CUctx_st *ctx, *other;
	struct reduce_gpu_batch batch;
	cu_ptr ptr, theirs, more;
	int err;

	OK(CU(cuInit)(0));
	other = kit_use(1);
	theirs = kit_alloc(BYTES);
	ctx = kit_use(0);
	OK(CU(cuModuleLoadData)(&module, "fake"));
	ptr = kit_alloc((size_t)2 * BYTES);
	OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
	batch_init(&batch, ptr, ptr, ptr, ptr + BYTES);
	if (mistake == PEER) {
		batch.pointers[1] = theirs;
		OK(CU(cuCtxEnablePeerAccess)(other, 0));
		OK(launch(function(WREATH_INT64, WREATH_SUM), &batch, 3,
			  stream));
		OK(CU(cuStreamSynchronize)(stream));
		OK(CU(cuCtxDisablePeerAccess)(other));
	}
	make_mistake(&batch, ptr);
	OK(launch(function(WREATH_INT64, WREATH_SUM), &batch, 3, stream));
	err = CU(cuStreamSynchronize)(stream);
	CHECK(err == CUDA_ERROR_ILLEGAL_ADDRESS ||
	      (mistake >= GRID && err == CUDA_ERROR_LAUNCH_FAILED));
	/* It stays, on this device alone. */
	FAILS(err, CU(cuMemAlloc_v2)(&more, 1));
	FAILS(err, CU(cuStreamQuery)(stream));
	FAILS(err, CU(cuStreamDestroy_v2)(stream));
	FAILS(err, CU(cuModuleUnload)(module));
	FAILS(err, CU(cuMemFree_v2)(ptr));
	OK(CU(cuCtxSetCurrent)(other));
	OK(CU(cuMemFree_v2)(theirs));
	OK(CU(cuDevicePrimaryCtxRelease_v2)(0));
	OK(CU(cuDevicePrimaryCtxRelease_v2)(1));
	(void)ctx;
}

static void a_mistake_of_a_kernel_stays(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < N_MISTAKES; i++) {
		mistake = (enum mistake)i;
		kit_case("", fail_once);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_have_the_bits_of_the_reference),
		cmocka_unit_test(a_factor_comes_first_and_a_divisor_last),
		cmocka_unit_test(a_mistake_of_a_kernel_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
