/* SPDX-License-Identifier: MIT */
/* Libraries that are looked up at run time, for the files that call them. */
#ifndef VERBS_LOAD_H
#define VERBS_LOAD_H

#include <stdbool.h>
#include <stddef.h>

struct verbs_symbol {
	const char *name, *version;
	size_t offset; /* of its pointer in the table */
	bool is_optional;
};

/*
 * Put @library's functions into @table, which lives on with it: it is never
 * closed, since libibverbs' providers keep threads and handlers.  @reason says
 * why it cannot be used, and is "" if it can.
 */
void verbs_load(const char *library, const struct verbs_symbol *symbols,
		size_t n, void *table, char reason[256]);

#endif
