/* SPDX-License-Identifier: MIT */
/*
 * Goal: chaos breaks what nobody may rely on, and nothing else: data is whole
 * at its completion, a queue pair's messages stay in order, the device
 * promises nothing, and a seed decides alike each time.  Method: random
 * messages of which each is checked at its completion; SEED=n runs another.
 */
#define _GNU_SOURCE
#include "soft/fault.h"
#include "soft/qp.h"
#include "soft_pair.h"

static uint64_t seed;

static void data_is_whole_at_its_completion(void **state)
{
	struct pair_args args = {.rnr_retry = 7, .rnr_timer = 1};
	struct pair_end a, b;
	struct pair_wr w;
	struct ibv_wc wc;
	unsigned int random = (unsigned int)seed;
	int i;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(a.verbs->promises, 0);
	assert_null(a.verbs->map(a.qp, b.mr->rkey, b.card.addr, 8));
	for (i = 0; i < 300; i++) {
		uint32_t bytes = (uint32_t)rand_r(&random) % 9000;
		size_t to = (size_t)rand_r(&random) % 5000;
		size_t at;

		for (at = 0; at < bytes; at++)
			a.buf[at] = (char)rand_r(&random);
		assert_int_equal(pair_post_recv(&b, (uint64_t)i, 0, 0), 0);
		pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE_WITH_IMM, 0, to, bytes);
		w.wr.imm_data = (uint32_t)i;
		assert_int_equal(pair_post(&a, &w), 0);
		pair_wait(&b, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.imm_data, i);
		assert_memory_equal(b.buf + to, a.buf, bytes);
		pair_expect(&a, 0, IBV_WC_SUCCESS);
	}
	pair_close(&a, &b);
}

static void messages_of_a_queue_pair_stay_in_order(void **state)
{
	struct pair_args args = {.rnr_retry = 7, .rnr_timer = 1};
	struct pair_end a, b;
	struct pair_wr w;
	struct ibv_wc wc;
	int i;

	(void)state;
	pair_open(&a, &b, &args);
	for (i = 0; i < 50; i++) {
		assert_int_equal(pair_post_recv(&b, (uint64_t)i, 0, 0), 0);
		pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 64);
		w.wr.wr_id = (uint64_t)i;
		w.wr.imm_data = (uint32_t)i;
		assert_int_equal(pair_post(&a, &w), 0);
	}
	for (i = 0; i < 50; i++) {
		pair_wait(&b, &wc);
		assert_int_equal(wc.imm_data, i);
		pair_expect(&a, (uint64_t)i, IBV_WC_SUCCESS);
	}
	pair_close(&a, &b);
}

static void queue_pairs_overtake_each_other(void **state)
{
	struct pair_args args = {.rnr_retry = 7, .rnr_timer = 1};
	struct pair_end a, b, a2, b2;
	struct pair_wr w;
	bool is_overtaken = false;
	int i;

	(void)state;
	pair_open(&a, &b, &args);
	pair_open(&a2, &b2, &args);
	for (i = 0; i < 60; i++) {
		struct ibv_wc wc;

		pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
		assert_int_equal(pair_post(&a, &w), 0);
		pair_wr_init(&w, &a2, IBV_WR_RDMA_WRITE, 0, 0, 8);
		assert_int_equal(pair_post(&a2, &w), 0);
		pair_wait(&a2, &wc);
		is_overtaken |= ibv_poll_cq(a.cq, 1, &wc) == 0;
		if (is_overtaken)
			break;
		pair_expect_none(&a2);
	}
	assert_true(is_overtaken);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	pair_close(&a, &b);
	pair_close(&a2, &b2);
}

static void lines_land_in_any_order(void **state)
{
	static unsigned char from[4096], to[4096 + 64];
	struct soft_qp *qp = base_alloc(1, sizeof(*qp));
	size_t bytes, skew, i;

	(void)state;
	qp->chaos = seed;
	for (i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 7 + i / 251);
	/* Whatever the order, all of it and nothing beside it. */
	for (bytes = 0; bytes < 700; bytes++) {
		for (skew = 0; skew < 64; skew += 9) {
			memset(to, 0, sizeof(to));
			soft_chaos_copy(qp, to + skew, from, bytes);
			assert_memory_equal(to + skew, from, bytes);
			assert_int_equal(to[skew + bytes], 0);
			assert_true(!skew || !to[skew - 1]);
		}
	}
	base_free(qp);
}

static void seed_decides_alike_each_time(void **state)
{
	bool held[2][2000], is_rnr;
	struct soft_qp *qp;
	int i, round;

	(void)state;
	for (round = 0; round < 2; round++) {
		qp = base_alloc(1, sizeof(*qp));
		qp->chaos = seed;
		qp->attr.rnr_retry = 7;
		for (i = 0; i < 2000; i++) {
			held[round][i] = soft_chaos_holds(qp, i & 1, &is_rnr);
			if (!held[round][i])
				qp->is_drawn = false;
		}
		base_free(qp);
	}
	assert_memory_equal(held[0], held[1], sizeof(held[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_is_whole_at_its_completion),
		cmocka_unit_test(messages_of_a_queue_pair_stay_in_order),
		cmocka_unit_test(queue_pairs_overtake_each_other),
		cmocka_unit_test(lines_land_in_any_order),
		cmocka_unit_test(seed_decides_alike_each_time),
	};
	const char *text = getenv("SEED");
	char clause[64];

	seed = text ? strtoull(text, NULL, 10) : base_now_ns() % 1000000;
	printf("SEED=%llu\n", (unsigned long long)seed);
	snprintf(clause, sizeof(clause), "chaos=%llu",
		 (unsigned long long)seed);
	setenv("WREATH_SOFT_FAULTS", clause, 1);
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
