/* SPDX-License-Identifier: MIT */
/*
 * For the tests of the reduce room: the tables of kernels that this processor
 * can run, vectors full of special values, and a seed.
 */
#ifndef REDUCE_TEST_H
#define REDUCE_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/base.h"
#include "reduce/reduce.h"
#include "reduce/table.h"

struct test_table {
	const char *name;
	const struct reduce_table *table;
};

/* The portable table first; returns how many @tables there are. */
static inline int test_tables(struct test_table tables[3])
{
	int n = 0;

	tables[n++] = (struct test_table){"portable", &reduce_portable};
#if defined(__x86_64__)
	if (reduce_has_avx2())
		tables[n++] = (struct test_table){"avx2", &reduce_avx2};
	if (reduce_has_avx512())
		tables[n++] = (struct test_table){"avx512", &reduce_avx512};
#endif
	return n;
}

static inline uint64_t test_random(uint64_t *state)
{
	uint64_t x;

	/* splitmix64: every seed is good, 0 as well. */
	*state += UINT64_C(0x9e3779b97f4a7c15);
	x = *state;
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* SEED=n repeats a run. */
static inline uint64_t test_seed(void)
{
	const char *text = getenv("SEED");
	uint64_t seed = base_now_ns();

	if (text)
		seed = strtoull(text, NULL, 0);
	printf("SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

/* Bits of all types at which rules change, most of them floats'. */
static const uint64_t test_special32[] = {
	0x00000000, 0x80000000, /* zeros */
	0x7f800000, 0xff800000, /* infinities */
	0x7fc00000, 0xffc00000, /* quiet NaN */
	0x7f800001, 0xffbfffff, /* signalling NaN */
	0x7fffffff, 0xffffffff, /* all of the mantissa */
	0x00000001, 0x80000001, /* smallest denormal */
	0x007fffff, 0x807fffff, /* largest denormal */
	0x00800000, 0x80800000, /* smallest normal */
	0x7f7fffff, 0xff7fffff, /* largest */
	0x3f800000, 0xbf800000, /* 1 */
};

static const uint64_t test_special64[] = {
	0x0000000000000000, 0x8000000000000000, /* zeros */
	0x7ff0000000000000, 0xfff0000000000000, /* infinities */
	0x7ff8000000000000, 0xfff8000000000000, /* quiet NaN */
	0x7ff0000000000001, 0xfff7ffffffffffff, /* signalling NaN */
	0x7fffffffffffffff, 0xffffffffffffffff, /* all of the mantissa */
	0x0000000000000001, 0x8000000000000001, /* smallest denormal */
	0x000fffffffffffff, 0x800fffffffffffff, /* largest denormal */
	0x0010000000000000, 0x8010000000000000, /* smallest normal */
	0x7fefffffffffffff, 0xffefffffffffffff, /* largest */
	0x3ff0000000000000, 0xbff0000000000000, /* 1 */
};

/*
 * @count elements of @elem bytes: random bits, an eighth of them special, and
 * half of the rest with few exponents, so that sums do not just drop an
 * operand.
 */
static inline void test_fill(void *out, size_t count, size_t elem,
			     uint64_t *state)
{
	char *to = out;
	size_t i;

	for (i = 0; i < count; i++, to += elem) {
		uint64_t bits = test_random(state);
		unsigned int kind = test_random(state) & 7;
		uint64_t pick = bits >> 8;

		if (kind == 0 && elem == 8)
			bits = test_special64[pick %
					      base_countof(test_special64)];
		else if (kind == 0)
			bits = test_special32[pick %
					      base_countof(test_special32)] >>
			       (32 - 8 * elem);
		else if (kind < 4 && elem == 8)
			bits = (bits & 0x803fffffffffffff) | (1023ull << 52);
		else if (kind < 4 && elem == 4)
			bits = (bits & 0x81ffffff) | 0x3e000000;
		memcpy(to, &bits, elem);
	}
}

#endif
