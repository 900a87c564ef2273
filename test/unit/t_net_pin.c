/* SPDX-License-Identifier: MIT */
/*
 * Goal: the slots of a connection are pinned once, when that waits for nobody,
 * and let go with it.  Method: connections with slots that are mapped, and that
 * are staged, on the simulated driver, which counts; and calls of it that fail.
 */
#define _GNU_SOURCE
#include <sched.h>

#include "test/unit/net_gpu.h"

static const int gpus[2] = {0, 0};
static const char *arrival;

static int pinned(void)
{
	struct fake_leaks leaks;

	CU(fakeCudaLeaks)(&leaks);
	return leaks.registrations;
}

static bool reaches(struct mem_gpu *gpu, void *at)
{
	uint64_t number;
	void *from;
	bool is;

	OK(mem_gpu_alloc(4096, 0, &from));
	OK(mem_gpu_copy(gpu, at, from, 4096, &number));
	is = !mem_gpu_drain(gpu, 20000);
	OK(mem_free(from));
	return is;
}

static void pins(void)
{
	struct mem_stream *stream;
	struct net_conn *conn;
	struct mem_gpu *gpu;
	uint32_t number;
	int i;

	pair_open(arrival, gpus);
	conn = conns[0];
	CHECK(!pinned());
	gpu = open_gpu(0, 4096);
	kit_use(0);
	/* While a stream waits for this process pinning may wait for it. */
	OK(mem_stream_open(NULL, &stream));
	OK(mem_stream_put(stream, &number));
	CHECK(!net_conn_pin(conn) && !conn->has_pinned && !pinned());
	mem_stream_release(stream, number);
	while (!mem_stream_reached(stream, number))
		sched_yield();
	mem_stream_close(stream);
	kit_leave(0);
	nets[0]->gpu = gpu;
	for (i = 0; i < 3; i++) {
		CHECK(net_conn_pin(conn));
		CHECK(pinned() == 2);
	}
	/* An operation without a GPU changes nothing. */
	nets[0]->gpu = NULL;
	CHECK(net_conn_pin(conn));
	CHECK(reaches(gpu, conn->lanes[0].slots));
	CHECK(reaches(gpu, net_slot(&conn->lanes[2])));
	mem_gpu_close(gpu);
	pair_close(gpus);
	CHECK(!pinned());
}

static void all_slots_are_pinned_once(void **unused)
{
	(void)unused;
	arrival = "auto";
	gpu_case("", pins);
	arrival = "completion";
	gpu_case("", pins);
}

static void fails(void)
{
	uint64_t n;

	for (n = 1; n <= 2; n++) {
		pair_open(arrival, gpus);
		nets[0]->gpu = open_gpu(0, 4096);
		OK(CU(fakeCudaFail)("cuMemHostRegister_v2", n));
		CHECK(!net_conn_pin(conns[0]));
		CHECK(pinned() == (int)n - 1);
		OK(CU(fakeCudaFail)(NULL, 0));
		/* What was concluded stays: operations rely on it. */
		CHECK(!net_conn_pin(conns[0]));
		CHECK(pinned() == (int)n - 1);
		mem_gpu_close(nets[0]->gpu);
		pair_close(gpus);
		CHECK(!pinned());
	}
}

static void what_is_pinned_in_part_goes_at_the_end(void **unused)
{
	(void)unused;
	arrival = "auto";
	kit_case_once("", fails);
	arrival = "completion";
	kit_case_once("", fails);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_slots_are_pinned_once),
		cmocka_unit_test(what_is_pinned_in_part_goes_at_the_end),
	};

	alarm(100);
	setenv("WREATH_LOG", "off", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
