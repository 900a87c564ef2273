/* SPDX-License-Identifier: MIT */
/*
 * Goal: every kernel reads and writes exactly its vectors, whatever their
 * number, length, place and overlap.
 * Method: vectors between pages that cannot be touched, at every count of
 * elements up to some registers; the results are compared with the scalar
 * kernel's of one destination, apart from all sources.
 */
#include <sys/mman.h>

#include "reduce_test.h"

#define MAX_VECTORS 9
#define MAX_COUNT 130
#define MAX_BYTES (MAX_COUNT * 8)
/* Two pages, so that vectors at any offset fit, with one to guard each end. */
#define ROOM_BYTES ((size_t)8192)
#define PAGE_BYTES ((size_t)4096)

/* A vector in a guarded room: at its start, its end, or anywhere. */
enum place { AT_START, AT_END, ANYWHERE, N_PLACES };

static unsigned char *src_rooms[MAX_VECTORS], *dst_rooms[MAX_VECTORS];
static unsigned char src_copies[MAX_VECTORS][MAX_BYTES];
static unsigned char want[MAX_BYTES];

static unsigned char *room_new(void)
{
	unsigned char *at = mmap(NULL, ROOM_BYTES + 2 * PAGE_BYTES, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	at += PAGE_BYTES;
	assert_int_equal(mprotect(at, ROOM_BYTES, PROT_READ | PROT_WRITE), 0);
	return at;
}

static unsigned char *put(unsigned char *room, size_t bytes, enum place place,
			  uint64_t *seed)
{
	size_t free_bytes = ROOM_BYTES - bytes;

	if (place == AT_START)
		return room;
	if (place == AT_END)
		return room + free_bytes;
	return room + 1 + test_random(seed) % (free_bytes - 2);
}

struct shape {
	enum wreath_type type;
	enum wreath_op op;
	int n_src, n_dst;
	size_t count;
	unsigned int divisor, flags;
	enum place place;
	int in_place; /* destinations that are sources, from the first */
};

/* The bytes around a vector that must stay as they are. */
#define MARK 0x5a
#define MARKED 64

static void expect_marks(const unsigned char *room, const unsigned char *at,
			 size_t bytes)
{
	const unsigned char *p;

	for (p = at; p > room && p > at - MARKED; p--)
		assert_int_equal(p[-1], MARK);
	for (p = at + bytes; p < room + ROOM_BYTES && p < at + bytes + MARKED;
	     p++)
		assert_int_equal(*p, MARK);
}

static void mark(unsigned char *room, unsigned char *at, size_t bytes)
{
	unsigned char *end = at + bytes;

	memset(at - base_min_size(MARKED, (size_t)(at - room)), MARK,
	       base_min_size(MARKED, (size_t)(at - room)));
	memset(end, MARK,
	       base_min_size(MARKED, (size_t)(room + ROOM_BYTES - end)));
}

static void run(const struct shape *s, const struct reduce_table *table,
		uint64_t *seed)
{
	size_t bytes = s->count * wreath_type_size(s->type);
	const void *src[MAX_VECTORS];
	void *dst[MAX_VECTORS];
	struct reduce_args args = {
		.dst = dst,
		.n_dst = s->n_dst,
		.src = src,
		.n_src = s->n_src,
		.count = s->count,
		.divisor = s->divisor,
		.flags = s->flags,
	};
	int k;

	for (k = 0; k < s->n_src; k++) {
		void *at = put(src_rooms[k], bytes, s->place, seed);

		memcpy(at, src_copies[k], bytes);
		src[k] = at;
	}
	/* The last sources are the first destinations. */
	for (k = 0; k < s->n_dst; k++) {
		unsigned char *room = k < s->in_place
					      ? src_rooms[s->n_src - 1 - k]
					      : dst_rooms[k];

		dst[k] = put(room, bytes, s->place, seed);
		if (k < s->in_place)
			memcpy(&dst[k], &src[s->n_src - 1 - k], sizeof(dst[k]));
		mark(room, dst[k], bytes);
	}
	table->fn[s->type][s->op](&args);
	for (k = 0; k < s->n_dst; k++) {
		assert_memory_equal(dst[k], want, bytes);
		expect_marks(k < s->in_place ? src_rooms[s->n_src - 1 - k]
					     : dst_rooms[k],
			     dst[k], bytes);
	}
	for (k = 0; k < s->n_src - s->in_place; k++)
		assert_memory_equal(src[k], src_copies[k], bytes);
}

static void expect(const struct shape *s, uint64_t *seed)
{
	size_t elem = wreath_type_size(s->type);
	const void *src[MAX_VECTORS];
	void *dst[1] = {want};
	struct reduce_args args = {
		.dst = dst,
		.n_dst = 1,
		.src = src,
		.n_src = s->n_src,
		.count = s->count,
		.divisor = s->divisor,
	};
	struct test_table tables[3];
	int n = test_tables(tables), k;

	for (k = 0; k < s->n_src; k++) {
		test_fill(src_copies[k], s->count, elem, seed);
		src[k] = src_copies[k];
	}
	tables[0].table->fn[s->type][s->op](&args);
	for (k = 0; k < n; k++)
		run(s, tables[k].table, seed);
}

static void every_count_stays_in_its_vectors(void **state)
{
	static const int shapes[][2] = {{1, 1}, {2, 1}, {2, 2}, {3, 1}, {1, 3}};
	uint64_t seed = test_seed();
	struct shape s = {.count = 0};
	int type, op;
	size_t i;

	(void)state;
	for (s.count = 0; s.count <= MAX_COUNT; s.count++) {
		for (type = 0; type < WREATH_N_TYPES; type++) {
			for (op = 0; op < REDUCE_N_OPS; op++) {
				i = test_random(&seed);
				s.type = type;
				s.op = op;
				s.n_src = shapes[i % 5][0];
				s.n_dst = shapes[i % 5][1];
				s.divisor = i & 64 ? 3 : 0;
				s.flags = i & 128 ? REDUCE_STREAM : 0;
				s.in_place = i & 256 ? 1 : 0;
				for (i = 0; i < N_PLACES; i++) {
					s.place = (enum place)i;
					expect(&s, &seed);
				}
			}
		}
	}
}

static void every_number_of_vectors_folds(void **state)
{
	uint64_t seed = test_seed(), r;
	struct shape s = {.count = 0};
	int round, most;

	(void)state;
	for (round = 0; round < 150; round++) {
		for (s.n_src = 1; s.n_src <= MAX_VECTORS; s.n_src++) {
			for (s.n_dst = 1; s.n_dst <= MAX_VECTORS; s.n_dst++) {
				r = test_random(&seed);
				s.type = (enum wreath_type)(r % WREATH_N_TYPES);
				s.op = (enum wreath_op)((r >> 8) & 3);
				s.count = (r >> 16) % (MAX_COUNT + 1);
				s.divisor = r >> 32 & 1 ? (r >> 40) % 100 : 0;
				s.flags = r >> 33 & 1 ? REDUCE_STREAM : 0;
				s.place = (enum place)((r >> 34) % N_PLACES);
				most = s.n_src < s.n_dst ? s.n_src : s.n_dst;
				s.in_place = (int)((r >> 48) % (most + 1));
				expect(&s, &seed);
			}
		}
	}
}

static int rooms_make(void **state)
{
	int k;

	(void)state;
	for (k = 0; k < MAX_VECTORS; k++) {
		src_rooms[k] = room_new();
		dst_rooms[k] = room_new();
	}
	return 0;
}

static int rooms_free(void **state)
{
	size_t all = ROOM_BYTES + 2 * PAGE_BYTES;
	int k;

	(void)state;
	for (k = 0; k < MAX_VECTORS; k++) {
		munmap(src_rooms[k] - PAGE_BYTES, all);
		munmap(dst_rooms[k] - PAGE_BYTES, all);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_count_stays_in_its_vectors),
		cmocka_unit_test(every_number_of_vectors_folds),
	};

	alarm(300);
	return cmocka_run_group_tests(tests, rooms_make, rooms_free);
}
