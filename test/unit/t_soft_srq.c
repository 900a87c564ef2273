/* SPDX-License-Identifier: MIT */
/*
 * Goal: receives that queue pairs share are each given to one message, in the
 * order posted, and comes back with its completion or its queue pair.  Method:
 * two contexts with several connections into one queue, one of which errs or
 * is reset.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "soft_more.h"

#define N_QPS 3
#define SLOT 64u

/* Senders at @a, each connected to a queue pair at @b that shares. */
struct rig {
	struct pair_end a, b;
	struct pair_end from[N_QPS], to[N_QPS]; /* views of @a and @b */
	struct ibv_srq *srq;
	struct pair_args args;
};

static void rig_open(struct rig *r, uint32_t max_wr)
{
	int i;

	pair_end_open(&r->a, &r->args);
	pair_end_open(&r->b, &r->args);
	r->srq = more_srq(&r->b, max_wr, 2);
	for (i = 0; i < N_QPS; i++) {
		r->from[i] = r->a;
		r->to[i] = r->b;
		r->from[i].qp = more_qp(&r->a, IBV_QPT_RC, NULL);
		r->to[i].qp = more_qp(&r->b, IBV_QPT_RC, r->srq);
		r->from[i].card.qpn = r->from[i].qp->qp_num;
		r->to[i].card.qpn = r->to[i].qp->qp_num;
		pair_connect(&r->from[i], &r->to[i].card, &r->args);
		pair_connect(&r->to[i], &r->from[i].card, &r->args);
	}
}

static void rig_close(struct rig *r)
{
	int i;

	for (i = 0; i < N_QPS; i++) {
		assert_int_equal(r->a.verbs->destroy_qp(r->from[i].qp), 0);
		assert_int_equal(soft_destroy_srq(r->srq), EBUSY);
		assert_int_equal(r->b.verbs->destroy_qp(r->to[i].qp), 0);
	}
	assert_int_equal(soft_destroy_srq(r->srq), 0);
	pair_end_close(&r->a);
	pair_end_close(&r->b);
}

static void send_one(struct rig *r, int i, enum ibv_wr_opcode opcode,
		     uint32_t bytes, uint64_t wr_id)
{
	struct pair_wr w;

	pair_wr_init(&w, &r->from[i], opcode, 0, 32768, bytes);
	w.wr.wr_id = wr_id;
	w.wr.imm_data = (uint32_t)wr_id;
	assert_int_equal(pair_post(&r->from[i], &w), 0);
}

static void receives_are_taken_in_the_order_posted(void **state)
{
	struct rig r = {.args = {.rnr_retry = 0}};
	uint64_t id;

	(void)state;
	rig_open(&r, 8);
	for (id = 0; id < 8; id++)
		assert_int_equal(more_post_srq(&r.b, r.srq, id, id * SLOT,
					       SLOT), 0);
	assert_int_equal(more_post_srq(&r.b, r.srq, 8, 0, SLOT), ENOMEM);
	for (id = 0; id < 200; id++) {
		const int i = (int)(id * 7 % N_QPS);
		struct ibv_wc wc;

		memset(r.a.buf, (int)id, SLOT);
		send_one(&r, i, IBV_WR_SEND_WITH_IMM, SLOT, id);
		pair_expect(&r.from[i], id, IBV_WC_SUCCESS);
		pair_wait(&r.b, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.wr_id, id);
		assert_int_equal(wc.byte_len, SLOT);
		assert_int_equal(wc.imm_data, id);
		assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
		assert_int_equal(wc.qp_num, r.to[i].qp->qp_num);
		assert_int_equal(wc.src_qp, r.from[i].qp->qp_num);
		assert_memory_equal(r.b.buf + id % 8 * SLOT, r.a.buf, SLOT);
		assert_int_equal(more_post_srq(&r.b, r.srq, id + 8,
					       id % 8 * SLOT, SLOT), 0);
	}
	rig_close(&r);
}

static void a_write_with_immediate_takes_one_and_leaves_its_memory(void **state)
{
	struct rig r = {.args = {.rnr_retry = 0}};
	struct ibv_wc wc;

	(void)state;
	rig_open(&r, 4);
	memset(r.a.buf, 3, SLOT);
	assert_int_equal(more_post_srq(&r.b, r.srq, 5, 0, SLOT), 0);
	send_one(&r, 1, IBV_WR_RDMA_WRITE_WITH_IMM, SLOT, 9);
	pair_expect(&r.from[1], 9, IBV_WC_SUCCESS);
	pair_wait(&r.b, &wc);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.byte_len, SLOT);
	assert_int_equal(r.b.buf[0], 0);
	assert_memory_equal(r.b.buf + 32768, r.a.buf, SLOT);
	/* A plain one takes none, though none is there. */
	send_one(&r, 1, IBV_WR_RDMA_WRITE, SLOT, 10);
	pair_expect(&r.from[1], 10, IBV_WC_SUCCESS);
	send_one(&r, 1, IBV_WR_RDMA_WRITE_WITH_IMM, SLOT, 11);
	pair_expect(&r.from[1], 11, IBV_WC_RNR_RETRY_EXC_ERR);
	rig_close(&r);
}

static void who_finds_none_waits_for_one(void **state)
{
	struct rig r = {.args = {.rnr_retry = 7, .rnr_timer = 1}};

	(void)state;
	rig_open(&r, 4);
	send_one(&r, 0, IBV_WR_SEND, 8, 1);
	send_one(&r, 2, IBV_WR_SEND, 8, 2);
	pair_expect_none(&r.a);
	assert_int_equal(more_post_srq(&r.b, r.srq, 77, 0, SLOT), 0);
	pair_expect(&r.from[0], 1, IBV_WC_SUCCESS);
	assert_int_equal(more_post_srq(&r.b, r.srq, 78, 0, SLOT), 0);
	pair_expect(&r.from[2], 2, IBV_WC_SUCCESS);
	pair_expect(&r.to[0], 77, IBV_WC_SUCCESS);
	pair_expect(&r.to[2], 78, IBV_WC_SUCCESS);
	rig_close(&r);
}

static void an_error_of_one_leaves_the_rest_to_the_others(void **state)
{
	struct rig r = {.args = {.rnr_retry = 0}};

	(void)state;
	rig_open(&r, 4);
	assert_int_equal(more_post_srq(&r.b, r.srq, 1, 0, 4), 0);
	assert_int_equal(more_post_srq(&r.b, r.srq, 2, 0, SLOT), 0);
	/* Too long: both ends fail, and the receive with them. */
	send_one(&r, 0, IBV_WR_SEND, 8, 7);
	pair_expect(&r.from[0], 7, IBV_WC_REM_INV_REQ_ERR);
	pair_expect(&r.to[0], 1, IBV_WC_LOC_LEN_ERR);
	more_expect_event(&r.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(pair_state(&r.to[0]), IBV_QPS_ERR);
	pair_expect_none(&r.b);
	send_one(&r, 1, IBV_WR_SEND, 8, 8);
	pair_expect(&r.from[1], 8, IBV_WC_SUCCESS);
	pair_expect(&r.to[1], 2, IBV_WC_SUCCESS);
	/* All four slots are there again. */
	for (uint64_t id = 0; id < 4; id++)
		assert_int_equal(more_post_srq(&r.b, r.srq, id, 0, SLOT), 0);
	assert_int_equal(more_post_srq(&r.b, r.srq, 4, 0, SLOT), ENOMEM);
	rig_close(&r);
}

static void a_reset_gives_back_what_was_not_polled(void **state)
{
	struct rig r = {.args = {.rnr_retry = 0}};
	uint64_t id;
	int round;

	(void)state;
	rig_open(&r, 4);
	for (round = 0; round < 20; round++) {
		for (id = 0; id < 4; id++)
			assert_int_equal(more_post_srq(&r.b, r.srq, id, 0,
						       SLOT), 0);
		for (id = 0; id < 4; id++) {
			send_one(&r, 0, IBV_WR_SEND, 8, id);
			pair_expect(&r.from[0], id, IBV_WC_SUCCESS);
		}
		if (round % 3)
			pair_expect(&r.to[0], 0, IBV_WC_SUCCESS);
		assert_int_equal(pair_to(&r.to[0], IBV_QPS_RESET), 0);
		assert_int_equal(pair_to(&r.from[0], IBV_QPS_RESET), 0);
		pair_expect_none(&r.b);
		pair_connect(&r.from[0], &r.to[0].card, &r.args);
		pair_connect(&r.to[0], &r.from[0].card, &r.args);
	}
	rig_close(&r);
}

static void take(struct rig *r, int i)
{
	send_one(r, i, IBV_WR_SEND, 8, 1);
	pair_expect(&r->from[i], 1, IBV_WC_SUCCESS);
}

/* The next event but COMM_EST is that of the limit. */
static void expect_limit(struct rig *r)
{
	struct ibv_async_event event;

	do {
		more_event(&r->b, &event);
		r->b.verbs->ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_COMM_EST);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, r->srq);
}

static void the_limit_is_told_once_for_each_arming(void **state)
{
	struct rig r = {.args = {.rnr_retry = 0}};
	struct ibv_srq_attr attr = {.srq_limit = 3};
	uint64_t id;

	(void)state;
	rig_open(&r, 8);
	for (id = 0; id < 5; id++)
		assert_int_equal(more_post_srq(&r.b, r.srq, id, 0, SLOT), 0);
	assert_int_equal(soft_modify_srq(r.srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(soft_query_srq(r.srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 3);
	take(&r, 0);
	take(&r, 1);
	assert_false(more_has_event(&r.b));
	take(&r, 2);
	expect_limit(&r);
	assert_int_equal(soft_query_srq(r.srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	take(&r, 0);
	assert_false(more_has_event(&r.b));
	/* One is left: an arming above that is told at once. */
	attr.srq_limit = 1;
	assert_int_equal(soft_modify_srq(r.srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_false(more_has_event(&r.b));
	attr.srq_limit = 2;
	assert_int_equal(soft_modify_srq(r.srq, &attr, IBV_SRQ_LIMIT), 0);
	expect_limit(&r);
	attr.srq_limit = 9;
	assert_int_equal(soft_modify_srq(r.srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(soft_modify_srq(r.srq, &attr, IBV_SRQ_MAX_WR),
			 EOPNOTSUPP);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receives_are_taken_in_the_order_posted),
		cmocka_unit_test(
			a_write_with_immediate_takes_one_and_leaves_its_memory),
		cmocka_unit_test(who_finds_none_waits_for_one),
		cmocka_unit_test(an_error_of_one_leaves_the_rest_to_the_others),
		cmocka_unit_test(a_reset_gives_back_what_was_not_polled),
		cmocka_unit_test(the_limit_is_told_once_for_each_arming),
	};

	alarm(60);
	setenv("WREATH_SOFT", "roce:1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
