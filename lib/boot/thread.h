/* SPDX-License-Identifier: MIT */
/* Threads that the host program must not notice.  Any thread may call. */
#ifndef BOOT_THREAD_H
#define BOOT_THREAD_H

#include <pthread.h>

/*
 * Run @body(@arg) in a thread with every signal blocked; detached where
 * @thread is NULL.  0 or an errno.
 */
int boot_thread_start(void *(*body)(void *arg), void *arg, const char *name,
		      pthread_t *thread);

#endif
