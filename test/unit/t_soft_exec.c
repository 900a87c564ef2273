/* SPDX-License-Identifier: MIT */
/*
 * Goal: a request moves what it may move and nothing else, and each right
 * that is missing has the status and the consequences that the specification
 * gives it.  Method: requests with one thing wrong, both ends looked at.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "soft_pair.h"

static void expect_event(struct pair_end *end, enum ibv_event_type type)
{
	struct ibv_async_event event;

	assert_int_equal(end->verbs->get_async_event(end->context, &event), 0);
	assert_int_equal(event.event_type, type);
	assert_ptr_equal(event.element.qp, end->qp);
	end->verbs->ack_async_event(&event);
}

/* The state as it shall be soon: the peer's thread brings the news. */
static void await_state(struct pair_end *end, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int i;

	for (i = 0; i < 5000; i++) {
		assert_int_equal(end->verbs->query_qp(end->qp, &attr, 0, &init),
				 0);
		if (attr.qp_state == state)
			return;
		pair_sleep_us(1000);
	}
	fail_msg("the state is %d, not %d", attr.qp_state, state);
}

static void send_scatters_and_gathers(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct ibv_sge from[3], to[3];
	struct ibv_recv_wr recv = {.wr_id = 4, .sg_list = to, .num_sge = 3};
	struct ibv_recv_wr *bad;
	struct pair_wr w;
	struct ibv_wc wc;

	(void)state;
	pair_open(&a, &b, &args);
	memcpy(a.buf, "abcdefghijkl", 12);
	from[0] = (struct ibv_sge){(uintptr_t)a.buf, 5, a.mr->lkey};
	from[1] = (struct ibv_sge){0, 0, 0}; /* neither is looked at */
	from[2] = (struct ibv_sge){(uintptr_t)a.buf + 5, 7, a.mr->lkey};
	to[0] = (struct ibv_sge){(uintptr_t)b.buf + 100, 1, b.mr->lkey};
	to[1] = (struct ibv_sge){(uintptr_t)b.buf + 200, 9, b.mr->lkey};
	to[2] = (struct ibv_sge){(uintptr_t)b.buf + 300, 9, b.mr->lkey};
	assert_int_equal(ibv_post_recv(b.qp, &recv, &bad), 0);
	pair_wr_init(&w, &a, IBV_WR_SEND_WITH_IMM, 0, 0, 0);
	w.wr.sg_list = from;
	w.wr.num_sge = 3;
	w.wr.imm_data = 99;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_wait(&a, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
	pair_wait(&b, &wc);
	assert_int_equal(wc.wr_id, 4);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 12);
	assert_int_equal(wc.imm_data, 99);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.src_qp, a.qp->qp_num);
	assert_memory_equal(b.buf + 100, "a", 2);
	assert_memory_equal(b.buf + 200, "bcdefghij", 10);
	assert_memory_equal(b.buf + 300, "kl", 3);
	pair_close(&a, &b);
}

static void read_brings_the_peers_bytes(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct pair_wr w;
	struct ibv_wc wc;

	(void)state;
	pair_open(&a, &b, &args);
	memcpy(b.buf + 50, "remote bytes", 12);
	pair_wr_init(&w, &a, IBV_WR_RDMA_READ, 7, 50, 12);
	assert_int_equal(pair_post(&a, &w), 0);
	/* What is fenced comes after it, and sees what it has brought. */
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 7, 500, 12);
	w.wr.send_flags |= IBV_SEND_FENCE;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_wait(&a, &wc);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
	assert_int_equal(wc.byte_len, 12);
	assert_memory_equal(a.buf + 7, "remote bytes", 12);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_memory_equal(b.buf + 500, "remote bytes", 12);
	/* Inline is for sending. */
	pair_wr_init(&w, &a, IBV_WR_RDMA_READ, 7, 50, 12);
	w.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(pair_post(&a, &w), EINVAL);
	pair_close(&a, &b);
}

static void inline_data_is_taken_when_posted(void **state)
{
	struct pair_args args = {.rnr_retry = 7, .inline_bytes = 100};
	struct pair_end a, b;
	struct pair_wr w;
	char local[200] = "inline"; /* not registered: no key is needed */

	(void)state;
	pair_open(&a, &b, &args);
	pair_wr_init(&w, &a, IBV_WR_SEND, 0, 0, 100);
	w.sge.addr = (uintptr_t)local;
	w.sge.lkey = 0;
	w.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(pair_post(&a, &w), 0);
	/* It waits for a receive, and the caller's memory is free. */
	memset(local, 'X', sizeof(local));
	assert_int_equal(pair_post_recv(&b, 0, 0, 100), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_string_equal(b.buf, "inline");
	w.sge.length = 101;
	assert_int_equal(pair_post(&a, &w), EINVAL);
	pair_close(&a, &b);
}

struct wrong {
	enum ibv_wr_opcode opcode;
	uint64_t move;	 /* of the remote address */
	uint32_t length; /* 0: 8 */
	uint32_t spoil;	 /* of the key */
	enum ibv_wc_status status;
	enum ibv_event_type event; /* at the peer */
	unsigned int qp_access;
	int mr_access;
};

static void one_wrong_request(const struct wrong *wrong)
{
	struct pair_args args = {.access = wrong->qp_access,
				 .mr_access = wrong->mr_access};
	struct pair_end a, b;
	struct pair_wr w;

	pair_open(&a, &b, &args);
	memset(b.buf, 'b', PAIR_BYTES);
	pair_wr_init(&w, &a, wrong->opcode, 0, wrong->move,
		     wrong->length ? wrong->length : 8);
	w.wr.wr.rdma.rkey ^= wrong->spoil;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, wrong->status);
	assert_int_equal(pair_state(&a), IBV_QPS_ERR);
	expect_event(&b, wrong->event);
	await_state(&b, IBV_QPS_ERR);
	assert_int_equal(b.buf[0], 'b');
	assert_int_equal(b.buf[PAIR_BYTES - 1], 'b');
	pair_close(&a, &b);
}

static void requests_without_right_fail_at_both_ends(void **state)
{
	static const struct wrong wrongs[] = {
		{IBV_WR_RDMA_WRITE, 0, 0, 1, IBV_WC_REM_ACCESS_ERR,
		 IBV_EVENT_QP_ACCESS_ERR, 0, 0},
		{IBV_WR_RDMA_READ, 0, 0, 1u << 20, IBV_WC_REM_ACCESS_ERR,
		 IBV_EVENT_QP_ACCESS_ERR, 0, 0},
		{IBV_WR_RDMA_WRITE, PAIR_BYTES - 7, 0, 0,
		 IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, 0, 0},
		{IBV_WR_RDMA_WRITE, (uint64_t)-1, 0, 0, IBV_WC_REM_ACCESS_ERR,
		 IBV_EVENT_QP_ACCESS_ERR, 0, 0},
		/* The end is below the beginning. */
		{IBV_WR_RDMA_WRITE, UINT64_MAX / 2, 0, 0,
		 IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, 0, 0},
		{IBV_WR_RDMA_WRITE, 0, 0, 0, IBV_WC_REM_ACCESS_ERR,
		 IBV_EVENT_QP_ACCESS_ERR, 0,
		 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ},
		{IBV_WR_RDMA_READ, 0, 0, 0, IBV_WC_REM_ACCESS_ERR,
		 IBV_EVENT_QP_ACCESS_ERR, 0,
		 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE},
		{IBV_WR_RDMA_WRITE, 0, 0, 0, IBV_WC_REM_INV_REQ_ERR,
		 IBV_EVENT_QP_REQ_ERR, IBV_ACCESS_REMOTE_READ, 0},
		{IBV_WR_RDMA_READ, 0, 0, 0, IBV_WC_REM_INV_REQ_ERR,
		 IBV_EVENT_QP_REQ_ERR, IBV_ACCESS_REMOTE_WRITE, 0},
	};
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(wrongs); i++)
		one_wrong_request(&wrongs[i]);
}

static void key_of_another_domain_is_no_key(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct pair_wr w;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	(void)state;
	pair_open(&a, &b, &args);
	pd = b.verbs->alloc_pd(b.context);
	mr = b.verbs->reg_mr(pd, b.buf, 4096, PAIR_ACCESS);
	assert_non_null(mr);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	w.wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_REM_ACCESS_ERR);
	expect_event(&b, IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(b.verbs->dereg_mr(mr), 0);
	assert_int_equal(b.verbs->dealloc_pd(pd), 0);
	pair_close(&a, &b);
}

static void local(uint64_t move, uint32_t spoil, int access,
		  enum ibv_wr_opcode opcode)
{
	struct pair_args args = {.mr_access = access};
	struct pair_end a, b;
	struct pair_wr w;

	pair_open(&a, &b, &args);
	pair_wr_init(&w, &a, opcode, 0, 0, 8);
	w.sge.addr += move;
	w.sge.lkey ^= spoil;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(pair_state(&a), IBV_QPS_ERR);
	assert_int_equal(pair_state(&b), IBV_QPS_RTS);
	pair_close(&a, &b);
}

static void local_memory_must_be_ours(void **state)
{
	(void)state;
	local(0, 1, 0, IBV_WR_RDMA_WRITE);
	local(PAIR_BYTES - 7, 0, 0, IBV_WR_RDMA_WRITE);
	local((uint64_t)-1, 0, 0, IBV_WR_SEND);
	/* What a READ brings must be written. */
	local(0, 0, IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ);
}

static void empty_requests_need_no_memory(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct pair_wr w;
	struct ibv_wc wc;

	(void)state;
	pair_open(&a, &b, &args);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 0);
	w.sge.lkey = 0;
	w.wr.wr.rdma.rkey = 0;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	w.wr.num_sge = 0;
	w.wr.sg_list = NULL;
	w.wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	w.wr.imm_data = 3;
	assert_int_equal(pair_post_recv(&b, 8, 0, 0), 0);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	pair_wait(&b, &wc);
	assert_int_equal(wc.imm_data, 3);
	assert_int_equal(wc.byte_len, 0);
	w.wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	pair_close(&a, &b);
}

static void receive_that_is_too_small_fails_both_ends(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct pair_wr w;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(pair_post_recv(&b, 3, 0, 7), 0);
	assert_int_equal(pair_post_recv(&b, 4, 0, 7), 0);
	pair_wr_init(&w, &a, IBV_WR_SEND, 0, 0, 8);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_REM_INV_REQ_ERR);
	pair_expect(&b, 3, IBV_WC_LOC_LEN_ERR);
	pair_expect(&b, 4, IBV_WC_WR_FLUSH_ERR);
	await_state(&b, IBV_QPS_ERR);
	pair_close(&a, &b);
}

static void receive_into_wrong_memory_fails_both_ends(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct ibv_sge sge;
	struct ibv_recv_wr recv = {.wr_id = 3, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	struct pair_wr w;

	(void)state;
	pair_open(&a, &b, &args);
	sge = (struct ibv_sge){(uintptr_t)b.buf, 8, b.mr->lkey ^ 1};
	assert_int_equal(ibv_post_recv(b.qp, &recv, &bad), 0);
	pair_wr_init(&w, &a, IBV_WR_SEND, 0, 0, 8);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_REM_OP_ERR);
	pair_expect(&b, 3, IBV_WC_LOC_PROT_ERR);
	await_state(&b, IBV_QPS_ERR);
	pair_close(&a, &b);
}

static void write_with_immediate_leaves_the_receives_memory_alone(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct pair_wr w;
	struct ibv_wc wc;

	(void)state;
	pair_open(&a, &b, &args);
	memset(a.buf, 'a', 64);
	memset(b.buf, 'b', PAIR_BYTES);
	assert_int_equal(pair_post_recv(&b, 3, 1000, 64), 0);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 64);
	w.wr.imm_data = 0x01020304;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_wait(&b, &wc);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.imm_data, 0x01020304);
	assert_int_equal(b.buf[0], 'a');
	assert_int_equal(b.buf[1000], 'b');
	/* A plain write takes no receive. */
	assert_int_equal(pair_post_recv(&b, 4, 1000, 64), 0);
	w.wr.opcode = IBV_WR_RDMA_WRITE;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect_none(&b);
	pair_close(&a, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_scatters_and_gathers),
		cmocka_unit_test(read_brings_the_peers_bytes),
		cmocka_unit_test(inline_data_is_taken_when_posted),
		cmocka_unit_test(requests_without_right_fail_at_both_ends),
		cmocka_unit_test(key_of_another_domain_is_no_key),
		cmocka_unit_test(local_memory_must_be_ours),
		cmocka_unit_test(empty_requests_need_no_memory),
		cmocka_unit_test(receive_that_is_too_small_fails_both_ends),
		cmocka_unit_test(receive_into_wrong_memory_fails_both_ends),
		cmocka_unit_test(
			write_with_immediate_leaves_the_receives_memory_alone),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
