/* SPDX-License-Identifier: MIT */
/*
 * Goal: a port with a rate and a latency takes its time, shows nothing early,
 * keeps the order of a queue pair, and fails and goes away as any other does.
 * Method: transfers against the clock, with latencies that are long beside
 * what a busy machine adds; what must not be early is checked strictly.
 */
#define _GNU_SOURCE
#include <stdatomic.h>

#include "soft_clock.h"

/* Mostly it is some microseconds; a slice of another process is 4 ms. */
#define LATE (10 * CLOCK_MS)

static void open_paced(const char *spec, struct pair_end *a, struct pair_end *b)
{
	struct pair_args args = {.timeout = 8, .retry_cnt = 1};

	args.access = args.mr_access = PAIR_ACCESS | IBV_ACCESS_REMOTE_ATOMIC;
	setenv("WREATH_SOFT", spec, 1);
	pair_open(a, b, &args);
	memset(a->buf, 1, PAIR_BYTES);
	memset(b->buf, 0, PAIR_BYTES);
}

static _Atomic uint64_t *word_at(struct pair_end *end, size_t at)
{
	return (_Atomic uint64_t *)(void *)(end->buf + at);
}

/* One WRITE of @bytes from the start to the start. */
static void post_write(struct pair_end *end, uint64_t wr_id, uint32_t bytes)
{
	struct pair_wr w;

	pair_wr_init(&w, end, IBV_WR_RDMA_WRITE, 0, 0, bytes);
	w.wr.wr_id = wr_id;
	assert_int_equal(pair_post(end, &w), 0);
}

static void post_long(struct pair_end *end, int n)
{
	int i;

	for (i = 0; i < n; i++)
		post_write(end, (uint64_t)i, PAIR_BYTES);
}

static void expect_all(struct pair_end *end, int n)
{
	int i;

	for (i = 0; i < n; i++)
		pair_expect(end, (uint64_t)i, IBV_WC_SUCCESS);
}

/* 20 * 65536 bytes take so long at 100 Mb/s. */
#define LONG_NS 104857600

struct pair {
	struct pair_end a, b;
};

static uint64_t time_one_way(void *arg)
{
	struct pair *p = arg;
	uint64_t start = base_now_ns();

	post_long(&p->a, 40);
	expect_all(&p->a, 40);
	return base_now_ns() - start;
}

static uint64_t time_both_ways(void *arg)
{
	struct pair *p = arg;
	uint64_t start = base_now_ns();

	post_long(&p->a, 20);
	post_long(&p->b, 20);
	expect_all(&p->a, 20);
	expect_all(&p->b, 20);
	return base_now_ns() - start;
}

static void a_transfer_takes_the_time_of_its_rate(void **state)
{
	struct pair p;

	(void)state;
	open_paced("roce:1@100M+1us", &p.a, &p.b);
	clock_expect(time_one_way, &p, 2 * LONG_NS, LONG_NS / 5);
	/* Full duplex: the two ways do not share. */
	clock_expect(time_both_ways, &p, LONG_NS, LONG_NS / 10);
	pair_close(&p.a, &p.b);
}

static uint64_t time_to_be_visible(void *arg)
{
	struct pair *p = arg;
	uint64_t start, took;
	struct ibv_wc wc;

	atomic_store(word_at(&p->b, 0), 0);
	atomic_store(word_at(&p->b, PAIR_BYTES - 8), 0);
	start = base_now_ns();
	post_write(&p->a, 7, PAIR_BYTES);
	while (!atomic_load(word_at(&p->b, 0)))
		assert_int_equal(ibv_poll_cq(p->b.cq, 1, &wc), 0);
	took = base_now_ns() - start;
	/* The thread may just be copying. */
	pair_expect(&p->a, 7, IBV_WC_SUCCESS);
	assert_int_not_equal(atomic_load(word_at(&p->b, PAIR_BYTES - 8)), 0);
	return took;
}

static void nothing_is_visible_before_its_time(void **state)
{
	struct pair p;
	int i;

	(void)state;
	open_paced("ib:1@100M+20ms", &p.a, &p.b);
	/* 5.2 ms on the wire, and the latency. */
	for (i = 0; i < 3; i++)
		clock_expect(time_to_be_visible, &p,
			     LONG_NS / 20 + 20 * CLOCK_MS, LATE);
	assert_null(p.a.verbs->map(p.a.qp, p.a.other.rkey, p.a.other.addr, 8));
	pair_close(&p.a, &p.b);
}

static void inline_data_are_taken_when_posted_and_others_when_sent(void **state)
{
	struct pair_end a, b;
	struct pair_wr w;

	(void)state;
	open_paced("roce:1@+20ms", &a, &b);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	w.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 8, 8);
	assert_int_equal(pair_post(&a, &w), 0);
	atomic_store(word_at(&a, 0), 2);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_int_equal(atomic_load(word_at(&b, 0)), 0x0101010101010101);
	assert_int_equal(atomic_load(word_at(&b, 8)), 2);
	pair_close(&a, &b);
}

/* Any sizes and kinds on one queue pair; each WRITE carries its number. */
static void a_queue_pair_keeps_its_order(void **state)
{
	const char *seed_text = getenv("SEED");
	uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0)
				  : base_now_ns() | 1;
	struct pair_end a, b;
	uint64_t i;

	(void)state;
	printf("SEED=%llu\n", (unsigned long long)seed);
	open_paced("roce:1@1G+200us", &a, &b);
	for (i = 0; i < 60; i++) {
		struct pair_wr w;
		uint32_t bytes;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		bytes = seed >> 60 < 8 ? 8 : (uint32_t)(seed >> 50) & ~7u;
		pair_wr_init(&w, &a,
			     seed >> 40 & 1 ? IBV_WR_RDMA_READ
					    : IBV_WR_RDMA_WRITE,
			     16384, 16384, bytes);
		if (seed >> 40 & 1 && seed >> 41 & 1)
			w.wr.opcode = IBV_WR_SEND;
		w.wr.wr_id = i;
		if (w.wr.opcode == IBV_WR_SEND)
			assert_int_equal(pair_post_recv(&b, i, 40000, 16384),
					 0);
		if (w.wr.opcode == IBV_WR_SEND && bytes > 16384)
			w.sge.length = 16384;
		assert_int_equal(pair_post(&a, &w), 0);
	}
	for (i = 0; i < 60; i++)
		pair_expect(&a, i, IBV_WC_SUCCESS);
	pair_close(&a, &b);
}

static uint64_t time_of_thread(void *arg)
{
	struct pair *p = arg;
	uint64_t start, took;

	atomic_store(word_at(&p->b, 0), 0);
	start = base_now_ns();
	post_write(&p->a, 0, 8);
	while (!atomic_load(word_at(&p->b, 0)))
		sched_yield();
	took = base_now_ns() - start;
	pair_expect(&p->a, 0, IBV_WC_SUCCESS);
	return took;
}

static void the_thread_comes_where_nobody_polls(void **state)
{
	struct pair p;
	int i;

	(void)state;
	open_paced("roce:1@+5ms", &p.a, &p.b);
	for (i = 0; i < 5; i++)
		clock_expect(time_of_thread, &p, 5 * CLOCK_MS, LATE);
	pair_close(&p.a, &p.b);
}

static uint64_t time_of_read(void *arg)
{
	uint64_t start = base_now_ns();
	struct pair *p = arg;
	struct pair_wr w;

	memset(p->a.buf, 1, 64);
	pair_wr_init(&w, &p->a, IBV_WR_RDMA_READ, 0, 0, PAIR_BYTES);
	assert_int_equal(pair_post(&p->a, &w), 0);
	pair_expect(&p->a, 0, IBV_WC_SUCCESS);
	assert_int_equal(p->a.buf[0], 0);
	return base_now_ns() - start;
}

static uint64_t time_of_atomic(void *arg)
{
	uint64_t start = base_now_ns();
	struct pair *p = arg;
	struct pair_wr w;

	pair_wr_init(&w, &p->a, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 8);
	w.wr.wr.atomic.remote_addr = p->a.other.addr;
	w.wr.wr.atomic.rkey = p->a.other.rkey;
	w.wr.wr.atomic.compare_add = 5;
	assert_int_equal(pair_post(&p->a, &w), 0);
	pair_expect(&p->a, 0, IBV_WC_SUCCESS);
	assert_int_equal(atomic_load(word_at(&p->b, 0)),
			 atomic_load(word_at(&p->a, 0)) + 5);
	return base_now_ns() - start;
}

static void reads_and_atomics_take_a_round_trip(void **state)
{
	struct pair p;

	(void)state;
	open_paced("ib:1@100M+10ms", &p.a, &p.b);
	clock_expect(time_of_read, &p, LONG_NS / 20 + 20 * CLOCK_MS, LATE);
	clock_expect(time_of_atomic, &p, 20 * CLOCK_MS, LATE);
	pair_close(&p.a, &p.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_transfer_takes_the_time_of_its_rate),
		cmocka_unit_test(nothing_is_visible_before_its_time),
		cmocka_unit_test(
			inline_data_are_taken_when_posted_and_others_when_sent),
		cmocka_unit_test(a_queue_pair_keeps_its_order),
		cmocka_unit_test(the_thread_comes_where_nobody_polls),
		cmocka_unit_test(reads_and_atomics_take_a_round_trip),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
