/* SPDX-License-Identifier: MIT */
/*
 * Goal: vectors of hundreds of megabytes, and of more elements than 32 bits
 * count, are right to the last element.
 * Method: each element depends on its place; the whole result is looked at.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/loop/ranks.h"

struct plan {
	size_t count;
	bool in_place;
	bool alloc;
};

static void *map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Small whole numbers: their sums are exact. */
static float number(size_t i, int rank)
{
	return (float)((i * 2654435761u >> 7) % 1000 + (size_t)rank);
}

static int sum_floats(struct rank *rank)
{
	const struct plan *plan = rank->arg;
	size_t bytes = plan->count * sizeof(float);
	void *at = NULL;
	float *send, *recv;
	int n = rank->n_ranks;
	size_t i;
	int err = 0;

	if (plan->alloc)
		err = wreath_mem_alloc(bytes, &at);
	else
		at = map(bytes);
	if (err || !at)
		return err ? err : rank_broken(rank, "no memory");
	recv = at;
	send = plan->in_place ? recv : map(bytes);
	if (!send)
		return rank_broken(rank, "no memory");
	for (i = 0; i < plan->count; i++)
		send[i] = number(i, rank->rank);
	err = wreath_all_reduce(send, recv, plan->count, WREATH_FLOAT32,
				WREATH_SUM, rank->comm, NULL);
	for (i = 0; i < plan->count && !err; i++) {
		float want = number(i, 0) * (float)n +
			     (float)(n * (n - 1) / 2);

		if (recv[i] != want)
			err = rank_broken(rank, "element %zu is %g, not %g", i,
					  (double)recv[i], (double)want);
	}
	if (!plan->in_place)
		munmap(send, bytes);
	if (plan->alloc)
		wreath_mem_free(at);
	else
		munmap(at, bytes);
	return err;
}

static void a_quarter_of_a_gigabyte_is_right(void **state)
{
	static const struct plan plans[] = {
		{((RANKS_SANITIZED ? 8 : 64) << 20) + 3, false, false},
		{(RANKS_SANITIZED ? 8 : 64) << 20, true, true},
	};
	struct ranks run = {.n = 2, .body = sum_floats};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		run.arg = &plans[i];
		ranks_run(&run);
	}
	run.n = 4;
	run.arg = &(struct plan){(16 << 20) + 1, false, true};
	ranks_run(&run);
}

static int sum_bytes(struct rank *rank)
{
	const struct plan *plan = rank->arg;
	uint8_t *data = map(plan->count);
	size_t i;
	int err;

	if (!data)
		return rank_broken(rank, "no memory");
	for (i = 0; i < plan->count; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 13);
	err = wreath_all_reduce(data, data, plan->count, WREATH_UINT8,
				WREATH_SUM, rank->comm, NULL);
	for (i = 0; i < plan->count && !err; i++)
		if (data[i] != (uint8_t)(rank->n_ranks *
					 (int)(uint8_t)(i * 2654435761u >> 13)))
			err = rank_broken(rank, "element %zu is wrong", i);
	munmap(data, plan->count);
	return err;
}

static void more_elements_than_an_int_counts_are_right(void **state)
{
	static const struct plan plan = {((size_t)1 << 31) + 12345, true,
					 false};
	struct ranks run = {.n = 2, .body = sum_bytes, .arg = &plan};
	size_t free_bytes = (size_t)sysconf(_SC_AVPHYS_PAGES) *
			    (size_t)sysconf(_SC_PAGESIZE);

	(void)state;
	/* Two vectors, slots, and something for the rest of the machine. */
	if (RANKS_SANITIZED || free_bytes < 3 * plan.count) {
		printf("%zu bytes of memory are free; a sanitizer needs "
		       "more\n", free_bytes);
		skip();
	}
	ranks_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quarter_of_a_gigabyte_is_right),
		cmocka_unit_test(more_elements_than_an_int_counts_are_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
