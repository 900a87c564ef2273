/* SPDX-License-Identifier: MIT */
/*
 * Goal: without acknowledgements a good request arrives, a bad one is lost
 * without a word to either end, and errors of one's own stop the sending half
 * alone.  Method: two ends in one process and in two; each kind of loss, and
 * a good request after it.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "soft_more.h"

static void uc_open(struct pair_end *a, struct pair_end *b,
		    const struct pair_args *args)
{
	pair_end_open(a, args);
	pair_end_open(b, args);
	more_change(a, IBV_QPT_UC, NULL);
	more_change(b, IBV_QPT_UC, NULL);
	more_connect_uc(a, &b->card);
	more_connect_uc(b, &a->card);
}

static void send_now(struct pair_end *end, enum ibv_wr_opcode opcode,
		     uint64_t wr_id, uint32_t bytes)
{
	struct pair_wr w;

	pair_wr_init(&w, end, opcode, 0, 4096, bytes);
	w.wr.wr_id = wr_id;
	w.wr.imm_data = 0x01020304;
	assert_int_equal(pair_post(end, &w), 0);
	pair_expect(end, wr_id, IBV_WC_SUCCESS);
}

static void what_is_good_arrives_in_order(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct ibv_wc wc;
	uint64_t id;

	(void)state;
	uc_open(&a, &b, &args);
	for (id = 0; id < 200; id++) {
		memset(a.buf, (int)id, 256);
		assert_int_equal(pair_post_recv(&b, id, 0, 256), 0);
		send_now(&a, id % 2 ? IBV_WR_SEND_WITH_IMM
				    : IBV_WR_RDMA_WRITE_WITH_IMM, id, 256);
		pair_wait(&b, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, id);
		if (id % 2)
			assert_int_equal(wc.opcode, IBV_WC_RECV);
		else
			assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.byte_len, 256);
		assert_int_equal(wc.imm_data, 0x01020304);
		assert_int_equal(wc.src_qp, a.qp->qp_num);
		assert_memory_equal(b.buf + (id % 2 ? 0 : 4096), a.buf, 256);
	}
	pair_close(&a, &b);
}

/* Nothing tells, and the next good one arrives. */
static void still_works(struct pair_end *a, struct pair_end *b)
{
	pair_expect_none(b);
	assert_int_equal(pair_state(a), IBV_QPS_RTS);
	assert_int_equal(pair_state(b), IBV_QPS_RTS);
	assert_int_equal(pair_post_recv(b, 50, 0, 4096), 0);
	send_now(a, IBV_WR_SEND, 51, 64);
	pair_expect(b, 50, IBV_WC_SUCCESS);
}

static void what_the_peer_does_not_take_is_lost(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct pair_wr w;

	(void)state;
	uc_open(&a, &b, &args);
	/* No receive; none for the immediate. */
	send_now(&a, IBV_WR_SEND, 1, 64);
	still_works(&a, &b);
	send_now(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 64);
	still_works(&a, &b);
	/* No such key; beyond the end. */
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 64);
	w.wr.wr.rdma.rkey++;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	still_works(&a, &b);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, PAIR_BYTES - 8, 64);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	still_works(&a, &b);
	/* Too long: the receive is for the next. */
	assert_int_equal(pair_post_recv(&b, 60, 0, 8), 0);
	send_now(&a, IBV_WR_SEND, 3, 9);
	pair_expect_none(&b);
	send_now(&a, IBV_WR_SEND, 4, 8);
	pair_expect(&b, 60, IBV_WC_SUCCESS);
	pair_close(&a, &b);
}

static void a_peer_that_is_not_there_is_no_error(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;

	(void)state;
	uc_open(&a, &b, &args);
	send_now(&a, IBV_WR_RDMA_WRITE, 1, 64);
	assert_int_equal(pair_to(&b, IBV_QPS_RESET), 0);
	send_now(&a, IBV_WR_RDMA_WRITE, 2, 64);
	/* It may come back, and our numbers need not fit. */
	more_connect_uc(&b, &a.card);
	still_works(&a, &b);
	pair_end_close(&b);
	send_now(&a, IBV_WR_RDMA_WRITE, 3, 64);
	send_now(&a, IBV_WR_SEND, 4, 64);
	assert_int_equal(pair_state(&a), IBV_QPS_RTS);
	pair_end_close(&a);
}

static void an_error_of_our_own_stops_sending_alone(void **state)
{
	struct ibv_qp_attr attr = {.cur_qp_state = IBV_QPS_SQE};
	struct pair_args args = {0};
	struct pair_end a, b;
	struct pair_wr w;

	(void)state;
	uc_open(&a, &b, &args);
	pair_wr_init(&w, &a, IBV_WR_SEND, 0, 0, 64);
	w.sge.lkey++;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(pair_state(&a), IBV_QPS_SQE);
	w.wr.send_flags = 0;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_WR_FLUSH_ERR);
	/* It goes on to receive, and to send when it is told to. */
	assert_int_equal(pair_post_recv(&a, 3, 0, 64), 0);
	send_now(&b, IBV_WR_SEND, 2, 64);
	pair_expect(&a, 3, IBV_WC_SUCCESS);
	assert_int_equal(more_modify(&a, IBV_QPS_RTS, attr,
				     IBV_QP_CUR_STATE), 0);
	still_works(&a, &b);
	pair_close(&a, &b);
}

static void what_needs_an_answer_is_refused(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct pair_args args = {0};
	struct pair_end a, b;
	struct pair_wr w;
	size_t i;

	(void)state;
	uc_open(&a, &b, &args);
	for (i = 0; i < base_countof(opcodes); i++) {
		pair_wr_init(&w, &a, opcodes[i], 0, 0, 8);
		assert_int_equal(pair_post(&a, &w), EINVAL);
	}
	pair_close(&a, &b);
}

static void kinds_do_not_mix(void **state)
{
	struct pair_args args = {.retry_cnt = 1, .timeout = 8};
	struct pair_end a, b;
	struct pair_wr w;

	(void)state;
	pair_end_open(&a, &args);
	pair_end_open(&b, &args);
	more_change(&b, IBV_QPT_UC, NULL);
	pair_connect(&a, &b.card, &args);
	more_connect_uc(&b, &a.card);
	send_now(&b, IBV_WR_RDMA_WRITE, 1, 64);
	assert_int_equal(a.buf[4096], 0);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 64);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_RETRY_EXC_ERR);
	pair_close(&a, &b);
}

static void the_way_to_its_states_is_its_own(void **state)
{
	static const struct more_step steps[] = {
		{IBV_QPS_INIT,
		 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
		{IBV_QPS_RTR,
		 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
		 IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
		{IBV_QPS_RTS, IBV_QP_SQ_PSN,
		 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH |
			 IBV_QP_PATH_MIG_STATE},
		{IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
		{IBV_QPS_RTS, 0,
		 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH |
			 IBV_QP_PATH_MIG_STATE},
		{IBV_QPS_ERR, 0, 0},
		{IBV_QPS_RESET, 0, 0},
	};
	struct pair_args args = {0};
	struct pair_end end;

	(void)state;
	pair_end_open(&end, &args);
	more_change(&end, IBV_QPT_UC, NULL);
	more_take_steps(&end, steps, base_countof(steps));
	pair_end_close(&end);
}

/* With the peer in another process, whose memory must first be fetched. */
static void child_receives(struct pair_end *end, int socket)
{
	struct pair_card other;

	more_change(end, IBV_QPT_UC, NULL);
	assert_int_equal(write(socket, &end->card, sizeof(end->card)),
			 sizeof(end->card));
	assert_int_equal(read(socket, &other, sizeof(other)), sizeof(other));
	more_connect_uc(end, &other);
	assert_int_equal(pair_post_recv(end, 7, 0, 4096), 0);
	pair_meet(socket);
	pair_expect(end, 7, IBV_WC_SUCCESS);
	assert_int_equal(end->buf[0], 9);
	assert_int_equal(end->buf[4095], 9);
	/* To be killed is no error of the sender's. */
	pair_meet(socket);
	_exit(0);
}

static void check_far(bool is_plain)
{
	struct pair_args args = {.plain_memory = is_plain};
	struct pair_end end;
	struct pair_card other;
	int socket;
	pid_t pid = pair_fork(&end, &socket, &args, child_receives);

	more_change(&end, IBV_QPT_UC, NULL);
	assert_int_equal(write(socket, &end.card, sizeof(end.card)),
			 sizeof(end.card));
	assert_int_equal(read(socket, &other, sizeof(other)), sizeof(other));
	more_connect_uc(&end, &other);
	end.other = other;
	pair_meet(socket);
	memset(end.buf, 9, 4096);
	send_now(&end, IBV_WR_SEND, 1, 4096);
	pair_meet(socket);
	pair_reap(pid);
	send_now(&end, IBV_WR_SEND, 2, 4096);
	send_now(&end, IBV_WR_RDMA_WRITE, 3, 4096);
	pair_end_close(&end);
	close(socket);
}

static void it_works_between_processes(void **state)
{
	(void)state;
	check_far(false);
	check_far(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_works_between_processes),
		cmocka_unit_test(what_is_good_arrives_in_order),
		cmocka_unit_test(what_the_peer_does_not_take_is_lost),
		cmocka_unit_test(a_peer_that_is_not_there_is_no_error),
		cmocka_unit_test(an_error_of_our_own_stops_sending_alone),
		cmocka_unit_test(what_needs_an_answer_is_refused),
		cmocka_unit_test(kinds_do_not_mix),
		cmocka_unit_test(the_way_to_its_states_is_its_own),
	};

	alarm(60);
	setenv("WREATH_SOFT", "roce:1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
