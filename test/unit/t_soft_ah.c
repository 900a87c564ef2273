/* SPDX-License-Identifier: MIT */
/*
 * Goal: address handles are made of what may be an address, counted and given
 * back; many processes send to one queue pair, and one that is killed harms
 * none.  Method: each attribute wrong once; processes that number what they
 * send, one of which is killed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>

#include "soft_more.h"

#define N_SENDERS 3
#define GRH 40u

static void refuse(struct pair_end *end, struct ibv_ah_attr attr)
{
	errno = 0;
	assert_null(end->verbs->create_ah(end->pd, &attr));
	assert_int_equal(errno, EINVAL);
}

static void what_is_no_address_is_refused(void **state)
{
	struct pair_args ethernet = {0}, infiniband = {.device = 1};
	struct ibv_ah_attr attr;
	struct pair_end end;

	(void)state;
	pair_end_open(&end, &ethernet);
	attr = more_address(&end.card);
	attr.is_global = 0;
	refuse(&end, attr);
	attr = more_address(&end.card);
	attr.port_num = 2;
	refuse(&end, attr);
	attr = more_address(&end.card);
	attr.grh.sgid_index = 1;
	refuse(&end, attr);
	attr = more_address(&end.card);
	attr.grh.hop_limit = 0;
	refuse(&end, attr);
	attr = more_address(&end.card);
	memset(&attr.grh.dgid, 0, sizeof(attr.grh.dgid));
	refuse(&end, attr);
	pair_end_close(&end);
	pair_end_open(&end, &infiniband);
	attr = more_address(&end.card);
	attr.dlid = 0;
	refuse(&end, attr);
	attr.dlid = 0xc000;
	refuse(&end, attr);
	pair_end_close(&end);
}

static void handles_are_of_a_domain_and_have_a_limit(void **state)
{
	struct pair_args args = {0};
	struct ibv_device_attr device;
	struct ibv_ah_attr attr;
	struct pair_end end;
	struct ibv_ah **ahs;
	int i;

	(void)state;
	pair_end_open(&end, &args);
	assert_int_equal(end.verbs->query_device(end.context, &device), 0);
	ahs = calloc((size_t)device.max_ah, sizeof(*ahs));
	attr = more_address(&end.card);
	for (i = 0; i < device.max_ah; i++) {
		ahs[i] = end.verbs->create_ah(end.pd, &attr);
		assert_non_null(ahs[i]);
	}
	assert_null(end.verbs->create_ah(end.pd, &attr));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(end.verbs->dealloc_pd(end.pd), EBUSY);
	while (i--)
		assert_int_equal(end.verbs->destroy_ah(ahs[i]), 0);
	free(ahs);
	pair_end_close(&end);
}

static void a_datagram_queue_pair_has_its_own_way_to_its_states(void **state)
{
	static const struct more_step steps[] = {
		{IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
		 0},
		{IBV_QPS_INIT, 0,
		 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
		{IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
		{IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
		{IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
		{IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
		{IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
		{IBV_QPS_ERR, 0, 0},
		{IBV_QPS_RESET, 0, 0},
	};
	struct pair_args args = {0};
	struct pair_end end;

	(void)state;
	pair_end_open(&end, &args);
	more_change(&end, IBV_QPT_UD, NULL);
	more_take_steps(&end, steps, base_countof(steps));
	pair_end_close(&end);
}

/* Datagrams numbered from 0 on, the sender's own number before it. */
static void send_all(struct pair_end *end, struct ibv_ah *ah, uint32_t qpn,
		     uint32_t self, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		struct pair_wr w;

		memcpy(end->buf, &self, sizeof(self));
		memcpy(end->buf + 4, &i, sizeof(i));
		pair_wr_init(&w, end, IBV_WR_SEND, 0, 0, 1024);
		w.wr.wr.ud.ah = ah;
		w.wr.wr.ud.remote_qpn = qpn;
		w.wr.wr.ud.remote_qkey = MORE_QKEY;
		assert_int_equal(pair_post(end, &w), 0);
		pair_expect(end, 0, IBV_WC_SUCCESS);
	}
}

static pid_t start_sender(int *socket, uint32_t self, uint32_t n)
{
	const struct pair_args args = {0};
	struct ibv_ah_attr attr;
	struct pair_card card;
	struct pair_end end;
	struct ibv_ah *ah;
	int sockets[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	pid = fork();
	assert_true(pid >= 0);
	close(sockets[pid ? 1 : 0]);
	*socket = sockets[pid ? 0 : 1];
	if (pid)
		return pid;
	/* An alarm is not inherited. */
	alarm(60);
	pair_end_open(&end, &args);
	more_change(&end, IBV_QPT_UD, NULL);
	more_start_ud(&end);
	assert_int_equal(read(*socket, &card, sizeof(card)), sizeof(card));
	attr = more_address(&card);
	ah = end.verbs->create_ah(end.pd, &attr);
	assert_non_null(ah);
	send_all(&end, ah, card.qpn, self, n);
	_exit(0);
}

static void post_all(struct pair_end *end, uint64_t wr_id)
{
	assert_int_equal(pair_post_recv(end, wr_id, wr_id * 1100, 1024 + GRH),
			 0);
}

static void many_send_to_one_and_one_is_killed(void **state)
{
	const struct pair_args args = {0};
	const uint32_t n = 1000;
	uint32_t next[N_SENDERS] = {0};
	int sockets[N_SENDERS], status, i;
	pid_t pids[N_SENDERS];
	struct pair_end end;
	uint64_t id, start;

	(void)state;
	for (i = 0; i < N_SENDERS; i++)
		pids[i] = start_sender(&sockets[i], (uint32_t)i,
				       i ? n : 100000000);
	pair_end_open(&end, &args);
	more_change(&end, IBV_QPT_UD, NULL);
	more_start_ud(&end);
	for (id = 0; id < 50; id++)
		post_all(&end, id);
	for (i = 0; i < N_SENDERS; i++)
		assert_int_equal(write(sockets[i], &end.card,
				       sizeof(end.card)), sizeof(end.card));
	/* Until nothing has come for a while. */
	for (start = base_now_ns();
	     pids[0] || base_now_ns() - start < 300000000;) {
		uint32_t self, number;
		struct ibv_wc wc;

		if (!ibv_poll_cq(end.cq, 1, &wc)) {
			assert_true(base_now_ns() - start < 20000000000u);
			continue;
		}
		start = base_now_ns();
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		memcpy(&self, end.buf + wc.wr_id * 1100 + GRH, 4);
		memcpy(&number, end.buf + wc.wr_id * 1100 + GRH + 4, 4);
		assert_true(self < N_SENDERS);
		/* Some may be lost, none comes twice or out of turn. */
		assert_true(number >= next[self]);
		next[self] = number + 1;
		post_all(&end, wc.wr_id);
		if (!self && pids[0] && number > 50) {
			kill(pids[0], SIGKILL);
			assert_int_equal(waitpid(pids[0], &status, 0),
					 pids[0]);
			pids[0] = 0;
		}
	}
	for (i = 1; i < N_SENDERS; i++) {
		pair_reap(pids[i]);
		assert_true(next[i] > 0);
	}
	pair_end_close(&end);
	for (i = 0; i < N_SENDERS; i++)
		close(sockets[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_send_to_one_and_one_is_killed),
		cmocka_unit_test(what_is_no_address_is_refused),
		cmocka_unit_test(
			a_datagram_queue_pair_has_its_own_way_to_its_states),
		cmocka_unit_test(handles_are_of_a_domain_and_have_a_limit),
	};

	alarm(60);
	setenv("WREATH_SOFT", "roce:1,ib:1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
