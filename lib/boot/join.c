/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "join.h"
#include "sock.h"

/* The root's own deadline comes first: it knows who is missing. */
#define GRACE_MS 1000

/* Where the root has seen us from, our children can see us too. */
static int open_listener(struct boot_joiner *join)
{
	struct boot *boot = join->boot;
	struct boot_addr local;
	char where[BOOT_ADDR_TEXT];
	int fd = boot_sock_local(join->fd, &local);

	if (fd >= 0) {
		boot_addr_set_port(&local, 0);
		fd = boot_sock_listen(&local, 1, &boot->listens_at);
	}
	if (fd < 0) {
		boot_addr_text(&local, where);
		return base_error(WREATH_ENET,
				  "rank %d cannot listen at %s: %s", boot->rank,
				  where, strerror(-fd));
	}
	boot->listener = fd;
	return 0;
}

static ssize_t move_all(struct boot_joiner *join, void *data, size_t bytes,
			short events)
{
	uint64_t deadline_ns = join->deadline_ns + GRACE_MS * UINT64_C(1000000);
	unsigned char *at = data;

	while (bytes) {
		ssize_t n = events == POLLIN
				    ? boot_sock_recv(join->fd, at, bytes)
				    : boot_sock_send(join->fd, at, bytes);

		if (n < 0)
			return n;
		at += n;
		bytes -= (size_t)n;
		if (!n && !boot_await(join, events, deadline_ns))
			return -ETIMEDOUT;
	}
	return 0;
}

static int send_join(struct boot_joiner *join)
{
	const struct boot_args *args = join->args;
	unsigned char out[BOOT_HEAD_BYTES + sizeof(struct boot_join_wire)];
	struct boot_head head = {
		.type = BOOT_JOIN,
		.bytes = sizeof(struct boot_join_wire),
	};
	struct boot_join_wire wire = {
		.version = htole32(WREATH_VERSION),
		.rank = htole32((uint32_t)args->rank),
		.n_ranks = htole32((uint32_t)args->n_ranks),
		.pid = htole32((uint32_t)getpid()),
		.timeout_ms =
			htole32((uint32_t)boot_sock_ms_left(
				join->boot->join_deadline_ns)),
		.listens_at = join->boot->listens_at,
	};

	if (gethostname(wire.host, sizeof(wire.host) - 1))
		snprintf(wire.host, sizeof(wire.host), "unknown");
	snprintf(wire.config, sizeof(wire.config), "%s",
		 args->config ? args->config : "");
	boot_head_encode(&head, out);
	memcpy(out + BOOT_HEAD_BYTES, &wire, sizeof(wire));
	return (int)move_all(join, out, sizeof(out), POLLOUT);
}

static void set_name(struct boot_link *link, const struct boot_name_wire *wire)
{
	link->name.pid = (int)le32toh(wire->pid);
	memcpy(link->name.host, wire->host, sizeof(link->name.host));
	boot_text_clean(link->name.host, sizeof(link->name.host));
}

static int take_place(struct boot_joiner *join, const struct boot_head *head)
{
	struct boot *boot = join->boot;
	struct boot_place_wire place;
	int i;

	if (head->bytes != sizeof(place))
		return -EBADMSG;
	i = (int)move_all(join, &place, sizeof(place), POLLIN);
	if (i)
		return i;
	boot->has_place = true;
	memcpy(boot->token, place.token, sizeof(boot->token));
	boot->parent_at = place.parent_at;
	set_name(&boot->links[0], &place.parent);
	for (i = 0; i < BOOT_FAN_OUT; i++)
		set_name(&boot->links[1 + i], &place.children[i]);
	return 0;
}

/* The error that the root gives; 0 is never one, so -EBADMSG stays apart. */
static int take_refusal(struct boot_joiner *join, const struct boot_head *head,
			int *refused)
{
	char text[BOOT_TEXT_BYTES];
	int err;

	if (!head->bytes || head->bytes > sizeof(text) || !head->value ||
	    head->value > 1000)
		return -EBADMSG;
	err = (int)move_all(join, text, head->bytes, POLLIN);
	if (err)
		return err;
	boot_text_clean(text, head->bytes);
	*refused = base_error(-(int)head->value, "%s", text);
	return 0;
}

/*
 * A negative errno for a connection that ended before the root had read the
 * claim: come again.  Else 0, and *result is what came of it.
 *
 * Who is stopped hangs up and hears the root's answer to that: a place means
 * that it came too late, and the tree has to be told.
 */
static int ask(struct boot_joiner *join, int *result)
{
	unsigned char in[BOOT_HEAD_BYTES];
	struct boot_head head;
	bool admitted = false;
	char where[BOOT_ADDR_TEXT];
	int err;

	join->has_claimed = false;
	err = send_join(join);
	join->has_claimed = true;
	if (join->stopped)
		boot_hang_up(join);
	*result = 0;
	while (!err) {
		err = (int)move_all(join, in, sizeof(in), POLLIN);
		if (!err && !boot_head_decode(in, &head))
			err = -EBADMSG;
		if (err)
			break;
		if (head.type == BOOT_ADMITTED && !head.bytes)
			admitted = true;
		else if (head.type == BOOT_PLACED)
			return take_place(join, &head);
		else if (head.type == BOOT_REFUSED)
			return take_refusal(join, &head, result);
		else
			err = -EBADMSG;
	}
	if (join->stopped)
		*result = join->stopped;
	if (join->stopped || (!admitted && err != -EBADMSG))
		return join->stopped ? 0 : err;
	boot_addr_text(&join->at, where);
	*result = base_error(err == -ETIMEDOUT ? WREATH_ETIMEOUT : WREATH_EPEER,
			     "rank %d was waiting for the other ranks when the "
			     "root at %s %s (%s)",
			     join->boot->rank, where,
			     err == -ETIMEDOUT ? "fell silent" : "ended",
			     err == -EPIPE ? "closed" : strerror(-err));
	return 0;
}

int boot_join(struct boot *boot, const struct boot_args *args,
	      const struct boot_id *id)
{
	struct boot_joiner join = {
		.boot = boot,
		.args = args,
		.id = id,
		.fd = -1,
		.deadline_ns = boot->join_deadline_ns,
		.last_errno = -ETIMEDOUT,
	};
	int result = 0;
	int err;

	for (;;) {
		result = boot_reach_root(&join);
		if (result)
			break;
		boot_sock_close(&boot->listener);
		result = open_listener(&join);
		if (result)
			break;
		err = ask(&join, &result);
		if (!err)
			break;
		boot_sock_close(&join.fd);
		join.has_claimed = false;
		poll(NULL, 0, 20);
	}
	boot_sock_close(&join.fd);
	/* Whatever the root said to that. */
	if (join.stopped)
		return base_error_again(join.stopped, join.why);
	return result;
}
