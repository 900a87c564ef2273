/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <sodium.h>
#include <unistd.h>

#include "sock.h"
#include "tree.h"

/*
 * A rank that has closed still carries frames of others.  Usually all close at
 * about the same time, and boot_close() waits a moment for that; else its
 * thread stays behind as a ghost, until the others have closed too, and at the
 * latest until the process ends.
 */
#define CLOSE_MS 50

/*
 * A parent that was not reached yet may be told of a failure for so long: less
 * than what exit() waits.
 */
#define TELL_MS 1000

/* exit() waits so long for ghosts: they may be somebody's way. */
#define EXIT_MS 2000

static pthread_mutex_t ghosts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct boot *ghosts;
static int ghosts_process;

void boot_free(struct boot *boot)
{
	size_t i;

	if (boot->process == (int)getpid()) {
		for (i = 0; i < base_countof(boot->links); i++)
			boot_link_close(&boot->links[i]);
		boot_sock_close(&boot->listener);
		boot_sock_close(&boot->wake);
	}
	boot_gather_release(boot);
	boot_message_release(boot);
	boot_notes_release(boot);
	boot_frame_put(boot->failure_frame);
	base_free(boot->ranks);
	base_free(boot->addrs);
	base_free(boot->left);
	sodium_memzero(boot->secret, sizeof(boot->secret));
	pthread_cond_destroy(&boot->changed);
	pthread_mutex_destroy(&boot->lock);
	base_free(boot);
}

void boot_ghost_ends(struct boot *boot)
{
	struct boot **at;

	pthread_mutex_lock(&ghosts_lock);
	for (at = &ghosts; *at != boot; at = &(*at)->next_ghost)
		;
	*at = boot->next_ghost;
	pthread_detach(pthread_self());
	boot_free(boot);
	pthread_mutex_unlock(&ghosts_lock);
}

/* Caller holds boot->lock; the thread has not ended. */
static void become_ghost(struct boot *boot)
{
	pthread_mutex_lock(&ghosts_lock);
	if (ghosts_process != (int)getpid())
		ghosts = NULL;
	ghosts_process = (int)getpid();
	boot->next_ghost = ghosts;
	ghosts = boot;
	boot->is_ghost = true;
	pthread_mutex_unlock(&ghosts_lock);
}

void boot_close(struct boot *boot)
{
	uint64_t deadline_ns = base_now_ns() + CLOSE_MS * UINT64_C(1000000);
	bool done;

	if (!boot)
		return;
	/*
	 * In a child of fork() there is no thread, the lock may be held for
	 * ever, and the descriptors are closed: leave it all where it is.
	 */
	if (boot->process != (int)getpid())
		return;
	if (!boot->has_thread) {
		boot_free(boot);
		return;
	}
	pthread_mutex_lock(&boot->lock);
	boot->callback_is_due = false;
	boot->on_failure = NULL;
	while (boot->callback_runs)
		boot_sleep(boot, base_now_ns() + UINT64_C(1000000000));
	boot->closing = true;
	boot->tell_until_ns = base_now_ns() + TELL_MS * UINT64_C(1000000);
	/* Who knocks learns that nobody is at home. */
	boot->stands = true;
	boot_sock_close(&boot->listener);
	boot_leave(boot);
	boot_links_flush(boot);
	boot_sock_event_set(boot->wake);
	while (!boot->done && boot_sleep(boot, deadline_ns))
		;
	done = boot->done;
	if (!done)
		become_ghost(boot);
	pthread_mutex_unlock(&boot->lock);
	if (done) {
		pthread_join(boot->thread, NULL);
		boot_free(boot);
	}
}

static bool ghosts_remain(void)
{
	bool remain;

	pthread_mutex_lock(&ghosts_lock);
	remain = ghosts && ghosts_process == (int)getpid();
	pthread_mutex_unlock(&ghosts_lock);
	return remain;
}

static void stop_ghosts(void)
{
	struct boot *ghost;

	pthread_mutex_lock(&ghosts_lock);
	/* In the list they are not freed; their locks come before this one. */
	for (ghost = ghosts; ghost; ghost = ghost->next_ghost) {
		atomic_store_explicit(&ghost->must_stop, true,
				      memory_order_relaxed);
		boot_sock_event_set(ghost->wake);
	}
	pthread_mutex_unlock(&ghosts_lock);
}

static void wait_for_ghosts(int ms)
{
	uint64_t deadline_ns = base_now_ns() + (uint64_t)ms * 1000000;

	while (ghosts_remain() && base_now_ns() < deadline_ns)
		base_sleep_ms(1);
}

/* At exit(), or when the library is unloaded. */
__attribute__((destructor)) static void lay_ghosts(void)
{
	if (!ghosts_remain())
		return;
	wait_for_ghosts(EXIT_MS);
	if (!ghosts_remain())
		return;
	stop_ghosts();
	wait_for_ghosts(EXIT_MS);
}
