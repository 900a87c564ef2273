/* SPDX-License-Identifier: MIT */
/*
 * Goal: librdmacm connects two ranks whose messages then arrive, whoever else
 * asks meanwhile; strangers are refused; who does not answer is named within
 * the deadline; nothing is left behind.
 * Method: two ranks' nets, each in a thread of its own, over the first device
 * of libibverbs, or WREATH_HCA; strangers that send what they like, through
 * librdmacm and by rping where it is installed.  Without a device, skipped.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/cm.h"

#define N_CHANNELS 2

static struct base_env env;
static const struct verbs_table *ibv;
static char names[2][128] = {"rank 0 (here, pid 1)", "rank 1 (here, pid 1)"};

struct side {
	struct net *net;
	struct net_record records[N_CHANNELS];
	pthread_t thread;
	int timeout_ms;
	int err;
	char text[512];
};

static struct side sides[2];

static void open_side(int rank)
{
	struct net_args args = {.env = &env, .ibv = ibv, .rank = rank,
				.n_ranks = 2, .names = names,
				.all_local = true, .all_ports = true};
	struct side *side = &sides[rank];

	memset(side, 0, sizeof(*side));
	side->timeout_ms = 20000;
	assert_int_equal(net_open(&args, &side->net), 0);
}

/* What comm does: all offers to all, and the records. */
static void agree(int rank)
{
	const bool is_local[2] = {true, true};
	char *offers = base_alloc(2, NET_OFFER_MAX);
	struct side *side = &sides[rank];
	int c, i;

	for (i = 0; i < 2; i++)
		net_offer(sides[i].net, offers + i * NET_OFFER_MAX);
	assert_int_equal(net_agree(side->net, offers, NET_OFFER_MAX, is_local),
			 0);
	for (c = 0; c < N_CHANNELS; c++)
		assert_int_equal(net_conn_new(side->net, !rank, c,
					      &side->records[c]), 0);
}

static void open_to_agree(void)
{
	open_side(0);
	open_side(1);
	agree(0);
	agree(1);
}

static void open_both(void)
{
	int c, i;

	open_to_agree();
	for (i = 0; i < 2; i++)
		for (c = 0; c < N_CHANNELS; c++)
			assert_int_equal(net_conn_ready(sides[i].net, !i, c,
							&sides[!i].records[c]),
					 0);
}

static void close_both(void)
{
	net_close(sides[0].net);
	net_close(sides[1].net);
}

static void *connect_side(void *arg)
{
	struct side *side = arg;

	side->err = net_connect(side->net, side->timeout_ms, NULL, NULL);
	snprintf(side->text, sizeof(side->text), "%s", wreath_error_text());
	return NULL;
}

static void start(struct side *side)
{
	assert_int_equal(pthread_create(&side->thread, NULL, connect_side,
					side), 0);
}

static void finish(struct side *side)
{
	assert_int_equal(pthread_join(side->thread, NULL), 0);
}

static void expect_connected(void)
{
	int i;

	for (i = 0; i < 2; i++)
		if (sides[i].err)
			fail_msg("rank %d: %s", i, sides[i].text);
}

/* Both ends of each channel: a slot there, a slot back. */
static void talk(void)
{
	int c, i;

	for (i = 0; i < 2; i++)
		for (c = 0; c < N_CHANNELS; c++)
			assert_int_equal(net_conn_reach(sides[i].net, !i, c),
					 0);
	for (i = 0; i < 2 * N_CHANNELS; i++) {
		struct net_lane *from, *to;
		uint64_t end = base_now_ns() + 5000000000ull;
		const unsigned char *got;

		c = i / 2;
		from = &net_conn(sides[i % 2].net, !(i % 2), c)->lanes[0];
		to = &net_conn(sides[!(i % 2)].net, i % 2, c)->lanes[0];
		memset(net_slot(from), 0x40 + i, 3000);
		assert_int_equal(net_send_slot(from, 3000, 5), 0);
		while (net_arrived(to, 5) != NET_ARRIVED) {
			assert_true(base_now_ns() < end);
			assert_int_equal(net_poll(sides[0].net), 0);
			assert_int_equal(net_poll(sides[1].net), 0);
		}
		got = net_payload(to);
		assert_int_equal(got[0], 0x40 + i);
		assert_int_equal(got[2999], 0x40 + i);
	}
}

static int n_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* ---- strangers ---- */

/* The listener's address that a record tells of. */
static void address_of(struct net *net, const struct net_record *record,
		       struct verbs_cm_address *out)
{
	const struct net_conn *conn = net_conn(net, 0, 0);

	net_cm_address(net, conn->port, &conn->other_gid, out);
	out->number = record->cm_number;
}

static enum verbs_cm_what await_event(struct rdma_event_channel *channel,
				      struct verbs_cm_event *event)
{
	struct pollfd fd = {.fd = verbs_cm_fd(channel), .events = POLLIN};

	do {
		assert_int_equal(poll(&fd, 1, 10000), 1);
		if (verbs_cm_event(channel, event))
			fail_msg("%s", wreath_error_text());
	} while (event->what == VERBS_CM_NOTHING);
	return event->what;
}

/* Ask rank 0's listener for a connection, with @data. */
static void expect_refused(struct net *net, const struct net_record *record,
			   const void *data, uint8_t bytes)
{
	struct verbs_cm_param param = {.qpn = 17, .retries = 3,
				       .rnr_retries = 3, .n_reads = 1,
				       .data = data, .bytes = bytes};
	struct verbs_cm_way way = {.traffic_class = -1, .ack_timeout = 18,
				   .timeout_ms = 2000};
	struct rdma_event_channel *channel;
	struct verbs_cm_event event;
	struct rdma_cm_id *id;

	assert_int_equal(verbs_cm_open(&channel), 0);
	address_of(net, record, &way.to);
	way.from = way.to;
	way.from.number = 0;
	assert_int_equal(verbs_cm_resolve(channel, &way, NULL, &id), 0);
	assert_int_equal(await_event(channel, &event), VERBS_CM_ADDRESS);
	assert_int_equal(verbs_cm_route(id, 2000), 0);
	assert_int_equal(await_event(channel, &event), VERBS_CM_ROUTE);
	assert_int_equal(verbs_cm_connect(id, &param), 0);
	assert_int_equal(await_event(channel, &event), VERBS_CM_REJECTED);
	verbs_cm_free(id);
	verbs_cm_close(channel);
}

/* A program that was not written here.  It must fail, and end. */
static void rping_is_refused(struct net *net,
			     const struct net_record *record)
{
	char address[64], number[16];
	char *const args[] = {(char *)(uintptr_t)"rping",
			      (char *)(uintptr_t)"-c",
			      (char *)(uintptr_t)"-a", address,
			      (char *)(uintptr_t)"-p", number,
			      (char *)(uintptr_t)"-C",
			      (char *)(uintptr_t)"1", NULL};
	extern char **environ;
	int status;
	pid_t pid;

	net_gid_text(&net_conn(net, 0, 0)->other_gid,
		     address);
	snprintf(number, sizeof(number), "%u", record->cm_number);
	if (posix_spawnp(&pid, "rping", NULL, NULL, args, environ)) {
		printf("rping is not installed\n");
		return;
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_not_equal(status, 0);
}

static void ask_as_strangers(struct net *net, const struct net_record *record)
{
	struct net_card card = {.kind = NET_CARD_REQUEST, .rank = 1,
				.n_slots = record->n_slots,
				.slot_bytes = record->slot_bytes};
	unsigned char bytes[NET_CARD_BYTES], token[NET_TOKEN_BYTES];
	size_t i;

	expect_refused(net, record, NULL, 0);
	memset(bytes, 0xff, sizeof(bytes));
	expect_refused(net, record, bytes, sizeof(bytes));
	expect_refused(net, record, bytes, 1);
	/* A card that is well made, by who has no token. */
	base_random(token, sizeof(token));
	net_card_write(&card, token, bytes);
	expect_refused(net, record, bytes, sizeof(bytes));
	/* With the token, and of nobody who is expected. */
	memcpy(token, record->token, sizeof(token));
	for (i = 0; i < 4; i++) {
		struct net_card wrong = card;

		wrong.rank = i == 0 ? 0 : i == 1 ? 2 : i == 2 ? 65535 : 1;
		wrong.channel = i == 3 ? 3 : 0;
		net_card_write(&wrong, token, bytes);
		expect_refused(net, record, bytes, sizeof(bytes));
	}
	card.kind = NET_CARD_REPLY;
	net_card_write(&card, token, bytes);
	expect_refused(net, record, bytes, sizeof(bytes));
	rping_is_refused(net, record);
}

/* ---- tests ---- */

/* Both ways of connecting shall make the same queue pairs. */
static void expect_attributes(struct net *net, int peer)
{
	struct ibv_qp_init_attr init;
	int c;

	for (c = 0; c < N_CHANNELS; c++) {
		struct net_conn *conn = net_conn(net, peer, c);
		struct ibv_qp_attr attr;

		memset(&attr, 0, sizeof(attr));
		assert_int_equal(ibv->query_qp(conn->qp, &attr,
					       IBV_QP_STATE | IBV_QP_AV |
						       IBV_QP_PATH_MTU |
						       IBV_QP_TIMEOUT |
						       IBV_QP_RETRY_CNT |
						       IBV_QP_MIN_RNR_TIMER,
					       &init), 0);
		assert_int_equal(attr.qp_state, IBV_QPS_RTS);
		assert_int_equal(attr.path_mtu, conn->local.mtu);
		assert_int_equal(attr.min_rnr_timer, NET_RNR_TIMER);
		assert_int_equal(attr.retry_cnt, NET_RETRIES);
		assert_true(attr.timeout >= net_timeout_exponent(4000));
		if (conn->port->attr.link_layer != IBV_LINK_LAYER_ETHERNET)
			continue;
		assert_int_equal(attr.ah_attr.grh.traffic_class, 96);
		assert_memory_equal(&attr.ah_attr.grh.dgid, &conn->other_gid,
				    16);
	}
}

static void queue_pairs_are_as_the_exchange_makes_them(void **state)
{
	(void)state;
	open_both();
	start(&sides[0]);
	start(&sides[1]);
	finish(&sides[0]);
	finish(&sides[1]);
	expect_connected();
	expect_attributes(sides[0].net, 1);
	expect_attributes(sides[1].net, 0);
	close_both();
}

static void ranks_are_connected_and_nothing_is_left(void **state)
{
	int before = 0;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		open_both();
		start(&sides[0]);
		start(&sides[1]);
		finish(&sides[0]);
		finish(&sides[1]);
		expect_connected();
		talk();
		close_both();
		/* The first time leaves what the libraries keep. */
		if (i)
			assert_int_equal(n_files(), before);
		before = n_files();
	}
}

static void strangers_are_refused_and_disturb_nobody(void **state)
{
	(void)state;
	open_both();
	/* Rank 0 listens and waits; its peer comes after the strangers. */
	start(&sides[0]);
	ask_as_strangers(sides[1].net, &sides[0].records[0]);
	start(&sides[1]);
	finish(&sides[0]);
	finish(&sides[1]);
	expect_connected();
	/* Nobody listens any more. */
	expect_refused(sides[1].net, &sides[0].records[0], NULL, 0);
	talk();
	close_both();
}

static void peer_without_the_token_is_refused_to_the_end(void **state)
{
	int c;

	(void)state;
	open_to_agree();
	for (c = 0; c < N_CHANNELS; c++) {
		struct net_record wrong = sides[0].records[c];

		wrong.token[c * 15] ^= 1;
		assert_int_equal(net_conn_ready(sides[1].net, 0, c, &wrong),
				 0);
		assert_int_equal(net_conn_ready(sides[0].net, 1, c,
						&sides[1].records[c]), 0);
	}
	sides[0].timeout_ms = 1500;
	sides[1].timeout_ms = 1500;
	start(&sides[0]);
	start(&sides[1]);
	finish(&sides[0]);
	finish(&sides[1]);
	assert_int_equal(sides[0].err, WREATH_ENET);
	assert_int_equal(sides[1].err, WREATH_ENET);
	assert_non_null(strstr(sides[0].text, "has not asked"));
	assert_non_null(strstr(sides[1].text, "REJECTED"));
	assert_non_null(strstr(sides[1].text, names[0]));
	close_both();
}

static void silent_peer_is_named_within_the_deadline(void **state)
{
	uint64_t start_ns;
	int i;

	(void)state;
	/* Who asks a rank that does not answer, and who is not asked. */
	for (i = 0; i < 2; i++) {
		open_both();
		sides[i].timeout_ms = 700;
		start_ns = base_now_ns();
		start(&sides[i]);
		finish(&sides[i]);
		assert_true(base_now_ns() - start_ns < 3000000000ull);
		assert_int_equal(sides[i].err, WREATH_ENET);
		assert_non_null(strstr(sides[i].text, names[!i]));
		close_both();
	}
}

static void who_begins_late_is_connected_all_the_same(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		open_both();
		start(&sides[i]);
		base_sleep_ms(800);
		start(&sides[!i]);
		finish(&sides[0]);
		finish(&sides[1]);
		expect_connected();
		talk();
		close_both();
	}
}

static int stop_at_once(void *arg)
{
	int *n = arg;

	return ++*n > 3 ? WREATH_EABORTED : 0;
}

static void wait_ends_when_it_is_stopped(void **state)
{
	uint64_t start_ns = base_now_ns();
	int n = 0;

	(void)state;
	open_both();
	assert_int_equal(net_connect(sides[0].net, 20000, stop_at_once, &n),
			 WREATH_EABORTED);
	assert_true(base_now_ns() - start_ns < 5000000000ull);
	close_both();
}

static int leave(const char *why)
{
	printf("%s\n", why);
	return 77;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_are_connected_and_nothing_is_left),
		cmocka_unit_test(queue_pairs_are_as_the_exchange_makes_them),
		cmocka_unit_test(strangers_are_refused_and_disturb_nobody),
		cmocka_unit_test(peer_without_the_token_is_refused_to_the_end),
		cmocka_unit_test(silent_peer_is_named_within_the_deadline),
		cmocka_unit_test(who_begins_late_is_connected_all_the_same),
		cmocka_unit_test(wait_ends_when_it_is_stopped),
	};
	struct rdma_event_channel *channel;
	struct verbs_name name;
	int n = 0;

	alarm(110);
	setenv("WREATH_CONNECT", "cm", 1);
	setenv("WREATH_LOG", "off", 0);
	setenv("WREATH_CHANNELS", "2", 1);
	setenv("WREATH_TRAFFIC_CLASS", "96", 1);
	if (base_env_load(&env))
		return 1;
	if (verbs_ibv(&ibv) || verbs_list(ibv, &name, 1, &n) || !n)
		return leave("libibverbs has no device here");
	if (verbs_cm_open(&channel))
		return leave("librdmacm cannot be used here");
	verbs_cm_close(channel);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
