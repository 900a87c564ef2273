/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "discover.h"

int boot_foreign_int(const char *launcher, const char *name, int64_t min,
		     int64_t max, int *out)
{
	const char *text = base_env_foreign(name);
	int64_t value;

	if (!text)
		return base_error(WREATH_EINVAL,
				  "this looks like %s, but %s is not set",
				  launcher, name);
	if (!base_parse_int(text, min, max, &value))
		return base_error(WREATH_EINVAL,
				  "%s='%.64s' (of %s) is not a whole number "
				  "from %lld to %lld",
				  name, text, launcher, (long long)min,
				  (long long)max);
	*out = (int)value;
	return 0;
}

int boot_discover_wreath(const struct base_env *env, struct boot_place *place)
{
	static const enum base_env_name all[] = {
		BASE_ENV_COMM_ID, BASE_ENV_RANK, BASE_ENV_N_RANKS};
	const char *missing = NULL;
	size_t n_set = 0;
	size_t i;
	int err;

	for (i = 0; i < base_countof(all); i++) {
		if (env->is_set[all[i]] && env->text[all[i]][0])
			n_set++;
		else if (!missing)
			missing = base_env_table()[all[i]].name;
	}
	if (!n_set)
		return BOOT_NOT_THIS;
	if (missing)
		return base_error(WREATH_EINVAL,
				  "WREATH_COMM_ID, WREATH_RANK and "
				  "WREATH_N_RANKS belong together: %s is not "
				  "set",
				  missing);
	place->rank = (int)env->value[BASE_ENV_RANK];
	place->n_ranks = (int)env->value[BASE_ENV_N_RANKS];
	if (place->rank >= place->n_ranks)
		return base_error(WREATH_EINVAL,
				  "WREATH_RANK=%d is not in [0, %d), which "
				  "WREATH_N_RANKS makes the range",
				  place->rank, place->n_ranks);
	err = boot_id_parse(env->text[BASE_ENV_COMM_ID], &place->id);
	if (err)
		return err;
	snprintf(place->found_by, sizeof(place->found_by), "WREATH_COMM_ID");
	return 0;
}

int boot_discover(const struct base_env *env, struct boot_place *place)
{
	static int (*const ways[])(const struct base_env *env,
				   struct boot_place *place) = {
		boot_discover_wreath,
		boot_discover_torchrun,
		boot_discover_pmi,
		boot_discover_open_mpi,
	};
	struct boot_place found;
	size_t i;
	int err;

	for (i = 0; i < base_countof(ways); i++) {
		memset(&found, 0, sizeof(found));
		err = ways[i](env, &found);
		if (err == BOOT_NOT_THIS)
			continue;
		if (err)
			return err;
		base_log(BASE_LOG_INFO, "rank %d of %d, found by %s",
			 found.rank, found.n_ranks, found.found_by);
		*place = found;
		return 0;
	}
	memset(place, 0, sizeof(*place));
	place->n_ranks = 1;
	snprintf(place->found_by, sizeof(place->found_by),
		 "no launcher: one rank alone");
	base_log(BASE_LOG_INFO, "no launcher found: one rank alone");
	return 0;
}
