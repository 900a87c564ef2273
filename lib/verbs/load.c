/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#include "verbs/load.h"

void verbs_load(const char *library, const struct verbs_symbol *symbols,
		size_t n, void *table, char reason[256])
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	size_t i;

	reason[0] = 0;
	if (!handle) {
		snprintf(reason, 256, "%s", dlerror());
		return;
	}
	for (i = 0; i < n; i++) {
		const struct verbs_symbol *symbol = &symbols[i];
		void *found = dlvsym(handle, symbol->name, symbol->version);

		if (!found && !symbol->is_optional) {
			snprintf(reason, 256, "%s lacks %s@%s", library,
				 symbol->name, symbol->version);
			return;
		}
		*(void **)(void *)((char *)table + symbol->offset) = found;
	}
}
