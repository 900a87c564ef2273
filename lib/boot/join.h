/* SPDX-License-Identifier: MIT */
/*
 * A rank on its way to the root: what join.c and reach.c share.  The thread of
 * boot_open() only.
 */
#ifndef BOOT_JOIN_H
#define BOOT_JOIN_H

#include "tree.h"

struct boot_joiner {
	struct boot *boot;
	const struct boot_args *args;
	const struct boot_id *id;
	uint64_t deadline_ns;
	int fd;
	struct boot_addr at;       /* of the root being tried */
	int last_errno;            /* of the last try to connect, negative */
	uint64_t refused_ns;       /* since when all addresses refuse, or 0 */
	bool met_other_secret;     /* at every address that answered */
	struct boot_addr other;    /* who had it */
	bool has_claimed;          /* the root has, or will read, who we are */
	int stopped;               /* the error by which the caller ended it */
	char why[BOOT_TEXT_BYTES]; /* its text */
};

/*
 * Connect to the root, and prove ourselves: 0 and join->fd, or an error that
 * is reported.
 */
int boot_reach_root(struct boot_joiner *join);

/* The root sees that we give up, and may still answer. */
void boot_hang_up(const struct boot_joiner *join);

/*
 * True when join->fd has one of @events, by @deadline_ns.  False also when
 * the caller has stopped us, and no time is left to tell.
 */
bool boot_await(struct boot_joiner *join, short events, uint64_t deadline_ns);

#endif
