/* SPDX-License-Identifier: MIT */
/*
 * For the tests of the reduce room: folds by the kernels of GPUs, wherever
 * those run, against the scalar reference.
 */
#ifndef REDUCE_TRIAL_H
#define REDUCE_TRIAL_H

#include "reduce_test.h"
#include "reduce/gpu.h"

/* What runs kernels: memory that it reaches as the processor does. */
struct trial_device {
	/* Aligned to 16 bytes, never NULL. */
	void *(*alloc)(size_t bytes);
	void (*release)(void *mem);
	/* Returns when it is done. */
	void (*launch)(enum wreath_type type, enum wreath_op op,
		       const struct reduce_gpu_batch *batch,
		       unsigned int n_blocks);
};

/* Bytes kept around each vector, which must stay as they are. */
#define MARGIN 32

static inline uint8_t *new_bytes(size_t bytes)
{
	uint8_t *p = malloc(bytes);

	assert_non_null(p);
	return p;
}

/* One job: sources multiplied, folded and divided as the door says. */
static inline void reference(enum wreath_type type, enum wreath_op op,
			     const struct reduce_gpu_fold *fold, void *out)
{
	size_t elem = wreath_type_size(type), count = fold->args->count, i;
	uint8_t *factors = new_bytes(count * elem + 1);
	uint8_t *scaled = new_bytes(count * elem + 1);
	const void *pair[2], *src[REDUCE_MAX];
	void *dst[1] = {scaled};
	struct reduce_args args = *fold->args;

	memcpy(src, args.src, (size_t)args.n_src * sizeof(src[0]));
	args.dst = dst;
	args.n_dst = 1;
	args.flags = 0;
	if (fold->factored >= 0) {
		struct reduce_args product = args;

		for (i = 0; i < count; i++)
			memcpy(factors + i * elem, &fold->factor, elem);
		pair[0] = src[fold->factored];
		pair[1] = factors;
		product.src = pair;
		product.n_src = 2;
		product.divisor = 0;
		reduce_get(type, WREATH_PROD, true)(&product);
		src[fold->factored] = scaled;
	}
	args.src = src;
	dst[0] = out;
	reduce_get(type, op, true)(&args);
	free(scaled);
	free(factors);
}

/* Two vectors, to @out, with a divisor or none. */
static inline void expect_pair(const struct trial_device *device,
			       enum wreath_type type, enum wreath_op op,
			       const void *a, const void *b, size_t count,
			       unsigned int divisor)
{
	size_t bytes = count * wreath_type_size(type);
	uint8_t *want = new_bytes(bytes), *got = device->alloc(bytes);
	const void *src[2] = {a, b};
	void *dst[1] = {got};
	struct reduce_args args = {
		.dst = dst,
		.n_dst = 1,
		.src = src,
		.n_src = 2,
		.count = count,
		.divisor = divisor,
	};
	struct reduce_gpu_fold fold = {.args = &args, .factored = -1};
	struct reduce_gpu_batch batch;
	unsigned int n_blocks;

	assert_int_equal(reduce_gpu_pack(&fold, 1, wreath_type_size(type), 4,
					 &batch, &n_blocks), 1);
	reference(type, op, &fold, want);
	device->launch(type, op, &batch, n_blocks);
	assert_memory_equal(got, want, bytes);
	free(want);
	device->release(got);
}

static inline void trial_8_bits(const struct trial_device *device)
{
	static const enum wreath_type types[] = {
		WREATH_INT8, WREATH_UINT8, WREATH_FLOAT8E4M3,
		WREATH_FLOAT8E5M2,
	};
	uint8_t *a = device->alloc(65536), *b = device->alloc(65536);
	size_t i;
	int op;

	for (i = 0; i < 65536; i++) {
		a[i] = (uint8_t)i;
		b[i] = (uint8_t)(i >> 8);
	}
	for (i = 0; i < base_countof(types); i++) {
		for (op = 0; op < REDUCE_N_OPS; op++) {
			expect_pair(device, types[i], op, a, b, 65536, 0);
			expect_pair(device, types[i], op, a, b, 65536, 3);
		}
	}
	device->release(b);
	device->release(a);
}

static inline void trial_16_bits(const struct trial_device *device)
{
	static const enum wreath_type types[] = {
		WREATH_INT16, WREATH_UINT16, WREATH_FLOAT16, WREATH_BFLOAT16,
	};
	uint16_t *a = device->alloc(65536 * 2);
	uint16_t *b = device->alloc(65536 * 2);
	size_t i, k;
	int op;

	for (i = 0; i < 65536; i++)
		a[i] = (uint16_t)i;
	for (k = 0; k < base_countof(test_special32); k++) {
		for (i = 0; i < 65536; i++)
			b[i] = (uint16_t)(test_special32[k] >> 16);
		/* Edges of float16, too, and of 16-bit integers. */
		for (i = 0; k & 1 && i < 65536; i++)
			b[i] = (uint16_t)((b[i] & 0x8000) |
					  (test_special32[k] >> 19 & 0x7fff));
		for (i = 0; i < base_countof(types); i++)
			for (op = 0; op < REDUCE_N_OPS; op++)
				expect_pair(device, types[i], op, a, b, 65536,
					    k & 3 ? 0 : 7);
	}
	device->release(b);
	device->release(a);
}

/* A fold of random shape, its memory, and what is to come out. */
struct trial {
	struct reduce_gpu_fold fold;
	struct reduce_args args;
	const void *src[REDUCE_MAX];
	void *dst[REDUCE_MAX];
	/* Memory of each operand, and what it was and is to be. */
	uint8_t *mem[2 * REDUCE_MAX], *want[2 * REDUCE_MAX];
	size_t bytes; /* of each */
	int n_mem;
};

/*
 * Elements: a few, or so many that a thread of a single block has several
 * vectors under way.
 */
static inline size_t random_count(uint64_t *seed, size_t elem)
{
	switch (test_random(seed) % 4) {
	case 0:
		return test_random(seed) % 8;
	case 1:
		return test_random(seed) % 100;
	case 2:
		return test_random(seed) % 3000;
	default:
		return (32768 + test_random(seed) % 65536) / elem;
	}
}

static inline int random_operands(uint64_t *seed)
{
	int few = (int)(test_random(seed) % 4);

	return few ? few : 1 + (int)(test_random(seed) % REDUCE_MAX);
}

/* Where an operand lies: often all at one place within 16 bytes. */
static inline size_t random_place(uint64_t *seed, uint64_t kind, size_t elem)
{
	if (kind < 4)
		return 0;
	if (kind < 8)
		return kind * elem % 16;
	if (kind < 10)
		return kind;
	if (kind < 13)
		return test_random(seed) % 16 / elem * elem;
	return test_random(seed) % 16;
}

static inline void trial_new(struct trial *t, const struct trial_device *device,
			     enum wreath_type type, uint64_t *seed)
{
	size_t elem = wreath_type_size(type);
	uint64_t kind = test_random(seed) % 16;
	int i, at;

	memset(t, 0, sizeof(*t));
	t->args.count = random_count(seed, elem);
	t->args.n_src = random_operands(seed);
	t->args.n_dst = random_operands(seed);
	if (t->args.n_src + t->args.n_dst > 8)
		t->args.count %= 1000;
	t->args.divisor = (unsigned int)(test_random(seed) % 4);
	if (test_random(seed) % 8 == 0)
		t->args.divisor = (unsigned int)test_random(seed);
	t->args.src = t->src;
	t->args.dst = t->dst;
	t->fold.args = &t->args;
	t->fold.factored = -1;
	if (test_random(seed) % 3 == 0)
		t->fold.factored =
			(int)(test_random(seed) % (uint64_t)t->args.n_src);
	test_fill(&t->fold.factor, 1, elem, seed);
	t->n_mem = t->args.n_src + t->args.n_dst;
	t->bytes = t->args.count * elem + 2 * MARGIN + 16;
	for (i = 0; i < t->n_mem; i++) {
		t->mem[i] = device->alloc(t->bytes);
		t->want[i] = new_bytes(t->bytes);
		test_fill(t->mem[i], t->bytes, 1, seed);
		at = MARGIN + (int)random_place(seed, kind, elem);
		test_fill(t->mem[i] + at, t->args.count, elem, seed);
		memcpy(t->want[i], t->mem[i], t->bytes);
		if (i < t->args.n_src)
			t->src[i] = t->mem[i] + at;
		else
			t->dst[i - t->args.n_src] = t->mem[i] + at;
	}
	/* Some destinations are sources, each of another one. */
	for (i = 0; i < t->args.n_dst && i < t->args.n_src; i++) {
		if (test_random(seed) % 3)
			continue;
		t->dst[i] = t->mem[i] + ((const uint8_t *)t->src[i] -
					 t->mem[i]);
	}
}

/* Destinations of @want get what the reference says. */
static inline void trial_expect(struct trial *t, enum wreath_type type,
				enum wreath_op op)
{
	size_t bytes = t->args.count * wreath_type_size(type);
	uint8_t *out = new_bytes(bytes + 1);
	int i, k;

	reference(type, op, &t->fold, out);
	for (k = 0; k < t->args.n_dst; k++) {
		uint8_t *dst = t->dst[k];

		for (i = 0; i < t->n_mem; i++)
			if (dst >= t->mem[i] && dst < t->mem[i] + t->bytes)
				memcpy(t->want[i] + (dst - t->mem[i]), out,
				       bytes);
	}
	free(out);
}

static inline void trial_judge(struct trial *t,
			       const struct trial_device *device)
{
	int i;

	for (i = 0; i < t->n_mem; i++) {
		assert_memory_equal(t->mem[i], t->want[i], t->bytes);
		free(t->want[i]);
		device->release(t->mem[i]);
	}
}

/* Some folds of one kind, in as many batches as they need. */
static inline void run_trials(const struct trial_device *device,
			      enum wreath_type type, enum wreath_op op,
			      uint64_t *seed)
{
	static struct trial trials[REDUCE_GPU_JOBS + 2];
	struct reduce_gpu_fold folds[REDUCE_GPU_JOBS + 2];
	unsigned int max_blocks = 1 + (unsigned int)(test_random(seed) % 6);
	int n = 1 + (int)(test_random(seed) % base_countof(trials)), i, done;
	struct reduce_gpu_batch batch;
	unsigned int n_blocks;

	for (i = 0; i < n; i++) {
		trial_new(&trials[i], device, type, seed);
		trial_expect(&trials[i], type, op);
		folds[i] = trials[i].fold;
	}
	for (done = 0; done < n; done += i) {
		i = reduce_gpu_pack(folds + done, n - done,
				    wreath_type_size(type), max_blocks, &batch,
				    &n_blocks);
		assert_in_range(i, 1, n - done);
		assert_in_range(n_blocks, i, max_blocks + (unsigned int)i);
		device->launch(type, op, &batch, n_blocks);
	}
	for (i = 0; i < n; i++)
		trial_judge(&trials[i], device);
}

static inline void trial_any_shape(const struct trial_device *device)
{
	uint64_t seed = test_seed();
	int type, op, i;

	for (i = 0; i < 6; i++)
		for (type = 0; type < WREATH_N_TYPES; type++)
			for (op = 0; op < REDUCE_N_OPS; op++)
				run_trials(device, type, op, &seed);
}

#endif
