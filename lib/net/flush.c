/* SPDX-License-Identifier: MIT */
/*
 * What a device wrote to a GPU may still be under way when the completion, or
 * a word in memory of the host that was written later, has been seen: they go
 * by other ways.  A READ of the same memory by the same device comes behind
 * those writes on the way that they went, so that its answer says that they
 * are there.  GPUs from Hopper on promise the order themselves.
 */
#include <pthread.h>
#include <string.h>

#include "net/reach.h"

/* A queue pair of a port that is connected to itself. */
struct net_flusher {
	struct net_port *port;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	char *box; /* where READs land */
	int fd;
	struct ibv_mr *mr;
	struct net_flusher *next;
};

#define BOX_BYTES 4096
/* A flush is some microseconds long: the time is looked at so often. */
#define LOOK_EVERY 64

static void flusher_free(struct net_flusher *f)
{
	struct verbs_device *device = f->port->device;

	verbs_qp_free(device, f->qp);
	verbs_cq_free(device, f->cq);
	verbs_mr_free(device, f->mr);
	mem_shared_free(f->box, BOX_BYTES, f->fd);
	base_free(f);
}

void net_flushers_free(struct net *net)
{
	struct net_flusher *f;

	while ((f = net->flushers)) {
		net->flushers = f->next;
		flusher_free(f);
	}
}

static int to_init(const struct net_flusher *f)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = f->port->pkey_index,
		.port_num = (uint8_t)f->port->number,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ,
	};

	return verbs_qp_modify(f->port->device, f->qp, &attr,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(const struct net_flusher *f, const struct base_env *env)
{
	struct net_port *port = f->port;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = port->attr.active_mtu,
		.dest_qp_num = f->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = NET_RNR_TIMER,
	};
	union ibv_gid gid;
	int index;

	memcpy(gid.raw, port->gids[0].raw, sizeof(gid.raw));
	index = net_gid_index(port, &gid);
	net_address_fill(port, &gid, &gid, index < 0 ? 0 : index, env,
			 &attr.ah_attr);
	attr.ah_attr.dlid = port->attr.lid;
	return verbs_qp_modify(port->device, f->qp, &attr,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(const struct net_flusher *f, const struct base_env *env)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.max_rd_atomic = 1,
		.retry_cnt = NET_RETRIES,
		.rnr_retry = NET_RETRIES,
		.timeout = net_timeout_exponent(
			env->value[BASE_ENV_QP_TIMEOUT]),
	};

	return verbs_qp_modify(f->port->device, f->qp, &attr,
			       IBV_QP_STATE | IBV_QP_SQ_PSN |
				       IBV_QP_MAX_QP_RD_ATOMIC |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_TIMEOUT);
}

static int flusher_new(struct net *net, struct net_port *port,
		       struct net_flusher **out)
{
	struct net_flusher *f = base_alloc(1, sizeof(*f));
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			.max_recv_sge = 1},
	};
	int err;

	if (!f)
		return WREATH_ENOMEM;
	f->port = port;
	err = net_box_new(port, BOX_BYTES, IBV_ACCESS_LOCAL_WRITE, &f->box,
			  &f->fd, &f->mr);
	if (!err)
		err = verbs_cq_new(port->device, 1, NULL, &f->cq);
	init.send_cq = f->cq;
	init.recv_cq = f->cq;
	if (!err)
		err = verbs_qp_new(port->device, port->pd, &init, &f->qp);
	if (!err)
		err = to_init(f);
	if (!err)
		err = to_rtr(f, net->env);
	if (!err)
		err = to_rts(f, net->env);
	if (err) {
		flusher_free(f);
		return err;
	}
	f->next = net->flushers;
	net->flushers = f;
	*out = f;
	return 0;
}

static int failed(const struct net *net, const struct net_mr *mr,
		  const char *why)
{
	return base_error(WREATH_ENET,
			  "%s: what %s wrote to memory of GPU %d cannot be "
			  "flushed: %s; WREATH_GPU_DIRECT=off does without",
			  net->names[net->rank], mr->port->text, mr->gpu, why);
}

static int wait_for(const struct net *net, const struct net_flusher *f,
		    const struct net_mr *mr, uint64_t end_ns)
{
	struct ibv_wc wc;
	unsigned int i;
	int n;

	for (i = 1; !(n = ibv_poll_cq(f->cq, 1, &wc)); i++) {
		if (i % LOOK_EVERY == 0 && base_now_ns() > end_ns)
			return failed(net, mr, "no answer in time");
		base_pause();
	}
	if (n < 0)
		return failed(net, mr, "its completion queue is broken");
	if (wc.status != IBV_WC_SUCCESS)
		return failed(net, mr, verbs_wc_name(wc.status));
	return 0;
}

static int flush_mr(struct net *net, const struct net_mr *mr, uint64_t end_ns)
{
	struct net_flusher *f;
	struct ibv_sge sge = {.length = 1};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	int err;

	for (f = net->flushers; f; f = f->next)
		if (f->port == mr->port)
			break;
	if (!f) {
		err = flusher_new(net, mr->port, &f);
		if (err)
			return err;
	}
	sge.addr = (uintptr_t)f->box;
	sge.lkey = f->mr->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)mr->base;
	wr.wr.rdma.rkey = mr->mr->rkey;
	if (ibv_post_send(f->qp, &wr, &bad))
		return failed(net, mr, "the request was refused");
	return wait_for(net, f, mr, end_ns);
}

/* One of a GPU is enough for all that a port wrote there. */
static bool is_flushed(const struct net *net, const struct net_mr *to)
{
	const struct net_mr *mr;

	for (mr = net->mrs; mr && mr != to; mr = mr->next)
		if (mr->is_granted && mr->port == to->port &&
		    mr->gpu == to->gpu)
			return true;
	return false;
}

/* What is granted; it stays so. */
static int flush_all(struct net *net, int64_t timeout_ms)
{
	uint64_t end_ns = base_now_ns() + (uint64_t)timeout_ms * 1000000u;
	struct net_mr *mr;
	int err = 0;

	for (mr = net->mrs; mr && !err; mr = mr->next)
		if (mr->is_granted && mr->needs_flush && !is_flushed(net, mr))
			err = flush_mr(net, mr, end_ns);
	if (err)
		net->failed = err;
	return err;
}

int net_flush_amid(struct net *net, int64_t timeout_ms)
{
	int err;

	if (base_likely(!net->must_flush))
		return 0;
	pthread_mutex_lock(net->mr_lock);
	err = flush_all(net, timeout_ms);
	pthread_mutex_unlock(net->mr_lock);
	return err;
}

int net_flush(struct net *net, int64_t timeout_ms)
{
	struct net_mr *mr;
	int err;

	if (base_likely(!net->must_flush))
		return 0;
	net->must_flush = false;
	pthread_mutex_lock(net->mr_lock);
	err = flush_all(net, timeout_ms);
	for (mr = net->mrs; mr; mr = mr->next)
		mr->is_granted = false;
	pthread_mutex_unlock(net->mr_lock);
	return err;
}
