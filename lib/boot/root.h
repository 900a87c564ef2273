/* SPDX-License-Identifier: MIT */
/*
 * The root: a thread that listens, lets in who holds the secret, and makes
 * rounds.  It owns everything it uses and frees it at its end.
 */
#ifndef BOOT_ROOT_H
#define BOOT_ROOT_H

#include "wire.h"

struct boot_root_args {
	const struct boot_addr *addrs; /* where to listen; port 0: any */
	int n_addrs;
	int n_ports; /* how many to try, where a port is given */
	int n_rounds;
	int64_t idle_ms;             /* ends so long after the last rank came */
	const unsigned char *secret; /* NULL: a random one */
};

/* The id has the ports that were found. */
int boot_root_serve(const struct boot_root_args *args,
		    struct wreath_unique_id *id);

#endif
