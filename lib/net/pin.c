/* SPDX-License-Identifier: MIT */
/* Slots that kernels on GPUs read and write. */
#include "net/reach.h"

bool net_conn_pin(struct net_conn *conn)
{
	/* The stage is not there where the peer's slots are mapped. */
	char *parts[] = {conn->mailbox, conn->stage, conn->mailbox_map};
	const size_t bytes[] = {conn->mailbox_bytes, conn->stage_bytes,
				conn->mailbox_bytes};
	size_t i;

	if (conn->has_pinned)
		return conn->is_pinned;
	/* Without a GPU nothing is known that would stay true. */
	if (!conn->net->gpu)
		return false;
	conn->has_pinned = true;
	for (i = 0; i < base_countof(parts); i++)
		if (parts[i] && mem_pin(parts[i], bytes[i]))
			break;
	conn->is_pinned = i == base_countof(parts);
	while (!conn->is_pinned && i-- > 0)
		if (parts[i])
			mem_unpin(parts[i]);
	return conn->is_pinned;
}

void net_conn_unpin(struct net_conn *conn)
{
	if (!conn->is_pinned)
		return;
	mem_unpin(conn->mailbox);
	if (conn->stage)
		mem_unpin(conn->stage);
	if (conn->mailbox_map)
		mem_unpin(conn->mailbox_map);
	conn->is_pinned = false;
}
