/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soft/peer.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

void soft_lock_wait(_Atomic uint32_t *lock)
{
	unsigned int n;

	/* A holder copies at most one message; if it lost its processor it
	 * needs ours. */
	for (n = 0; atomic_load_explicit(lock, memory_order_relaxed) & 1; n++) {
		if (n < 100)
			base_pause();
		else
			sched_yield();
	}
}

bool soft_lock_drain(const _Atomic uint32_t *lock, int timeout_ms)
{
	/* Pairs with soft_unlock(): what the holder wrote is visible. */
	uint32_t v = atomic_load_explicit(lock, memory_order_acquire);
	uint64_t start_ns = 0;
	unsigned int n;

	if (!(v & 1))
		return true;
	for (n = 0;
	     atomic_load_explicit(lock, memory_order_acquire) == v; n++) {
		if (n < 100) {
			base_pause();
			continue;
		}
		sched_yield();
		if (!start_ns)
			start_ns = base_now_ns();
		if (base_now_ns() - start_ns > (uint64_t)timeout_ms * 1000000u)
			return false;
	}
	return true;
}

/* xorshift64*: keys must differ and look random, not be secret. */
uint64_t soft_random(struct soft_context *c)
{
	c->random ^= c->random >> 12;
	c->random ^= c->random << 25;
	c->random ^= c->random >> 27;
	return c->random * 0x2545f4914f6cdd1dull;
}

int soft_segment_new(struct soft_context *c)
{
	int error = WREATH_ENOMEM;
	int fd;

	c->held = base_alloc(1, sizeof(*c->held));
	if (!c->held)
		return WREATH_ENOMEM;
	/* By mmap, since base_alloc() would touch all of it. */
	c->keys = mmap(NULL, SOFT_N_MR * sizeof(*c->keys),
		       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	if (c->keys == MAP_FAILED) {
		base_error(error, "soft device: mmap: %s", strerror(errno));
		goto err_held;
	}
	fd = memfd_create("wreath-soft", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0) {
		base_error(error, "soft device: memfd_create: %s",
			   strerror(errno));
		goto err_keys;
	}
	if (ftruncate(fd, sizeof(*c->seg)) ||
	    fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL)) {
		base_error(error, "soft device: cannot size and seal %zu "
				  "bytes: %s; is there a limit on file sizes "
				  "(ulimit -f)?", sizeof(*c->seg),
			   strerror(errno));
		goto err_fd;
	}
	c->seg = mmap(NULL, sizeof(*c->seg), PROT_READ | PROT_WRITE,
		      MAP_SHARED, fd, 0);
	if (c->seg == MAP_FAILED) {
		c->seg = NULL;
		base_error(error, "soft device: cannot map %zu bytes: %s; is "
				  "there a limit on address space "
				  "(ulimit -v)?", sizeof(*c->seg),
			   strerror(errno));
		goto err_fd;
	}
	c->seg->magic = SOFT_MAGIC;
	c->seg->version = SOFT_VERSION;
	c->seg->pid = (uint32_t)getpid();
	c->seg->id = c->id;
	c->seg->bits = c->pace.bits;
	c->seg_fd = fd;
	c->held->seg = c->seg;
	c->held->keys = c->keys;
	c->held->context = c;
	pthread_mutex_init(&c->held->lock, NULL);
	atomic_store(&c->held->n_refs, 1);
	return 0;

err_fd:
	close(fd);
err_keys:
	munmap(c->keys, SOFT_N_MR * sizeof(*c->keys));
err_held:
	base_free(c->held);
	c->held = NULL;
	return error;
}

void soft_held_put(struct soft_held *held)
{
	if (atomic_fetch_sub(&held->n_refs, 1) != 1)
		return;
	munmap(held->seg, sizeof(*held->seg));
	munmap(held->keys, SOFT_N_MR * sizeof(*held->keys));
	pthread_mutex_destroy(&held->lock);
	base_free(held);
}

struct soft_segment *soft_segment_map(int fd)
{
	struct soft_segment *seg;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	/* Unsealed it could be cut short under our hands. */
	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) ||
	    st.st_size != (off_t)sizeof(*seg))
		return NULL;
	seg = mmap(NULL, sizeof(*seg), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   0);
	if (seg == MAP_FAILED)
		return NULL;
	if (seg->magic != SOFT_MAGIC || seg->version != SOFT_VERSION) {
		munmap(seg, sizeof(*seg));
		return NULL;
	}
	return seg;
}

struct soft_block *soft_block_new(struct soft_context *c, size_t bytes)
{
	unsigned int class = 8; /* four lines at least */
	struct soft_block *block;
	_Atomic uint32_t *words;
	size_t at;

	while (class < 31 && ((size_t)1 << class) < bytes)
		class++;
	block = c->blocks[class];
	if (block) {
		c->blocks[class] = block->next;
	} else {
		if (((size_t)1 << class) > SOFT_RING_BYTES - c->ring_used) {
			base_error(WREATH_ENOMEM,
				   "soft device: %zu more bytes of queues do "
				   "not fit in %u, of which %u are used",
				   bytes, SOFT_RING_BYTES, c->ring_used);
			return NULL;
		}
		block = base_alloc(1, sizeof(*block));
		if (!block)
			return NULL;
		block->offset = c->ring_used;
		block->bytes = 1u << class;
		c->ring_used += block->bytes;
	}
	words = (_Atomic uint32_t *)(void *)(c->seg->rings + block->offset);
	/* A poll of another thread may still look at its former use. */
	for (at = 0; at < block->bytes / sizeof(*words); at++)
		atomic_store_explicit(&words[at], 0, memory_order_relaxed);
	return block;
}

void soft_block_free(struct soft_context *c, struct soft_block *block)
{
	unsigned int class;

	if (!block)
		return;
	class = 31u - (unsigned int)__builtin_clz(block->bytes);
	block->next = c->blocks[class];
	c->blocks[class] = block;
}
