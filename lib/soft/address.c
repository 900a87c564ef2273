/* SPDX-License-Identifier: MIT */
/* The addresses of ports, and the sockets behind them. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "soft/peer.h"

/* How long a peer that exists is given to answer when we connect. */
#define CONNECT_S 2

bool soft_address_is(const struct soft_address *a,
		     const struct soft_address *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == SOFT_INFINIBAND)
		return a->lid == b->lid;
	return !memcmp(a->gid.raw, b->gid.raw, sizeof(a->gid.raw));
}

socklen_t soft_address_name(const struct soft_address *address,
			    struct sockaddr_un *name)
{
	char *path = name->sun_path + 1; /* abstract: it begins with 0 */
	size_t room = sizeof(name->sun_path) - 1;
	const uint8_t *g = address->gid.raw;
	int n;

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	if (address->kind == SOFT_INFINIBAND)
		n = snprintf(path, room, "wreath-soft-lid-%04x", address->lid);
	else
		n = snprintf(path, room,
			     "wreath-soft-gid-%02x%02x%02x%02x%02x%02x%02x%02x"
			     "%02x%02x%02x%02x%02x%02x%02x%02x",
			     g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7],
			     g[8], g[9], g[10], g[11], g[12], g[13], g[14],
			     g[15]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)n);
}

int soft_dial(const struct soft_address *address, int *pid)
{
	struct timeval limit = {.tv_sec = CONNECT_S};
	struct sockaddr_un name;
	socklen_t n = soft_address_name(address, &name);
	struct ucred cred;
	socklen_t cred_n = sizeof(cred);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&name, n) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_n) ||
	    cred.uid != geteuid()) {
		close(fd);
		return -1;
	}
	*pid = cred.pid;
	return fd;
}

int soft_dial_now(const struct soft_address *address)
{
	struct sockaddr_un name;
	socklen_t n = soft_address_name(address, &name);
	struct ucred cred;
	socklen_t cred_n = sizeof(cred);
	int fd, err;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	err = connect(fd, (struct sockaddr *)&name, n) ||
			      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred,
					 &cred_n)
		      ? errno
		      : 0;
	if (!err && cred.uid == geteuid())
		return fd;
	if (!err)
		err = EACCES; /* another user's */
	close(fd);
	errno = err;
	return -1;
}

int soft_listen(const struct soft_address *address)
{
	struct sockaddr_un name;
	socklen_t n = soft_address_name(address, &name);
	int fd, err;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&name, n) || listen(fd, SOMAXCONN)) {
		err = errno;
		close(fd);
		errno = err;
		return -1;
	}
	return fd;
}
