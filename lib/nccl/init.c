/* SPDX-License-Identifier: MIT */
/* Communicators by id, and how all of them are made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/inner.h"

ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId)
{
	struct wreath_unique_id id;
	int err;

	_Static_assert(sizeof(id) == sizeof(*uniqueId),
		       "one is carried as the other");
	if (!uniqueId)
		return nccl_fail(ncclInvalidArgument,
				 "ncclGetUniqueId: uniqueId is NULL");
	nccl_env_read();
	err = wreath_unique_id_create(&id);
	if (!err)
		memcpy(uniqueId, &id, sizeof(*uniqueId));
	return nccl_result(err, "ncclGetUniqueId");
}
NCCL_ALIAS(ncclGetUniqueId);

/* ---- making ---- */

struct nccl_making *nccl_making_new(const char *function)
{
	struct nccl_making *making = calloc(1, sizeof(*making));

	if (!making)
		nccl_fail(ncclSystemError, "%s: no memory", function);
	else
		making->function = function;
	return making;
}

static void making_free(struct nccl_making *making)
{
	if (making->parent)
		nccl_leave(making->parent);
	if (making->comm)
		nccl_leave(making->comm);
	free(making->exclude);
	free(making);
}

/* It will not be: its handle goes, unless somebody ends it already. */
static void unmake(struct nccl_making *making)
{
	struct ncclComm *comm = making->comm;
	struct wreath_comm *begun;

	*making->out = NULL;
	if (!comm || !nccl_handle_close(comm))
		return;
	making->comm = NULL;
	nccl_leave(comm);
	begun = atomic_load(&comm->comm);
	if (begun)
		wreath_comm_abort(begun);
	/* Another thread may ask how it is. */
	while (!nccl_handle_await(comm, 0, 1000))
		;
	wreath_comm_destroy(begun);
	nccl_handle_free(comm);
}

void nccl_make_cancel(struct nccl_making *list)
{
	while (list) {
		struct nccl_making *next = list->next;

		unmake(list);
		making_free(list);
		list = next;
	}
}

static void failed(struct nccl_making *making, ncclResult_t result)
{
	making->result = result;
	snprintf(making->text, sizeof(making->text), "%s", nccl_own_text());
	if (making->comm && result)
		nccl_comm_failed(making->comm, result, making->text);
}

static void begin_by_id(struct nccl_making *making)
{
	struct ncclComm *comm = making->comm;
	struct wreath_comm *begun;
	int err = wreath_comm_init_start(&making->id, comm->rank, comm->n_ranks,
					 &begun);

	if (err)
		failed(making, nccl_result(err, making->function));
	else
		atomic_store(&comm->comm, begun);
}

static void await_by_id(struct nccl_making *making)
{
	struct wreath_comm *begun = atomic_load(&making->comm->comm);
	int err;

	if (!begun)
		return;
	while ((err = wreath_comm_async_error(begun)) == WREATH_EAGAIN)
		nccl_nap();
	if (err)
		failed(making, nccl_result(err, making->function));
}

/* A thread's: nobody waits for what it makes. */
static void child_job(void *arg)
{
	struct nccl_making *making = arg;
	bool is_blocking = making->is_blocking;

	nccl_child_make(making);
	failed(making, making->result);
	if (!is_blocking)
		making_free(making);
}

/* True if it is the thread's, which frees it. */
static bool begin_child(struct nccl_making *making, bool is_only)
{
	bool is_blocking = making->is_blocking;
	ncclResult_t result;

	if (is_only && is_blocking) {
		nccl_child_make(making);
		return false;
	}
	result = nccl_job_start(making->parent, child_job, making);
	if (result)
		failed(making, result);
	return !is_blocking && !result;
}

/* Returns those that are not the threads'. */
static struct nccl_making *begin_all(struct nccl_making *list,
				     ncclResult_t *result)
{
	struct nccl_making *rest = NULL;
	struct nccl_making **end = &rest;
	bool is_only = !list->next;

	while (list) {
		struct nccl_making *making = list;

		list = list->next;
		making->next = NULL;
		if (!making->is_blocking)
			*result = ncclInProgress;
		if (!making->parent)
			begin_by_id(making);
		else if (begin_child(making, is_only))
			continue;
		*end = making;
		end = &making->next;
	}
	return rest;
}

ncclResult_t nccl_make(struct nccl_making *list)
{
	ncclResult_t result = ncclSuccess;
	ncclResult_t first = ncclSuccess;
	struct nccl_making *making;
	char text[sizeof(making->text)] = "";

	if (!list)
		return ncclSuccess;
	list = begin_all(list, &result);
	while (list) {
		making = list;
		list = list->next;
		if (!making->parent && making->is_blocking)
			await_by_id(making);
		else if (making->parent && making->is_blocking)
			nccl_job_await(making->parent);
		if (making->result && !first) {
			first = making->result;
			memcpy(text, making->text, sizeof(text));
		}
		if (making->result)
			unmake(making);
		making_free(making);
	}
	if (first)
		nccl_keep(text);
	return first ? first : result;
}

/* ---- the calls ---- */

struct by_id {
	const char *function;
	ncclComm_t *out;
	int n_ranks, rank, device;
	const ncclUniqueId *id;
	const ncclConfig_t *config;
};

static ncclResult_t check(const struct by_id *args,
			  struct nccl_settings *settings)
{
	if (!args->out || !args->id)
		return nccl_fail(ncclInvalidArgument, "%s: %s is NULL",
				 args->function, args->out ? "the id" : "comm");
	if (args->n_ranks < 1)
		return nccl_fail(ncclInvalidArgument,
				 "%s: nranks is %d, and must be 1 or more",
				 args->function, args->n_ranks);
	if (args->rank < 0 || args->rank >= args->n_ranks)
		return nccl_fail(ncclInvalidArgument,
				 "%s: rank %d is not in 0..%d", args->function,
				 args->rank, args->n_ranks - 1);
	return nccl_config_read(args->config, args->function, settings);
}

static struct nccl_family family_of(const struct wreath_unique_id *id)
{
	struct nccl_family family = {0xcbf29ce484222325u, 0};
	uint64_t words[sizeof(*id) / sizeof(uint64_t)];
	size_t i;

	memcpy(words, id, sizeof(words));
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		family = nccl_family_mix(family, words[i]);
	return family;
}

static ncclResult_t init(const struct by_id *args)
{
	struct nccl_settings settings = {.is_blocking = true};
	struct nccl_making *making;
	struct ncclComm *comm;
	ncclResult_t result;

	nccl_env_read();
	result = check(args, &settings);
	if (result)
		return result;
	making = nccl_making_new(args->function);
	if (!making)
		return ncclSystemError;
	comm = nccl_handle_new(args->function);
	if (!comm) {
		free(making);
		return ncclSystemError;
	}
	memcpy(&making->id, args->id, sizeof(making->id));
	making->comm = comm;
	making->out = args->out;
	making->is_blocking = settings.is_blocking;
	comm->rank = args->rank;
	comm->n_ranks = args->n_ranks;
	comm->is_blocking = settings.is_blocking;
	comm->family = family_of(&making->id);
	comm->device = args->device;
	if (args->device < 0 && wreath_mem_device(NULL, &comm->device))
		comm->device = -1;
	atomic_fetch_add(&comm->users, 1);
	nccl_handle_open(comm);
	*args->out = comm;
	return nccl_group_make(making);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId,
			      int rank)
{
	const struct by_id args = {"ncclCommInitRank", comm, nranks, rank, -1,
				   &commId, NULL};

	return nccl_group_note(init(&args));
}
NCCL_ALIAS(ncclCommInitRank);

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks,
				    ncclUniqueId commId, int rank,
				    ncclConfig_t *config)
{
	const struct by_id args = {"ncclCommInitRankConfig", comm, nranks, rank,
				   -1, &commId, config};

	return nccl_group_note(init(&args));
}
NCCL_ALIAS(ncclCommInitRankConfig);

/* The first id is enough: ranks tell each other what they are in a tree. */
ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks,
				      int myrank, int nId,
				      ncclUniqueId *commIds,
				      ncclConfig_t *config)
{
	static const char function[] = "ncclCommInitRankScalable";
	const struct by_id args = {function, newcomm, nranks, myrank, -1,
				   commIds, config};

	if (nId < 1 || (nranks > 0 && nId > nranks))
		return nccl_group_note(
			nccl_fail(ncclInvalidArgument,
				  "%s: nId is %d, which is not in 1..%d",
				  function, nId, nranks));
	return nccl_group_note(init(&args));
}
NCCL_ALIAS(ncclCommInitRankScalable);

static ncclResult_t init_all(ncclComm_t *comm, int ndev, const int *devlist)
{
	static const char function[] = "ncclCommInitAll";
	ncclResult_t result = ncclSuccess;
	ncclUniqueId id;
	int i;

	for (i = 0; devlist && i < ndev; i++)
		if (devlist[i] < 0)
			return nccl_fail(ncclInvalidArgument,
					 "%s: devlist[%d] is %d", function, i,
					 devlist[i]);
	result = ncclGetUniqueId(&id);
	for (i = 0; i < ndev && !result; i++) {
		const struct by_id args = {function, &comm[i], ndev, i,
					   devlist ? devlist[i] : i, &id, NULL};

		result = init(&args);
		/* In a group, each is in progress where the environment says
		 * so, and that is no failure. */
		if (result == ncclInProgress)
			result = ncclSuccess;
	}
	return result;
}

ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
	ncclResult_t result, end;
	int i;

	if (!comm || ndev < 1)
		return nccl_group_note(
			nccl_fail(ncclInvalidArgument,
				  "ncclCommInitAll: %s is %s",
				  comm ? "ndev" : "comm",
				  comm ? "less than 1" : "NULL"));
	for (i = 0; i < ndev; i++)
		comm[i] = NULL;
	result = ncclGroupStart();
	if (result)
		return result;
	result = nccl_group_note(init_all(comm, ndev, devlist));
	end = ncclGroupEnd();
	return result ? result : end;
}
NCCL_ALIAS(ncclCommInitAll);
