/* SPDX-License-Identifier: MIT */
/*
 * Goal: memory is registered as the specification says, a key means its
 * region and no other, and what is deregistered is out of reach from that
 * moment.  Method: registrations with one thing wrong; old keys used again;
 * and a peer that writes on and on while the region goes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "soft_pair.h"

static void refuse(struct pair_end *end, void *addr, size_t length, int access,
		   int err)
{
	errno = 0;
	assert_null(end->verbs->reg_mr(end->pd, addr, length, access));
	assert_int_equal(errno, err);
}

static void wrong_registrations_are_refused(void **state)
{
	struct pair_args args = {0};
	struct pair_end a;
	char *page;

	(void)state;
	pair_end_open(&a, &args);
	page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	refuse(&a, a.buf, 0, 0, EINVAL);
	refuse(&a, (void *)(uintptr_t)-64, 128, 0, EINVAL);
	refuse(&a, a.buf, 64, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	refuse(&a, a.buf, 64, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
	refuse(&a, a.buf, 64, IBV_ACCESS_MW_BIND, EINVAL);
	refuse(&a, a.buf, 64, 1 << 10, EINVAL);
	refuse(&a, page, 64, IBV_ACCESS_LOCAL_WRITE, EFAULT);
	assert_int_equal(munmap(page + 4096, 4096), 0);
	refuse(&a, page, 8192, 0, EFAULT);
	refuse(&a, NULL, 64, 0, EFAULT);
	{
		struct ibv_mr *mr = a.verbs->reg_mr(a.pd, page, 4096, 0);

		assert_non_null(mr);
		assert_ptr_equal(mr->addr, page);
		assert_int_equal(mr->length, 4096);
		assert_ptr_equal(mr->pd, a.pd);
		assert_int_equal(a.verbs->dereg_mr(mr), 0);
	}
	munmap(page, 4096);
	pair_end_close(&a);
}

static void descriptors_must_hold_the_range(void **state)
{
	struct pair_args args = {0};
	struct pair_end a;
	int fds[2];

	(void)state;
	pair_end_open(&a, &args);
	assert_null(a.verbs->reg_dmabuf_mr(a.pd, 4096, PAIR_BYTES, 0, a.fd,
					   PAIR_ACCESS));
	assert_null(a.verbs->reg_dmabuf_mr(a.pd, UINT64_MAX, 2, 0, a.fd,
					   PAIR_ACCESS));
	assert_null(a.verbs->reg_dmabuf_mr(a.pd, 0, 64, 0, -1, PAIR_ACCESS));
	assert_int_equal(pipe(fds), 0);
	assert_null(a.verbs->reg_dmabuf_mr(a.pd, 0, 64, 0, fds[0],
					   PAIR_ACCESS));
	close(fds[0]);
	close(fds[1]);
	/* What a peer maps must not shrink under it. */
	assert_true(fcntl(a.fd, F_GET_SEALS) & F_SEAL_SHRINK);
	assert_int_not_equal(ftruncate(a.fd, 4096), 0);
	pair_end_close(&a);
}

static void region_may_have_any_address_and_offset(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct ibv_mr *mr;
	struct pair_wr w;

	(void)state;
	pair_open(&a, &b, &args);
	/* A piece of the memfd under an address of our choice. */
	mr = b.verbs->reg_dmabuf_mr(b.pd, 5000, 100, 0x123456, b.fd,
				    PAIR_ACCESS);
	assert_non_null(mr);
	memcpy(a.buf, "far", 3);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 3);
	w.wr.wr.rdma.remote_addr = 0x123456 + 97;
	w.wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_memory_equal(b.buf + 5097, "far", 3);
	w.wr.wr.rdma.remote_addr++;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(b.verbs->dereg_mr(mr), 0);
	pair_close(&a, &b);
}

static void keys_change_with_each_registration(void **state)
{
	struct pair_args args = {0};
	struct pair_end a;
	uint32_t keys[500];
	int i, j;

	(void)state;
	pair_end_open(&a, &args);
	for (i = 0; i < 500; i++) {
		struct ibv_mr *mr = a.verbs->reg_mr(a.pd, a.buf, 64,
						    PAIR_ACCESS);

		keys[i] = mr->rkey;
		for (j = 0; j < i; j++)
			assert_int_not_equal(keys[i], keys[j]);
		assert_int_equal(a.verbs->dereg_mr(mr), 0);
	}
	pair_end_close(&a);
}

static void deregistered_key_opens_nothing(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct pair_wr w;
	struct ibv_mr *mr;

	(void)state;
	pair_open(&a, &b, &args);
	mr = b.verbs->reg_mr(b.pd, b.buf, 64, PAIR_ACCESS);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	w.wr.wr.rdma.rkey = mr->rkey;
	/* Used, so that the peer remembers it. */
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_int_equal(b.verbs->dereg_mr(mr), 0);
	memset(b.buf, 'b', 64);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(b.buf[0], 'b');
	pair_close(&a, &b);
	/* And a local one neither. */
	pair_open(&a, &b, &args);
	mr = a.verbs->reg_mr(a.pd, a.buf, 64, PAIR_ACCESS);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	w.sge.lkey = mr->lkey;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_int_equal(a.verbs->dereg_mr(mr), 0);
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_LOC_PROT_ERR);
	pair_close(&a, &b);
}

struct writer {
	struct pair_end *end;
	uint32_t rkey;
	_Atomic bool has_begun;
	enum ibv_wc_status status;
};

static void *write_on_and_on(void *arg)
{
	struct writer *writer = arg;
	struct pair_wr w;
	struct ibv_wc wc = {0};

	pair_wr_init(&w, writer->end, IBV_WR_RDMA_WRITE, 0, 0, 4096);
	w.wr.wr.rdma.rkey = writer->rkey;
	while (!wc.status) {
		assert_int_equal(pair_post(writer->end, &w), 0);
		pair_wait(writer->end, &wc);
		atomic_store(&writer->has_begun, true);
	}
	writer->status = wc.status;
	return NULL;
}

static void memory_is_quiet_once_it_is_deregistered(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct writer writer = {.end = &a};
	struct ibv_mr *mr;
	pthread_t thread;
	int i, round;

	(void)state;
	for (round = 0; round < 20; round++) {
		pair_open(&a, &b, &args);
		mr = b.verbs->reg_mr(b.pd, b.buf, 4096, PAIR_ACCESS);
		writer.rkey = mr->rkey;
		atomic_store(&writer.has_begun, false);
		memset(a.buf, 'a', 4096);
		assert_int_equal(pthread_create(&thread, NULL, write_on_and_on,
						&writer), 0);
		while (!atomic_load(&writer.has_begun))
			sched_yield();
		assert_int_equal(b.verbs->dereg_mr(mr), 0);
		/* Ours alone from here on. */
		memset(b.buf, 'b', 4096);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(writer.status, IBV_WC_REM_ACCESS_ERR);
		for (i = 0; i < 4096; i++)
			assert_int_equal(b.buf[i], 'b');
		pair_close(&a, &b);
	}
}

static void peer_maps_what_it_may_reach(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	char *at;

	(void)state;
	pair_open(&a, &b, &args);
	at = a.verbs->map(a.qp, b.mr->rkey, (uintptr_t)b.buf + 10, 20);
	assert_non_null(at);
	at[0] = 'm';
	assert_int_equal(b.buf[10], 'm');
	assert_null(a.verbs->map(a.qp, b.mr->rkey ^ 1, (uintptr_t)b.buf, 1));
	assert_null(a.verbs->map(a.qp, b.mr->rkey, (uintptr_t)b.buf,
				 PAIR_BYTES + 1));
	assert_null(a.verbs->map(a.qp, b.mr->rkey, (uintptr_t)b.buf - 1, 2));
	assert_int_equal(pair_to(&a, IBV_QPS_RESET), 0);
	assert_null(a.verbs->map(a.qp, b.mr->rkey, (uintptr_t)b.buf, 1));
	pair_close(&a, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_registrations_are_refused),
		cmocka_unit_test(descriptors_must_hold_the_range),
		cmocka_unit_test(region_may_have_any_address_and_offset),
		cmocka_unit_test(keys_change_with_each_registration),
		cmocka_unit_test(deregistered_key_opens_nothing),
		cmocka_unit_test(memory_is_quiet_once_it_is_deregistered),
		cmocka_unit_test(peer_maps_what_it_may_reach),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
