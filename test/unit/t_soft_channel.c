/* SPDX-License-Identifier: MIT */
/*
 * Goal: completion channels and asynchronous events wake who waits for them,
 * once for each arming, and hold up the destruction of what they name until
 * they are acknowledged.  Method: poll() on the descriptors.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include "soft_pair.h"

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

static void write_imm(struct pair_end *end, unsigned int flags)
{
	struct pair_wr w;

	pair_wr_init(&w, end, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 8);
	w.wr.send_flags = flags;
	assert_int_equal(pair_post(end, &w), 0);
}

static void take_event(struct pair_end *end)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(end->verbs->get_cq_event(end->channel, &cq, &context),
			 0);
	assert_ptr_equal(cq, end->cq);
	end->verbs->ack_cq_events(cq, 1);
}

static void an_arming_gives_one_event(void **state)
{
	struct pair_args args = {.with_channel = true};
	struct pair_end a, b;
	struct ibv_wc wc;
	int i;

	(void)state;
	pair_open(&a, &b, &args);
	for (i = 0; i < 8; i++)
		assert_int_equal(pair_post_recv(&b, 0, 0, 0), 0);
	/* Not armed: nothing. */
	write_imm(&a, 0);
	assert_false(is_readable(b.channel->fd, 20));
	/* Armed after the completion: nothing for that one. */
	assert_int_equal(ibv_req_notify_cq(b.cq, 0), 0);
	assert_false(is_readable(b.channel->fd, 20));
	pair_wait(&b, &wc);
	write_imm(&a, 0);
	write_imm(&a, 0);
	assert_true(is_readable(b.channel->fd, 5000));
	take_event(&b);
	assert_false(is_readable(b.channel->fd, 20));
	/* A send of ours counts too. */
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	write_imm(&a, IBV_SEND_SIGNALED);
	assert_true(is_readable(a.channel->fd, 5000));
	take_event(&a);
	pair_close(&a, &b);
}

static void solicited_arming_waits_for_what_was_solicited(void **state)
{
	struct pair_args args = {.with_channel = true};
	struct pair_end a, b;
	int i;

	(void)state;
	pair_open(&a, &b, &args);
	for (i = 0; i < 8; i++)
		assert_int_equal(pair_post_recv(&b, 0, 0, 0), 0);
	assert_int_equal(ibv_req_notify_cq(b.cq, 1), 0);
	write_imm(&a, 0);
	assert_false(is_readable(b.channel->fd, 20));
	write_imm(&a, IBV_SEND_SOLICITED);
	assert_true(is_readable(b.channel->fd, 5000));
	take_event(&b);
	/* An error counts as solicited. */
	assert_int_equal(ibv_req_notify_cq(b.cq, 1), 0);
	assert_int_equal(pair_to(&b, IBV_QPS_ERR), 0);
	assert_true(is_readable(b.channel->fd, 5000));
	take_event(&b);
	pair_close(&a, &b);
}

static void channel_may_be_made_non_blocking(void **state)
{
	struct pair_args args = {.with_channel = true};
	struct pair_end a, b;
	struct ibv_cq *cq;
	void *context;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(fcntl(b.channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(b.verbs->get_cq_event(b.channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	pair_close(&a, &b);
}

static void waiter_is_woken_when_retries_run_out(void **state)
{
	struct pair_args args = {.with_channel = true};
	struct pair_end a, b;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(pair_to(&b, IBV_QPS_RESET), 0);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	write_imm(&a, 0);
	/* Nobody polls: the device itself must notice. */
	assert_true(is_readable(a.channel->fd, 5000));
	take_event(&a);
	pair_expect(&a, 0, IBV_WC_RETRY_EXC_ERR);
	pair_close(&a, &b);
}

static void other_process(struct pair_end *b, int socket)
{
	assert_int_equal(pair_post_recv(b, 0, 0, 0), 0);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	pair_meet(socket);
	assert_true(is_readable(b->channel->fd, 5000));
	take_event(b);
	pair_expect(b, 0, IBV_WC_SUCCESS);
	pair_meet(socket);
	pair_end_close(b);
}

static void event_crosses_processes(void **state)
{
	struct pair_args args = {.with_channel = true, .rnr_retry = 7};
	struct pair_end a;
	int socket;
	pid_t pid;

	(void)state;
	pid = pair_fork(&a, &socket, &args, other_process);
	pair_meet(socket);
	write_imm(&a, 0);
	pair_meet(socket);
	pair_end_close(&a);
	pair_reap(pid);
}

static void *destroy_cq(void *arg)
{
	struct pair_end *end = arg;

	assert_int_equal(end->verbs->destroy_cq(end->cq), 0);
	return NULL;
}

static void destruction_waits_for_acknowledgement(void **state)
{
	struct pair_args args = {.with_channel = true};
	struct pair_end a, b;
	struct ibv_cq *cq;
	void *context;
	pthread_t thread;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(pair_post_recv(&b, 0, 0, 0), 0);
	assert_int_equal(ibv_req_notify_cq(b.cq, 0), 0);
	write_imm(&a, 0);
	assert_int_equal(b.verbs->get_cq_event(b.channel, &cq, &context), 0);
	assert_int_equal(b.verbs->destroy_qp(b.qp), 0);
	b.qp = NULL;
	assert_int_equal(pthread_create(&thread, NULL, destroy_cq, &b), 0);
	pair_sleep_us(20000);
	assert_int_equal(pthread_tryjoin_np(thread, NULL), EBUSY);
	b.verbs->ack_cq_events(cq, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	b.cq = b.verbs->create_cq(b.context, 16, NULL, b.channel, 0);
	pair_close(&a, &b);
}

static void event_of_a_destroyed_cq_is_not_delivered(void **state)
{
	struct pair_args args = {.with_channel = true};
	struct pair_end a, b;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(pair_post_recv(&b, 0, 0, 0), 0);
	assert_int_equal(ibv_req_notify_cq(b.cq, 0), 0);
	write_imm(&a, 0);
	assert_true(is_readable(b.channel->fd, 5000));
	assert_int_equal(b.verbs->destroy_qp(b.qp), 0);
	assert_int_equal(b.verbs->destroy_cq(b.cq), 0);
	b.qp = NULL;
	b.cq = b.verbs->create_cq(b.context, 16, NULL, b.channel, 0);
	assert_int_equal(fcntl(b.channel->fd, F_SETFL, O_NONBLOCK), 0);
	{
		struct ibv_cq *cq;
		void *context;

		assert_int_equal(b.verbs->get_cq_event(b.channel, &cq,
						       &context), -1);
	}
	pair_close(&a, &b);
}

static void async_events_come_once_and_hold_their_queue_pair(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct ibv_async_event event;

	(void)state;
	pair_open(&a, &b, &args);
	assert_false(is_readable(b.context->async_fd, 0));
	soft_qp_fail(b.qp);
	soft_qp_fail(b.qp);
	assert_true(is_readable(b.context->async_fd, 0));
	assert_int_equal(b.verbs->get_async_event(b.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_FATAL);
	assert_ptr_equal(event.element.qp, b.qp);
	assert_false(is_readable(b.context->async_fd, 0));
	b.verbs->ack_async_event(&event);
	pair_close(&a, &b);
}

static void first_message_to_a_ready_receiver_is_told(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct ibv_async_event event;
	struct pair_wr w;

	(void)state;
	pair_end_open(&a, &args);
	pair_end_open(&b, &args);
	pair_connect(&a, &b.card, &args);
	b.other = a.card;
	assert_int_equal(pair_to_init(&b, &args), 0);
	assert_int_equal(pair_to_rtr(&b, &args), 0);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_true(is_readable(b.context->async_fd, 5000));
	assert_int_equal(b.verbs->get_async_event(b.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
	b.verbs->ack_async_event(&event);
	assert_int_equal(pair_to_rts(&b, &args), 0);
	pair_close(&a, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_crosses_processes),
		cmocka_unit_test(an_arming_gives_one_event),
		cmocka_unit_test(solicited_arming_waits_for_what_was_solicited),
		cmocka_unit_test(channel_may_be_made_non_blocking),
		cmocka_unit_test(waiter_is_woken_when_retries_run_out),
		cmocka_unit_test(destruction_waits_for_acknowledgement),
		cmocka_unit_test(event_of_a_destroyed_cq_is_not_delivered),
		cmocka_unit_test(
			async_events_come_once_and_hold_their_queue_pair),
		cmocka_unit_test(first_message_to_a_ready_receiver_is_told),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
