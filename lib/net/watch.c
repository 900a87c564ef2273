/* SPDX-License-Identifier: MIT */
/*
 * What may be wrong though no request has failed: the device tells of its port
 * by events, and a queue pair may hang without a word (seen with the kernel's
 * soft-RoCE of 6.1, whose port went down while requests were under way).  Then
 * a WRITE that changes nothing, the credit told last, tells whether it works.
 */
#include "net/inner.h"

#define WATCH_NS 100000000u
/* Answers take microseconds; a busy machine may need more. */
#define SOON_NS 2000000000u
#define MORE_NS 1000000000u

uint64_t net_patience_ns(const struct net *net)
{
	uint8_t t = net_timeout_exponent(net->env->value[BASE_ENV_QP_TIMEOUT]);

	return net_timeout_ns(t) * (NET_RETRIES + 1) + MORE_NS;
}

int net_probe(struct net_conn *conn, uint64_t patience_ns)
{
	struct net_mend *mend = conn->mend;
	uint64_t until_ns = base_now_ns() + patience_ns;
	int err;

	if (mend->probe_until_ns) {
		/* There may be less patience with it than there was. */
		if (until_ns < mend->probe_until_ns)
			mend->probe_until_ns = until_ns;
		return 0;
	}
	err = net_credit_signalled(conn);
	if (err || conn->is_mending)
		return err;
	mend->probe = conn->n_posted;
	mend->probe_until_ns = until_ns;
	return 0;
}

static int watch_conn(struct net_conn *conn, uint64_t now)
{
	struct ibv_wc wc = {.status = IBV_WC_RETRY_EXC_ERR};
	struct net_mend *mend = conn->mend;
	int err;

	if (!mend || conn->is_mending || !conn->ready)
		return 0;
	if (mend->n_flaps != conn->port->n_flaps) {
		mend->n_flaps = conn->port->n_flaps;
		err = net_probe(conn, SOON_NS);
		if (err || conn->is_mending)
			return err;
	}
	if (!mend->probe_until_ns)
		return 0;
	if ((int32_t)(conn->n_done - mend->probe) >= 0) {
		mend->probe_until_ns = 0;
		return 0;
	}
	if (now < mend->probe_until_ns)
		return 0;
	wc.qp_num = conn->qp->qp_num;
	return net_mend_broken(conn, &wc);
}

int net_watch(struct net *net)
{
	uint64_t now = base_now_ns();
	int i;

	if (!net->notes.send || now - net->watch_ns < WATCH_NS)
		return net->failed;
	net->watch_ns = now;
	net_events(net);
	for (i = 0; i < net->n_active && !net->failed; i++)
		net->failed = watch_conn(net->active[i], now);
	return net->failed;
}
