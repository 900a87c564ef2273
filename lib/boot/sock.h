/* SPDX-License-Identifier: MIT */
/*
 * Sockets as boot wants them: never inherited, never blocking, and known to a
 * table, so that a forked child does not keep its parent's connections open:
 * the end of a connection is how a death is seen.  Any thread may call.
 *
 * Functions return a descriptor or a negative errno, and report nothing.
 */
#ifndef BOOT_SOCK_H
#define BOOT_SOCK_H

#include "id.h"

/* Of any socket() kind; non-blocking. */
int boot_sock_open(int family, int type);

/* An eventfd, non-blocking. */
int boot_sock_event(void);
void boot_sock_event_set(int fd);
void boot_sock_event_clear(int fd);

/* An epoll instance. */
int boot_sock_epoll(void);

/* -EAGAIN when nobody waits. */
int boot_sock_accept(int listener);

/* Close *fd where it is not -1, and make it -1. */
void boot_sock_close(int *fd);

/*
 * Listen at @at; a port of 0 takes any, else the first free one of @n_ports.
 * *bound is where.
 */
int boot_sock_listen(const struct boot_addr *at, int n_ports,
		     struct boot_addr *bound);

/* Begin to connect; writable when that is over, one way or the other. */
int boot_sock_connect(const struct boot_addr *to);

/* 0 when connected, a negative errno when not. */
int boot_sock_connected(int fd);

/* The address of this end. */
int boot_sock_local(int fd, struct boot_addr *addr);

/*
 * Small frames leave at once, and a peer whose host is gone is noticed within
 * about @silence_ms.
 */
void boot_sock_tune(int fd, int silence_ms);

/*
 * Non-blocking, and never a signal: bytes moved, 0 when none could be, -EPIPE
 * at the end of the stream (recv) or another negative errno.
 */
ssize_t boot_sock_send(int fd, const void *data, size_t bytes);
ssize_t boot_sock_recv(int fd, void *data, size_t bytes);

/* Wait until @fd has one of @events, or @deadline_ns: true if it has. */
bool boot_sock_wait(int fd, short events, uint64_t deadline_ns);

/* Milliseconds to @deadline_ns for poll(), at least 0, rounded up. */
int boot_sock_ms_left(uint64_t deadline_ns);

/*
 * Addresses of the interface @ifname, port 0; "" chooses.  Reports: the number
 * found or a negative enum wreath_error.
 */
int boot_sock_interface(const char *ifname, struct boot_addr *out, int max);

#endif
