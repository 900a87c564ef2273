/* SPDX-License-Identifier: MIT */
/*
 * Goal: a datagram arrives once and whole with what is told of its sender, or
 * is lost without a word.  Method: ends of both kinds of port in one process,
 * and senders in several; each reason to be lost, and a good one after it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>

#include "soft_more.h"

#define GRH 40u

static const struct pair_args on_ethernet = {0};
static const struct pair_args on_infiniband = {.device = 1};

static void ud_open(struct pair_end *end, const struct pair_args *args)
{
	pair_end_open(end, args);
	more_change(end, IBV_QPT_UD, NULL);
	more_start_ud(end);
}

static struct ibv_ah *ah_to(struct pair_end *end, const struct pair_card *card)
{
	struct ibv_ah_attr attr = more_address(card);
	struct ibv_ah *ah = end->verbs->create_ah(end->pd, &attr);

	assert_non_null(ah);
	return ah;
}

static void ud_wr(struct pair_wr *w, struct pair_end *end, struct ibv_ah *ah,
		  uint32_t qpn, uint32_t bytes)
{
	pair_wr_init(w, end, IBV_WR_SEND_WITH_IMM, 0, 0, bytes);
	w->wr.imm_data = 0xabcd;
	w->wr.wr.ud.ah = ah;
	w->wr.wr.ud.remote_qpn = qpn;
	w->wr.wr.ud.remote_qkey = MORE_QKEY;
}

static void send_now(struct pair_end *end, struct pair_wr *w)
{
	assert_int_equal(pair_post(end, w), 0);
	pair_expect(end, w->wr.wr_id, IBV_WC_SUCCESS);
}

static void check_header(const struct pair_end *a, const struct pair_end *b,
			 const struct ibv_wc *wc, uint32_t bytes)
{
	const struct ibv_grh *grh = (const void *)b->buf;

	assert_int_equal(wc->slid, a->card.lid);
	if (!(wc->wc_flags & IBV_WC_GRH)) {
		assert_int_not_equal(a->card.lid, 0);
		assert_int_equal(b->buf[0], 0x55);
		assert_int_equal(b->buf[39], 0x55);
		return;
	}
	assert_memory_equal(&grh->sgid, &a->card.gid, 16);
	assert_memory_equal(&grh->dgid, &b->card.gid, 16);
	assert_int_equal(ntohl(grh->version_tclass_flow) >> 28, 6);
	assert_int_equal(ntohs(grh->paylen), bytes);
	assert_int_equal(grh->hop_limit, 64);
}

static void check_arrival(const struct pair_args *args)
{
	static const uint32_t sizes[] = {0, 1, 64, 1000, 4096};
	struct pair_end a, b;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct pair_wr w;
	size_t i;

	ud_open(&a, args);
	ud_open(&b, args);
	ah = ah_to(&a, &b.card);
	for (i = 0; i < base_countof(sizes); i++) {
		memset(a.buf, 3 + (int)i, 4096);
		memset(b.buf, 0x55, GRH);
		assert_int_equal(pair_post_recv(&b, i, 0, sizes[i] + GRH), 0);
		ud_wr(&w, &a, ah, b.qp->qp_num, sizes[i]);
		send_now(&a, &w);
		pair_wait(&b, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.byte_len, sizes[i] + GRH);
		assert_int_equal(wc.src_qp, a.qp->qp_num);
		assert_int_equal(wc.qp_num, b.qp->qp_num);
		assert_int_equal(wc.imm_data, 0xabcd);
		assert_int_equal(wc.sl, 3);
		assert_int_equal(wc.wc_flags, args->device
						      ? IBV_WC_WITH_IMM
						      : IBV_WC_WITH_IMM |
								IBV_WC_GRH);
		check_header(&a, &b, &wc, sizes[i]);
		assert_memory_equal(b.buf + GRH, a.buf, sizes[i]);
	}
	assert_int_equal(a.verbs->destroy_ah(ah), 0);
	pair_close(&a, &b);
}

static void it_arrives_with_what_is_told_of_its_sender(void **state)
{
	(void)state;
	check_arrival(&on_ethernet);
	check_arrival(&on_infiniband);
}

static void a_port_with_a_lid_may_route_by_gid(void **state)
{
	struct pair_end a, b;
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct pair_wr w;

	(void)state;
	ud_open(&a, &on_infiniband);
	ud_open(&b, &on_infiniband);
	attr = more_address(&b.card);
	attr.is_global = 1;
	attr.grh.dgid = b.card.gid;
	attr.grh.hop_limit = 64;
	ah = a.verbs->create_ah(a.pd, &attr);
	assert_non_null(ah);
	assert_int_equal(pair_post_recv(&b, 1, 0, 100), 0);
	ud_wr(&w, &a, ah, b.qp->qp_num, 8);
	send_now(&a, &w);
	pair_wait(&b, &wc);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM | IBV_WC_GRH);
	check_header(&a, &b, &wc, 8);
	assert_int_equal(a.verbs->destroy_ah(ah), 0);
	pair_close(&a, &b);
}

static void pieces_are_gathered_and_scattered(void **state)
{
	struct pair_end a, b;
	struct ibv_sge from[3], to[4];
	struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = to, .num_sge = 4};
	struct ibv_recv_wr *bad;
	struct ibv_ah *ah;
	struct pair_wr w;
	int i;

	(void)state;
	ud_open(&a, &on_ethernet);
	ud_open(&b, &on_ethernet);
	ah = ah_to(&a, &b.card);
	for (i = 0; i < 100; i++)
		a.buf[i] = (char)i;
	from[0] = (struct ibv_sge){a.card.addr, 30, a.mr->lkey};
	from[1] = (struct ibv_sge){0, 0, 0};
	from[2] = (struct ibv_sge){a.card.addr + 30, 70, a.mr->lkey};
	to[0] = (struct ibv_sge){b.card.addr, 10, b.mr->lkey};
	to[1] = (struct ibv_sge){0, 0, 0};
	to[2] = (struct ibv_sge){b.card.addr + 100, 50, b.mr->lkey};
	to[3] = (struct ibv_sge){b.card.addr + 1000, 500, b.mr->lkey};
	assert_int_equal(ibv_post_recv(b.qp, &recv, &bad), 0);
	ud_wr(&w, &a, ah, b.qp->qp_num, 100);
	w.wr.sg_list = from;
	w.wr.num_sge = 3;
	send_now(&a, &w);
	pair_expect(&b, 1, IBV_WC_SUCCESS);
	/* The header has 10 and 30 bytes. */
	assert_memory_equal(b.buf + 130, a.buf, 20);
	assert_memory_equal(b.buf + 1000, a.buf + 20, 80);
	assert_int_equal(b.buf[1080], 0);
	assert_int_equal(a.verbs->destroy_ah(ah), 0);
	pair_close(&a, &b);
}

/* What each is that is lost. */
enum loss {
	LOSS_QKEY,
	LOSS_QPN,
	LOSS_KIND,
	LOSS_RECEIVE,
	LOSS_TOO_LONG,
	LOSS_MTU,
	N_LOSSES,
};

static void lose(struct pair_end *a, struct pair_end *b, struct ibv_ah *ah,
		 enum loss loss)
{
	struct ibv_qp *rc = more_qp(b, IBV_QPT_RC, NULL);
	struct pair_wr w;

	ud_wr(&w, a, ah, b->qp->qp_num, 64);
	if (loss == LOSS_QKEY)
		w.wr.wr.ud.remote_qkey ^= 1;
	if (loss == LOSS_QPN)
		w.wr.wr.ud.remote_qpn ^= 1;
	if (loss == LOSS_KIND)
		w.wr.wr.ud.remote_qpn = rc->qp_num;
	if (loss == LOSS_TOO_LONG)
		w.sge.length = 101 - GRH;
	if (loss == LOSS_MTU)
		w.sge.length = 4097;
	if (loss != LOSS_RECEIVE)
		assert_int_equal(pair_post_recv(b, 9, 0, 100), 0);
	send_now(a, &w);
	/* Longer than it may wait for a receive. */
	pair_sleep_us(loss == LOSS_RECEIVE ? 150000 : 5000);
	pair_expect_none(b);
	if (loss == LOSS_RECEIVE)
		assert_int_equal(pair_post_recv(b, 9, 0, 100), 0);
	pair_sleep_us(5000);
	pair_expect_none(b);
	ud_wr(&w, a, ah, b->qp->qp_num, 60);
	send_now(a, &w);
	pair_expect(b, 9, IBV_WC_SUCCESS);
	assert_int_equal(b->verbs->destroy_qp(rc), 0);
}

static void what_finds_no_taker_is_lost(void **state)
{
	struct pair_end a, b;
	struct ibv_ah *ah;
	int loss;

	(void)state;
	ud_open(&a, &on_ethernet);
	ud_open(&b, &on_ethernet);
	ah = ah_to(&a, &b.card);
	for (loss = 0; loss < N_LOSSES; loss++)
		lose(&a, &b, ah, (enum loss)loss);
	assert_int_equal(a.verbs->destroy_ah(ah), 0);
	pair_close(&a, &b);
}

static void a_port_may_come_and_go(void **state)
{
	struct pair_card nobody = {.gid.raw = {0xfe, 0x80, [15] = 1}};
	struct pair_end a, b;
	struct ibv_ah *ah, *to_nobody;
	struct pair_wr w;

	(void)state;
	ud_open(&a, &on_ethernet);
	ud_open(&b, &on_ethernet);
	to_nobody = ah_to(&a, &nobody);
	ah = ah_to(&a, &b.card);
	ud_wr(&w, &a, to_nobody, 77, 64);
	send_now(&a, &w);
	ud_wr(&w, &a, ah, b.qp->qp_num, 64);
	assert_int_equal(soft_fault(b.context, "port_down=0"), 0);
	assert_int_equal(pair_post_recv(&b, 9, 0, 200), 0);
	send_now(&a, &w);
	pair_sleep_us(5000);
	pair_expect_none(&b);
	assert_int_equal(soft_fault(b.context, "port_up=0"), 0);
	send_now(&a, &w);
	pair_expect(&b, 9, IBV_WC_SUCCESS);
	pair_end_close(&b);
	send_now(&a, &w);
	send_now(&a, &w);
	assert_int_equal(a.verbs->destroy_ah(ah), 0);
	assert_int_equal(a.verbs->destroy_ah(to_nobody), 0);
	pair_end_close(&a);
}

static void the_key_of_ones_own_is_asked_for_by_a_bit(void **state)
{
	struct pair_end a, b;
	struct ibv_ah *ah;
	struct pair_wr w;

	(void)state;
	ud_open(&a, &on_ethernet);
	ud_open(&b, &on_ethernet);
	ah = ah_to(&a, &b.card);
	assert_int_equal(pair_post_recv(&b, 9, 0, 200), 0);
	ud_wr(&w, &a, ah, b.qp->qp_num, 64);
	w.wr.wr.ud.remote_qkey = 0x80000000;
	send_now(&a, &w);
	pair_expect(&b, 9, IBV_WC_SUCCESS);
	assert_int_equal(a.verbs->destroy_ah(ah), 0);
	pair_close(&a, &b);
}

static void wrong_memory_is_told_to_whose_it_is(void **state)
{
	struct pair_end a, b;
	struct ibv_ah *ah;
	struct pair_wr w;

	(void)state;
	ud_open(&a, &on_ethernet);
	ud_open(&b, &on_ethernet);
	ah = ah_to(&a, &b.card);
	b.mr->lkey++;
	assert_int_equal(pair_post_recv(&b, 9, 0, 200), 0);
	assert_int_equal(pair_post_recv(&b, 10, 0, 200), 0);
	b.mr->lkey--;
	ud_wr(&w, &a, ah, b.qp->qp_num, 64);
	send_now(&a, &w);
	pair_expect(&b, 9, IBV_WC_LOC_PROT_ERR);
	pair_expect(&b, 10, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(pair_state(&b), IBV_QPS_ERR);
	w.sge.lkey++;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(pair_state(&a), IBV_QPS_SQE);
	w.wr.opcode = IBV_WR_RDMA_WRITE;
	assert_int_equal(pair_post(&a, &w), EINVAL);
	w.wr.opcode = IBV_WR_SEND;
	w.wr.wr.ud.ah = NULL;
	assert_int_equal(pair_post(&a, &w), EINVAL);
	assert_int_equal(a.verbs->destroy_ah(ah), 0);
	pair_close(&a, &b);
}

static void receives_may_be_shared(void **state)
{
	struct pair_end a, b;
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct pair_wr w;
	uint64_t id;

	(void)state;
	ud_open(&a, &on_ethernet);
	pair_end_open(&b, &on_ethernet);
	srq = more_srq(&b, 8, 1);
	more_change(&b, IBV_QPT_UD, srq);
	more_start_ud(&b);
	ah = ah_to(&a, &b.card);
	for (id = 0; id < 100; id++) {
		assert_int_equal(more_post_srq(&b, srq, id, 0, 200), 0);
		ud_wr(&w, &a, ah, b.qp->qp_num, 64);
		/* Too long now and then: what was taken is not lost. */
		w.sge.length = id % 7 ? 64 : 161;
		send_now(&a, &w);
		if (id % 7 == 0) {
			w.sge.length = 160;
			send_now(&a, &w);
		}
		pair_expect(&b, id, IBV_WC_SUCCESS);
	}
	for (id = 0; id < 8; id++)
		assert_int_equal(more_post_srq(&b, srq, id, 0, 200), 0);
	assert_int_equal(pair_to(&b, IBV_QPS_RESET), 0);
	assert_int_equal(b.verbs->destroy_qp(b.qp), 0);
	b.qp = NULL;
	assert_int_equal(soft_destroy_srq(srq), 0);
	assert_int_equal(a.verbs->destroy_ah(ah), 0);
	pair_close(&a, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_arrives_with_what_is_told_of_its_sender),
		cmocka_unit_test(a_port_with_a_lid_may_route_by_gid),
		cmocka_unit_test(pieces_are_gathered_and_scattered),
		cmocka_unit_test(what_finds_no_taker_is_lost),
		cmocka_unit_test(a_port_may_come_and_go),
		cmocka_unit_test(the_key_of_ones_own_is_asked_for_by_a_bit),
		cmocka_unit_test(wrong_memory_is_told_to_whose_it_is),
		cmocka_unit_test(receives_may_be_shared),
	};

	alarm(60);
	setenv("WREATH_SOFT", "roce:1,ib:1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
