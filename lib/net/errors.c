/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "net/inner.h"

struct cause {
	enum ibv_wc_status status;
	const char *what; /* what happened, and to whom */
	const char *check; /* what to do about it */
};

/* The whole enum; a status that is not here gets the last row. */
static const struct cause causes[] = {
	{IBV_WC_LOC_LEN_ERR, "a message was longer than its receive buffer",
	 "both ends must run the same version of wreath"},
	{IBV_WC_LOC_QP_OP_ERR, "the local queue pair refused the request",
	 "see the kernel's log for the device"},
	{IBV_WC_LOC_EEC_OP_ERR, "the local end-to-end context is broken",
	 "see the kernel's log for the device"},
	{IBV_WC_LOC_PROT_ERR, "local memory was not registered for the access",
	 "was a buffer freed or deregistered while an operation used it?"},
	{IBV_WC_WR_FLUSH_ERR, "the queue pair was in error already",
	 "an earlier message has the cause; the other rank may have more"},
	{IBV_WC_MW_BIND_ERR, "a memory window could not be bound",
	 "see the kernel's log for the device"},
	{IBV_WC_BAD_RESP_ERR, "the peer's answer was not understood",
	 "check the cabling and firmware of both ends"},
	{IBV_WC_LOC_ACCESS_ERR, "local memory was not open to the access",
	 "was a buffer deregistered while an operation used it?"},
	{IBV_WC_REM_INV_REQ_ERR, "the peer refused the request as invalid",
	 "both ends must run the same version of wreath"},
	{IBV_WC_REM_ACCESS_ERR, "the peer's memory was not open to the access",
	 "did that rank free or deregister a buffer while an operation used "
	 "it?"},
	{IBV_WC_REM_OP_ERR, "the peer could not do the request",
	 "see the other rank's messages and its kernel's log"},
	{IBV_WC_RETRY_EXC_ERR, "the peer did not answer",
	 "is that rank alive, its port up, and the path between the two GIDs "
	 "open (same subnet or routed, same MTU, no firewall)?"},
	{IBV_WC_RNR_RETRY_EXC_ERR, "the peer had no receive posted",
	 "that rank is stuck or stopped; look at its process"},
	{IBV_WC_LOC_RDD_VIOL_ERR, "the reliable datagram domains differ",
	 "see the kernel's log for the device"},
	{IBV_WC_REM_INV_RD_REQ_ERR, "the peer refused the datagram request",
	 "see the other rank's messages"},
	{IBV_WC_REM_ABORT_ERR, "the peer gave the request up",
	 "see the other rank's messages"},
	{IBV_WC_INV_EECN_ERR, "the end-to-end context number is invalid",
	 "see the kernel's log for the device"},
	{IBV_WC_INV_EEC_STATE_ERR, "the end-to-end context is in a bad state",
	 "see the kernel's log for the device"},
	{IBV_WC_FATAL_ERR, "the device broke",
	 "see the kernel's log; the device needs a reset"},
	{IBV_WC_RESP_TIMEOUT_ERR, "the peer's answer came too late",
	 "is that rank alive and the network up?"},
	{IBV_WC_GENERAL_ERR, "the device reports a failure of no kind",
	 "see the kernel's log for the device"},
};

static const struct cause *cause_of(enum ibv_wc_status status)
{
	size_t i;

	for (i = 0; i < base_countof(causes) - 1; i++)
		if (causes[i].status == status)
			break;
	return &causes[i];
}

static void end_text(const struct net_conn *conn, char out[256])
{
	char mine[64], theirs[64], port[40] = "";

	net_agree_far_port(conn, port);
	if (conn->port->attr.link_layer == IBV_LINK_LAYER_INFINIBAND) {
		snprintf(out, 256, "LID %u to LID %u%s", conn->local.lid,
			 conn->other.lid, port);
		return;
	}
	net_gid_text(&conn->gid, mine);
	net_gid_text(&conn->other_gid, theirs);
	snprintf(out, 256, "GID %s to GID %s%s", mine, theirs, port);
}

/*
 * What the device has said of itself, " (the device reported ...)" or "": a
 * flushed request has no cause of its own, but its port or device may have one.
 */
static void event_text(struct net *net, struct net_port *port, char out[96])
{
	net_port_events(net, port);
	out[0] = 0;
	if (port->has_reported)
		snprintf(out, 96, " (the device reported %.60s)",
			 verbs_event_name(port->reported));
}

/* What is known of the port beyond the request that failed. */
static void port_text(struct net_port *port, char *out, size_t size)
{
	struct verbs_counters now;
	struct ibv_port_attr attr;
	char counted[400];
	size_t at = 0;

	out[0] = 0;
	/* Of a port made by hand, in a test, there is nothing to be known. */
	if (!port->counters)
		return;
	if (!verbs_port(port->device, port->number, &attr) &&
	    attr.state != IBV_PORT_ACTIVE)
		at = (size_t)snprintf(out, size,
				      "; the port is down: is the cable in, "
				      "the interface up (`ip link`)?");
	verbs_counters(port->device->name, port->number, &now);
	verbs_counters_text(port->counters, &now, counted, sizeof(counted));
	if (*counted)
		snprintf(out + at, size - at, "; since the communicator began "
			 "it has counted %s", counted);
}

static void work_text(const struct net_conn *conn, char out[160])
{
	double mb = (double)conn->bytes_sent / 1e6;
	size_t at = 0;

	if (!conn->n_done && !conn->bytes_sent)
		at = (size_t)snprintf(out, 160, "it never worked");
	else if (mb >= 0.1)
		at = (size_t)snprintf(out, 160, "it had worked for %u messages "
				      "and %.1f MB", conn->n_posted, mb);
	else
		at = (size_t)snprintf(out, 160, "it had worked for %u messages "
				      "and %llu bytes", conn->n_posted,
				      (unsigned long long)conn->bytes_sent);
	if (conn->is_mending)
		snprintf(out + at, 160 - at,
			 ", and no other could be made within %.1f s",
			 (double)(base_now_ns() - conn->mend->since_ns) / 1e9);
}

int net_completion_error(struct net_conn *conn, const struct ibv_wc *wc)
{
	struct net *net = conn->net;
	const struct cause *cause = cause_of(wc->status);
	char ends[256], worked[160], reported[96], port[600];
	bool is_fatal;

	end_text(conn, ends);
	net_gid_check(conn);
	event_text(net, conn->port, reported);
	port_text(conn->port, port, sizeof(port));
	work_text(conn, worked);
	is_fatal = wc->status == IBV_WC_FATAL_ERR || conn->port->is_gone;
	return base_error(
		is_fatal ? WREATH_EDEVICE : WREATH_ENET,
		"%s to %s over %s, %s, QP 0x%x to QP 0x%x: %s (%s, vendor "
		"error 0x%x)%s; %s%s; %s",
		net->names[net->rank], net->names[conn->peer],
		conn->port->text, ends, wc->qp_num, conn->other.qpn,
		cause->what, verbs_wc_name(wc->status), wc->vendor_err,
		reported, worked, port, cause->check);
}
