/* SPDX-License-Identifier: MIT */
/*
 * One connection's way through librdmacm.  Who asks: an address, a route, a
 * request; with the reply the queue pair is readied and the connection is
 * established.  Who is asked: a request, whose proof is checked before anything
 * else, a ready queue pair, a reply.
 *
 * On iWARP there is no reply to answer: the kernel readies the queue pair of
 * who asks, and ESTABLISHED brings the peer's card.  Both ways are taken as
 * they come.
 *
 * What fails is tried again until the caller's deadline, since most causes
 * pass: a path that comes up, a lost packet, a queue pair's number that the
 * peer's kernel still remembers.
 */
#include <stdio.h>
#include <string.h>

#include "net/cm.h"

/* A lost packet of the resolution is seen after so long, and tried again. */
#define CM_RESOLVE_MS 2000
/* Between tries: doubles from the first to the last. */
#define CM_PAUSE_MS 50
#define CM_PAUSE_MAX_MS 1000

static void pause_before_retry(struct net_cm_conn *cm)
{
	uint64_t ms = CM_PAUSE_MS;
	unsigned int i;

	for (i = 0; i < cm->n_tries && ms < CM_PAUSE_MAX_MS; i++)
		ms *= 2;
	cm->retry_ns = base_now_ns() + ms * 1000000u;
	cm->n_tries++;
}

/* A queue pair that has met a peer is not ready for another: take a fresh one,
 * with its receives, and with a number that nobody remembers. */
static int renew_qp(struct net_conn *conn)
{
	int err;

	if (!conn->cm->is_used)
		return 0;
	verbs_qp_free(conn->port->device, conn->qp);
	conn->qp = NULL;
	conn->n_recvs = 0;
	conn->cm->is_used = false;
	err = net_qp_new(conn);
	if (!err)
		conn->local.qpn = conn->qp->qp_num;
	return err;
}

/* This try has failed; the next one is due after a pause. */
static int give_up(struct net_conn *conn, const char *why)
{
	struct net_cm_conn *cm = conn->cm;

	snprintf(cm->cause, sizeof(cm->cause), "%s", why);
	verbs_cm_free(cm->id);
	cm->id = NULL;
	cm->state = NET_CM_IDLE;
	pause_before_retry(cm);
	return renew_qp(conn);
}

int net_cm_try(struct net_conn *conn)
{
	const struct net *net = conn->net;
	struct net_cm_conn *cm = conn->cm;
	struct verbs_cm_way way = {
		.traffic_class = net_traffic_class(conn->port, net->env),
		.ack_timeout = net_timeout_exponent(
			net->env->value[BASE_ENV_QP_TIMEOUT]),
		.timeout_ms = CM_RESOLVE_MS,
	};

	net_cm_address(net, conn->port, &conn->gid, &way.from);
	/* A link-local address of the peer is on the interface of ours. */
	way.to = way.from;
	way.to.gid = conn->other_gid;
	way.to.number = conn->other.cm_number;
	if (verbs_cm_resolve(conn->port->cm->channel, &way, conn, &cm->id))
		return give_up(conn, base_error_text());
	cm->state = NET_CM_RESOLVES;
	return 0;
}

/* ---- cards ---- */

static void show_card(const struct net_conn *conn, enum net_card_kind kind,
		      unsigned char bytes[NET_CARD_BYTES],
		      struct verbs_cm_param *param)
{
	const struct net_record *mine = &conn->local;
	struct net_card card = {
		.kind = (uint8_t)kind,
		.channel = (uint8_t)conn->channel,
		.rank = (uint16_t)conn->net->rank,
		.n_slots = mine->n_slots,
		.slot_bytes = mine->slot_bytes,
		.address = mine->address,
		.board = mine->board,
		.rkey = mine->rkey,
		.board_rkey = mine->board_rkey,
	};

	net_card_write(&card, conn->other.token, bytes);
	memset(param, 0, sizeof(*param));
	param->qpn = conn->qp->qp_num;
	param->retries = NET_RETRIES;
	param->rnr_retries = NET_RETRIES;
	param->n_reads = 1;
	param->data = bytes;
	param->bytes = NET_CARD_BYTES;
}

static bool is_of_peer(const struct net_conn *conn,
		       const struct verbs_cm_event *event,
		       const struct net_card *card)
{
	return card->rank == conn->peer && card->channel == conn->channel &&
	       card->n_slots == conn->local.n_slots &&
	       card->slot_bytes == conn->local.slot_bytes &&
	       net_card_is_genuine(event->data, event->bytes,
				   conn->local.token);
}

static void take_card(struct net_conn *conn, const struct verbs_cm_event *event,
		      const struct net_card *card)
{
	conn->other.qpn = event->qpn;
	conn->other.address = card->address;
	conn->other.rkey = card->rkey;
	conn->other.board = card->board;
	conn->other.board_rkey = card->board_rkey;
	conn->rkey = card->rkey;
}

/* The peer's answer; false where it is not the peer's. */
static bool take_reply(struct net_conn *conn,
		       const struct verbs_cm_event *event)
{
	struct net_card card;

	if (!net_card_read(event->data, event->bytes, &card) ||
	    card.kind != NET_CARD_REPLY || !is_of_peer(conn, event, &card))
		return false;
	take_card(conn, event, &card);
	return true;
}

/* ---- the queue pair ---- */

/*
 * The kernel says what the transport needs; what it does not know better is
 * ours, so that both ways of connecting make the same queue pairs.
 */
static void adjust(struct net_conn *conn, struct ibv_qp_attr *attr, int mask)
{
	const struct base_env *env = conn->net->env;
	uint8_t mtu = conn->other.mtu < conn->local.mtu ? conn->other.mtu
							: conn->local.mtu;
	uint8_t timeout =
		net_timeout_exponent(env->value[BASE_ENV_QP_TIMEOUT]);

	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ;
	attr->max_dest_rd_atomic = 1;
	attr->max_rd_atomic = 1;
	attr->min_rnr_timer = NET_RNR_TIMER;
	attr->retry_cnt = NET_RETRIES;
	attr->rnr_retry = NET_RETRIES;
	/* The fabric's own packet life time may ask for a longer one. */
	if (attr->timeout < timeout)
		attr->timeout = timeout;
	/* The kernel looks at the MTU of one end only. */
	if (mtu && (uint8_t)attr->path_mtu > mtu)
		attr->path_mtu = (enum ibv_mtu)mtu;
	if (env->is_set[BASE_ENV_SL])
		attr->ah_attr.sl = (uint8_t)env->value[BASE_ENV_SL];
	if (mask & IBV_QP_AV) {
		conn->cm->ah = attr->ah_attr;
		conn->other.lid = attr->ah_attr.dlid;
	}
}

static int make_ready(struct net_conn *conn)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR,
						   IBV_QPS_RTS};
	struct ibv_qp_attr attr;
	size_t i;
	int mask;
	int err = 0;

	conn->cm->is_used = true;
	for (i = 0; i < base_countof(states) && !err; i++) {
		err = verbs_cm_qp_attr(conn->cm->id, states[i], &attr, &mask);
		if (err || !(mask & IBV_QP_STATE))
			continue;
		adjust(conn, &attr, mask);
		err = verbs_qp_modify(conn->port->device, conn->qp, &attr,
				      mask);
	}
	return err;
}

/* ---- who asks ---- */

static int on_address(struct net_conn *conn)
{
	const struct net_port *port = conn->port;
	struct net_cm_conn *cm = conn->cm;

	if (!verbs_cm_is_on(cm->id, port->device, port->number))
		return give_up(conn, "the way to the peer's address leads "
				     "through another device");
	if (verbs_cm_route(cm->id, CM_RESOLVE_MS))
		return give_up(conn, base_error_text());
	cm->state = NET_CM_ROUTES;
	return 0;
}

static int on_route(struct net_conn *conn)
{
	unsigned char bytes[NET_CARD_BYTES];
	struct verbs_cm_param param;

	show_card(conn, NET_CARD_REQUEST, bytes, &param);
	if (verbs_cm_connect(conn->cm->id, &param))
		return give_up(conn, base_error_text());
	conn->cm->state = NET_CM_ASKS;
	return 0;
}

static int on_reply(struct net_conn *conn, const struct verbs_cm_event *event)
{
	if (!take_reply(conn, event))
		return give_up(conn, "what answered is not the peer");
	if (make_ready(conn) || verbs_cm_establish(conn->cm->id))
		return give_up(conn, base_error_text());
	conn->cm->state = NET_CM_DONE;
	return 0;
}

static int on_established(struct net_conn *conn,
			  const struct verbs_cm_event *event)
{
	if (conn->cm->state == NET_CM_ASKS && !take_reply(conn, event))
		return give_up(conn, "what answered is not the peer");
	if (conn->cm->state == NET_CM_ASKS ||
	    conn->cm->state == NET_CM_ACCEPTS)
		conn->cm->state = NET_CM_DONE;
	return 0;
}

int net_cm_on_event(struct net_conn *conn, const struct verbs_cm_event *event)
{
	enum net_cm_state state = conn->cm->state;

	if (event->id != conn->cm->id)
		return 0;
	switch (event->what) {
	case VERBS_CM_ADDRESS:
		return state == NET_CM_RESOLVES ? on_address(conn) : 0;
	case VERBS_CM_ROUTE:
		return state == NET_CM_ROUTES ? on_route(conn) : 0;
	case VERBS_CM_REPLY:
		return state == NET_CM_ASKS ? on_reply(conn, event) : 0;
	case VERBS_CM_ESTABLISHED:
		return on_established(conn, event);
	case VERBS_CM_FAILED:
	case VERBS_CM_REJECTED:
	case VERBS_CM_DISCONNECTED:
		/* A peer that is done may leave: boot tells of deaths. */
		if (state == NET_CM_DONE)
			return 0;
		return give_up(conn, event->text);
	case VERBS_CM_GONE:
		conn->port->is_gone = true;
		return base_error(WREATH_EDEVICE,
				  "%s: the device of %s is gone (%s)",
				  conn->net->names[conn->net->rank],
				  conn->port->text, event->text);
	case VERBS_CM_REQUEST:
	case VERBS_CM_NOTHING:
		break;
	}
	return 0;
}

/* ---- who is asked ---- */

/* The connection that a request is for, or NULL for a stranger's. */
static struct net_conn *find_asked(struct net *net, const struct net_port *port,
				   const struct verbs_cm_event *event,
				   struct net_card *card)
{
	struct net_conn *conn;

	if (!net_card_read(event->data, event->bytes, card) ||
	    card->kind != NET_CARD_REQUEST || card->rank >= net->n_ranks)
		return NULL;
	conn = net_conn(net, card->rank, card->channel);
	if (!conn || !conn->cm || conn->port != port || net_cm_asks(conn) ||
	    conn->cm->state == NET_CM_DONE || !conn->other.cm_number)
		return NULL;
	if (!is_of_peer(conn, event, card) ||
	    !verbs_cm_is_on(event->id, port->device, port->number))
		return NULL;
	return conn;
}

int net_cm_on_request(struct net *net, struct net_port *port,
		      const struct verbs_cm_event *event)
{
	unsigned char bytes[NET_CARD_BYTES];
	struct verbs_cm_param param;
	struct net_card card;
	struct net_conn *conn = find_asked(net, port, event, &card);
	int err;

	if (!conn) {
		base_log(BASE_LOG_INFO, "%s: a request for a connection that "
					"is none of ours was refused",
			 port->text);
		verbs_cm_reject(event->id, NULL, 0);
		return 0;
	}
	/* The peer tries again: what came of its last try is of no use. */
	verbs_cm_free(conn->cm->id);
	conn->cm->id = event->id;
	err = renew_qp(conn);
	if (err)
		return err;
	take_card(conn, event, &card);
	show_card(conn, NET_CARD_REPLY, bytes, &param);
	if (make_ready(conn) || verbs_cm_accept(event->id, &param, conn))
		return give_up(conn, base_error_text());
	conn->cm->state = NET_CM_ACCEPTS;
	return 0;
}
