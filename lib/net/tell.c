/* SPDX-License-Identifier: MIT */
/*
 * Failures between ranks of one host.  boot tells all ranks of a failure, but
 * two of one host may have their way through another one, and when that is cut
 * off they would learn nothing until the deadline.  Where a peer's mailbox is
 * mapped the news is stored there.
 */
#include <stdio.h>
#include <string.h>

#include "net/inner.h"

/* boot is waited for so long: its words are the same on every rank. */
#define BOOT_FIRST_NS 300000000u

void net_fail_tell(struct net *net, int error, const char *text)
{
	int i;

	for (i = 0; i < net->n_active && !net->has_told; i++) {
		struct net_conn *conn = net->active[i];
		struct net_failure *failure;

		if (!conn->mailbox_map)
			continue;
		failure = (void *)(conn->mailbox_map + NET_BOX_FAILURE);
		snprintf(failure->text, sizeof(failure->text), "%s", text);
		/* Pairs with the acquire in net_fail_heard(): the text is
		 * there. */
		atomic_store_explicit(&failure->error, (uint64_t)-error,
				      memory_order_release);
	}
	net->has_told = true;
}

/* What a peer has written is not believed to be text. */
static void clean(char *text, size_t bytes)
{
	size_t i;

	text[bytes - 1] = 0;
	for (i = 0; text[i]; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = '?';
}

int net_fail_heard(struct net *net)
{
	int i;

	for (i = 0; i < net->n_active; i++) {
		const struct net_conn *conn = net->active[i];
		const struct net_failure *failure =
			(const void *)(conn->mailbox + NET_BOX_FAILURE);
		/* Pairs with the release in net_fail_tell(). */
		uint64_t error = atomic_load_explicit(&failure->error,
						      memory_order_acquire);
		char text[sizeof(failure->text)];

		if (base_likely(!error))
			continue;
		if (!net->heard_ns)
			net->heard_ns = base_now_ns();
		if (base_now_ns() - net->heard_ns < BOOT_FIRST_NS)
			return 0;
		memcpy(text, failure->text, sizeof(text));
		clean(text, sizeof(text));
		if (error > 1000)
			error = (uint64_t)-WREATH_ENET;
		return base_error(-(int)error, "%s", text);
	}
	return 0;
}
