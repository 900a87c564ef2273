/* SPDX-License-Identifier: MIT */
#include <pthread.h>

#include "net/reach.h"

/*
 * A user's region stays registered with a port until the user takes it away:
 * registering costs more than thousands of look-ups.  The list is short (a
 * program has few buffers), and is looked at only when the table of regions
 * has changed.
 */

void net_mr_drop(struct net_mr **at)
{
	struct net_mr *mr = *at;

	*at = mr->next;
	verbs_mr_free(mr->port->device, mr->mr);
	base_free(mr);
}

static void region_gone(void *arg, const struct mem_region *region)
{
	struct net *net = arg;
	struct net_mr **at = &net->mrs;

	pthread_mutex_lock(net->mr_lock);
	while (*at) {
		if ((*at)->region == region->id)
			net_mr_drop(at);
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(net->mr_lock);
}

int net_mrs_init(struct net *net)
{
	net->mr_lock = base_alloc(1, sizeof(pthread_mutex_t));
	if (!net->mr_lock)
		return WREATH_ENOMEM;
	pthread_mutex_init(net->mr_lock, NULL);
	net->watch.gone = region_gone;
	net->watch.arg = net;
	mem_watch_add(&net->watch);
	return 0;
}

void net_mrs_release(struct net *net)
{
	if (!net->mr_lock)
		return;
	mem_watch_remove(&net->watch);
	while (net->mrs)
		net_mr_drop(&net->mrs);
	net_gpu_release(net);
	pthread_mutex_destroy(net->mr_lock);
	base_free(net->mr_lock);
	net->mr_lock = NULL;
}

/* Caller holds @net->mr_lock. */
static int add(struct net *net, struct net_port *port,
	       const struct mem_region *region, struct net_mr **out)
{
	struct net_mr *mr = base_alloc(1, sizeof(*mr));
	int err;

	if (!mr)
		return WREATH_ENOMEM;
	err = verbs_mr_new(port->device, port->pd, region->base, region->bytes,
			   region->fd, 0, NET_MR_ACCESS, &mr->mr);
	if (err) {
		base_free(mr);
		return err;
	}
	mr->region = region->id;
	mr->port = port;
	mr->gpu = -1;
	mr->next = net->mrs;
	net->mrs = mr;
	*out = mr;
	return 0;
}

int net_mr_key(struct net *net, struct net_port *port,
	       const struct mem_region *region, uint32_t *rkey)
{
	struct net_mr *mr;
	int err = 0;

	pthread_mutex_lock(net->mr_lock);
	if (region->gpu >= 0) {
		err = net_gpu_key(net, port, region, rkey);
		goto out;
	}
	for (mr = net->mrs; mr; mr = mr->next)
		if (mr->region == region->id && mr->port == port)
			break;
	if (!mr)
		err = add(net, port, region, &mr);
	if (!err)
		*rkey = mr->mr->rkey;
out:
	pthread_mutex_unlock(net->mr_lock);
	return err;
}
