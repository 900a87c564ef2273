/* SPDX-License-Identifier: MIT */
/*
 * Goal: the table of regions finds exactly the ranges that lie inside one.
 * Method: random registrations against a plain list; readers in other threads
 * while a writer changes the table.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mem/mem.h"

#define PAGE 4096

static unsigned int seed;

static void allocated_memory_is_zeroed_found_and_freed(void **state)
{
	struct mem_region region;
	char *p;
	void *ptr;
	size_t i;

	(void)state;
	assert_int_equal(mem_alloc(3 * PAGE + 5, &ptr), 0);
	p = ptr;
	assert_int_equal((uintptr_t)p % PAGE, 0);
	for (i = 0; i < 3 * PAGE + 5; i++)
		assert_int_equal(p[i], 0);
	assert_true(mem_find(p, 3 * PAGE + 5, &region));
	assert_ptr_equal(region.base, p);
	assert_true(region.fd >= 0);
	assert_true(mem_find(p + 100, 1, &region));
	assert_true(mem_find(p + 3 * PAGE + 5, 0, &region));
	assert_false(mem_find(p, 3 * PAGE + 6, &region));
	assert_false(mem_find(p - 1, 2, &region));
	assert_false(mem_find(p, SIZE_MAX, &region));
	assert_int_equal(mem_free(p), 0);
	assert_false(mem_find(p, 1, &region));
}

static void bad_ranges_are_refused(void **state)
{
	static char buffer[1000];
	void *ptr;

	(void)state;
	assert_int_equal(mem_alloc(0, &ptr), WREATH_EINVAL);
	assert_int_equal(mem_alloc(SIZE_MAX, &ptr), WREATH_EINVAL);
	assert_int_equal(mem_register(NULL, 5), WREATH_EINVAL);
	assert_int_equal(mem_register(buffer, 0), WREATH_EINVAL);
	assert_int_equal(mem_register(buffer, SIZE_MAX), WREATH_EINVAL);
	assert_int_equal(mem_register(buffer + 100, 100), 0);
	assert_int_equal(mem_register(buffer + 199, 1), WREATH_EINVAL);
	assert_int_equal(mem_register(buffer, 101), WREATH_EINVAL);
	assert_int_equal(mem_register(buffer, 1000), WREATH_EINVAL);
	assert_non_null(strstr(wreath_error_text(), "overlap"));
	assert_int_equal(mem_register(buffer, 100), 0);
	assert_int_equal(mem_register(buffer + 200, 1), 0);
	assert_int_equal(mem_deregister(buffer + 101), WREATH_EINVAL);
	assert_int_equal(mem_free(buffer), WREATH_EINVAL);
	assert_int_equal(mem_deregister(buffer), 0);
	assert_int_equal(mem_deregister(buffer), WREATH_EINVAL);
	assert_int_equal(mem_deregister(buffer + 100), 0);
	assert_int_equal(mem_deregister(buffer + 200), 0);
	assert_int_equal(mem_free(NULL), 0);
	assert_int_equal(mem_alloc(10, &ptr), 0);
	assert_int_equal(mem_deregister(ptr), WREATH_EINVAL);
	assert_int_equal(mem_free(ptr), 0);
}

static void finds_what_a_plain_list_finds(void **state)
{
	enum { BYTES = 4096, N = 3000 };
	static char buffer[BYTES];
	static int owner[BYTES]; /* 1 + start of its region; 0: none */
	int i;

	(void)state;
	srand(seed);
	for (i = 0; i < N; i++) {
		int at = rand() % BYTES;
		int n = 1 + rand() % 64;
		struct mem_region region;
		int j, end = at + n <= BYTES ? at + n : BYTES;

		if (rand() % 2) {
			bool is_free = true;

			for (j = at; j < end; j++)
				is_free &= !owner[j];
			assert_int_equal(mem_register(buffer + at,
						      (size_t)(end - at)),
					 is_free ? 0 : WREATH_EINVAL);
			for (j = at; j < end && is_free; j++)
				owner[j] = at + 1;
		} else if (owner[at]) {
			int start = owner[at] - 1;

			assert_int_equal(mem_deregister(buffer + start), 0);
			for (j = 0; j < BYTES; j++)
				if (owner[j] == start + 1)
					owner[j] = 0;
		}
		at = rand() % BYTES;
		assert_int_equal(mem_find(buffer + at, 1, &region),
				 owner[at] != 0);
		if (owner[at])
			assert_ptr_equal(region.base, buffer + owner[at] - 1);
	}
	for (i = 0; i < BYTES; i++)
		if (owner[i] == i + 1)
			assert_int_equal(mem_deregister(buffer + i), 0);
}

static _Atomic bool stop;
static char stable[PAGE];

static void *read_all_the_time(void *arg)
{
	struct mem_region region;
	long n = 0;

	(void)arg;
	while (!atomic_load(&stop)) {
		/* Always there, whatever else comes and goes. */
		if (!mem_find(stable + n % PAGE, 1, &region) ||
		    region.base != stable || region.bytes != PAGE)
			return (void *)1;
		n++;
	}
	return NULL;
}

static void readers_see_no_torn_table(void **state)
{
	static char around[2][64][16];
	pthread_t reader;
	void *failed;
	int i, j;

	(void)state;
	assert_int_equal(mem_register(stable, PAGE), 0);
	assert_int_equal(pthread_create(&reader, NULL, read_all_the_time,
					NULL), 0);
	for (i = 0; i < 200; i++) {
		for (j = 0; j < 64; j++)
			assert_int_equal(mem_register(around[i % 2][j], 16),
					 0);
		for (j = 0; j < 64; j++)
			assert_int_equal(mem_deregister(around[i % 2][j]), 0);
	}
	atomic_store(&stop, true);
	pthread_join(reader, &failed);
	assert_null(failed);
	assert_int_equal(mem_deregister(stable), 0);
}

static int n_gone;

static void count_gone(void *arg, const struct mem_region *region)
{
	assert_ptr_equal(region->base, arg);
	n_gone++;
}

static void watchers_hear_of_a_region_that_goes(void **state)
{
	static char buffer[10];
	struct mem_watch watch = {.gone = count_gone, .arg = buffer};

	(void)state;
	mem_watch_add(&watch);
	assert_int_equal(mem_register(buffer, sizeof(buffer)), 0);
	assert_int_equal(n_gone, 0);
	assert_int_equal(mem_deregister(buffer), 0);
	assert_int_equal(n_gone, 1);
	mem_watch_remove(&watch);
	assert_int_equal(mem_register(buffer, sizeof(buffer)), 0);
	assert_int_equal(mem_deregister(buffer), 0);
	assert_int_equal(n_gone, 1);
}

static void the_table_is_bounded(void **state)
{
	static char many[MEM_REGIONS_MAX + 1][2];
	int i;

	(void)state;
	for (i = 0; i < MEM_REGIONS_MAX; i++)
		assert_int_equal(mem_register(many[i], 1), 0);
	assert_int_equal(mem_register(many[i], 1), WREATH_ENOMEM);
	while (i--)
		assert_int_equal(mem_deregister(many[i]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocated_memory_is_zeroed_found_and_freed),
		cmocka_unit_test(bad_ranges_are_refused),
		cmocka_unit_test(finds_what_a_plain_list_finds),
		cmocka_unit_test(readers_see_no_torn_table),
		cmocka_unit_test(watchers_hear_of_a_region_that_goes),
		cmocka_unit_test(the_table_is_bounded),
	};
	const char *given = getenv("SEED");

	alarm(60);
	seed = given ? (unsigned int)strtoul(given, NULL, 10)
		     : (unsigned int)getpid();
	printf("SEED=%u\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
