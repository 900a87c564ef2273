/* SPDX-License-Identifier: MIT */
/*
 * Goal: a port with a rate and a latency takes its time, shows nothing early,
 * keeps the order of a queue pair, and fails and goes away as any other does.
 * Method: transfers against the clock, with latencies that are long beside
 * what a busy machine adds; what must not be early is checked strictly.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>

#include "soft_more.h"

#define MS 1000000ull

/* How late an idle machine's threads may be here, at most. */
#define LATE (30 * MS)

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

static void assert_took(uint64_t start, uint64_t ns, uint64_t late)
{
	uint64_t took = base_now_ns() - start;

	if (took < ns || took > ns + late)
		fail_msg("%.3f ms instead of %.3f", (double)took / 1e6,
			 (double)ns / 1e6);
}

static void a_transfer_takes_the_time_of_its_rate(void **state)
{
	/* 40 * 65536 * 8 bits at 100 Mb/s. */
	const uint64_t ns = 209715200;
	struct pair_end a, b;
	uint64_t start;

	(void)state;
	open_paced("roce:1@100M+1us", &a, &b);
	start = base_now_ns();
	post_long(&a, 40);
	expect_all(&a, 40);
	assert_took(start, ns, ns / 10);
	/* Full duplex: the two ways do not share. */
	start = base_now_ns();
	post_long(&a, 20);
	post_long(&b, 20);
	expect_all(&a, 20);
	expect_all(&b, 20);
	assert_took(start, ns / 2, ns / 10);
	pair_close(&a, &b);
}

static void nothing_is_visible_before_its_time(void **state)
{
	struct pair_end a, b;
	uint64_t start;
	struct ibv_wc wc;
	int i;

	(void)state;
	open_paced("ib:1@100M+20ms", &a, &b);
	for (i = 0; i < 3; i++) {
		atomic_store(word_at(&b, 0), 0);
		atomic_store(word_at(&b, PAIR_BYTES - 8), 0);
		start = base_now_ns();
		post_write(&a, 7, PAIR_BYTES);
		while (!atomic_load(word_at(&b, 0)))
			assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), 0);
		/* 5.2 ms on the wire, and the latency. */
		assert_took(start, 25242880, LATE);
		/* The thread may just be copying. */
		pair_expect(&a, 7, IBV_WC_SUCCESS);
		assert_int_not_equal(atomic_load(word_at(&b, PAIR_BYTES - 8)),
				     0);
	}
	assert_null(a.verbs->map(a.qp, a.other.rkey, a.other.addr, 8));
	pair_close(&a, &b);
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

static void the_thread_comes_where_nobody_polls(void **state)
{
	struct pair_end a, b;
	uint64_t start;
	int i;

	(void)state;
	open_paced("roce:1@+5ms", &a, &b);
	post_write(&a, 0, 8);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	for (i = 0; i < 5; i++) {
		atomic_store(word_at(&b, 0), 0);
		start = base_now_ns();
		post_write(&a, 0, 8);
		while (!atomic_load(word_at(&b, 0)))
			sched_yield();
		assert_took(start, 5 * MS, LATE);
		pair_expect(&a, 0, IBV_WC_SUCCESS);
	}
	pair_close(&a, &b);
}

static void reads_and_atomics_take_a_round_trip(void **state)
{
	struct pair_end a, b;
	struct pair_wr w;
	uint64_t start;

	(void)state;
	open_paced("ib:1@100M+10ms", &a, &b);
	start = base_now_ns();
	pair_wr_init(&w, &a, IBV_WR_RDMA_READ, 0, 0, PAIR_BYTES);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_took(start, 25242880, LATE);
	assert_int_equal(atomic_load(word_at(&a, 0)), 0);
	start = base_now_ns();
	pair_wr_init(&w, &a, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 8);
	w.wr.wr.atomic.remote_addr = a.other.addr;
	w.wr.wr.atomic.rkey = a.other.rkey;
	w.wr.wr.atomic.compare_add = 5;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_took(start, 20 * MS, LATE);
	assert_int_equal(atomic_load(word_at(&b, 0)), 5);
	pair_close(&a, &b);
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
