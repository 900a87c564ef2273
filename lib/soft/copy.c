/* SPDX-License-Identifier: MIT */
/*
 * The copy of a payload into a peer's memory, in line order: the last 8 bytes
 * of each aligned line land last, and lines in the order of their addresses,
 * which is what VERBS_LINE_ORDER promises.  A plain memcpy() may use wide or
 * string stores that promise nothing.
 */
#include <string.h>

#include "soft/qp.h"

#define WORD 8u

/* Pairs with the reader's acquire of the same word. */
static inline void store_last(void *to, const void *from)
{
	uint64_t v;

	memcpy(&v, from, sizeof(v));
	atomic_store_explicit((_Atomic uint64_t *)to, v, memory_order_release);
}

/* Within a line; @to is aligned to 8: words are never torn. */
static inline void copy_words(unsigned char *to, const unsigned char *from,
			      size_t bytes)
{
	for (; bytes >= WORD; bytes -= WORD) {
		store_last(to, from);
		to += WORD;
		from += WORD;
	}
	/* Pieces of 4, 2 and 1 are aligned here, and stored as such. */
	if (bytes & 4) {
		uint32_t v;

		memcpy(&v, from, sizeof(v));
		atomic_store_explicit((_Atomic uint32_t *)(void *)to, v,
				      memory_order_release);
		to += 4;
		from += 4;
	}
	if (bytes & 2) {
		memcpy(to, from, 2);
		to += 2;
		from += 2;
	}
	if (bytes & 1)
		*to = *from;
}

/* Up to an aligned word, or the end. */
static size_t copy_head(unsigned char *to, const unsigned char *from,
			size_t bytes)
{
	size_t n = 0;

	while (n < bytes && ((uintptr_t)(to + n) & (WORD - 1))) {
		size_t left = bytes - n;
		uintptr_t at = (uintptr_t)(to + n);

		if (!(at & 3) && left >= 4) {
			copy_words(to + n, from + n, 4);
			n += 4;
		} else if (!(at & 1) && left >= 2) {
			memcpy(to + n, from + n, 2);
			n += 2;
		} else {
			to[n] = from[n];
			n++;
		}
	}
	return n;
}

void soft_copy_lines(void *to_, const void *from_, size_t bytes)
{
	unsigned char *to = to_;
	const unsigned char *from = from_;

	/* Small messages are whole lines, and must be quick. */
	if (base_unlikely((uintptr_t)to & (BASE_LINE - 1))) {
		size_t n = copy_head(to, from, bytes);

		to += n;
		from += n;
		bytes -= n;
		/* Words up to a line, then lines, then words. */
		n = base_min_size(-(uintptr_t)to & (BASE_LINE - 1), bytes);
		copy_words(to, from, n);
		to += n;
		from += n;
		bytes -= n;
	}
	for (; bytes >= BASE_LINE; bytes -= BASE_LINE) {
		memcpy(to, from, BASE_LINE - WORD);
		store_last(to + BASE_LINE - WORD, from + BASE_LINE - WORD);
		to += BASE_LINE;
		from += BASE_LINE;
	}
	if (bytes)
		copy_words(to, from, bytes);
}
