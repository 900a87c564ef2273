/* SPDX-License-Identifier: MIT */
/*
 * Goal: any verb from any thread: nothing lost, nothing twice.  Method:
 * threads that post to one queue pair, that poll one queue, that register,
 * connect and destroy, all at the same time.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>

#include "soft_pair.h"

#define POSTS 2000

static struct pair_end a, b;
static _Atomic int n_sent, n_received, n_done;
static _Atomic bool must_stop;

static void *post(void *arg)
{
	struct pair_wr w;
	struct ibv_send_wr *bad;
	int i;

	(void)arg;
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 64);
	for (i = 0; i < POSTS;) {
		w.wr.wr_id = (uint64_t)i;
		if (ibv_post_send(a.qp, &w.wr, &bad))
			sched_yield(); /* the queue is full */
		else
			i++;
	}
	return NULL;
}

static void *post_recv(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < POSTS;) {
		if (pair_post_recv(&b, 1, 0, 0))
			sched_yield();
		else
			i++;
	}
	return NULL;
}

static void *poll_queue(void *arg)
{
	struct pair_end *end = arg;
	_Atomic int *count = end == &a ? &n_sent : &n_received;
	struct ibv_wc wc[5];
	int i, n;

	while (!atomic_load(&must_stop)) {
		n = ibv_poll_cq(end->cq, 5, wc);
		assert_true(n >= 0);
		for (i = 0; i < n; i++)
			assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		atomic_fetch_add(count, n);
		if (!n)
			sched_yield();
	}
	return NULL;
}

static void queues_may_be_shared_by_threads(void **state)
{
	struct pair_args args = {.rnr_retry = 7, .n_cqe = 1024};
	pthread_t posters[2], receivers[2], pollers[4];
	int i;

	(void)state;
	pair_open(&a, &b, &args);
	for (i = 0; i < 2; i++) {
		pthread_create(&posters[i], NULL, post, NULL);
		pthread_create(&receivers[i], NULL, post_recv, NULL);
		pthread_create(&pollers[i], NULL, poll_queue, &a);
		pthread_create(&pollers[2 + i], NULL, poll_queue, &b);
	}
	for (i = 0; i < 2; i++) {
		pthread_join(posters[i], NULL);
		pthread_join(receivers[i], NULL);
	}
	for (i = 0; i < 5000 && (atomic_load(&n_sent) < 2 * POSTS ||
				 atomic_load(&n_received) < 2 * POSTS); i++)
		pair_sleep_us(1000);
	atomic_store(&must_stop, true);
	for (i = 0; i < 4; i++)
		pthread_join(pollers[i], NULL);
	assert_int_equal(atomic_load(&n_sent), 2 * POSTS);
	assert_int_equal(atomic_load(&n_received), 2 * POSTS);
	pair_close(&a, &b);
}

/* Connections come and go beside each other, on one CQ of a shared context. */
static void *come_and_go(void *arg)
{
	struct pair_args args = {0};
	struct pair_end mine = a, other = b;
	struct ibv_mr *mr;
	struct pair_wr w;
	int i;

	(void)arg;
	for (i = 0; i < 30; i++) {
		pair_qp(&mine, &args);
		pair_qp(&other, &args);
		mine.card.qpn = mine.qp->qp_num;
		other.card.qpn = other.qp->qp_num;
		pair_connect(&mine, &other.card, &args);
		pair_connect(&other, &mine.card, &args);
		mr = other.verbs->reg_mr(other.pd, other.buf, 4096,
					 PAIR_ACCESS);
		pair_wr_init(&w, &mine, IBV_WR_RDMA_WRITE, 0, 0, 64);
		w.wr.wr.rdma.rkey = mr->rkey;
		w.wr.send_flags = 0;
		assert_int_equal(pair_post(&mine, &w), 0);
		assert_int_equal(other.verbs->dereg_mr(mr), 0);
		assert_int_equal(pair_to(&other, IBV_QPS_ERR), 0);
		assert_int_equal(mine.verbs->destroy_qp(mine.qp), 0);
		assert_int_equal(other.verbs->destroy_qp(other.qp), 0);
		atomic_fetch_add(&n_done, 1);
	}
	return NULL;
}

static void *poll_empty(void *arg)
{
	struct pair_end *end = arg;
	struct ibv_wc wc;

	while (!atomic_load(&must_stop)) {
		ibv_poll_cq(end->cq, 1, &wc);
		sched_yield();
	}
	return NULL;
}

static void objects_come_and_go_while_others_work(void **state)
{
	struct pair_args args = {0};
	pthread_t threads[3], pollers[2];
	int i;

	(void)state;
	atomic_store(&must_stop, false);
	pair_open(&a, &b, &args);
	pthread_create(&pollers[0], NULL, poll_empty, &a);
	pthread_create(&pollers[1], NULL, poll_empty, &b);
	for (i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, come_and_go, NULL);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&must_stop, true);
	for (i = 0; i < 2; i++)
		pthread_join(pollers[i], NULL);
	assert_int_equal(atomic_load(&n_done), 90);
	pair_close(&a, &b);
}

/* Both ends error each other at the same time: no lock is taken twice. */
static void *wrong_write(void *arg)
{
	struct pair_wr w;

	pair_wr_init(&w, arg, IBV_WR_RDMA_WRITE, 0, 0, 8);
	w.wr.wr.rdma.rkey ^= 1;
	pair_post(arg, &w);
	return NULL;
}

static void both_ends_may_fail_at_once(void **state)
{
	struct pair_args args = {0};
	pthread_t threads[2];
	struct ibv_wc wc;
	int i;

	(void)state;
	for (i = 0; i < 50; i++) {
		pair_open(&a, &b, &args);
		pthread_create(&threads[0], NULL, wrong_write, &a);
		pthread_create(&threads[1], NULL, wrong_write, &b);
		pthread_join(threads[0], NULL);
		pthread_join(threads[1], NULL);
		pair_wait(&a, &wc);
		assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
		pair_wait(&b, &wc);
		assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
		pair_close(&a, &b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queues_may_be_shared_by_threads),
		cmocka_unit_test(objects_come_and_go_while_others_work),
		cmocka_unit_test(both_ends_may_fail_at_once),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
