/* SPDX-License-Identifier: MIT */
/*
 * For tests: ends of a connection on the soft device, two in one process by
 * pair_open(), or one in each of two by pair_fork().  Helpers assert.
 */
#ifndef SOFT_PAIR_H
#define SOFT_PAIR_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "soft/soft.h"
#include "verbs/verbs.h"

#define PAIR_BYTES 65536u
#define PAIR_ACCESS                                                            \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                    \
	 IBV_ACCESS_REMOTE_READ)

/* What one end has to know of the other. */
struct pair_card {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t qpn, psn, rkey;
	uint16_t lid;
};

struct pair_end {
	const struct verbs_table *verbs;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* NULL unless asked for */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *buf; /* PAIR_BYTES in a memfd, registered */
	int fd;
	struct pair_card card, other;
};

/* How to make an end; zero is a good default. */
struct pair_args {
	bool with_channel;
	bool plain_memory; /* registered by reg_mr, not as a memfd */
	bool signal_all;
	int n_cqe;
	uint32_t n_send, n_recv; /* 64 if 0 */
	uint32_t n_sge;		 /* 4 if 0 */
	uint32_t inline_bytes;	 /* 256 if 0 */
	unsigned int access;	 /* of the queue pair; PAIR_ACCESS if 0 */
	int mr_access;
	uint8_t timeout, retry_cnt; /* 10 and 3 if 0: some 16 ms */
	uint8_t rnr_retry, rnr_timer; /* 0: fail at once; 1: 10 us */
	uint32_t psn_gap; /* sender's PSN is off by this: they never talk */
	int device;	  /* which of the list */
	int no_reads;	  /* 1: none are sent; 2: none are taken */
};

static inline void pair_memory(struct pair_end *end,
			       const struct pair_args *args)
{
	int access = args->mr_access ? args->mr_access : PAIR_ACCESS;

	end->fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(end->fd >= 0);
	assert_int_equal(ftruncate(end->fd, PAIR_BYTES), 0);
	end->buf = mmap(NULL, PAIR_BYTES, PROT_READ | PROT_WRITE,
			args->plain_memory ? MAP_PRIVATE : MAP_SHARED, end->fd,
			0);
	assert_true(end->buf != MAP_FAILED);
	if (args->plain_memory)
		end->mr = end->verbs->reg_mr(end->pd, end->buf, PAIR_BYTES,
					     access);
	else
		end->mr = end->verbs->reg_dmabuf_mr(end->pd, 0, PAIR_BYTES,
						    (uintptr_t)end->buf,
						    end->fd, access);
	assert_non_null(end->mr);
}

static inline void pair_qp(struct pair_end *end, const struct pair_args *args)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = args->signal_all,
		.cap.max_send_wr = args->n_send ? args->n_send : 64,
		.cap.max_recv_wr = args->n_recv ? args->n_recv : 64,
		.cap.max_send_sge = args->n_sge ? args->n_sge : 4,
		.cap.max_recv_sge = args->n_sge ? args->n_sge : 4,
		.cap.max_inline_data =
			args->inline_bytes ? args->inline_bytes : 256,
	};

	end->qp = end->verbs->create_qp(end->pd, &attr);
	assert_non_null(end->qp);
}

static inline void pair_end_open(struct pair_end *end,
				 const struct pair_args *args)
{
	struct ibv_device **list;
	struct ibv_port_attr port;
	int n;

	memset(end, 0, sizeof(*end));
	assert_int_equal(soft_table(&end->verbs), 0);
	list = end->verbs->get_device_list(&n);
	assert_non_null(list);
	assert_true(args->device < n);
	end->context = end->verbs->open_device(list[args->device]);
	assert_non_null(end->context);
	end->verbs->free_device_list(list);
	end->pd = end->verbs->alloc_pd(end->context);
	assert_non_null(end->pd);
	if (args->with_channel) {
		end->channel = end->verbs->create_comp_channel(end->context);
		assert_non_null(end->channel);
	}
	end->cq = end->verbs->create_cq(end->context,
					args->n_cqe ? args->n_cqe : 256, NULL,
					end->channel, 0);
	assert_non_null(end->cq);
	pair_qp(end, args);
	pair_memory(end, args);
	assert_int_equal(end->verbs->query_gid(end->context, 1, 0,
					       &end->card.gid), 0);
	assert_int_equal(end->verbs->query_port(end->context, 1, &port), 0);
	end->card.lid = port.lid;
	end->card.qpn = end->qp->qp_num;
	end->card.psn = 0xfffff0;
	end->card.rkey = end->mr->rkey;
	end->card.addr = (uintptr_t)end->buf;
}

static inline int pair_to_init(struct pair_end *end,
			       const struct pair_args *args)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = args->access ? args->access : PAIR_ACCESS,
	};

	return end->verbs->modify_qp(end->qp, &attr,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					     IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static inline int pair_to_rtr(struct pair_end *end,
			      const struct pair_args *args)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = end->other.qpn,
		.rq_psn = end->other.psn,
		.max_dest_rd_atomic = args->no_reads == 2 ? 0 : 4,
		.min_rnr_timer = args->rnr_timer,
		.ah_attr = {.port_num = 1, .dlid = end->other.lid},
	};

	if (!end->other.lid) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.dgid = end->other.gid;
		attr.ah_attr.grh.hop_limit = 64;
	}
	return end->verbs->modify_qp(
		end->qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			IBV_QP_MIN_RNR_TIMER);
}

static inline int pair_to_rts(struct pair_end *end,
			      const struct pair_args *args)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = args->timeout ? args->timeout : 10,
		.retry_cnt = args->retry_cnt ? args->retry_cnt : 3,
		.rnr_retry = args->rnr_retry,
		.sq_psn = end->card.psn + args->psn_gap,
		.max_rd_atomic = args->no_reads == 1 ? 0 : 4,
	};

	return end->verbs->modify_qp(end->qp, &attr,
				     IBV_QP_STATE | IBV_QP_TIMEOUT |
					     IBV_QP_RETRY_CNT |
					     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					     IBV_QP_MAX_QP_RD_ATOMIC);
}

static inline void pair_connect(struct pair_end *end,
				const struct pair_card *other,
				const struct pair_args *args)
{
	end->other = *other;
	assert_int_equal(pair_to_init(end, args), 0);
	assert_int_equal(pair_to_rtr(end, args), 0);
	assert_int_equal(pair_to_rts(end, args), 0);
}

static inline int pair_to(struct pair_end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return end->verbs->modify_qp(end->qp, &attr, IBV_QP_STATE);
}

static inline void pair_sleep_us(long us)
{
	const struct timespec time = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&time, NULL);
}

/* As the device has it, not as it was last told. */
static inline enum ibv_qp_state pair_state(struct pair_end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(end->verbs->query_qp(end->qp, &attr, IBV_QP_STATE,
					      &init), 0);
	return attr.qp_state;
}

static inline void pair_end_close(struct pair_end *end)
{
	if (end->qp)
		assert_int_equal(end->verbs->destroy_qp(end->qp), 0);
	assert_int_equal(end->verbs->dereg_mr(end->mr), 0);
	assert_int_equal(end->verbs->destroy_cq(end->cq), 0);
	if (end->channel)
		assert_int_equal(
			end->verbs->destroy_comp_channel(end->channel), 0);
	assert_int_equal(end->verbs->dealloc_pd(end->pd), 0);
	assert_int_equal(end->verbs->close_device(end->context), 0);
	munmap(end->buf, PAIR_BYTES);
	close(end->fd);
}

/* Two connected ends in this process. */
static inline void pair_open(struct pair_end *a, struct pair_end *b,
			     const struct pair_args *args)
{
	pair_end_open(a, args);
	pair_end_open(b, args);
	pair_connect(a, &b->card, args);
	pair_connect(b, &a->card, args);
}

static inline void pair_close(struct pair_end *a, struct pair_end *b)
{
	pair_end_close(a);
	pair_end_close(b);
}

/*
 * A child process with the other end: it runs @child with its own end and a
 * socket to the parent, and exits.  Fork before a device is open.
 */
static inline pid_t pair_fork(struct pair_end *end, int *socket,
			      const struct pair_args *args,
			      void (*child)(struct pair_end *end, int socket))
{
	struct pair_card other;
	int sockets[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	pid = fork();
	/* An alarm is not inherited. */
	if (!pid)
		alarm(60);
	assert_true(pid >= 0);
	close(sockets[pid ? 1 : 0]);
	*socket = sockets[pid ? 0 : 1];
	pair_end_open(end, args);
	assert_int_equal(write(*socket, &end->card, sizeof(end->card)),
			 sizeof(end->card));
	assert_int_equal(read(*socket, &other, sizeof(other)), sizeof(other));
	pair_connect(end, &other, args);
	if (pid)
		return pid;
	child(end, *socket);
	_exit(0);
}

/* One byte each way: both have come here. */
static inline void pair_meet(int socket)
{
	char byte = 0;

	assert_int_equal(write(socket, &byte, 1), 1);
	assert_int_equal(read(socket, &byte, 1), 1);
}

static inline void pair_reap(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A request; the caller changes what it wants changed. */
struct pair_wr {
	struct ibv_sge sge;
	struct ibv_send_wr wr;
};

static inline void pair_wr_init(struct pair_wr *w, struct pair_end *end,
				enum ibv_wr_opcode opcode, size_t from,
				size_t to, uint32_t bytes)
{
	memset(w, 0, sizeof(*w));
	w->sge.addr = (uintptr_t)end->buf + from;
	w->sge.length = bytes;
	w->sge.lkey = end->mr->lkey;
	w->wr.opcode = opcode;
	w->wr.sg_list = &w->sge;
	w->wr.num_sge = 1;
	w->wr.send_flags = IBV_SEND_SIGNALED;
	w->wr.wr.rdma.remote_addr = end->other.addr + to;
	w->wr.wr.rdma.rkey = end->other.rkey;
}

static inline int pair_post(struct pair_end *end, struct pair_wr *w)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(end->qp, &w->wr, &bad);

	assert_ptr_equal(bad, err ? &w->wr : NULL);
	return err;
}

static inline int pair_post_recv(struct pair_end *end, uint64_t wr_id,
				 size_t at, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)end->buf + at, bytes, end->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge,
				 .num_sge = bytes ? 1 : 0};
	struct ibv_recv_wr *bad;

	return ibv_post_recv(end->qp, &wr, &bad);
}

/* The next completion; fails after some 5 s without one. */
static inline void pair_wait(struct pair_end *end, struct ibv_wc *wc)
{
	uint64_t start = base_now_ns();
	int n;

	while (!(n = ibv_poll_cq(end->cq, 1, wc))) {
		assert_true(base_now_ns() - start < 5000000000u);
		sched_yield();
	}
	assert_int_equal(n, 1);
}

/* No completion is there, nor comes within a moment. */
static inline void pair_expect_none(struct pair_end *end)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 2000; i++)
		assert_int_equal(ibv_poll_cq(end->cq, 1, &wc), 0);
}

static inline void pair_expect(struct pair_end *end, uint64_t wr_id,
			       enum ibv_wc_status status)
{
	struct ibv_wc wc;

	pair_wait(end, &wc);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.qp_num, end->qp->qp_num);
}

#endif
