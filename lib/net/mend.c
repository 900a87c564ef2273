/* SPDX-License-Identifier: MIT */
/*
 * Mending: a queue pair that broke with the network, and may work again, is
 * replaced by another one between the same mailboxes.
 *
 * A queue pair gives up on a network that is away for longer than its retries,
 * and at once where the own port goes down for a moment.  Nothing is lost by
 * that: what was sent is in the stage until the peer has given credit for it.
 * Either end begins, by putting its queue pair into error and counting what
 * has arrived over it.  Then both tell each other, over boot's connections,
 * of the next queue pair and of what has arrived; and when both queue pairs
 * are ready, each sends again what the other has not got, and the credits and
 * places that may have been lost.  A message is never sent twice, so that the
 * peer's count of them stays right.
 */
#include <string.h>

#include "net/inner.h"

/* Ports are asked no more often: it is a system call. */
#define AGAIN_NS 20000000u
/* A step that took longer was enough for one look. */
#define LONG_NS 10000000u
/*
 * How many times WREATH_QP_TIMEOUT mending may take once the peer has offered
 * its end.  Until then it may be outside of any call, or out of reach: half of
 * the deadline is for that, so that this room, which knows most of the network,
 * tells of it before a deadline or boot does.
 */
#define PATIENCE 2

int net_mend_prepare(struct net_conn *conn)
{
	conn->mend = base_alloc(1, sizeof(*conn->mend));
	if (!conn->mend)
		return WREATH_ENOMEM;
	conn->mend->n_flaps = conn->port->n_flaps;
	return 0;
}

/* Does another queue pair help?  The rest are mistakes, ours or the user's. */
static bool is_mendable(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ||
	       status == IBV_WC_LOC_QP_OP_ERR ||
	       status == IBV_WC_RESP_TIMEOUT_ERR ||
	       status == IBV_WC_WR_FLUSH_ERR;
}

static uint64_t ms_of(const struct net *net, enum base_env_name name)
{
	return (uint64_t)net->env->value[name];
}

static uint64_t patience_ns(const struct net *net, bool has_offer)
{
	uint64_t ms = ms_of(net, BASE_ENV_QP_TIMEOUT) * PATIENCE;
	uint64_t half = ms_of(net, BASE_ENV_TIMEOUT) / 2;

	return (!has_offer && half > ms ? half : ms) * 1000000u;
}

static void begin(struct net_conn *conn, const struct ibv_wc *wc)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct net_mend *mend = conn->mend;
	struct net *net = conn->net;

	conn->is_mending = true;
	conn->is_reading = false;
	conn->n_done = conn->n_posted;
	net->n_mending++;
	mend->state = NET_DRAINING;
	mend->epoch++;
	mend->has_offer = false;
	mend->peer_is_ready = false;
	mend->cause = *wc;
	mend->since_ns = base_now_ns();
	mend->until_ns = mend->since_ns + patience_ns(net, false);
	mend->next_ns = 0;
	mend->probe_until_ns = 0;
	base_log(BASE_LOG_WARN,
		 "the connection of %s to %s over %s broke (%s); trying to "
		 "mend it", net->names[net->rank], net->names[conn->peer],
		 conn->port->text, verbs_wc_name(wc->status));
	/* In error already, unless it was the peer's that broke. */
	verbs_qp_modify(conn->port->device, conn->qp, &attr, IBV_QP_STATE);
}

int net_mend_broken(struct net_conn *conn, const struct ibv_wc *wc)
{
	struct net_mend *mend = conn->mend;

	if (!is_mendable(wc->status))
		return net_completion_error(conn, wc);
	if (!conn->is_mending)
		begin(conn, wc);
	else if (mend->cause.status == IBV_WC_WR_FLUSH_ERR)
		mend->cause = *wc;
	return 0;
}

static int send_note(struct net_conn *conn, uint32_t kind)
{
	struct net_note note = {
		.magic = NET_NOTE_MAGIC,
		.kind = kind,
		.channel = (uint32_t)conn->channel,
		.epoch = conn->mend->epoch,
		.qpn = conn->local.qpn,
		.psn = conn->local.psn,
	};
	const struct net *net = conn->net;
	size_t i;

	for (i = 0; i < NET_LANES; i++)
		note.arrived[i] = conn->lanes[i].n_arrived;
	return net->notes.send(net->notes.arg, conn->peer, &note,
			       sizeof(note));
}

/* Another queue pair; the old one goes when there is one. */
static int replace(struct net_conn *conn)
{
	struct ibv_qp *old = conn->qp;
	int err;

	conn->qp = NULL;
	conn->n_recvs = 0;
	err = net_qp_new(conn);
	if (err) {
		verbs_qp_free(conn->port->device, conn->qp);
		conn->qp = old;
		conn->n_recvs = 0;
		return WREATH_EAGAIN;
	}
	verbs_qp_free(conn->port->device, old);
	conn->local.qpn = conn->qp->qp_num;
	base_random(&conn->local.psn, sizeof(conn->local.psn));
	conn->local.psn &= 0xffffff;
	conn->mend->state = NET_OFFERED;
	return send_note(conn, NET_NOTE_OFFER);
}

/* As the peer has told: 0, WREATH_EAGAIN, or an error. */
static int connect_qp(struct net_conn *conn)
{
	struct net_mend *mend = conn->mend;
	struct net_port *port = conn->port;
	size_t i;

	for (i = 0; i < NET_LANES; i++)
		if (conn->lanes[i].n_sent - mend->offer.arrived[i] >
		    NET_LINE_SLOTS)
			return base_error(
				WREATH_ENET,
				"%s says that message %u of lane %zu has "
				"arrived over %s, and %u were sent: it runs "
				"another version, or memory is corrupt",
				conn->net->names[conn->peer],
				mend->offer.arrived[i], i, port->text,
				conn->lanes[i].n_sent);
	if (verbs_port(port->device, port->number, &port->attr) ||
	    port->attr.state != IBV_PORT_ACTIVE)
		return WREATH_EAGAIN;
	conn->other.qpn = mend->offer.qpn;
	conn->other.psn = mend->offer.psn;
	if (net_qp_ready(conn))
		return WREATH_EAGAIN;
	mend->state = NET_CONNECTED;
	return send_note(conn, NET_NOTE_READY);
}

static int resume(struct net_conn *conn)
{
	struct net_mend *mend = conn->mend;
	struct net *net = conn->net;
	int err = 0;
	size_t i;

	mend->state = NET_SOUND;
	conn->is_mending = false;
	net->n_mending--;
	base_log(BASE_LOG_WARN,
		 "the connection of %s to %s over %s works again, after "
		 "%.1f s", net->names[net->rank], net->names[conn->peer],
		 conn->port->text,
		 (double)(base_now_ns() - mend->since_ns) / 1e9);
	for (i = 0; i < NET_LANES && !err; i++) {
		struct net_lane *lane = &conn->lanes[i];
		uint32_t n = mend->offer.arrived[i];

		while (n != lane->n_sent && !err)
			err = net_send_again(lane, ++n);
		if (!err)
			err = net_credit_again(lane);
	}
	return err ? err : net_places_grant_again(conn);
}

static int gave_up(struct net_conn *conn)
{
	return net_completion_error(conn, &conn->mend->cause);
}

static int step(struct net_conn *conn)
{
	struct net_mend *mend = conn->mend;
	uint64_t now = base_now_ns();
	int err = 0;

	if (now > mend->until_ns)
		return gave_up(conn);
	if (now < mend->next_ns)
		return 0;
	if (mend->state == NET_DRAINING && !conn->n_recvs)
		err = replace(conn);
	if (!err && mend->state == NET_OFFERED && mend->has_offer)
		err = connect_qp(conn);
	if (!err && mend->state == NET_CONNECTED && mend->peer_is_ready)
		err = resume(conn);
	if (err != WREATH_EAGAIN)
		return err;
	/* The try may have taken a second: the kernel looks for a neighbour. */
	mend->next_ns = base_now_ns() + AGAIN_NS;
	return 0;
}

static int on_note(struct net *net, int peer, const struct net_note *note)
{
	struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR};
	struct net_conn *conn = NULL;
	struct net_mend *mend;

	if (note->magic == NET_NOTE_MAGIC && note->channel < NET_CHANNELS_MAX)
		conn = net_conn(net, peer, (int)note->channel);
	if (!conn || !conn->mend)
		return base_error(WREATH_ENET,
				  "%s sent a note (kind %u, channel %u) about "
				  "no connection: it runs another version",
				  net->names[peer], note->kind, note->channel);
	mend = conn->mend;
	if (note->kind == NET_NOTE_SIGN) {
		mend->answer = note->sign;
		return 0;
	}
	if (note->kind == NET_NOTE_OFFER && !conn->is_mending &&
	    note->epoch == mend->epoch + 1) {
		wc.qp_num = conn->qp->qp_num;
		begin(conn, &wc);
	}
	if (!conn->is_mending || note->epoch != mend->epoch)
		return base_error(WREATH_ENET,
				  "%s and %s have mended their connection over "
				  "%s %u and %u times: they are out of step",
				  net->names[net->rank], net->names[peer],
				  conn->port->text, mend->epoch, note->epoch);
	if (note->kind == NET_NOTE_OFFER) {
		mend->offer = *note;
		mend->has_offer = true;
		mend->until_ns = base_now_ns() + patience_ns(net, true);
	} else {
		mend->peer_is_ready = true;
	}
	/* Before the next note: that may be about what comes after. */
	mend->next_ns = 0;
	return step(conn);
}

int net_mend(struct net *net)
{
	struct net_note note;
	uint64_t began_ns;
	size_t bytes;
	int peer, i;
	int err = 0;

	while (!err && net->notes.take(net->notes.arg, &peer, &note,
				       sizeof(note), &bytes)) {
		if (bytes != sizeof(note))
			note.magic = 0;
		err = on_note(net, peer, &note);
	}
	/*
	 * What takes long is done for one connection only, so that the caller
	 * comes to look at its deadline; the others have their turn after it.
	 */
	began_ns = net->n_mending ? base_now_ns() : 0;
	for (i = 0; net->n_mending && i < net->n_active && !err; i++) {
		if (!net->active[i]->is_mending)
			continue;
		err = step(net->active[i]);
		if (base_now_ns() - began_ns > LONG_NS)
			break;
	}
	return err;
}

int net_overdue(struct net *net)
{
	int i;

	for (i = 0; net->n_mending && i < net->n_active; i++)
		if (net->active[i]->is_mending)
			return gave_up(net->active[i]);
	return 0;
}
