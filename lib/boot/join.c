/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sock.h"
#include "tree.h"

/* The root's own deadline comes first: it knows who is missing. */
#define GRACE_MS 1000

/* One address may be silent: others get their turn after so long. */
#define CONNECT_MS 3000

/* How often args->stopped is asked. */
#define STOPPED_MS 20

struct join {
	struct boot *boot;
	const struct boot_args *args;
	const struct boot_id *id;
	uint64_t start_ns;
	uint64_t deadline_ns;
	int fd;
	struct boot_addr at;    /* of the root being tried */
	int last_errno;         /* of the last try to connect, negative */
	int stopped;            /* the error by which the caller ended it */
	bool met_other_secret;  /* at every address that answered */
	struct boot_addr other; /* who had it */
};

static uint64_t at_most(uint64_t deadline_ns, int ms)
{
	uint64_t later = base_now_ns() + (uint64_t)ms * 1000000;

	return later < deadline_ns ? later : deadline_ns;
}

static bool is_stopped(struct join *join)
{
	const struct boot_args *args = join->args;

	if (!join->stopped && args->stopped)
		join->stopped = args->stopped(args->stopped_arg);
	return join->stopped;
}

/* True when join->fd has one of @events; false also when we are stopped. */
static bool await(struct join *join, short events, uint64_t deadline_ns)
{
	if (!join->args->stopped)
		return boot_sock_wait(join->fd, events, deadline_ns);
	while (!boot_sock_wait(join->fd, events,
			       at_most(deadline_ns, STOPPED_MS)))
		if (is_stopped(join) || !boot_sock_ms_left(deadline_ns))
			return false;
	return true;
}

/* 0 when the root at join->at is ours: join->fd is the connection. */
static int try_one(struct join *join)
{
	static const unsigned char no_token[BOOT_TOKEN_BYTES];
	uint64_t deadline_ns = at_most(join->deadline_ns, CONNECT_MS);
	struct boot_auth auth;
	int err;

	join->fd = boot_sock_connect(&join->at);
	if (join->fd < 0)
		return join->fd;
	err = await(join, POLLOUT, deadline_ns)
		      ? boot_sock_connected(join->fd)
		      : -ETIMEDOUT;
	if (err)
		return err;
	boot_sock_tune(join->fd, BOOT_AUTH_MS);
	boot_auth_client(&auth, join->fd, BOOT_TO_ROOT, join->boot->rank,
			 no_token);
	deadline_ns = at_most(join->deadline_ns, BOOT_AUTH_MS);
	for (;;) {
		switch (boot_auth_step(&auth, join->id->secret)) {
		case BOOT_AUTH_DONE:
			return 0;
		case BOOT_AUTH_STRANGER:
			return -ECONNRESET;
		case BOOT_AUTH_BAD_PROOF:
			return -EKEYREJECTED;
		case BOOT_AUTH_SENDING:
		case BOOT_AUTH_READING:
			break;
		}
		if (!await(join, boot_auth_events(&auth), deadline_ns))
			return -ETIMEDOUT;
	}
}

static bool try_all(struct join *join)
{
	int i, port;

	for (port = 0; port < join->id->n_ports; port++) {
		for (i = 0; i < join->id->n_addrs; i++) {
			int err;

			join->at = join->id->addrs[i];
			boot_addr_set_port(&join->at,
					   boot_addr_port(&join->at) +
						   (unsigned int)port);
			err = try_one(join);
			if (!err)
				return true;
			boot_sock_close(&join->fd);
			if (is_stopped(join))
				return false;
			join->last_errno = err;
			if (err == -EKEYREJECTED) {
				join->met_other_secret = true;
				join->other = join->at;
			}
		}
	}
	return false;
}

static int other_secret(const struct join *join)
{
	char where[BOOT_ADDR_TEXT];

	boot_addr_text(&join->other, where);
	return base_error(WREATH_EINVAL,
			  "the root at %s holds another secret than rank %d: "
			  "the unique id is stale, or another job's",
			  where, join->boot->rank);
}

static int connect_root(struct join *join)
{
	char where[BOOT_ADDR_TEXT];
	char within[24];
	int pause_ms = 5;

	for (;;) {
		if (try_all(join))
			return 0;
		if (join->stopped)
			return join->stopped;
		/*
		 * With a port of its own there is one root only; where several
		 * jobs share a range of ports, ours may still be coming.
		 */
		if (join->met_other_secret && join->id->n_ports == 1)
			return other_secret(join);
		if (!boot_sock_ms_left(join->deadline_ns))
			break;
		poll(NULL, 0, pause_ms);
		pause_ms = pause_ms < 100 ? pause_ms * 2 : 200;
	}
	if (join->met_other_secret)
		return other_secret(join);
	boot_addr_text(&join->id->addrs[0], where);
	boot_text_ms(join->args->join_timeout_ms, within);
	return base_error(WREATH_ETIMEOUT,
			  "rank %d got no connection to the root at %s%s "
			  "within %s (%s): is the process that made the "
			  "unique id running, and can this host reach it?",
			  join->boot->rank, where,
			  join->id->n_ports > 1 ? " and the ports above" : "",
			  within, strerror(-join->last_errno));
}

/* Where the root has seen us from, our children can see us too. */
static int open_listener(struct join *join)
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

static ssize_t move_all(struct join *join, void *data, size_t bytes,
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
		if (!n && !await(join, events, deadline_ns))
			return -ETIMEDOUT;
	}
	return 0;
}

static int send_join(struct join *join)
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
			htole32((uint32_t)boot_sock_ms_left(join->deadline_ns)),
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

static int take_place(struct join *join, const struct boot_head *head)
{
	struct boot *boot = join->boot;
	struct boot_place_wire place;
	int i;

	if (head->bytes != sizeof(place))
		return -EBADMSG;
	i = (int)move_all(join, &place, sizeof(place), POLLIN);
	if (i)
		return i;
	memcpy(boot->token, place.token, sizeof(boot->token));
	boot->parent_at = place.parent_at;
	set_name(&boot->links[0], &place.parent);
	for (i = 0; i < BOOT_FAN_OUT; i++)
		set_name(&boot->links[1 + i], &place.children[i]);
	return 0;
}

/* The error that the root gives; 0 is never one, so -EBADMSG stays apart. */
static int take_refusal(struct join *join, const struct boot_head *head,
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
 */
static int ask(struct join *join, int *result)
{
	unsigned char in[BOOT_HEAD_BYTES];
	struct boot_head head;
	bool admitted = false;
	char where[BOOT_ADDR_TEXT];
	int err = send_join(join);

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
	struct join join = {
		.boot = boot,
		.args = args,
		.id = id,
		.fd = -1,
		.start_ns = base_now_ns(),
		.deadline_ns = boot->join_deadline_ns,
		.last_errno = -ETIMEDOUT,
	};
	int result = 0;
	int err;

	for (;;) {
		result = connect_root(&join);
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
		poll(NULL, 0, 20);
	}
	boot_sock_close(&join.fd);
	return result;
}
