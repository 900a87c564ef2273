/* SPDX-License-Identifier: MIT */
/*
 * What would block a caller that must not be, on a thread of its own.  No
 * thread outlives the process's end by much: it is waited for there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nccl/inner.h"

/* At the end of the process: as long as WREATH_TIMEOUT lets a call wait. */
#define EXIT_SECONDS 30

struct job {
	struct ncclComm *comm;
	void (*work)(void *arg);
	void *arg;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int n; /* threads */
} jobs = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

/* A thread of @comm begins, or ends, by @step. */
static void count(struct ncclComm *comm, int step)
{
	pthread_mutex_lock(&jobs.lock);
	jobs.n += step;
	if (comm)
		atomic_fetch_add(&comm->n_jobs, step);
	pthread_cond_broadcast(&jobs.changed);
	pthread_mutex_unlock(&jobs.lock);
}

static void *run(void *arg)
{
	struct job job = *(struct job *)arg;

	free(arg);
	job.work(job.arg);
	/* The last touch of the communicator: whoever sees it may free it. */
	count(job.comm, -1);
	return NULL;
}

static int start_thread(struct job *job)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int err = pthread_attr_init(&attr);

	if (err)
		return err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* The thread inherits the mask: signals are for the user's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = pthread_create(&thread, &attr, run, job);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

ncclResult_t nccl_job_start(struct ncclComm *comm, void (*work)(void *arg),
			    void *arg)
{
	struct job *job = malloc(sizeof(*job));
	int err = ENOMEM;

	if (job) {
		*job = (struct job){comm, work, arg};
		count(comm, 1);
		err = start_thread(job);
		if (err)
			count(comm, -1);
	}
	if (!err)
		return ncclSuccess;
	free(job);
	return nccl_fail(ncclSystemError, "cannot start a thread: %s",
			 strerror(err));
}

void nccl_job_await(struct ncclComm *comm)
{
	pthread_mutex_lock(&jobs.lock);
	while (atomic_load(&comm->n_jobs))
		pthread_cond_wait(&jobs.changed, &jobs.lock);
	pthread_mutex_unlock(&jobs.lock);
}

/* Communicators that end on threads must not be torn off by exit(). */
__attribute__((destructor)) static void await_all(void)
{
	struct timespec deadline;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += EXIT_SECONDS;
	pthread_mutex_lock(&jobs.lock);
	while (jobs.n && !err)
		err = pthread_cond_timedwait(&jobs.changed, &jobs.lock,
					     &deadline);
	pthread_mutex_unlock(&jobs.lock);
}
