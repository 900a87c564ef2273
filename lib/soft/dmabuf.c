/* SPDX-License-Identifier: MIT */
/*
 * Memory that is registered by its descriptor: a memfd, or a DMA-BUF.
 *
 * What can be sealed against shrinking cannot hurt who maps it: peers do.
 * What cannot, as DMA-BUFs, they reach as they do private memory: through the
 * kernel, in the owner's mapping of it, or by the owner.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "soft/entry.h"
#include "soft/maps.h"
#include "soft/mr.h"
#include "soft/peer.h"

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

void soft_region_put(struct soft_context *c, struct soft_region *region)
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

/*
 * Where this process has the bytes: at @iova, if the caller has mapped them
 * there and they stay, which spares a second set of page tables, else in a
 * mapping of ours.
 */
static char *map_local(const struct soft_new_mr *args, int fd,
		       const struct stat *st, bool is_sealed,
		       struct soft_mr *mine)
{
	struct soft_maps_file file = {st->st_dev, st->st_ino, args->offset};
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = args->offset / page * page;
	char *at;

	if (is_sealed && soft_maps_is_file(args->addr, args->length, &file))
		return (char *)(uintptr_t)args->addr;
	mine->mapped_bytes = args->offset + args->length - start;
	at = mmap(NULL, mine->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		  fd, (off_t)start);
	if (at == MAP_FAILED)
		return NULL;
	mine->mapped = at;
	return at + (args->offset - start);
}

/*
 * Does the kernel copy to and from it?  Not what a driver maps without pages;
 * then no peer could reach it.  True where the system lets nobody ask.
 */
static bool is_reached(char *at, size_t bytes)
{
	char ends[2];
	struct iovec near[2] = {{&ends[0], 1}, {&ends[1], 1}};
	struct iovec far[2] = {{at, 1}, {at + bytes - 1, 1}};
	ssize_t n = process_vm_readv(getpid(), near, 2, far, 2, 0);

	return n == 2 || (n < 0 && (errno == EPERM || errno == ENOSYS));
}

static bool seal(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && ((seals & F_SEAL_SHRINK) ||
			      !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
}

/* 0 or errno. */
static int find_memory(struct soft_new_mr *args, int fd, const struct stat *st,
		       struct soft_mr *mine)
{
	bool is_sealed = seal(fd);

	args->base = map_local(args, fd, st, is_sealed, mine);
	if (!args->base)
		return errno == ENOMEM ? ENOMEM : EOPNOTSUPP;
	if (is_sealed) {
		pthread_mutex_lock(&args->c->lock);
		args->region = region_get(args->c, fd, st);
		pthread_mutex_unlock(&args->c->lock);
		return args->region ? 0 : ENOMEM;
	}
	args->offset = (uintptr_t)args->base;
	return is_reached(args->base, args->length) ? 0 : EOPNOTSUPP;
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
	int err;

	if (soft_is_foreign(args.c) || args.c->is_gone) {
		errno = EIO;
		return NULL;
	}
	if (!soft_access_is_valid(access) || !length || iova + length < iova ||
	    fstat(fd, &st) || offset > (uint64_t)st.st_size ||
	    length > (uint64_t)st.st_size - offset) {
		errno = EINVAL;
		return NULL;
	}
	err = find_memory(&args, fd, &st, &mine);
	mr = err ? NULL : soft_mr_new(&args);
	if (mr) {
		mr->mapped = mine.mapped;
		mr->mapped_bytes = mine.mapped_bytes;
		return &mr->ibv;
	}
	soft_region_put(args.c, args.region);
	if (mine.mapped)
		munmap(mine.mapped, mine.mapped_bytes);
	errno = err ? err : ENOMEM;
	return NULL;
}
