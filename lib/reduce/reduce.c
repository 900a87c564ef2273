/* SPDX-License-Identifier: MIT */
/*
 * The choice of a kernel, copies, and the calls that a kernel hands on.
 */
#include <stdatomic.h>
#include <stdalign.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#endif

#include "base/base.h"
#include "reduce.h"
#include "table.h"

/*
 * What one round of a blocked call holds: it stays in the first-level cache
 * together with its sources.
 */
#define BLOCK_BYTES ((size_t)4096)

/* One source's stretch that is copied to all destinations before the next. */
#define COPY_BYTES ((size_t)16384)

static const unsigned char type_bytes[WREATH_N_TYPES] = {
	[WREATH_INT8] = 1,       [WREATH_UINT8] = 1,      [WREATH_INT16] = 2,
	[WREATH_UINT16] = 2,     [WREATH_INT32] = 4,      [WREATH_UINT32] = 4,
	[WREATH_INT64] = 8,      [WREATH_UINT64] = 8,     [WREATH_FLOAT16] = 2,
	[WREATH_BFLOAT16] = 2,   [WREATH_FLOAT32] = 4,    [WREATH_FLOAT64] = 8,
	[WREATH_FLOAT8E4M3] = 1, [WREATH_FLOAT8E5M2] = 1,
};

size_t wreath_type_size(enum wreath_type type)
{
	return (unsigned int)type < WREATH_N_TYPES ? type_bytes[type] : 0;
}

#if defined(__x86_64__)

bool reduce_has_avx2(void)
{
	unsigned int a, b, c, d;

	return __builtin_cpu_supports("avx2") &&
	       __builtin_cpu_supports("fma") &&
	       __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

bool reduce_has_avx512(void)
{
	return __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl") && reduce_has_avx2();
}

static const struct reduce_table *best_table(void)
{
	if (reduce_has_avx512())
		return &reduce_avx512;
	return reduce_has_avx2() ? &reduce_avx2 : &reduce_portable;
}

const char *reduce_isa(void)
{
	if (reduce_has_avx512())
		return "avx512";
	return reduce_has_avx2() ? "avx2" : "portable";
}

#else

bool reduce_has_avx2(void)
{
	return false;
}

bool reduce_has_avx512(void)
{
	return false;
}

static const struct reduce_table *best_table(void)
{
	return &reduce_portable;
}

const char *reduce_isa(void)
{
	return "portable";
}

#endif

/*
 * Asked of the processor once: in a virtual machine cpuid is a trap that costs
 * microseconds.  Threads that race here store the same.
 */
static const struct reduce_table *chosen_table(void)
{
	static _Atomic(const struct reduce_table *) chosen;
	const struct reduce_table *table =
		atomic_load_explicit(&chosen, memory_order_relaxed);

	if (base_likely(!!table))
		return table;
	table = best_table();
	atomic_store_explicit(&chosen, table, memory_order_relaxed);
	return table;
}

reduce_fn *reduce_get(enum wreath_type type, enum wreath_op op, bool reference)
{
	const struct reduce_table *table;

	if (op == WREATH_AVG)
		op = WREATH_SUM;
	if ((unsigned int)type >= WREATH_N_TYPES ||
	    (unsigned int)op >= REDUCE_N_OPS)
		return NULL;
	table = reference ? &reduce_portable : chosen_table();
	return table->fn[type][op];
}

#if defined(__x86_64__)

/*
 * Whole lines of @dst around the cache; what is left at both ends with plain
 * stores.  The caller fences.
 */
static void copy_stream(void *dst, const void *src, size_t bytes)
{
	size_t head = -(uintptr_t)dst & (BASE_LINE - 1);
	const char *from = src;
	char *to = dst;

	head = base_min_size(head, bytes);
	memcpy(to, from, head);
	to += head;
	from += head;
	bytes -= head;
	for (; bytes >= BASE_LINE; bytes -= BASE_LINE) {
		const __m128i *in = (const __m128i *)from;
		__m128i *out = (__m128i *)to;
		__m128i a = _mm_loadu_si128(in);
		__m128i b = _mm_loadu_si128(in + 1);
		__m128i c = _mm_loadu_si128(in + 2);
		__m128i d = _mm_loadu_si128(in + 3);

		_mm_stream_si128(out, a);
		_mm_stream_si128(out + 1, b);
		_mm_stream_si128(out + 2, c);
		_mm_stream_si128(out + 3, d);
		from += BASE_LINE;
		to += BASE_LINE;
	}
	memcpy(to, from, bytes);
}

/* Weakly ordered stores become visible before whatever is stored after. */
static void fence_stream(void)
{
	_mm_sfence();
}

#else

static void copy_stream(void *dst, const void *src, size_t bytes)
{
	memcpy(dst, src, bytes);
}

static void fence_stream(void)
{
}

#endif

static void copy(void *dst, const void *src, size_t bytes, unsigned int flags)
{
	if (flags & REDUCE_STREAM)
		copy_stream(dst, src, bytes);
	else
		memcpy(dst, src, bytes);
}

/* In-place destinations have it already. */
static void copy_all(const struct reduce_args *args, size_t bytes)
{
	const char *src = args->src[0];
	size_t at, n;
	int k;

	for (at = 0; at < bytes; at += n) {
		n = bytes - at;
		if (args->n_dst > 1)
			n = base_min_size(n, COPY_BYTES);
		for (k = 0; k < args->n_dst; k++) {
			char *dst = args->dst[k];

			if (dst != src)
				copy(dst + at, src + at, n, args->flags);
		}
	}
	if (args->flags & REDUCE_STREAM)
		fence_stream();
}

static bool is_float(enum wreath_type type)
{
	return type >= WREATH_FLOAT16;
}

/*
 * Fold a block into the cache, divide it there, and copy it out: integer
 * averages, and streams of what the kernel does not stream by itself.
 */
static void reduce_by_blocks(const struct reduce_args *args,
			     enum wreath_type type, reduce_fn *fn)
{
	alignas(BASE_LINE) unsigned char block[BLOCK_BYTES];
	const void *src[REDUCE_MAX];
	void *dst[1] = {block};
	size_t elem = type_bytes[type], at, bytes;
	struct reduce_args fold = *args;
	int k;

	wreath_assert(args->n_src <= REDUCE_MAX);
	fold.dst = dst;
	fold.n_dst = 1;
	fold.src = src;
	fold.flags = 0;
	if (!is_float(type))
		fold.divisor = 0;
	for (at = 0; at < args->count * elem; at += bytes) {
		bytes = base_min_size(args->count * elem - at, BLOCK_BYTES);
		fold.count = bytes / elem;
		for (k = 0; k < args->n_src; k++)
			src[k] = (const char *)args->src[k] + at;
		fn(&fold);
		if (!is_float(type) && args->divisor > 1)
			reduce_divide(block, fold.count, type, args->divisor);
		for (k = 0; k < args->n_dst; k++)
			copy((char *)args->dst[k] + at, block, bytes,
			     args->flags);
	}
	if (args->flags & REDUCE_STREAM)
		fence_stream();
}

/*
 * Write what is before the first line of the first destination to the cache,
 * and stream the rest; all of it where no element begins a line.
 */
static void reduce_aligned(const struct reduce_args *args,
			   enum wreath_type type, reduce_fn *fn)
{
	size_t bytes = -(uintptr_t)args->dst[0] & (BASE_LINE - 1);
	struct reduce_args part = *args;
	const void *src[REDUCE_MAX];
	void *dst[REDUCE_MAX];
	int k;

	wreath_assert(args->n_src <= REDUCE_MAX && args->n_dst <= REDUCE_MAX);
	part.flags = 0;
	if (!(bytes % type_bytes[type]))
		part.count =
			base_min_size(args->count, bytes / type_bytes[type]);
	fn(&part);
	if (part.count == args->count)
		return;
	for (k = 0; k < args->n_src; k++)
		src[k] = (const char *)args->src[k] + bytes;
	for (k = 0; k < args->n_dst; k++)
		dst[k] = (char *)args->dst[k] + bytes;
	part.src = src;
	part.dst = dst;
	part.count = args->count - part.count;
	part.flags = args->flags;
	fn(&part);
}

#if defined(__x86_64__)

/* The opaque call keeps the arithmetic between the two settings. */
static void reduce_with_default_fp(const struct reduce_args *args,
				   reduce_fn *fn)
{
	unsigned int changed = _mm_getcsr();

	_mm_setcsr(changed & ~REDUCE_FP_CHANGED);
	fn(args);
	_mm_setcsr(changed);
}

#else

static void reduce_with_default_fp(const struct reduce_args *args,
				   reduce_fn *fn)
{
	fn(args);
}

#endif

void reduce_rare(const struct reduce_args *args, enum wreath_type type,
		 enum wreath_op op, reduce_fn *fn)
{
	if (reduce_is_copy(args))
		copy_all(args, args->count * type_bytes[type]);
	else if (!reduce_fp_is_default())
		reduce_with_default_fp(args, fn);
	else if (args->n_src == 1)
		reduce_portable.fn[type][op](args);
	else if (type_bytes[type] == 1 && is_float(type))
		reduce_by_blocks(args, type, fn);
	else if (!is_float(type) && args->divisor > 1)
		reduce_by_blocks(args, type, fn);
	else
		reduce_aligned(args, type, fn);
}
