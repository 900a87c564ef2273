/* SPDX-License-Identifier: MIT */
/*
 * What an all-reduce must give, worked out without any code of the library:
 * inputs are a function of (seed, rank, index), so that every rank knows those
 * of all.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wreath.h"

enum model_kind {
	/*
	 * Numbers whose combinations are exact in every order: any bits for
	 * integers, and for MIN and MAX; few bits for the rest.
	 */
	MODEL_EXACT,
	/* Any real numbers of middling size: the order shows in the last
	 * bits. */
	MODEL_REAL,
};

struct model {
	enum wreath_type type;
	enum wreath_op op;
	enum model_kind kind;
	int n_ranks;
	uint64_t seed;
};

void model_fill(const struct model *model, int rank, void *out, size_t count);

/* False, and the sentence that says what is wrong. */
bool model_check(const struct model *model, const void *got, size_t count,
		 char text[256]);

/* Of the bits, to compare ranks and runs by. */
uint64_t model_hash(const void *data, size_t bytes);

#endif
