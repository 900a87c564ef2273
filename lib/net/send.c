/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <string.h>

#include "net/inner.h"

/*
 * Wait for room on the send queue; a dead peer shows as a completion, and a
 * queue pair that hangs by net_watch().
 */
static int make_room(struct net_conn *conn)
{
	while (conn->n_posted - conn->n_done > NET_SQ_DEPTH - 8) {
		int err = net_poll(conn->net);

		if (!err)
			err = net_watch(conn->net);
		if (err)
			return err;
		base_pause();
	}
	return 0;
}

static int refused_post(struct net_conn *conn, int refused)
{
	int err;

	conn->n_posted--;
	/* A queue pair in error takes no requests: its completion says why. */
	err = net_poll(conn->net);
	if (err || conn->is_mending)
		return err;
	/* Providers return errno; a few return -1 and set it. */
	conn->net->failed = base_error(
		WREATH_ENET, "%s cannot post to %s over %s, QP 0x%x: %s",
		conn->net->names[conn->net->rank],
		conn->net->names[conn->peer], conn->port->text,
		conn->qp->qp_num, strerror(refused > 0 ? refused : errno));
	return conn->net->failed;
}

int net_post(struct net_conn *conn, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err, refused;

	if (base_unlikely(conn->n_posted - conn->n_done > NET_SQ_DEPTH / 2)) {
		err = net_poll(conn->net);
		if (!err)
			err = make_room(conn);
		if (err)
			return err;
	}
	/* What was noted is sent by the queue pair to come. */
	if (base_unlikely(conn->is_mending))
		return 0;
	conn->n_posted++;
	wr->wr_id = net_wr_id(conn, 0) | conn->n_posted;
	if (conn->n_posted % NET_SIGNAL_EVERY == 0)
		wr->send_flags |= IBV_SEND_SIGNALED;
	refused = ibv_post_send(conn->qp, wr, &bad);
	return base_likely(!refused) ? 0 : refused_post(conn, refused);
}

int net_recv_post(struct net_conn *conn)
{
	struct ibv_recv_wr wr = {.wr_id = net_wr_id(conn, NET_WR_RECV)};
	struct ibv_recv_wr *bad;

	if (!ibv_post_recv(conn->qp, &wr, &bad)) {
		conn->n_recvs++;
		return 0;
	}
	return base_error(WREATH_ENET,
			  "cannot post a receive for %s over %s, QP 0x%x",
			  conn->net->names[conn->peer], conn->port->text,
			  conn->qp->qp_num);
}

/* Immediate data for message @number of @lane. */
static __be32 message_imm(const struct net_lane *lane, uint32_t number,
			  uint32_t signature)
{
	return htonl((uint32_t)lane->index << NET_IMM_LANE_SHIFT |
		     (number & NET_IMM_NUMBER) << NET_IMM_NUMBER_SHIFT |
		     (signature & NET_IMM_SIGNATURE));
}

/*
 * The WRITE that makes a message visible: to the peer's memory where it polls
 * that, with immediate data where it polls completions or sleeps.
 */
static int post_visible(struct net_lane *lane, struct ibv_send_wr *wr,
			uint32_t signature)
{
	struct net_conn *conn = lane->conn;
	int err;

	wr->opcode = IBV_WR_RDMA_WRITE;
	if (base_unlikely(!conn->port->line_order)) {
		wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr->imm_data = message_imm(lane, lane->n_sent + 1, signature);
	} else if (base_unlikely(atomic_load_explicit(conn->wake,
						      memory_order_relaxed))) {
		/* Stale is fine: a sleeper wakes by itself in a moment. */
		atomic_store_explicit(conn->wake, 0, memory_order_relaxed);
		wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr->imm_data = htonl(NET_IMM_WAKE);
	}
	err = net_post(conn, wr);
	if (base_likely(!err))
		lane->n_sent++;
	return err;
}

static int send_word(struct net_lane *lane, uint32_t signature)
{
	struct net_conn *conn = lane->conn;
	uint64_t word = net_word(lane->n_sent + 1, signature);
	uint32_t slot = lane->n_sent % (uint32_t)conn->net->n_slots;
	struct ibv_sge sge = {.addr = (uintptr_t)&word, .length = 8};
	struct ibv_send_wr wr;

	wr.next = NULL;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	wr.wr.rdma.remote_addr = lane->far_words + slot * sizeof(word);
	wr.wr.rdma.rkey = conn->rkey;
	return post_visible(lane, &wr, signature);
}

int net_send_again(struct net_lane *lane, uint32_t number)
{
	struct net_conn *conn = lane->conn;
	const struct net_sent *sent =
		&conn->mend->sent[lane->index][(number - 1) % NET_LINE_SLOTS];
	uint32_t slot = (number - 1) % (uint32_t)conn->net->n_slots;
	uint32_t line = (number - 1) % NET_LINE_SLOTS;
	const char *from = sent->is_lines
				   ? lane->stage_lines +
					     line * (NET_LINES_MAX * BASE_LINE)
				   : lane->stage + slot * conn->net->slot_bytes;
	struct ibv_sge sge = {.addr = (uintptr_t)from, .length = sent->bytes,
			      .lkey = conn->lkey_stage};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = sent->bytes != 0,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = message_imm(lane, number, sent->signature),
	};

	if (sent->is_lines && sent->bytes <= conn->max_inline)
		wr.send_flags = IBV_SEND_INLINE;
	wr.wr.rdma.remote_addr = sent->address;
	wr.wr.rdma.rkey = sent->rkey;
	return net_post(conn, &wr);
}

/* Send from the stage, and note how, should it have to be sent again. */
static int send_noted(struct net_lane *lane, const struct net_sent *sent)
{
	int err;

	lane->conn->mend->sent[lane->index][lane->n_sent % NET_LINE_SLOTS] =
		*sent;
	err = net_send_again(lane, lane->n_sent + 1);
	if (!err)
		lane->n_sent++;
	return err;
}

/*
 * WRITE our copy of the next slot to @address, and make it visible: by its own
 * completion at the peer, or by a word behind it.
 */
static int send_stage(struct net_lane *lane, uint64_t address, uint32_t rkey,
		      size_t bytes, uint32_t signature)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)net_slot(lane),
		.length = (uint32_t)bytes,
		.lkey = lane->conn->lkey_stage,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = bytes != 0,
		.opcode = IBV_WR_RDMA_WRITE,
	};
	const struct net_sent sent = {
		.address = address,
		.rkey = rkey,
		.bytes = (uint32_t)bytes,
		.signature = signature,
	};
	int err = 0;

	if (lane->conn->mend)
		return send_noted(lane, &sent);
	wr.wr.rdma.remote_addr = address;
	wr.wr.rdma.rkey = rkey;
	if (!lane->conn->port->line_order)
		return post_visible(lane, &wr, signature);
	if (bytes)
		err = net_post(lane->conn, &wr);
	return err ? err : send_word(lane, signature);
}

int net_send_slot(struct net_lane *lane, size_t bytes, uint32_t signature)
{
	struct net_conn *conn = lane->conn;

	conn->bytes_sent += bytes;
	if (base_unlikely(!lane->map_slots)) {
		uint32_t slot = lane->n_sent % (uint32_t)conn->net->n_slots;
		uint64_t to = lane->far_slots + slot * conn->net->slot_bytes;

		return send_stage(lane, to, conn->rkey, bytes, signature);
	}
	return send_word(lane, signature);
}

int net_send_nothing(struct net_lane *lane, uint32_t signature)
{
	int err = send_word(lane, signature);

	lane->n_lent = lane->n_sent;
	return err;
}

int net_send_place(struct net_lane *lane, uint64_t offset, size_t bytes,
		   uint32_t signature)
{
	struct net_conn *conn = lane->conn;

	wreath_assert(offset <= conn->place.output_bytes);
	wreath_assert(bytes <= conn->place.output_bytes - offset);
	conn->bytes_sent += bytes;
	/* Where slots are mapped there is no copy to WRITE from. */
	if (base_unlikely(!conn->output_map && lane->map_slots))
		return base_error(WREATH_ENET,
				  "%s cannot map the memory that %s registered "
				  "over %s; is the port down?",
				  conn->net->names[conn->net->rank],
				  conn->net->names[conn->peer],
				  conn->port->text);
	if (!conn->output_map)
		return send_stage(lane, conn->place.output + offset,
				  conn->place.output_rkey, bytes, signature);
	return send_word(lane, signature);
}

int net_send_lines(struct net_lane *lane, const void *lines, size_t n_lines,
		   uint32_t signature)
{
	struct net_conn *conn = lane->conn;
	uint32_t slot = lane->n_sent % NET_LINE_SLOTS;
	uint32_t bytes = (uint32_t)n_lines * BASE_LINE;
	struct ibv_sge sge = {.addr = (uintptr_t)lines, .length = bytes};
	struct ibv_send_wr wr;

	wr.next = NULL;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	wr.wr.rdma.rkey = conn->rkey;
	wr.wr.rdma.remote_addr =
		lane->far_lines + slot * (NET_LINES_MAX * BASE_LINE);
	conn->bytes_sent += bytes;
	if (base_unlikely(bytes > conn->max_inline || conn->mend)) {
		const struct net_sent sent = {
			.address = wr.wr.rdma.remote_addr,
			.rkey = conn->rkey,
			.bytes = bytes,
			.signature = signature,
			.is_lines = true,
		};
		char *stage = lane->stage_lines +
			      slot * (NET_LINES_MAX * BASE_LINE);

		memcpy(stage, lines, bytes);
		if (conn->mend)
			return send_noted(lane, &sent);
		sge.addr = (uintptr_t)stage;
		sge.lkey = conn->lkey_stage;
		wr.send_flags = 0;
	}
	return post_visible(lane, &wr, signature);
}

static int write_word(struct net_conn *conn, uint64_t word, uint64_t address,
		      unsigned int flags)
{
	struct ibv_sge sge = {.addr = (uintptr_t)&word, .length = 8};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE | flags,
	};

	wr.wr.rdma.remote_addr = address;
	wr.wr.rdma.rkey = conn->rkey;
	return net_post(conn, &wr);
}

int net_credit(struct net_lane *lane)
{
	lane->n_credited = lane->n_received;
	return net_credit_again(lane);
}

int net_credit_again(struct net_lane *lane)
{
	return write_word(lane->conn, lane->n_credited, lane->far_credit, 0);
}

int net_credit_signalled(struct net_conn *conn)
{
	const struct net_lane *lane = &conn->lanes[0];

	return write_word(conn, lane->n_credited, lane->far_credit,
			  IBV_SEND_SIGNALED);
}

int net_wake_ask(struct net_conn *conn)
{
	return write_word(conn, 1, conn->far_wake, 0);
}
