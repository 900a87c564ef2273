/* SPDX-License-Identifier: MIT */
/* The board: what each rank is doing, for its peers to READ. */
#include <string.h>

#include "net/inner.h"

#define SIGN_WORDS 4u
#define SIGN_RAGGED 0x8000u /* beside the algorithm */

static uint64_t check_of(const uint64_t words[SIGN_WORDS])
{
	uint64_t mixed = 0x9e3779b97f4a7c15u; /* an empty entry has no sign */
	size_t i;

	for (i = 0; i < SIGN_WORDS; i++)
		mixed = (mixed ^ mixed >> 29 ^ words[i]) * 0xbf58476d1ce4e5b9u;
	return mixed;
}

void net_sign_post(struct net *net, const struct net_sign *sign)
{
	struct net_entry *entry = &net->board[sign->seq % NET_SIGNS];
	const uint64_t words[SIGN_WORDS] = {
		sign->seq, sign->count,
		(uint64_t)sign->collective << 32 | sign->type,
		(uint64_t)sign->op << 48 | (uint64_t)sign->root << 16 |
			(sign->is_ragged ? SIGN_RAGGED : 0) | sign->algo};
	size_t i;

	/* No order is needed: the check tells a reader which is which. */
	for (i = 0; i < SIGN_WORDS; i++)
		atomic_store_explicit(&entry->words[i], words[i],
				      memory_order_relaxed);
	atomic_store_explicit(&entry->words[SIGN_WORDS], check_of(words),
			      memory_order_relaxed);
}

/* False for a torn entry. */
static bool decode(const uint64_t words[SIGN_WORDS + 1], struct net_sign *sign)
{
	if (words[SIGN_WORDS] != check_of(words))
		return false;
	sign->seq = words[0];
	sign->count = words[1];
	sign->collective = (uint32_t)(words[2] >> 32);
	sign->type = (uint32_t)words[2];
	sign->op = (uint32_t)(words[3] >> 48);
	sign->root = (uint32_t)(words[3] >> 16);
	sign->algo = (uint32_t)words[3] & (SIGN_RAGGED - 1);
	sign->is_ragged = (words[3] & SIGN_RAGGED) != 0;
	return true;
}

/* What was READ, unless it was torn, or is of an operation before @seq. */
static int take(const struct net_conn *conn, uint64_t seq,
		struct net_sign *sign)
{
	uint64_t words[SIGN_WORDS + 1];
	struct net_sign read;

	memcpy(words, conn->mailbox + NET_BOX_SCRATCH, sizeof(words));
	if (!decode(words, &read) || read.seq < seq)
		return WREATH_EAGAIN;
	*sign = read;
	return 0;
}

size_t net_answer(const struct net *net, const void *ask, size_t bytes,
		  void *reply)
{
	struct net_note note;
	uint64_t words[SIGN_WORDS + 1];
	const struct net_entry *entry;
	size_t i;

	if (bytes != sizeof(note))
		return 0;
	memcpy(&note, ask, sizeof(note));
	if (note.magic != NET_NOTE_MAGIC || note.kind != NET_NOTE_ASK)
		return 0;
	entry = &net->board[note.sign.seq % NET_SIGNS];
	/* As a READ would find it: the check tells what belongs together. */
	for (i = 0; i <= SIGN_WORDS; i++)
		words[i] = atomic_load_explicit(&entry->words[i],
						memory_order_relaxed);
	if (!decode(words, &note.sign))
		return 0;
	note.kind = NET_NOTE_SIGN;
	memcpy(reply, &note, sizeof(note));
	return sizeof(note);
}

/*
 * Where a queue pair may break and be mended, the peer is asked by a note: the
 * kernel's soft-RoCE loses count where READs have to be sent again (seen on
 * 6.1: rxe_comp.c warns, and the queue pair fails or hangs).  The queue pair
 * is put to the test by a WRITE, for else a rank that only waits would not
 * notice that it is broken.
 */
static int ask_by_note(struct net_conn *conn, uint64_t seq, uint64_t end_ns,
		       struct net_sign *sign)
{
	const struct net_notes *notes = &conn->net->notes;
	struct net_sign *answer = &conn->mend->answer;
	struct net_note note = {
		.magic = NET_NOTE_MAGIC,
		.kind = NET_NOTE_ASK,
		.channel = (uint32_t)conn->channel,
		.sign.seq = seq,
	};
	int err = net_probe(conn, net_patience_ns(conn->net));

	answer->seq = 0;
	if (!err)
		err = notes->ask(notes->arg, conn->peer, &note, sizeof(note));
	while (!err && !answer->seq && base_now_ns() < end_ns) {
		base_pause();
		err = net_poll(conn->net);
	}
	if (err || answer->seq < seq)
		return err ? err : WREATH_EAGAIN;
	*sign = *answer;
	return 0;
}

static int await_read(struct net_conn *conn, uint64_t end_ns)
{
	while (conn->is_reading) {
		int err = net_poll(conn->net);

		if (err)
			return err;
		if (base_now_ns() > end_ns)
			return WREATH_EAGAIN;
		base_pause();
	}
	return 0;
}

int net_sign_read(struct net_conn *conn, uint64_t seq, int timeout_ms,
		  struct net_sign *sign)
{
	uint64_t end_ns = base_now_ns() + (uint64_t)timeout_ms * 1000000u;
	struct ibv_sge sge = {
		.addr = (uintptr_t)conn->mailbox + NET_BOX_SCRATCH,
		.length = sizeof(struct net_entry),
		.lkey = conn->mailbox_mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	int err;

	if (conn->is_mending)
		return WREATH_EAGAIN;
	if (conn->mend)
		return ask_by_note(conn, seq, end_ns, sign);
	/* One that we gave up may still land: it is of another operation. */
	err = await_read(conn, end_ns);
	if (err)
		return err;
	wr.wr.rdma.remote_addr = conn->other.board +
				 seq % NET_SIGNS * sizeof(struct net_entry);
	wr.wr.rdma.rkey = conn->other.board_rkey;
	conn->n_posted++;
	wr.wr_id = net_wr_id(conn, NET_WR_READ) | conn->n_posted;
	if (ibv_post_send(conn->qp, &wr, &bad)) {
		conn->n_posted--;
		return WREATH_EAGAIN;
	}
	conn->is_reading = true;
	err = await_read(conn, end_ns);
	return err ? err : take(conn, seq, sign);
}
