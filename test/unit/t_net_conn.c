/* SPDX-License-Identifier: MIT */
/*
 * Goal: messages arrive once, in order and whole, in every way that they can
 * travel, and never beyond what was granted.
 * Method: two ranks' nets in one thread, joined by hand over the soft device,
 * on InfiniBand and Ethernet, by polled memory, by completions, and in chaos.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/net.h"
#include "soft/soft.h"

static struct base_env env;
static struct net *nets[2];
static char names[2][128] = {"rank 0 (here, pid 1)", "rank 1 (here, pid 1)"};
static struct net_conn *conns[2];

/* What comm does: all offers to all. */
static void agree(struct net *net, struct net *other)
{
	const uint32_t here[2] = {0, 0};
	char *offers = base_alloc(2, NET_OFFER_MAX);

	assert_true(net_offer(net, offers + net->rank * NET_OFFER_MAX) <=
		    NET_OFFER_MAX);
	net_offer(other, offers + !net->rank * NET_OFFER_MAX);
	assert_int_equal(net_agree(net, offers, NET_OFFER_MAX, here, here), 0);
}

static void open_pair(const char *soft, const char *arrival, const char *fault)
{
	struct net_args args = {.env = &env, .all_local = true, .n_ranks = 2,
				.names = names};
	struct net_record records[2];
	int i;

	setenv("WREATH_SOFT", soft, 1);
	setenv("WREATH_ARRIVAL", arrival, 1);
	setenv("WREATH_SOFT_FAULTS", fault, 1);
	setenv("WREATH_LOG", "off", 1);
	assert_int_equal(base_env_load(&env), 0);
	assert_int_equal(soft_table(&args.soft), 0);
	for (i = 0; i < 2; i++) {
		args.rank = i;
		assert_int_equal(net_open(&args, &nets[i]), 0);
	}
	for (i = 0; i < 2; i++) {
		agree(nets[i], nets[!i]);
		assert_int_equal(net_conn_new(nets[i], !i, 0, &records[i]), 0);
	}
	for (i = 0; i < 2; i++) {
		assert_int_equal(net_conn_ready(nets[i], !i, 0, &records[!i]),
				 0);
		conns[i] = net_conn(nets[i], !i, 0);
	}
	assert_int_equal(net_conn_reach(nets[0], 1, 0), 0);
	assert_int_equal(net_conn_reach(nets[1], 0, 0), 0);
}

static void close_pair(void)
{
	net_close(nets[0]);
	net_close(nets[1]);
}

static void poll_both(void)
{
	assert_int_equal(net_poll(nets[0]), 0);
	assert_int_equal(net_poll(nets[1]), 0);
}

static void await(const struct net_lane *lane, uint32_t signature)
{
	uint64_t end = base_now_ns() + 5000000000ull;

	while (net_arrived(lane, signature) == NET_NONE) {
		assert_true(base_now_ns() < end);
		poll_both();
	}
	assert_int_equal(net_arrived(lane, signature), NET_ARRIVED);
}

static void await_line(const struct net_lane *lane, size_t n, uint32_t sign)
{
	uint64_t end = base_now_ns() + 5000000000ull;
	size_t i;

	for (i = 0; i < n; i++) {
		while (net_line_arrived(lane, i, sign) == NET_NONE) {
			assert_true(base_now_ns() < end);
			poll_both();
		}
		assert_int_equal(net_line_arrived(lane, i, sign), NET_ARRIVED);
	}
}

static void slots_carry_messages_within_their_window(void)
{
	struct net_lane *from = &conns[0]->lanes[1];
	struct net_lane *to = &conns[1]->lanes[1];
	uint32_t window = (uint32_t)nets[0]->n_slots;
	uint32_t i, j;

	for (i = 0; i < 50; i++) {
		for (j = 0; j < window; j++) {
			assert_true(net_can_send(from, window));
			memset(net_slot(from), (int)(i + j), 1000 + j);
			assert_int_equal(net_send_slot(from, 1000 + j, 7), 0);
		}
		assert_false(net_can_send(from, window));
		for (j = 0; j < window; j++) {
			const unsigned char *got;

			await(to, 7);
			got = net_payload(to);
			assert_int_equal(got[0], (i + j) & 0xff);
			assert_int_equal(got[999 + j], (i + j) & 0xff);
			assert_int_equal(net_consume(to, 1), 0);
		}
		while ((uint32_t)atomic_load(from->credit) != from->n_sent)
			poll_both();
	}
}

static void lines_carry_small_messages(void)
{
	_Alignas(64) char lines[NET_LINES_MAX * BASE_LINE];
	struct net_lane *from = &conns[1]->lanes[0];
	struct net_lane *to = &conns[0]->lanes[0];
	size_t i, n;
	uint32_t k;

	for (k = 0; k < 100; k++) {
		uint64_t word = net_word(from->n_sent + 1, k);

		n = 1 + k % NET_LINES_MAX;
		memset(lines, (int)k, sizeof(lines));
		for (i = 0; i < n; i++)
			memcpy(lines + i * BASE_LINE + NET_LINE_DATA, &word, 8);
		while (!net_can_send(from, NET_LINE_SLOTS))
			poll_both();
		assert_int_equal(net_send_lines(from, lines, n, k), 0);
		await_line(to, n, k);
		assert_memory_equal(net_lines(to), lines, n * BASE_LINE);
		assert_int_equal(net_consume(to, 4), 0);
	}
}

static void places_are_written_and_read(void)
{
	struct net_lane *from = &conns[0]->lanes[2];
	struct net_lane *to = &conns[1]->lanes[2];
	uint64_t end = base_now_ns() + 5000000000ull;
	struct net_granting what = {
		.output_bytes = 100000, .input_bytes = 100000,
		.kinds = NET_PLACE_OUTPUT | NET_PLACE_INPUT};
	void *out, *in;

	assert_int_equal(mem_alloc(100000, &out), 0);
	assert_int_equal(mem_alloc(100000, &in), 0);
	memset(in, 9, 100000);
	what.output = out;
	what.input = in;
	assert_int_equal(net_place_grant(conns[1], &what, 77), 0);
	assert_false(net_place_take(conns[0], 78));
	while (!net_place_take(conns[0], 77)) {
		assert_true(base_now_ns() < end);
		poll_both();
	}
	/* To read in place, the peer must reach the memory. */
	assert_int_equal(conns[0]->place.kinds,
			 conns[1]->lanes[0].map_slots
				 ? NET_PLACE_OUTPUT | NET_PLACE_INPUT
				 : NET_PLACE_OUTPUT);
	if (conns[0]->output_map) {
		memset(conns[0]->output_map + 5000, 3, 6000);
		assert_int_equal(conns[0]->input_map[99999], 9);
	} else {
		memset(net_slot(from), 3, 6000);
	}
	assert_int_equal(net_send_place(from, 5000, 6000, 77), 0);
	await(to, 77);
	assert_int_equal(((char *)out)[4999], 0);
	assert_int_equal(((char *)out)[5000], 3);
	assert_int_equal(((char *)out)[10999], 3);
	assert_int_equal(((char *)out)[11000], 0);
	assert_int_equal(net_consume(to, 1), 0);
	assert_int_equal(mem_free(out), 0);
	assert_int_equal(mem_free(in), 0);
}

/* Two grants of each kind, in any order, and taken in any other. */
static void kinds_of_grants_do_not_wait_for_each_other(void)
{
	struct net_granting what = {.output_bytes = 1000,
				    .kinds = NET_PLACE_OUTPUT};
	uint64_t end = base_now_ns() + 5000000000ull;
	uint32_t order, i;

	assert_int_equal(mem_alloc(8000, &what.output), 0);
	for (order = 0; order < 36; order++) {
		/* Of four bits two are set: 3, 5, 6, 9, 10, 12. */
		static const uint32_t two[] = {3, 5, 6, 9, 10, 12};

		for (i = 0; i < 4; i++)
			assert_int_equal(net_place_grant_one(
				conns[1], (two[order / 6] >> i & 1) + 1, &what,
				77), 0);
		assert_false(net_place_take_one(conns[0], 1, 78));
		for (i = 0; i < 4; i++) {
			while (!net_place_take_one(conns[0],
					(two[order % 6] >> i & 1) + 1, 77)) {
				assert_true(base_now_ns() < end);
				poll_both();
			}
		}
		assert_int_equal(conns[0]->place.kinds, NET_PLACE_OUTPUT);
	}
	assert_int_equal(mem_free(what.output), 0);
}

static void another_signature_is_a_mismatch(void)
{
	struct net_lane *from = &conns[0]->lanes[0];
	struct net_lane *to = &conns[1]->lanes[0];
	struct net_sign mine = {.seq = 5, .count = 3, .type = 10};
	struct net_sign got;
	uint64_t end = base_now_ns() + 5000000000ull;

	net_sign_post(nets[0], &mine);
	assert_int_equal(net_send_slot(from, 0, 1111), 0);
	while (net_arrived(to, 2222) == NET_NONE) {
		assert_true(base_now_ns() < end);
		poll_both();
	}
	assert_int_equal(net_arrived(to, 2222), NET_MISMATCH);
	assert_int_equal(net_sign_read(conns[1], 5, 1000, &got), 0);
	assert_memory_equal(&got, &mine, sizeof(mine));
	/* It has not come to the next operation. */
	assert_int_equal(net_sign_read(conns[1], 6, 1000, &got),
			 WREATH_EAGAIN);
	assert_int_equal(net_consume(to, 1), 0);
}

static void a_sleeper_wakes_or_times_out(void)
{
	struct net_lane *from = &conns[0]->lanes[1];
	struct net_lane *to = &conns[1]->lanes[1];
	uint64_t start = base_now_ns();

	assert_int_equal(net_block(nets[1], 20), 0);
	assert_true(base_now_ns() - start > 5000000);
	assert_int_equal(net_send_slot(from, 0, 5), 0);
	start = base_now_ns();
	assert_int_equal(net_block(nets[1], 3000), 0);
	if (!nets[1]->polls_completions)
		assert_true(base_now_ns() - start < 2500000000ull);
	await(to, 5);
	assert_int_equal(net_consume(to, 1), 0);
}

static void run_all(const char *soft, const char *arrival, const char *fault)
{
	open_pair(soft, arrival, fault);
	slots_carry_messages_within_their_window();
	lines_carry_small_messages();
	places_are_written_and_read();
	kinds_of_grants_do_not_wait_for_each_other();
	another_signature_is_a_mismatch();
	a_sleeper_wakes_or_times_out();
	close_pair();
}

static void all_holds_on_ethernet(void **state)
{
	(void)state;
	run_all("roce:1", "auto", "");
}

static void all_holds_on_infiniband(void **state)
{
	(void)state;
	run_all("ib:1", "auto", "");
}

static void all_holds_by_completions(void **state)
{
	(void)state;
	run_all("roce:1", "completion", "");
	run_all("ib:1", "completion", "");
}

static void all_holds_in_chaos(void **state)
{
	char fault[32];
	int seed;

	(void)state;
	for (seed = 1; seed <= 5; seed++) {
		snprintf(fault, sizeof(fault), "chaos=%d", seed);
		run_all("roce:1", "auto", fault);
	}
}

static void slots_take_4_megabytes_at_most(void **state)
{
	struct net_args args = {.env = &env, .all_local = true, .n_ranks = 2,
				.names = names, .crowded = true};
	struct net_record record;
	struct net *net;

	(void)state;
	setenv("WREATH_SOFT", "roce:1", 1);
	setenv("WREATH_SOFT_FAULTS", "", 1);
	assert_int_equal(base_env_load(&env), 0);
	assert_int_equal(soft_table(&args.soft), 0);
	assert_int_equal(net_open(&args, &net), 0);
	agree(net, net);
	assert_int_equal(net_conn_new(net, 1, 0, &record), 0);
	assert_true(record.mailbox_bytes <= 4 << 20);
	net_close(net);
}

static void a_record_of_another_kind_is_refused(void **state)
{
	struct net_args args = {.env = &env, .all_local = true, .n_ranks = 2,
				.names = names};
	struct net_record good, bad;
	struct net *net;

	(void)state;
	assert_int_equal(soft_table(&args.soft), 0);
	assert_int_equal(net_open(&args, &net), 0);
	agree(net, net);
	assert_int_equal(net_conn_new(net, 1, 0, &good), 0);
	bad = good;
	bad.magic++;
	assert_int_equal(net_conn_ready(net, 1, 0, &bad), WREATH_EMISMATCH);
	assert_non_null(strstr(wreath_error_text(), "another version"));
	bad = good;
	bad.link_layer = IBV_LINK_LAYER_INFINIBAND;
	assert_int_equal(net_conn_ready(net, 1, 0, &bad), WREATH_EMISMATCH);
	bad = good;
	bad.slot_bytes *= 2;
	assert_int_equal(net_conn_ready(net, 1, 0, &bad), WREATH_EMISMATCH);
	bad = good;
	bad.attempt++;
	assert_int_equal(net_conn_ready(net, 1, 0, &bad), WREATH_EMISMATCH);
	net_close(net);
}

static void a_missing_or_misspelt_device_is_named(void **state)
{
	struct net_args args = {.env = &env, .all_local = true, .n_ranks = 2,
				.names = names};
	struct net *net;

	(void)state;
	assert_int_equal(soft_table(&args.soft), 0);
	setenv("WREATH_HCA", "mlx5_9", 1);
	assert_int_equal(base_env_load(&env), 0);
	assert_int_equal(net_open(&args, &net), WREATH_EINVAL);
	assert_non_null(strstr(wreath_error_text(), "mlx5_9"));
	assert_non_null(strstr(wreath_error_text(), "soft0"));
	setenv("WREATH_HCA", "soft0:x", 1);
	assert_int_equal(base_env_load(&env), 0);
	assert_int_equal(net_open(&args, &net), WREATH_EINVAL);
	setenv("WREATH_HCA", "soft0:1", 1);
	assert_int_equal(base_env_load(&env), 0);
	assert_int_equal(net_open(&args, &net), 0);
	net_close(net);
	unsetenv("WREATH_HCA");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_holds_on_ethernet),
		cmocka_unit_test(all_holds_on_infiniband),
		cmocka_unit_test(all_holds_by_completions),
		cmocka_unit_test(all_holds_in_chaos),
		cmocka_unit_test(slots_take_4_megabytes_at_most),
		cmocka_unit_test(a_record_of_another_kind_is_refused),
		cmocka_unit_test(a_missing_or_misspelt_device_is_named),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
