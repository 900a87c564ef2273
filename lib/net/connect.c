/* SPDX-License-Identifier: MIT */
/*
 * All connections of librdmacm at once: one loop starts what is due, and takes
 * what has happened to any of them, so that none waits for another.
 */
#include <poll.h>
#include <stdio.h>

#include "net/cm.h"

/* How long a failure elsewhere may stay unheard. */
#define CONNECT_TICK_MS 20
/* Events of a port before the others and the clock have their turn. */
#define CONNECT_BATCH 64

static bool is_open(const struct net_conn *conn)
{
	return conn->cm && conn->cm->state != NET_CM_DONE;
}

/* Start what is due; the number of connections still open. */
static int start_due(struct net *net, int *n_open)
{
	uint64_t now = base_now_ns();
	int err = 0;
	int i;

	*n_open = 0;
	for (i = 0; i < net->n_active && !err; i++) {
		struct net_conn *conn = net->active[i];

		if (!is_open(conn))
			continue;
		(*n_open)++;
		if (net_cm_asks(conn) && conn->cm->state == NET_CM_IDLE &&
		    conn->cm->retry_ns <= now)
			err = net_cm_try(conn);
	}
	return err;
}

static int take_events(struct net *net, struct net_port *port)
{
	int i;

	for (i = 0; i < CONNECT_BATCH; i++) {
		struct verbs_cm_event event;
		int err = verbs_cm_event(port->cm->channel, &event);

		if (err == WREATH_EAGAIN)
			return 0;
		if (err)
			return err;
		if (event.what == VERBS_CM_REQUEST)
			err = net_cm_on_request(net, port, &event);
		else if (event.context)
			err = net_cm_on_event(event.context, &event);
		if (err)
			return err;
	}
	return 0;
}

static int await_events(struct net *net)
{
	struct pollfd fds[NET_PORTS_MAX];
	struct net_port *ports[NET_PORTS_MAX];
	int err = 0;
	nfds_t i;
	nfds_t n = 0;
	int p;

	for (p = 0; p < net->n_started; p++) {
		if (!net->started[p]->cm)
			continue;
		ports[n] = net->started[p];
		fds[n].fd = verbs_cm_fd(ports[n]->cm->channel);
		fds[n].events = POLLIN;
		n++;
	}
	if (poll(fds, n, CONNECT_TICK_MS) <= 0)
		return 0;
	for (i = 0; i < n && !err; i++)
		if (fds[i].revents)
			err = take_events(net, ports[i]);
	return err;
}

/* The connection to blame: one with a cause says more than one without. */
static const struct net_conn *open_one(const struct net *net)
{
	const struct net_conn *found = NULL;
	int i;

	for (i = 0; i < net->n_active; i++) {
		const struct net_conn *conn = net->active[i];

		if (!is_open(conn))
			continue;
		if (conn->cm->cause[0])
			return conn;
		if (!found)
			found = conn;
	}
	return found;
}

static int too_late(const struct net *net, int timeout_ms)
{
	const struct net_conn *conn = open_one(net);
	const struct net_cm_conn *cm = conn->cm;
	char what[320];

	if (cm->cause[0])
		snprintf(what, sizeof(what), "%u tries failed, the last one: "
					     "%s", cm->n_tries, cm->cause);
	else
		snprintf(what, sizeof(what), "%s",
			 net_cm_asks(conn) ? "no answer came"
					   : "the peer has not asked");
	return base_error(WREATH_ENET,
			  "%s and %s were not connected by librdmacm over %s "
			  "within %d ms: %s; can the two reach each other's "
			  "addresses, and does nothing in between drop UDP "
			  "port 4791?", net->names[net->rank],
			  net->names[conn->peer], conn->port->text, timeout_ms,
			  what);
}

static int connect_all(struct net *net, int timeout_ms,
		       int (*stopped)(void *arg), void *arg)
{
	uint64_t end_ns = base_now_ns() + (uint64_t)timeout_ms * 1000000u;
	int err, n_open;

	for (;;) {
		err = start_due(net, &n_open);
		if (err || !n_open)
			return err;
		err = await_events(net);
		if (!err && stopped)
			err = stopped(arg);
		if (err)
			return err;
		if (base_now_ns() > end_ns)
			return too_late(net, timeout_ms);
	}
}

int net_connect(struct net *net, int timeout_ms, int (*stopped)(void *arg),
		void *arg)
{
	int err = connect_all(net, timeout_ms, stopped, arg);
	int i;

	/* The kernel itself turns strangers away where nobody listens. */
	for (i = 0; i < net->n_started; i++)
		if (net->started[i]->cm)
			net_cm_deafen(net->started[i]);
	return err;
}
