/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Caller holds @c->lock. */
static struct soft_region *region_get(struct soft_context *c, int fd,
				      const struct stat *st)
{
	struct soft_region *region;
	uint32_t i, free_slot = SOFT_N_REGIONS;

	for (i = 0; i < SOFT_N_REGIONS; i++) {
		region = c->regions[i];
		if (!region) {
			if (free_slot == SOFT_N_REGIONS)
				free_slot = i;
			if (i >= c->n_regions)
				break;
			continue;
		}
		if (region->dev == st->st_dev && region->ino == st->st_ino) {
			region->n_refs++;
			return region;
		}
	}
	if (free_slot == SOFT_N_REGIONS)
		return NULL;
	region = base_alloc(1, sizeof(*region));
	if (!region)
		return NULL;
	region->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (region->fd < 0) {
		base_free(region);
		return NULL;
	}
	region->dev = st->st_dev;
	region->ino = st->st_ino;
	region->bytes = (uint64_t)st->st_size;
	region->n_refs = 1;
	region->id = (uint64_t)++c->region_gen << 16 | free_slot;
	c->regions[free_slot] = region;
	if (free_slot >= c->n_regions)
		c->n_regions = free_slot + 1;
	atomic_store(&c->seg->regions[free_slot], region->id);
	return region;
}

static void region_put(struct soft_context *c, struct soft_region *region)
{
	struct soft_peer *peer;
	uint32_t slot;

	if (!region)
		return;
	pthread_mutex_lock(&c->lock);
	slot = (uint32_t)(region->id & (SOFT_N_REGIONS - 1));
	if (--region->n_refs) {
		region = NULL;
	} else {
		/* Peers look here to learn what they may unmap. */
		atomic_store(&c->seg->regions[slot], 0);
		c->regions[slot] = NULL;
		for (peer = c->peers; peer; peer = peer->next) {
			if (!peer->held && !atomic_load(&peer->is_dead))
				soft_message_send(peer->fd, SOFT_GONE, 0, 0,
						  -1);
		}
	}
	pthread_mutex_unlock(&c->lock);
	if (!region)
		return;
	close(region->fd);
	base_free(region);
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

static struct soft_mr *mr_new(const struct soft_new_mr *args)
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
	mr = mr_new(&args);
	if (!mr)
		return NULL;
	mr->ibv.addr = addr;
	return &mr->ibv;
}

/*
 * Where this process has the bytes: at @iova, if the caller has mapped them
 * there, which spares a second set of page tables, else in a mapping of ours.
 */
static char *map_local(const struct soft_new_mr *args, int fd,
		       const struct stat *st, struct soft_mr *mine)
{
	struct soft_maps_file file = {st->st_dev, st->st_ino, args->offset};
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = args->offset / page * page;
	char *at;

	if (soft_maps_is_file(args->addr, args->length, &file))
		return (char *)(uintptr_t)args->addr;
	mine->mapped_bytes = args->offset + args->length - start;
	at = mmap(NULL, mine->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		  fd, (off_t)start);
	if (at == MAP_FAILED)
		return NULL;
	mine->mapped = at;
	return at + (args->offset - start);
}

struct ibv_mr *soft_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				  size_t length, uint64_t iova, int fd,
				  int access)
{
	struct soft_new_mr args = {
		.c = soft_context_of(pd->context),
		.pd = (struct soft_pd *)pd,
		.addr = iova,
		.length = length,
		.offset = offset,
		.access = access,
	};
	struct soft_mr mine = {0};
	struct soft_mr *mr;
	struct stat st;
	int seals, error = EINVAL;

	if (soft_is_foreign(args.c) || args.c->is_gone) {
		errno = EIO;
		return NULL;
	}
	if (!soft_access_is_valid(access) || !length || iova + length < iova ||
	    fstat(fd, &st) || offset > (uint64_t)st.st_size ||
	    length > (uint64_t)st.st_size - offset)
		goto err;
	/* A peer can be hurt by memory that shrinks, so it must not. */
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (!(seals & F_SEAL_SHRINK) &&
			  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)))
		goto err;
	error = ENOMEM;
	args.base = map_local(&args, fd, &st, &mine);
	if (!args.base)
		goto err;
	pthread_mutex_lock(&args.c->lock);
	args.region = region_get(args.c, fd, &st);
	pthread_mutex_unlock(&args.c->lock);
	if (!args.region)
		goto err_mapped;
	mr = mr_new(&args);
	if (!mr)
		goto err_region;
	mr->mapped = mine.mapped;
	mr->mapped_bytes = mine.mapped_bytes;
	return &mr->ibv;

err_region:
	region_put(args.c, args.region);
err_mapped:
	if (mine.mapped)
		munmap(mine.mapped, mine.mapped_bytes);
err:
	errno = error;
	return NULL;
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
	region_put(soft_context_of(mr->ibv.context), mr->region);
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
