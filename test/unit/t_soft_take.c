/* SPDX-License-Identifier: MIT */
/*
 * Goal: processes take receives of one shared queue at the same time, each
 * once, and one that is killed takes none with it.  Method: three processes
 * send to one queue, the first is killed at several moments; every receive
 * posted is accounted for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>

#include "soft/qp.h"
#include "soft_more.h"

struct owner {
	struct pair_end end;
	struct ibv_srq *srq;
	struct pair_args args;
};

#define N_SENDERS 3
#define N_RECVS 16u

static void child_sends(struct pair_end *end, int socket, uint32_t n)
{
	uint32_t i;
	char go;

	assert_int_equal(read(socket, &go, 1), 1);
	for (i = 0; i < n; i++) {
		struct pair_wr w;

		pair_wr_init(&w, end, IBV_WR_SEND_WITH_IMM, 0, 0, 4096);
		w.wr.imm_data = i;
		assert_int_equal(pair_post(end, &w), 0);
		pair_expect(end, 0, IBV_WC_SUCCESS);
	}
	assert_int_equal(read(socket, &go, 1), 1);
}

/* A child with an end of its own, before this process has opened a device. */
static pid_t start_sender(int *socket, const struct pair_args *args,
			  const char *fault, uint32_t n)
{
	struct pair_card other;
	struct pair_end end;
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
	pair_end_open(&end, args);
	if (fault)
		assert_int_equal(soft_fault(end.context, fault), 0);
	assert_int_equal(write(*socket, &end.card, sizeof(end.card)),
			 sizeof(end.card));
	assert_int_equal(read(*socket, &other, sizeof(other)), sizeof(other));
	pair_connect(&end, &other, args);
	child_sends(&end, *socket, n);
	_exit(0);
}

/* A receive of many pieces: moving one there takes many steps. */
static void post_pieces(struct owner *r, uint64_t wr_id)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id}, *bad;
	struct ibv_sge sges[16];
	int i;

	for (i = 0; i < 16; i++)
		sges[i] = (struct ibv_sge){r->end.card.addr +
						   wr_id % 15 * 4096 +
						   (uint64_t)i * 256,
					   256, r->end.mr->lkey};
	wr.sg_list = sges;
	wr.num_sge = 16;
	assert_int_equal(ibv_post_srq_recv(r->srq, &wr, &bad), 0);
}

/* What came of each sender. */
struct tally {
	struct pair_end to[N_SENDERS];
	uint32_t n[N_SENDERS];
};

/* One completion, if there is one; its receive is posted anew. */
static bool collect(struct owner *r, struct tally *t)
{
	struct ibv_wc wc;
	int i;

	if (!ibv_poll_cq(r->end.cq, 1, &wc))
		return false;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	for (i = 0; i < N_SENDERS && t->to[i].qp->qp_num != wc.qp_num; i++)
		;
	assert_true(i < N_SENDERS);
	/* In order, each once. */
	assert_int_equal(wc.imm_data, t->n[i]++);
	post_pieces(r, wc.wr_id);
	return true;
}

static void meet_sender(struct owner *r, struct pair_end *to, int socket)
{
	*to = r->end;
	to->qp = more_qp(&r->end, IBV_QPT_RC, r->srq);
	to->card.qpn = to->qp->qp_num;
	assert_int_equal(read(socket, &to->other, sizeof(to->other)),
			 sizeof(to->other));
	pair_connect(to, &to->other, &r->args);
	assert_int_equal(write(socket, &to->card, sizeof(to->card)),
			 sizeof(to->card));
}

/* The first sender is killed in the middle of it, @us after the start. */
static uint32_t check_death(long us, const char *fault)
{
	const uint32_t n = fault ? 50 : 300;
	struct owner r = {.args = {.rnr_retry = 7, .rnr_timer = 1,
				 .timeout = 20, .plain_memory = fault != NULL}};
	int sockets[N_SENDERS], status, i;
	pid_t pids[N_SENDERS];
	struct tally t = {0};
	uint64_t id, end_ns;

	for (i = 0; i < N_SENDERS; i++)
		pids[i] = start_sender(&sockets[i], &r.args, fault,
				       i ? n : 1000000);
	pair_end_open(&r.end, &r.args);
	r.srq = more_srq(&r.end, N_RECVS, 16);
	for (i = 0; i < N_SENDERS; i++)
		meet_sender(&r, &t.to[i], sockets[i]);
	for (id = 0; id < N_RECVS; id++)
		post_pieces(&r, id);
	for (i = 0; i < N_SENDERS; i++)
		assert_int_equal(write(sockets[i], "", 1), 1);
	for (end_ns = base_now_ns() + (uint64_t)us * 1000;
	     base_now_ns() < end_ns;)
		collect(&r, &t);
	kill(pids[0], SIGKILL);
	end_ns = base_now_ns() + 20000000000u;
	while (t.n[1] < n || t.n[2] < n) {
		assert_true(base_now_ns() < end_ns);
		if (!collect(&r, &t))
			sched_yield();
	}
	assert_int_equal(waitpid(pids[0], &status, 0), pids[0]);
	for (i = 1; i < N_SENDERS; i++) {
		assert_int_equal(write(sockets[i], "", 1), 1);
		pair_reap(pids[i]);
	}
	while (collect(&r, &t))
		;
	/* At most one receive went with the dead, and comes back with the
	 * queue pair that it was taken for. */
	assert_int_equal(r.end.verbs->destroy_qp(t.to[0].qp), 0);
	while (!more_post_srq(&r.end, r.srq, 0, 0, 8))
		id++;
	assert_true(id == N_RECVS || id == N_RECVS + 1);
	for (i = 1; i < N_SENDERS; i++)
		assert_int_equal(r.end.verbs->destroy_qp(t.to[i].qp), 0);
	assert_int_equal(soft_destroy_srq(r.srq), 0);
	pair_end_close(&r.end);
	for (i = 0; i < N_SENDERS; i++)
		close(sockets[i]);
	return (uint32_t)id - N_RECVS;
}

/* Where processes start slowly, one moment says as much as many. */
static long step_us(void)
{
	const char *under = getenv("TEST_UNDER");

	return under && *under ? 10000 : 900;
}

static void a_sender_that_is_killed_takes_nothing_with_it(void **state)
{
	long us;

	(void)state;
	for (us = 500; us < 8000; us += step_us())
		check_death(us, NULL);
}

static void a_receive_that_goes_with_the_dead_comes_back(void **state)
{
	uint32_t n_lost = 0;
	long us;

	(void)state;
	for (us = 500; us < 5000; us += step_us())
		n_lost += check_death(us, "bounce=always");
	print_message("%u were in the middle of a receive\n", n_lost);
}

/* The taker is another process: it has to tell the owner. */
static void the_owner_is_told_when_others_run_it_low(void **state)
{
	struct owner r = {.args = {.rnr_retry = 7, .rnr_timer = 1}};
	struct ibv_srq_attr attr = {.srq_limit = 3};
	struct ibv_async_event event;
	struct tally t = {0};
	int socket;
	pid_t pid;
	uint64_t id;

	(void)state;
	pid = start_sender(&socket, &r.args, NULL, 2);
	pair_end_open(&r.end, &r.args);
	r.srq = more_srq(&r.end, N_RECVS, 16);
	meet_sender(&r, &t.to[0], socket);
	for (id = 0; id < 4; id++)
		post_pieces(&r, id);
	assert_int_equal(soft_modify_srq(r.srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_false(more_has_event(&r.end));
	assert_int_equal(write(socket, "", 1), 1);
	more_event(&r.end, &event);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, r.srq);
	r.end.verbs->ack_async_event(&event);
	assert_int_equal(write(socket, "", 1), 1);
	pair_reap(pid);
	assert_int_equal(r.end.verbs->destroy_qp(t.to[0].qp), 0);
	assert_int_equal(soft_destroy_srq(r.srq), 0);
	pair_end_close(&r.end);
	close(socket);
}

/* What a taker leaves that dies right after its exchange. */
static void a_head_that_was_left_behind_is_moved_on(void **state)
{
	struct owner r = {.args = {.rnr_retry = 0}};
	struct pair_end dead, a;
	struct soft_srq *srq;
	uint64_t id, word;
	uint32_t slot;
	struct pair_wr w;

	(void)state;
	pair_end_open(&a, &r.args);
	pair_end_open(&r.end, &r.args);
	r.srq = more_srq(&r.end, 4, 1);
	srq = (struct soft_srq *)(void *)r.srq;
	dead = r.end;
	dead.qp = more_qp(&dead, IBV_QPT_RC, r.srq);
	more_change(&r.end, IBV_QPT_RC, r.srq);
	pair_connect(&a, &r.end.card, &r.args);
	pair_connect(&r.end, &a.card, &r.args);
	for (id = 0; id < 4; id++)
		assert_int_equal(more_post_srq(&r.end, r.srq, id, 0, 64), 0);
	for (id = 0; id < 40; id++) {
		/* The head's slot is taken, the head stays. */
		word = atomic_load(&srq->order[srq->shared->head & 3]);
		slot = (uint32_t)word;
		word &= ~(uint64_t)UINT32_MAX;
		assert_true(atomic_compare_exchange_strong(
			&srq->words[slot], &word, word | dead.qp->qp_num));
		if (id & 1) {
			pair_wr_init(&w, &a, IBV_WR_SEND, 0, 0, 8);
			assert_int_equal(pair_post(&a, &w), 0);
			pair_expect(&a, 0, IBV_WC_SUCCESS);
			pair_wait(&r.end, &(struct ibv_wc){0});
			assert_int_equal(more_post_srq(&r.end, r.srq, 0, 0,
						       64), 0);
		}
		/* Its queue pair goes, and the slot is posted again. */
		assert_int_equal(r.end.verbs->destroy_qp(dead.qp), 0);
		assert_int_equal(more_post_srq(&r.end, r.srq, 0, 0, 64), 0);
		assert_int_equal(more_post_srq(&r.end, r.srq, 0, 0, 64),
				 ENOMEM);
		dead.qp = more_qp(&dead, IBV_QPT_RC, r.srq);
	}
	assert_int_equal(r.end.verbs->destroy_qp(dead.qp), 0);
	assert_int_equal(r.end.verbs->destroy_qp(r.end.qp), 0);
	r.end.qp = NULL;
	assert_int_equal(soft_destroy_srq(r.srq), 0);
	pair_end_close(&r.end);
	pair_end_close(&a);
}

static void the_owner_survives_rubbish_in_its_words(void **state)
{
	struct owner r = {.args = {0}};
	struct soft_segment *seg;
	_Atomic uint32_t *words;
	unsigned int seed = 11;
	struct ibv_wc wc;
	uint32_t i, n;

	(void)state;
	pair_end_open(&r.end, &r.args);
	seg = soft_context_of(r.end.context)->seg;
	words = (_Atomic uint32_t *)(void *)seg->rings;
	r.srq = more_srq(&r.end, 16, 2);
	for (n = 0; n < 300; n++) {
		const uint32_t range = n % 3 ? 32 : 1u << 31;

		more_change(&r.end, n & 1 ? IBV_QPT_UD : IBV_QPT_RC, r.srq);
		for (i = 0; i < 8192; i++)
			atomic_store(&words[i],
				     (uint32_t)rand_r(&seed) % range);
		atomic_store(&seg->srqs[0].head, (uint32_t)rand_r(&seed));
		atomic_store(&seg->srqs[0].tail, (uint32_t)rand_r(&seed));
		for (i = 0; i < 4; i++) {
			ibv_poll_cq(r.end.cq, 1, &wc);
			more_post_srq(&r.end, r.srq, 0, 0, 8);
		}
		assert_int_equal(pair_to(&r.end, IBV_QPS_ERR), 0);
		ibv_poll_cq(r.end.cq, 1, &wc);
	}
	assert_int_equal(r.end.verbs->destroy_qp(r.end.qp), 0);
	r.end.qp = NULL;
	assert_int_equal(soft_destroy_srq(r.srq), 0);
	pair_end_close(&r.end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sender_that_is_killed_takes_nothing_with_it),
		cmocka_unit_test(a_receive_that_goes_with_the_dead_comes_back),
		cmocka_unit_test(the_owner_is_told_when_others_run_it_low),
		cmocka_unit_test(a_head_that_was_left_behind_is_moved_on),
		cmocka_unit_test(the_owner_survives_rubbish_in_its_words),
	};

	alarm(100);
	setenv("WREATH_SOFT", "roce:1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
