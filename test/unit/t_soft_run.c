/* SPDX-License-Identifier: MIT */
/*
 * Goal: the send queue's rules: who may post when, what is told, which slot
 * is free, what a silent or unready peer means, and how a queue pair in error
 * is flushed.  Method: connected pairs in one process; each test one rule.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "soft_pair.h"

static void post(struct pair_end *end, uint64_t wr_id, unsigned int flags)
{
	struct pair_wr w;

	pair_wr_init(&w, end, IBV_WR_RDMA_WRITE, 0, 0, 8);
	w.wr.wr_id = wr_id;
	w.wr.send_flags = flags;
	assert_int_equal(pair_post(end, &w), 0);
}

static int try_post(struct pair_end *end, enum ibv_wr_opcode opcode)
{
	struct pair_wr w;

	pair_wr_init(&w, end, opcode, 0, 0, 8);
	return pair_post(end, &w);
}

static void posting_depends_on_the_state(void **state)
{
	struct pair_args args = {0};
	struct pair_end a;

	(void)state;
	pair_end_open(&a, &args);
	a.other = a.card;
	assert_int_equal(pair_post_recv(&a, 1, 0, 8), EINVAL);
	assert_int_equal(try_post(&a, IBV_WR_RDMA_WRITE), EINVAL);
	assert_int_equal(pair_to_init(&a, &args), 0);
	assert_int_equal(pair_post_recv(&a, 2, 0, 8), 0);
	assert_int_equal(try_post(&a, IBV_WR_RDMA_WRITE), EINVAL);
	assert_int_equal(pair_to_rtr(&a, &args), 0);
	assert_int_equal(try_post(&a, IBV_WR_RDMA_WRITE), EINVAL);
	assert_int_equal(pair_to_rts(&a, &args), 0);
	assert_int_equal(try_post(&a, IBV_WR_RDMA_WRITE), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_int_equal(pair_to(&a, IBV_QPS_ERR), 0);
	pair_expect(&a, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(try_post(&a, IBV_WR_RDMA_WRITE), 0);
	pair_expect(&a, 0, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(pair_post_recv(&a, 3, 0, 8), 0);
	pair_expect(&a, 3, IBV_WC_WR_FLUSH_ERR);
	pair_end_close(&a);
}

static void first_bad_request_is_named_and_earlier_ones_are_posted(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct ibv_send_wr *bad;
	struct pair_wr w[3];
	struct ibv_wc wc;
	int i;

	(void)state;
	pair_open(&a, &b, &args);
	for (i = 0; i < 3; i++) {
		pair_wr_init(&w[i], &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
		w[i].wr.wr_id = (uint64_t)i;
		w[i].wr.next = i < 2 ? &w[i + 1].wr : NULL;
	}
	w[1].wr.num_sge = 5; /* of 4 */
	assert_int_equal(ibv_post_send(a.qp, &w[0].wr, &bad), EINVAL);
	assert_ptr_equal(bad, &w[1].wr);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 0);
	pair_close(&a, &b);
}

static void slot_is_free_only_after_a_later_signal_was_polled(void **state)
{
	struct pair_args args = {.n_send = 4};
	struct pair_end a, b;
	int i;

	(void)state;
	pair_open(&a, &b, &args);
	for (i = 0; i < 4; i++)
		post(&a, 1, 0);
	/* Long executed, and yet the queue is full, for good. */
	pair_expect_none(&a);
	assert_int_equal(try_post(&a, IBV_WR_RDMA_WRITE), ENOMEM);
	pair_close(&a, &b);

	pair_open(&a, &b, &args);
	post(&a, 1, 0);
	post(&a, 2, IBV_SEND_SIGNALED);
	post(&a, 3, 0);
	post(&a, 4, 0);
	assert_int_equal(try_post(&a, IBV_WR_RDMA_WRITE), ENOMEM);
	pair_expect(&a, 2, IBV_WC_SUCCESS);
	/* Two slots: that of the signal, and the one before it. */
	post(&a, 5, 0);
	post(&a, 6, 0);
	assert_int_equal(try_post(&a, IBV_WR_RDMA_WRITE), ENOMEM);
	pair_close(&a, &b);
}

static void signal_all_makes_every_send_tell(void **state)
{
	struct pair_args args = {.signal_all = true};
	struct pair_end a, b;

	(void)state;
	pair_open(&a, &b, &args);
	post(&a, 1, 0);
	post(&a, 2, 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_expect(&a, 2, IBV_WC_SUCCESS);
	pair_close(&a, &b);
}

static void error_completion_is_made_unasked_and_poisons_the_rest(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct pair_wr w;
	struct ibv_wc wc;

	(void)state;
	pair_open(&a, &b, &args);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	w.wr.send_flags = 0;
	w.wr.wr_id = 9;
	w.wr.wr.rdma.rkey ^= 1;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_wait(&a, &wc);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(wc.qp_num, a.qp->qp_num);
	assert_int_equal(wc.opcode, 0xa5a5a5a5);
	assert_int_equal(wc.byte_len, 0xa5a5a5a5);
	assert_int_equal(wc.wc_flags, 0xa5a5a5a5);
	assert_int_equal(pair_state(&a), IBV_QPS_ERR);
	pair_close(&a, &b);
}

static void flush_comes_in_order_behind_the_true_reason(void **state)
{
	/* Without an infinite retry a missing receive fails at once. */
	struct pair_args args = {.rnr_retry = 7};
	struct pair_end a, b;
	struct pair_wr w;
	struct ibv_wc wc;
	uint64_t next_send = 1, next_recv = 10;
	int i;

	(void)state;
	pair_open(&a, &b, &args);
	pair_wr_init(&w, &a, IBV_WR_SEND, 0, 0, 8);
	for (i = 0; i < 3; i++) {
		w.wr.wr_id = (uint64_t)i;
		w.wr.send_flags = 0;
		assert_int_equal(pair_post(&a, &w), 0);
		assert_int_equal(pair_post_recv(&a, 10u + (unsigned int)i, 0,
						8), 0);
	}
	pair_expect_none(&a);
	/* The peer goes away: the head has the reason, the rest is flushed. */
	assert_int_equal(pair_to(&b, IBV_QPS_ERR), 0);
	pair_expect(&a, 0, IBV_WC_RETRY_EXC_ERR);
	/* Sends and receives each in order; between them there is none. */
	for (i = 0; i < 5; i++) {
		pair_wait(&a, &wc);
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(wc.wr_id,
				 wc.wr_id < 10 ? next_send++ : next_recv++);
	}
	pair_expect_none(&a);
	pair_close(&a, &b);
}

static void reset_discards_silently_and_the_pair_works_again(void **state)
{
	struct pair_args args = {.rnr_retry = 7};
	struct pair_end a, b;
	struct pair_wr w;

	(void)state;
	pair_open(&a, &b, &args);
	post(&a, 1, IBV_SEND_SIGNALED);
	assert_int_equal(pair_post_recv(&a, 2, 0, 8), 0);
	pair_wr_init(&w, &a, IBV_WR_SEND, 0, 0, 8);
	assert_int_equal(pair_post(&a, &w), 0);
	assert_int_equal(pair_to(&a, IBV_QPS_RESET), 0);
	assert_int_equal(pair_to(&b, IBV_QPS_RESET), 0);
	pair_expect_none(&a);
	pair_connect(&a, &b.card, &args);
	pair_connect(&b, &a.card, &args);
	a.buf[0] = 'r';
	post(&a, 3, IBV_SEND_SIGNALED);
	pair_expect(&a, 3, IBV_WC_SUCCESS);
	assert_int_equal(b.buf[0], 'r');
	assert_int_equal(pair_post_recv(&b, 4, 0, 8), 0);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&b, 4, IBV_WC_SUCCESS);
	pair_close(&a, &b);
}

static void one_sided_reset_is_met_by_silence(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;

	(void)state;
	pair_open(&a, &b, &args);
	post(&a, 1, IBV_SEND_SIGNALED);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	assert_int_equal(pair_to(&a, IBV_QPS_RESET), 0);
	pair_connect(&a, &b.card, &args);
	/* The peer expects a later packet number. */
	post(&a, 2, IBV_SEND_SIGNALED);
	pair_expect(&a, 2, IBV_WC_RETRY_EXC_ERR);
	pair_close(&a, &b);
}

static uint64_t time_to_fail(struct pair_end *end, enum ibv_wr_opcode opcode,
			     enum ibv_wc_status status)
{
	uint64_t start = base_now_ns();

	assert_int_equal(try_post(end, opcode), 0);
	pair_expect(end, 0, status);
	return (base_now_ns() - start) / 1000;
}

static void silence_is_an_error_after_the_retries(void **state)
{
	/* 4.096 us * 2^12 = 16.8 ms, times 4. */
	struct pair_args args = {.timeout = 12, .retry_cnt = 3};
	struct pair_end a, b;
	uint64_t us;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(pair_to(&b, IBV_QPS_RESET), 0);
	us = time_to_fail(&a, IBV_WR_RDMA_WRITE, IBV_WC_RETRY_EXC_ERR);
	assert_in_range(us, 67000, 2000000);
	pair_close(&a, &b);
	/* A packet number that the peer does not expect is silence too. */
	args.psn_gap = 1;
	args.timeout = 8;
	pair_open(&a, &b, &args);
	us = time_to_fail(&a, IBV_WR_RDMA_WRITE, IBV_WC_RETRY_EXC_ERR);
	assert_in_range(us, 4000, 1000000);
	pair_close(&a, &b);
}

static void peer_that_never_was_is_silent(void **state)
{
	struct pair_args args = {0};
	struct pair_card nobody = {.qpn = 77, .psn = 5};
	struct pair_end a;

	(void)state;
	memset(&nobody.gid, 0x17, sizeof(nobody.gid));
	pair_end_open(&a, &args);
	pair_connect(&a, &nobody, &args);
	time_to_fail(&a, IBV_WR_SEND, IBV_WC_RETRY_EXC_ERR);
	pair_end_close(&a);
}

static void missing_receive_is_retried_as_often_as_told(void **state)
{
	/* Code 20 is 10.24 ms: three retries are 31 ms. */
	struct pair_args args = {.rnr_retry = 3, .rnr_timer = 20};
	struct pair_end a, b;
	struct pair_wr w;
	uint64_t us;

	(void)state;
	pair_open(&a, &b, &args);
	us = time_to_fail(&a, IBV_WR_SEND, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_in_range(us, 30000, 1000000);
	assert_int_equal(pair_state(&b), IBV_QPS_RTS);
	pair_close(&a, &b);

	args.rnr_retry = 7; /* for ever */
	args.rnr_timer = 1;
	pair_open(&a, &b, &args);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 8);
	assert_int_equal(pair_post(&a, &w), 0);
	post(&a, 2, IBV_SEND_SIGNALED); /* waits behind it */
	pair_sleep_us(30000);
	pair_expect_none(&a);
	assert_int_equal(pair_post_recv(&b, 5, 0, 0), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	pair_expect(&a, 2, IBV_WC_SUCCESS);
	pair_expect(&b, 5, IBV_WC_SUCCESS);
	pair_close(&a, &b);

	args.rnr_retry = 0;
	pair_open(&a, &b, &args);
	time_to_fail(&a, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RNR_RETRY_EXC_ERR);
	pair_close(&a, &b);
}

static void what_waits_goes_on_without_the_application(void **state)
{
	struct pair_args args = {.rnr_retry = 7};
	struct pair_end a, b;
	struct pair_wr w;

	(void)state;
	pair_open(&a, &b, &args);
	a.buf[0] = 'w';
	pair_wr_init(&w, &a, IBV_WR_SEND, 0, 0, 8);
	assert_int_equal(pair_post(&a, &w), 0);
	assert_int_equal(pair_post_recv(&b, 5, 16, 8), 0);
	/* Only @b polls; @a's thread must send. */
	pair_expect(&b, 5, IBV_WC_SUCCESS);
	assert_int_equal(b.buf[16], 'w');
	pair_close(&a, &b);
}

static void drained_queue_holds_its_sends(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD,
				   .en_sqd_async_notify = 1};
	struct pair_args args = {0};
	struct ibv_async_event event;
	struct pair_end a, b;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(a.verbs->modify_qp(a.qp, &attr,
					    IBV_QP_STATE |
						    IBV_QP_EN_SQD_ASYNC_NOTIFY),
			 0);
	assert_int_equal(a.verbs->get_async_event(a.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
	a.verbs->ack_async_event(&event);
	post(&a, 1, IBV_SEND_SIGNALED);
	pair_expect_none(&a);
	assert_int_equal(pair_to(&a, IBV_QPS_RTS), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_close(&a, &b);
}

static void unknown_operations_are_refused(void **state)
{
	static const enum ibv_wr_opcode unknown[] = {
		IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_SEND_WITH_INV,
	};
	struct pair_args args = {0};
	struct pair_end a, b;
	size_t i;

	(void)state;
	pair_open(&a, &b, &args);
	for (i = 0; i < base_countof(unknown); i++)
		assert_int_equal(try_post(&a, unknown[i]), EOPNOTSUPP);
	assert_int_equal(pair_state(&a), IBV_QPS_RTS);
	pair_close(&a, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(posting_depends_on_the_state),
		cmocka_unit_test(
			first_bad_request_is_named_and_earlier_ones_are_posted),
		cmocka_unit_test(
			slot_is_free_only_after_a_later_signal_was_polled),
		cmocka_unit_test(signal_all_makes_every_send_tell),
		cmocka_unit_test(
			error_completion_is_made_unasked_and_poisons_the_rest),
		cmocka_unit_test(flush_comes_in_order_behind_the_true_reason),
		cmocka_unit_test(
			reset_discards_silently_and_the_pair_works_again),
		cmocka_unit_test(one_sided_reset_is_met_by_silence),
		cmocka_unit_test(silence_is_an_error_after_the_retries),
		cmocka_unit_test(peer_that_never_was_is_silent),
		cmocka_unit_test(missing_receive_is_retried_as_often_as_told),
		cmocka_unit_test(what_waits_goes_on_without_the_application),
		cmocka_unit_test(drained_queue_holds_its_sends),
		cmocka_unit_test(unknown_operations_are_refused),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
