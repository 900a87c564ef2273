/* SPDX-License-Identifier: MIT */
/*
 * One communicator being made at the root: who has come, whether they agree,
 * and what they are told.  Root's thread only.  It knows no stranger: every
 * connection handed to it has proved itself.
 */
#ifndef BOOT_ROUND_H
#define BOOT_ROUND_H

#include "wire.h"

/* In this machine's byte order. */
struct boot_member {
	int fd; /* -1: has not come */
	struct boot_join_wire join;
};

struct boot_round {
	int n_ranks; /* 0: nobody has come */
	int n_here;
	int first; /* the rank that came first, with whom others must agree */
	uint64_t deadline_ns;
	uint32_t timeout_ms; /* the one that made the deadline */
	struct boot_member *members;

	/*
	 * The last round's failure stays for the ranks that were not there to
	 * be told; one that was told and comes again starts another round.
	 */
	int error;
	int n_told;
	bool *told;
	char text[BOOT_TEXT_BYTES];
};

enum boot_verdict {
	BOOT_WAITING,
	BOOT_COMPLETE, /* all were told their places */
	BOOT_BROKEN,   /* all who came were told why */
};

/* Takes @fd.  @join comes from the wire: everything in it is checked. */
enum boot_verdict boot_round_admit(struct boot_round *round,
				   const struct boot_join_wire *join, int fd);

/* The connection of @rank is readable, which means that it ended. */
enum boot_verdict boot_round_lost(struct boot_round *round, int rank);

/* The deadline has passed. */
void boot_round_expire(struct boot_round *round);

void boot_round_release(struct boot_round *round);

#endif
