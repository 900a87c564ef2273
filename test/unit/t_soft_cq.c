/* SPDX-License-Identifier: MIT */
/*
 * Goal: a completion queue gives each completion once, of few and of many
 * queue pairs, and says so when it is too small.  Method: more queue pairs on
 * one queue than it looks at one by one; a queue of two entries.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "soft_pair.h"

#define MANY 40

/* MANY queue pairs of @a to as many of @b, all on one CQ each. */
static void open_many(struct pair_end *a, struct pair_end *b,
		      const struct pair_args *args)
{
	int i;

	for (i = 0; i < MANY; i++) {
		if (!i) {
			pair_end_open(&a[0], args);
			pair_end_open(&b[0], args);
		} else {
			a[i] = a[0];
			b[i] = b[0];
			pair_qp(&a[i], args);
			pair_qp(&b[i], args);
			a[i].card.qpn = a[i].qp->qp_num;
			b[i].card.qpn = b[i].qp->qp_num;
		}
		pair_connect(&a[i], &b[i].card, args);
		pair_connect(&b[i], &a[i].card, args);
	}
}

static void close_many(struct pair_end *a, struct pair_end *b)
{
	int i;

	for (i = 1; i < MANY; i++) {
		assert_int_equal(a->verbs->destroy_qp(a[i].qp), 0);
		assert_int_equal(b->verbs->destroy_qp(b[i].qp), 0);
	}
	pair_close(a, b);
}

static void many_queue_pairs_share_a_queue(void **state)
{
	struct pair_args args = {.n_cqe = 64 * 2 * MANY};
	struct pair_end a[MANY], b[MANY];
	int seen[MANY] = {0};
	struct pair_wr w;
	struct ibv_wc wc[7];
	int i, round, n, total = 0;

	(void)state;
	open_many(a, b, &args);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < MANY; i++) {
			assert_int_equal(pair_post_recv(&b[i], (uint64_t)i, 0,
							0), 0);
			pair_wr_init(&w, &a[i], IBV_WR_RDMA_WRITE_WITH_IMM, 0,
				     0, 8);
			w.wr.wr_id = (uint64_t)i;
			assert_int_equal(pair_post(&a[i], &w), 0);
		}
	}
	while ((n = ibv_poll_cq(b->cq, 7, wc)) > 0) {
		for (i = 0; i < n; i++, total++) {
			assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
			assert_in_range(wc[i].wr_id, 0, MANY - 1);
			assert_int_equal(wc[i].qp_num,
					 b[wc[i].wr_id].qp->qp_num);
			seen[wc[i].wr_id]++;
		}
	}
	assert_int_equal(total, 3 * MANY);
	for (i = 0; i < MANY; i++)
		assert_int_equal(seen[i], 3);
	for (total = 0; (n = ibv_poll_cq(a->cq, 7, wc)) > 0;)
		total += n;
	assert_int_equal(total, 3 * MANY);
	close_many(a, b);
}

static void queue_that_is_too_small_breaks_with_its_queue_pairs(void **state)
{
	struct pair_args args = {.n_cqe = 2};
	struct pair_end a, b;
	struct ibv_async_event event;
	struct ibv_wc wc;
	struct pair_wr w;
	int i;

	(void)state;
	pair_open(&a, &b, &args);
	for (i = 0; i < 3; i++) {
		assert_int_equal(pair_post_recv(&b, 0, 0, 0), 0);
		pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 8);
		w.wr.send_flags = 0;
		assert_int_equal(pair_post(&a, &w), 0);
	}
	assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), -EIO);
	assert_int_equal(b.verbs->get_async_event(b.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, b.cq);
	b.verbs->ack_async_event(&event);
	assert_int_equal(b.verbs->get_async_event(b.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_FATAL);
	b.verbs->ack_async_event(&event);
	assert_int_equal(pair_state(&b), IBV_QPS_ERR);
	pair_close(&a, &b);
	/* By our own sends, and noticed without a poll. */
	pair_open(&a, &b, &args);
	for (i = 0; i < 3; i++) {
		pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
		assert_int_equal(pair_post(&a, &w), 0);
	}
	assert_int_equal(pair_state(&a), IBV_QPS_ERR);
	assert_int_equal(a.verbs->get_async_event(a.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	a.verbs->ack_async_event(&event);
	assert_int_equal(a.verbs->get_async_event(a.context, &event), 0);
	a.verbs->ack_async_event(&event);
	pair_close(&a, &b);
}

static void queue_that_is_just_large_enough_holds(void **state)
{
	struct pair_args args = {.n_cqe = 2};
	struct pair_end a, b;
	struct pair_wr w;
	int i, round;

	(void)state;
	pair_open(&a, &b, &args);
	for (round = 0; round < 10; round++) {
		for (i = 0; i < 2; i++) {
			pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
			assert_int_equal(pair_post(&a, &w), 0);
		}
		for (i = 0; i < 2; i++)
			pair_expect(&a, 0, IBV_WC_SUCCESS);
	}
	pair_close(&a, &b);
}

static void destroyed_queue_pair_takes_its_completions_along(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct pair_wr w;
	struct ibv_wc wc;

	(void)state;
	pair_open(&a, &b, &args);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	assert_int_equal(pair_post(&a, &w), 0);
	assert_int_equal(a.verbs->destroy_qp(a.qp), 0);
	a.qp = NULL;
	assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 0);
	pair_close(&a, &b);
}

static void a_queue_is_resized_down_to_what_waits(void **state)
{
	struct pair_args args = {.n_cqe = 8, .n_send = 16};
	struct ibv_device_attr attr;
	struct pair_end a, b;
	struct pair_wr w;
	int i;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(a.verbs->query_device(a.context, &attr), 0);
	assert_int_equal(soft_resize_cq(a.cq, 0), EINVAL);
	assert_int_equal(soft_resize_cq(a.cq, attr.max_cqe + 1), EINVAL);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	for (i = 0; i < 5; i++)
		assert_int_equal(pair_post(&a, &w), 0);
	assert_int_equal(soft_resize_cq(a.cq, 4), EINVAL);
	assert_int_equal(a.cq->cqe, 8);
	assert_int_equal(soft_resize_cq(a.cq, 5), 0);
	assert_int_equal(a.cq->cqe, 5);
	assert_int_equal(soft_resize_cq(a.cq, 10), 0);
	for (; i < 10; i++)
		assert_int_equal(pair_post(&a, &w), 0);
	for (i = 0; i < 10; i++)
		pair_expect(&a, 0, IBV_WC_SUCCESS);
	/* What it has is what counts. */
	assert_int_equal(soft_resize_cq(a.cq, 1), 0);
	assert_int_equal(pair_post(&a, &w), 0);
	assert_int_equal(pair_post(&a, &w), 0);
	assert_int_equal(pair_state(&a), IBV_QPS_ERR);
	pair_close(&a, &b);
}

static void the_inline_wrappers_reach_us(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;

	(void)state;
	pair_open(&a, &b, &args);
	/* A drop-in library builds on these. */
	assert_ptr_equal(a.context->abi_compat, __VERBS_ABI_IS_EXTENDED);
	assert_int_equal(verbs_get_ctx(a.context)->sz,
			 sizeof(struct verbs_context));
	/* Without a channel there is nothing to arm. */
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), EINVAL);
	pair_close(&a, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_queue_pairs_share_a_queue),
		cmocka_unit_test(
			queue_that_is_too_small_breaks_with_its_queue_pairs),
		cmocka_unit_test(queue_that_is_just_large_enough_holds),
		cmocka_unit_test(
			destroyed_queue_pair_takes_its_completions_along),
		cmocka_unit_test(a_queue_is_resized_down_to_what_waits),
		cmocka_unit_test(the_inline_wrappers_reach_us),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
