/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>

#include "discover.h"
#include "local.h"

int boot_discover_open_mpi(const struct base_env *env, struct boot_place *place)
{
	static const char launcher[] = "Open MPI";
	/* Communicators are made in the same order on every rank. */
	static _Atomic unsigned int n_made;
	struct boot_local_key key = {.launcher = launcher};
	const char *name = base_env_foreign("PMIX_NAMESPACE");
	int n_local;
	int err;

	if (!base_env_foreign("OMPI_COMM_WORLD_RANK") &&
	    !base_env_foreign("OMPI_COMM_WORLD_SIZE"))
		return BOOT_NOT_THIS;
	err = boot_foreign_int(launcher, "OMPI_COMM_WORLD_SIZE", 1,
			       BOOT_MAX_RANKS, &place->n_ranks);
	if (!err)
		err = boot_foreign_int(launcher, "OMPI_COMM_WORLD_RANK", 0,
				       place->n_ranks - 1, &place->rank);
	if (!err)
		err = boot_foreign_int(launcher, "OMPI_COMM_WORLD_LOCAL_SIZE",
				       1, place->n_ranks, &n_local);
	if (err)
		return err;
	snprintf(place->found_by, sizeof(place->found_by), "%s", launcher);
	if (place->n_ranks == 1)
		return 0;
	if (n_local != place->n_ranks)
		return base_error(WREATH_EUNSUP,
				  "Open MPI started %d ranks, of which %d are "
				  "on this host: between hosts, make an id by "
				  "wreath_unique_id_create(), carry it by "
				  "MPI_Bcast() to wreath_comm_init(), or set "
				  "WREATH_COMM_ID, WREATH_RANK and "
				  "WREATH_N_RANKS",
				  place->n_ranks, n_local);
	if (!name || !name[0])
		return base_error(WREATH_EINVAL,
				  "this looks like Open MPI, "
				  "but PMIX_NAMESPACE is not set");
	snprintf(key.words, sizeof(key.words), "%.256s|%u", name,
		 atomic_fetch_add(&n_made, 1) + 1);
	return boot_local_meet(env, &key, place);
}
