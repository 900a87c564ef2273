/* SPDX-License-Identifier: MIT */
#include "soft/entry.h"
#include "soft/peer.h"
#include "soft/qp.h"

#define MAP_WAIT_MS 2000

/* The address, or NULL; *region is what to wait for, if that would help. */
static void *find(struct soft_qp *qp, uint32_t rkey, uint64_t addr,
		  size_t bytes)
{
	struct soft_view *view;
	uint64_t at;

	qp->is_asked = false;
	if (!qp->peer || !soft_link(qp))
		return NULL;
	view = soft_view_remote(qp, rkey);
	if (!view || !view->base || view->pd != qp->peer_pd ||
	    !(view->access & qp->accept &
	      (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)))
		return NULL;
	at = addr - view->addr;
	if (at > view->length || bytes > view->length - at)
		return NULL;
	return view->base + at;
}

void *soft_map(struct ibv_qp *ibqp, uint32_t rkey, uint64_t addr, size_t bytes)
{
	struct soft_qp *qp = (struct soft_qp *)(void *)ibqp;
	struct soft_context *c = qp->context;
	struct soft_peer *peer;
	uint64_t region = 0;
	void *at;

	if (soft_is_foreign(c))
		return NULL;
	soft_lock(qp->lock);
	at = find(qp, rkey, addr, bytes);
	if (!at && qp->is_asked)
		region = qp->asked_region;
	soft_unlock(qp->lock);
	if (!region)
		return at;
	pthread_mutex_lock(&c->lock);
	peer = qp->peer;
	if (peer)
		peer->n_refs++;
	pthread_mutex_unlock(&c->lock);
	if (!peer)
		return NULL;
	soft_mapping_wait(peer, region, MAP_WAIT_MS);
	pthread_mutex_lock(&c->lock);
	soft_peer_put(c, peer);
	pthread_mutex_unlock(&c->lock);
	soft_lock(qp->lock);
	at = find(qp, rkey, addr, bytes);
	soft_unlock(qp->lock);
	return at;
}
