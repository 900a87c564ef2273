/* SPDX-License-Identifier: MIT */
/* The way to the root: its addresses in turn, until one answers. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "join.h"
#include "sock.h"

/* One address may be silent: others get their turn after so long. */
#define CONNECT_MS 3000

/* How often args->stopped is asked. */
#define STOPPED_MS 20

/*
 * Who is stopped still comes to the root, so that the others hear of it: no
 * longer than so, since the caller may destroy within a second.
 */
#define LAST_WORDS_MS 300

/* Refused everywhere for so long: no reboot of an interface, nor a flood. */
#define REFUSED_MS 500

static uint64_t at_most(uint64_t deadline_ns, int ms)
{
	uint64_t later = base_now_ns() + (uint64_t)ms * 1000000;

	return later < deadline_ns ? later : deadline_ns;
}

void boot_hang_up(const struct boot_joiner *join)
{
	shutdown(join->fd, SHUT_WR);
}

static void ask_stopped(struct boot_joiner *join)
{
	const struct boot_args *args = join->args;

	if (join->stopped || !args->stopped)
		return;
	join->stopped = args->stopped(args->stopped_arg);
	if (!join->stopped)
		return;
	snprintf(join->why, sizeof(join->why), "%s", base_error_text());
	join->deadline_ns = at_most(join->deadline_ns, LAST_WORDS_MS);
	if (join->has_claimed)
		boot_hang_up(join);
}

/* True when that leaves no time to tell the root. */
static bool is_stopped(struct boot_joiner *join)
{
	ask_stopped(join);
	return join->stopped && !boot_sock_ms_left(join->deadline_ns);
}

bool boot_await(struct boot_joiner *join, short events, uint64_t deadline_ns)
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
static int try_one(struct boot_joiner *join)
{
	static const unsigned char no_token[BOOT_TOKEN_BYTES];
	uint64_t deadline_ns = at_most(join->deadline_ns, CONNECT_MS);
	struct boot_auth auth;
	int err;

	join->fd = boot_sock_connect(&join->at);
	if (join->fd < 0)
		return join->fd;
	err = boot_await(join, POLLOUT, deadline_ns)
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
		if (!boot_await(join, boot_auth_events(&auth), deadline_ns))
			return -ETIMEDOUT;
	}
}

static bool try_all(struct boot_joiner *join)
{
	int n_refused = 0;
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
			n_refused += err == -ECONNREFUSED;
			join->last_errno = err;
			if (err == -EKEYREJECTED) {
				join->met_other_secret = true;
				join->other = join->at;
			}
		}
	}
	if (n_refused < join->id->n_ports * join->id->n_addrs)
		join->refused_ns = 0;
	else if (!join->refused_ns)
		join->refused_ns = base_now_ns();
	return false;
}

/*
 * A root with a port of its own listened before there was an id, and for as
 * long as ranks may come: it never listens there again.
 */
static bool root_has_ended(const struct boot_joiner *join)
{
	return join->id->n_ports == 1 && join->refused_ns &&
	       base_now_ns() - join->refused_ns >=
		       REFUSED_MS * UINT64_C(1000000);
}

static int other_secret(const struct boot_joiner *join)
{
	char where[BOOT_ADDR_TEXT];

	boot_addr_text(&join->other, where);
	return base_error(WREATH_EINVAL,
			  "the root at %s holds another secret than rank %d: "
			  "the unique id is stale, or another job's",
			  where, join->boot->rank);
}

int boot_reach_root(struct boot_joiner *join)
{
	char where[BOOT_ADDR_TEXT];
	char within[24];
	int pause_ms = 5;

	boot_addr_text(&join->id->addrs[0], where);
	for (;;) {
		ask_stopped(join);
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
		if (root_has_ended(join))
			return base_error(
				WREATH_EPEER,
				"rank %d comes too late: nobody listens at the "
				"root's address %s any more; the process that "
				"made the unique id has ended, or all its "
				"ranks have come, or the time for it is over",
				join->boot->rank, where);
		if (!boot_sock_ms_left(join->deadline_ns))
			break;
		poll(NULL, 0, pause_ms);
		pause_ms = pause_ms < 100 ? pause_ms * 2 : 200;
	}
	if (join->met_other_secret)
		return other_secret(join);
	boot_text_ms(join->args->join_timeout_ms, within);
	return base_error(WREATH_ETIMEOUT,
			  "rank %d got no connection to the root at %s%s "
			  "within %s (%s): is the process that made the "
			  "unique id running, and can this host reach it?",
			  join->boot->rank, where,
			  join->id->n_ports > 1 ? " and the ports above" : "",
			  within, strerror(-join->last_errno));
}
