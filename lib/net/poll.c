/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "net/inner.h"

#define NET_POLL_BATCH 16

static int on_immediate(struct net_conn *conn, uint32_t imm)
{
	uint32_t i_lane = imm >> NET_IMM_LANE_SHIFT;
	uint32_t number = imm >> NET_IMM_NUMBER_SHIFT & NET_IMM_NUMBER;
	struct net_lane *lane;
	uint32_t due;

	if (imm == NET_IMM_WAKE)
		return 0;
	if (i_lane >= NET_LANES)
		return base_error(WREATH_ENET,
				  "%s sent a message for lane %u over %s; "
				  "there are %d: it runs another version, or "
				  "memory is corrupt",
				  conn->net->names[conn->peer], i_lane,
				  conn->port->text, NET_LANES);
	lane = &conn->lanes[i_lane];
	due = lane->n_arrived + 1;
	if ((due & NET_IMM_NUMBER) != number ||
	    due - lane->n_received > NET_LINE_SLOTS)
		return base_error(WREATH_ENET,
				  "message %u of lane %u from %s over %s came "
				  "when %u was due: one was lost",
				  number, i_lane,
				  conn->net->names[conn->peer],
				  conn->port->text, due & NET_IMM_NUMBER);
	lane->arrived[lane->n_arrived % NET_LINE_SLOTS] =
		imm & NET_IMM_SIGNATURE;
	lane->n_arrived = due;
	return 0;
}

static int on_completion(struct net *net, const struct ibv_wc *wc)
{
	uint32_t at = NET_WR_CONN(wc->wr_id);
	struct net_conn *conn = NULL;
	int err;

	if (at < (uint32_t)net->n_ranks * NET_CHANNELS_MAX)
		conn = net->conns[at];
	if (!conn)
		return base_error(WREATH_ENET,
				  "a completion for a request that was never "
				  "made (wr_id 0x%llx): the device is broken",
				  (unsigned long long)wc->wr_id);
	/* Of a queue pair that has been replaced. */
	if (conn->mend && wc->qp_num != conn->qp->qp_num)
		return 0;
	if (wc->wr_id & NET_WR_RECV)
		conn->n_recvs--;
	if (wc->status != IBV_WC_SUCCESS)
		return conn->mend ? net_mend_broken(conn, wc)
				  : net_completion_error(conn, wc);
	if (!(wc->wr_id & NET_WR_RECV)) {
		conn->n_done = (uint32_t)wc->wr_id;
		if (wc->wr_id & NET_WR_READ)
			conn->is_reading = false;
		return 0;
	}
	err = on_immediate(conn, ntohl(wc->imm_data));
	if (err || (conn->is_mending && conn->mend->state == NET_DRAINING))
		return err;
	return net_recv_post(conn);
}

static int poll_port(struct net *net, struct net_port *port)
{
	struct ibv_wc wc[NET_POLL_BATCH];
	int i, n;

	do {
		n = ibv_poll_cq(port->cq, NET_POLL_BATCH, wc);
		if (n < 0)
			return base_error(WREATH_EDEVICE,
					  "the completion queue of %s is "
					  "broken: %s", port->text,
					  strerror(-n));
		for (i = 0; i < n; i++) {
			int err = on_completion(net, &wc[i]);

			if (err)
				return err;
		}
	} while (n == NET_POLL_BATCH);
	return 0;
}

int net_poll(struct net *net)
{
	int i;

	for (i = 0; i < net->n_started && !net->failed; i++)
		net->failed = poll_port(net, net->started[i]);
	if (net->notes.send && !net->failed)
		net->failed = net_mend(net);
	return net->failed;
}

static void drain_events(struct net_port *port)
{
	struct ibv_cq *cq;
	void *context;

	if (port->device->verbs->get_cq_event(port->channel, &cq, &context))
		return; /* Another wait took it. */
	port->device->verbs->ack_cq_events(cq, 1);
}

int net_block(struct net *net, int timeout_ms)
{
	struct pollfd fds[NET_PORTS_MAX];
	int err, i, n;

	for (i = 0; i < net->n_active; i++) {
		struct net_conn *conn = net->active[i];

		if (!conn->ready || !conn->port->line_order)
			continue;
		err = net_wake_ask(conn);
		if (err)
			return err;
	}
	for (i = 0; i < net->n_started; i++) {
		if (ibv_req_notify_cq(net->started[i]->cq, 0))
			return base_error(WREATH_EDEVICE,
					  "cannot arm the completion queue of "
					  "%s", net->started[i]->text);
		fds[i].fd = net->started[i]->channel->fd;
		fds[i].events = POLLIN;
	}
	/* What came before the queues were armed gives no event. */
	err = net_poll(net);
	if (err)
		return err;
	n = poll(fds, (nfds_t)net->n_started, timeout_ms);
	for (i = 0; i < net->n_started && n > 0; i++)
		if (fds[i].revents & POLLIN)
			drain_events(net->started[i]);
	return net_poll(net);
}
