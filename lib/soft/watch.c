/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "soft/watch.h"

void soft_watch_init(struct soft_watch *w)
{
	memset(w, 0, sizeof(*w));
	w->fds = w->few;
	w->room = base_countof(w->few);
}

void soft_watch_release(struct soft_watch *w)
{
	if (w->fds != w->few)
		base_free(w->fds);
}

bool soft_watch_reserve(struct soft_watch *w, size_t n)
{
	struct pollfd *fds;

	if (n <= w->room)
		return true;
	fds = base_alloc(2 * n, sizeof(*fds));
	if (!fds)
		return false;
	if (w->fds != w->few)
		base_free(w->fds);
	w->fds = fds;
	w->room = 2 * n;
	return true;
}

void soft_watch_add(struct soft_watch *w, int fd)
{
	if (w->n < w->room) {
		w->fds[w->n].fd = fd;
		w->fds[w->n].events = POLLIN;
		w->fds[w->n++].revents = 0;
	}
}

bool soft_watch_is_ready(const struct soft_watch *w, int fd)
{
	size_t i;

	for (i = 0; i < w->n; i++) {
		if (w->fds[i].fd == fd)
			return w->fds[i].revents;
	}
	return false;
}
