/* SPDX-License-Identifier: MIT */
/* Slots that kernels on GPUs read and write. */
#include "net/reach.h"

#define NET_PINS 3

/* What the peer and kernels write; some are not there. */
static void *part_of(const struct net_conn *conn, unsigned int i, size_t *bytes)
{
	/* The stage is not there where the peer's slots are mapped. */
	char *parts[] = {conn->mailbox, conn->stage, conn->mailbox_map};

	_Static_assert(base_countof(parts) == NET_PINS, "all of them");
	*bytes = i == 1 ? conn->stage_bytes : conn->mailbox_bytes;
	return parts[i];
}

bool net_conn_pin(struct net_conn *conn)
{
	int err = 0;

	/* Without a GPU nothing is known that would stay true. */
	if (conn->has_pinned || mem_gpu_held() < 0)
		return conn->n_pinned == NET_PINS;
	/* What is pinned stays so, also where the rest cannot be now, or ever:
	 * to take it back may take long. */
	for (; conn->n_pinned < NET_PINS; conn->n_pinned++) {
		size_t bytes;
		void *part = part_of(conn, conn->n_pinned, &bytes);

		if (part)
			err = mem_pin(part, bytes);
		if (err)
			break;
	}
	conn->has_pinned = err != WREATH_EAGAIN;
	return !err;
}

void net_pin(struct net *net)
{
	int i;

	for (i = 0; i < net->n_active; i++)
		if (net->active[i]->ready)
			net_conn_pin(net->active[i]);
}

void net_conn_unpin(struct net_conn *conn)
{
	while (conn->n_pinned > 0) {
		size_t bytes;
		void *part = part_of(conn, --conn->n_pinned, &bytes);

		if (part)
			mem_unpin(part);
	}
}
