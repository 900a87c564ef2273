/* SPDX-License-Identifier: MIT */
/*
 * How ranks of one user on one host get an id from rank 0, when all they share
 * is a few words from their launcher: an abstract Unix socket whose name is a
 * hash of the words.  The kernel says who is at the other end; nobody else's
 * process gets an id, or can give one.
 */
#ifndef BOOT_LOCAL_H
#define BOOT_LOCAL_H

#include <sys/un.h>

#include "wire.h"

/* Any words; they are hashed. */
struct boot_local_key {
	const char *launcher; /* for messages */
	char words[512];
};

/* The name of the socket, for this process's user; returns its length. */
socklen_t boot_local_name(const struct boot_local_key *key,
			  struct sockaddr_un *name);

/*
 * Rank 0: give @id to the ranks 1 to @n_ranks - 1, from a thread that ends
 * when all have it, or after @timeout_ms.
 */
int boot_local_give(const struct boot_local_key *key,
		    const struct wreath_unique_id *id, int n_ranks,
		    int64_t timeout_ms);

/* The others: blocks up to @timeout_ms. */
int boot_local_take(const struct boot_local_key *key, int rank,
		    int64_t timeout_ms, struct wreath_unique_id *id);

/*
 * Both: where rank is 0, start a root for local ranks and give its id, else
 * take it.
 */
int boot_local_meet(const struct base_env *env,
		    const struct boot_local_key *key, struct boot_place *place);

#endif
