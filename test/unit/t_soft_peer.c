/* SPDX-License-Identifier: MIT */
/*
 * Goal: between processes everything is as within one; a process that dies
 * is silence to its peers and leaves nothing; a forked child is kept out.
 * Method: pairs across fork(), SIGKILL at any time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>

#include "soft_pair.h"

static struct pair_args args;

/* The child of most tests: puts a pattern, waits, and checks nothing. */
static void passive(struct pair_end *b, int socket)
{
	int i;

	memset(b->buf, 'b', PAIR_BYTES);
	for (i = 0; i < 32; i++)
		assert_int_equal(pair_post_recv(b, (uint64_t)i, 8192, 4096), 0);
	pair_meet(socket);
	pair_meet(socket);
	if (args.plain_memory)
		assert_int_equal(b->buf[0], 'a');
	pair_end_close(b);
}

static void every_operation(struct pair_end *a)
{
	struct pair_wr w;

	memset(a->buf, 'a', 40000);
	pair_wr_init(&w, a, IBV_WR_RDMA_WRITE, 0, 0, 40000);
	assert_int_equal(pair_post(a, &w), 0);
	pair_expect(a, 0, IBV_WC_SUCCESS);
	pair_wr_init(&w, a, IBV_WR_SEND, 0, 0, 4096);
	assert_int_equal(pair_post(a, &w), 0);
	pair_expect(a, 0, IBV_WC_SUCCESS);
	pair_wr_init(&w, a, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 16);
	w.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(pair_post(a, &w), 0);
	pair_expect(a, 0, IBV_WC_SUCCESS);
	memset(a->buf, 0, PAIR_BYTES);
	pair_wr_init(&w, a, IBV_WR_RDMA_READ, 1, 0, 40001);
	assert_int_equal(pair_post(a, &w), 0);
	pair_expect(a, 0, IBV_WC_SUCCESS);
	assert_int_equal(a->buf[0], 0);
	assert_int_equal(a->buf[1], 'a');
	assert_int_equal(a->buf[40000], 'a');
	assert_int_equal(a->buf[40001], 'b');
}

static void operate(const struct pair_args *with)
{
	struct pair_end a;
	int socket;
	pid_t pid;

	args = *with;
	pid = pair_fork(&a, &socket, &args, passive);
	pair_meet(socket);
	every_operation(&a);
	pair_meet(socket);
	pair_end_close(&a);
	pair_reap(pid);
}

static void all_operations_work_between_processes(void **state)
{
	struct pair_args with = {.rnr_retry = 7};

	(void)state;
	operate(&with);
	with.device = 1;
	operate(&with);
}

static void private_memory_is_reached_too(void **state)
{
	struct pair_args with = {.rnr_retry = 7, .plain_memory = true};

	(void)state;
	operate(&with);
	/* And where the system forbids that. */
	setenv("WREATH_SOFT_FAULTS", "bounce=always", 1);
	operate(&with);
	unsetenv("WREATH_SOFT_FAULTS");
}

static void refused(struct pair_end *b, int socket)
{
	struct ibv_async_event event;

	pair_meet(socket);
	assert_int_equal(b->verbs->get_async_event(b->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	b->verbs->ack_async_event(&event);
	while (pair_state(b) != IBV_QPS_ERR)
		pair_sleep_us(1000);
	pair_meet(socket);
	pair_end_close(b);
}

static void wrong_key_fails_both_processes(void **state)
{
	struct pair_end a;
	struct pair_wr w;
	int socket;
	pid_t pid;

	(void)state;
	args = (struct pair_args){0};
	pid = pair_fork(&a, &socket, &args, refused);
	pair_meet(socket);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	w.wr.wr.rdma.rkey ^= 5;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_REM_ACCESS_ERR);
	pair_meet(socket);
	pair_end_close(&a);
	pair_reap(pid);
}

/* Writes to the parent until it is killed. */
static void busy(struct pair_end *b, int socket)
{
	struct pair_wr w;
	struct ibv_wc wc[16];

	pair_meet(socket);
	pair_wr_init(&w, b, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 1000);
	for (;;) {
		pair_post(b, &w);
		ibv_poll_cq(b->cq, 16, wc);
	}
}

static int descriptors(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void killed_peer_is_silent_and_leaves_nothing(void **state)
{
	struct pair_end a;
	struct pair_wr w;
	struct ibv_wc wc;
	int socket, i, round, n, n_fds = 0;
	pid_t pid;

	(void)state;
	args = (struct pair_args){.rnr_retry = 7, .timeout = 12,
				  .retry_cnt = 1};
	for (round = 0; round < 10; round++) {
		pid = pair_fork(&a, &socket, &args, busy);
		for (i = 0; i < 64; i++)
			pair_post_recv(&a, 100, 0, 0);
		pair_meet(socket);
		pair_sleep_us(round * 700);
		kill(pid, SIGKILL);
		waitpid(pid, &i, 0);
		/* All that it has completed is whole. */
		while ((n = ibv_poll_cq(a.cq, 1, &wc)) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.byte_len, 1000);
		}
		assert_int_equal(n, 0);
		/* Its memory may still be there; the reason comes in time. */
		pair_wr_init(&w, &a, IBV_WR_SEND, 0, 0, 8);
		assert_int_equal(pair_post(&a, &w), 0);
		pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
		w.wr.wr_id = 1;
		assert_int_equal(pair_post(&a, &w), 0);
		for (i = 0; i < 2;) {
			/* Among the receives, which are flushed too. */
			pair_wait(&a, &wc);
			assert_int_equal(wc.status,
					 wc.wr_id ? IBV_WC_WR_FLUSH_ERR
						  : IBV_WC_RETRY_EXC_ERR);
			if (wc.wr_id != 100)
				assert_int_equal(wc.wr_id, i++);
		}
		pair_end_close(&a);
		close(socket);
		if (round == 1)
			n_fds = descriptors();
	}
	assert_int_equal(descriptors(), n_fds);
}

static void killed_peer_wakes_who_waits_for_an_event(void **state)
{
	struct pair_end a;
	struct pair_wr w;
	struct pollfd p;
	int socket, status;
	pid_t pid;

	(void)state;
	args = (struct pair_args){.rnr_retry = 7, .timeout = 12,
				  .retry_cnt = 1, .with_channel = true};
	pid = pair_fork(&a, &socket, &args, busy);
	pair_meet(socket);
	pair_wr_init(&w, &a, IBV_WR_SEND, 0, 0, 8);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_int_equal(pair_post(&a, &w), 0);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	p = (struct pollfd){.fd = a.channel->fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 5000), 1);
	pair_expect(&a, 0, IBV_WC_RETRY_EXC_ERR);
	pair_end_close(&a);
	close(socket);
}

/* Takes memory away from a peer that was killed while it wrote there. */
static void deregistration_does_not_wait_for_the_dead(void **state)
{
	struct pair_end a;
	struct ibv_mr *mr;
	uint64_t start;
	int socket, status;
	pid_t pid;

	(void)state;
	args = (struct pair_args){.rnr_retry = 7};
	pid = pair_fork(&a, &socket, &args, busy);
	mr = a.verbs->reg_mr(a.pd, a.buf, 4096, PAIR_ACCESS);
	pair_meet(socket);
	pair_sleep_us(2000);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	start = base_now_ns();
	assert_int_equal(a.verbs->dereg_mr(mr), 0);
	assert_true(base_now_ns() - start < 3000000000u);
	pair_end_close(&a);
	close(socket);
}

/* Contexts of the child's own are as good as ever. */
static void work_alone(void)
{
	/*
	 * The thread sanitizer has no threads after such a fork, and the
	 * address sanitizer's allocator may be locked for ever: by a thread of
	 * the parent that the child does not have.
	 */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
	struct pair_end a, b;
	struct pair_wr w;

	pair_open(&a, &b, &args);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	pair_close(&a, &b);
#endif
}

static void forked_child_is_kept_out(void **state)
{
	struct pair_end a, b;
	struct ibv_device_attr attr;
	struct pair_wr w;
	struct ibv_wc wc;
	pid_t pid;

	(void)state;
	args = (struct pair_args){0};
	pair_open(&a, &b, &args);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	pid = fork();
	if (!pid) {
		assert_int_equal(pair_post(&a, &w), EIO);
		assert_int_equal(pair_post_recv(&a, 0, 0, 0), EIO);
		assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), -EIO);
		assert_int_equal(a.verbs->query_device(a.context, &attr), EIO);
		assert_int_equal(pair_to(&a, IBV_QPS_RESET), EIO);
		assert_null(a.verbs->reg_mr(a.pd, a.buf, 64, 0));
		assert_int_equal(a.verbs->dereg_mr(a.mr), EIO);
		assert_int_equal(a.verbs->destroy_qp(a.qp), EIO);
		assert_int_equal(a.verbs->close_device(a.context), EIO);
		work_alone();
		_exit(0);
	}
	pair_reap(pid);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	pair_close(&a, &b);
}

/* Its own child outlives it and must not keep it alive for its peer. */
static void forks(struct pair_end *b, int socket)
{
	pid_t pid = fork();

	(void)b;
	if (!pid) {
		close(socket);
		sleep(5);
		_exit(0);
	}
	assert_int_equal(write(socket, &pid, sizeof(pid)), sizeof(pid));
	pair_meet(socket);
	pause();
}

static void child_of_a_dead_peer_does_not_speak_for_it(void **state)
{
	struct pair_end a;
	struct pair_wr w;
	int socket, status;
	pid_t pid, grandchild;

	(void)state;
	args = (struct pair_args){.rnr_retry = 7, .timeout = 12,
				  .retry_cnt = 1};
	pid = pair_fork(&a, &socket, &args, forks);
	assert_int_equal(read(socket, &grandchild, sizeof(grandchild)),
			 sizeof(grandchild));
	pair_meet(socket);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	pair_sleep_us(20000);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_RETRY_EXC_ERR);
	kill(grandchild, SIGKILL);
	pair_end_close(&a);
	close(socket);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_operations_work_between_processes),
		cmocka_unit_test(private_memory_is_reached_too),
		cmocka_unit_test(wrong_key_fails_both_processes),
		cmocka_unit_test(killed_peer_is_silent_and_leaves_nothing),
		cmocka_unit_test(killed_peer_wakes_who_waits_for_an_event),
		cmocka_unit_test(deregistration_does_not_wait_for_the_dead),
		cmocka_unit_test(forked_child_is_kept_out),
		cmocka_unit_test(child_of_a_dead_peer_does_not_speak_for_it),
	};

	setenv("WREATH_SOFT", "roce:1,ib:1", 1);
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
