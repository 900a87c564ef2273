/* SPDX-License-Identifier: MIT */
/*
 * Goal: a region registered anew keeps its keys and gives the new right to
 * the new memory, to nobody a moment of the old; a refused change changes
 * nothing.  Method: a peer that knows the keys writes before and after; two
 * domains; a thread that writes all the while.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include "soft_more.h"

static char fresh[8192];

static enum ibv_wc_status write_to(struct pair_end *a, const void *at,
				   unsigned char value)
{
	struct ibv_wc wc;
	struct pair_wr w;

	a->buf[0] = (char)value;
	pair_wr_init(&w, a, IBV_WR_RDMA_WRITE, 0, 0, 1);
	w.wr.wr.rdma.remote_addr = (uintptr_t)at;
	assert_int_equal(pair_post(a, &w), 0);
	pair_wait(a, &wc);
	return wc.status;
}

static void reconnect(struct pair_end *a, struct pair_end *b,
		      const struct pair_args *args)
{
	assert_int_equal(pair_to(a, IBV_QPS_RESET), 0);
	assert_int_equal(pair_to(b, IBV_QPS_RESET), 0);
	pair_connect(a, &b->card, args);
	pair_connect(b, &a->card, args);
}

static void memory_moves_under_the_same_keys(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(write_to(&a, b.buf, 1), IBV_WC_SUCCESS);
	assert_int_equal(soft_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION,
				       NULL, fresh, sizeof(fresh), 0), 0);
	assert_int_equal(b.mr->rkey, b.card.rkey);
	assert_int_equal(b.mr->lkey, b.card.rkey);
	assert_ptr_equal(b.mr->addr, fresh);
	assert_int_equal(b.mr->length, sizeof(fresh));
	assert_int_equal(write_to(&a, fresh + 8191, 2), IBV_WC_SUCCESS);
	assert_int_equal(fresh[8191], 2);
	assert_int_equal(write_to(&a, b.buf, 3), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(b.buf[0], 1);
	pair_close(&a, &b);
}

static void access_is_given_and_taken(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(soft_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				       NULL, 0, IBV_ACCESS_LOCAL_WRITE), 0);
	assert_int_equal(write_to(&a, b.buf, 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(b.buf[0], 0);
	reconnect(&a, &b, &args);
	assert_int_equal(soft_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				       NULL, 0, PAIR_ACCESS), 0);
	assert_int_equal(write_to(&a, b.buf, 2), IBV_WC_SUCCESS);
	assert_int_equal(b.buf[0], 2);
	pair_close(&a, &b);
}

static void a_region_goes_to_another_domain(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct ibv_pd *other;

	(void)state;
	pair_open(&a, &b, &args);
	other = b.verbs->alloc_pd(b.context);
	assert_int_equal(soft_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_PD, other,
				       NULL, 0, 0), 0);
	assert_ptr_equal(b.mr->pd, other);
	assert_int_equal(b.verbs->dealloc_pd(other), EBUSY);
	assert_int_equal(write_to(&a, b.buf, 1), IBV_WC_REM_ACCESS_ERR);
	reconnect(&a, &b, &args);
	assert_int_equal(soft_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_PD, b.pd,
				       NULL, 0, 0), 0);
	assert_int_equal(b.verbs->dealloc_pd(other), 0);
	assert_int_equal(write_to(&a, b.buf, 2), IBV_WC_SUCCESS);
	pair_close(&a, &b);
}

static void refuse(struct pair_end *b, int flags, struct ibv_pd *pd,
		   void *addr, size_t length, int access, int err)
{
	errno = 0;
	assert_int_not_equal(soft_rereg_mr(b->mr, flags, pd, addr, length,
					   access), 0);
	assert_int_equal(errno, err);
}

static void a_change_that_is_refused_changes_nothing(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	(void)state;
	pair_open(&a, &b, &args);
	refuse(&b, 0, NULL, NULL, 0, 0, EINVAL);
	refuse(&b, 1 << 20, NULL, NULL, 0, 0, EINVAL);
	refuse(&b, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0, EINVAL);
	refuse(&b, IBV_REREG_MR_CHANGE_PD, a.pd, NULL, 0, 0, EINVAL);
	refuse(&b, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
	       IBV_ACCESS_REMOTE_WRITE, EINVAL);
	refuse(&b, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, fresh, 0, 0, EINVAL);
	refuse(&b, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, hole, 4096, 0,
	       EFAULT);
	assert_int_equal(soft_fault(b.context, "memlock=100"), 0);
	refuse(&b, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, fresh, 101, 0,
	       ENOMEM);
	assert_int_equal(write_to(&a, b.buf + PAIR_BYTES - 1, 7),
			 IBV_WC_SUCCESS);
	assert_int_equal(b.buf[PAIR_BYTES - 1], 7);
	munmap(hole, 4096);
	pair_close(&a, &b);
}

static void *writes_on(void *arg)
{
	struct pair_end *a = arg;
	struct pair_wr w;
	struct ibv_wc wc;

	pair_wr_init(&w, a, IBV_WR_RDMA_WRITE, 0, 0, 512);
	do {
		assert_int_equal(pair_post(a, &w), 0);
		pair_wait(a, &wc);
	} while (wc.status == IBV_WC_SUCCESS);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	return NULL;
}

static void what_is_given_up_is_written_no_more(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	pthread_t thread;
	char before[512];
	int i;

	(void)state;
	for (i = 0; i < 20; i++) {
		pair_open(&a, &b, &args);
		memset(a.buf, 1, 512);
		assert_int_equal(pthread_create(&thread, NULL, writes_on, &a),
				 0);
		pair_sleep_us(200);
		assert_int_equal(
			soft_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION,
				      NULL, fresh, sizeof(fresh), 0), 0);
		memset(b.buf, 2, 512);
		memset(before, 2, 512);
		pthread_join(thread, NULL);
		assert_memory_equal(b.buf, before, 512);
		pair_close(&a, &b);
	}
}

static void a_domain_of_a_domain_is_as_good(void **state)
{
	struct ibv_parent_domain_init_attr attr = {0};
	struct pair_args args = {0};
	struct pair_end a, b;
	struct ibv_pd *inner;
	struct ibv_mr *mr;

	(void)state;
	pair_open(&a, &b, &args);
	assert_null(soft_alloc_parent_domain(b.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.pd = a.pd;
	assert_null(soft_alloc_parent_domain(b.context, &attr));
	attr.pd = b.pd;
	inner = soft_alloc_parent_domain(b.context, &attr);
	assert_non_null(inner);
	mr = b.verbs->reg_mr(inner, fresh, sizeof(fresh), PAIR_ACCESS);
	assert_non_null(mr);
	assert_int_equal(b.verbs->dealloc_pd(inner), EBUSY);
	a.other.rkey = mr->rkey;
	assert_int_equal(write_to(&a, fresh, 9), IBV_WC_SUCCESS);
	assert_int_equal(fresh[0], 9);
	assert_int_equal(b.verbs->dereg_mr(mr), 0);
	assert_int_equal(b.verbs->dealloc_pd(b.pd), EBUSY);
	assert_int_equal(b.verbs->dealloc_pd(inner), 0);
	pair_close(&a, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_moves_under_the_same_keys),
		cmocka_unit_test(access_is_given_and_taken),
		cmocka_unit_test(a_region_goes_to_another_domain),
		cmocka_unit_test(a_change_that_is_refused_changes_nothing),
		cmocka_unit_test(what_is_given_up_is_written_no_more),
		cmocka_unit_test(a_domain_of_a_domain_is_as_good),
	};

	alarm(60);
	setenv("WREATH_SOFT", "roce:1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
