/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include "sock.h"
#include "tree.h"

/* How long the last frames may take to reach the neighbours' hosts. */
#define DRAIN_MS 500

#define N_LINKS (1 + BOOT_FAN_OUT)

struct polled {
	struct pollfd wake, listener;
	struct pollfd links[N_LINKS];
	struct pollfd guests[BOOT_N_GUESTS];
};
#define N_POLLED (2 + N_LINKS + BOOT_N_GUESTS)
_Static_assert(sizeof(struct polled) == N_POLLED * sizeof(struct pollfd),
	       "poll() sees one array");

bool boot_frame_begins(struct boot *boot, struct boot_link *link)
{
	switch ((enum boot_frame_type)link->head.type) {
	case BOOT_UP:
		return boot_gather_up_begins(boot, link);
	case BOOT_DOWN:
		return boot_gather_down_begins(boot, link);
	case BOOT_MESSAGE:
	case BOOT_NOTE:
	case BOOT_ASK:
		return boot_message_begins(boot, link);
	case BOOT_CREDIT:
		return boot_credit_arrives(boot, link);
	case BOOT_FAIL:
		return boot_failure_begins(boot, link);
	case BOOT_LEAVE:
		return boot_leave_arrives(boot, link);
	case BOOT_JOIN:
	case BOOT_ADMITTED:
	case BOOT_PLACED:
	case BOOT_REFUSED:
	case BOOT_SURVIVOR:
	case BOOT_SURVIVORS:
	case BOOT_OUTCOME:
		break;
	}
	return false;
}

void boot_frame_ends(struct boot *boot, struct boot_link *link)
{
	if (link->head.type == BOOT_UP)
		boot_gather_up_ends(boot, link);
	else if (link->head.type == BOOT_DOWN)
		boot_gather_down_ends(boot, link);
	else if (link->head.type == BOOT_MESSAGE ||
		 link->head.type == BOOT_NOTE || link->head.type == BOOT_ASK)
		boot_message_ends(boot, link);
	else if (link->head.type == BOOT_FAIL)
		boot_failure_ends(boot, link);
}

static void sooner(int *ms, uint64_t deadline_ns)
{
	int left = boot_sock_ms_left(deadline_ns);

	if (*ms < 0 || left < *ms)
		*ms = left;
}

/*
 * The parent waits for this rank, and hears of its failure from nobody else.
 * Children who do not reach this rank know enough.
 */
static bool has_to_tell_parent(const struct boot *boot)
{
	enum boot_link_state state = boot->links[0].state;

	return state != BOOT_LINK_UP && state != BOOT_LINK_CLOSED &&
	       base_now_ns() < boot->tell_until_ns;
}

static int prepare(struct boot *boot, struct polled *polled)
{
	const struct boot_link *parent = &boot->links[0];
	int ms = -1;
	int i;

	polled->wake = (struct pollfd){.fd = boot->wake, .events = POLLIN};
	polled->listener =
		(struct pollfd){.fd = boot->listener, .events = POLLIN};
	if (boot->is_surveyed) {
		polled->listener.fd = -1;
	} else if (boot->deaf_until_ns > base_now_ns()) {
		polled->listener.fd = -1;
		sooner(&ms, boot->deaf_until_ns);
	}
	for (i = 0; i < N_LINKS; i++) {
		const struct boot_link *link = &boot->links[i];
		short events = link->out ? POLLIN | POLLOUT : POLLIN;

		if (link->state == BOOT_LINK_CONNECTS)
			events = POLLOUT;
		if (link->state == BOOT_LINK_PROVES)
			events = boot_auth_events(&boot->parent_auth);
		polled->links[i] =
			(struct pollfd){.fd = link->fd, .events = events};
	}
	if (boot->closing && has_to_tell_parent(boot))
		sooner(&ms, boot->tell_until_ns);
	if (parent->state == BOOT_LINK_WAITS ||
	    parent->state == BOOT_LINK_PROVES)
		sooner(&ms, boot->parent_auth.deadline_ns);
	for (i = 0; i < BOOT_N_GUESTS; i++) {
		polled->guests[i] = (struct pollfd){
			.fd = boot->guests[i].fd,
			.events = boot_auth_events(&boot->guests[i].auth),
		};
		if (boot->guests[i].fd >= 0)
			sooner(&ms, boot->guests[i].auth.deadline_ns);
	}
	return ms;
}

static void serve_link(struct boot *boot, struct boot_link *link, short revents)
{
	int err = 0;
	bool broken;

	if (!revents || link->fd < 0)
		return;
	if (link->state != BOOT_LINK_UP) {
		boot_parent_step(boot, link);
		return;
	}
	broken = !boot_link_read(boot, link, &err);
	if (broken)
		boot_link_died(boot, link, err);
}

static void serve_once(struct boot *boot, const struct polled *polled)
{
	size_t i;
	int err;

	if (polled->wake.revents)
		boot_sock_event_clear(boot->wake);
	for (i = 0; i < N_LINKS; i++)
		serve_link(boot, &boot->links[i], polled->links[i].revents);
	for (i = 0; i < BOOT_N_GUESTS; i++) {
		if (boot->guests[i].fd < 0)
			continue;
		if (polled->guests[i].revents)
			boot_guest_step(boot, (int)i);
		if (boot->guests[i].auth.deadline_ns <= base_now_ns())
			boot_sock_close(&boot->guests[i].fd);
	}
	if (polled->listener.revents)
		boot_guests_let_in(boot);
	boot_parent_try(boot);
	for (i = 0; i < N_LINKS; i++) {
		struct boot_link *link = &boot->links[i];

		/* Its last words may still be there to read. */
		if (!boot_link_flush(link, &err)) {
			int read_err = err;

			boot_link_read(boot, link, &read_err);
			boot_link_died(boot, link, read_err);
		}
	}
}

/* True when nobody needs this rank's part of the tree any more. */
static bool is_over(struct boot *boot)
{
	size_t i;
	int rank;

	if (!boot->closing)
		return false;
	if (boot->must_stop)
		return true;
	if (boot->has_failed)
		return !has_to_tell_parent(boot);
	for (i = 0; i < N_LINKS; i++) {
		const struct boot_link *link = &boot->links[i];

		if (link->state == BOOT_LINK_CLOSED)
			continue;
		for (rank = 0; rank < boot->n_ranks; rank++)
			if (boot_link_leads_to(boot, link, rank) &&
			    !boot_has_left(boot, rank))
				return false;
	}
	return true;
}

/* True while the peer's host has not got everything. */
static bool is_on_the_way(struct boot_link *link)
{
	struct pollfd pfd = {.fd = link->fd};
	int unacked = 0;
	int err;

	if (link->state != BOOT_LINK_UP)
		return false;
	/* A connection that was reset counts its bytes as unsent for ever. */
	if (!boot_link_flush(link, &err) || poll(&pfd, 1, 0) > 0) {
		boot_link_close(link);
		return false;
	}
	if (link->out)
		return true;
	return !ioctl(link->fd, SIOCOUTQ, &unacked) && unacked > 0;
}

/*
 * To close a connection with bytes unread resets it, and a reset overtakes
 * what was sent: so nothing is closed before the last words have arrived.
 */
static void drain(struct boot *boot)
{
	uint64_t deadline_ns = base_now_ns() + DRAIN_MS * UINT64_C(1000000);

	for (;;) {
		bool waits = false;
		size_t i;

		for (i = 0; i < N_LINKS; i++)
			waits |= is_on_the_way(&boot->links[i]);
		if (!waits || base_now_ns() >= deadline_ns)
			return;
		pthread_mutex_unlock(&boot->lock);
		poll(NULL, 0, 1);
		pthread_mutex_lock(&boot->lock);
	}
}

static void close_all(struct boot *boot)
{
	size_t i;

	for (i = 0; i < N_LINKS; i++)
		boot_link_close(&boot->links[i]);
	for (i = 0; i < BOOT_N_GUESTS; i++)
		boot_sock_close(&boot->guests[i].fd);
	boot_sock_close(&boot->listener);
}

void *boot_serve(void *arg)
{
	struct boot *boot = arg;
	struct polled polled;
	bool is_ghost;

	boot_lock(boot);
	boot_parent_try(boot);
	while (!is_over(boot)) {
		int ms = prepare(boot, &polled);
		int n;

		boot_unlock(boot);
		n = poll((struct pollfd *)&polled, N_POLLED, ms);
		boot_lock(boot);
		if (n < 0)
			memset(&polled, 0, sizeof(polled));
		serve_once(boot, &polled);
	}
	drain(boot);
	close_all(boot);
	boot->done = true;
	is_ghost = boot->is_ghost;
	pthread_cond_broadcast(&boot->changed);
	boot_unlock(boot);
	if (is_ghost)
		boot_ghost_ends(boot);
	return NULL;
}
