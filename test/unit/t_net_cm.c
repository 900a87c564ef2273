/* SPDX-License-Identifier: MIT */
/*
 * Goal: librdmacm makes the queue pairs that the exchange would make, between
 * the ranks that boot has joined, and between no others.
 * Method: two ranks over a real device, and strangers that ask what they like,
 * through librdmacm and by rping where it is installed; a rank whose token is
 * not the right one.  Without a device, skipped.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include "net_sides.h"

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

/* Ask rank 0's listener for a connection, with @data; what came of it. */
static enum verbs_cm_what ask(struct net *net, const struct net_record *record,
			      const void *data, uint8_t bytes)
{
	struct verbs_cm_param param = {.qpn = 17, .retries = 3,
				       .rnr_retries = 3, .n_reads = 1,
				       .data = data, .bytes = bytes};
	struct verbs_cm_way way = {.traffic_class = -1, .ack_timeout = 18,
				   .timeout_ms = 2000};
	struct rdma_event_channel *channel;
	struct verbs_cm_event event;
	enum verbs_cm_what what;
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
	what = await_event(channel, &event);
	verbs_cm_free(id);
	verbs_cm_close(channel);
	return what;
}

static void expect_refused(struct net *net, const struct net_record *record,
			   const void *data, uint8_t bytes)
{
	assert_int_equal(ask(net, record, data, bytes), VERBS_CM_REJECTED);
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
	connect_both();
	expect_attributes(sides[0].net, 1);
	expect_attributes(sides[1].net, 0);
	close_both();
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

/* The first try's queue pair has met somebody: the second needs another. */
static void peer_that_gives_up_and_asks_again_is_connected(void **state)
{
	struct net_card card = {.kind = NET_CARD_REQUEST, .rank = 1};
	unsigned char bytes[NET_CARD_BYTES];
	int i;

	(void)state;
	open_both();
	start(&sides[0]);
	card.n_slots = sides[0].records[0].n_slots;
	card.slot_bytes = sides[0].records[0].slot_bytes;
	net_card_write(&card, sides[0].records[0].token, bytes);
	/* Its card is right, and it goes before the connection is there. */
	for (i = 0; i < 3; i++)
		assert_int_equal(ask(sides[1].net, &sides[0].records[0], bytes,
				     sizeof(bytes)), VERBS_CM_REPLY);
	start(&sides[1]);
	finish(&sides[0]);
	finish(&sides[1]);
	expect_connected();
	/* Mending waits for as many to come back as it has counted. */
	assert_int_equal(net_conn(sides[0].net, 1, 0)->n_recvs, NET_RQ_DEPTH);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_pairs_are_as_the_exchange_makes_them),
		cmocka_unit_test(strangers_are_refused_and_disturb_nobody),
		cmocka_unit_test(
			peer_that_gives_up_and_asks_again_is_connected),
		cmocka_unit_test(peer_without_the_token_is_refused_to_the_end),
	};
	int status = sides_init();

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
