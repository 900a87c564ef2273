/* SPDX-License-Identifier: MIT */
/* What can happen to a port and to the device under a running program. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "soft/peer.h"
#include "soft/qp.h"

void soft_port_set(struct soft_context *c, bool is_down)
{
	uint32_t i;

	if (atomic_exchange(&c->is_down, is_down) == is_down)
		return;
	for (i = 0; i < atomic_load(&c->qps_high); i++) {
		struct soft_qp *qp = atomic_load(&c->qps[i]);

		if (!qp || !qp->is_live)
			continue;
		soft_lock(qp->lock);
		qp->is_fast = false;
		soft_unlock(qp->lock);
		/* Peers find us silent while it is down. */
		soft_qp_publish(qp);
	}
	soft_async(c, is_down ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE,
		   NULL, NULL);
}

void soft_gid_change(struct soft_context *c)
{
	uint64_t id = soft_random(c);
	struct soft_address address = c->address;
	int fd;

	memcpy(address.gid.raw + 8, &id, sizeof(id));
	fd = soft_listen(&address);
	if (fd < 0)
		return;
	close(c->listen_fd);
	c->listen_fd = fd;
	c->address = address;
	atomic_store(&c->gid_index, atomic_load(&c->gid_index) ^ 1);
	soft_async(c, IBV_EVENT_GID_CHANGE, NULL, NULL);
	soft_control_wake(c);
}

void soft_device_gone(struct soft_context *c)
{
	uint32_t i;

	if (atomic_exchange(&c->is_gone, true))
		return;
	soft_async(c, IBV_EVENT_DEVICE_FATAL, NULL, NULL);
	for (i = 0; i < atomic_load(&c->qps_high); i++) {
		struct soft_qp *qp = atomic_load(&c->qps[i]);

		if (qp)
			soft_qp_error(qp);
	}
}
