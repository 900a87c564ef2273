/* SPDX-License-Identifier: MIT */
/*
 * For tests of what soft_pair.h has not: queue pairs of other types, and
 * those that share their receives.
 */
#ifndef SOFT_MORE_H
#define SOFT_MORE_H

#include <errno.h>
#include <poll.h>

#include "soft_pair.h"

#define MORE_QKEY 0x11111111u

/* A queue pair of @end besides its own; @srq may be NULL. */
static inline struct ibv_qp *more_qp(struct pair_end *end,
				     enum ibv_qp_type type,
				     struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.srq = srq,
		.qp_type = type,
		.cap = {.max_send_wr = 64, .max_recv_wr = srq ? 0 : 64,
			.max_send_sge = 4, .max_recv_sge = srq ? 0 : 4,
			.max_inline_data = 256},
	};
	struct ibv_qp *qp = end->verbs->create_qp(end->pd, &attr);

	assert_non_null(qp);
	return qp;
}

/* @end's own queue pair is one of this kind from here on. */
static inline void more_change(struct pair_end *end, enum ibv_qp_type type,
			       struct ibv_srq *srq)
{
	assert_int_equal(end->verbs->destroy_qp(end->qp), 0);
	end->qp = more_qp(end, type, srq);
	end->card.qpn = end->qp->qp_num;
}

static inline struct ibv_srq *more_srq(struct pair_end *end, uint32_t max_wr,
				       uint32_t max_sge)
{
	struct ibv_srq_init_attr attr = {
		.attr = {.max_wr = max_wr, .max_sge = max_sge},
	};
	struct ibv_srq *srq = soft_create_srq(end->pd, &attr);

	assert_non_null(srq);
	assert_true(attr.attr.max_wr >= max_wr);
	return srq;
}

static inline int more_post_srq(struct pair_end *end, struct ibv_srq *srq,
				uint64_t wr_id, size_t at, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)end->buf + at, bytes, end->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge,
				 .num_sge = bytes ? 1 : 0};
	struct ibv_recv_wr *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static inline int more_modify(struct pair_end *end, enum ibv_qp_state state,
			      struct ibv_qp_attr attr, int mask)
{
	attr.qp_state = state;
	return end->verbs->modify_qp(end->qp, &attr, IBV_QP_STATE | mask);
}

/* Where @card's port is. */
static inline struct ibv_ah_attr more_address(const struct pair_card *card)
{
	struct ibv_ah_attr attr = {.port_num = 1, .dlid = card->lid, .sl = 3};

	if (!card->lid) {
		attr.is_global = 1;
		attr.grh.dgid = card->gid;
		attr.grh.hop_limit = 64;
	}
	return attr;
}

/* A change of state, and the attributes that go with it. */
struct more_step {
	enum ibv_qp_state to;
	int required, optional;
};

/*
 * Take the steps, from RESET on; each is refused, and changes nothing, with
 * one attribute less than is required or one more than is allowed.
 */
static inline void more_take_steps(struct pair_end *end,
				   const struct more_step *steps, size_t n)
{
	const struct ibv_qp_attr attr = {
		.cur_qp_state = IBV_QPS_RTR,
		.port_num = 1,
		.path_mtu = IBV_MTU_4096,
		.ah_attr = more_address(&end->card),
		.alt_ah_attr = more_address(&end->card),
	};
	size_t i;
	int bit;

	for (i = 0; i < n; i++) {
		const struct more_step *s = &steps[i];
		enum ibv_qp_state from = pair_state(end);

		for (bit = 1; bit <= IBV_QP_RATE_LIMIT; bit *= 2) {
			if (bit & (IBV_QP_STATE | s->optional))
				continue;
			assert_int_equal(more_modify(end, s->to, attr,
						     s->required ^ bit),
					 EINVAL);
			assert_int_equal(pair_state(end), from);
		}
		assert_int_equal(more_modify(end, s->to, attr, s->required),
				 0);
		assert_int_equal(pair_state(end), s->to);
	}
}

/* Unreliable, connected. */
static inline void more_connect_uc(struct pair_end *end,
				   const struct pair_card *other)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = PAIR_ACCESS,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = other->qpn,
		.rq_psn = 5,
		.sq_psn = 99,
		.ah_attr = more_address(other),
	};

	end->other = *other;
	assert_int_equal(more_modify(end, IBV_QPS_INIT, attr,
				     IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					     IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(more_modify(end, IBV_QPS_RTR, attr,
				     IBV_QP_AV | IBV_QP_PATH_MTU |
					     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
			 0);
	assert_int_equal(more_modify(end, IBV_QPS_RTS, attr, IBV_QP_SQ_PSN),
			 0);
}

static inline void more_start_ud(struct pair_end *end)
{
	struct ibv_qp_attr attr = {.port_num = 1, .qkey = MORE_QKEY};

	assert_int_equal(more_modify(end, IBV_QPS_INIT, attr,
				     IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					     IBV_QP_QKEY), 0);
	assert_int_equal(more_modify(end, IBV_QPS_RTR, attr, 0), 0);
	assert_int_equal(more_modify(end, IBV_QPS_RTS, attr, IBV_QP_SQ_PSN),
			 0);
}

/* The next asynchronous event, of which there must be one within 5 s. */
static inline void more_event(struct pair_end *end,
			      struct ibv_async_event *event)
{
	struct pollfd p = {.fd = end->context->async_fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_int_equal(end->verbs->get_async_event(end->context, event), 0);
}

/* Swallow an event of this type. */
static inline void more_expect_event(struct pair_end *end,
				     enum ibv_event_type type)
{
	struct ibv_async_event event;

	do {
		more_event(end, &event);
		end->verbs->ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_COMM_EST);
	assert_int_equal(event.event_type, type);
}

static inline bool more_has_event(struct pair_end *end)
{
	struct pollfd p = {.fd = end->context->async_fd, .events = POLLIN};

	return poll(&p, 1, 20) == 1;
}

#endif
