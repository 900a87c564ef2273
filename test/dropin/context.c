/* SPDX-License-Identifier: MIT */
/*
 * Opened devices.  To the soft device each context is a port with an address
 * of its own, to a program all that it opens of one device has one address:
 * so a process has one context of each, which is counted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "dropin.h"

static int query_port(struct ibv_context *context, uint8_t port,
		      struct ibv_port_attr *attr, size_t size)
{
	struct ibv_port_attr all;
	int err = dropin_soft()->query_port(context, port, &all);

	if (err)
		return err;
	memset(attr, 0, size);
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	if ((input && input->comp_mask) || size < sizeof(attr->orig_attr))
		return EINVAL;
	memset(attr, 0, size);
	if (size >= offsetof(struct ibv_device_attr_ex, phys_port_cnt_ex) +
			    sizeof(attr->phys_port_cnt_ex))
		attr->phys_port_cnt_ex = 1;
	return ibv_query_device(context, &attr->orig_attr);
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context,
				     struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;

	(void)context;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
		errno = EINVAL;
		return NULL;
	}
	if (attr->comp_mask & ~known ||
	    (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE &&
	     attr->srq_type != IBV_SRQT_BASIC)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return ibv_create_srq(attr->pd,
			      (struct ibv_srq_init_attr *)(void *)attr);
}

static void fill(struct ibv_context *context)
{
	struct verbs_context *verbs = verbs_get_ctx(context);

	verbs->query_port = query_port;
	verbs->query_device_ex = query_device_ex;
	verbs->create_cq_ex = dropin_create_cq_ex;
	verbs->create_qp_ex = dropin_create_qp_ex;
	verbs->create_srq_ex = create_srq_ex;
	verbs->alloc_parent_domain = soft_alloc_parent_domain;
	/* Of no use but to be duplicated, by who would import the device. */
	context->cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
}

struct opened {
	struct ibv_device *device;
	struct ibv_context *context; /* NULL: free */
	unsigned int n;
	pid_t pid; /* what a child inherits is of no use to it */
};

static struct opened all[32];
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;

static struct opened *find(struct ibv_device *device)
{
	struct opened *vacant = NULL;
	size_t i;

	for (i = 0; i < base_countof(all); i++) {
		if (all[i].context && all[i].pid != getpid())
			all[i].context = NULL;
		if (all[i].context && all[i].device == device)
			return &all[i];
		if (!all[i].context)
			vacant = &all[i];
	}
	return vacant;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context = NULL;
	struct opened *o;

	pthread_mutex_lock(&all_lock);
	o = find(device);
	if (o && !o->context) {
		o->context = dropin_soft()->open_device(device);
		if (o->context)
			fill(o->context);
		o->device = device;
		o->pid = getpid();
		o->n = 0;
	}
	if (o && o->context) {
		context = o->context;
		o->n++;
	}
	pthread_mutex_unlock(&all_lock);
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	struct opened *o;
	int cmd_fd = context->cmd_fd;

	pthread_mutex_lock(&all_lock);
	o = find(context->device);
	/*
	 * libibverbs closes a context that still has objects, and the kernel
	 * frees them.  Here they stay until the process ends.
	 */
	if (o && o->context == context && o->n && !--o->n &&
	    !dropin_soft()->close_device(context)) {
		o->context = NULL;
		close(cmd_fd);
	}
	pthread_mutex_unlock(&all_lock);
	return 0;
}
