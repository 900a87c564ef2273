/* SPDX-License-Identifier: MIT */
/*
 * Goal: atomics act once, in one step, on what they may, and answer with the
 * value before.  Method: two ends in one process and in two, memory mapped by
 * the peer and private; sums and returned values are compared with a model.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "soft_pair.h"

#define ATOMIC (PAIR_ACCESS | IBV_ACCESS_REMOTE_ATOMIC)
#define N_ADDS 400u

static const struct pair_args usual = {.access = ATOMIC, .mr_access = ATOMIC};

static uint64_t *word_at(struct pair_end *end, size_t at)
{
	return (uint64_t *)(void *)(end->buf + at);
}

/* The answer goes to @from of our memory, the target is @to of theirs. */
static void atomic_init(struct pair_wr *w, struct pair_end *end, bool is_swap,
			size_t from, size_t to, uint64_t compare_add,
			uint64_t swap)
{
	pair_wr_init(w, end, is_swap ? IBV_WR_ATOMIC_CMP_AND_SWP
				     : IBV_WR_ATOMIC_FETCH_AND_ADD,
		     from, to, 8);
	w->wr.wr.atomic.remote_addr = end->other.addr + to;
	w->wr.wr.atomic.rkey = end->other.rkey;
	w->wr.wr.atomic.compare_add = compare_add;
	w->wr.wr.atomic.swap = swap;
}

static void run(struct pair_end *end, struct pair_wr *w)
{
	struct ibv_wc wc;

	assert_int_equal(pair_post(end, w), 0);
	pair_wait(end, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, w->wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP
					    ? IBV_WC_COMP_SWAP
					    : IBV_WC_FETCH_ADD);
	assert_int_equal(wc.byte_len, 8);
	assert_int_equal(wc.qp_num, end->qp->qp_num);
}

static void a_swap_happens_only_where_the_value_is_equal(void **state)
{
	struct pair_end a, b;
	struct pair_wr w;

	(void)state;
	pair_open(&a, &b, &usual);
	*word_at(&b, 64) = 0x0102030405060708u;
	atomic_init(&w, &a, true, 0, 64, 7, 9);
	run(&a, &w);
	assert_true(*word_at(&a, 0) == 0x0102030405060708u);
	assert_true(*word_at(&b, 64) == 0x0102030405060708u);
	atomic_init(&w, &a, true, 8, 64, 0x0102030405060708u, UINT64_MAX);
	run(&a, &w);
	assert_true(*word_at(&a, 8) == 0x0102030405060708u);
	assert_true(*word_at(&b, 64) == UINT64_MAX);
	assert_true(!*word_at(&b, 56) && !*word_at(&b, 72));
	pair_close(&a, &b);
}

static void a_sum_wraps_and_the_old_value_comes_back_in_pieces(void **state)
{
	struct pair_end a, b;
	struct ibv_sge sges[3];
	struct pair_wr w;
	uint64_t old;

	(void)state;
	pair_open(&a, &b, &usual);
	*word_at(&b, 0) = 5;
	atomic_init(&w, &a, false, 0, 0, UINT64_MAX - 1, 0);
	sges[0] = (struct ibv_sge){a.card.addr + 101, 3, a.mr->lkey};
	sges[1] = (struct ibv_sge){0, 0, 0};
	sges[2] = (struct ibv_sge){a.card.addr + 200, 5, a.mr->lkey};
	w.wr.sg_list = sges;
	w.wr.num_sge = 3;
	run(&a, &w);
	assert_true(*word_at(&b, 0) == 3);
	memcpy(&old, a.buf + 101, 3);
	memcpy((char *)&old + 3, a.buf + 200, 5);
	assert_true(old == 5);
	assert_int_equal(a.buf[104], 0);
	assert_int_equal(a.buf[205], 0);
	pair_close(&a, &b);
}

static void add_all(struct pair_end *end, size_t from)
{
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < N_ADDS; i++) {
		struct pair_wr w;

		atomic_init(&w, end, false, from + i * 8, 0, 1, 0);
		assert_int_equal(pair_post(end, &w), 0);
		if (i % 8 != 7)
			continue;
		for (int n = 0; n < 8; n++) {
			pair_wait(end, &wc);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		}
	}
}

static void child_adds(struct pair_end *end, int socket)
{
	pair_meet(socket);
	add_all(end, 0);
	/* Each value was seen once, in order, though others add too. */
	for (uint32_t i = 1; i < N_ADDS; i++)
		assert_true(*word_at(end, i * 8) > *word_at(end, i * 8 - 8));
	pair_meet(socket);
	pair_meet(socket);
	pair_end_close(end);
}

/* The child adds by requests, the parent by instructions. */
static void check_sum(const struct pair_args *args)
{
	struct pair_end end;
	int socket;
	pid_t pid = pair_fork(&end, &socket, args, child_adds);
	uint32_t i;

	pair_meet(socket);
	for (i = 0; i < N_ADDS; i++)
		__atomic_fetch_add(word_at(&end, 0), 1, __ATOMIC_SEQ_CST);
	pair_meet(socket);
	assert_true(__atomic_load_n(word_at(&end, 0), __ATOMIC_SEQ_CST) ==
		    2 * N_ADDS);
	pair_meet(socket);
	pair_end_close(&end);
	pair_reap(pid);
}

static void no_sum_is_lost_in_memory_that_is_shared(void **state)
{
	(void)state;
	check_sum(&usual);
}

static void no_sum_is_lost_in_memory_that_is_private(void **state)
{
	struct pair_args args = usual;

	(void)state;
	args.plain_memory = true;
	check_sum(&args);
}

struct wrong {
	const char *what;
	unsigned int access;
	int mr_access;
	int no_reads;
	uint64_t skew;
	uint32_t add_to_rkey, add_to_lkey;
	uint32_t bytes;
	enum ibv_wc_status status;
	enum ibv_qp_state peer;
};

static const struct wrong wrongs[] = {
	{.what = "not aligned", .skew = 4, .status = IBV_WC_REM_INV_REQ_ERR,
	 .peer = IBV_QPS_ERR},
	{.what = "queue pair's access", .access = PAIR_ACCESS,
	 .status = IBV_WC_REM_INV_REQ_ERR, .peer = IBV_QPS_ERR},
	{.what = "region's access", .mr_access = PAIR_ACCESS,
	 .status = IBV_WC_REM_ACCESS_ERR, .peer = IBV_QPS_ERR},
	{.what = "no responder resources", .no_reads = 2,
	 .status = IBV_WC_REM_INV_REQ_ERR, .peer = IBV_QPS_ERR},
	{.what = "rkey", .add_to_rkey = 1, .status = IBV_WC_REM_ACCESS_ERR,
	 .peer = IBV_QPS_ERR},
	{.what = "beyond the end", .skew = PAIR_BYTES,
	 .status = IBV_WC_REM_ACCESS_ERR, .peer = IBV_QPS_ERR},
	{.what = "lkey", .add_to_lkey = 1, .status = IBV_WC_LOC_PROT_ERR,
	 .peer = IBV_QPS_RTS},
	{.what = "4 bytes", .bytes = 4, .status = IBV_WC_LOC_LEN_ERR,
	 .peer = IBV_QPS_RTS},
	{.what = "16 bytes", .bytes = 16, .status = IBV_WC_LOC_LEN_ERR,
	 .peer = IBV_QPS_RTS},
};

static void check_wrong(const struct wrong *wrong)
{
	struct pair_args args = usual;
	struct pair_end a, b;
	struct pair_wr w;
	int i;

	if (wrong->access)
		args.access = wrong->access;
	if (wrong->mr_access)
		args.mr_access = wrong->mr_access;
	args.no_reads = wrong->no_reads;
	pair_open(&a, &b, &args);
	memset(b.buf, 1, PAIR_BYTES);
	atomic_init(&w, &a, false, 0, 0, 1, 0);
	w.wr.wr_id = 77;
	w.wr.wr.atomic.remote_addr += wrong->skew;
	w.wr.wr.atomic.rkey += wrong->add_to_rkey;
	w.sge.lkey += wrong->add_to_lkey;
	if (wrong->bytes)
		w.sge.length = wrong->bytes;
	/* Errors are told of without being asked for. */
	w.wr.send_flags = 0;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 77, wrong->status);
	assert_int_equal(pair_state(&a), IBV_QPS_ERR);
	for (i = 0; i < 2000 && pair_state(&b) != wrong->peer; i++)
		pair_sleep_us(1000);
	assert_int_equal(pair_state(&b), wrong->peer);
	for (i = 0; i < (int)PAIR_BYTES; i++)
		assert_int_equal(b.buf[i], 1);
	pair_close(&a, &b);
}

static void what_is_not_right_touches_nothing(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(wrongs); i++)
		check_wrong(&wrongs[i]);
}

static void an_answer_needs_memory_that_may_be_written(void **state)
{
	struct pair_end a, b;
	struct ibv_mr *mr;
	struct pair_wr w;

	(void)state;
	pair_open(&a, &b, &usual);
	mr = a.verbs->reg_mr(a.pd, a.buf, 64, IBV_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	atomic_init(&w, &a, false, 0, 0, 1, 0);
	w.sge.lkey = mr->lkey;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_LOC_PROT_ERR);
	assert_true(*word_at(&b, 0) == 0);
	assert_int_equal(a.verbs->dereg_mr(mr), 0);
	pair_close(&a, &b);
}

static void a_post_that_cannot_be_is_refused(void **state)
{
	struct pair_args args = usual;
	struct pair_end a, b;
	struct pair_wr w;

	(void)state;
	pair_open(&a, &b, &args);
	atomic_init(&w, &a, true, 0, 0, 1, 0);
	w.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(pair_post(&a, &w), EINVAL);
	pair_close(&a, &b);
	args.no_reads = 1;
	pair_open(&a, &b, &args);
	atomic_init(&w, &a, true, 0, 0, 1, 0);
	assert_int_equal(pair_post(&a, &w), EINVAL);
	pair_close(&a, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_swap_happens_only_where_the_value_is_equal),
		cmocka_unit_test(
			a_sum_wraps_and_the_old_value_comes_back_in_pieces),
		cmocka_unit_test(no_sum_is_lost_in_memory_that_is_shared),
		cmocka_unit_test(no_sum_is_lost_in_memory_that_is_private),
		cmocka_unit_test(what_is_not_right_touches_nothing),
		cmocka_unit_test(an_answer_needs_memory_that_may_be_written),
		cmocka_unit_test(a_post_that_cannot_be_is_refused),
	};

	alarm(60);
	setenv("WREATH_SOFT", "roce:1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
