/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <string.h>

#include "net/inner.h"

/* Wait for room on the send queue; a dead peer shows as a completion. */
static int make_room(struct net_conn *conn)
{
	while (conn->n_posted - conn->n_done > NET_SQ_DEPTH - 8) {
		int err = net_poll(conn->net);

		if (err)
			return err;
		base_pause();
	}
	return 0;
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
	conn->n_posted++;
	wr->wr_id = net_wr_id(conn, 0) | conn->n_posted;
	if (conn->n_posted % NET_SIGNAL_EVERY == 0)
		wr->send_flags |= IBV_SEND_SIGNALED;
	refused = ibv_post_send(conn->qp, wr, &bad);
	if (base_likely(!refused))
		return 0;
	/* A queue pair in error takes no requests: its completion says why. */
	conn->n_posted--;
	err = net_poll(conn->net);
	if (err)
		return err;
	/* Providers return errno; a few return -1 and set it. */
	conn->net->failed = base_error(
		WREATH_ENET, "%s cannot post to %s over %s, QP 0x%x: %s",
		conn->net->names[conn->net->rank],
		conn->net->names[conn->peer], conn->port->text,
		conn->qp->qp_num, strerror(refused > 0 ? refused : errno));
	return conn->net->failed;
}

int net_recv_post(struct net_conn *conn)
{
	struct ibv_recv_wr wr = {.wr_id = net_wr_id(conn, NET_WR_RECV)};
	struct ibv_recv_wr *bad;

	if (!ibv_post_recv(conn->qp, &wr, &bad))
		return 0;
	return base_error(WREATH_ENET,
			  "cannot post a receive for %s over %s, QP 0x%x",
			  conn->net->names[conn->peer], conn->port->text,
			  conn->qp->qp_num);
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
		wr->imm_data =
			htonl((uint32_t)lane->index << NET_IMM_LANE_SHIFT |
			      ((lane->n_sent + 1) & NET_IMM_NUMBER)
				      << NET_IMM_NUMBER_SHIFT |
			      (signature & NET_IMM_SIGNATURE));
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
	int err = 0;

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
	return send_word(lane, signature);
}

int net_send_place(struct net_lane *lane, uint64_t offset, size_t bytes,
		   uint32_t signature)
{
	struct net_conn *conn = lane->conn;

	wreath_assert(offset <= conn->place.bytes);
	wreath_assert(bytes <= conn->place.bytes - offset);
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
	if (base_unlikely(bytes > conn->max_inline)) {
		char *stage = lane->stage_lines +
			      slot * (NET_LINES_MAX * BASE_LINE);

		memcpy(stage, lines, bytes);
		sge.addr = (uintptr_t)stage;
		sge.lkey = conn->lkey_stage;
		wr.send_flags = 0;
	}
	conn->bytes_sent += bytes;
	return post_visible(lane, &wr, signature);
}

static int write_word(struct net_conn *conn, uint64_t word, uint64_t address)
{
	struct ibv_sge sge = {.addr = (uintptr_t)&word, .length = 8};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE,
	};

	wr.wr.rdma.remote_addr = address;
	wr.wr.rdma.rkey = conn->rkey;
	return net_post(conn, &wr);
}

int net_credit(struct net_lane *lane)
{
	lane->n_credited = lane->n_received;
	return write_word(lane->conn, lane->n_received, lane->far_credit);
}

int net_wake_ask(struct net_conn *conn)
{
	return write_word(conn, 1, conn->far_wake);
}

/*
 * Mixed into the word of a grant: a device without line order may land the
 * grant's words in any order, and a torn one must not be believed.
 */
static uint32_t place_check(const struct net_place *place)
{
	uint64_t mixed = place->output * 0x9e3779b97f4a7c15u ^ place->bytes;

	mixed = (mixed ^ mixed >> 29 ^ place->output_rkey) *
		0xbf58476d1ce4e5b9u;
	mixed = (mixed ^ mixed >> 31 ^ place->input) * 0x94d049bb133111ebu;
	mixed = (mixed ^ mixed >> 30 ^ place->input_rkey) *
		0xbf58476d1ce4e5b9u;
	return (uint32_t)(mixed >> 32) ^ place->kinds;
}

static int fill_place(struct net_conn *conn, void *output, const void *input,
		      size_t bytes, struct net_place *place)
{
	struct mem_region region;
	int err;

	place->bytes = bytes;
	/*
	 * Where slots are stored to directly, private memory is better served
	 * by them: a peer could reach it only through the kernel, which is no
	 * faster at any size.
	 */
	if (mem_find(output, bytes, &region) &&
	    (region.fd >= 0 || !conn->lanes[0].map_slots)) {
		err = net_mr_key(conn->net, conn->port, &region,
				 &place->output_rkey);
		if (err)
			return err;
		place->output = (uintptr_t)output;
		place->kinds |= NET_PLACE_OUTPUT;
	}
	/* Only what peers are sure to be able to map: shared memory. */
	if (input && mem_find(input, bytes, &region) && region.fd >= 0) {
		err = net_mr_key(conn->net, conn->port, &region,
				 &place->input_rkey);
		if (err)
			return err;
		place->input = (uintptr_t)input;
		place->kinds |= NET_PLACE_INPUT;
	}
	return 0;
}

int net_place_grant(struct net_conn *conn, void *output, const void *input,
		    size_t bytes, uint32_t signature)
{
	struct net_grant grant = {.word = 0};
	struct ibv_sge sge = {.addr = (uintptr_t)&grant,
			      .length = sizeof(grant)};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE,
	};
	uint32_t at = conn->n_places_sent % NET_PLACES;
	int err = fill_place(conn, output, input, bytes, &grant.place);

	if (err)
		return err;
	conn->granted = grant.place.kinds;
	grant.word = net_word(++conn->n_places_sent,
			      signature ^ place_check(&grant.place));
	wr.wr.rdma.remote_addr = conn->far_places + at * sizeof(grant);
	wr.wr.rdma.rkey = conn->rkey;
	if (sizeof(grant) > conn->max_inline)
		return base_error(WREATH_EUNSUP,
				  "%s takes %u bytes inline; wreath needs %zu",
				  conn->port->text, conn->max_inline,
				  sizeof(grant));
	return net_post(conn, &wr);
}

static void *map_place(struct net_conn *conn, uint32_t rkey, uint64_t address,
		       uint64_t bytes)
{
	/* As with the slots: where completions are polled, all is WRITEs. */
	if (!conn->port->device->verbs->map || !conn->port->line_order)
		return NULL;
	return conn->port->device->verbs->map(conn->qp, rkey, address, bytes);
}

static void map_places(struct net_conn *conn, const struct net_place *place)
{
	net_unmap(conn, conn->output_map);
	net_unmap(conn, conn->input_map);
	conn->place = *place;
	conn->output_map = NULL;
	conn->input_map = NULL;
	if (place->kinds & NET_PLACE_OUTPUT)
		conn->output_map = map_place(conn, place->output_rkey,
					     place->output, place->bytes);
	if (place->kinds & NET_PLACE_INPUT)
		conn->input_map = map_place(conn, place->input_rkey,
					    place->input, place->bytes);
}

/* Word by word: the grant may be landing, and place_check() decides. */
static struct net_place load_place(const struct net_grant *grant)
{
	const _Atomic uint64_t *from = (const void *)&grant->place;
	uint64_t words[sizeof(struct net_place) / 8] = {0};
	struct net_place place;
	size_t i;

	for (i = 0; i < base_countof(words); i++)
		words[i] = atomic_load_explicit(&from[i],
						memory_order_relaxed);
	memcpy(&place, words, sizeof(place));
	return place;
}

bool net_place_take(struct net_conn *conn, uint32_t signature)
{
	const struct net_grant *grant =
		(const void *)(conn->places + conn->n_places_taken %
						      NET_PLACES *
						      sizeof(*grant));
	/* Pairs with the peer's WRITE of the grant, whose word comes last
	 * where the device keeps line order; place_check() tells elsewhere. */
	uint64_t word = atomic_load_explicit(
		(const _Atomic uint64_t *)&grant->word, memory_order_acquire);
	struct net_place place = load_place(grant);

	if (word != net_word(conn->n_places_taken + 1,
			     signature ^ place_check(&place)))
		return false;
	conn->n_places_taken++;
	/* The same place as last time keeps its mapping: keys are unique. */
	if (memcmp(&place, &conn->place, sizeof(place)))
		map_places(conn, &place);
	return true;
}
