/* SPDX-License-Identifier: MIT */
#ifndef SOFT_WATCH_H
#define SOFT_WATCH_H

#include <poll.h>

#include "base/base.h"

/*
 * The descriptors to wait for: ours, guests' and peers'.  Grows as needed;
 * when it cannot, those at the end wait for better times, but never our own,
 * which are first.
 */
struct soft_watch {
	struct pollfd few[8];
	struct pollfd *fds;
	size_t n, room;
	bool is_short;
};

void soft_watch_init(struct soft_watch *w);
void soft_watch_release(struct soft_watch *w);
/* Room for @n descriptors; false: no memory. */
bool soft_watch_reserve(struct soft_watch *w, size_t n);
void soft_watch_add(struct soft_watch *w, int fd);
/* Has something come for @fd? */
bool soft_watch_is_ready(const struct soft_watch *w, int fd);

#endif
