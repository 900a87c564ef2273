/* SPDX-License-Identifier: MIT */
/*
 * Goal: whenever queue pairs break, every message arrives once, in order and
 * whole; what cannot be mended is told, and nobody waits for ever.
 * Method: two ranks' nets in one thread over the soft device, which is taken
 * for another one; notes go through queues here, and queue pairs are put into
 * error at any moment.  SEED=n repeats a run.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/inner.h"
#include "soft/soft.h"

#define N_NOTES 64
#define SECONDS 10

struct post {
	struct net_note notes[N_NOTES];
	size_t bytes[N_NOTES];
	uint32_t n_in, n_out;
	bool is_lost; /* as with a network that is away */
};

static struct base_env env;
static struct net *nets[2];
static struct net_conn *conns[2];
static struct post posts[2]; /* to each rank */
static char names[2][128] = {"rank 0 (here, pid 1)", "rank 1 (here, pid 1)"};
static int ranks[2] = {0, 1};
static uint64_t state;

static uint64_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static int put(int peer, const void *note, size_t bytes)
{
	struct post *post = &posts[peer];

	if (post->is_lost)
		return 0;
	assert_true(post->n_in - post->n_out < N_NOTES);
	assert_true(bytes <= sizeof(post->notes[0]));
	memcpy(&post->notes[post->n_in % N_NOTES], note, bytes);
	post->bytes[post->n_in++ % N_NOTES] = bytes;
	return 0;
}

static int send_note(void *arg, int peer, const void *note, size_t bytes)
{
	(void)arg;
	return put(peer, note, bytes);
}

static int ask(void *arg, int peer, const void *note, size_t bytes)
{
	const int *rank = arg;
	char reply[128];
	size_t n = net_answer(nets[peer], note, bytes, reply);

	return n ? put(*rank, reply, n) : 0;
}

static bool take_note(void *arg, int *peer, void *note, size_t size,
		      size_t *bytes)
{
	const int *rank = arg;
	struct post *post = &posts[*rank];
	uint32_t at = post->n_out % N_NOTES;

	if (post->n_in == post->n_out)
		return false;
	*peer = !*rank;
	*bytes = base_min_size(post->bytes[at], size);
	memcpy(note, &post->notes[at], *bytes);
	post->n_out++;
	return true;
}

static void agree(struct net *net, struct net *other)
{
	const bool is_local[2] = {true, true};
	char *offers = base_alloc(2, NET_OFFER_MAX);

	net_offer(net, offers + net->rank * NET_OFFER_MAX);
	net_offer(other, offers + other->rank * NET_OFFER_MAX);
	if (net_agree(net, offers, NET_OFFER_MAX, is_local))
		fail_msg("%s", wreath_error_text());
}

static int open_pair(void **unused)
{
	struct net_args args = {.env = &env, .all_local = true, .n_ranks = 2,
				.names = names};
	struct net_record records[2];
	int i;

	(void)unused;
	memset(posts, 0, sizeof(posts));
	assert_int_equal(base_env_load(&env), 0);
	assert_int_equal(soft_table(&args.soft), 0);
	for (i = 0; i < 2; i++) {
		const struct net_notes notes = {send_note, ask, take_note,
						&ranks[i]};

		args.rank = i;
		args.notes = &notes;
		assert_int_equal(net_open(&args, &nets[i]), 0);
	}
	for (i = 0; i < 2; i++) {
		agree(nets[i], nets[!i]);
		assert_int_equal(net_conn_new(nets[i], !i, 0, &records[i]), 0);
		conns[i] = net_conn(nets[i], !i, 0);
	}
	conns[0]->port->is_soft = false;
	conns[1]->port->is_soft = false;
	for (i = 0; i < 2; i++)
		assert_int_equal(net_conn_ready(nets[i], !i, 0, &records[!i]),
				 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(net_conn_reach(nets[i], !i, 0), 0);
		assert_non_null(conns[i]->mend);
	}
	return 0;
}

static int close_pair(void **unused)
{
	(void)unused;
	net_close(nets[0]);
	net_close(nets[1]);
	return 0;
}

static void poll_both(void)
{
	assert_int_equal(net_poll(nets[0]), 0);
	assert_int_equal(net_poll(nets[1]), 0);
}

static void poll_until_mended(void)
{
	uint64_t end = base_now_ns() + SECONDS * 1000000000ull;

	do {
		assert_true(base_now_ns() < end);
		poll_both();
	} while (conns[0]->is_mending || conns[1]->is_mending);
}

/* As the device does it when the port goes down. */
static void break_qp(int i)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (conns[i]->is_mending)
		return;
	assert_int_equal(verbs_qp_modify(conns[i]->port->device, conns[i]->qp,
					 &attr, IBV_QP_STATE), 0);
}

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
	uint32_t n;
	void *out;

	(void)unused;
	assert_int_equal(mem_alloc(10000, &out), 0);
	for (n = 1; n < 40; n++) {
		if (n % 3 == 0)
			break_qp(n % 2);
		assert_int_equal(net_place_grant(conns[1], out, NULL, 10000, n),
				 0);
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

static void contains(const char *what)
{
	if (!strstr(wreath_error_text(), what))
		fail_msg("'%s' is not in '%s'", what, wreath_error_text());
}

static int poll_to_the_end(void)
{
	uint64_t end = base_now_ns() + SECONDS * 1000000000ull;
	int err;

	while (!(err = net_poll(nets[0])))
		assert_true(base_now_ns() < end);
	return err;
}

static void what_stays_broken_is_told(void **unused)
{
	(void)unused;
	env.value[BASE_ENV_QP_TIMEOUT] = 50;
	posts[1].is_lost = true;
	break_qp(0);
	assert_int_equal(poll_to_the_end(), WREATH_ENET);
	contains("no other could be made within 0.1 s");
	contains(names[0]);
	contains(names[1]);
	/* It stays told. */
	assert_int_equal(net_poll(nets[0]), WREATH_ENET);
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

static void what_others_write_is_checked(void **unused)
{
	struct net_note note = {.magic = NET_NOTE_MAGIC + 1,
				.kind = NET_NOTE_OFFER, .epoch = 1};
	char ask_text[sizeof(note)];
	char reply[128];

	(void)unused;
	put(0, &note, sizeof(note));
	assert_int_equal(net_mend(nets[0]), WREATH_ENET);
	note.magic = NET_NOTE_MAGIC;
	put(0, &note, sizeof(note) - 1);
	assert_int_equal(net_mend(nets[0]), WREATH_ENET);
	note.channel = NET_CHANNELS_MAX;
	put(0, &note, sizeof(note));
	assert_int_equal(net_mend(nets[0]), WREATH_ENET);
	note.channel = 0;
	note.epoch = 2;
	put(0, &note, sizeof(note));
	assert_int_equal(net_mend(nets[0]), WREATH_ENET);
	contains("out of step");
	note.epoch = 1;
	note.kind = NET_NOTE_READY;
	put(0, &note, sizeof(note));
	assert_int_equal(net_mend(nets[0]), WREATH_ENET);
	/* More has arrived than was sent. */
	note.kind = NET_NOTE_OFFER;
	note.arrived[1] = 1;
	put(0, &note, sizeof(note));
	assert_int_equal(poll_to_the_end(), WREATH_ENET);
	contains("has arrived");
	memcpy(ask_text, &note, sizeof(note));
	assert_int_equal(net_answer(nets[0], ask_text, sizeof(note), reply), 0);
	assert_int_equal(net_answer(nets[0], ask_text, 3, reply), 0);
}

static void a_peer_is_asked_by_a_note(void **unused)
{
	const struct net_sign mine = {.seq = 5, .count = 3, .type = 10};
	struct net_sign got;

	(void)unused;
	net_sign_post(nets[1], &mine);
	assert_int_equal(net_sign_read(conns[0], 5, 1000, &got), 0);
	assert_memory_equal(&got, &mine, sizeof(mine));
	assert_int_equal(net_sign_read(conns[0], 6, 20, &got), WREATH_EAGAIN);
	break_qp(0);
	assert_int_equal(net_sign_read(conns[0], 5, 1000, &got), 0);
	poll_until_mended();
}

static void silence_is_noticed(void **unused)
{
	uint64_t end = base_now_ns() + SECONDS * 1000000000ull;

	(void)unused;
	/* A port that came up again: whoever watches puts it to the test. */
	conns[0]->port->n_flaps++;
	nets[0]->watch_ns = 0;
	assert_int_equal(net_watch(nets[0]), 0);
	assert_true(conns[0]->mend->probe_until_ns);
	while (conns[0]->mend->probe_until_ns) {
		assert_true(base_now_ns() < end);
		poll_both();
		assert_int_equal(net_watch(nets[0]), 0);
	}
	assert_false(conns[0]->is_mending);
	/* One that is never answered. */
	conns[0]->mend->probe = conns[0]->n_posted + 1;
	conns[0]->mend->probe_until_ns = base_now_ns();
	nets[0]->watch_ns = 0;
	assert_int_equal(net_watch(nets[0]), 0);
	assert_true(conns[0]->is_mending);
	poll_until_mended();
	assert_int_equal(conns[0]->mend->epoch, 1);
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
			a_deadline_that_comes_first_tells_of_it, open_pair,
			close_pair),
		cmocka_unit_test_setup_teardown(mistakes_are_not_mended,
						open_pair, close_pair),
		cmocka_unit_test_setup_teardown(what_others_write_is_checked,
						open_pair, close_pair),
		cmocka_unit_test_setup_teardown(a_peer_is_asked_by_a_note,
						open_pair, close_pair),
		cmocka_unit_test_setup_teardown(silence_is_noticed, open_pair,
						close_pair),
	};
	const char *seed = getenv("SEED");

	alarm(60);
	state = seed ? strtoull(seed, NULL, 0)
		     : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
	print_message("SEED=%llu\n", (unsigned long long)state);
	setenv("WREATH_SOFT", "roce:1", 1);
	setenv("WREATH_ARRIVAL", "completion", 1);
	setenv("WREATH_LOG", "off", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
