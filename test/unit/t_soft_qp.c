/* SPDX-License-Identifier: MIT */
/*
 * Goal: limits are kept and told, objects go in the right order, queue pair
 * numbers do not come again soon.  Method: one context; one over each limit.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "soft_pair.h"

static struct ibv_qp *make(struct pair_end *end, const struct ibv_qp_cap *cap,
			   enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {.send_cq = end->cq,
					.recv_cq = end->cq,
					.qp_type = type,
					.cap = *cap};
	struct ibv_qp *qp = end->verbs->create_qp(end->pd, &init);

	if (qp) {
		assert_true(init.cap.max_send_wr >= cap->max_send_wr);
		assert_true(init.cap.max_recv_wr >= cap->max_recv_wr);
		assert_true(init.cap.max_send_sge >= cap->max_send_sge);
		assert_true(init.cap.max_inline_data >= cap->max_inline_data);
	}
	return qp;
}

static void refuse(struct pair_end *end, struct ibv_qp_cap cap)
{
	assert_null(make(end, &cap, IBV_QPT_RC));
	assert_int_equal(errno, EINVAL);
}

static void capacities_beyond_the_limits_are_refused(void **state)
{
	struct pair_args args = {0};
	struct ibv_device_attr attr;
	struct ibv_qp_cap cap = {1, 1, 1, 1, 0};
	struct ibv_qp *qp;
	struct pair_end a;

	(void)state;
	pair_end_open(&a, &args);
	assert_int_equal(a.verbs->query_device(a.context, &attr), 0);
	cap.max_send_wr = (uint32_t)attr.max_qp_wr + 1;
	refuse(&a, cap);
	cap.max_send_wr = 1;
	cap.max_recv_wr = (uint32_t)attr.max_qp_wr + 1;
	refuse(&a, cap);
	cap.max_recv_wr = 1;
	cap.max_send_sge = (uint32_t)attr.max_sge + 1;
	refuse(&a, cap);
	cap.max_send_sge = 1;
	cap.max_recv_sge = (uint32_t)attr.max_sge + 1;
	refuse(&a, cap);
	cap.max_recv_sge = 1;
	cap.max_inline_data = 1 << 20;
	refuse(&a, cap);
	cap.max_inline_data = 0;
	cap.max_send_wr = (uint32_t)attr.max_qp_wr;
	cap.max_send_sge = (uint32_t)attr.max_sge;
	qp = make(&a, &cap, IBV_QPT_RC);
	assert_non_null(qp);
	assert_int_equal(a.verbs->destroy_qp(qp), 0);
	assert_null(a.verbs->create_cq(a.context, attr.max_cqe + 1, NULL, NULL,
				       0));
	assert_int_equal(errno, EINVAL);
	assert_null(a.verbs->create_cq(a.context, 0, NULL, NULL, 0));
	assert_null(a.verbs->create_cq(a.context, 1, NULL, NULL, 1));
	pair_end_close(&a);
}

static void other_kinds_are_not_supported(void **state)
{
	static const enum ibv_qp_type kinds[] = {
		IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_DRIVER,
	};
	struct pair_args args = {0};
	struct ibv_qp_cap cap = {1, 1, 1, 1, 0};
	struct pair_end a;
	size_t i;

	(void)state;
	pair_end_open(&a, &args);
	for (i = 0; i < base_countof(kinds); i++) {
		assert_null(make(&a, &cap, kinds[i]));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	pair_end_close(&a);
}

static void number_of_queue_pairs_is_limited(void **state)
{
	struct pair_args args = {0};
	struct ibv_device_attr attr;
	struct ibv_qp_cap cap = {0};
	struct ibv_qp **qps;
	struct pair_end a;
	int i, n;

	(void)state;
	pair_end_open(&a, &args);
	assert_int_equal(a.verbs->query_device(a.context, &attr), 0);
	n = attr.max_qp - 1; /* one is there */
	qps = test_calloc((size_t)n, sizeof(*qps));
	for (i = 0; i < n; i++) {
		qps[i] = make(&a, &cap, IBV_QPT_RC);
		assert_non_null(qps[i]);
	}
	assert_null(make(&a, &cap, IBV_QPT_RC));
	assert_int_equal(errno, ENOMEM);
	while (n--)
		assert_int_equal(a.verbs->destroy_qp(qps[n]), 0);
	test_free(qps);
	pair_end_close(&a);
}

static void number_comes_again_late(void **state)
{
	struct pair_args args = {0};
	struct ibv_qp_cap cap = {1, 1, 1, 1, 0};
	uint32_t seen[1000];
	struct pair_end a;
	struct ibv_qp *qp;
	int i, j;

	(void)state;
	pair_end_open(&a, &args);
	for (i = 0; i < 1000; i++) {
		qp = make(&a, &cap, IBV_QPT_RC);
		seen[i] = qp->qp_num;
		assert_in_range(seen[i], 2, 0xffffff);
		for (j = 0; j < i; j++)
			assert_int_not_equal(seen[i], seen[j]);
		assert_int_equal(a.verbs->destroy_qp(qp), 0);
	}
	pair_end_close(&a);
}

static void what_is_in_use_cannot_be_destroyed(void **state)
{
	struct pair_args args = {.with_channel = true};
	struct pair_end a;

	(void)state;
	pair_end_open(&a, &args);
	assert_int_equal(a.verbs->dealloc_pd(a.pd), EBUSY);
	assert_int_equal(a.verbs->destroy_cq(a.cq), EBUSY);
	assert_int_equal(a.verbs->destroy_comp_channel(a.channel), EBUSY);
	assert_int_equal(a.verbs->close_device(a.context), EBUSY);
	assert_int_equal(a.verbs->destroy_qp(a.qp), 0);
	a.qp = NULL;
	/* The region still holds the domain. */
	assert_int_equal(a.verbs->dealloc_pd(a.pd), EBUSY);
	pair_end_close(&a);
}

static void stale_number_does_not_reach_the_next_queue_pair(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b, again;
	struct pair_wr w;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(b.verbs->destroy_qp(b.qp), 0);
	again = b;
	pair_qp(&again, &args);
	again.card.qpn = again.qp->qp_num;
	pair_connect(&again, &a.card, &args);
	/* @a still sends to the number that is gone. */
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_RETRY_EXC_ERR);
	pair_end_close(&a);
	pair_end_close(&again);
}

static void a_queue_pair_may_be_its_own_peer(void **state)
{
	struct pair_args args = {0};
	struct pair_end a;
	struct pair_wr w;

	(void)state;
	pair_end_open(&a, &args);
	pair_connect(&a, &a.card, &args);
	memcpy(a.buf, "self", 4);
	assert_int_equal(pair_post_recv(&a, 1, 200, 4), 0);
	pair_wr_init(&w, &a, IBV_WR_SEND, 0, 100, 4);
	w.wr.send_flags = 0;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	assert_memory_equal(a.buf + 200, "self", 4);
	pair_end_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capacities_beyond_the_limits_are_refused),
		cmocka_unit_test(other_kinds_are_not_supported),
		cmocka_unit_test(number_of_queue_pairs_is_limited),
		cmocka_unit_test(number_comes_again_late),
		cmocka_unit_test(what_is_in_use_cannot_be_destroyed),
		cmocka_unit_test(
			stale_number_does_not_reach_the_next_queue_pair),
		cmocka_unit_test(a_queue_pair_may_be_its_own_peer),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
