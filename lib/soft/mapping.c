/* SPDX-License-Identifier: MIT */
/* The memory of peers in other processes, as mapped here. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "soft/peer.h"
#include "soft/qp.h"

/* How long a death may stay unseen by whoever waits for a mapping. */
#define SLICE_NS 10000000

/* Caller holds @peer->map_lock. */
static struct soft_mapping *find(struct soft_peer *peer, uint64_t id)
{
	struct soft_mapping *m;

	for (m = peer->mappings; m; m = m->next) {
		if (m->id == id)
			return m;
	}
	return NULL;
}

char *soft_mapping_find(struct soft_peer *peer, uint64_t id, size_t *bytes)
{
	struct soft_mapping *m;
	char *base = NULL;

	pthread_mutex_lock(&peer->map_lock);
	m = find(peer, id);
	if (m) {
		base = m->base;
		*bytes = m->bytes;
	}
	pthread_mutex_unlock(&peer->map_lock);
	return base;
}

void soft_mapping_ask(struct soft_peer *peer, uint64_t id)
{
	struct soft_mapping *m;

	pthread_mutex_lock(&peer->map_lock);
	if (find(peer, id))
		goto out;
	m = base_alloc(1, sizeof(*m));
	if (!m)
		goto out;
	/* A full socket is tried again with the request. */
	if (soft_message_send(peer->fd, SOFT_REGION, id, 0, -1)) {
		base_free(m);
		goto out;
	}
	m->id = id;
	m->next = peer->mappings;
	peer->mappings = m;
out:
	pthread_mutex_unlock(&peer->map_lock);
}

bool soft_mapping_wait(struct soft_peer *peer, uint64_t id, int timeout_ms)
{
	uint64_t end_ns = base_now_ns() + (uint64_t)timeout_ms * 1000000u;
	struct soft_mapping *m;
	bool is_there;

	pthread_mutex_lock(&peer->map_lock);
	/* In slices: a peer that dies answers no more, and tells nobody. */
	while ((m = find(peer, id)) && !m->base && base_now_ns() < end_ns &&
	       !atomic_load(&peer->is_dead)) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += SLICE_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&peer->map_cond, &peer->map_lock,
				       &until);
	}
	is_there = m && m->base;
	pthread_mutex_unlock(&peer->map_lock);
	return is_there;
}

/* NULL: not what a region may be. */
static char *map_region(int fd, size_t *bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	char *base;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) ||
	    st.st_size <= 0)
		return NULL;
	base = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		base_log(BASE_LOG_WARN, "soft device: cannot map %lld bytes "
					"of a peer: %s",
			 (long long)st.st_size, strerror(errno));
		return NULL;
	}
	*bytes = (size_t)st.st_size;
	return base;
}

void soft_mapping_add(struct soft_peer *peer, uint64_t id, int fd)
{
	struct soft_mapping **at;
	char *base = NULL;
	size_t bytes = 0;

	if (fd >= 0) {
		base = map_region(fd, &bytes);
		close(fd);
	}
	pthread_mutex_lock(&peer->map_lock);
	for (at = &peer->mappings; *at; at = &(*at)->next) {
		struct soft_mapping *m = *at;

		if (m->id != id || m->base)
			continue;
		if (base) {
			m->bytes = bytes;
			m->base = base;
			base = NULL;
		} else {
			*at = m->next;
			base_free(m);
		}
		break;
	}
	pthread_cond_broadcast(&peer->map_cond);
	pthread_mutex_unlock(&peer->map_lock);
	if (base)
		munmap(base, bytes);
}

static void forget_views(struct soft_context *c, const struct soft_peer *peer)
{
	uint32_t i;

	for (i = 0; i < atomic_load(&c->qps_high); i++) {
		struct soft_qp *qp = atomic_load(&c->qps[i]);

		if (!qp || !qp->is_live || qp->peer != peer)
			continue;
		soft_lock(qp->lock);
		memset(qp->remote, 0, sizeof(qp->remote));
		soft_unlock(qp->lock);
	}
}

void soft_mappings_trim(struct soft_context *c, struct soft_peer *peer)
{
	struct soft_mapping **at, *dead = NULL;

	pthread_mutex_lock(&peer->map_lock);
	for (at = &peer->mappings; *at;) {
		struct soft_mapping *m = *at;

		if (!m->base ||
		    atomic_load(&peer->seg->regions[m->id % SOFT_N_REGIONS]) ==
			    m->id) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		m->next = dead;
		dead = m;
	}
	pthread_mutex_unlock(&peer->map_lock);
	/* Nobody can find them now; those who had found them forget. */
	if (dead)
		forget_views(c, peer);
	while (dead) {
		struct soft_mapping *m = dead;

		dead = m->next;
		munmap(m->base, m->bytes);
		base_free(m);
	}
}

void soft_mappings_free(struct soft_peer *peer)
{
	struct soft_mapping *m;

	while ((m = peer->mappings)) {
		peer->mappings = m->next;
		if (m->base)
			munmap(m->base, m->bytes);
		base_free(m);
	}
}
