/* SPDX-License-Identifier: MIT */
/*
 * The chair died between the words of two ranks: whether all go on must be
 * found out from the others.
 */
#define _GNU_SOURCE
#include <poll.h>

#include "sock.h"
#include "survey.h"

/* Whoever did not join has noticed by then that the chair is gone, and has
 * left what was joined: that takes milliseconds. */
#define SETTLE_MS 200

static bool listens(const struct boot_addr *addr)
{
	uint64_t deadline_ns =
		base_now_ns() + (uint64_t)BOOT_SILENT_MS * 1000000;
	int fd = boot_sock_connect(addr);
	bool is_there = fd >= 0 && boot_sock_wait(fd, POLLOUT, deadline_ns) &&
			!boot_sock_connected(fd);

	boot_sock_close(&fd);
	return is_there;
}

/*
 * This rank told the chair that it has joined, and heard no more.  If one of
 * the others heard that all have, it goes on, and nobody has failed.  If one
 * has failed, nobody can have heard that.  And where neither is, all have
 * joined and none has heard: they go on, too.  So it hangs on whether somebody
 * has failed: such a rank lives, since it still listens for a survey, and no
 * longer where it joined.
 */
bool boot_settle(const struct boot_survey *survey, const struct boot *joined)
{
	const struct boot *boot = survey->boot;
	int to = 0;
	int i;

	poll(NULL, 0, SETTLE_MS);
	for (i = 0; i < boot->n_ranks; i++) {
		if (!boot_map_has(survey->survivors, i))
			continue;
		if (i != boot->rank && !listens(&joined->addrs[to]) &&
		    listens(&boot->addrs[i]))
			return false;
		to++;
	}
	return true;
}
