/* SPDX-License-Identifier: MIT */
/*
 * topo: where a rank is: which host, how many cores it may use, and in which
 * subnets the host is.
 *
 * It must never know a device or a socket.  Any thread may call.
 */
#ifndef TOPO_H
#define TOPO_H

#include "base/base.h"

/*
 * Equal for two processes that can reach each other through the soft device:
 * same running kernel, same network namespace (which is the scope of the
 * device's sockets) and same user.  Host names say nothing about that:
 * containers share names and not memory, or the reverse.
 */
uint64_t topo_host_id(void);

/* Cores of a host, by number; those beyond are left out. */
#define TOPO_CORES_MAX 1024
struct topo_cores {
	uint64_t word[TOPO_CORES_MAX / 64];
};

/* The cores that this process may run on. */
void topo_cores(struct topo_cores *cores);
void topo_cores_add(struct topo_cores *to, const struct topo_cores *from);

/* How many there are; at least 1. */
int topo_cores_count(const struct topo_cores *cores);
int topo_n_cores(void);

/*
 * Keep the calling process on the @i-th of the cores that it may run on.
 * WREATH_EINVAL where there are fewer.
 */
int topo_bind(int i);

/* An address of an interface. */
struct topo_addr {
	char ifname[16];
	unsigned int ifindex;
	unsigned char addr[16]; /* IPv4 as ::ffff:a.b.c.d; or all zero */
	unsigned char prefix;	/* bits of the subnet, of 128 */
	bool is_up;		/* the interface is, and has a carrier */
	bool is_vlan;		/* the interface is one of a VLAN */
};

/*
 * Every address of every interface in this network namespace, and an all-zero
 * one for each interface, so that those without addresses are known as well.
 * The caller frees it by base_free().  WREATH_ENET, WREATH_ENOMEM.
 */
int topo_addrs(struct topo_addr **out, int *n);

#endif
