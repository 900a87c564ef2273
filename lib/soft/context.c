/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "soft/entry.h"
#include "soft/peer.h"
#include "soft/qp.h"
#include "soft/soft.h"

static void new_address(struct soft_context *c)
{
	uint64_t prefix = __builtin_bswap64(0xfe80000000000000ull);

	c->guid = soft_random(c);
	c->address.kind = c->device->kind;
	memcpy(c->address.gid.raw, &prefix, 8);
	memcpy(c->address.gid.raw + 8, &c->guid, 8);
	/* Unicast LIDs are 1 to 0xbfff; the socket's name makes it unique. */
	if (c->device->kind == SOFT_INFINIBAND)
		c->address.lid = (uint16_t)(1 + soft_random(c) % 0xbfffu);
}

static void fill_verbs(struct soft_context *c)
{
	struct ibv_context *context = &c->verbs.context;

	c->verbs.sz = sizeof(c->verbs);
	context->device = &c->device->ibv;
	context->ops.poll_cq = soft_poll_cq;
	context->ops.req_notify_cq = soft_req_notify_cq;
	context->ops.post_send = soft_post_send;
	context->ops.post_recv = soft_post_recv;
	context->ops.post_srq_recv = soft_post_srq_recv;
	context->cmd_fd = -1;
	context->num_comp_vectors = 1;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&context->mutex, NULL);
}

static int open_events(struct soft_context *c)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return base_error(WREATH_ENOMEM, "soft device: pipe: %s",
				  strerror(errno));
	c->verbs.context.async_fd = fds[0];
	c->async_write_fd = fds[1];
	/* The reader may block, we must not. */
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	return 0;
}

/* What is in the context's own memory, and nothing that can fail. */
static void init(struct soft_context *c, struct ibv_device *device)
{
	c->device = (struct soft_device *)(void *)device;
	c->pace = soft_device_pace(c->device);
	c->fork_gen = soft_fork_gen;
	base_random(&c->random, sizeof(c->random));
	c->random |= 1;
	c->id = soft_random(c) | 1;
	pthread_mutex_init(&c->lock, NULL);
	fill_verbs(c);
	new_address(c);
	soft_faults_parse("", &c->faults);
}

struct ibv_context *soft_open_device(struct ibv_device *device)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct soft_context *c;
	int err = ENOMEM;

	pthread_once(&once, soft_registry_watch_forks);
	c = base_alloc(1, sizeof(*c));
	if (!c)
		goto err;
	init(c, device);
	if (open_events(c))
		goto err_context;
	if (soft_pace_open(c))
		goto err_events;
	if (soft_segment_new(c))
		goto err_timer;
	if (soft_control_start(c))
		goto err_segment;
	if (soft_faults_open(c)) {
		err = EINVAL;
		goto err_control;
	}
	soft_registry_add(c);
	return &c->verbs.context;

err_control:
	soft_control_stop(c);
err_segment:
	close(c->seg_fd);
	soft_held_put(c->held);
err_timer:
	soft_pace_close(c);
err_events:
	close(c->verbs.context.async_fd);
	close(c->async_write_fd);
err_context:
	pthread_mutex_destroy(&c->verbs.context.mutex);
	pthread_mutex_destroy(&c->lock);
	base_free(c);
err:
	errno = err;
	return NULL;
}

static void free_kept(struct soft_context *c)
{
	struct soft_block *block;
	size_t i;

	for (i = 0; i < base_countof(c->blocks); i++) {
		while ((block = c->blocks[i])) {
			c->blocks[i] = block->next;
			base_free(block);
		}
	}
	for (i = 0; i < SOFT_N_QP; i++)
		base_free(c->qps[i]);
}

int soft_close_device(struct ibv_context *context)
{
	struct soft_context *c = soft_context_of(context);
	bool is_busy;

	if (soft_is_foreign(c))
		return EIO;
	pthread_mutex_lock(&c->lock);
	is_busy = c->n_pd || c->n_mr || c->n_cq || c->n_qp ||
		  c->n_srq;
	pthread_mutex_unlock(&c->lock);
	if (is_busy)
		return EBUSY;
	soft_registry_remove(c);
	soft_control_stop(c);
	soft_peers_free(c);
	soft_couriers_free(c);
	free_kept(c);
	close(c->seg_fd);
	soft_held_put(c->held);
	soft_pace_close(c);
	close(context->async_fd);
	close(c->async_write_fd);
	pthread_mutex_destroy(&context->mutex);
	pthread_mutex_destroy(&c->lock);
	base_free(c);
	return 0;
}

struct ibv_pd *soft_alloc_pd(struct ibv_context *context)
{
	struct soft_context *c = soft_context_of(context);
	struct soft_pd *pd;

	if (soft_is_foreign(c) || c->is_gone) {
		errno = EIO;
		return NULL;
	}
	pd = base_alloc(1, sizeof(*pd));
	if (!pd) {
		errno = ENOMEM;
		return NULL;
	}
	pd->ibv.context = context;
	pthread_mutex_lock(&c->lock);
	pd->id = ++c->next_pd;
	c->n_pd++;
	pthread_mutex_unlock(&c->lock);
	pd->ibv.handle = pd->id;
	return &pd->ibv;
}

struct ibv_pd *
soft_alloc_parent_domain(struct ibv_context *context,
			 struct ibv_parent_domain_init_attr *attr)
{
	struct soft_pd *parent = (struct soft_pd *)attr->pd;
	struct ibv_pd *ibpd;
	struct soft_pd *pd;

	if (!parent || parent->ibv.context != context || attr->td) {
		errno = EINVAL;
		return NULL;
	}
	ibpd = soft_alloc_pd(context);
	if (!ibpd)
		return NULL;
	pd = (struct soft_pd *)ibpd;
	pd->parent = parent;
	pd->id = parent->id;
	atomic_fetch_add(&parent->n_refs, 1);
	return ibpd;
}

int soft_dealloc_pd(struct ibv_pd *ibpd)
{
	struct soft_pd *pd = (struct soft_pd *)ibpd;
	struct soft_context *c = soft_context_of(ibpd->context);

	if (soft_is_foreign(c))
		return EIO;
	if (atomic_load(&pd->n_refs))
		return EBUSY;
	pthread_mutex_lock(&c->lock);
	c->n_pd--;
	pthread_mutex_unlock(&c->lock);
	if (pd->parent)
		atomic_fetch_sub(&pd->parent->n_refs, 1);
	base_free(pd);
	return 0;
}
