/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base.h"

static _Atomic uint64_t fail_at;

uint64_t base_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void base_sleep_ms(unsigned int ms)
{
	struct timespec ts = {.tv_sec = ms / 1000,
			      .tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		continue;
}

void base_random(void *out, size_t bytes)
{
	unsigned char *at = out;

	while (bytes) {
		ssize_t n = getrandom(at, bytes, 0);

		if (n < 0) {
			wreath_assert(errno == EINTR);
			continue;
		}
		at += n;
		bytes -= (size_t)n;
	}
}

void base_alloc_fail_at(uint64_t n)
{
	atomic_store_explicit(&fail_at, n, memory_order_relaxed);
}

static bool must_fail(void)
{
	if (!atomic_load_explicit(&fail_at, memory_order_relaxed))
		return false;
	return atomic_fetch_sub_explicit(&fail_at, 1, memory_order_relaxed) ==
	       1;
}

void *base_alloc(size_t n, size_t bytes)
{
	size_t total;
	void *ptr = NULL;

	if (!base_mul_overflows(n, bytes, &total) &&
	    total <= SIZE_MAX - BASE_LINE && !must_fail())
		ptr = aligned_alloc(BASE_LINE,
				    base_round_up(total ? total : 1,
						  BASE_LINE));
	if (!ptr) {
		base_error(WREATH_ENOMEM, "no memory for %zu items of %zu "
					  "bytes", n, bytes);
		return NULL;
	}
	memset(ptr, 0, total);
	return ptr;
}

void base_free(void *ptr)
{
	free(ptr);
}
