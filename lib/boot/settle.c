/* SPDX-License-Identifier: MIT */
/*
 * The chair died between the words of two ranks: whether all go on must be
 * found out from the others.
 */
#include "sock.h"
#include "survey.h"

/* Whoever did not join has noticed by then that the chair is gone, and has
 * left what was joined: that takes milliseconds. */
#define SETTLE_MS 200

static bool listens(struct boot_survey *survey, const struct boot_addr *addr)
{
	boot_sock_close(&survey->chair.fd);
	return !boot_survey_connect(survey, addr);
}

/*
 * This rank told the chair that it has joined, and heard no more.  If one of
 * the others heard that all have, it goes on, and nobody has failed.  If one
 * has failed, nobody can have heard that.  And where neither is, all have
 * joined and none has heard: they go on, too.  So it hangs on whether somebody
 * has failed: such a rank lives, since it still listens for a survey, and no
 * longer where it joined.
 */
bool boot_settle(struct boot_survey *survey, const struct boot *joined)
{
	const struct boot *boot = survey->boot;
	int to = 0;
	int i;

	base_sleep_ms(SETTLE_MS);
	for (i = 0; i < boot->n_ranks; i++) {
		if (!boot_map_has(survey->survivors, i))
			continue;
		if (i != boot->rank && !listens(survey, &joined->addrs[to]) &&
		    listens(survey, &boot->addrs[i]))
			return false;
		to++;
	}
	return true;
}
