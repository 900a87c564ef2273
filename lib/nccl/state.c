/* SPDX-License-Identifier: MIT */
/* How a communicator is, and what it is. */
#include <stdio.h>
#include <string.h>

#include "nccl/inner.h"

/* Of every communicator's text: written once a failure. */
static pthread_mutex_t text_lock = PTHREAD_MUTEX_INITIALIZER;

void nccl_comm_failed(struct ncclComm *comm, ncclResult_t result,
		      const char *text)
{
	pthread_mutex_lock(&text_lock);
	if (!atomic_load(&comm->failure)) {
		snprintf(comm->text, sizeof(comm->text), "%s", text);
		/* Pairs with the loads below: the text is there. */
		atomic_store(&comm->failure, (int)result);
	}
	pthread_mutex_unlock(&text_lock);
}

static ncclResult_t failure(struct ncclComm *comm)
{
	ncclResult_t result = (ncclResult_t)atomic_load(&comm->failure);

	if (result)
		nccl_keep(comm->text);
	return result;
}

ncclResult_t nccl_state(struct ncclComm *comm)
{
	ncclResult_t result = failure(comm);
	struct wreath_comm *inner;
	int err;

	if (result)
		return result;
	inner = atomic_load(&comm->comm);
	if (!inner || atomic_load(&comm->n_jobs))
		return ncclInProgress;
	err = wreath_comm_async_error(inner);
	if (err == WREATH_EAGAIN)
		return ncclInProgress;
	if (err) {
		nccl_keep(wreath_error_text());
		return nccl_result_of(err);
	}
	return nccl_streams_error(comm);
}

ncclResult_t nccl_check_ready(struct ncclComm *comm, const char *function)
{
	ncclResult_t result = failure(comm);
	struct wreath_comm *inner;

	if (result)
		return result;
	inner = atomic_load(&comm->comm);
	if (inner && !atomic_load(&comm->n_jobs)) {
		if (atomic_load(&comm->is_joined))
			return ncclSuccess;
		if (wreath_comm_async_error(inner) != WREATH_EAGAIN) {
			atomic_store(&comm->is_joined, true);
			return ncclSuccess;
		}
	}
	return nccl_fail(ncclInvalidArgument,
			 "%s: the communicator is not ready; %s", function,
			 !inner && nccl_group_is_open()
				 ? "the group that makes it has not ended"
				 : "ask ncclCommGetAsyncError() until it does "
				   "not say ncclInProgress");
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
	static const char function[] = "ncclCommGetAsyncError";
	ncclResult_t result;

	if (!asyncError)
		return nccl_fail(ncclInvalidArgument, "%s: asyncError is NULL",
				 function);
	result = nccl_enter(comm, function);
	if (result)
		return result;
	*asyncError = nccl_state(comm);
	nccl_leave(comm);
	return ncclSuccess;
}
NCCL_ALIAS(ncclCommGetAsyncError);

const char *ncclGetLastError(ncclComm_t comm)
{
	ncclResult_t result = ncclSuccess;

	if (comm && !nccl_enter(comm, "ncclGetLastError")) {
		result = nccl_state(comm);
		nccl_leave(comm);
	}
	return result && result != ncclInProgress ? nccl_own_text()
						  : nccl_last_text();
}
NCCL_ALIAS(ncclGetLastError);

/* The log's level is that of WREATH_LOG when a communicator was made. */
void ncclResetDebugInit(void)
{
}
NCCL_ALIAS(ncclResetDebugInit);

static ncclResult_t query(struct ncclComm *comm, const char *function,
			  const int *member, int *out, const char *name)
{
	ncclResult_t result = nccl_enter(comm, function);

	if (result)
		return result;
	if (!out)
		result = nccl_fail(ncclInvalidArgument, "%s: %s is NULL",
				   function, name);
	/* A child's rank and size are known when it is there. */
	else if (!atomic_load(&comm->comm))
		result = nccl_check_ready(comm, function);
	if (!result)
		*out = *member;
	nccl_leave(comm);
	return result;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
	return query(comm, "ncclCommCount", comm ? &comm->n_ranks : NULL, count,
		     "count");
}
NCCL_ALIAS(ncclCommCount);

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
	return query(comm, "ncclCommUserRank", comm ? &comm->rank : NULL, rank,
		     "rank");
}
NCCL_ALIAS(ncclCommUserRank);

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
	return query(comm, "ncclCommCuDevice", comm ? &comm->device : NULL,
		     device, "device");
}
NCCL_ALIAS(ncclCommCuDevice);
