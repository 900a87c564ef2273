/* SPDX-License-Identifier: MIT */
/*
 * Goal: requests under way on a paced port end as those on a wire do when
 * their queue pair, memory, port, peer or process goes; ports of one receiver
 * share its link.  Method: latencies of seconds, so that all is surely under
 * way, and the clock where something must not be waited for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>

#include "soft_clock.h"
#include "soft_more.h"

static void open_paced(const char *spec, struct pair_end *a, struct pair_end *b)
{
	struct pair_args args = {.timeout = 8, .retry_cnt = 1};

	setenv("WREATH_SOFT", spec, 1);
	pair_open(a, b, &args);
	memset(a->buf, 1, PAIR_BYTES);
}

static void post_writes(struct pair_end *end, int n, uint32_t bytes)
{
	struct pair_wr w;
	int i;

	for (i = 0; i < n; i++) {
		pair_wr_init(&w, end, IBV_WR_RDMA_WRITE, 0, 0, bytes);
		w.wr.wr_id = (uint64_t)i;
		assert_int_equal(pair_post(end, &w), 0);
	}
}

static void expect_all(struct pair_end *end, int n, enum ibv_wc_status status)
{
	int i;

	for (i = 0; i < n; i++)
		pair_expect(end, (uint64_t)i, status);
}

static void assert_untouched(const struct pair_end *end)
{
	size_t i;

	for (i = 0; i < PAIR_BYTES; i++)
		assert_int_equal(end->buf[i], 0);
}

static void the_error_state_flushes_what_is_under_way(void **state)
{
	struct pair_end a, b;
	uint64_t start;

	(void)state;
	open_paced("roce:1@1M+2000ms", &a, &b);
	start = base_now_ns();
	post_writes(&a, 10, 4096);
	assert_int_equal(pair_to(&a, IBV_QPS_ERR), 0);
	expect_all(&a, 10, IBV_WC_WR_FLUSH_ERR);
	post_writes(&a, 3, 64);
	expect_all(&a, 3, IBV_WC_WR_FLUSH_ERR);
	assert_true(base_now_ns() - start < 1000 * CLOCK_MS);
	assert_untouched(&b);
	pair_close(&a, &b);
}

static void a_reset_forgets_what_is_under_way(void **state)
{
	struct pair_args args = {.timeout = 8, .retry_cnt = 1};
	struct pair_end a, b;

	(void)state;
	open_paced("roce:1@+300ms", &a, &b);
	post_writes(&a, 5, 64);
	assert_int_equal(pair_to(&a, IBV_QPS_RESET), 0);
	assert_int_equal(pair_to(&b, IBV_QPS_RESET), 0);
	pair_connect(&b, &a.card, &args);
	pair_connect(&a, &b.card, &args);
	pair_sleep_us(400000);
	pair_expect_none(&a);
	assert_untouched(&b);
	post_writes(&a, 2, 64);
	expect_all(&a, 2, IBV_WC_SUCCESS);
	assert_int_equal(b.buf[63], 1);
	pair_close(&a, &b);
}

static void everything_goes_with_requests_under_way(void **state)
{
	struct pair_end a, b;
	uint64_t start = base_now_ns();

	(void)state;
	open_paced("ib:1@1K+10000ms", &a, &b);
	post_writes(&a, 20, PAIR_BYTES);
	post_writes(&b, 20, 8);
	pair_close(&a, &b);
	assert_true(base_now_ns() - start < 2000 * CLOCK_MS);
}

static void memory_that_is_gone_fails_only_its_request(void **state)
{
	struct pair_end a, b;

	(void)state;
	open_paced("roce:1@+300ms", &a, &b);
	post_writes(&a, 2, 64);
	assert_int_equal(a.verbs->dereg_mr(a.mr), 0);
	pair_expect(&a, 0, IBV_WC_LOC_PROT_ERR);
	pair_expect(&a, 1, IBV_WC_WR_FLUSH_ERR);
	assert_untouched(&b);
	a.mr = a.verbs->reg_mr(a.pd, a.buf, PAIR_BYTES, PAIR_ACCESS);
	pair_close(&a, &b);
	open_paced("roce:1@+300ms", &a, &b);
	post_writes(&a, 2, 64);
	assert_int_equal(b.verbs->dereg_mr(b.mr), 0);
	pair_expect(&a, 0, IBV_WC_REM_ACCESS_ERR);
	pair_expect(&a, 1, IBV_WC_WR_FLUSH_ERR);
	assert_untouched(&b);
	b.mr = b.verbs->reg_mr(b.pd, b.buf, PAIR_BYTES, PAIR_ACCESS);
	pair_close(&a, &b);
}

static void a_port_that_goes_down_is_waited_for(void **state)
{
	struct pair_end a, b;

	(void)state;
	open_paced("roce:1@+300ms", &a, &b);
	post_writes(&a, 2, 64);
	expect_all(&a, 2, IBV_WC_SUCCESS);
	post_writes(&a, 2, 64);
	assert_int_equal(soft_fault(b.context, "port_down=0"), 0);
	/* 2 * 1 ms of tries are over 300 ms from now. */
	pair_expect(&a, 0, IBV_WC_RETRY_EXC_ERR);
	pair_expect(&a, 1, IBV_WC_WR_FLUSH_ERR);
	pair_close(&a, &b);
}

static void a_receive_that_comes_late_is_waited_for(void **state)
{
	struct pair_args args = {.rnr_retry = 7, .rnr_timer = 1};
	struct pair_end a, b;
	struct pair_wr w;

	(void)state;
	setenv("WREATH_SOFT", "roce:1@+5ms", 1);
	pair_open(&a, &b, &args);
	pair_wr_init(&w, &a, IBV_WR_SEND, 0, 0, 64);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_sleep_us(20000);
	pair_expect_none(&a);
	assert_int_equal(pair_post_recv(&b, 9, 0, 64), 0);
	pair_expect(&b, 9, IBV_WC_SUCCESS);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	pair_close(&a, &b);
}

/* Were it left, the thread would look for it all the time. */
static void a_queue_pair_that_goes_leaves_no_alarm(void **state)
{
	struct pair_args args = {.timeout = 8, .retry_cnt = 1};
	struct pair_end a, b, a2, b2;
	clock_t before;

	(void)state;
	open_paced("roce:1@+400ms", &a, &b);
	a2 = a;
	b2 = b;
	a2.qp = more_qp(&a2, IBV_QPT_RC, NULL);
	b2.qp = more_qp(&b2, IBV_QPT_RC, NULL);
	a2.card.qpn = a2.qp->qp_num;
	b2.card.qpn = b2.qp->qp_num;
	pair_connect(&a2, &b2.card, &args);
	pair_connect(&b2, &a2.card, &args);
	post_writes(&a2, 3, 64);
	assert_int_equal(a.verbs->destroy_qp(a2.qp), 0);
	/* From 400 ms on its time is over, and something else waits. */
	pair_sleep_us(200000);
	post_writes(&a, 1, 64);
	before = clock();
	pair_sleep_us(350000);
	assert_true(clock() - before < CLOCKS_PER_SEC / 40);
	expect_all(&a, 1, IBV_WC_SUCCESS);
	assert_int_equal(a.verbs->destroy_qp(b2.qp), 0);
	pair_close(&a, &b);
}

static void die(struct pair_end *end, int socket)
{
	pair_meet(socket);
	/* Its own requests do not keep it. */
	post_writes(end, 5, 64);
	exit(0);
}

static void a_peer_that_dies_is_told(void **state)
{
	struct pair_args args = {.timeout = 8, .retry_cnt = 1};
	uint64_t start = base_now_ns();
	struct pair_end a;
	int socket;
	pid_t pid;

	(void)state;
	setenv("WREATH_SOFT", "roce:1@1K+100ms", 1);
	pid = pair_fork(&a, &socket, &args, die);
	pair_meet(socket);
	pair_reap(pid);
	post_writes(&a, 3, 8);
	pair_expect(&a, 0, IBV_WC_RETRY_EXC_ERR);
	pair_expect(&a, 1, IBV_WC_WR_FLUSH_ERR);
	pair_expect(&a, 2, IBV_WC_WR_FLUSH_ERR);
	assert_true(base_now_ns() - start < 3000 * CLOCK_MS);
	assert_untouched(&a);
	close(socket);
	pair_end_close(&a);
}

static void a_child_leaves_what_is_under_way_alone(void **state)
{
	struct pair_end a, b;
	struct ibv_wc wc;
	pid_t pid;

	(void)state;
	open_paced("roce:1@+100ms", &a, &b);
	post_writes(&a, 2, 64);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pair_sleep_us(20000);
		_exit(ibv_poll_cq(a.cq, 1, &wc) != -EIO);
	}
	pair_reap(pid);
	expect_all(&a, 2, IBV_WC_SUCCESS);
	pair_close(&a, &b);
}

/* @n messages of 65536 bytes at 100 Mb/s. */
static uint64_t ideal(int n)
{
	return (uint64_t)n * 5242880;
}

struct senders {
	struct pair_end *a, *b;
};

/* 20 long messages of each. */
static uint64_t time_both(void *arg)
{
	uint64_t start = base_now_ns();
	struct senders *s = arg;

	post_writes(s->a, 20, PAIR_BYTES);
	post_writes(s->b, 20, PAIR_BYTES);
	expect_all(s->a, 20, IBV_WC_SUCCESS);
	expect_all(s->b, 20, IBV_WC_SUCCESS);
	return base_now_ns() - start;
}

static void two_senders_share_their_receiver(void **state)
{
	struct pair_args args = {.timeout = 8, .retry_cnt = 1};
	struct pair_end a, b, c, d;
	struct senders both = {&a, &b};
	struct ibv_qp *first;

	(void)state;
	open_paced("roce:1@100M+10us", &a, &c);
	open_paced("roce:1@100M+10us", &b, &d);
	clock_expect(time_both, &both, ideal(20), ideal(3));
	/* Another queue pair of c, for b. */
	first = c.qp;
	c.qp = more_qp(&c, IBV_QPT_RC, NULL);
	c.card.qpn = c.qp->qp_num;
	assert_int_equal(pair_to(&b, IBV_QPS_RESET), 0);
	pair_connect(&b, &c.card, &args);
	pair_connect(&c, &b.card, &args);
	clock_expect(time_both, &both, ideal(40), ideal(4));
	assert_int_equal(c.verbs->destroy_qp(first), 0);
	pair_end_close(&b);
	pair_end_close(&d);
	pair_close(&a, &c);
}

/* A short message of @b, while @a has the link for 105 ms. */
static uint64_t time_short(void *arg)
{
	uint64_t start = base_now_ns(), took;
	struct senders *s = arg;

	post_writes(s->a, 20, PAIR_BYTES);
	post_writes(s->b, 1, 8);
	expect_all(s->b, 1, IBV_WC_SUCCESS);
	took = base_now_ns() - start;
	expect_all(s->a, 20, IBV_WC_SUCCESS);
	assert_true(base_now_ns() - start >= ideal(20));
	return took;
}

static void a_short_message_waits_for_a_packet_only(void **state)
{
	struct pair_args args = {.timeout = 8, .retry_cnt = 1};
	struct pair_end a, b, a2, b2;
	struct senders both = {&a, &a2};

	(void)state;
	open_paced("ib:1@100M", &a, &b);
	a2 = a;
	b2 = b;
	a2.cq = a.verbs->create_cq(a.context, 64, NULL, NULL, 0);
	a2.qp = more_qp(&a2, IBV_QPT_RC, NULL);
	b2.qp = more_qp(&b2, IBV_QPT_RC, NULL);
	a2.card.qpn = a2.qp->qp_num;
	b2.card.qpn = b2.qp->qp_num;
	pair_connect(&a2, &b2.card, &args);
	pair_connect(&b2, &a2.card, &args);
	/* Some packets, each way. */
	clock_expect(time_short, &both, 0, ideal(5));
	assert_int_equal(a.verbs->destroy_qp(a2.qp), 0);
	assert_int_equal(a.verbs->destroy_qp(b2.qp), 0);
	assert_int_equal(a.verbs->destroy_cq(a2.cq), 0);
	pair_close(&a, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_error_state_flushes_what_is_under_way),
		cmocka_unit_test(a_reset_forgets_what_is_under_way),
		cmocka_unit_test(everything_goes_with_requests_under_way),
		cmocka_unit_test(memory_that_is_gone_fails_only_its_request),
		cmocka_unit_test(a_port_that_goes_down_is_waited_for),
		cmocka_unit_test(a_receive_that_comes_late_is_waited_for),
		cmocka_unit_test(a_queue_pair_that_goes_leaves_no_alarm),
		cmocka_unit_test(a_peer_that_dies_is_told),
		cmocka_unit_test(a_child_leaves_what_is_under_way_alone),
		cmocka_unit_test(two_senders_share_their_receiver),
		cmocka_unit_test(a_short_message_waits_for_a_packet_only),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
