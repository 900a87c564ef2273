/* SPDX-License-Identifier: MIT */
/* Other contexts: in this process by a list, elsewhere by their socket. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft/peer.h"
#include "soft/qp.h"

/* How often a wait for a peer looks whether it lives. */
#define SLICE_MS 10

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct soft_context *registry;

uint32_t soft_fork_gen;

/* A fork finds every list whole. */
static void before_fork(void)
{
	struct soft_context *c;

	pthread_mutex_lock(&registry_lock);
	for (c = registry; c; c = c->next)
		pthread_mutex_lock(&c->lock);
}

static void after_fork(void)
{
	struct soft_context *c;

	for (c = registry; c; c = c->next)
		pthread_mutex_unlock(&c->lock);
	pthread_mutex_unlock(&registry_lock);
}

/*
 * What a child inherits is the parent's: it must not touch it, and it must
 * not keep the parent's sockets open when the parent dies.  Each context's
 * verbs then answer EIO.
 */
static void in_child(void)
{
	struct soft_context *c;

	soft_fork_gen++;
	for (c = registry; c; c = c->next) {
		struct soft_courier *courier;
		struct soft_guest *guest;
		struct soft_peer *peer;

		close(c->listen_fd);
		close(c->wake_fd);
		close(c->seg_fd);
		soft_pace_close(c);
		for (guest = c->guests; guest; guest = guest->next)
			close(guest->fd);
		for (peer = c->peers; peer; peer = peer->next) {
			if (peer->fd >= 0)
				close(peer->fd);
		}
		for (courier = c->couriers; courier; courier = courier->next) {
			if (courier->fd >= 0)
				close(courier->fd);
		}
	}
	after_fork();
	registry = NULL;
}

void soft_registry_watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

void soft_registry_add(struct soft_context *c)
{
	pthread_mutex_lock(&registry_lock);
	c->next = registry;
	registry = c;
	pthread_mutex_unlock(&registry_lock);
}

void soft_registry_remove(struct soft_context *c)
{
	struct soft_context **at, *other;

	pthread_mutex_lock(&registry_lock);
	for (at = &registry; *at && *at != c; at = &(*at)->next)
		;
	if (*at)
		*at = c->next;
	for (other = registry; other; other = other->next) {
		struct soft_peer *peer;

		pthread_mutex_lock(&other->lock);
		for (peer = other->peers; peer; peer = peer->next) {
			if (peer->held == c->held)
				soft_peer_died(other, peer);
		}
		pthread_mutex_unlock(&other->lock);
	}
	pthread_mutex_unlock(&registry_lock);
	pthread_mutex_lock(&c->held->lock);
	c->held->context = NULL;
	pthread_mutex_unlock(&c->held->lock);
}

void soft_peer_died(struct soft_context *c, struct soft_peer *peer)
{
	uint32_t i;

	atomic_store(&peer->is_dead, true);
	for (i = 0; i < atomic_load(&c->qps_high); i++) {
		struct soft_qp *qp = atomic_load(&c->qps[i]);

		if (!qp || !qp->is_live || qp->peer != peer)
			continue;
		soft_lock(qp->lock);
		qp->is_fast = false;
		soft_unlock(qp->lock);
	}
}

/* Its control thread may not have noticed, or be waiting for our lock. */
static bool has_hung_up(const struct soft_peer *peer)
{
	struct pollfd p = {.fd = peer->fd};

	return atomic_load(&peer->is_dead) ||
	       (peer->fd >= 0 && poll(&p, 1, 0) == 1 && p.revents);
}

bool soft_peer_drain(struct soft_qp *qp, int timeout_ms)
{
	int waited_ms;

	if (!qp->peer_qp)
		return true;
	for (waited_ms = 0; waited_ms < timeout_ms; waited_ms += SLICE_MS) {
		if (soft_lock_drain(&qp->peer_qp->send_lock, SLICE_MS) ||
		    has_hung_up(qp->peer))
			return true;
	}
	return false;
}

static void peer_free(struct soft_peer *peer)
{
	soft_pins_free(peer);
	if (peer->held) {
		soft_held_put(peer->held);
	} else {
		soft_mappings_free(peer);
		munmap(peer->seg, sizeof(*peer->seg));
		close(peer->fd);
	}
	pthread_mutex_destroy(&peer->map_lock);
	pthread_cond_destroy(&peer->map_cond);
	base_free(peer);
}

/* Dead peers go when nobody uses them.  Caller holds the context's lock. */
static void sweep(struct soft_context *c)
{
	struct soft_peer **at = &c->peers;

	while (*at) {
		struct soft_peer *peer = *at;

		if (peer->n_refs || !atomic_load(&peer->is_dead)) {
			at = &peer->next;
			continue;
		}
		*at = peer->next;
		/* The control thread may be waiting on the socket: it looks
		 * its peers up anew when it is woken. */
		peer_free(peer);
	}
}

void soft_peer_put(struct soft_context *c, struct soft_peer *peer)
{
	(void)c;
	peer->n_refs--;
}

void soft_peers_free(struct soft_context *c)
{
	struct soft_peer *peer;

	while ((peer = c->peers)) {
		c->peers = peer->next;
		peer_free(peer);
	}
}

static struct soft_peer *peer_new(const struct soft_address *address)
{
	struct soft_peer *peer = base_alloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	peer->address = *address;
	peer->fd = -1;
	peer->n_refs = 1;
	pthread_mutex_init(&peer->map_lock, NULL);
	pthread_cond_init(&peer->map_cond, NULL);
	return peer;
}

/* By id or, when that is 0, by address.  Caller holds the context's lock. */
static struct soft_peer *find(struct soft_context *c, uint64_t id,
			      const struct soft_address *address)
{
	struct soft_peer *peer;

	for (peer = c->peers; peer; peer = peer->next) {
		if (atomic_load(&peer->is_dead))
			continue;
		if (id ? peer->id == id
		       : soft_address_is(&peer->address, address))
			return peer;
	}
	return NULL;
}

/* In this process.  *is_here: there is one, whatever is returned. */
static struct soft_peer *get_near(struct soft_context *c,
				  const struct soft_address *address,
				  bool *is_here)
{
	struct soft_peer *peer = NULL;
	struct soft_context *other;

	pthread_mutex_lock(&registry_lock);
	for (other = registry; other; other = other->next) {
		bool is_it;

		/* Its address may be changing. */
		pthread_mutex_lock(&other->lock);
		is_it = soft_address_is(&other->address, address);
		pthread_mutex_unlock(&other->lock);
		if (is_it)
			break;
	}
	*is_here = other != NULL;
	if (!other)
		goto out;
	pthread_mutex_lock(&c->lock);
	sweep(c);
	peer = find(c, other->id, address);
	if (peer) {
		peer->n_refs++;
	} else {
		peer = peer_new(address);
		if (peer) {
			peer->id = other->id;
			peer->seg = other->seg;
			peer->held = other->held;
			atomic_fetch_add(&peer->held->n_refs, 1);
			peer->next = c->peers;
			c->peers = peer;
		}
	}
	pthread_mutex_unlock(&c->lock);
out:
	pthread_mutex_unlock(&registry_lock);
	return peer;
}

static struct soft_peer *connect_far(struct soft_context *c,
				     const struct soft_address *address)
{
	struct soft_message hello;
	struct soft_peer *peer;
	int fd, seg_fd, pid;

	fd = soft_dial(address, &pid);
	if (fd < 0)
		return NULL;
	if (soft_message_send(fd, SOFT_HELLO, c->id, 0, -1) ||
	    soft_message_recv(fd, &hello, &seg_fd, NULL, NULL))
		goto err_fd;
	if (hello.type != SOFT_HELLO || seg_fd < 0)
		goto err_seg_fd;
	peer = peer_new(address);
	if (!peer)
		goto err_seg_fd;
	peer->seg = soft_segment_map(seg_fd);
	if (!peer->seg)
		goto err_peer;
	peer->id = hello.a;
	peer->pid = pid;
	peer->fd = fd;
	close(seg_fd);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return peer;

err_peer:
	base_free(peer);
err_seg_fd:
	if (seg_fd >= 0)
		close(seg_fd);
err_fd:
	close(fd);
	return NULL;
}

struct soft_peer *soft_peer_get(struct soft_context *c,
				const struct soft_address *address)
{
	struct soft_peer *peer, *twin;
	bool is_here;

	peer = get_near(c, address, &is_here);
	if (is_here)
		return peer;
	pthread_mutex_lock(&c->lock);
	sweep(c);
	peer = find(c, 0, address);
	if (peer)
		peer->n_refs++;
	pthread_mutex_unlock(&c->lock);
	if (peer)
		return peer;
	peer = connect_far(c, address);
	if (!peer)
		return NULL;
	pthread_mutex_lock(&c->lock);
	twin = find(c, peer->id, address);
	if (twin) {
		/* Another thread was faster. */
		twin->n_refs++;
	} else {
		peer->next = c->peers;
		c->peers = peer;
	}
	pthread_mutex_unlock(&c->lock);
	if (twin) {
		peer_free(peer);
		return twin;
	}
	soft_control_wake(c);
	return peer;
}
