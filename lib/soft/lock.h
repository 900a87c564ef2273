/* SPDX-License-Identifier: MIT */
/*
 * Locks of a word that may live in a segment, and be watched from another
 * process.
 */
#ifndef SOFT_LOCK_H
#define SOFT_LOCK_H

#include <stdatomic.h>

#include "base/base.h"

/* Full barrier: orders our store before our next load of a peer's word. */
static inline void soft_fence(void)
{
	__sync_synchronize();
}

void soft_lock_wait(_Atomic uint32_t *lock);

/* Odd while held; each holding changes it, which is what drains wait for. */
static inline void soft_lock(_Atomic uint32_t *lock)
{
	uint32_t v = atomic_load_explicit(lock, memory_order_relaxed);

	while (base_unlikely(v & 1) ||
	       base_unlikely(!atomic_compare_exchange_strong_explicit(
		       lock, &v, v + 1, memory_order_seq_cst,
		       memory_order_relaxed))) {
		soft_lock_wait(lock);
		v = atomic_load_explicit(lock, memory_order_relaxed);
	}
#if !defined(__x86_64__) && !defined(__i386__)
	/* The exchange alone does not keep later loads behind its store. */
	soft_fence();
#endif
}

/* False: somebody has it. */
static inline bool soft_trylock(_Atomic uint32_t *lock)
{
	uint32_t v = atomic_load_explicit(lock, memory_order_relaxed);

	if (v & 1 || !atomic_compare_exchange_strong(lock, &v, v + 1))
		return false;
#if !defined(__x86_64__) && !defined(__i386__)
	soft_fence(); /* as in soft_lock() */
#endif
	return true;
}

static inline void soft_unlock(_Atomic uint32_t *lock)
{
	uint32_t v = atomic_load_explicit(lock, memory_order_relaxed);

	atomic_store_explicit(lock, v + 1, memory_order_release);
}

/*
 * Wait until whoever holds @lock at this moment has let go, at most
 * @timeout_ms; false when that passed.
 */
bool soft_lock_drain(const _Atomic uint32_t *lock, int timeout_ms);

#endif
