/* SPDX-License-Identifier: MIT */
/*
 * The parts of `wreath run`: ranks.c starts and ends processes, relay.c carries
 * what they write, run.c decides.
 */
#ifndef RUN_H
#define RUN_H

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include "bench/bench.h"

/* Processes that one launcher minds: two pipes each. */
#define RANKS_MAX 1024
/* Longer lines are carried in pieces. */
#define RELAY_LINE_MAX 32768

/* One output of one rank, on its way to the launcher's own. */
struct relay {
	int from, to;
	int rank; /* the prefix; -1: none */
	size_t length;
	char line[RELAY_LINE_MAX];
};

enum relay_state {
	RELAY_OPEN,
	RELAY_ENDED,  /* the rank has closed it, and everything is written */
	RELAY_BROKEN, /* nobody reads what the launcher writes any more */
};

/* Carry over what is there, in whole lines; does not wait for more. */
enum relay_state relay_carry(struct relay *relay);

struct rank {
	pid_t pid;
	bool is_done; /* has ended; its zombie is kept until ranks_free() */
	int code;     /* si_code and si_status of waitid() */
	int status;
	struct relay *relay[2]; /* of stdout and stderr; NULL once ended */
};

struct ranks {
	int n;
	int n_running;
	struct rank *rank;
	struct guard *guard;
};

struct ranks_args {
	char **argv; /* the program and its words, NULL ends them */
	int n;
	const int *nodes; /* [n]: WREATH_NODE of each; NULL: left as it is */
	bool no_prefix;
	/* What the ranks get back; the launcher has blocked its own. */
	const sigset_t *mask;
};

/* Start a root, and a process for each rank.  0, or an exit status. */
int ranks_start(const struct ranks_args *args, struct ranks *ranks);

/* Note which have ended; the first that failed, or NULL. */
struct rank *ranks_reap(struct ranks *ranks);

/*
 * To all processes in the ranks' groups; "done" ones too, since a rank may
 * have left processes behind.
 */
void ranks_signal(struct ranks *ranks, int number);

/* End whatever is left, and free. */
void ranks_free(struct ranks *ranks);

#endif
