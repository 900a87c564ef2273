/* SPDX-License-Identifier: MIT */
/*
 * Address handles, and the way of datagrams to what they name.
 *
 * Datagrams go by a connection to the port's socket, one for all handles of
 * an address.  That nobody listens there is no error, now or ever: datagrams
 * are lost then, and found again when somebody does.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "soft/ah.h"
#include "soft/entry.h"

/* How often a port that nobody has is looked for again. */
#define RETRY_NS 10000000u

/* IBTA 8.2.2: what follows a GRH; and UDP, as RoCE v2 has in its place. */
#define NEXT_IBA 0x1b
#define NEXT_UDP 17

/* Caller holds the context's lock. */
static struct soft_courier *courier_get(struct soft_context *c,
					const struct soft_address *address)
{
	struct soft_courier *courier;

	for (courier = c->couriers; courier; courier = courier->next) {
		if (soft_address_is(&courier->address, address)) {
			courier->n_refs++;
			return courier;
		}
	}
	courier = base_alloc(1, sizeof(*courier));
	if (!courier)
		return NULL;
	courier->address = *address;
	courier->fd = -1;
	courier->n_refs = 1;
	pthread_mutex_init(&courier->lock, NULL);
	courier->next = c->couriers;
	c->couriers = courier;
	return courier;
}

static void courier_free(struct soft_courier *courier)
{
	if (courier->fd >= 0)
		close(courier->fd);
	pthread_mutex_destroy(&courier->lock);
	base_free(courier);
}

/* Caller holds the context's lock. */
static void courier_put(struct soft_context *c, struct soft_courier *courier)
{
	struct soft_courier **at = &c->couriers;

	if (--courier->n_refs)
		return;
	while (*at != courier)
		at = &(*at)->next;
	*at = courier->next;
	courier_free(courier);
}

void soft_couriers_free(struct soft_context *c)
{
	struct soft_courier *courier;

	while ((courier = c->couriers)) {
		c->couriers = courier->next;
		courier_free(courier);
	}
}

/* 0 or errno.  Caller holds @courier->lock. */
static int reach(struct soft_courier *courier)
{
	uint64_t now;

	if (courier->fd >= 0)
		return 0;
	now = base_now_ns();
	if (courier->tried_ns && now - courier->tried_ns < RETRY_NS)
		return ECONNREFUSED;
	courier->fd = soft_dial_now(&courier->address);
	if (courier->fd >= 0)
		return 0;
	if (errno != EAGAIN)
		courier->tried_ns = now;
	return errno;
}

int soft_courier_send(struct soft_courier *courier, const struct msghdr *msg)
{
	int err;

	pthread_mutex_lock(&courier->lock);
	err = reach(courier);
	while (!err && sendmsg(courier->fd, msg, MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		err = errno;
		/* It was there and is no more. */
		if (err == EPIPE || err == ECONNRESET) {
			close(courier->fd);
			courier->fd = -1;
		}
	}
	pthread_mutex_unlock(&courier->lock);
	return err;
}

/* Caller holds the context's lock. */
static void fill_grh(struct soft_context *c, struct soft_ah *ah)
{
	const struct ibv_global_route *route = &ah->attr.grh;

	if (!ah->attr.is_global)
		return;
	ah->grh.version_tclass_flow =
		htonl(6u << 28 | (uint32_t)route->traffic_class << 20 |
		      (route->flow_label & 0xfffff));
	ah->grh.next_hdr = c->device->kind == SOFT_ETHERNET ? NEXT_UDP
							    : NEXT_IBA;
	ah->grh.hop_limit = route->hop_limit;
	ah->grh.sgid = c->address.gid;
	ah->grh.dgid = route->dgid;
}

struct ibv_ah *soft_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct soft_context *c = soft_context_of(pd->context);
	struct soft_address address = {.kind = c->device->kind};
	struct soft_ah *ah;

	if (soft_is_foreign(c) || c->is_gone) {
		errno = EIO;
		return NULL;
	}
	if (!soft_is_address(c, attr)) {
		errno = EINVAL;
		return NULL;
	}
	ah = base_alloc(1, sizeof(*ah));
	if (!ah)
		goto err;
	ah->attr = *attr;
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	if (c->device->kind == SOFT_INFINIBAND)
		address.lid = attr->dlid;
	else
		address.gid = attr->grh.dgid;
	pthread_mutex_lock(&c->lock);
	if (c->n_ah < SOFT_N_AH)
		ah->courier = courier_get(c, &address);
	if (ah->courier) {
		c->n_ah++;
		ah->slid = c->address.lid;
		fill_grh(c, ah);
	}
	pthread_mutex_unlock(&c->lock);
	if (!ah->courier)
		goto err_ah;
	atomic_fetch_add(&((struct soft_pd *)pd)->n_refs, 1);
	return &ah->ibv;

err_ah:
	base_free(ah);
err:
	errno = ENOMEM;
	return NULL;
}

int soft_destroy_ah(struct ibv_ah *ibah)
{
	struct soft_ah *ah = (struct soft_ah *)(void *)ibah;
	struct soft_context *c = soft_context_of(ibah->context);

	if (soft_is_foreign(c))
		return EIO;
	pthread_mutex_lock(&c->lock);
	courier_put(c, ah->courier);
	c->n_ah--;
	pthread_mutex_unlock(&c->lock);
	atomic_fetch_sub(&((struct soft_pd *)ibah->pd)->n_refs, 1);
	base_free(ah);
	return 0;
}
