/* SPDX-License-Identifier: MIT */
/*
 * What is not done here, but must have its name here: a program that finds a
 * name missing gets it from NCCL's own library where that is loaded as well,
 * and that would take our communicators for its own.
 *
 * These are the device interface, by which kernels communicate themselves, and
 * calls of versions later than nccl.h's.  Their arguments do not matter, and
 * are not declared: in the calling conventions that we run on, the caller
 * clears them away.
 */
#include "nccl/inner.h"

static ncclResult_t refuse(const char *function, const char *what)
{
	return nccl_group_note(nccl_fail(ncclInvalidUsage,
					 "%s: libwreath-nccl has no %s; "
					 "wreath_nccl(7) lists what it has",
					 function, what));
}

#define REFUSED(name, what)                                                    \
	NCCL_SHOWN ncclResult_t name(void);                                    \
	ncclResult_t name(void)                                                \
	{                                                                      \
		return refuse(#name, what);                                    \
	}                                                                      \
	NCCL_SHOWN NCCL_ALIAS(name)

#define DEVICE "device interface: kernels cannot communicate"

REFUSED(ncclDevCommCreate, DEVICE);
REFUSED(ncclDevCommDestroy, DEVICE);
REFUSED(ncclLsaBarrierCreateRequirement, DEVICE);
REFUSED(ncclGinBarrierCreateRequirement, DEVICE);
REFUSED(ncclLLA2ACreateRequirement, DEVICE);
REFUSED(ncclCommQueryProperties, DEVICE);
REFUSED(ncclGetLsaMultimemDevicePointer, DEVICE);
REFUSED(ncclGetMultimemDevicePointer, DEVICE);
REFUSED(ncclGetLsaDevicePointer, DEVICE);
REFUSED(ncclGetPeerDevicePointer, DEVICE);
REFUSED(ncclPutSignal, "one-sided calls");
REFUSED(ncclSignal, "one-sided calls");
REFUSED(ncclWaitSignal, "one-sided calls");
REFUSED(ncclWinGetUserPtr, "calls of NCCL 2.29");
REFUSED(ncclCommGetUniqueId, "calls of NCCL 2.29");
REFUSED(ncclCommGrow, "calls of NCCL 2.29");
REFUSED(ncclCommSuspend, "calls of NCCL 2.29");
REFUSED(ncclCommResume, "calls of NCCL 2.29");
REFUSED(ncclCommMemStats, "calls of NCCL 2.29");
REFUSED(ncclAllReduceConfig, "settings of a single call");
REFUSED(ncclBroadcastConfig, "settings of a single call");
REFUSED(ncclReduceConfig, "settings of a single call");
REFUSED(ncclAllGatherConfig, "settings of a single call");
REFUSED(ncclReduceScatterConfig, "settings of a single call");
REFUSED(ncclAlltoAllConfig, "settings of a single call");
REFUSED(ncclGatherConfig, "settings of a single call");
REFUSED(ncclScatterConfig, "settings of a single call");

/* ---- those that return no ncclResult_t ---- */

/* Ranks that a kernel could reach: none but its own. */
struct nccl_team {
	int n_ranks, rank, stride;
};

static struct nccl_team team_of(struct ncclComm *comm, const char *function,
				bool is_alone)
{
	struct nccl_team team = {0, 0, 0};

	if (nccl_enter(comm, function))
		return team;
	team.n_ranks = is_alone ? 1 : comm->n_ranks;
	team.rank = is_alone ? 0 : comm->rank;
	team.stride = 1;
	nccl_leave(comm);
	return team;
}

#define TEAM(name, is_alone)                                                   \
	NCCL_SHOWN struct nccl_team name(ncclComm_t comm);                     \
	struct nccl_team name(ncclComm_t comm)                                 \
	{                                                                      \
		return team_of(comm, #name, is_alone);                         \
	}                                                                      \
	NCCL_SHOWN NCCL_ALIAS(name)

TEAM(ncclTeamWorld, false);
TEAM(ncclTeamRail, false);
TEAM(ncclTeamLsa, true);

/* The rank in @of of rank @rank of @team, both of which have this process. */
static int rank_in(struct nccl_team of, struct nccl_team team, int rank)
{
	return of.rank + (rank - team.rank) * team.stride;
}

#define TEAM_RANK(name, is_alone)                                              \
	NCCL_SHOWN int name(ncclComm_t comm, struct nccl_team team, int rank); \
	int name(ncclComm_t comm, struct nccl_team team, int rank)             \
	{                                                                      \
		return rank_in(team_of(comm, #name, is_alone), team, rank);    \
	}                                                                      \
	NCCL_SHOWN NCCL_ALIAS(name)

TEAM_RANK(ncclTeamRankToWorld, false);
TEAM_RANK(ncclTeamRankToLsa, true);

NCCL_SHOWN int ncclLLA2ACalcSlots(int maxElts, int maxEltSize);
int ncclLLA2ACalcSlots(int maxElts, int maxEltSize)
{
	(void)maxElts;
	(void)maxEltSize;
	refuse("ncclLLA2ACalcSlots", DEVICE);
	return 0;
}
NCCL_SHOWN NCCL_ALIAS(ncclLLA2ACalcSlots);

/* The library's own name for ncclResetDebugInit(). */
NCCL_SHOWN void ncclResetDebugInitInternal(void);
void ncclResetDebugInitInternal(void)
{
}
