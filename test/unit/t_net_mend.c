/* SPDX-License-Identifier: MIT */
/*
 * Goal: whenever queue pairs break, every message arrives once, in order and
 * whole; what cannot be mended is told, and nobody waits for ever.
 * Method: a pair of nets, see net_pair.h, whose queue pairs are put into error
 * at any moment.  SEED=n repeats a run.
 */
#define _GNU_SOURCE
#include <time.h>

#include "net_pair.h"

/* ---- messages whose content follows from their number ---- */

static uint32_t signature(int from, int lane, uint32_t number)
{
	return (number * 2654435761u ^ (uint32_t)(from * 64 + lane)) | 1;
}

static size_t length(uint32_t sign)
{
	return sign % 3000 + 1;
}

static void send_one(int from, int lane)
{
	struct net_lane *end = &conns[from]->lanes[lane];
	uint32_t sign = signature(from, lane, end->n_sent + 1);
	_Alignas(64) char lines[NET_LINES_MAX * BASE_LINE];

	if (lane) {
		if (!net_can_send(end, (uint32_t)nets[from]->n_slots))
			return;
		memset(net_slot(end), (int)(sign & 0xff), length(sign));
		assert_int_equal(net_send_slot(end, length(sign), sign), 0);
		return;
	}
	if (!net_can_send(end, NET_LINE_SLOTS))
		return;
	memset(lines, (int)(sign & 0xff), sizeof(lines));
	assert_int_equal(net_send_lines(end, lines, 1 + sign % NET_LINES_MAX,
					sign), 0);
}

static void receive_one(int to, int lane)
{
	struct net_lane *end = &conns[to]->lanes[lane];
	uint32_t sign = signature(!to, lane, end->n_received + 1);
	enum net_arrival arrival = lane ? net_arrived(end, sign)
					: net_line_arrived(end, 0, sign);
	const unsigned char *got;
	size_t bytes = lane ? length(sign)
			    : (1 + sign % NET_LINES_MAX) * BASE_LINE;

	if (arrival == NET_NONE)
		return;
	assert_int_equal(arrival, NET_ARRIVED);
	got = lane ? net_payload(end) : (const void *)net_lines(end);
	assert_int_equal(got[0], sign & 0xff);
	assert_int_equal(got[bytes - 1], sign & 0xff);
	assert_memory_equal(got, got + 1, bytes - 1);
	assert_int_equal(net_consume(end, 1 + draw() % 2), 0);
}

static void breaks_lose_and_double_nothing(void **unused)
{
	uint64_t end = base_now_ns() + SECONDS * 1000000000ull;
	uint32_t n_breaks = 0;
	int i, lane, steps;

	(void)unused;
	for (steps = 0; steps < 60000; steps++) {
		int rank = (int)(draw() % 2);

		lane = (int)(draw() % NET_LANES);
		if (draw() % 400 == 0) {
			break_qp(rank);
			n_breaks++;
		} else if (draw() % 3 == 0) {
			assert_int_equal(net_poll(nets[rank]), 0);
		} else if (draw() % 2) {
			send_one(rank, lane);
		} else {
			receive_one(rank, lane);
		}
	}
	/* And what is under way arrives in the end. */
	for (i = 0; i < 2; i++)
		for (lane = 0; lane < NET_LANES; lane++)
			while (conns[i]->lanes[lane].n_received !=
			       conns[!i]->lanes[lane].n_sent) {
				assert_true(base_now_ns() < end);
				poll_both();
				receive_one(i, lane);
			}
	assert_true(n_breaks > 50);
	assert_true(conns[0]->lanes[0].n_sent > 1000);
	assert_true(conns[0]->mend->epoch > 10);
	poll_until_mended();
	assert_int_equal(conns[0]->mend->epoch, conns[1]->mend->epoch);
}

static void grants_are_given_again(void **unused)
{
	uint64_t end = base_now_ns() + SECONDS * 1000000000ull;
	struct net_granting what = {.output_bytes = 10000,
				    .kinds = NET_PLACE_OUTPUT};
	uint32_t n;
	void *out;

	(void)unused;
	assert_int_equal(mem_alloc(10000, &out), 0);
	what.output = out;
	for (n = 1; n < 40; n++) {
		if (n % 3 == 0)
			break_qp(n % 2);
		assert_int_equal(net_place_grant(conns[1], &what, n), 0);
		if (n % 5 == 0)
			break_qp(1);
		while (!net_place_take(conns[0], n)) {
			assert_true(base_now_ns() < end);
			poll_both();
		}
		memset(net_slot(&conns[0]->lanes[2]), (int)n, 500);
		assert_int_equal(net_send_place(&conns[0]->lanes[2], 7, 500, n),
				 0);
		if (n % 7 == 0)
			break_qp(0);
		while (net_arrived(&conns[1]->lanes[2], n) == NET_NONE) {
			assert_true(base_now_ns() < end);
			poll_both();
		}
		assert_int_equal(((char *)out)[7], n);
		assert_int_equal(((char *)out)[506], n);
		assert_int_equal(net_consume(&conns[1]->lanes[2], 1), 0);
	}
	poll_until_mended();
	assert_int_equal(mem_free(out), 0);
}

static void what_stays_broken_is_told(void **unused)
{
	(void)unused;
	env.value[BASE_ENV_QP_TIMEOUT] = 50;
	break_qp(0);
	/* Its offer comes, and nothing after it. */
	while (!posts[0].n_in) {
		assert_int_equal(net_poll(nets[0]), 0);
		assert_int_equal(net_poll(nets[1]), 0);
	}
	posts[0].n_in = posts[0].n_out + 1;
	posts[0].is_lost = true;
	assert_int_equal(poll_to_the_end(), WREATH_ENET);
	contains("no other could be made within 0.");
	contains(names[0]);
	contains(names[1]);
	/* It stays told. */
	assert_int_equal(net_poll(nets[0]), WREATH_ENET);
}

static void a_peer_outside_of_any_call_is_waited_for(void **unused)
{
	uint64_t end;

	(void)unused;
	env.value[BASE_ENV_QP_TIMEOUT] = 50;
	break_qp(0);
	end = base_now_ns() + 300000000u;
	while (base_now_ns() < end)
		assert_int_equal(net_poll(nets[0]), 0);
	assert_true(conns[0]->is_mending);
	poll_until_mended();
}

static void a_deadline_that_comes_first_tells_of_it(void **unused)
{
	uint64_t end = base_now_ns() + SECONDS * 1000000000ull;

	(void)unused;
	assert_int_equal(net_overdue(nets[0]), 0);
	posts[1].is_lost = true;
	break_qp(0);
	while (!conns[0]->is_mending) {
		assert_true(base_now_ns() < end);
		assert_int_equal(net_poll(nets[0]), 0);
	}
	assert_int_equal(net_overdue(nets[0]), WREATH_ENET);
	contains("no other could be made");
}

static void mistakes_are_not_mended(void **unused)
{
	struct ibv_wc wc = {.status = IBV_WC_REM_ACCESS_ERR};

	(void)unused;
	assert_int_equal(net_mend_broken(conns[0], &wc), WREATH_ENET);
	contains("IBV_WC_REM_ACCESS_ERR");
	assert_false(conns[0]->is_mending);
	/* A flush comes first, and its cause behind it. */
	wc.status = IBV_WC_WR_FLUSH_ERR;
	assert_int_equal(net_mend_broken(conns[0], &wc), 0);
	wc.status = IBV_WC_LOC_PROT_ERR;
	assert_int_equal(net_mend_broken(conns[0], &wc), WREATH_ENET);
	contains("IBV_WC_LOC_PROT_ERR");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(breaks_lose_and_double_nothing,
						open_pair, close_pair),
		cmocka_unit_test_setup_teardown(grants_are_given_again,
						open_pair, close_pair),
		cmocka_unit_test_setup_teardown(what_stays_broken_is_told,
						open_pair, close_pair),
		cmocka_unit_test_setup_teardown(
			a_peer_outside_of_any_call_is_waited_for, open_pair,
			close_pair),
		cmocka_unit_test_setup_teardown(
			a_deadline_that_comes_first_tells_of_it, open_pair,
			close_pair),
		cmocka_unit_test_setup_teardown(mistakes_are_not_mended,
						open_pair, close_pair),
	};
	const char *seed = getenv("SEED");

	alarm(60);
	state = seed ? strtoull(seed, NULL, 0)
		     : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
	print_message("SEED=%llu\n", (unsigned long long)state);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
