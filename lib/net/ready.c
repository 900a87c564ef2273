/* SPDX-License-Identifier: MIT */
/* The second half of a connection: what the peer's record makes possible. */
#include "net/inner.h"

static int check_record(const struct net_conn *conn)
{
	const struct net_record *mine = &conn->local;
	const struct net_record *other = &conn->other;
	const char *name = conn->net->names[conn->peer];

	if (other->magic != mine->magic)
		return base_error(WREATH_EMISMATCH,
				  "%s speaks another version of wreath (record "
				  "0x%x, here 0x%x): install the same on all "
				  "hosts", name, other->magic, mine->magic);
	if (other->link_layer != mine->link_layer ||
	    other->attempt != mine->attempt)
		return base_error(WREATH_EMISMATCH,
				  "%s connects by another pair of ports than "
				  "%s of %s (%u, here %u): install the same "
				  "version of wreath on all hosts", name,
				  conn->port->text,
				  conn->net->names[conn->net->rank],
				  other->attempt, mine->attempt);
	if (!other->cm_number != !mine->cm_number)
		return base_error(WREATH_EMISMATCH,
				  "%s connects by %s and this rank by %s: give "
				  "all ranks the same WREATH_CONNECT", name,
				  other->cm_number ? "librdmacm" : "the exchange",
				  mine->cm_number ? "librdmacm" : "the exchange");
	if (other->slot_bytes != mine->slot_bytes ||
	    other->n_slots != mine->n_slots ||
	    other->mailbox_bytes != mine->mailbox_bytes)
		return base_error(WREATH_EMISMATCH,
				  "%s has %u slots of %u bytes, this rank %u "
				  "of %u: give all ranks the same WREATH_SLOTS "
				  "and WREATH_SLOT_BYTES", name,
				  other->n_slots, other->slot_bytes,
				  mine->n_slots, mine->slot_bytes);
	return 0;
}

/* The smallest exponent t with 4.096 us * 2^t * (retries + 1) >= @ms. */
uint8_t net_timeout_exponent(int64_t ms)
{
	uint64_t ns = (uint64_t)ms * 1000000u;
	uint8_t t = 1;

	while (t < 31 && net_timeout_ns(t) * (NET_RETRIES + 1) < ns)
		t++;
	return t;
}

/* What says that this pair of ports will not do, and another may. */
static int other_way(int err)
{
	return err == WREATH_ENET || err == WREATH_EINVAL ||
	       err == WREATH_EDEVICE ? WREATH_EAGAIN : err;
}

int net_qp_rtr(struct net_port *port, struct ibv_qp *qp,
	       struct ibv_qp_attr *attr)
{
	attr->qp_state = IBV_QPS_RTR;
	attr->max_dest_rd_atomic = 1;
	attr->min_rnr_timer = NET_RNR_TIMER;
	return verbs_qp_modify(port->device, qp, attr,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER);
}

static int to_rtr(struct net_conn *conn)
{
	struct ibv_qp_attr attr = {
		.dest_qp_num = conn->other.qpn,
		.rq_psn = conn->other.psn,
	};
	int err;

	attr.path_mtu = conn->other.mtu < conn->local.mtu
				? (enum ibv_mtu)conn->other.mtu
				: (enum ibv_mtu)conn->local.mtu;
	err = net_address(conn, conn->net->env, &attr.ah_attr);
	if (!err)
		err = net_qp_rtr(conn->port, conn->qp, &attr);
	return other_way(err);
}

/*
 * librdmacm readies the queue pair as the peers meet; whether there is a way
 * between the pair of addresses is asked here, where another can be taken.
 */
static int look_for_way(struct net_conn *conn)
{
	struct ibv_ah_attr ah;
	int err = net_cm_can_meet(conn);

	if (!err)
		err = net_address(conn, conn->net->env, &ah);
	return other_way(err);
}

int net_qp_rts(struct net_port *port, struct ibv_qp *qp, uint32_t psn,
	       const struct base_env *env)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.max_rd_atomic = 1,
		.retry_cnt = NET_RETRIES,
		.rnr_retry = NET_RETRIES,
		.timeout = net_timeout_exponent(
			env->value[BASE_ENV_QP_TIMEOUT]),
	};

	return verbs_qp_modify(port->device, qp, &attr,
			       IBV_QP_STATE | IBV_QP_SQ_PSN |
				       IBV_QP_MAX_QP_RD_ATOMIC |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_TIMEOUT);
}

int net_qp_ready(struct net_conn *conn)
{
	int err = to_rtr(conn);

	return err ? err : net_qp_rts(conn->port, conn->qp, conn->local.psn,
				      conn->net->env);
}

static int make_stage(struct net_conn *conn)
{
	size_t slots = conn->net->slot_bytes * (size_t)conn->net->n_slots;
	size_t i;
	int err;

	conn->stage_bytes = NET_LANES * (slots + NET_LINES_BYTES);
	err = net_box_new(conn->port, conn->stage_bytes, 0, &conn->stage,
		      &conn->stage_fd, &conn->stage_mr);
	if (err)
		return err;
	conn->lkey_stage = conn->stage_mr->lkey;
	for (i = 0; i < NET_LANES; i++) {
		conn->lanes[i].stage = conn->stage + i * slots;
		conn->lanes[i].stage_lines = conn->stage + NET_LANES * slots +
					     i * NET_LINES_BYTES;
	}
	return 0;
}

static int map_slots(struct net_conn *conn)
{
	size_t slots = conn->net->slot_bytes * (size_t)conn->net->n_slots;
	char *map = conn->port->device->verbs->map(
		conn->qp, conn->rkey, conn->other.address,
		conn->other.mailbox_bytes);
	size_t i;

	/* Both ends must conclude alike, so there is no way around it. */
	if (!map)
		return base_error(WREATH_ENET,
				  "%s cannot map the slots of %s over %s; "
				  "WREATH_ARRIVAL=completion does without",
				  conn->net->names[conn->net->rank],
				  conn->net->names[conn->peer],
				  conn->port->text);
	conn->mailbox_map = map;
	for (i = 0; i < NET_LANES; i++)
		conn->lanes[i].map_slots = map + NET_BOX_SLOTS + i * slots;
	return 0;
}

static void lay_out_far(struct net_conn *conn)
{
	uint64_t box = conn->other.address;
	size_t slots = conn->net->slot_bytes * (size_t)conn->net->n_slots;
	size_t i;

	conn->far_wake = box + NET_BOX_WAKE;
	conn->far_places = box + NET_BOX_PLACES;
	for (i = 0; i < NET_LANES; i++) {
		struct net_lane *lane = &conn->lanes[i];
		uint64_t at = box + NET_BOX_LANES + i * NET_BOX_LANE;

		lane->far_words = at + NET_BOX_WORDS;
		lane->far_credit = at + NET_BOX_CREDIT;
		lane->far_lines = at + NET_BOX_LINES;
		lane->far_slots = box + NET_BOX_SLOTS + i * slots;
	}
}

int net_conn_ready(struct net *net, int peer, int channel,
		   const struct net_record *record)
{
	struct net_conn *conn = net_conn(net, peer, channel);
	int err;

	wreath_assert(conn && !conn->ready);
	conn->other = *record;
	conn->rkey = record->rkey;
	err = check_record(conn);
	/* A soft device breaks only where it is told to, or with the peer. */
	if (!err && net->notes.send && !conn->port->line_order &&
	    !conn->port->is_soft)
		err = net_mend_prepare(conn);
	if (err)
		return err;
	err = conn->cm ? look_for_way(conn) : net_qp_ready(conn);
	conn->has_failed = err == WREATH_EAGAIN;
	return err;
}

int net_conn_reach(struct net *net, int peer, int channel)
{
	struct net_conn *conn = net_conn(net, peer, channel);
	int err = 0;

	lay_out_far(conn);
	/*
	 * Store straight into the peer's slots where its memory can be
	 * reached; else every slot has a copy here to WRITE from.
	 */
	if (net_maps(conn))
		err = map_slots(conn);
	/* Small messages are copied there where they do not go inline. */
	if (!err && (!conn->lanes[0].map_slots ||
		     conn->max_inline < NET_INLINE))
		err = make_stage(conn);
	conn->ready = !err;
	return err;
}
