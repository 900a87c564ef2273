/* SPDX-License-Identifier: MIT */
/*
 * Groups: operations go into a group of wreath's; communicators that are made
 * or ended in it are kept here until its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/inner.h"

/* A communicator that the open group knows, and what its end does with it. */
struct entry {
	struct ncclComm *comm;
	ncclResult_t (*later)(struct ncclComm *comm); /* NULL: it is held */
};

static __thread struct {
	unsigned int depth;
	ncclResult_t result; /* of the first call that was refused */
	char text[1024];
	struct nccl_making *first, *last;
	struct entry *entries;
	size_t n, max;
} group;

bool nccl_group_is_open(void)
{
	return group.depth;
}

ncclResult_t nccl_group_note(ncclResult_t result)
{
	if (!result || result == ncclInProgress || !group.depth || group.result)
		return result;
	group.result = result;
	snprintf(group.text, sizeof(group.text), "%s", nccl_own_text());
	return result;
}

ncclResult_t nccl_group_make(struct nccl_making *making)
{
	if (!group.depth)
		return nccl_make(making);
	if (group.last)
		group.last->next = making;
	else
		group.first = making;
	group.last = making;
	return making->is_blocking ? ncclSuccess : ncclInProgress;
}

static bool add(struct ncclComm *comm,
		ncclResult_t (*later)(struct ncclComm *comm))
{
	if (group.n == group.max) {
		size_t max = group.max ? 2 * group.max : 16;
		struct entry *more =
			realloc(group.entries, max * sizeof(*more));

		if (!more)
			return false;
		group.entries = more;
		group.max = max;
	}
	group.entries[group.n++] = (struct entry){comm, later};
	return true;
}

bool nccl_group_holds(const struct ncclComm *comm)
{
	size_t i;

	for (i = 0; i < group.n; i++)
		if (group.entries[i].comm == comm && !group.entries[i].later)
			return true;
	return false;
}

ncclResult_t nccl_group_hold(struct ncclComm *comm)
{
	if (!group.depth || nccl_group_holds(comm))
		return ncclSuccess;
	if (!add(comm, NULL))
		return nccl_fail(ncclSystemError, "no memory for the group");
	atomic_fetch_add(&comm->users, 1);
	return ncclSuccess;
}

bool nccl_group_later(struct ncclComm *comm,
		      ncclResult_t (*what)(struct ncclComm *comm))
{
	return group.depth && add(comm, what);
}

ncclResult_t ncclGroupStart(void)
{
	if (!group.depth++)
		wreath_group_start();
	return ncclSuccess;
}
NCCL_ALIAS(ncclGroupStart);

/* None of wreath's group is done: a call that is refused sees to that. */
static void cancel(void)
{
	wreath_barrier(NULL, NULL);
	wreath_group_end();
}

static ncclResult_t run(void)
{
	struct nccl_making *first = group.first;
	ncclResult_t result = group.result;
	ncclResult_t later;
	int err;

	group.first = NULL;
	group.last = NULL;
	if (result) {
		cancel();
		nccl_make_cancel(first);
		nccl_keep(group.text);
		return result;
	}
	result = nccl_make(first);
	if (result && result != ncclInProgress) {
		char text[sizeof(group.text)];

		snprintf(text, sizeof(text), "%s", nccl_own_text());
		cancel();
		nccl_keep(text);
		return result;
	}
	err = wreath_group_end();
	later = nccl_result(err, "ncclGroupEnd");
	return later ? later : result;
}

/* The communicators of the group may end, and some of them shall. */
static ncclResult_t finish(ncclResult_t result)
{
	ncclResult_t later;
	size_t i;

	for (i = 0; i < group.n; i++)
		if (!group.entries[i].later)
			nccl_leave(group.entries[i].comm);
	for (i = 0; i < group.n; i++) {
		if (!group.entries[i].later)
			continue;
		later = group.entries[i].later(group.entries[i].comm);
		if (later && (!result || result == ncclInProgress))
			result = later;
	}
	free(group.entries);
	memset(&group, 0, sizeof(group));
	return result;
}

static ncclResult_t not_open(const char *function)
{
	return nccl_fail(ncclInvalidUsage,
			 "%s: no group is open; ncclGroupStart() comes first",
			 function);
}

ncclResult_t ncclGroupEnd(void)
{
	if (!group.depth)
		return not_open("ncclGroupEnd");
	if (--group.depth)
		return ncclSuccess;
	return finish(run());
}
NCCL_ALIAS(ncclGroupEnd);

static ncclResult_t check_info(const ncclSimInfo_t *info)
{
	const ncclSimInfo_t good = NCCL_SIM_INFO_INITIALIZER;

	if (!info)
		return nccl_fail(ncclInvalidArgument,
				 "ncclGroupSimulateEnd: simInfo is NULL");
	if (info->magic == good.magic && info->size >= sizeof(good))
		return ncclSuccess;
	return nccl_fail(ncclInvalidArgument,
			 "ncclGroupSimulateEnd: simInfo's size is %zu and its "
			 "magic 0x%x; begin with NCCL_SIM_INFO_INITIALIZER",
			 info->size, info->magic);
}

/* The group ends, and nothing of it is done; how long it would take is not
 * known here. */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
	ncclResult_t result;

	if (!group.depth)
		return not_open("ncclGroupSimulateEnd");
	result = nccl_group_note(check_info(simInfo));
	if (!result)
		simInfo->estimatedTime = NCCL_UNDEF_FLOAT;
	if (--group.depth)
		return result;
	if (!result)
		result = group.result;
	cancel();
	nccl_make_cancel(group.first);
	return finish(result);
}
NCCL_ALIAS(ncclGroupSimulateEnd);
