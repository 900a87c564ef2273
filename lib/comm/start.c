/* SPDX-License-Identifier: MIT */
/* Joining in a thread of its own, while the caller does something else. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm/inner.h"

struct comm_joining {
	pthread_t thread;
	int process; /* in a child of fork() there is no thread to wait for */
	struct wreath_unique_id id;
	struct comm_stop stop;
};

static int stopped(void *arg)
{
	struct wreath_comm *comm = arg;

	if (!atomic_load(&comm->aborted))
		return 0;
	return base_error(WREATH_EABORTED,
			  "rank %d gave up joining: its communicator was "
			  "aborted or destroyed", comm->rank);
}

static void *join_all(void *arg)
{
	struct wreath_comm *comm = arg;

	comm_joined(comm, comm_join(comm, &comm->joining->id,
				    &comm->joining->stop));
	return NULL;
}

static int start_thread(struct wreath_comm *comm)
{
	sigset_t all, before;
	int err;

	snprintf(comm->error_text, sizeof(comm->error_text),
		 "rank %d of %d is still joining; ask "
		 "wreath_comm_async_error() until it says 0", comm->rank,
		 comm->n_ranks);
	atomic_store(&comm->error, WREATH_EAGAIN);
	/* The thread inherits the mask: signals are for the user's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = pthread_create(&comm->joining->thread, NULL, join_all, comm);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		return 0;
	return base_error(WREATH_ENOMEM, "cannot start a thread to join: %s",
			  strerror(err));
}

static int start(struct wreath_comm *comm, const struct wreath_unique_id *id)
{
	struct comm_joining *joining = base_alloc(1, sizeof(*joining));
	int err;

	if (!joining)
		return WREATH_ENOMEM;
	joining->process = (int)getpid();
	joining->id = *id;
	joining->stop.stopped = stopped;
	joining->stop.arg = comm;
	comm->joining = joining;
	err = start_thread(comm);
	if (!err)
		return 0;
	comm->joining = NULL;
	base_free(joining);
	return err;
}

void comm_join_end(struct wreath_comm *comm)
{
	struct comm_joining *joining = comm->joining;

	if (!joining)
		return;
	if (comm_is_joining(comm))
		comm_abort_joining(comm);
	if (joining->process == (int)getpid())
		pthread_join(joining->thread, NULL);
	comm->joining = NULL;
	base_free(joining);
}

int wreath_comm_init_start(const struct wreath_unique_id *id, int rank,
			   int n_ranks, struct wreath_comm **out)
{
	struct wreath_comm *comm;
	struct base_env env;
	int err = comm_check_init(id, rank, n_ranks, out,
				  "wreath_comm_init_start");

	if (!err)
		err = base_env_load(&env);
	if (err)
		return err;
	/* With nobody to wait for there is nothing to do beside it. */
	if (n_ranks == 1)
		return comm_new(id, rank, n_ranks, &env, NULL, out);
	err = comm_alloc(rank, n_ranks, &env, &comm);
	if (err)
		return err;
	err = start(comm, id);
	if (err)
		comm_free(comm);
	else
		*out = comm;
	return err;
}
