/* SPDX-License-Identifier: MIT */
/*
 * Goal: the copy of a payload is exact, and keeps the line order that the
 * device promises.  Method: every length and alignment of a small message;
 * and a reader that polls the last word of lines while they are rewritten.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>

#include "soft/qp.h"
#include "soft_pair.h"

static void every_length_and_alignment_is_exact(void **state)
{
	static unsigned char from[512], to[512];
	size_t bytes, out, in, i;

	(void)state;
	for (i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i + 1);
	for (bytes = 0; bytes <= 200; bytes++) {
		for (out = 0; out < 64; out += bytes < 80 ? 1 : 5) {
			for (in = 0; in < 9; in++) {
				memset(to, 0, sizeof(to));
				soft_copy_lines(to + 64 + out, from + in,
						bytes);
				assert_memory_equal(to + 64 + out, from + in,
						    bytes);
				assert_int_equal(to[64 + out - 1], 0);
				assert_int_equal(to[64 + out + bytes], 0);
			}
		}
	}
}

#define LINES 64
#define ROUNDS 3000

struct shared {
	_Alignas(64) _Atomic uint64_t lines[LINES][8];
	_Atomic uint64_t seen; /* rounds that the reader is done with */
};

static void *read_lines(void *arg)
{
	struct shared *shared = arg;
	uint64_t round;
	int i, j;

	for (round = 1; round <= ROUNDS; round++) {
		/* From the last: lines land in order too. */
		while (atomic_load_explicit(&shared->lines[LINES - 1][7],
					    memory_order_acquire) != round)
			sched_yield();
		for (i = 0; i < LINES; i++) {
			for (j = 0; j < 8; j++)
				assert_int_equal(
					atomic_load_explicit(
						&shared->lines[i][j],
						memory_order_relaxed), round);
		}
		atomic_store(&shared->seen, round);
	}
	return NULL;
}

static void last_word_of_a_line_lands_last(void **state)
{
	struct shared *shared;
	uint64_t from[LINES * 8], round;
	pthread_t thread;
	int i;

	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	assert_int_equal(pthread_create(&thread, NULL, read_lines, shared), 0);
	for (round = 1; round <= ROUNDS; round++) {
		for (i = 0; i < LINES * 8; i++)
			from[i] = round;
		soft_copy_lines(shared->lines, from, sizeof(from));
		while (atomic_load(&shared->seen) != round)
			sched_yield();
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	munmap(shared, sizeof(*shared));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_and_alignment_is_exact),
		cmocka_unit_test(last_word_of_a_line_lands_last),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
