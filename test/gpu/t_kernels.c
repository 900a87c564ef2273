/* SPDX-License-Identifier: MIT */
/*
 * Goal: on a GPU, folds by kernels have the bits of the scalar reference: every
 * type and operation, any number of sources and destinations, at any address,
 * with factors and divisors, on memory of the GPU and pinned memory of the
 * host; and they write nothing else.
 * Method: random batches of folds between regions, of which the host has
 * copies, where the reference does the same; then all regions are compared,
 * byte by byte.  CASES says how many batches of each type and operation; FEW
 * leaves out what is long.
 */
#include "bench/cuda.c"
#include "test/unit/reduce_test.h"

#define REGION ((size_t)128 << 10)
#define N_DEVICE 12
#define N_REGIONS 16 /* the others are pinned memory of the host */
#define TOTAL (N_REGIONS * REGION)
#define SKEW_MAX 64

static struct {
	struct bench_gpu cuda;
	struct mem_gpu *mem;
	char *device, *pinned;
	char *shadow; /* [TOTAL]: what must be in all regions, in order */
	char *got, *scratch;
	uint64_t state;
	size_t skews[N_REGIONS];
} gpu;

static size_t chance(size_t n)
{
	return test_random(&gpu.state) % n;
}

static char *region_at(size_t i)
{
	return i < N_DEVICE ? gpu.device + i * REGION
			    : gpu.pinned + (i - N_DEVICE) * REGION;
}

static void ok(int error)
{
	if (error)
		fail_msg("%s", wreath_error_text());
}

/* Regions of random bits of a type, which the host knows as well. */
static void fill_regions(size_t elem)
{
	test_fill(gpu.shadow, TOTAL / elem, elem, &gpu.state);
	ok(bench_gpu_copy(&gpu.cuda, gpu.device, gpu.shadow,
			  N_DEVICE * REGION));
	memcpy(gpu.pinned, gpu.shadow + N_DEVICE * REGION,
	       (N_REGIONS - N_DEVICE) * REGION);
}

/* ---- a fold, there and here ---- */

struct draft {
	struct mem_job job;
	uint64_t factor;
	const void *src[REDUCE_MAX], *shadow_src[REDUCE_MAX];
	void *dst[N_REGIONS], *shadow_dst[N_REGIONS];
};

static void draw_operands(struct draft *draft, size_t count)
{
	struct reduce_args *fold = &draft->job.fold;
	size_t at = chance(N_REGIONS);
	int i;

	fold->count = count;
	fold->src = draft->src;
	fold->dst = draft->dst;
	for (i = 0; i < fold->n_src; i++) {
		size_t r = chance(N_REGIONS);

		draft->src[i] = region_at(r) + gpu.skews[r];
		draft->shadow_src[i] = gpu.shadow + r * REGION + gpu.skews[r];
		if (r < N_DEVICE)
			draft->job.gpu_src |= 1ull << i;
	}
	/* Each region once: a result may lie upon a source, but no other. */
	for (i = 0; i < fold->n_dst; i++) {
		size_t r = (at + (size_t)i) % N_REGIONS;

		draft->dst[i] = region_at(r) + gpu.skews[r];
		draft->shadow_dst[i] = gpu.shadow + r * REGION + gpu.skews[r];
		if (r < N_DEVICE)
			draft->job.gpu_dst |= 1ull << i;
	}
}

static void draw(struct draft *draft, enum wreath_type type, enum wreath_op op)
{
	static const int sources[] = {1, 2, 2, 2, 3, 4, 8, 0};
	static const size_t bytes[] = {1, 40, 1000, 9000, 40000,
				       REGION - SKEW_MAX};
	size_t elem = wreath_type_size(type);
	struct reduce_args *fold = &draft->job.fold;

	memset(draft, 0, sizeof(*draft));
	draft->job.type = type;
	draft->job.op = op;
	draft->job.is_pinned = true;
	fold->n_src = sources[chance(base_countof(sources))];
	if (!fold->n_src)
		fold->n_src = 1 + (int)chance(REDUCE_MAX);
	fold->n_dst = chance(3) ? 1 : 1 + (int)chance(N_REGIONS);
	if (op == WREATH_SUM && !chance(4))
		fold->divisor = 2 + (unsigned int)chance(1000);
	if (op == WREATH_SUM && !chance(4)) {
		test_fill(&draft->factor, 1, elem, &gpu.state);
		draft->job.factor = &draft->factor;
		draft->job.i_factor = (int)chance((size_t)fold->n_src);
	}
	draw_operands(draft, chance(bytes[chance(base_countof(bytes))] / elem +
				    1));
}

/* The host's copies, by the reference; a factor is a product of its own. */
static void do_here(const struct draft *draft)
{
	struct reduce_args fold = draft->job.fold;
	size_t elem = wreath_type_size(draft->job.type);
	const void *src[REDUCE_MAX];
	size_t i;

	memcpy(src, draft->shadow_src, sizeof(src));
	fold.src = src;
	fold.dst = draft->shadow_dst;
	if (draft->job.factor) {
		char *factors = gpu.scratch + REGION;
		const void *two[] = {src[draft->job.i_factor], factors};
		void *product = gpu.scratch;
		const struct reduce_args times = {
			.src = two, .n_src = 2, .dst = &product, .n_dst = 1,
			.count = fold.count};

		for (i = 0; i < fold.count; i++)
			memcpy(factors + i * elem, &draft->factor, elem);
		reduce_get(draft->job.type, WREATH_PROD, true)(&times);
		src[draft->job.i_factor] = product;
	}
	reduce_get(draft->job.type, draft->job.op, true)(&fold);
}

static void compare(enum wreath_type type, enum wreath_op op, int round)
{
	size_t i;

	ok(bench_gpu_copy(&gpu.cuda, gpu.got, gpu.device, N_DEVICE * REGION));
	memcpy(gpu.got + N_DEVICE * REGION, gpu.pinned,
	       (N_REGIONS - N_DEVICE) * REGION);
	if (!memcmp(gpu.got, gpu.shadow, TOTAL))
		return;
	for (i = 0; gpu.got[i] == gpu.shadow[i]; i++)
		;
	fail_msg("type %d, operation %d, batch %d: byte %zu of region %zu, "
		 "which begins at %zu, is %02x and not %02x", (int)type,
		 (int)op, round, i % REGION, i / REGION,
		 gpu.skews[i / REGION], (unsigned char)gpu.got[i],
		 (unsigned char)gpu.shadow[i]);
}

/* Several at once, so that launches have more than one, and they depend. */
static void do_batch(enum wreath_type type, enum wreath_op op, int round)
{
	static struct draft draft;
	size_t n_jobs = 1 + chance(12);
	uint64_t number;
	size_t i;

	for (i = 0; i < N_REGIONS; i++)
		gpu.skews[i] = chance(SKEW_MAX);
	for (i = 0; i < n_jobs; i++) {
		draw(&draft, type, op);
		ok(mem_gpu_fold(gpu.mem, &draft.job, &number));
		do_here(&draft);
	}
	ok(mem_gpu_drain(gpu.mem, 30000));
	compare(type, op, round);
}

static void folds_have_the_bits_of_the_reference(void **state)
{
	int64_t n = 12;
	int type, op, round;

	(void)state;
	if (getenv("CASES"))
		assert_true(base_parse_int(getenv("CASES"), 1, 100000, &n));
	for (type = 0; type < WREATH_N_TYPES; type++) {
		fill_regions(wreath_type_size((enum wreath_type)type));
		for (op = 0; op < WREATH_AVG; op++)
			for (round = 0; round < n; round++)
				do_batch((enum wreath_type)type,
					 (enum wreath_op)op, round);
	}
}

/* Places that no 32-bit number of bytes or elements reaches. */
static void counts_may_exceed_32_bits(void **state)
{
	size_t count = ((size_t)1 << 32) + 12345;
	size_t part = TOTAL;
	void *src[2] = {NULL, NULL};
	void *dst = NULL;
	struct mem_job job = {
		.fold = {.dst = &dst, .n_dst = 1, .n_src = 2, .count = count},
		.type = WREATH_UINT8, .op = WREATH_SUM, .gpu_src = 3,
		.gpu_dst = 1};
	const void *from[2];
	uint64_t number;
	size_t i;

	(void)state;
	if (getenv("FEW") || mem_gpu_about(gpu.mem)->bytes / 4 < count ||
	    mem_gpu_alloc(count, 0, &src[0]) ||
	    mem_gpu_alloc(count, 0, &src[1]) ||
	    mem_gpu_alloc(count, 0, &dst)) {
		mem_free(src[0]);
		mem_free(src[1]);
		print_message("no time, or no room for three times 4 GB\n");
		skip();
	}
	from[0] = src[0];
	from[1] = src[1];
	job.fold.src = from;
	ok(bench_gpu_put_fill(&gpu.cuda, src[0], 17, count));
	ok(bench_gpu_put_fill(&gpu.cuda, src[1], 250, count));
	ok(bench_gpu_put_fill(&gpu.cuda, dst, 0, count));
	ok(bench_gpu_wait(&gpu.cuda));
	ok(mem_gpu_fold(gpu.mem, &job, &number));
	ok(mem_gpu_drain(gpu.mem, 30000));
	ok(bench_gpu_copy(&gpu.cuda, gpu.got, (char *)dst + count - part,
			  part));
	ok(mem_free(src[0]));
	ok(mem_free(src[1]));
	ok(mem_free(dst));
	for (i = 0; i < part; i++)
		assert_int_equal((unsigned char)gpu.got[i], 11);
}

static int open_all(void **state)
{
	void *memory;

	(void)state;
	gpu.state = test_seed();
	ok(bench_gpu_open(0, &gpu.cuda));
	ok(mem_gpu_open(0, REGION, &gpu.mem));
	ok(mem_gpu_alloc(N_DEVICE * REGION, 0, &memory));
	gpu.device = memory;
	ok(mem_pinned_new((N_REGIONS - N_DEVICE) * REGION, &memory));
	gpu.pinned = memory;
	gpu.shadow = malloc(TOTAL);
	gpu.got = malloc(TOTAL);
	gpu.scratch = malloc(2 * REGION);
	assert_true(gpu.shadow && gpu.got && gpu.scratch);
	print_message("GPU 0: %s, %s%s\n", mem_gpu_about(gpu.mem)->name,
		      mem_gpu_about(gpu.mem)->has_kernels
			      ? "by kernels" : "staged: ",
		      mem_gpu_about(gpu.mem)->why);
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	mem_gpu_close(gpu.mem);
	mem_free(gpu.device);
	mem_pinned_free(gpu.pinned);
	free(gpu.shadow);
	free(gpu.got);
	free(gpu.scratch);
	bench_gpu_close(&gpu.cuda);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folds_have_the_bits_of_the_reference),
		cmocka_unit_test(counts_may_exceed_32_bits),
	};

	alarm(300);
	if (mem_cuda_load()) {
		printf("%s\n", wreath_error_text());
		return 77;
	}
	return cmocka_run_group_tests(tests, open_all, close_all);
}
