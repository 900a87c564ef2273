/* SPDX-License-Identifier: MIT */
/*
 * Goal: what devices wrote to a GPU that promises no order is flushed before
 * anyone reads it, once for each port and GPU; elsewhere nothing is done; and a
 * flush that fails ends in time with what to do.  Method: a rank that grants by
 * key on simulated GPUs of both kinds, and a soft device whose n-th request
 * fails, which shows how many there were.
 */
#define _GNU_SOURCE
#include "test/unit/net_gpu.h"

static const int gpus[2] = {0, 0};
static void *outs[3];

static struct ibv_context *device(void)
{
	return conns[1]->port->device->context;
}

static void open_with_outs(void)
{
	size_t i;

	pair_open("completion", gpus);
	for (i = 0; i < base_countof(outs); i++)
		outs[i] = (void *)(uintptr_t)kit_alloc(BYTES);
}

static void close_with_outs(void)
{
	size_t i;

	for (i = 0; i < base_countof(outs); i++)
		OK(CU(cuMemFree_v2)((uintptr_t)outs[i]));
	pair_close(gpus);
}

/* Without telling the peer: requests would be counted. */
static void grant_all(void)
{
	struct mem_region region;
	uint32_t key;
	size_t i;

	for (i = 0; i < base_countof(outs); i++) {
		CHECK(mem_gpu_region(outs[i], 1, &region));
		OK(net_mr_key(nets[1], conns[1]->port, &region, &key));
	}
}

static void flushes_once(void)
{
	open_with_outs();
	OK(net_flush(nets[1], 1000));
	grant_all();
	CHECK(!nets[1]->ways->flusher);
	/* The second request would fail. */
	OK(soft_fault(device(), "status=REM_ACCESS_ERR@2"));
	OK(net_flush(nets[1], 1000));
	CHECK(nets[1]->ways->flusher);
	/* Nothing has been granted since. */
	OK(net_flush(nets[1], 1000));
	grant_all();
	FAILS(WREATH_ENET, net_flush(nets[1], 1000));
	CHECK(tells("WREATH_GPU_DIRECT=off") && tells("REM_ACCESS_ERR"));
	CHECK(tells("rank 1"));
	CHECK(nets[1]->failed == WREATH_ENET);
	CHECK(net_poll(nets[1]) == WREATH_ENET);
	close_with_outs();
}

static void one_request_flushes_all_of_a_gpu(void **unused)
{
	(void)unused;
	gpu_case("", flushes_once);
}

/* The peer goes on writing: what comes later is flushed as well. */
static void flushes_amid(void)
{
	open_with_outs();
	grant_all();
	/* The fourth request would fail. */
	OK(soft_fault(device(), "status=REM_ACCESS_ERR@4"));
	OK(net_flush_amid(nets[1], 1000));
	CHECK(nets[1]->mrs->is_granted);
	OK(net_flush_amid(nets[1], 1000));
	CHECK(nets[1]->mrs->is_granted);
	OK(net_flush(nets[1], 1000));
	CHECK(!nets[1]->mrs->is_granted);
	OK(net_flush_amid(nets[1], 1000));
	grant_all();
	FAILS(WREATH_ENET, net_flush_amid(nets[1], 1000));
	CHECK(nets[1]->failed == WREATH_ENET);
	close_with_outs();
}

static void a_flush_amid_an_operation_is_not_the_last(void **unused)
{
	(void)unused;
	gpu_case("", flushes_amid);
}

static void needs_none(void)
{
	open_with_outs();
	grant_all();
	OK(soft_fault(device(), "status=REM_ACCESS_ERR@1"));
	OK(net_flush(nets[1], 1000));
	CHECK(!nets[1]->ways->flusher);
	CHECK(!nets[1]->mrs->is_granted);
	close_with_outs();
}

static void gpus_that_promise_order_are_not_flushed(void **unused)
{
	(void)unused;
	gpu_case("hopper", needs_none);
}

static void is_late(void)
{
	uint64_t start;

	open_with_outs();
	grant_all();
	OK(soft_fault(device(), "delay=5000000"));
	start = base_now_ns();
	FAILS(WREATH_ENET, net_flush(nets[1], 50));
	CHECK(base_now_ns() - start < 3000000000u);
	CHECK(tells("no answer in time"));
	close_with_outs();
}

static void a_flush_ends_in_time(void **unused)
{
	(void)unused;
	gpu_case("", is_late);
}

static void fails_to_be_made(void)
{
	static const char *const faults[] = {"fail_reg=1", "fail_cq=1",
					     "fail_qp=1", "fail_post=1"};
	int n_fds;
	size_t i;

	open_with_outs();
	n_fds = count_fds();
	for (i = 0; i < base_countof(faults); i++) {
		grant_all();
		OK(soft_fault(device(), faults[i]));
		CHECK(net_flush(nets[1], 1000) < 0);
		CHECK(nets[1]->failed);
		nets[1]->failed = 0;
		CHECK(!nets[1]->ways->flusher == (i < 3));
		CHECK((count_fds() == n_fds) == (i < 3));
	}
	grant_all();
	OK(net_flush(nets[1], 1000));
	close_with_outs();
}

static void what_cannot_be_made_leaves_nothing(void **unused)
{
	(void)unused;
	gpu_case("", fails_to_be_made);
}

/* The address of oneself has another form there. */
static void infiniband_has_a_way_to_oneself_too(void **unused)
{
	(void)unused;
	setenv("NET_GPU_SOFT", "ib:1", 1);
	gpu_case("", flushes_once);
	unsetenv("NET_GPU_SOFT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_request_flushes_all_of_a_gpu),
		cmocka_unit_test(a_flush_amid_an_operation_is_not_the_last),
		cmocka_unit_test(gpus_that_promise_order_are_not_flushed),
		cmocka_unit_test(a_flush_ends_in_time),
		cmocka_unit_test(what_cannot_be_made_leaves_nothing),
		cmocka_unit_test(infiniband_has_a_way_to_oneself_too),
	};

	alarm(100);
	setenv("WREATH_LOG", "off", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
