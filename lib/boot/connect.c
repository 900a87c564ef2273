/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "sock.h"
#include "tree.h"

/* Between two tries to reach a parent that is there but did not let us in. */
#define RETRY_MS 50

/*
 * A neighbour whose host is silent for so long is taken for dead.  Not sooner
 * than the deadline: the kernel counts a stopped process with a full buffer as
 * silent too, and stopping for less than the deadline is allowed.
 */
static int silence_ms(const struct boot *boot)
{
	if (boot->timeout_ms < 2000)
		return 2000;
	return boot->timeout_ms > 30000 ? 30000 : (int)boot->timeout_ms;
}

static void link_comes_up(struct boot *boot, struct boot_link *link)
{
	link->state = BOOT_LINK_UP;
	boot_sock_tune(link->fd, silence_ms(boot));
	pthread_cond_broadcast(&boot->changed);
}

/* ---- to the parent ---- */

static void parent_is_gone(struct boot *boot, struct boot_link *link, int err)
{
	char where[BOOT_ADDR_TEXT];
	char name[128];

	boot_addr_text(&boot->parent_at, where);
	boot_name(boot, link->rank, name);
	boot_link_close(link);
	boot_fail_locked(boot, WREATH_EPEER, link->rank,
			 "%s died or gave up while the ranks were joining: "
			 "rank %d cannot connect to it at %s: %s",
			 name, boot->rank, where, strerror(-err));
}

void boot_parent_step(struct boot *boot, struct boot_link *link)
{
	int err;

	if (link->state == BOOT_LINK_CONNECTS) {
		err = boot_sock_connected(link->fd);
		/*
		 * A parent listens before it is known to the root: who refuses
		 * now has gone.
		 */
		if (err) {
			parent_is_gone(boot, link, err);
			return;
		}
		link->state = BOOT_LINK_PROVES;
		boot_sock_tune(link->fd, silence_ms(boot));
		boot_auth_client(&boot->parent_auth, link->fd, BOOT_TO_PARENT,
				 boot->rank, boot->token);
	}
	switch (boot_auth_step(&boot->parent_auth, boot->secret)) {
	case BOOT_AUTH_SENDING:
	case BOOT_AUTH_READING:
		break;
	case BOOT_AUTH_DONE:
		link_comes_up(boot, link);
		break;
	case BOOT_AUTH_STRANGER:
	case BOOT_AUTH_BAD_PROOF:
		/* Strangers may have crowded us out: again, after a while. */
		boot_sock_close(&link->fd);
		link->state = BOOT_LINK_WAITS;
		boot->parent_auth.deadline_ns =
			base_now_ns() + RETRY_MS * UINT64_C(1000000);
		break;
	}
}

void boot_parent_try(struct boot *boot)
{
	struct boot_link *link = &boot->links[0];

	if (link->state == BOOT_LINK_PROVES &&
	    boot->parent_auth.deadline_ns <= base_now_ns()) {
		boot_sock_close(&link->fd);
		link->state = BOOT_LINK_WAITS;
	}
	if (link->state != BOOT_LINK_WAITS ||
	    boot->parent_auth.deadline_ns > base_now_ns())
		return;
	link->fd = boot_sock_connect(&boot->parent_at);
	if (link->fd < 0) {
		int err = link->fd;

		link->fd = -1;
		parent_is_gone(boot, link, err);
		return;
	}
	link->state = BOOT_LINK_CONNECTS;
}

/* ---- from the children ---- */

static void seat_child(struct boot *boot, int i)
{
	uint32_t rank = boot->guests[i].auth.rank;
	bool all_up = true;
	int c;

	for (c = 1; c < (int)base_countof(boot->links); c++) {
		struct boot_link *link = &boot->links[c];

		if (link->state == BOOT_LINK_WAITS &&
		    (uint32_t)link->rank == rank && boot->guests[i].fd >= 0) {
			link->fd = boot->guests[i].fd;
			boot->guests[i].fd = -1;
			link_comes_up(boot, link);
		}
		all_up &= link->state != BOOT_LINK_WAITS;
	}
	boot_sock_close(&boot->guests[i].fd);
	boot->stands = all_up;
}

void boot_guest_step(struct boot *boot, int i)
{
	switch (boot_auth_step(&boot->guests[i].auth, boot->secret)) {
	case BOOT_AUTH_SENDING:
	case BOOT_AUTH_READING:
		break;
	case BOOT_AUTH_DONE:
		seat_child(boot, i);
		break;
	case BOOT_AUTH_STRANGER:
	case BOOT_AUTH_BAD_PROOF:
		boot_sock_close(&boot->guests[i].fd);
		break;
	}
}

/* A free seat, else the oldest that has not said hello, else the oldest. */
static int find_seat(const struct boot *boot)
{
	int oldest[2] = {-1, -1};
	int i;

	for (i = 0; i < BOOT_N_GUESTS; i++) {
		const struct boot_auth *auth = &boot->guests[i].auth;
		bool promising = boot_auth_is_promising(auth);
		int other = oldest[promising];

		if (boot->guests[i].fd < 0)
			return i;
		if (other < 0 ||
		    auth->deadline_ns < boot->guests[other].auth.deadline_ns)
			oldest[promising] = i;
	}
	return oldest[0] >= 0 ? oldest[0] : oldest[1];
}

/*
 * Nobody has anything to say to a tree that stands.  But whoever is left in
 * the queue could fill it, and ranks that look for survivors would take us for
 * dead.
 */
static void send_away(struct boot *boot)
{
	int n;

	for (n = 0; n < BOOT_N_GUESTS && !boot->is_surveyed; n++) {
		int fd = boot_sock_accept(boot->listener);

		if (fd == -EMFILE || fd == -ENFILE)
			boot->deaf_until_ns =
				base_now_ns() + RETRY_MS * UINT64_C(1000000);
		if (fd < 0)
			return;
		boot_sock_close(&fd);
	}
}

void boot_guests_let_in(struct boot *boot)
{
	int n;

	if (boot->stands && boot->listener >= 0)
		send_away(boot);
	for (n = 0; n < BOOT_N_GUESTS && !boot->stands; n++) {
		int fd = boot_sock_accept(boot->listener);
		int i = find_seat(boot);

		if (fd == -EMFILE || fd == -ENFILE) {
			/* A seat given up may help; else not to spin. */
			boot_sock_close(&boot->guests[i].fd);
			boot->deaf_until_ns =
				base_now_ns() + RETRY_MS * UINT64_C(1000000);
		}
		if (fd < 0)
			return;
		boot_sock_close(&boot->guests[i].fd);
		boot->guests[i].fd = fd;
		boot_sock_tune(fd, silence_ms(boot));
		boot_auth_server(&boot->guests[i].auth, fd, BOOT_TO_PARENT,
				 boot->token);
		boot_guest_step(boot, i);
	}
}
