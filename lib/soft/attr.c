/* SPDX-License-Identifier: MIT */
/* Which changes of a queue pair the specification allows. */
#define _GNU_SOURCE
#include <errno.h>

#include "soft/qp.h"

struct change {
	enum ibv_qp_state from, to;
	int required, optional;
};

#define ANYTIME                                                                \
	(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH |            \
	 IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE)

/* IBTA 11.2.5.3, table 91; any state may go to RESET and ERR besides. */
static const struct change rc_changes[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_RTR, IBV_QPS_RTS,
	 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		 IBV_QP_MAX_QP_RD_ATOMIC,
	 ANYTIME},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0, ANYTIME},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0, ANYTIME},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 ANYTIME | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
		 IBV_QP_PKEY_INDEX},
};

#define UC_ANYTIME                                                             \
	(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH |            \
	 IBV_QP_PATH_MIG_STATE)

static const struct change uc_changes[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	 IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, UC_ANYTIME},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0, UC_ANYTIME},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0, UC_ANYTIME},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0, UC_ANYTIME | IBV_QP_PKEY_INDEX},
	{IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
};

static const struct change ud_changes[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
	{IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN,
	 IBV_QP_CUR_STATE | IBV_QP_QKEY},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};

static const struct change *changes_of(enum ibv_qp_type type, size_t *n)
{
	switch (type) {
	case IBV_QPT_UC:
		*n = base_countof(uc_changes);
		return uc_changes;
	case IBV_QPT_UD:
		*n = base_countof(ud_changes);
		return ud_changes;
	default:
		*n = base_countof(rc_changes);
		return rc_changes;
	}
}

static bool is_allowed(enum ibv_qp_type type, enum ibv_qp_state from,
		       enum ibv_qp_state to, int mask)
{
	const struct change *changes;
	size_t i, n;

	mask &= ~(int)IBV_QP_STATE;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return !mask;
	changes = changes_of(type, &n);
	for (i = 0; i < n; i++) {
		const struct change *ch = &changes[i];

		if (ch->from == from && ch->to == to)
			return (mask & ch->required) == ch->required &&
			       !(mask & ~(ch->required | ch->optional));
	}
	return false;
}

static bool values_are_valid(struct soft_context *c,
			     const struct ibv_qp_attr *attr, int mask)
{
	const unsigned int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	if ((mask & IBV_QP_PKEY_INDEX && attr->pkey_index) ||
	    (mask & IBV_QP_PORT && attr->port_num != 1) ||
	    (mask & IBV_QP_ACCESS_FLAGS && attr->qp_access_flags & ~access))
		return false;
	/* The port's active MTU is the largest there is. */
	if (mask & IBV_QP_PATH_MTU && (attr->path_mtu < IBV_MTU_256 ||
				       attr->path_mtu > IBV_MTU_4096))
		return false;
	if ((mask & IBV_QP_DEST_QPN && attr->dest_qp_num > 0xffffff) ||
	    (mask & IBV_QP_TIMEOUT && attr->timeout > 31) ||
	    (mask & IBV_QP_RETRY_CNT && attr->retry_cnt > 7) ||
	    (mask & IBV_QP_RNR_RETRY && attr->rnr_retry > 7) ||
	    (mask & IBV_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31))
		return false;
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > 16) ||
	    (mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > 16))
		return false;
	return !(mask & IBV_QP_AV) || soft_is_address(c, &attr->ah_attr);
}

int soft_attr_check(struct soft_qp *qp, const struct ibv_qp_attr *attr,
		    int mask)
{
	enum ibv_qp_state from = qp->state;
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;

	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from)
		return EINVAL;
	if (!is_allowed(qp->ibv.qp_type, from, to, mask) ||
	    !values_are_valid(qp->context, attr, mask))
		return EINVAL;
	return 0;
}

void soft_attr_take(struct soft_qp *qp, const struct ibv_qp_attr *attr,
		    int mask)
{
	struct ibv_qp_attr *mine = &qp->attr;

	if (mask & IBV_QP_PKEY_INDEX)
		mine->pkey_index = attr->pkey_index;
	if (mask & IBV_QP_PORT)
		mine->port_num = attr->port_num;
	if (mask & IBV_QP_ACCESS_FLAGS)
		mine->qp_access_flags = attr->qp_access_flags;
	if (mask & IBV_QP_QKEY)
		mine->qkey = attr->qkey;
	if (mask & IBV_QP_AV)
		mine->ah_attr = attr->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		mine->path_mtu = attr->path_mtu;
	if (mask & IBV_QP_DEST_QPN)
		mine->dest_qp_num = attr->dest_qp_num;
	/* A PSN has 24 bits; what is above them is ignored, as by devices. */
	if (mask & IBV_QP_RQ_PSN)
		mine->rq_psn = attr->rq_psn & 0xffffff;
	if (mask & IBV_QP_SQ_PSN)
		mine->sq_psn = attr->sq_psn & 0xffffff;
	if (mask & IBV_QP_TIMEOUT)
		mine->timeout = attr->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		mine->retry_cnt = attr->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		mine->rnr_retry = attr->rnr_retry;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		mine->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		mine->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		mine->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		mine->en_sqd_async_notify = attr->en_sqd_async_notify;
}
