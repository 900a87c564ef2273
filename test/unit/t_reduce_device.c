/* SPDX-License-Identifier: MIT */
/*
 * Goal: on a GPU the kernels give the bits of the scalar reference, and two
 * sources are folded about as fast as memory is copied.
 * Method: the trials of t_reduce_kernels.c in pinned memory, which both see;
 * kernels and the driver's copy timed by turns.  Skipped without a GPU.
 */
#include <dlfcn.h>

#include "reduce_trial.h"

/* What the driver's functions take; a result of 0 is success. */
#define MULTIPROCESSORS 16    /* CU_DEVICE_ATTRIBUTE_... */
#define NO_BINARY_FOR_GPU 209 /* CUDA_ERROR_... */

static struct {
	int (*init)(unsigned int flags);
	int (*device)(int *device, int number);
	int (*attribute)(int *value, int attribute, int device);
	int (*retain)(void **context, int device);
	int (*set_current)(void *context);
	int (*synchronize)(void);
	int (*load)(void **module, const void *image);
	int (*function)(void **function, void *module, const char *name);
	int (*launch)(void *function, unsigned int grid_x, unsigned int grid_y,
		      unsigned int grid_z, unsigned int block_x,
		      unsigned int block_y, unsigned int block_z,
		      unsigned int shared, void *stream, void **params,
		      void **extra);
	int (*host_alloc)(void **mem, size_t bytes, unsigned int flags);
	int (*alloc)(uint64_t *mem, size_t bytes);
	int (*copy)(uint64_t to, uint64_t from, size_t bytes, void *stream);
	int (*event_create)(void **event, unsigned int flags);
	int (*event_record)(void *event, void *stream);
	int (*event_synchronize)(void *event);
	int (*event_elapsed)(float *ms, void *from, void *to);
} cuda;

static void *kernels[WREATH_N_TYPES][REDUCE_N_OPS];
static unsigned int max_blocks;

static void skip_all(const char *why, int result)
{
	printf("%s (%d)\n", why, result);
	exit(77);
}

static void find_driver(void)
{
	static const struct {
		void *to;
		const char *name;
	} table[] = {
		{&cuda.init, "cuInit"},
		{&cuda.device, "cuDeviceGet"},
		{&cuda.attribute, "cuDeviceGetAttribute"},
		{&cuda.retain, "cuDevicePrimaryCtxRetain"},
		{&cuda.set_current, "cuCtxSetCurrent"},
		{&cuda.synchronize, "cuCtxSynchronize"},
		{&cuda.load, "cuModuleLoadData"},
		{&cuda.function, "cuModuleGetFunction"},
		{&cuda.launch, "cuLaunchKernel"},
		{&cuda.host_alloc, "cuMemHostAlloc"},
		{&cuda.alloc, "cuMemAlloc_v2"},
		{&cuda.copy, "cuMemcpyAsync"},
		{&cuda.event_create, "cuEventCreate"},
		{&cuda.event_record, "cuEventRecord"},
		{&cuda.event_synchronize, "cuEventSynchronize"},
		{&cuda.event_elapsed, "cuEventElapsedTime"},
	};
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *symbol;
	size_t i;

	if (!library)
		skip_all("no CUDA driver", 0);
	for (i = 0; i < base_countof(table); i++) {
		symbol = dlsym(library, table[i].name);
		if (!symbol) {
			printf("the driver has no %s\n", table[i].name);
			skip_all("a driver too old", 0);
		}
		memcpy(table[i].to, &symbol, sizeof(symbol));
	}
}

static void find_kernels(void)
{
	size_t bytes;
	const void *image = reduce_gpu_image(&bytes);
	int device, type, op, result, n;
	void *context, *module;
	char name[64];

	if (!image)
		skip_all("built without nvcc", 0);
	find_driver();
	result = cuda.init(0);
	if (!result)
		result = cuda.device(&device, 0);
	if (!result)
		result = cuda.retain(&context, device);
	if (!result)
		result = cuda.set_current(context);
	if (result)
		skip_all("no GPU", result);
	result = cuda.load(&module, image);
	if (result == NO_BINARY_FOR_GPU)
		skip_all("a GPU before those of the image", result);
	assert_int_equal(result, 0);
	for (type = 0; type < WREATH_N_TYPES; type++) {
		for (op = 0; op < REDUCE_N_OPS; op++) {
			snprintf(name, sizeof(name), "wreath_fold_%s_%s",
				 base_type_name(type), base_op_name(op));
			assert_int_equal(cuda.function(&kernels[type][op],
						       module, name), 0);
		}
	}
	assert_int_equal(cuda.attribute(&n, MULTIPROCESSORS, device), 0);
	max_blocks = REDUCE_GPU_BLOCKS * (unsigned int)n;
}

/*
 * Pinned memory is slow to get: pieces of one that is used again when all of
 * them are back.
 */
#define ARENA_BYTES ((size_t)64 << 20)

static char *arena;
static size_t arena_used;
static int arena_pieces;

static void *alloc(size_t bytes)
{
	void *mem = arena + arena_used;

	arena_used += (bytes + 15) & ~(size_t)15;
	arena_pieces++;
	assert_true(arena_used <= ARENA_BYTES);
	return mem;
}

static void release(void *mem)
{
	(void)mem;
	if (!--arena_pieces)
		arena_used = 0;
}

static void start(enum wreath_type type, enum wreath_op op,
		  const struct reduce_gpu_batch *batch, unsigned int n_blocks)
{
	struct reduce_gpu_batch copy = *batch;
	void *params[] = {&copy};

	assert_int_equal(cuda.launch(kernels[type][op], n_blocks, 1, 1,
				     REDUCE_GPU_THREADS, 1, 1, 0, NULL, params,
				     NULL), 0);
}

static void launch(enum wreath_type type, enum wreath_op op,
		   const struct reduce_gpu_batch *batch, unsigned int n_blocks)
{
	start(type, op, batch, n_blocks);
	assert_int_equal(cuda.synchronize(), 0);
}

static const struct trial_device gpu = {alloc, release, launch};

static void all_pairs_of_8_bits(void **state)
{
	(void)state;
	trial_8_bits(&gpu);
}

static void all_codes_of_16_bits_with_edges(void **state)
{
	(void)state;
	trial_16_bits(&gpu);
}

static void jobs_of_any_shape(void **state)
{
	(void)state;
	trial_any_shape(&gpu);
}

/* Well above the second-level caches, of 50 MB and more. */
#define SPEED_BYTES ((size_t)256 << 20)
#define SPEED_SRC 4
/* Enough for launches to cost nothing beside. */
#define SPEED_TIMES 10

/* Of @n_src sources to one destination, or the driver's copy for none. */
static double seconds(enum wreath_type type, int n_src, const uint64_t *mem,
		      void *const *event)
{
	const void *src[SPEED_SRC];
	void *dst[1] = {(void *)(uintptr_t)mem[SPEED_SRC]};
	struct reduce_args args = {
		.dst = dst,
		.n_dst = 1,
		.src = src,
		.n_src = n_src,
		.count = SPEED_BYTES / wreath_type_size(type),
	};
	struct reduce_gpu_fold fold = {.args = &args, .factored = -1};
	struct reduce_gpu_batch batch;
	unsigned int n_blocks = 0;
	float ms;
	int i;

	for (i = 0; i < n_src; i++)
		src[i] = (const void *)(uintptr_t)mem[i];
	if (n_src)
		reduce_gpu_pack(&fold, 1, wreath_type_size(type), max_blocks,
				&batch, &n_blocks);
	assert_int_equal(cuda.event_record(event[0], NULL), 0);
	for (i = 0; i < SPEED_TIMES; i++) {
		if (n_src)
			start(type, WREATH_SUM, &batch, n_blocks);
		else
			assert_int_equal(cuda.copy(mem[SPEED_SRC], mem[0],
						   SPEED_BYTES, NULL), 0);
	}
	assert_int_equal(cuda.event_record(event[1], NULL), 0);
	assert_int_equal(cuda.event_synchronize(event[1]), 0);
	assert_int_equal(cuda.event_elapsed(&ms, event[0], event[1]), 0);
	return (double)ms / 1000;
}

/* Gigabytes read and written a second, the best of a few. */
static double speed(enum wreath_type type, int n_src, const uint64_t *mem,
		    void *const *event)
{
	double bytes = (double)SPEED_BYTES * ((n_src ? n_src : 1) + 1);
	double best = 0, now;
	int i;

	for (i = 0; i < 5; i++) {
		now = SPEED_TIMES * bytes / seconds(type, n_src, mem, event) /
		      1e9;
		best = now > best ? now : best;
	}
	return best;
}

static void two_sources_are_folded_as_fast_as_memory_is_copied(void **state)
{
	static const enum wreath_type types[] = {
		WREATH_FLOAT32, WREATH_BFLOAT16, WREATH_FLOAT16, WREATH_INT8,
		WREATH_FLOAT8E4M3, WREATH_FLOAT8E5M2, WREATH_FLOAT64,
	};
	static const int n_src[] = {1, 2, SPEED_SRC};
	uint64_t mem[SPEED_SRC + 1];
	void *event[2];
	double copy, fold;
	size_t i, k;

	(void)state;
	for (i = 0; i < base_countof(mem); i++) {
		if (cuda.alloc(&mem[i], SPEED_BYTES)) {
			printf("no %zu bytes of the GPU's memory\n",
			       SPEED_BYTES * base_countof(mem));
			skip();
		}
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(cuda.event_create(&event[i], 0), 0);
	copy = speed(WREATH_INT8, 0, mem, event);
	printf("copy: %.0f GB/s\n", copy);
	for (i = 0; i < base_countof(types); i++) {
		for (k = 0; k < base_countof(n_src); k++) {
			fold = speed(types[i], n_src[k], mem, event);
			printf("%s, %d sources: %.0f GB/s, %.2f of the copy\n",
			       base_type_name(types[i]), n_src[k], fold,
			       fold / copy);
			if (types[i] == WREATH_FLOAT32 && n_src[k] == 2)
				assert_true(fold >= 0.85 * copy);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_pairs_of_8_bits),
		cmocka_unit_test(all_codes_of_16_bits_with_edges),
		cmocka_unit_test(jobs_of_any_shape),
		cmocka_unit_test(
			two_sources_are_folded_as_fast_as_memory_is_copied),
	};

	alarm(120);
	find_kernels();
	assert_int_equal(cuda.host_alloc((void **)&arena, ARENA_BYTES, 0), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
