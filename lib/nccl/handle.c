/* SPDX-License-Identifier: MIT */
/* Handles: which are live, and who is inside. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nccl/inner.h"

#define NCCL_LIVE 0x6e63636cu
/* A chunk of handles is allocated at a time, and kept. */
#define CHUNK 16
#define CHUNKS_MAX 256

static struct {
	pthread_mutex_t lock; /* of the list, and of making chunks */
	_Atomic(struct ncclComm *) chunks[CHUNKS_MAX];
	_Atomic int n_chunks;
	struct ncclComm *first, *last; /* free: the longest first */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

void nccl_nap(void)
{
	const struct timespec millisecond = {.tv_nsec = 1000000};

	nanosleep(&millisecond, NULL);
}

static void put_free(struct ncclComm *comm)
{
	comm->next = NULL;
	if (pool.last)
		pool.last->next = comm;
	else
		pool.first = comm;
	pool.last = comm;
}

/* Caller holds the lock. */
static bool make_chunk(void)
{
	int n = atomic_load(&pool.n_chunks);
	struct ncclComm *chunk;
	int i;

	if (n == CHUNKS_MAX)
		return false;
	chunk = calloc(CHUNK, sizeof(*chunk));
	if (!chunk)
		return false;
	for (i = 0; i < CHUNK; i++) {
		pthread_mutex_init(&chunk[i].lock, NULL);
		put_free(&chunk[i]);
	}
	/* Pairs with the load in is_handle(). */
	atomic_store(&pool.chunks[n], chunk);
	atomic_store(&pool.n_chunks, n + 1);
	return true;
}

struct ncclComm *nccl_handle_new(const char *function)
{
	struct ncclComm *comm = NULL;

	pthread_mutex_lock(&pool.lock);
	if (pool.first || make_chunk()) {
		comm = pool.first;
		pool.first = comm->next;
		if (!pool.first)
			pool.last = NULL;
	}
	pthread_mutex_unlock(&pool.lock);
	if (!comm) {
		nccl_fail(ncclSystemError,
			  "%s: no memory, or more than %d communicators",
			  function, CHUNK * CHUNKS_MAX);
		return NULL;
	}
	comm->next = NULL;
	atomic_store(&comm->comm, NULL);
	atomic_store(&comm->failure, ncclSuccess);
	atomic_store(&comm->is_joined, false);
	comm->text[0] = 0;
	comm->rank = 0;
	comm->n_ranks = 0;
	comm->device = -1;
	comm->is_blocking = true;
	comm->is_revoked = false;
	comm->is_final = false;
	comm->is_aborted = false;
	comm->n_children = 0;
	comm->n_streams = 0;
	comm->clock = 0;
	memset(comm->factors, 0, sizeof(comm->factors));
	memset(comm->ops, 0, sizeof(comm->ops));
	return comm;
}

void nccl_handle_open(struct ncclComm *comm)
{
	/* Pairs with the load in nccl_enter(): all fields are there. */
	atomic_store(&comm->magic, NCCL_LIVE);
}

void nccl_handle_free(struct ncclComm *comm)
{
	atomic_store(&comm->magic, 0);
	pthread_mutex_lock(&pool.lock);
	/* At the end: an old handle shall be known as such for long. */
	put_free(comm);
	pthread_mutex_unlock(&pool.lock);
}

/* Does it point to one of ours, whatever its state?  Reads nothing there. */
static bool is_handle(const struct ncclComm *comm)
{
	int n = atomic_load(&pool.n_chunks);
	int i;

	for (i = 0; i < n; i++) {
		uintptr_t at = (uintptr_t)comm -
			       (uintptr_t)atomic_load(&pool.chunks[i]);

		if (at < CHUNK * sizeof(*comm))
			return at % sizeof(*comm) == 0;
	}
	return false;
}

bool nccl_handle_is_live(const struct ncclComm *comm)
{
	return atomic_load(&comm->magic) == NCCL_LIVE;
}

ncclResult_t nccl_enter(struct ncclComm *comm, const char *function)
{
	if (!comm)
		return nccl_fail(ncclInvalidArgument, "%s: comm is NULL",
				 function);
	if (!is_handle(comm))
		return nccl_fail(ncclInvalidArgument,
				 "%s: %p is not a communicator", function,
				 (void *)comm);
	/*
	 * Pairs with the exchange in nccl_handle_close(), both sequentially
	 * consistent: it sees this user, or this sees the handle closed.
	 */
	atomic_fetch_add(&comm->users, 1);
	if (nccl_handle_is_live(comm))
		return ncclSuccess;
	nccl_leave(comm);
	return nccl_fail(ncclInvalidArgument,
			 "%s: the communicator %p was destroyed already",
			 function, (void *)comm);
}

void nccl_leave(struct ncclComm *comm)
{
	/* Pairs with the load in nccl_handle_await(). */
	atomic_fetch_sub(&comm->users, 1);
}

bool nccl_handle_close(struct ncclComm *comm)
{
	return atomic_exchange(&comm->magic, 0) == NCCL_LIVE;
}

bool nccl_handle_await(struct ncclComm *comm, uint32_t n, int timeout_ms)
{
	while (atomic_load(&comm->users) > n) {
		if (timeout_ms-- <= 0)
			return false;
		nccl_nap();
	}
	return true;
}

bool nccl_handle_has_sibling(const struct ncclComm *comm)
{
	bool has_one = false;
	int i;

	/* Under the lock no handle becomes free, and so another's. */
	pthread_mutex_lock(&pool.lock);
	for (i = 0; i < atomic_load(&pool.n_chunks) * CHUNK; i++) {
		const struct ncclComm *other =
			atomic_load(&pool.chunks[i / CHUNK]) + i % CHUNK;

		if (other != comm && nccl_handle_is_live(other) &&
		    other->family.a == comm->family.a &&
		    other->family.b == comm->family.b)
			has_one = true;
	}
	pthread_mutex_unlock(&pool.lock);
	return has_one;
}

struct nccl_family nccl_family_mix(struct nccl_family family, uint64_t word)
{
	/* Two hashes with different factors: FNV's, and splitmix's. */
	family.a = (family.a ^ word) * 0x100000001b3u;
	family.a ^= family.a >> 32;
	family.b = (family.b + word) * 0xbf58476d1ce4e5b9u;
	family.b ^= family.b >> 29;
	return family;
}
