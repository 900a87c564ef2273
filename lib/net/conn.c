/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "net/reach.h"

/* Connections with large slots take 6 MB each. */
#define NET_FEW_RANKS 8
#define NET_MAGIC 0x77720003u /* "wr", version 3 of the record */

/*
 * Larger slots mean fewer turns, which is what counts where ranks share a core
 * (measured 1.1x to 2x at 1 MB with 4 ranks on 2), and where a message is long
 * under way (1.11x at 4 MB on soft-RoCE); but every connection has 24 of them,
 * which are locked in memory.
 */
static size_t slot_bytes(const struct net_args *args)
{
	bool is_far = !args->all_local || args->all_ports;

	if (args->crowded || (is_far && args->n_ranks <= NET_FEW_RANKS))
		return 256 << 10;
	return 64 << 10;
}

int net_open(const struct net_args *args, struct net **out)
{
	const struct base_env *env = args->env;
	struct net *net = base_alloc(1, sizeof(*net));
	size_t n = (size_t)args->n_ranks * NET_CHANNELS_MAX;
	void *board;
	int err;

	if (!net)
		return WREATH_ENOMEM;
	net->rank = args->rank;
	net->n_ranks = args->n_ranks;
	net->names = args->names;
	net->env = env;
	if (args->notes)
		net->notes = *args->notes;
	net->board_fd = -1;
	net->n_channels = (int)env->value[BASE_ENV_CHANNELS];
	net->max_rails = args->max_rails ? args->max_rails : NET_CHANNELS_MAX;
	net->n_slots = (int)env->value[BASE_ENV_SLOTS];
	net->slot_bytes = slot_bytes(args);
	if (env->value[BASE_ENV_SLOT_BYTES])
		net->slot_bytes = base_round_up(
			(size_t)env->value[BASE_ENV_SLOT_BYTES], 4096);
	net->conns = base_alloc(n, sizeof(*net->conns));
	net->active = base_alloc(n, sizeof(*net->active));
	err = net->conns && net->active ? 0 : WREATH_ENOMEM;
	if (!err)
		err = net_agree_init(net);
	if (!err)
		err = net_mrs_init(net);
	if (!err)
		err = net_ports_open(net, args);
	if (!err)
		err = mem_shared_new(NET_SIGNS * sizeof(*net->board), &board,
				     &net->board_fd);
	if (err)
		goto err_close;
	net->board = board;
	*out = net;
	return 0;
err_close:
	net_close(net);
	return err;
}

const char *net_text(const struct net *net)
{
	return net->text;
}

int net_box_new(struct net_port *port, size_t bytes, int access,
		char **out, int *fd, struct ibv_mr **mr)
{
	void *box;
	int err = mem_shared_new(bytes, &box, fd);

	if (err)
		return err;
	*out = box;
	return verbs_mr_new(port->device, port->pd, box, bytes, *fd, 0, access,
			    mr);
}

int net_qp_init(struct net_port *port, struct ibv_qp *qp, int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = port->pkey_index,
		.port_num = (uint8_t)port->number,
		.qp_access_flags = (unsigned int)access,
	};

	return verbs_qp_modify(port->device, qp, &attr,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS);
}

int net_qp_new(struct net_conn *conn)
{
	struct net_port *port = conn->port;
	struct ibv_qp_init_attr init = {
		.send_cq = port->cq,
		.recv_cq = port->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = NET_SQ_DEPTH,
			.max_recv_wr = NET_RQ_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = NET_INLINE},
	};
	int err = verbs_qp_new(port->device, port->pd, &init, &conn->qp);
	int i;

	/* Small devices do not take a whole message inline; a line will do. */
	if (err == WREATH_EINVAL || err == WREATH_ENOMEM) {
		init.cap.max_inline_data = BASE_LINE;
		err = verbs_qp_new(port->device, port->pd, &init, &conn->qp);
	}
	if (err)
		return err;
	conn->max_inline = init.cap.max_inline_data;
	err = net_qp_init(port, conn->qp,
			  IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	for (i = 0; i < NET_RQ_DEPTH && !err; i++)
		err = net_recv_post(conn);
	return err;
}

/* Where things are in our mailbox and in the peer's: the same layout. */
static void lay_out(struct net_conn *conn)
{
	char *box = conn->mailbox;
	size_t slots = conn->net->slot_bytes * (size_t)conn->net->n_slots;
	size_t i;

	conn->wake = (_Atomic uint64_t *)(void *)(box + NET_BOX_WAKE);
	conn->places = box + NET_BOX_PLACES;
	for (i = 0; i < NET_LANES; i++) {
		struct net_lane *lane = &conn->lanes[i];
		char *at = box + NET_BOX_LANES + i * NET_BOX_LANE;

		lane->conn = conn;
		lane->index = (uint8_t)i;
		lane->words = (const _Atomic uint64_t *)(void *)(at +
							 NET_BOX_WORDS);
		lane->credit = (const _Atomic uint64_t *)(void *)(at +
							  NET_BOX_CREDIT);
		lane->lines = at + NET_BOX_LINES;
		lane->slots = box + NET_BOX_SLOTS + i * slots;
	}
}

static void fill_record(struct net_conn *conn, struct net_record *record)
{
	struct net *net = conn->net;
	struct net_port *port = conn->port;

	memset(record, 0, sizeof(*record));
	record->magic = NET_MAGIC;
	record->qpn = conn->qp->qp_num;
	base_random(&record->psn, sizeof(record->psn));
	record->psn &= 0xffffff;
	record->rkey = conn->mailbox_mr->rkey;
	record->address = (uintptr_t)conn->mailbox;
	record->mailbox_bytes = conn->mailbox_bytes;
	record->board = (uintptr_t)net->board;
	record->board_rkey = port->board_mr->rkey;
	record->slot_bytes = (uint32_t)net->slot_bytes;
	record->n_slots = (uint8_t)net->n_slots;
	record->lid = port->attr.lid;
	record->link_layer = port->attr.link_layer;
	record->mtu = (uint8_t)port->attr.active_mtu;
	record->attempt = net_agree_attempt(conn);
}

static void conn_free(struct net_conn *conn)
{
	struct verbs_device *device;

	if (!conn)
		return;
	device = conn->port->device;
	net_conn_unpin(conn);
	net_places_unmap(conn);
	net_unmap(conn, conn->mailbox_map);
	net_cm_conn_free(conn);
	verbs_qp_free(device, conn->qp);
	verbs_mr_free(device, conn->stage_mr);
	verbs_mr_free(device, conn->mailbox_mr);
	mem_shared_free(conn->stage, conn->stage_bytes, conn->stage_fd);
	mem_shared_free(conn->mailbox, conn->mailbox_bytes, conn->mailbox_fd);
	base_free(conn->mend);
	base_free(conn);
}

int net_conn_new(struct net *net, int peer, int channel,
		 struct net_record *record)
{
	struct net_conn *conn = base_alloc(1, sizeof(*conn));
	int err;

	if (!conn)
		return WREATH_ENOMEM;
	wreath_assert(!net_conn(net, peer, channel));
	conn->net = net;
	conn->peer = peer;
	conn->channel = channel;
	err = net_agree_conn(conn);
	if (err) {
		base_free(conn);
		return err;
	}
	conn->mailbox_bytes =
		NET_BOX_SLOTS +
		NET_LANES * net->slot_bytes * (size_t)net->n_slots;
	err = net_box_new(conn->port, conn->mailbox_bytes,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		      &conn->mailbox, &conn->mailbox_fd, &conn->mailbox_mr);
	if (!err)
		err = net_qp_new(conn);
	if (!err) {
		lay_out(conn);
		fill_record(conn, &conn->local);
		*record = conn->local;
		err = net_cm_conn_new(conn, record);
	}
	if (err) {
		conn_free(conn);
		return err;
	}
	net->conns[peer * NET_CHANNELS_MAX + channel] = conn;
	net->active[net->n_active++] = conn;
	return 0;
}

static void forget(struct net *net, struct net_conn *conn)
{
	int i;

	net->conns[conn->peer * NET_CHANNELS_MAX + conn->channel] = NULL;
	for (i = 0; i < net->n_active; i++)
		if (net->active[i] == conn)
			break;
	net->active[i] = net->active[--net->n_active];
	conn_free(conn);
}

void net_verdict(const struct net *net, int peer, int error,
		 struct net_verdict *out)
{
	int c;

	memset(out, 0, sizeof(*out));
	out->error = error;
	snprintf(out->text, sizeof(out->text), "%.500s", base_error_text());
	for (c = 0; c < NET_CHANNELS_MAX; c++) {
		const struct net_conn *conn =
			net->conns[peer * NET_CHANNELS_MAX + c];

		if (conn && conn->has_failed)
			out->rail = (uint32_t)(c % net->n_rails);
	}
}

int net_conn_next(struct net *net, int peer, const struct net_verdict *mine,
		  const struct net_verdict *theirs)
{
	int c;

	for (c = 0; c < NET_CHANNELS_MAX; c++) {
		struct net_conn *conn = net_conn(net, peer, c);

		if (conn && !conn->ready)
			forget(net, conn);
	}
	return net_agree_next(net, peer, mine, theirs);
}

void net_close(struct net *net)
{
	int i;

	if (!net)
		return;
	/* What nobody waited long enough to be told. */
	net_events(net);
	for (i = 0; i < net->n_active; i++)
		conn_free(net->active[i]);
	net_mrs_release(net);
	net_ports_close(net);
	if (net->board)
		mem_shared_free(net->board, NET_SIGNS * sizeof(*net->board),
				net->board_fd);
	net_agree_release(net);
	base_free(net->active);
	base_free(net->conns);
	base_free(net);
}
