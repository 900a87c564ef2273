/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "mem/cuda.h"
#include "mem/mem.h"

/*
 * The table is sorted by address and read without a lock: @seq is odd while it
 * is written, and a reader that saw it change reads again (a seqlock; the
 * fields are atomics so that a torn read is harmless).
 */
struct entry {
	_Atomic uintptr_t base;
	_Atomic size_t bytes;
	_Atomic uint64_t id;
	_Atomic int fd, gpu;
	bool is_ours; /* allocated here; writers only */
};

static struct {
	pthread_mutex_t lock; /* writers and @watches */
	_Atomic uint64_t seq;
	_Atomic size_t n;
	struct entry entry[MEM_REGIONS_MAX];
	uint64_t last_id;
	struct mem_watch *watches;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Acquire, so that a reader's second look at @seq comes after the fields. */
#define GET(field) atomic_load_explicit(&(field), memory_order_acquire)
#define SET(field, value)                                                      \
	atomic_store_explicit(&(field), (value), memory_order_release)

static uint64_t generation(void)
{
	/* Pairs with the release in write_end(). */
	return atomic_load_explicit(&table.seq, memory_order_acquire);
}

static void write_begin(void)
{
	/* The odd number must be seen before any field changes: an exchange
	 * keeps later stores behind it. */
	atomic_exchange_explicit(&table.seq, GET(table.seq) + 1,
				 memory_order_seq_cst);
}

static void write_end(void)
{
	/* Pairs with the acquire in generation(). */
	atomic_store_explicit(&table.seq, GET(table.seq) + 1,
			      memory_order_release);
}

/* The first entry whose base is above @at; may be stale in a reader. */
static size_t upper(uintptr_t at)
{
	size_t low = 0;
	size_t high = GET(table.n);

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (GET(table.entry[mid].base) <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void entry_read(const struct entry *entry, struct mem_region *out)
{
	uintptr_t base = GET(entry->base);

	out->base = (char *)base;
	out->bytes = GET(entry->bytes);
	out->fd = GET(entry->fd);
	out->gpu = GET(entry->gpu);
	out->id = GET(entry->id);
}

static void entry_move(size_t to, size_t from)
{
	struct entry *target = &table.entry[to];
	const struct entry *source = &table.entry[from];

	SET(target->base, GET(source->base));
	SET(target->bytes, GET(source->bytes));
	SET(target->fd, GET(source->fd));
	SET(target->gpu, GET(source->gpu));
	target->is_ours = source->is_ours;
	SET(target->id, GET(source->id));
}

bool mem_find(const void *ptr, size_t bytes, struct mem_region *out)
{
	uintptr_t at = (uintptr_t)ptr;

	for (;;) {
		uint64_t seq = generation();
		struct mem_region found = {0};
		size_t i;

		if (seq & 1) {
			base_pause();
			continue;
		}
		i = upper(at);
		if (i)
			entry_read(&table.entry[i - 1], &found);
		/* Every field is read by acquire, so that this comes last;
		 * pairs with write_begin(). */
		if (GET(table.seq) != seq)
			continue;
		if (!i || at - (uintptr_t)found.base > found.bytes ||
		    bytes > found.bytes - (at - (uintptr_t)found.base))
			return false;
		*out = found;
		return true;
	}
}

/* Caller holds @table.lock. */
static int insert(void *ptr, size_t bytes, int fd, int gpu, bool is_ours)
{
	uintptr_t base = (uintptr_t)ptr;
	size_t n = GET(table.n);
	size_t at = upper(base);
	struct mem_region other;
	size_t i;

	if (n == MEM_REGIONS_MAX)
		return base_error(WREATH_ENOMEM,
				  "%d regions of memory are registered; free "
				  "or deregister some first", MEM_REGIONS_MAX);
	if (at) {
		entry_read(&table.entry[at - 1], &other);
		if (base - (uintptr_t)other.base < other.bytes)
			goto overlaps;
	}
	if (at < n) {
		entry_read(&table.entry[at], &other);
		if ((uintptr_t)other.base - base < bytes)
			goto overlaps;
	}
	write_begin();
	for (i = n; i > at; i--)
		entry_move(i, i - 1);
	SET(table.entry[at].base, base);
	SET(table.entry[at].bytes, bytes);
	SET(table.entry[at].fd, fd);
	SET(table.entry[at].gpu, gpu);
	table.entry[at].is_ours = is_ours;
	SET(table.entry[at].id, ++table.last_id);
	SET(table.n, n + 1);
	write_end();
	return 0;
overlaps:
	return base_error(WREATH_EINVAL,
			  "%zu bytes at %p overlap the %zu bytes at %p that "
			  "are registered already", bytes, ptr, other.bytes,
			  (void *)other.base);
}

/* Caller holds @table.lock. */
static bool take_out(void *ptr, bool allocated, struct mem_region *out)
{
	size_t at = upper((uintptr_t)ptr);
	struct mem_watch *watch;
	size_t i, n;

	if (!at--)
		return false;
	entry_read(&table.entry[at], out);
	if (out->base != ptr || table.entry[at].is_ours != allocated)
		return false;
	for (watch = table.watches; watch; watch = watch->next)
		watch->gone(watch->arg, out);
	write_begin();
	n = GET(table.n) - 1;
	for (i = at; i < n; i++)
		entry_move(i, i + 1);
	SET(table.n, n);
	write_end();
	return true;
}

int mem_alloc(size_t bytes, void **out)
{
	void *ptr;
	int err, fd;

	if (!bytes || bytes > SIZE_MAX / 2)
		return base_error(WREATH_EINVAL,
				  "cannot allocate %zu bytes: not in 1..%zu",
				  bytes, SIZE_MAX / 2);
	err = mem_shared_new(bytes, &ptr, &fd);
	if (err)
		return err;
	pthread_mutex_lock(&table.lock);
	err = insert(ptr, bytes, fd, -1, true);
	pthread_mutex_unlock(&table.lock);
	if (err) {
		mem_shared_free(ptr, bytes, fd);
		return err;
	}
	*out = ptr;
	return 0;
}

int mem_gpu_alloc(size_t bytes, int gpu, void **out)
{
	void *ptr;
	int err = cuda_alloc(gpu, bytes, &ptr);

	if (err)
		return err;
	pthread_mutex_lock(&table.lock);
	err = insert(ptr, bytes, -1, gpu, true);
	pthread_mutex_unlock(&table.lock);
	if (err) {
		cuda_free(gpu, ptr);
		return err;
	}
	*out = ptr;
	return 0;
}

int mem_free(void *ptr)
{
	struct mem_region region;
	bool found;

	if (!ptr)
		return 0;
	pthread_mutex_lock(&table.lock);
	found = take_out(ptr, true, &region);
	pthread_mutex_unlock(&table.lock);
	if (!found)
		return base_error(WREATH_EINVAL,
				  "%p did not come from wreath_mem_alloc() or "
				  "wreath_mem_alloc_gpu()", ptr);
	if (region.gpu >= 0)
		return cuda_free(region.gpu, region.base);
	mem_shared_free(region.base, region.bytes, region.fd);
	return 0;
}

/* The GPU whose memory all of the range is, or -1. */
static int check_place(const char *ptr, size_t bytes, int *gpu)
{
	struct mem_where where;
	int err = mem_where(ptr, &where);

	if (err)
		return err;
	*gpu = -1;
	if (where.kind == MEM_MANAGED)
		return base_error(WREATH_EUNSUP,
				  "cannot register %zu bytes at %p: managed "
				  "memory moves between host and GPU; use it "
				  "as it is", bytes, (const void *)ptr);
	if (where.kind != MEM_DEVICE)
		return 0;
	if (bytes > where.bytes - (size_t)(ptr - where.base))
		return base_error(WREATH_EINVAL,
				  "cannot register %zu bytes at %p: the "
				  "allocation on GPU %d ends %zu bytes behind",
				  bytes, (const void *)ptr, where.gpu,
				  where.bytes - (size_t)(ptr - where.base));
	*gpu = where.gpu;
	return 0;
}

int mem_register(void *ptr, size_t bytes)
{
	int err, gpu;

	if (!ptr || !bytes || (uintptr_t)ptr + bytes < bytes)
		return base_error(WREATH_EINVAL,
				  "cannot register %zu bytes at %p: empty or "
				  "not a range", bytes, ptr);
	err = check_place(ptr, bytes, &gpu);
	if (err)
		return err;
	pthread_mutex_lock(&table.lock);
	err = insert(ptr, bytes, -1, gpu, false);
	pthread_mutex_unlock(&table.lock);
	return err;
}

int mem_deregister(void *ptr)
{
	struct mem_region region;
	bool found;

	pthread_mutex_lock(&table.lock);
	found = take_out(ptr, false, &region);
	pthread_mutex_unlock(&table.lock);
	if (!found)
		return base_error(WREATH_EINVAL,
				  "%p was not registered by "
				  "wreath_mem_register()", ptr);
	return 0;
}

void mem_watch_add(struct mem_watch *watch)
{
	pthread_mutex_lock(&table.lock);
	watch->next = table.watches;
	table.watches = watch;
	pthread_mutex_unlock(&table.lock);
}

void mem_watch_remove(struct mem_watch *watch)
{
	struct mem_watch **at;

	pthread_mutex_lock(&table.lock);
	for (at = &table.watches; *at; at = &(*at)->next) {
		if (*at == watch) {
			*at = watch->next;
			break;
		}
	}
	pthread_mutex_unlock(&table.lock);
}
