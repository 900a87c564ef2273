/* SPDX-License-Identifier: MIT */
/* Communicators made out of another one, and one that is given up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/inner.h"

void nccl_child_make(struct nccl_making *making)
{
	struct wreath_comm *parent = atomic_load(&making->parent->comm);
	struct wreath_comm *child = NULL;
	struct ncclComm *comm = making->comm;
	int err;

	if (making->is_shrink)
		err = wreath_comm_shrink(parent, making->exclude,
					 making->n_exclude, &child);
	else
		err = wreath_comm_split(parent, making->color, making->key,
					&child);
	making->result = nccl_result(err, making->function);
	if (err) {
		snprintf(making->text, sizeof(making->text), "%s",
			 nccl_own_text());
		return;
	}
	if (!comm)
		return;
	comm->rank = wreath_comm_rank(child);
	comm->n_ranks = wreath_comm_size(child);
	/* Pairs with the loads of all who use it: rank and size are there. */
	atomic_store(&comm->comm, child);
}

/* The handle of the child; its rank is known when it is made. */
static ncclResult_t add_child(struct nccl_making *making, bool is_blocking)
{
	struct ncclComm *parent = making->parent;
	struct ncclComm *comm = nccl_handle_new(making->function);
	uint64_t what = (uint64_t)making->color;

	if (!comm)
		return ncclSystemError;
	comm->device = parent->device;
	comm->is_blocking = is_blocking;
	comm->family = nccl_family_mix(parent->family, parent->n_children);
	comm->family = nccl_family_mix(comm->family,
				       making->is_shrink ? UINT64_MAX : what);
	atomic_fetch_add(&comm->users, 1);
	nccl_handle_open(comm);
	making->comm = comm;
	*making->out = comm;
	return ncclSuccess;
}

/* @making has a parent that is entered, and goes to the group or is freed. */
static ncclResult_t make(struct nccl_making *making, const ncclConfig_t *config)
{
	struct ncclComm *parent = making->parent;
	struct nccl_settings settings = {.is_blocking = parent->is_blocking};
	ncclResult_t result = nccl_check_ready(parent, making->function);

	if (!result && !making->out)
		result = nccl_fail(ncclInvalidArgument, "%s: newcomm is NULL",
				   making->function);
	if (!result)
		result = nccl_config_read(config, making->function, &settings);
	/* Whether this call blocks is the parent's affair. */
	making->is_blocking = parent->is_blocking;
	if (!result) {
		*making->out = NULL;
		parent->n_children++;
	}
	if (!result && making->color != WREATH_COLOR_NONE)
		result = add_child(making, settings.is_blocking);
	if (!result)
		return nccl_group_make(making);
	nccl_leave(parent);
	free(making->exclude);
	free(making);
	return result;
}

static ncclResult_t split(struct ncclComm *comm, int color, int key,
			  ncclComm_t *newcomm, const ncclConfig_t *config)
{
	static const char function[] = "ncclCommSplit";
	struct nccl_making *making;
	ncclResult_t result = nccl_enter(comm, function);

	if (result)
		return result;
	if (comm->is_revoked)
		result = nccl_fail(ncclInvalidUsage,
				   "%s: the communicator was revoked; it can "
				   "be shrunk, aborted or destroyed", function);
	else if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
		result = nccl_fail(ncclInvalidArgument,
				   "%s: color %d is negative, and is not "
				   "NCCL_SPLIT_NOCOLOR (%d)", function, color,
				   NCCL_SPLIT_NOCOLOR);
	making = result ? NULL : nccl_making_new(function);
	if (!making) {
		nccl_leave(comm);
		return result ? result : ncclSystemError;
	}
	making->parent = comm;
	making->out = newcomm;
	making->color = color;
	making->key = key;
	return make(making, config);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
			   ncclComm_t *newcomm, ncclConfig_t *config)
{
	_Static_assert(WREATH_COLOR_NONE == NCCL_SPLIT_NOCOLOR,
		       "one is passed on as the other");

	return nccl_group_note(split(comm, color, key, newcomm, config));
}
NCCL_ALIAS(ncclCommSplit);

static ncclResult_t take_list(struct nccl_making *making, const int *exclude,
			      int n)
{
	if (n < 0 || (n && !exclude) || n > making->parent->n_ranks)
		return nccl_fail(ncclInvalidArgument,
				 "%s: excludeRanksCount is %d of %d ranks, and "
				 "excludeRanksList is %s", making->function, n,
				 making->parent->n_ranks,
				 exclude ? "not NULL" : "NULL");
	if (!n)
		return ncclSuccess;
	making->exclude = malloc((size_t)n * sizeof(*exclude));
	if (!making->exclude)
		return nccl_fail(ncclSystemError, "%s: no memory",
				 making->function);
	memcpy(making->exclude, exclude, (size_t)n * sizeof(*exclude));
	making->n_exclude = n;
	return ncclSuccess;
}

static ncclResult_t shrink(struct ncclComm *comm, const int *exclude, int n,
			   ncclComm_t *newcomm, const ncclConfig_t *config,
			   int flags)
{
	static const char function[] = "ncclCommShrink";
	struct nccl_making *making;
	ncclResult_t result = nccl_enter(comm, function);

	if (result)
		return result;
	/* What is under way ends in both cases: the ranks that are left out
	 * may be what it waits for. */
	if (flags & ~NCCL_SHRINK_ABORT)
		result = nccl_fail(ncclInvalidArgument,
				   "%s: shrinkFlags is 0x%x, and may be 0 or "
				   "NCCL_SHRINK_ABORT (1)", function,
				   (unsigned int)flags);
	making = result ? NULL : nccl_making_new(function);
	if (!making) {
		nccl_leave(comm);
		return result ? result : ncclSystemError;
	}
	making->parent = comm;
	making->out = newcomm;
	making->is_shrink = true;
	result = take_list(making, exclude, n);
	if (!result)
		return make(making, config);
	nccl_leave(comm);
	free(making);
	return result;
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList,
			    int excludeRanksCount, ncclComm_t *newcomm,
			    ncclConfig_t *config, int shrinkFlags)
{
	return nccl_group_note(shrink(comm, excludeRanksList, excludeRanksCount,
				      newcomm, config, shrinkFlags));
}
NCCL_ALIAS(ncclCommShrink);

/*
 * No new call gets in.  What is under way ends when the communicator is shrunk,
 * aborted or destroyed: an abort here would keep it from being shrunk.
 */
ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags)
{
	static const char function[] = "ncclCommRevoke";
	ncclResult_t result = nccl_enter(comm, function);

	if (result)
		return nccl_group_note(result);
	if (revokeFlags != NCCL_REVOKE_DEFAULT)
		result = nccl_fail(ncclInvalidArgument,
				   "%s: revokeFlags is 0x%x, and must be 0",
				   function, (unsigned int)revokeFlags);
	else
		comm->is_revoked = true;
	nccl_leave(comm);
	return nccl_group_note(result);
}
NCCL_ALIAS(ncclCommRevoke);
