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

/* Cores that this process may run on, at least 1. */
int topo_n_cores(void);

#endif
