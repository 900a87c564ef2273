/* SPDX-License-Identifier: MIT */
/*
 * How communicators end.  In wreath that is collective; in NCCL a thread that
 * has several may destroy them one after the other, and ranks may destroy two
 * in different orders.  So those of one process that belong together end when
 * the last of them is destroyed, all at once and on threads, and a caller does
 * not wait for other ranks without end.
 */
#include <stdio.h>
#include <stdlib.h>

#include "nccl/inner.h"

/* How long a caller waits for ranks that have not come to destroy theirs. */
#define END_MS 3000

struct ending {
	struct ncclComm *comm;
	struct ending *next;
	_Atomic int refs; /* the thread's and the caller's */
	_Atomic bool is_done;
	ncclResult_t result;
	char text[512];
};

/* Destroyed, and waiting for others of their family. */
static struct {
	pthread_mutex_t lock;
	struct ncclComm *first;
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void ending_put(struct ending *ending)
{
	/* The last of both sees all that the other wrote. */
	if (atomic_fetch_sub(&ending->refs, 1) == 1)
		free(ending);
}

static void end(void *arg)
{
	struct ending *ending = arg;
	struct ncclComm *comm = ending->comm;
	struct wreath_comm *inner;
	int err = 0;

	/* Calls inside end by the deadline, or within a second if aborted. */
	while (!nccl_handle_await(comm, 0, 1000))
		;
	nccl_job_await(comm);
	inner = atomic_load(&comm->comm);
	if (inner && comm->is_aborted)
		wreath_comm_abort(inner);
	nccl_streams_free(comm);
	nccl_memory_forget(comm);
	if (inner)
		err = wreath_comm_destroy(inner);
	if (err && !comm->is_aborted) {
		ending->result = nccl_result(err, "ncclCommDestroy");
		snprintf(ending->text, sizeof(ending->text), "%s",
			 nccl_own_text());
	}
	nccl_handle_free(comm);
	/* Pairs with the load in await_endings(). */
	atomic_store(&ending->is_done, true);
	ending_put(ending);
}

static struct ending *end_start(struct ncclComm *comm)
{
	struct ending *ending = calloc(1, sizeof(*ending));

	if (!ending)
		return NULL;
	ending->comm = comm;
	atomic_init(&ending->refs, 2);
	if (!nccl_job_start(NULL, end, ending))
		return ending;
	/* Without a thread, here. */
	end(ending);
	return ending;
}

static ncclResult_t await_endings(struct ending *list, int timeout_ms)
{
	ncclResult_t first = ncclSuccess;

	while (list) {
		struct ending *ending = list;

		list = list->next;
		while (!atomic_load(&ending->is_done) && timeout_ms-- > 0)
			nccl_nap();
		if (atomic_load(&ending->is_done) && ending->result && !first) {
			first = ending->result;
			nccl_keep(ending->text);
		}
		ending_put(ending);
	}
	return first;
}

/* Takes those of @comm's family out of the list, linked by next. */
static struct ncclComm *take_family(const struct ncclComm *comm)
{
	struct ncclComm **at = &waiting.first;
	struct ncclComm *family = NULL;

	while (*at) {
		struct ncclComm *other = *at;

		if (other->family.a != comm->family.a ||
		    other->family.b != comm->family.b) {
			at = &other->next;
			continue;
		}
		*at = other->next;
		other->next = family;
		family = other;
	}
	return family;
}

/*
 * Begin to end @comm where @now says so, else with the last of its family; and
 * those that waited for that.  In *@list.
 */
static bool end_family(struct ncclComm *comm, bool now, struct ending **list)
{
	struct ncclComm *family = NULL;
	bool is_last;

	pthread_mutex_lock(&waiting.lock);
	is_last = !nccl_handle_has_sibling(comm);
	if (is_last)
		family = take_family(comm);
	comm->next = family;
	if (now || is_last) {
		family = comm;
	} else {
		comm->next = waiting.first;
		waiting.first = comm;
	}
	pthread_mutex_unlock(&waiting.lock);
	while (family) {
		struct ncclComm *next = family->next;
		struct ending *ending = end_start(family);

		if (!ending)
			return false;
		ending->next = *list;
		*list = ending;
		family = next;
	}
	return true;
}

static ncclResult_t destroy(struct ncclComm *comm)
{
	struct ending *list = NULL;
	bool is_begun = end_family(comm, false, &list);
	ncclResult_t result = await_endings(list, END_MS);

	return is_begun ? result
			: nccl_fail(ncclSystemError,
				    "ncclCommDestroy: no memory");
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	ncclResult_t result;

	/* As with free(): there is nothing to do. */
	if (!comm)
		return ncclSuccess;
	result = nccl_enter(comm, "ncclCommDestroy");
	if (result)
		return nccl_group_note(result);
	if (!nccl_handle_close(comm))
		result = nccl_fail(ncclInvalidArgument,
				   "ncclCommDestroy: another thread destroys "
				   "the communicator");
	nccl_leave(comm);
	if (result || nccl_group_later(comm, destroy))
		return nccl_group_note(result);
	return destroy(comm);
}
NCCL_ALIAS(ncclCommDestroy);

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	struct ending *list = NULL;
	struct wreath_comm *inner;
	ncclResult_t result;
	bool is_begun;

	if (!comm)
		return ncclSuccess;
	result = nccl_enter(comm, "ncclCommAbort");
	if (result)
		return result;
	if (!nccl_handle_close(comm)) {
		nccl_leave(comm);
		return nccl_fail(ncclInvalidArgument,
				 "ncclCommAbort: another thread destroys the "
				 "communicator");
	}
	comm->is_aborted = true;
	inner = atomic_load(&comm->comm);
	if (inner)
		wreath_comm_abort(inner);
	is_begun = end_family(comm, true, &list);
	/* The thread waits for this call, too, and the group's end. */
	nccl_leave(comm);
	if (nccl_group_holds(comm))
		nccl_group_note(nccl_fail(ncclInvalidUsage,
					  "ncclCommAbort: the open group has "
					  "calls of the communicator"));
	await_endings(list, nccl_group_holds(comm) ? 0 : END_MS);
	return is_begun ? ncclSuccess
			: nccl_fail(ncclSystemError,
				    "ncclCommAbort: no memory");
}
NCCL_ALIAS(ncclCommAbort);

/* ---- finalize ---- */

static ncclResult_t finalize(struct ncclComm *comm)
{
	int err = wreath_comm_finalize(atomic_load(&comm->comm));
	ncclResult_t result = nccl_result(err, "ncclCommFinalize");

	if (result)
		nccl_comm_failed(comm, result, nccl_own_text());
	return result;
}

static void finalize_job(void *arg)
{
	finalize(arg);
	nccl_leave(arg);
}

/* @comm is entered, and left when it is done. */
static ncclResult_t finalize_start(struct ncclComm *comm)
{
	ncclResult_t result;

	if (comm->is_blocking && !nccl_handle_has_sibling(comm)) {
		result = finalize(comm);
		nccl_leave(comm);
		return result;
	}
	result = nccl_job_start(comm, finalize_job, comm);
	if (result)
		nccl_leave(comm);
	else if (!comm->is_blocking)
		result = ncclInProgress;
	return result;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	static const char function[] = "ncclCommFinalize";
	ncclResult_t result = nccl_enter(comm, function);

	if (result)
		return nccl_group_note(result);
	result = nccl_check_ready(comm, function);
	if (!result && comm->is_revoked)
		result = nccl_fail(ncclInvalidUsage,
				   "%s: the communicator was revoked",
				   function);
	if (!result && comm->is_final)
		result = nccl_fail(ncclInvalidArgument,
				   "%s: the communicator is finalized already",
				   function);
	if (result) {
		nccl_leave(comm);
		return nccl_group_note(result);
	}
	comm->is_final = true;
	if (nccl_group_later(comm, finalize_start))
		return comm->is_blocking ? ncclSuccess : ncclInProgress;
	return finalize_start(comm);
}
NCCL_ALIAS(ncclCommFinalize);
