/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>

#include "soft/entry.h"
#include "soft/maps.h"
#include "soft/mr.h"
#include "soft/peer.h"
#include "soft/qp.h"

#define REMOTE                                                                 \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                    \
	 IBV_ACCESS_REMOTE_ATOMIC)
/* Optional flags may be ignored by a device; the rest it must know. */
#define KNOWN                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | REMOTE | IBV_ACCESS_HUGETLB |                \
	 IBV_ACCESS_OPTIONAL_RANGE)

/*
 * How long memory that is taken back waits for a peer that is in the middle
 * of a copy into it.  A copy takes a second only if the peer is stopped.
 */
#define DRAIN_MS 5000

bool soft_access_is_valid(int access)
{
	if (access & ~(int)KNOWN)
		return false;
	/* Who may be written from afar must be writable here (IBTA C10-77). */
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC))
		return access & IBV_ACCESS_LOCAL_WRITE;
	return true;
}

bool soft_mr_may_lock(struct soft_context *c, uint64_t bytes)
{
	int64_t limit = c->faults.memlock;

	return limit < 0 || (bytes <= (uint64_t)limit &&
			     c->n_locked <= (uint64_t)limit - bytes);
}

/* A free slot, or SOFT_N_MR.  Caller holds @c->lock. */
static uint32_t find_slot(struct soft_context *c)
{
	uint32_t slot = (uint32_t)soft_random(c) & (SOFT_N_MR - 1);

	if (c->n_mr >= SOFT_N_MR)
		return SOFT_N_MR;
	/* A key whose MR is being made has its word set last: see @is_taken. */
	while (c->mr_taken[slot])
		slot = (slot + 1) & (SOFT_N_MR - 1);
	c->mr_taken[slot] = true;
	c->n_mr++;
	return slot;
}

void soft_mr_publish(const struct soft_new_mr *args, struct soft_mr *mr,
		     uint64_t word)
{
	struct soft_shared_mr *s = &args->c->seg->mrs[mr->slot];
	struct soft_key *key = &args->c->keys[mr->slot];
	uint32_t access = (uint32_t)args->access;
	uint64_t region = args->region ? args->region->id : 0;

	atomic_store_explicit(&s->addr, args->addr, memory_order_relaxed);
	atomic_store_explicit(&s->length, args->length, memory_order_relaxed);
	atomic_store_explicit(&s->region, region, memory_order_relaxed);
	atomic_store_explicit(&s->offset, args->offset, memory_order_relaxed);
	atomic_store_explicit(&s->pd, args->pd->id, memory_order_relaxed);
	atomic_store_explicit(&s->access, access, memory_order_relaxed);
	atomic_store_explicit(&key->addr, args->addr, memory_order_relaxed);
	atomic_store_explicit(&key->length, args->length,
			      memory_order_relaxed);
	atomic_store_explicit(&key->base, (uintptr_t)args->base,
			      memory_order_relaxed);
	atomic_store_explicit(&key->pd, args->pd->id, memory_order_relaxed);
	atomic_store_explicit(&key->access, access, memory_order_relaxed);
	/* Pair with the loads in soft_view_keys() and view_far(). */
	atomic_store_explicit(&key->word, word, memory_order_release);
	atomic_store_explicit(&s->word, word, memory_order_release);
}

struct soft_mr *soft_mr_new(const struct soft_new_mr *args)
{
	struct soft_context *c = args->c;
	struct soft_mr *mr;
	uint32_t key;
	uint64_t word;

	mr = soft_fault_hits(&c->faults.fail_reg) ? NULL
						  : base_alloc(1, sizeof(*mr));
	if (!mr) {
		errno = ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&c->lock);
	mr->slot = soft_mr_may_lock(c, args->length) ? find_slot(c) : SOFT_N_MR;
	if (mr->slot == SOFT_N_MR) {
		pthread_mutex_unlock(&c->lock);
		base_free(mr);
		errno = ENOMEM;
		return NULL;
	}
	key = mr->slot << SOFT_KEY_SHIFT |
	      (uint32_t)(soft_random(c) >> (64 - SOFT_KEY_SHIFT));
	word = (uint64_t)++c->key_gen << 32 | key;
	c->n_locked += args->length;
	pthread_mutex_unlock(&c->lock);

	mr->region = args->region;
	mr->offset = args->offset;
	mr->ibv.context = &c->verbs.context;
	mr->ibv.pd = &args->pd->ibv;
	mr->ibv.length = args->length;
	mr->ibv.handle = mr->slot;
	mr->ibv.lkey = key;
	mr->ibv.rkey = key;
	atomic_fetch_add(&args->pd->n_refs, 1);
	soft_mr_publish(args, mr, word);
	return mr;
}

struct ibv_mr *soft_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   int access)
{
	struct soft_new_mr args = {
		.c = soft_context_of(pd->context),
		.pd = (struct soft_pd *)pd,
		.addr = (uintptr_t)addr,
		.length = length,
		.offset = (uintptr_t)addr,
		.base = addr,
		.access = access,
	};
	struct soft_mr *mr;

	if (soft_is_foreign(args.c) || args.c->is_gone) {
		errno = EIO;
		return NULL;
	}
	if (!soft_access_is_valid(access) || !length ||
	    args.addr + length < args.addr) {
		errno = EINVAL;
		return NULL;
	}
	if (!soft_maps_check(args.addr, length,
			     access & IBV_ACCESS_LOCAL_WRITE)) {
		errno = EFAULT;
		return NULL;
	}
	mr = soft_mr_new(&args);
	if (!mr)
		return NULL;
	mr->ibv.addr = addr;
	return &mr->ibv;
}

bool soft_view_keys(const struct soft_key *keys, uint32_t key,
		    struct soft_view *view)
{
	const struct soft_key *k = &keys[key >> SOFT_KEY_SHIFT];
	/* Pairs with publish(): valid word, valid fields. */
	uint64_t word = atomic_load_explicit(&k->word, memory_order_acquire);

	if (!word || (uint32_t)word != key)
		return false;
	view->key = key;
	view->word = word;
	view->at = &k->word;
	view->addr = atomic_load_explicit(&k->addr, memory_order_relaxed);
	view->length = atomic_load_explicit(&k->length, memory_order_relaxed);
	view->pd = atomic_load_explicit(&k->pd, memory_order_relaxed);
	view->access = atomic_load_explicit(&k->access, memory_order_acquire);
	view->base = (char *)atomic_load_explicit(&k->base,
						  memory_order_acquire);
	view->far = 0;
	return atomic_load_explicit(&k->word, memory_order_relaxed) == word;
}

void soft_drain(struct soft_context *c)
{
	uint32_t i;

	soft_fence();
	pthread_mutex_lock(&c->lock);
	for (i = 0; i < c->qps_high; i++) {
		struct soft_qp *qp = c->qps[i];

		if (!qp || !qp->is_live)
			continue;
		soft_lock_drain(qp->lock, DRAIN_MS);
		if (!soft_peer_drain(qp, DRAIN_MS))
			base_log(BASE_LOG_WARN,
				 "soft device: process %d stopped while it "
				 "wrote here; its write may still come",
				 qp->peer->pid);
	}
	pthread_mutex_unlock(&c->lock);
}

void soft_mr_withdraw(struct soft_mr *mr)
{
	struct soft_context *c = soft_context_of(mr->ibv.context);

	/*
	 * A post that began before holds a lock that the drain sees; one that
	 * begins later sees no word.  Pairs with soft_lock().
	 */
	atomic_store(&c->keys[mr->slot].word, 0);
	atomic_store(&c->seg->mrs[mr->slot].word, 0);
	soft_drain(c);
}

void soft_mr_release(struct soft_mr *mr)
{
	soft_region_put(soft_context_of(mr->ibv.context), mr->region);
	if (mr->mapped)
		munmap(mr->mapped, mr->mapped_bytes);
	mr->region = NULL;
	mr->mapped = NULL;
}

int soft_dereg_mr(struct ibv_mr *ibmr)
{
	struct soft_mr *mr = (struct soft_mr *)(void *)ibmr;
	struct soft_context *c = soft_context_of(ibmr->context);

	if (soft_is_foreign(c))
		return EIO;
	soft_mr_withdraw(mr);
	soft_mr_release(mr);
	pthread_mutex_lock(&c->lock);
	c->mr_taken[mr->slot] = false;
	c->n_mr--;
	c->n_locked -= ibmr->length;
	pthread_mutex_unlock(&c->lock);
	atomic_fetch_sub(&((struct soft_pd *)ibmr->pd)->n_refs, 1);
	base_free(mr);
	return 0;
}
