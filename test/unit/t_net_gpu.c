/* SPDX-License-Identifier: MIT */
/*
 * Goal: ports reach memory of a GPU by the first way that works, what does not
 * work is gone without, and no registration outlives its memory, nor its use.
 * Method: two ranks over the soft device, with completions, on a simulated
 * driver in which one way or the other is missing; final bytes are written
 * there and read as the device reads them.
 */
#define _GNU_SOURCE
#include "test/unit/net_gpu.h"

static const int gpus[2] = {0, 0};
static bool must_grant;
static enum net_direct must_be;
static bool device_refuses; /* the first registration */

static void *gpu_new(size_t bytes)
{
	cu_ptr ptr = kit_alloc(bytes);

	return (void *)(uintptr_t)ptr;
}

static void gpu_free(void *ptr)
{
	OK(CU(cuMemFree_v2)((uintptr_t)ptr));
}

static void grant(void *out, uint32_t signature)
{
	struct mem_where where[2];
	struct net_granting what = gpu_granting(out, NULL, where);

	OK(net_place_grant(conns[1], &what, signature));
	CHECK(take(conns[0], signature));
	CHECK(conns[0]->place_told == conns[1]->granted);
	CHECK(conns[0]->place.kinds == conns[1]->granted);
	CHECK(!conns[0]->output_map && !conns[0]->input_map);
}

/* One operation in which final bytes go to @out of rank 1. */
static void write_to(void *out, uint32_t signature, int value)
{
	struct net_lane *from = &conns[0]->lanes[1];
	struct net_lane *to = &conns[1]->lanes[1];
	const unsigned char *seen = (void *)alias(out, BYTES);
	size_t at = 77 * signature;

	grant(out, signature);
	CHECK(conns[1]->granted == NET_PLACE_OUTPUT);
	memset(net_slot(from), value, 5000);
	OK(net_send_place(from, at, 5000, signature));
	await(to, signature);
	OK(net_flush(nets[1], 1000));
	CHECK(seen[at - 1] != value && seen[at + 5000] != value);
	CHECK(seen[at] == value && seen[at + 4999] == value);
	OK(net_consume(to, 1));
}

static void refuse_one(void)
{
	OK(soft_fault(conns[1]->port->device->context, "fail_reg=1"));
}

static void tries_ways(void)
{
	void *out;

	pair_open("completion", gpus);
	out = gpu_new(BYTES);
	if (device_refuses)
		refuse_one();
	if (must_grant) {
		write_to(out, 1, 11);
		write_to(out, 2, 12);
		CHECK(nets[1]->ways->how == must_be);
		CHECK(count_mrs(nets[1]) == 1);
	} else {
		grant(out, 3);
		CHECK(!conns[1]->granted);
	}
	gpu_free(out);
	pair_close(gpus);
}

static void ways_are_tried_in_their_order(void **unused)
{
	static const struct {
		const char *fake, *direct;
		enum net_direct how;
		bool device_refuses;
	} rows[] = {
		{"", "auto", NET_DIRECT_DMABUF, false},
		{"peermem", "auto", NET_DIRECT_DMABUF, false},
		{"nodmabuf,peermem", "auto", NET_DIRECT_PEERMEM, false},
		{"peermem", "auto", NET_DIRECT_PEERMEM, true},
		{"nodmabuf", "auto", NET_DIRECT_NONE, false},
		{"", "dmabuf", NET_DIRECT_DMABUF, false},
		{"nodmabuf,peermem", "dmabuf", NET_DIRECT_NONE, false},
		{"peermem", "peermem", NET_DIRECT_PEERMEM, false},
		{"", "peermem", NET_DIRECT_NONE, false},
		{"peermem", "off", NET_DIRECT_NONE, false},
	};
	size_t i;

	(void)unused;
	for (i = 0; i < base_countof(rows); i++) {
		setenv("WREATH_GPU_DIRECT", rows[i].direct, 1);
		must_be = rows[i].how;
		must_grant = must_be != NET_DIRECT_NONE;
		device_refuses = rows[i].device_refuses;
		gpu_case(rows[i].fake, tries_ways);
	}
	unsetenv("WREATH_GPU_DIRECT");
}

static void registers_the_user(void)
{
	struct mem_where where[2];
	struct net_granting what;
	void *out;
	int n_fds;

	pair_open("completion", gpus);
	n_fds = count_fds();
	OK(mem_gpu_alloc(BYTES, 0, &out));
	write_to(out, 1, 5);
	CHECK(count_mrs(nets[1]) == 1);
	/* A part of what cannot be is nothing. */
	what = gpu_granting(out, NULL, where);
	what.output_bytes = (size_t)64 << 20;
	OK(net_place_grant(conns[1], &what, 9));
	CHECK(!conns[1]->granted);
	OK(mem_free(out));
	CHECK(count_mrs(nets[1]) == 0);
	CHECK(count_fds() == n_fds + 2); /* the flusher's box and region */
	pair_close(gpus);
}

static void regions_of_the_user_go_with_their_memory(void **unused)
{
	(void)unused;
	gpu_case("", registers_the_user);
}

#define N_MANY (NET_GPU_MRS + 10)

static void has_many(void)
{
	static void *many[N_MANY];
	uint32_t key;
	struct mem_region region;
	uint64_t first;
	size_t i;

	pair_open("completion", gpus);
	for (i = 0; i < N_MANY; i++)
		many[i] = gpu_new(BYTES);
	/* One operation each: the bound holds, the first ones went. */
	for (i = 0; i < N_MANY; i++)
		write_to(many[i], (uint32_t)i + 1, 1);
	CHECK(count_mrs(nets[1]) == NET_GPU_MRS);
	first = calls("cuMemGetHandleForAddressRange");
	write_to(many[N_MANY - 1], 200, 2);
	write_to(many[10], 201, 2);
	CHECK(calls("cuMemGetHandleForAddressRange") == first);
	write_to(many[0], 202, 2);
	CHECK(calls("cuMemGetHandleForAddressRange") == first + 1);
	/* 11 was used longest ago, and 10 was not. */
	CHECK(mem_gpu_region(many[10], 1, &region));
	OK(net_mr_key(nets[1], conns[1]->port, &region, &key));
	CHECK(calls("cuMemGetHandleForAddressRange") == first + 1);
	OK(net_flush(nets[1], 1000));
	/* In one operation those that it uses stay, and the rest is denied. */
	for (i = 0; i < N_MANY; i++) {
		CHECK(mem_gpu_region(many[i], 1, &region));
		CHECK(net_mr_key(nets[1], conns[1]->port, &region, &key) ==
		      (i < NET_GPU_MRS ? 0 : WREATH_EUNSUP));
	}
	OK(net_flush(nets[1], 1000));
	for (i = 0; i < N_MANY; i++)
		gpu_free(many[i]);
	/* The dead go when something else comes. */
	many[0] = gpu_new(BYTES);
	write_to(many[0], 203, 3);
	CHECK(count_mrs(nets[1]) == 1);
	gpu_free(many[0]);
	pair_close(gpus);
}

static void registrations_are_bounded_and_go_with_their_memory(void **unused)
{
	(void)unused;
	gpu_case("", has_many);
}

/* An address that had another allocation has another key. */
static void is_used_again(void)
{
	uint32_t key[2];
	struct mem_region region;
	void *out;
	int i;

	pair_open("completion", gpus);
	out = gpu_new(BYTES);
	CHECK(mem_gpu_region(out, BYTES, &region));
	OK(net_mr_key(nets[1], conns[1]->port, &region, &key[0]));
	OK(net_flush(nets[1], 1000));
	/* As if it had been freed, and this one been put in its place. */
	region.id++;
	OK(net_mr_key(nets[1], conns[1]->port, &region, &key[1]));
	CHECK(key[0] != key[1]);
	CHECK(count_mrs(nets[1]) == 1);
	CHECK(!nets[1]->failed);
	OK(net_flush(nets[1], 1000));
	/* And ours, which is no more known, is registered once more. */
	for (i = 0; i < 2; i++)
		write_to(out, (uint32_t)i + 1, 4 + i);
	CHECK(count_mrs(nets[1]) == 1);
	gpu_free(out);
	pair_close(gpus);
}

static void memory_that_came_in_anothers_place_is_told_apart(void **unused)
{
	(void)unused;
	gpu_case("", is_used_again);
}

static void cannot_be_registered(void)
{
	void *out[6];
	uint64_t n;
	size_t i;

	pair_open("completion", gpus);
	for (i = 0; i < base_countof(out); i++)
		out[i] = gpu_new(BYTES);
	/* Each is tried once, and after some none. */
	for (i = 0; i < base_countof(out); i++) {
		grant(out[i], (uint32_t)i * 2);
		CHECK(!conns[1]->granted);
		n = calls("cuMemGetHandleForAddressRange");
		CHECK(n <= 4);
		grant(out[i], (uint32_t)i * 2 + 1);
		CHECK(!conns[1]->granted);
		CHECK(calls("cuMemGetHandleForAddressRange") == n);
		OK(net_flush(nets[1], 1000));
	}
	CHECK(nets[1]->ways->how == NET_DIRECT_NONE);
	CHECK(!nets[1]->ways->flusher);
	for (i = 0; i < base_countof(out); i++)
		gpu_free(out[i]);
	pair_close(gpus);
}

static void what_cannot_be_registered_is_not_tried_for_ever(void **unused)
{
	(void)unused;
	kit_case_once("nodmabuf", cannot_be_registered);
}

/* Once the way is known, one allocation that fails is no reason to give up. */
static void one_fails(void)
{
	void *out[2];

	pair_open("completion", gpus);
	out[0] = gpu_new(BYTES);
	out[1] = gpu_new(BYTES);
	write_to(out[0], 1, 1);
	refuse_one();
	grant(out[1], 2);
	CHECK(!conns[1]->granted);
	write_to(out[0], 3, 3);
	grant(out[1], 4);
	CHECK(!conns[1]->granted);
	CHECK(nets[1]->ways->how == NET_DIRECT_DMABUF);
	gpu_free(out[1]);
	out[1] = gpu_new(BYTES);
	write_to(out[1], 5, 5);
	gpu_free(out[0]);
	gpu_free(out[1]);
	pair_close(gpus);
}

static void one_that_fails_is_gone_without(void **unused)
{
	(void)unused;
	gpu_case("", one_fails);
}

static void is_not_granted(void)
{
	struct mem_where where[2];
	struct net_granting what;
	cu_ptr managed;
	void *out;

	pair_open("completion", gpus);
	OK(CU(cuMemAllocManaged)(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
	grant((void *)(uintptr_t)managed, 1);
	CHECK(!conns[1]->granted);
	OK(CU(cuMemFree_v2)(managed));
	/* No peer reads the input of another over a device. */
	out = gpu_new(BYTES);
	what = gpu_granting(NULL, out, where);
	OK(net_place_grant(conns[1], &what, 2));
	CHECK(!conns[1]->granted);
	/* Who forgets to say where it lies does no harm. */
	gpu_free(out);
	OK(mem_gpu_alloc(BYTES, 0, &out));
	what = gpu_granting(out, NULL, where);
	what.output_where = NULL;
	OK(net_place_grant(conns[1], &what, 3));
	CHECK(!conns[1]->granted);
	OK(mem_free(out));
	pair_close(gpus);
}

static void what_devices_may_not_have_is_not_granted(void **unused)
{
	(void)unused;
	gpu_case("", is_not_granted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways_are_tried_in_their_order),
		cmocka_unit_test(regions_of_the_user_go_with_their_memory),
		cmocka_unit_test(
			registrations_are_bounded_and_go_with_their_memory),
		cmocka_unit_test(
			memory_that_came_in_anothers_place_is_told_apart),
		cmocka_unit_test(
			what_cannot_be_registered_is_not_tried_for_ever),
		cmocka_unit_test(one_that_fails_is_gone_without),
		cmocka_unit_test(what_devices_may_not_have_is_not_granted),
	};

	alarm(100);
	setenv("WREATH_LOG", "off", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
