/* SPDX-License-Identifier: MIT */
/*
 * Memory of a peer for load and store, outside of any request.
 *
 * Whoever holds such an address may be storing to it at any moment, and the
 * peer may free its memory, or die, without asking.  So the address is never
 * in the owner's mapping nor in the one that requests go through, which both
 * can go at the peer's word: it is in a mapping of its own, a pin, that lasts
 * until it is given back.  A program comes back to the same few buffers, so
 * that pins stay for a while; those of keys that are no more go at once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft/entry.h"
#include "soft/peer.h"
#include "soft/qp.h"

#define MAP_WAIT_MS 1000
/* Pins of a peer that nobody holds: buffers of a program that takes turns. */
#define SOFT_IDLE_PINS 64

struct soft_pin {
	struct soft_pin *next; /* the one used last comes first */
	/* The key that it was made for is good while *at is @word. */
	const _Atomic uint64_t *at;
	uint64_t word;
	uint64_t addr, length;
	char *start; /* where @addr is */
	char *map;
	size_t map_bytes;
	unsigned int n_users;
};

static bool is_stale(const struct soft_pin *pin)
{
	return atomic_load_explicit(pin->at, memory_order_acquire) !=
	       pin->word;
}

static void pin_free(struct soft_pin *pin)
{
	if (pin->map)
		munmap(pin->map, pin->map_bytes);
	base_free(pin);
}

/* Caller holds @peer->map_lock. */
static void trim(struct soft_peer *peer)
{
	struct soft_pin **at = &peer->pins;
	unsigned int n_idle = 0;

	while (*at) {
		struct soft_pin *pin = *at;

		if (pin->n_users ||
		    (!is_stale(pin) && ++n_idle <= SOFT_IDLE_PINS)) {
			at = &pin->next;
			continue;
		}
		*at = pin->next;
		pin_free(pin);
	}
}

void soft_pins_trim(struct soft_peer *peer)
{
	pthread_mutex_lock(&peer->map_lock);
	trim(peer);
	pthread_mutex_unlock(&peer->map_lock);
}

void soft_pins_free(struct soft_peer *peer)
{
	while (peer->pins) {
		struct soft_pin *pin = peer->pins;

		peer->pins = pin->next;
		pin_free(pin);
	}
}

static bool is_shared(const struct soft_peer *peer,
		      const struct soft_view *view)
{
	uint32_t slot = view->key >> SOFT_KEY_SHIFT;

	return atomic_load_explicit(&peer->seg->mrs[slot].region,
				    memory_order_relaxed);
}

/*
 * A second mapping of the shared pages behind @view: mremap() of nothing to
 * something.  NULL when there is no memory left.  A kernel that is emulated
 * (valgrind's) may not know that form; there the address is the one that
 * requests go through.
 */
static struct soft_pin *pin_new(const struct soft_view *view)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t shift = (uintptr_t)view->base % page;
	struct soft_pin *pin = base_alloc(1, sizeof(*pin));

	if (!pin)
		return NULL;
	pin->map_bytes = base_round_up(shift + view->length, page);
	/* Reserved first: whoever watches mappings (a sanitizer) knows mmap()
	 * better than mremap(). */
	pin->map = mmap(NULL, pin->map_bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pin->map != MAP_FAILED &&
	    mremap(view->base - shift, 0, pin->map_bytes,
		   MREMAP_MAYMOVE | MREMAP_FIXED, pin->map) == MAP_FAILED) {
		int err = errno;

		munmap(pin->map, pin->map_bytes);
		pin->map = MAP_FAILED;
		errno = err;
	}
	if (pin->map == MAP_FAILED && errno == EINVAL) {
		pin->map = NULL;
	} else if (pin->map == MAP_FAILED) {
		base_free(pin);
		return NULL;
	}
	pin->at = view->at;
	pin->word = view->word;
	pin->addr = view->addr;
	pin->length = view->length;
	pin->start = pin->map ? pin->map + shift : view->base;
	return pin;
}

/* Caller holds the queue pair's lock, so that @view stays good. */
static void *pin_get(struct soft_peer *peer, const struct soft_view *view,
		     uint64_t addr)
{
	struct soft_pin **at = &peer->pins;
	struct soft_pin *pin;

	pthread_mutex_lock(&peer->map_lock);
	for (pin = peer->pins; pin; at = &pin->next, pin = pin->next)
		if (pin->at == view->at && pin->word == view->word)
			break;
	if (pin)
		*at = pin->next;
	else if (is_shared(peer, view))
		pin = pin_new(view);
	if (pin) {
		pin->next = peer->pins;
		peer->pins = pin;
		pin->n_users++;
	}
	trim(peer);
	pthread_mutex_unlock(&peer->map_lock);
	return pin ? pin->start + (addr - pin->addr) : NULL;
}

/* Why there is no address, and whether waiting would help. */
enum miss {
	MISS_FOR_GOOD,
	MISS_LINK,   /* a port is down, or the peer not ready */
	MISS_REGION, /* it was asked for */
};

static void *find(struct soft_qp *qp, uint32_t rkey, uint64_t addr,
		  size_t bytes, enum miss *miss)
{
	struct soft_view *view;
	uint64_t at;

	qp->is_asked = false;
	*miss = MISS_FOR_GOOD;
	if (!qp->peer || atomic_load(&qp->peer->is_dead))
		return NULL;
	*miss = MISS_LINK;
	if (!soft_link(qp))
		return NULL;
	view = soft_view_remote(qp, rkey);
	*miss = qp->is_asked ? MISS_REGION : MISS_FOR_GOOD;
	if (!view || !view->base || view->pd != qp->peer_pd ||
	    !(view->access & qp->accept &
	      (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)))
		return NULL;
	at = addr - view->addr;
	if (at > view->length || bytes > view->length - at)
		return NULL;
	return pin_get(qp->peer, view, addr);
}

static void await_region(struct soft_qp *qp, uint64_t region)
{
	struct soft_context *c = qp->context;
	struct soft_peer *peer;

	pthread_mutex_lock(&c->lock);
	peer = qp->peer;
	if (peer)
		peer->n_refs++;
	pthread_mutex_unlock(&c->lock);
	if (!peer)
		return;
	soft_mapping_wait(peer, region, MAP_WAIT_MS);
	pthread_mutex_lock(&c->lock);
	soft_peer_put(c, peer);
	pthread_mutex_unlock(&c->lock);
}

void *soft_map(struct ibv_qp *ibqp, uint32_t rkey, uint64_t addr, size_t bytes)
{
	struct soft_qp *qp = (struct soft_qp *)(void *)ibqp;
	struct soft_context *c = qp->context;
	uint64_t end_ns = base_now_ns() + MAP_WAIT_MS * 1000000ull;
	enum miss miss;

	/* A store would be there at once. */
	if (soft_is_foreign(c) || soft_is_paced(&c->pace) ||
	    !soft_faults_keep_order(&c->faults))
		return NULL;
	for (;;) {
		uint64_t region;
		void *at;

		soft_lock(qp->lock);
		at = find(qp, rkey, addr, bytes, &miss);
		region = qp->asked_region;
		soft_unlock(qp->lock);
		if (at || miss == MISS_FOR_GOOD || base_now_ns() > end_ns)
			return at;
		/* A port that is down for a moment is no more than a request
		 * would get over, too. */
		if (miss == MISS_REGION)
			await_region(qp, region);
		else
			base_sleep_ms(1);
	}
}

void soft_unmap(struct ibv_qp *ibqp, const void *mapped)
{
	struct soft_qp *qp = (struct soft_qp *)(void *)ibqp;
	struct soft_peer *peer = qp->peer;
	struct soft_pin *pin;

	if (soft_is_foreign(qp->context) || !peer)
		return;
	pthread_mutex_lock(&peer->map_lock);
	for (pin = peer->pins; pin; pin = pin->next) {
		uintptr_t at = (uintptr_t)mapped - (uintptr_t)pin->start;

		if (at > pin->length || !pin->n_users)
			continue;
		pin->n_users--;
		break;
	}
	trim(peer);
	pthread_mutex_unlock(&peer->map_lock);
}
