/* SPDX-License-Identifier: MIT */
/*
 * topo: where a rank is: which host, and how many cores it may use.
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

#endif
