/* SPDX-License-Identifier: MIT */
/*
 * Goal: folds and copies on a GPU have the bits of the scalar reference,
 * whatever their operands' memory is, in the order of their numbers, although
 * streams run late.
 * Method: random jobs, many under way, on memory of which a copy is kept in
 * plain memory; the reference does the same there at once, in order.
 */
#define _GNU_SOURCE
#include "mem/cuda.h"
#include "test/unit/mem_gpu.h"

#define REGION ((size_t)300 << 10)
#define N_REGIONS 24
#define N_JOBS 220

enum place { DEVICE, PINNED, PLAIN };

static struct region {
	enum place place;
	char *at, *host, *shadow; /* @host: where the test reads it */
} regions[N_REGIONS];

static uint64_t seed, state;

static size_t chance(size_t n)
{
	return next_random(&state) % n;
}

static void regions_init(void)
{
	size_t i, k;

	for (i = 0; i < N_REGIONS; i++) {
		struct region *region = &regions[i];

		region->place = i % 3;
		region->at = new_memory(REGION,
					region->place == DEVICE ? 0 : -1);
		region->host = region->place == DEVICE
				       ? alias(region->at, REGION)
				       : region->at;
		if (region->place == PINNED)
			OK(mem_pin(region->at, REGION));
		region->shadow = malloc(REGION);
		for (k = 0; k < REGION; k++)
			region->shadow[k] = (char)next_random(&state);
		memcpy(region->host, region->shadow, REGION);
	}
}

static void regions_release(void)
{
	size_t i;

	for (i = 0; i < N_REGIONS; i++) {
		if (regions[i].place == PINNED)
			mem_unpin(regions[i].at);
		OK(mem_free(regions[i].at));
		free(regions[i].shadow);
	}
}

struct draft {
	struct mem_job job;
	const void *src[REDUCE_MAX], *shadow_src[REDUCE_MAX];
	void *dst[REDUCE_MAX], *shadow_dst[REDUCE_MAX];
	uint64_t factor;
	size_t elem;
	size_t skew[N_REGIONS];
};

static size_t draw_count(size_t elem)
{
	static const size_t most[] = {1, 17, 500, 5000, 70000, REGION};

	return chance(most[chance(6)] / elem + 1);
}

static void draw_operands(struct draft *draft)
{
	struct reduce_args *fold = &draft->job.fold;
	bool is_used[N_REGIONS] = {false};
	int i;

	draft->job.is_pinned = true;
	for (i = 0; i < fold->n_src + fold->n_dst; i++) {
		size_t at = chance(N_REGIONS);
		struct region *region = &regions[at];
		bool is_dst = i >= fold->n_src;
		int k = is_dst ? i - fold->n_src : i;

		while (is_dst && is_used[at])
			at = (at + 1) % N_REGIONS;
		region = &regions[at];
		is_used[at] |= is_dst;
		draft->job.is_pinned &= region->place != PLAIN;
		if (is_dst) {
			draft->dst[k] = region->at + draft->skew[at];
			draft->shadow_dst[k] = region->shadow + draft->skew[at];
			if (region->place == DEVICE)
				draft->job.gpu_dst |= 1ull << k;
		} else {
			draft->src[k] = region->at + draft->skew[at];
			draft->shadow_src[k] = region->shadow + draft->skew[at];
			if (region->place == DEVICE)
				draft->job.gpu_src |= 1ull << k;
		}
	}
}

static void draw(struct draft *draft)
{
	struct reduce_args *fold = &draft->job.fold;
	size_t i;

	memset(draft, 0, sizeof(*draft));
	draft->job.type = (enum wreath_type)chance(WREATH_N_TYPES);
	draft->job.op = (enum wreath_op)chance(WREATH_AVG);
	/* Runs of one kind go by one launch. */
	if (chance(3)) {
		draft->job.type = WREATH_FLOAT32;
		draft->job.op = WREATH_SUM;
	}
	draft->elem = wreath_type_size(draft->job.type);
	*fold = (struct reduce_args){
		.src = draft->src,
		.dst = draft->dst,
		.n_src = (int)(chance(20) ? 1 + chance(4) : 1 + chance(64)),
		.n_dst = (int)(1 + chance(3)),
		.count = draw_count(draft->elem),
		.divisor = draft->job.op || chance(4) ? 0
						      : (unsigned)chance(9),
	};
	for (i = 0; i < N_REGIONS; i++)
		draft->skew[i] = chance(2) ? 0
			: chance(REGION - fold->count * draft->elem + 1);
	draw_operands(draft);
	if (!chance(4)) {
		draft->factor = next_random(&state);
		draft->job.factor = &draft->factor;
		draft->job.i_factor = (int)chance((size_t)fold->n_src);
	}
}

static void shadow_fold(const struct draft *draft)
{
	static char product[REGION], factors[REGION];
	const struct mem_job *job = &draft->job;
	struct reduce_args args = job->fold;
	const void *src[REDUCE_MAX];
	size_t i;

	memcpy(src, draft->shadow_src, sizeof(src));
	args.src = src;
	args.dst = draft->shadow_dst;
	if (!args.count)
		return;
	if (job->factor) {
		void *dst[] = {product};
		const void *both[] = {src[job->i_factor], factors};

		for (i = 0; i < args.count; i++)
			memcpy(factors + i * draft->elem, &draft->factor,
			       draft->elem);
		reduce_get(job->type, WREATH_PROD, true)(&(struct reduce_args){
			.dst = dst, .n_dst = 1, .src = both, .n_src = 2,
			.count = args.count});
		src[job->i_factor] = product;
	}
	reduce_get(job->type, job->op, true)(&args);
}

static void compare(void)
{
	size_t i, k;

	for (i = 0; i < N_REGIONS; i++) {
		for (k = 0; k < REGION; k++)
			if (regions[i].host[k] != regions[i].shadow[k])
				break;
		if (k == REGION)
			continue;
		fprintf(stderr, "region %zu (kind %d) differs at byte %zu, "
			"seed %llu\n", i, (int)regions[i].place, k,
			(unsigned long long)seed);
		CHECK(0);
	}
}

static void copy(struct mem_gpu *gpu, uint64_t *number)
{
	size_t from, to, bytes;

	do {
		from = chance(N_REGIONS);
		to = chance(N_REGIONS);
	} while (regions[from].place == PLAIN || regions[to].place == PLAIN ||
		 from == to);
	bytes = chance(REGION + 1);
	while (mem_gpu_copy(gpu, regions[to].at, regions[from].at, bytes,
			    number) == WREATH_EAGAIN)
		OK(mem_gpu_push(gpu));
	memcpy(regions[to].shadow, regions[from].shadow, bytes);
}

/* The words that the next one to open a GPU gets are soon to go round. */
static void set_words(void)
{
	struct cuda_words words;
	struct cuda_gpu *gpu;

	OK(cuda_gpu_get(0, &gpu));
	OK(cuda_words_get(gpu, &words));
	atomic_store(words.from_gpu, UINT32_MAX - (uint32_t)(seed % 40));
	cuda_words_put(&words);
}

static void random_jobs(void)
{
	uint64_t number = 0, known = 0, last = 0;
	struct mem_gpu *gpu;
	int i;

	set_words();
	gpu = open_gpu(0, (size_t)64 << 10);
	state = seed;
	regions_init();
	for (i = 0; i < N_JOBS; i++) {
		static struct draft draft;
		int err;

		draw(&draft);
		if (!chance(6))
			copy(gpu, &number);
		else {
			do {
				err = mem_gpu_fold(gpu, &draft.job, &number);
				if (err)
					OK(mem_gpu_push(gpu));
			} while (err == WREATH_EAGAIN);
			OK(err);
			shadow_fold(&draft);
		}
		CHECK(number == ++last);
		/* Done is done for all before. */
		if (!chance(5))
			OK(mem_gpu_push(gpu));
		if (mem_gpu_done(gpu, known + chance(last - known + 1)) == 1)
			known = mem_gpu_done(gpu, last) ? last : known;
		CHECK(mem_gpu_done(gpu, known) == 1);
	}
	drain(gpu);
	CHECK(mem_gpu_done(gpu, last) == 1);
	compare();
	mem_gpu_close(gpu);
	regions_release();
	CHECK(!CU(fakeCudaCalls)("cuCtxSynchronize"));
	CHECK(!CU(fakeCudaCalls)("cuStreamSynchronize"));
}

static void run_random(const char *reduce)
{
	char settings[64];
	int i;

	set_image("fake");
	setenv("WREATH_GPU_REDUCE", reduce, 1);
	seed = seed_of_run();
	for (i = 0; i < 3; i++, seed++) {
		snprintf(settings, sizeof(settings), "seed=%llu,late=%dus",
			 (unsigned long long)seed, i * 40);
		gpu_case(settings, random_jobs);
	}
}

static void kernels_fold_as_the_reference_does(void **unused)
{
	(void)unused;
	run_random("gpu");
}

static void staged_folds_have_the_same_bits(void **unused)
{
	(void)unused;
	run_random("host");
}

static void fill(void)
{
	struct mem_gpu *gpu = open_gpu(1, 4096);
	char *at = new_memory(8192, 1);
	struct mem_job job = {.type = WREATH_INT8};
	uint64_t number, i;

	for (i = 1; i <= MEM_JOBS_MAX; i++) {
		one_fold(gpu, at, &number);
		CHECK(number == i);
	}
	job.fold = (struct reduce_args){
		.src = (const void *[]){at}, .dst = (void *[]){at},
		.n_src = 1, .n_dst = 1, .count = 1};
	FAILS(WREATH_EAGAIN, mem_gpu_fold(gpu, &job, &number));
	FAILS(WREATH_EAGAIN, mem_gpu_copy(gpu, at, at, 1, &number));
	/* Nothing is under way before it is pushed. */
	CHECK(mem_gpu_done(gpu, 1) == 0);
	OK(mem_gpu_push(gpu));
	for (i = MEM_JOBS_MAX; i; i--) {
		while (!mem_gpu_done(gpu, i))
			sched_yield();
		CHECK(mem_gpu_done(gpu, 1) == 1);
	}
	one_fold(gpu, at, &number);
	CHECK(number == MEM_JOBS_MAX + 1);
	drain(gpu);
	/* What is not pushed is never done. */
	memset(alias(at, 8192), 0, 8192);
	alias(at, 8192)[4096] = 1;
	one_fold(gpu, at, &number);
	mem_gpu_close(gpu);
	CHECK(!alias(at, 8192)[0]);
	OK(mem_free(at));
}

static void the_queue_is_bounded(void **unused)
{
	(void)unused;
	set_image("fake");
	setenv("WREATH_GPU_REDUCE", "auto", 1);
	gpu_case("late=1ms", fill);
	setenv("WREATH_GPU_REDUCE", "host", 1);
	gpu_case("late=1ms", fill);
}

static void stuck(void)
{
	struct mem_gpu *gpu = open_gpu(0, 4096);
	char *at = new_memory(8192, 0);
	uint64_t number;
	int i;

	/* Each launch is late by chance: of several, one is. */
	for (i = 0; i < 40; i++)
		one_fold(gpu, at, &number);
	FAILS(WREATH_EDEVICE, mem_gpu_drain(gpu, 0));
	CHECK(tells("jobs within 0 ms"));
	drain(gpu);
	mem_gpu_close(gpu);
	OK(mem_free(at));
}

static void a_drain_has_a_deadline(void **unused)
{
	(void)unused;
	set_image("fake");
	setenv("WREATH_GPU_REDUCE", "gpu", 1);
	gpu_case("late=100ms", stuck);
}

static void fail_behind(void)
{
	struct mem_gpu *gpu = open_gpu(0, 4096);
	char *at = new_memory(8192, 0);
	uint64_t number;

	memset(alias(at, 8192), 0, 8192);
	alias(at, 8192)[4096] = 1;
	one_fold(gpu, at, &number);
	OK(mem_gpu_push(gpu));
	CU(fakeCudaFail)("cuLaunchKernel", 1);
	one_fold(gpu, at, &number);
	FAILS(WREATH_EDEVICE, mem_gpu_push(gpu));
	FAILS(WREATH_EDEVICE, mem_gpu_drain(gpu, 5000));
	CHECK(alias(at, 8192)[0] == 1);
	mem_gpu_close(gpu);
	OK(mem_free(at));
}

static void a_drain_waits_for_what_began_before_a_failure(void **unused)
{
	(void)unused;
	set_image("fake");
	setenv("WREATH_GPU_REDUCE", "gpu", 1);
	gpu_case("late=300ms", fail_behind);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_fold_as_the_reference_does),
		cmocka_unit_test(staged_folds_have_the_same_bits),
		cmocka_unit_test(the_queue_is_bounded),
		cmocka_unit_test(a_drain_has_a_deadline),
		cmocka_unit_test(a_drain_waits_for_what_began_before_a_failure),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
