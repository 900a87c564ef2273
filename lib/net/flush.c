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
};

#define BOX_BYTES 4096
/* A flush is some microseconds long: the time is looked at so often. */
#define LOOK_EVERY 64

void net_flusher_free(struct net_flusher *f)
{
	struct verbs_device *device;

	if (!f)
		return;
	device = f->port->device;
	verbs_qp_free(device, f->qp);
	verbs_cq_free(device, f->cq);
	verbs_mr_free(device, f->mr);
	mem_shared_free(f->box, BOX_BYTES, f->fd);
	base_free(f);
}

/* Connected to itself. */
static int flusher_ready(const struct net_flusher *f,
			 const struct base_env *env)
{
	struct net_port *port = f->port;
	struct ibv_qp_attr attr = {
		.path_mtu = port->attr.active_mtu,
		.dest_qp_num = f->qp->qp_num,
	};
	union ibv_gid gid;
	int err, index;

	memcpy(gid.raw, port->gids[0].raw, sizeof(gid.raw));
	index = net_gid_index(port, &gid);
	net_address_fill(port, &gid, &gid, index < 0 ? 0 : index, env,
			 &attr.ah_attr);
	attr.ah_attr.dlid = port->attr.lid;
	err = net_qp_init(port, f->qp, IBV_ACCESS_REMOTE_READ);
	if (!err)
		err = net_qp_rtr(port, f->qp, &attr);
	return err ? err : net_qp_rts(port, f->qp, 0, env);
}

static int flusher_new(struct net_port *port, const struct base_env *env,
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
		err = flusher_ready(f, env);
	if (err)
		net_flusher_free(f);
	else
		*out = f;
	return err;
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

static int flush_way(const struct net *net, struct net_gpu_way *way,
		     const struct net_mr *mr, uint64_t end_ns)
{
	const struct net_flusher *f;
	struct ibv_sge sge = {.length = 1};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	int err = way->flusher ? 0
			       : flusher_new(way->port, net->env,
					     &way->flusher);

	if (err)
		return err;
	f = way->flusher;
	sge.addr = (uintptr_t)f->box;
	sge.lkey = f->mr->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)mr->base;
	wr.wr.rdma.rkey = mr->mr->rkey;
	if (ibv_post_send(f->qp, &wr, &bad))
		return failed(net, mr, "the request was refused");
	return wait_for(net, f, mr, end_ns);
}

/* One of a GPU is enough for all that a port wrote there. */
static const struct net_mr *granted_by(const struct net *net,
				       const struct net_gpu_way *way)
{
	const struct net_mr *mr;

	for (mr = net->mrs; mr; mr = mr->next)
		if (mr->is_granted && mr->port == way->port &&
		    mr->gpu == way->gpu)
			return mr;
	return NULL;
}

/* What is granted; it stays so. */
static int flush_all(struct net *net, int64_t timeout_ms)
{
	uint64_t end_ns = base_now_ns() + (uint64_t)timeout_ms * 1000000u;
	struct net_gpu_way *way;
	int err = 0;

	for (way = net->ways; way && !err; way = way->next) {
		const struct net_mr *mr =
			way->needs_flush ? granted_by(net, way) : NULL;

		if (mr)
			err = flush_way(net, way, mr, end_ns);
	}
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
