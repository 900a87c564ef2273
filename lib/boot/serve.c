/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include "sock.h"
#include "tree.h"

/* Between two tries to reach a parent that is there but did not let us in. */
#define RETRY_MS 50

/* How long the last frames may take to reach the neighbours' hosts. */
#define DRAIN_MS 500

/* A neighbour whose host is silent for so long is taken for dead. */
#define SILENCE_MS 8000

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
	else if (link->head.type == BOOT_MESSAGE)
		boot_message_ends(boot, link);
	else if (link->head.type == BOOT_FAIL)
		boot_failure_ends(boot, link);
}

static void link_comes_up(struct boot *boot, struct boot_link *link)
{
	link->state = BOOT_LINK_UP;
	boot_sock_tune(link->fd, SILENCE_MS);
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
			 "rank %d cannot connect to it at %s: %s", name,
			 boot->rank, where, strerror(-err));
}

static void step_parent(struct boot *boot, struct boot_link *link)
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
		boot_sock_tune(link->fd, SILENCE_MS);
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

static void try_parent(struct boot *boot)
{
	struct boot_link *link = &boot->links[0];

	if (link->state == BOOT_LINK_PROVES &&
	    boot->parent_auth.deadline_ns <= base_now_ns()) {
		boot_sock_close(&link->fd);
		link->state = BOOT_LINK_WAITS;
	}
	if (link->state != BOOT_LINK_WAITS || boot->has_failed ||
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

	for (c = 1; c < N_LINKS; c++) {
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
	if (all_up)
		boot_sock_close(&boot->listener);
}

static void step_guest(struct boot *boot, int i)
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
		if (other < 0 || auth->deadline_ns <
					 boot->guests[other].auth.deadline_ns)
			oldest[promising] = i;
	}
	return oldest[0] >= 0 ? oldest[0] : oldest[1];
}

static void let_in(struct boot *boot)
{
	int n;

	for (n = 0; n < BOOT_N_GUESTS && boot->listener >= 0; n++) {
		int fd = boot_sock_accept(boot->listener);
		int i = find_seat(boot);

		if (fd < 0)
			return;
		boot_sock_close(&boot->guests[i].fd);
		boot->guests[i].fd = fd;
		boot_sock_tune(fd, SILENCE_MS);
		boot_auth_server(&boot->guests[i].auth, fd, BOOT_TO_PARENT,
				 boot->token);
		step_guest(boot, i);
	}
}

/* ---- the loop ---- */

static void sooner(int *ms, uint64_t deadline_ns)
{
	int left = boot_sock_ms_left(deadline_ns);

	if (*ms < 0 || left < *ms)
		*ms = left;
}

static int prepare(struct boot *boot, struct polled *polled)
{
	const struct boot_link *parent = &boot->links[0];
	int ms = -1;
	int i;

	polled->wake = (struct pollfd){.fd = boot->wake, .events = POLLIN};
	polled->listener = (struct pollfd){.fd = boot->listener,
					   .events = POLLIN};
	for (i = 0; i < N_LINKS; i++) {
		const struct boot_link *link = &boot->links[i];
		short events = link->out ? POLLIN | POLLOUT : POLLIN;

		if (link->state == BOOT_LINK_CONNECTS)
			events = POLLOUT;
		if (link->state == BOOT_LINK_PROVES)
			events = boot_auth_events(&boot->parent_auth);
		polled->links[i] = (struct pollfd){.fd = link->fd,
						   .events = events};
	}
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

static void serve_link(struct boot *boot, struct boot_link *link,
		       short revents)
{
	int err = 0;
	bool broken;

	if (!revents || link->fd < 0)
		return;
	if (link->state != BOOT_LINK_UP) {
		step_parent(boot, link);
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
			step_guest(boot, (int)i);
		if (boot->guests[i].auth.deadline_ns <= base_now_ns())
			boot_sock_close(&boot->guests[i].fd);
	}
	if (polled->listener.revents)
		let_in(boot);
	try_parent(boot);
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
	if (boot->has_failed || boot->must_stop)
		return true;
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
	try_parent(boot);
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
