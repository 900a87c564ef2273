/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sock.h"

/*
 * Descriptors above this are not known to the table, and a child that was
 * forked while they were open delays the news of its parent's death.
 */
#define KNOWN_FDS 65536

static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t known[KNOWN_FDS / 64];
static pthread_once_t known_once = PTHREAD_ONCE_INIT;

/* Held over fork(): so no descriptor is between socket() and the table. */
static void fork_prepare(void)
{
	pthread_mutex_lock(&known_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&known_lock);
}

static void fork_child(void)
{
	int i, bit;

	for (i = 0; i < KNOWN_FDS / 64; i++) {
		for (bit = 0; known[i] && bit < 64; bit++) {
			if (!(known[i] >> bit & 1))
				continue;
			close(i * 64 + bit);
			known[i] &= ~((uint64_t)1 << bit);
		}
	}
	pthread_mutex_unlock(&known_lock);
}

static void know_forks(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static void begin(void)
{
	pthread_once(&known_once, know_forks);
	pthread_mutex_lock(&known_lock);
}

/* Ends begin(). */
static int keep(int fd)
{
	int err = errno;

	if (fd >= 0 && fd < KNOWN_FDS)
		known[fd / 64] |= (uint64_t)1 << fd % 64;
	pthread_mutex_unlock(&known_lock);
	return fd < 0 ? -err : fd;
}

int boot_sock_open(int family, int type)
{
	begin();
	return keep(socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int boot_sock_event(void)
{
	begin();
	return keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

int boot_sock_epoll(void)
{
	begin();
	return keep(epoll_create1(EPOLL_CLOEXEC));
}

int boot_sock_accept(int listener)
{
	begin();
	return keep(
		accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

void boot_sock_close(int *fd)
{
	if (*fd < 0)
		return;
	begin();
	if (*fd < KNOWN_FDS)
		known[*fd / 64] &= ~((uint64_t)1 << *fd % 64);
	close(*fd);
	pthread_mutex_unlock(&known_lock);
	*fd = -1;
}

void boot_sock_event_set(int fd)
{
	uint64_t one = 1;

	/* It can only fail by being full, and then it is set. */
	if (write(fd, &one, sizeof(one)) < 0)
		return;
}

void boot_sock_event_clear(int fd)
{
	uint64_t count;

	/* EAGAIN: it was clear already. */
	if (read(fd, &count, sizeof(count)) < 0)
		return;
}

static int listen_at(const struct boot_addr *at, struct boot_addr *bound)
{
	struct sockaddr_storage name;
	socklen_t bytes = boot_addr_to_sock(at, &name);
	int one = 1;
	int err;
	int fd = boot_sock_open(name.ss_family, SOCK_STREAM);

	if (fd < 0)
		return fd;
	/* A named port must not wait for the last job's closed connections. */
	if (boot_addr_port(at))
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&name, bytes) ||
	    listen(fd, SOMAXCONN)) {
		err = -errno;
		boot_sock_close(&fd);
		return err;
	}
	err = boot_sock_local(fd, bound);
	if (err) {
		boot_sock_close(&fd);
		return err;
	}
	return fd;
}

int boot_sock_listen(const struct boot_addr *at, int n_ports,
		     struct boot_addr *bound)
{
	struct boot_addr one = *at;
	int fd = -EADDRINUSE;
	int i;

	for (i = 0; i < n_ports; i++) {
		boot_addr_set_port(&one, boot_addr_port(at) + (unsigned int)i);
		fd = listen_at(&one, bound);
		if (fd != -EADDRINUSE && fd != -EACCES)
			break;
	}
	return fd;
}

int boot_sock_connect(const struct boot_addr *to)
{
	struct sockaddr_storage name;
	socklen_t bytes = boot_addr_to_sock(to, &name);
	int err;
	int fd = boot_sock_open(name.ss_family, SOCK_STREAM);

	if (fd < 0)
		return fd;
	if (!connect(fd, (struct sockaddr *)&name, bytes) ||
	    errno == EINPROGRESS || errno == EINTR)
		return fd;
	err = -errno;
	boot_sock_close(&fd);
	return err;
}

int boot_sock_connected(int fd)
{
	struct sockaddr_storage ours, theirs;
	socklen_t n_ours = sizeof(ours);
	socklen_t n_theirs = sizeof(theirs);
	int err = 0;
	socklen_t bytes = sizeof(err);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &bytes))
		return -errno;
	if (err)
		return -err;
	if (getsockname(fd, (struct sockaddr *)&ours, &n_ours) ||
	    getpeername(fd, (struct sockaddr *)&theirs, &n_theirs))
		return -errno;
	/*
	 * On one host, a connection to a port that nobody listens at may be
	 * given that very port for its own end, and meet itself.
	 */
	if (n_ours == n_theirs && !memcmp(&ours, &theirs, n_ours))
		return -ECONNREFUSED;
	return 0;
}

int boot_sock_local(int fd, struct boot_addr *addr)
{
	struct sockaddr_storage name;
	socklen_t bytes = sizeof(name);

	if (getsockname(fd, (struct sockaddr *)&name, &bytes))
		return -errno;
	return boot_addr_from_sock((struct sockaddr *)&name, addr)
		       ? 0
		       : -EAFNOSUPPORT;
}

void boot_sock_tune(int fd, int silence_ms)
{
	int one = 1;
	int idle_s = 1 + silence_ms / 4000;
	int interval_s = 1 + silence_ms / 8000;
	int probes = 3;
	unsigned int user_ms = (unsigned int)silence_ms;

	/* Each is a help only: a kernel without one still has a connection. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s,
		   sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_ms,
		   sizeof(user_ms));
}

ssize_t boot_sock_send(int fd, const void *data, size_t bytes)
{
	ssize_t n;

	do {
		n = send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	return n;
}

ssize_t boot_sock_recv(int fd, void *data, size_t bytes)
{
	ssize_t n;

	do {
		n = recv(fd, data, bytes, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	return n ? n : -EPIPE;
}

int boot_sock_ms_left(uint64_t deadline_ns)
{
	uint64_t now = base_now_ns();
	uint64_t ms;

	if (now >= deadline_ns)
		return 0;
	ms = (deadline_ns - now + 999999) / 1000000;
	return ms > 3600000 ? 3600000 : (int)ms;
}

bool boot_sock_wait(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd pfd = {.fd = fd, .events = events};

	for (;;) {
		int ms = boot_sock_ms_left(deadline_ns);
		int n = poll(&pfd, 1, ms);

		if (n > 0)
			return true;
		if (!n && !boot_sock_ms_left(deadline_ns))
			return false;
		if (n < 0 && errno != EINTR)
			return false;
	}
}
