/* SPDX-License-Identifier: MIT */
/*
 * Goal: the data path of the soft device moves the right bytes to the right
 * place, between contexts of one process and between processes, on both
 * personalities.  Method: connected pairs, patterns, and reading back.
 */
#define _GNU_SOURCE
#include <stdatomic.h>

#include "soft_pair.h"

static void fill(char *buf, size_t bytes, unsigned int seed)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		buf[i] = (char)(i * 31 + seed);
}

static void write_lands_where_it_was_aimed(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct pair_wr w;

	(void)state;
	pair_open(&a, &b, &args);
	fill(a.buf, 1000, 7);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 3, 101, 997);
	w.wr.wr_id = 5;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 5, IBV_WC_SUCCESS);
	assert_memory_equal(b.buf + 101, a.buf + 3, 997);
	assert_int_equal(b.buf[100], 0);
	assert_int_equal(b.buf[101 + 997], 0);
	pair_expect_none(&b);
	pair_close(&a, &b);
}

static void both_process(struct pair_end *b, int socket)
{
	struct ibv_wc wc;

	assert_int_equal(pair_post_recv(b, 77, 0, 0), 0);
	pair_meet(socket);
	pair_wait(b, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.imm_data, 0x12345678);
	assert_int_equal(wc.byte_len, 64);
	assert_int_equal(wc.wr_id, 77);
	assert_int_equal(b->buf[128], 'x');
	pair_meet(socket);
	pair_end_close(b);
}

static void write_with_immediate_reaches_another_process(void **state)
{
	struct pair_args args = {.rnr_retry = 7, .device = *(int *)*state};
	struct pair_end a;
	struct pair_wr w;
	int socket;
	pid_t pid;

	pid = pair_fork(&a, &socket, &args, both_process);
	memset(a.buf, 'x', 64);
	pair_meet(socket);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 128, 64);
	w.wr.imm_data = 0x12345678;
	w.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	pair_meet(socket);
	pair_end_close(&a);
	pair_reap(pid);
}

#define STREAM 20000
#define WINDOW 16

/* Each message is a line full of its number; each is answered by a count. */
static void stream_sink(struct pair_end *b, int socket)
{
	struct pair_wr w;
	struct ibv_wc wc;
	uint64_t i, j;

	for (i = 0; i < WINDOW; i++)
		assert_int_equal(pair_post_recv(b, i, 0, 0), 0);
	pair_meet(socket);
	for (i = 0; i < STREAM; i++) {
		const uint64_t *line = (const uint64_t *)(const void *)
			(b->buf + 64 * (i % WINDOW));

		do {
			pair_wait(b, &wc);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		} while (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.imm_data, (uint32_t)i);
		assert_int_equal(wc.wr_id, i % WINDOW);
		for (j = 0; j < 8; j++)
			assert_int_equal(line[j], i);
		assert_int_equal(pair_post_recv(b, i % WINDOW, 0, 0), 0);
		*(uint64_t *)(void *)(b->buf + 8192) = i + 1;
		pair_wr_init(&w, b, IBV_WR_RDMA_WRITE, 8192, 8192, 8);
		w.wr.send_flags = i % 32 ? 0 : IBV_SEND_SIGNALED;
		assert_int_equal(pair_post(b, &w), 0);
	}
	pair_meet(socket);
	pair_end_close(b);
}

static void stream_arrives_whole_and_in_order(void **state)
{
	struct pair_args args = {.rnr_retry = 7, .device = *(int *)*state};
	struct pair_end a;
	_Atomic uint64_t *credit;
	uint64_t i, line[8], j;
	struct pair_wr w;
	struct ibv_wc wc[8];
	int socket;
	pid_t pid;

	pid = pair_fork(&a, &socket, &args, stream_sink);
	credit = (_Atomic uint64_t *)(void *)(a.buf + 8192);
	pair_meet(socket);
	for (i = 0; i < STREAM; i++) {
		/* Words are never torn and never go back. */
		while (i - atomic_load(credit) >= WINDOW)
			sched_yield();
		for (j = 0; j < 8; j++)
			line[j] = i;
		pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE_WITH_IMM, 0,
			     64 * (i % WINDOW), 64);
		w.sge.addr = (uintptr_t)line;
		w.wr.imm_data = (uint32_t)i;
		w.wr.send_flags = IBV_SEND_INLINE |
				  (i % 32 ? 0 : IBV_SEND_SIGNALED);
		while (pair_post(&a, &w))
			sched_yield();
		assert_true(ibv_poll_cq(a.cq, 8, wc) >= 0);
	}
	pair_meet(socket);
	assert_int_equal(atomic_load(credit), STREAM);
	pair_end_close(&a);
	pair_reap(pid);
}

int main(void)
{
	static int first = 0, second = 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_lands_where_it_was_aimed),
		cmocka_unit_test_prestate(
			write_with_immediate_reaches_another_process, &first),
		cmocka_unit_test_prestate(
			write_with_immediate_reaches_another_process, &second),
		cmocka_unit_test_prestate(stream_arrives_whole_and_in_order,
					  &first),
		cmocka_unit_test_prestate(stream_arrives_whole_and_in_order,
					  &second),
	};

	setenv("WREATH_SOFT", "roce:1,ib:1", 1);
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
