/* SPDX-License-Identifier: MIT */
/*
 * A context's control thread: it answers peers that want to know us, takes
 * their notes, notices their deaths, and looks after what waits while the
 * application does not.  It takes no part in moving data, but on ports that
 * have a rate or a latency.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "soft/peer.h"
#include "soft/qp.h"
#include "soft/watch.h"
#include "soft/queue.h"

/* How often what waits is tried again: the least RNR timer is 10 us, and a
 * polling application tries by itself. */
#define TICK_MS 1
/* When there was no memory for all descriptors. */
#define RETRY_MS 100
#define MAX_GUESTS 8192u

static int open_listener(struct soft_context *c)
{
	int tries;

	/* LIDs are few: take one that nobody has. */
	for (tries = 0; tries < 64; tries++) {
		c->listen_fd = soft_listen(&c->address);
		if (c->listen_fd >= 0)
			return 0;
		if (errno != EADDRINUSE)
			break;
		c->address.lid = (uint16_t)(1 + soft_random(c) % 0xbfffu);
	}
	return base_error(WREATH_ENOMEM,
			  "soft device: cannot listen on a Unix socket: %s",
			  strerror(errno));
}

void soft_control_wake(struct soft_context *c)
{
	const uint64_t one = 1;

	/* The counter cannot overflow in a lifetime: it is read each time. */
	if (write(c->wake_fd, &one, sizeof(one)) < 0)
		return;
}

static void take_mail(struct soft_context *c)
{
	uint32_t i;

	if (!atomic_exchange(&c->has_mail, false))
		return;
	for (i = 0; i < atomic_load(&c->qps_high); i++) {
		uint64_t mail;

		if (!atomic_load_explicit(&c->inbox[i], memory_order_relaxed))
			continue;
		mail = atomic_exchange(&c->inbox[i], 0);
		soft_note_take(c, i, (uint32_t)(mail >> 32), (uint32_t)mail);
	}
}

/* Caller holds @c->lock, so that a fork knows of each descriptor. */
static void accept_guests(struct soft_context *c)
{
	for (;;) {
		struct soft_guest *guest = NULL;
		struct ucred cred;
		socklen_t n = sizeof(cred);
		int fd = accept4(c->listen_fd, NULL, NULL,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		/* Other users have no business here. */
		if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) &&
		    cred.uid == geteuid() && c->n_guests < MAX_GUESTS)
			guest = base_alloc(1, sizeof(*guest));
		if (!guest) {
			close(fd);
			continue;
		}
		guest->fd = fd;
		guest->next = c->guests;
		c->guests = guest;
		c->n_guests++;
	}
}

static int answer_region(struct soft_context *c, int socket, uint64_t id)
{
	struct soft_region *region;
	int fd = -1, err;

	pthread_mutex_lock(&c->lock);
	region = c->regions[id % SOFT_N_REGIONS];
	if (region && region->id == id)
		fd = region->fd;
	err = soft_message_send(socket, SOFT_REGION, id, 0, fd);
	pthread_mutex_unlock(&c->lock);
	return err;
}

static void trim(struct soft_context *c, uint64_t id)
{
	struct soft_peer *peer;

	pthread_mutex_lock(&c->lock);
	for (peer = c->peers; peer; peer = peer->next) {
		if (peer->id != id)
			continue;
		soft_pins_trim(peer);
		if (!peer->held)
			soft_mappings_trim(c, peer);
	}
	pthread_mutex_unlock(&c->lock);
}

/* One message of a guest; false: no more of this guest. */
static bool serve_guest(struct soft_context *c, struct soft_guest *guest)
{
	struct soft_message m;
	size_t bytes;
	int fd, err;

	err = soft_message_recv(guest->fd, &m, &fd, c->payload, &bytes);
	if (err)
		return err == EAGAIN;
	if (fd >= 0)
		close(fd);
	switch (m.type) {
	case SOFT_HELLO:
		guest->id = m.a;
		return !soft_message_send(guest->fd, SOFT_HELLO, c->id, 0,
					  c->seg_fd);
	case SOFT_REGION:
		return !answer_region(c, guest->fd, m.a);
	case SOFT_NOTE:
		soft_note_take(c, (uint32_t)(m.a >> 32), (uint32_t)m.a,
			       (uint32_t)m.b);
		return true;
	case SOFT_GONE:
		trim(c, guest->id);
		return true;
	case SOFT_PUT:
	case SOFT_GET:
		return !soft_payload_serve(c, guest->fd, &m, c->payload, bytes);
	case SOFT_DATAGRAM:
		soft_datagram_take(c, guest, &m, c->payload, bytes);
		return true;
	case SOFT_SWAP:
	case SOFT_ADD:
		return !soft_atomic_serve(c, guest->fd, &m, c->payload, bytes);
	default:
		return false;
	}
}

/* Answers on the connections that we made.  Caller holds @c->lock. */
static void serve_peer(struct soft_context *c, struct soft_peer *peer)
{
	struct soft_message m;
	size_t bytes;
	int fd, err;

	for (;;) {
		err = soft_message_recv(peer->fd, &m, &fd, c->payload, &bytes);
		if (err == EAGAIN)
			return;
		if (err) {
			soft_peer_died(c, peer);
			return;
		}
		if (m.type == SOFT_REGION)
			soft_mapping_add(peer, m.a, fd);
		else if (fd >= 0)
			close(fd);
		if (m.type >= SOFT_PUT && m.type <= SOFT_ADD)
			soft_payload_take(c, &m, c->payload, bytes);
	}
}

/* A dead peer may have completed something and not told: look ourselves. */
static void fire_all(struct soft_context *c)
{
	uint32_t i;

	for (i = 0; i < SOFT_N_SRQ; i++) {
		if (c->srqs[i])
			soft_srq_check_limit(c->srqs[i]);
	}
	for (i = 0; i < SOFT_N_CQ; i++) {
		if (c->cqs[i] && soft_cq_has(c->cqs[i]))
			soft_cq_fire(c->cqs[i], true);
	}
}

static void watch_fill(struct soft_context *c, struct soft_watch *w)
{
	struct soft_guest *guest;
	struct soft_peer *peer;
	size_t n = 3 + c->n_guests;

	pthread_mutex_lock(&c->lock);
	for (peer = c->peers; peer; peer = peer->next)
		n++;
	w->is_short = !soft_watch_reserve(w, n);
	w->n = 0;
	soft_watch_add(w, c->wake_fd);
	soft_watch_add(w, c->listen_fd);
	if (c->timer_fd >= 0)
		soft_watch_add(w, c->timer_fd);
	for (guest = c->guests; guest; guest = guest->next) {
		if (!guest->waiting)
			soft_watch_add(w, guest->fd);
	}
	for (peer = c->peers; peer; peer = peer->next) {
		if (peer->fd >= 0 && !atomic_load(&peer->is_dead))
			soft_watch_add(w, peer->fd);
	}
	pthread_mutex_unlock(&c->lock);
}

static void serve(struct soft_context *c, const struct soft_watch *w)
{
	struct soft_guest **at;
	struct soft_peer *peer;
	bool has_died = false;

	for (at = &c->guests; *at;) {
		struct soft_guest *guest = *at;

		if (guest->waiting)
			soft_datagram_retry(c, guest);
		if (!soft_watch_is_ready(w, guest->fd) ||
		    serve_guest(c, guest)) {
			at = &guest->next;
			continue;
		}
		pthread_mutex_lock(&c->lock);
		*at = guest->next;
		close(guest->fd);
		c->n_guests--;
		pthread_mutex_unlock(&c->lock);
		soft_datagram_drop(c, guest);
		base_free(guest);
		has_died = true;
	}
	pthread_mutex_lock(&c->lock);
	for (peer = c->peers; peer; peer = peer->next) {
		if (peer->fd >= 0 && !atomic_load(&peer->is_dead) &&
		    soft_watch_is_ready(w, peer->fd))
			serve_peer(c, peer);
	}
	if (has_died)
		fire_all(c);
	pthread_mutex_unlock(&c->lock);
}

static void *control(void *arg)
{
	struct soft_context *c = arg;
	struct soft_watch w;
	uint64_t count;

	soft_watch_init(&w);
	while (!atomic_load(&c->must_stop)) {
		int n, wait_ms = soft_faults_tick(c);

		if (soft_pace_must_tick(c) || c->n_waiting)
			wait_ms = TICK_MS;
		watch_fill(c, &w);
		if (w.is_short && wait_ms < 0)
			wait_ms = RETRY_MS;
		n = poll(w.fds, w.n, wait_ms);
		if (n > 0 || c->n_waiting) {
			if (w.fds[0].revents &&
			    read(c->wake_fd, &count, sizeof(count)) < 0)
				continue;
			if (soft_watch_is_ready(&w, c->timer_fd))
				soft_pace_rung(c);
			take_mail(c);
			pthread_mutex_lock(&c->lock);
			if (w.fds[1].revents)
				accept_guests(c);
			pthread_mutex_unlock(&c->lock);
			serve(c, &w);
		}
		if (atomic_load(&c->n_pending)) {
			soft_run_all(c, true);
			if (c->timer_fd >= 0)
				soft_pace_wind(c);
		}
	}
	soft_watch_release(&w);
	return NULL;
}

int soft_control_start(struct soft_context *c)
{
	sigset_t all, before;
	int err;

	c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->wake_fd < 0)
		return base_error(WREATH_ENOMEM, "soft device: eventfd: %s",
				  strerror(errno));
	c->payload = base_alloc(1, SOFT_PAYLOAD);
	err = c->payload ? open_listener(c) : WREATH_ENOMEM;
	if (err)
		goto err_payload;
	/* Signals are the application's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&c->thread, NULL, control, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		err = base_error(WREATH_ENOMEM, "soft device: no thread: %s",
				 strerror(err));
		goto err_listen;
	}
	return 0;

err_listen:
	close(c->listen_fd);
err_payload:
	base_free(c->payload);
	close(c->wake_fd);
	return err;
}

void soft_control_stop(struct soft_context *c)
{
	struct soft_guest *guest;

	atomic_store(&c->must_stop, true);
	soft_control_wake(c);
	pthread_join(c->thread, NULL);
	while ((guest = c->guests)) {
		c->guests = guest->next;
		close(guest->fd);
		soft_datagram_drop(c, guest);
		base_free(guest);
	}
	base_free(c->payload);
	close(c->listen_fd);
	close(c->wake_fd);
}
