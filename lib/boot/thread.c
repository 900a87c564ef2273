/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <signal.h>

#include "thread.h"

int boot_thread_start(void *(*body)(void *arg), void *arg, const char *name,
		      pthread_t *thread)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t made;
	int err;

	/* The host program's signals are for its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	if (!thread)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&made, &attr, body, arg);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return err;
	if (thread) {
		pthread_setname_np(made, name);
		*thread = made;
	}
	return 0;
}
